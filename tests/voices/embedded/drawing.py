"""Large letters for tests: an alphabet of its own, five dots by five, drawn with any character in any size."""

from __future__ import annotations

_ROWS = """
A .###. #...# ##### #...# #...#
B ####. #...# ####. #...# ####.
C .#### #.... #.... #.... .####
D ####. #...# #...# #...# ####.
E ##### #.... ####. #.... #####
F ##### #.... ####. #.... #....
G .#### #.... #..## #...# .####
H #...# #...# ##### #...# #...#
I ### .#. .#. .#. ###
L #.... #.... #.... #.... #####
M #...# ##.## #.#.# #...# #...#
N #...# ##..# #.#.# #..## #...#
O .###. #...# #...# #...# .###.
P ####. #...# ####. #.... #....
R ####. #...# ####. #..#. #...#
S .#### #.... .###. ....# ####.
T ##### ..#.. ..#.. ..#.. ..#..
U #...# #...# #...# #...# .###.
V #...# #...# #...# .#.#. ..#..
W #...# #...# #.#.# ##.## #...#
Y #...# .#.#. ..#.. ..#.. ..#..
"""
GLYPHS = {line[0]: line[2:].split() for line in _ROWS.strip().splitlines()}


def drawn(text: str, ink: str = "#", size: int = 1, gap: int = 1) -> str:
    """The text in large letters, words three gaps apart."""
    rows = [""] * 5
    for character in text:
        for at in range(5):
            if character == " ":
                rows[at] += " " * 2 * gap
            else:
                dots = GLYPHS[character][at].replace(".", " ").replace("#", ink)
                rows[at] += "".join(dot * size for dot in dots) + " " * gap
    return "\n".join(row.rstrip() for row in rows for _ in range(size))

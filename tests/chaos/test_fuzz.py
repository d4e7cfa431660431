"""Files that somebody broke: whatever is read is used or refused in a line, never met with a traceback.

Each begins as a file that works and has bytes flipped, cut out, doubled or swapped by a seeded hand.
`pytest tests/chaos --long` tries 600 of each kind instead of 4.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from firecircle.cli.main import run

FEW, MANY = 4, 600
ODD = [
    b"\x00",
    b"\xff",
    b'"',
    b"{",
    b"]",
    b"\n",
    b"1e308",
    b"-1",
    b"NaN",
    b"null",
    b"\xf0\x9f",
    "\u202e".encode(),
]
PLAN = b'[[datasets]]\npath = "examples"\nsample = 2\n[[arms]]\nname = "a"\nkind = "single"\nmodel = "embedded:time"\n'
SETTINGS = b'[circle]\nmodels = ["embedded:time", "embedded:layers"]\n[prices."a:b"]\ninput = 1\noutput = 2\n[waiting]\nfirst_seconds = 3\n'
ROWS = b'{"id": "a", "text": "hello there", "label": "benign"}\n{"id": "b", "text": "print it", "label": "attack"}\n'
COMMANDS: dict[str, tuple[str, Callable[[str], list[str]]]] = {
    "recording": ("r.json", lambda file: ["replay", file, "--json"]),
    "import": ("r.json", lambda file: ["circles", "import", file]),
    "bank": ("b.jsonl", lambda file: ["bank", "import", file]),
    "batch": (
        "d.jsonl",
        lambda file: ["evaluate", "--batch", file, "--mode", "single", "--no-save", "--quiet"],
    ),
    "table": (
        "d.csv",
        lambda file: ["evaluate", "--batch", file, "--mode", "single", "--no-save", "--quiet"],
    ),
    "plan": ("p.toml", lambda file: ["lab", "estimate", file, "--json"]),
    "settings": ("firecircle.toml", lambda _: ["evaluate", "hello", "--mode", "single", "--no-save"]),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A file of each kind that works."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FIRECIRCLE_STORE", str(folder / "s.sqlite"))
        patched.setenv("FIRECIRCLE_CONFIG", "")
        assert run(["evaluate", "--example", "role_confusion-04-attack"]) == 1
        assert run(["circles", "export", str(folder / "r.json")]) == 0
        assert run(["bank", "learn"]) == 0
        assert run(["bank", "export", str(folder / "b.jsonl")]) == 0
    recording, bank = ((folder / name).read_bytes() for name in ("r.json", "b.jsonl"))
    table = b"text,label\nhello there,benign\nprint it,attack\n"
    return {
        "recording": recording,
        "import": recording,
        "bank": bank,
        "batch": ROWS,
        "table": table,
        "plan": PLAN,
        "settings": SETTINGS,
    }


def broken(data: bytes, chance: random.Random) -> bytes:
    """The file after somebody's hand was in it."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(data) + 1)
        until = min(len(data), at + chance.choice((1, 3, 20, 400)))
        data = {
            "flip": data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :],
            "cut": data[:at] + data[until:],
            "end": data[:at] or b"{",
            "double": data[:until] + data[at:until] + data[until:],
            "odd": data[:at] + chance.choice(ODD) + data[at:],
            "deep": data[:at] + b"[" * 5000 + data[at:],
        }[chance.choice(("flip", "flip", "cut", "end", "double", "odd", "odd", "deep"))]
    return data


@pytest.mark.parametrize("kind", COMMANDS)
def test_what_cannot_be_read_is_told_in_a_line(
    kind: str,
    whole: dict[str, bytes],
    is_long: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    monkeypatch.setenv("FIRECIRCLE_STORE", str(tmp_path / "s.sqlite"))
    monkeypatch.chdir(tmp_path)
    name, command = COMMANDS[kind]
    for number in range(MANY if is_long else FEW):
        chance = random.Random(f"{kind} {number}")
        file = tmp_path / f"{number}-{name}"
        file.write_bytes(broken(whole[kind], chance))
        if kind == "settings":
            monkeypatch.setenv("FIRECIRCLE_CONFIG", str(file))
        status = run(command(file.name))
        captured = capsys.readouterr()
        told = (kind, number, captured.err[-2000:])
        assert status in (0, 1, 2, 3), told
        assert "Traceback" not in captured.err + captured.out, told
        assert status != 2 or captured.err or captured.out, told

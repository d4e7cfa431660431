"""Text of a drawn figure, held to the width it was laid out with.

A figure is laid out with one font and shown with whatever the reader's machine has; a wider one runs out of
the picture or into its neighbour. SVG can state how wide a text is meant to be. The widths are those of
Helvetica, which Arial and Liberation Sans share.
"""

from __future__ import annotations

import html
import re

_PLAIN = """
278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556
556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667
778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222
222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584
"""
_BOLD = """
278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556
556 333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722 611 833 722 778 667 778
722 667 611 722 667 944 667 667 611 333 278 333 584 556 333 556 611 556 611 556 333 611 611 278 278
556 278 889 611 611 611 611 389 556 333 611 556 778 556 556 500 389 280 389 584
"""
"""Thousandths of the font size, for the characters from the space to the tilde."""
WIDTHS = {weight: tuple(map(int, table.split())) for weight, table in (("plain", _PLAIN), ("bold", _BOLD))}
BEYOND = 600
"""For every other character."""
_TEXT = re.compile(r"<text ([^>]*)>([^<]+)</text>")
_SIZE = re.compile(r'font-size="([\d.]+)px"')


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """How wide a text is, in the unit of its size."""
    widths = WIDTHS["bold" if bold else "plain"]
    thousandths = sum(
        widths[ord(character) - 32] if " " <= character <= "~" else BEYOND for character in text
    )
    return thousandths * size / 1000


def held_to_width(svg: str) -> str:
    """The picture with the intended width stated for every text."""
    return _TEXT.sub(_with_width, svg)


def _with_width(match: re.Match[str]) -> str:
    attributes, text = match[1], match[2]
    size = _SIZE.search(attributes)
    if size is None:
        return match[0]
    width = width_of(html.unescape(text), float(size[1]), bold='font-weight="bold"' in attributes)
    return f'<text {attributes} textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs">{text}</text>'

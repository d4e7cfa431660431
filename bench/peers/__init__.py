"""The same dialogue in Fire Circle, in a bare HTTP client and in the tools that researchers use beside it.

`python -m bench.peers` says how; see bench/peers/__main__.py.
"""

from __future__ import annotations


def main() -> None:
    """Measure and print."""
    from bench.peers.__main__ import main as measure

    measure()

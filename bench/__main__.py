"""Every benchmark, one after another: `make bench`, or `python -m bench NAME` for one."""

from __future__ import annotations

import importlib
import sys

NAMES = ("classification", "replies", "detection", "speed", "local", "bank", "store", "viewer")


def main() -> None:
    """Run the benchmarks that are named, or all."""
    for name in sys.argv[1:] or NAMES:
        print(f"== {name}")
        importlib.import_module(f"bench.{name}").main()
        print()


if __name__ == "__main__":
    main()

"""Every benchmark, one after another: `make bench`, or `python -m bench NAME` for one."""

from __future__ import annotations

import importlib
import sys

NAMES = (
    "classification",
    "replies",
    "detection",
    "speed",
    "batch",
    "check",
    "scan",
    "local",
    "bank",
    "bank_search",
    "store",
    "viewer",
    "peers",
)


def main() -> None:
    """Run the benchmarks that are named, or all."""
    names, sys.argv[1:] = sys.argv[1:] or NAMES, []  # a benchmark reads options of its own from there
    for name in names:
        print(f"== {name}")
        importlib.import_module(f"bench.{name}").main()
        print()


if __name__ == "__main__":
    main()

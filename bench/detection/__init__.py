"""How well the embedded circle detects: `python -m bench.detection`.

Runs the real dialogue over the labelled prompts in ../shared/data (kept outside the repository) and over
the bundled examples. The learned readers are replaced by ones that never saw the source of the prompt they
judge (training/folds). The rules were written while looking at errors on all three development sets.

`--sets dev dev2 dev3 sealed` scores dev2_sealed.jsonl too, an exam whose texts are not read: how often it was
scored is in scored.toml and is printed. Rival detectors judge the same records in the same run where they are
installed (how is printed). Nothing is cached between runs.
"""

from __future__ import annotations

import argparse


def main() -> None:
    """Print everything; without the labelled prompts only the examples."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.detection",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=("dev", "dev2", "dev3", "sealed"),
        default=("dev", "dev2", "dev3"),
        help="what to judge; count it in scored.toml when that is the exam",
    )
    parser.add_argument("--without-peer", action="store_true", help="leave the rival out")
    parser.add_argument(
        "--write-roles", action="store_true", help="write the readers' roles, as measured, into catalog.toml"
    )
    options = parser.parse_args()
    from bench.detection.examples import print_examples
    from bench.detection.run import compare
    from training.labelled import DEV

    if DEV.exists():
        compare(options.sets, peer=not options.without_peer, write=options.write_roles)
    else:
        print(f"{DEV} is not there, so only the bundled examples are judged")
    print_examples()

"""How well the embedded circle detects: `python -m bench.detection`.

Runs the real dialogue over the labelled prompts in ../shared/data (kept outside the repository) and over
the bundled examples. Learned voices are replaced by models that never saw the source of the prompt they
judge: n-grams are trained first on dev.jsonl, which takes some minutes (the shipped ones never saw
dev2.jsonl), the neural heads of three folds are kept in training/folds. The generalist's scale is fitted
without the source. The rules were written while looking at all but five sources of dev.jsonl and at errors on
dev2.jsonl.

`--sets dev dev2 sealed` scores dev2_sealed.jsonl too, an exam whose texts nobody reads: how often that was
done stands in scored.toml and is printed. The neural voice is judged where its weights are installed, on
sources that it never saw; so are two rival detectors, `stackone-defender` and `jailguard`, where they are
installed (how is printed). The calibrated verdict is fitted without the source it judges, on the exam it is
the shipped one. Every contender judges the same records in the same run; nothing is cached between runs.
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
        choices=("dev", "dev2", "sealed"),
        default=("dev", "dev2"),
        help="what to judge; count it in scored.toml when that is the exam",
    )
    parser.add_argument("--without-neural", action="store_true", help="leave the neural voice out")
    parser.add_argument("--without-peer", action="store_true", help="leave the rival out")
    options = parser.parse_args()
    from bench.detection.examples import print_examples
    from bench.detection.run import compare
    from training.labelled import DEV

    if DEV.exists():
        compare(options.sets, neural=not options.without_neural, peer=not options.without_peer)
    else:
        print(f"{DEV} is not there, so only the bundled examples are judged")
    print_examples()

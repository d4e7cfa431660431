"""How well the embedded circle detects: `python -m bench.detection`.

Runs the real dialogue over the labelled prompts in ../shared/data (kept outside the repository) and over the
bundled examples. On the labelled prompts the learned voices are replaced by models that never saw the source
of the prompt they judge (they are trained first, which takes some minutes), so that their figures are honest.
The rules were written while looking at all but five sources; those five are reported apart as unseen, and so
are the prompts written for this project (`derived_A_*`), which are pairs of an attack and its benign twin.

The neural voice is judged too where its weights are installed, and so is a rival detector,
`stackone-defender`, if it is installed here or in the interpreter that FIRECIRCLE_BENCH_PEER names. Every
contender judges the same records in the same run; nothing is cached between runs.

--without-neural   leave the neural voice out (it takes most of the time)
--without-peer     leave the rival out
"""

from __future__ import annotations

import sys


def main() -> None:
    """Print everything; without the labelled prompts only the examples."""
    from bench.detection.examples import print_examples
    from bench.detection.labelled import DEV, load_labelled
    from bench.detection.run import compare

    if DEV.exists():
        compare(
            load_labelled(),
            neural="--without-neural" not in sys.argv,
            peer="--without-peer" not in sys.argv,
        )
    else:
        print(f"{DEV} is not there, so only the bundled examples are judged")
    print_examples()

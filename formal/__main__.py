"""Check the specification and show that wrong rules are caught: `python -m formal`, or with `--larger`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from formal import protocol, tlc


def main() -> int:
    """Print what TLC finds; the exit status is 1 where it finds something else than it should."""
    if missing := tlc.what_is_missing():
        print(f"skipped: {missing}")
        return 0
    all_well = True
    checks: dict[str, Callable[[], tlc.Outcome]] = {
        "every property": partial(protocol.check_properties, larger="--larger" in sys.argv[1:]),
        "every circle ends": protocol.check_end,
    }
    for name, check in checks.items():
        print(f"{name}: ", end="", flush=True)
        outcome = check()
        print("holds" if outcome.completed else outcome.complaint, end="")
        print(f" ({outcome.circles:,} circles, {outcome.states:,} states, {outcome.seconds} s)")
        all_well &= outcome.completed
    outcome, caught = protocol.check_wrong_rules()
    if not outcome.completed:
        print(outcome.complaint)
    for mutant in protocol.mutants():
        answer = f"caught by {mutant.property}" if caught[mutant.wrong] else "NOT CAUGHT"
        print(f"{mutant.wrong} for {mutant.rule}: {answer}")
    contradicted = "does not hold" if caught[protocol.NO_RULE] else "HOLDS"
    print(f"the source's safety formula: {contradicted}")
    all_well &= outcome.completed and all(caught.values())
    return 0 if all_well else 1


if __name__ == "__main__":
    raise SystemExit(main())

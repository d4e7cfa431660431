"""How many guards of a system prompt `firecircle harden` recognises, and what else it takes for one.

`python -m bench.guards` reads `bench/data/guards.toml`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from bench.figures import shown
from firecircle.lab.hardening.wording import recognise_guards
from firecircle.lab.statistics.estimate import wilson

WRITTEN = Path(__file__).parent / "data" / "guards.toml"


def main() -> None:
    """Print the rates and what went wrong."""
    document = tomllib.loads(WRITTEN.read_text("utf-8"))
    known = [(kind, sentence) for kind, of_kind in document["guards"].items() for sentence in of_kind]
    guards = recognise_guards([sentence for _, sentence in known])
    taken = sum(guard.pattern_type is not None for guard in guards)
    right = sum(guard.pattern_type == kind for guard, (kind, _) in zip(guards, known, strict=True))
    for guard, (kind, _) in zip(guards, known, strict=True):
        if guard.pattern_type != kind:
            print(f"  {kind} taken for {guard.pattern_type}: {guard.sentence}")
    print(f"guards recognised {taken} of {len(known)} {shown(wilson(taken, len(known)))}, right type {right}")
    for name in ("unrelated", "form", "held"):
        found = recognise_guards(document[name]["sentences"])
        typed = sum(guard.pattern_type is not None for guard in found)
        listed = [guard for guard in found if guard.pattern_type or guard.holds_back]
        for guard in found:
            if (guard in listed) != (name == "held"):
                print(f"  {guard.pattern_type or guard.holds_back}: {guard.sentence}")
        share = shown(wilson(len(listed), len(found)))
        print(f"{name}: {typed} of {len(found)} taken for guards, {len(listed)} listed under Guards {share}")


if __name__ == "__main__":
    main()

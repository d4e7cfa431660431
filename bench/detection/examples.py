"""The bundled examples: attacks that reach the alarm, twins that stay below, and the pattern named."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from bench.figures import shown
from firecircle.circle.config import FireCircleConfig
from firecircle.convene import seat_circle
from firecircle.examples import load_examples
from firecircle.lab.statistics.estimate import scored
from firecircle.lab.statistics.performance import auc
from firecircle.names import Label, embedded_models
from training.labelled import ALARM


@dataclass(frozen=True, slots=True)
class Seen:
    """One example, as the circle saw it."""

    label: Label
    alone: float
    talked: float
    agreed: bool
    shown: bool
    """Whether readers agree on the right type, and whether any of them shows it."""


def print_examples() -> None:
    """One table for the examples the rules may know, one for those held back."""
    models = embedded_models()
    circle = seat_circle(FireCircleConfig.embedded(models=models, seed=1))
    print(f"\nthe default circle of this machine, {len(models)} voices, on the bundled examples")
    for split in ("open", "held"):
        rows: dict[str, list[Seen]] = {}
        for example in load_examples():
            if example.split != split:
                continue
            result = asyncio.run(circle.run(example.prompt))
            assert result.consensus is not None
            seen = Seen(
                example.label,
                result.rival_verdicts["round1_max"].value,
                result.consensus.falsehood,
                any(pattern.pattern_type == example.pattern_type for pattern in result.patterns),
                any(
                    pattern.pattern_type == example.pattern_type
                    for pattern in result.patterns + result.single_voice_patterns
                ),
            )
            rows.setdefault(example.pattern_type, []).append(seen)
        _print_split(split, rows)


def _print_split(split: str, rows: dict[str, list[Seen]]) -> None:
    print(
        f"\n{split} examples: attacks at {ALARM} (round 1 → dialogue), twins below it,"
        " right type agreed on, shown"
    )
    total = [row for group in rows.values() for row in group]
    for kind, group in [*rows.items(), ("all", total)]:
        attacks = [row for row in group if row.label == "attack"]
        twins = [row for row in group if row.label == "benign"]
        print(
            f"  {kind:26} {sum(row.alone >= ALARM for row in attacks):3}"
            f" → {sum(row.talked >= ALARM for row in attacks)} of {len(attacks)}"
            f"   {sum(row.talked < ALARM for row in twins)} of {len(twins)}"
            f"   {sum(row.agreed for row in attacks)}, {sum(row.shown for row in attacks)}"
        )
    print(f"  AUC {shown(auc(scored([row.label for row in total], [row.talked for row in total])))}")

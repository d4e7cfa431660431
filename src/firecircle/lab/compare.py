"""Two runs beside each other: the arms of the same name, on the prompts that both runs judged."""

from __future__ import annotations

from firecircle.errors import ConfigError
from firecircle.lab.runs.folder import RunFolder
from firecircle.lab.statistics import Comparison, Performance
from firecircle.shapes import Shape, Text


class ArmInBothRuns(Shape):
    """An arm in both runs; differences are the first run minus the second."""

    arm: Text
    shared: int
    """Prompts that both judged."""
    first: Performance
    second: Performance
    comparison: Comparison


class RunComparison(Shape):
    """What changed from one run to the other."""

    first: Text
    second: Text
    same_plan: bool
    threshold: float
    arms: tuple[ArmInBothRuns, ...]
    only_first: tuple[Text, ...]
    only_second: tuple[Text, ...]


def compare_runs(first: RunFolder, second: RunFolder) -> RunComparison:
    """Paired tests between two finished runs."""
    from firecircle.lab.figures.columns import RecordFile
    from firecircle.lab.figures.run import shared
    from firecircle.lab.statistics import compare, performance

    for run in (first, second):
        run.require_finished()
    threshold = first.plan.alarm_threshold
    if second.plan.alarm_threshold != threshold:
        raise ConfigError(
            "compare",
            (
                f"the runs have different alarm thresholds, {threshold:g} and"
                f" {second.plan.alarm_threshold:g}; alarms of one say nothing about the other"
            ),
        )
    files = RecordFile(first.records), RecordFile(second.records)
    names = files[0].arms(), files[1].arms()
    both = [name for name in names[0] if name in names[1]]
    if not both:
        raise ConfigError(
            "compare",
            (
                f"no arm is in both runs; the first has {', '.join(names[0])}, the second"
                f" {', '.join(names[1])}"
            ),
        )
    arms: list[ArmInBothRuns] = []
    for name in both:
        columns = files[0].columns(name), files[1].columns(name)
        labels, ours, theirs = shared(*columns)
        arms.append(
            ArmInBothRuns(
                arm=name,
                shared=len(labels),
                first=performance(columns[0].labels, columns[0].scores["f"], threshold),
                second=performance(columns[1].labels, columns[1].scores["f"], threshold),
                comparison=compare(labels, ours, theirs, threshold),
            )
        )
    return RunComparison(
        first=first.about.run_id,
        second=second.about.run_id,
        same_plan=first.about.digest == second.about.digest,
        threshold=threshold,
        arms=tuple(arms),
        only_first=tuple(name for name in names[0] if name not in both),
        only_second=tuple(name for name in names[1] if name not in both),
    )

"""`firecircle calibrate --verdict`: weights for what voices say, fitted on labelled circles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.circle.calibrated import VerdictCalibration
    from firecircle.circle.result import FireCircleResult
    from firecircle.lab.calibrated import FittedVerdict, LabelledWords
    from firecircle.store.figures import VerdictStore

MOST_SHOWN = 3
THRESHOLD = 0.7


@dataclass(frozen=True, slots=True)
class Gathered:
    """Labelled words of one set of voices, and where they come from."""

    words: LabelledWords
    ids: tuple[str, ...]
    origin: str
    threshold: float
    run_id: str | None = None
    others: tuple[str, ...] = ()
    """Other sets of voices, or arms, that were left out."""


@dataclass(slots=True)
class _Circles:
    """The circles of one set of voices, by prompt: one that was judged again counts once, the last time."""

    voices: tuple[str, ...]
    rounds: int
    by_prompt: dict[str, tuple[str, bool, FireCircleResult]] = field(default_factory=dict)


def gathered_from_circles(
    circles: Iterable[tuple[str, str, FireCircleResult]], voices: Sequence[str], origin: str
) -> Gathered:
    """The words of labelled circles, given as id, label and result; of these voices, else of most circles."""
    import numpy as np

    from firecircle.lab.calibrated import LabelledWords
    from firecircle.lab.statistics.estimate import numbers
    from firecircle.names import is_attack, is_benign
    from firecircle.store.bank.bank import attack_id_of

    groups: dict[tuple[frozenset[str], int], _Circles] = {}
    for name, label, result in circles:
        if result.consensus is None or not (is_attack(label) or is_benign(label)):
            continue
        config = result.config
        key = frozenset(config.models), config.max_rounds
        group = groups.setdefault(key, _Circles(config.models, config.max_rounds))
        group.by_prompt[attack_id_of(result.prompt)] = (name, is_attack(label), result)
    chosen, others = _choose(groups, voices)
    members = list(chosen.by_prompt.values())
    falsehood = np.full((len(members), len(chosen.voices), chosen.rounds), np.nan)
    places = {voice: place for place, voice in enumerate(chosen.voices)}
    for row, (_, _, result) in enumerate(members):
        for at, held in enumerate(result.dialogue_history[: chosen.rounds]):
            for said in held.evaluations:
                if said.model in places and said.model in result.active_models:
                    falsehood[row, places[said.model], at] = said.falsehood
    attack = np.array([is_one for _, is_one, _ in members], dtype=bool)
    thresholds = [result.config.alarm_threshold for _, _, result in members]
    return Gathered(
        LabelledWords(chosen.voices, numbers(falsehood), attack),
        tuple(name for name, _, _ in members),
        origin,
        max(set(thresholds), key=thresholds.count),
        others=others,
    )


def _choose(
    groups: dict[tuple[frozenset[str], int], _Circles], voices: Sequence[str]
) -> tuple[_Circles, tuple[str, ...]]:
    fitting = [group for (seated, _), group in groups.items() if not voices or seated == frozenset(voices)]
    if not fitting:
        why = (
            "no labelled circle has just these voices" if groups else "no circle is labelled attack or benign"
        )
        raise ConfigError("--models" if groups else "calibrate", why, "label or judge some first")
    chosen = max(fitting, key=lambda group: len(group.by_prompt))
    others = tuple(
        f"{len(group.by_prompt)} of {', '.join(group.voices)} ({group.rounds} rounds)"
        for group in groups.values()
        if group is not chosen
    )
    return chosen, others


def gathered_from_run(run: str, arm: str | None, voices: Sequence[str]) -> Gathered:
    """The words of one arm of a run, with the sources its dataset names."""
    import numpy as np

    from firecircle.lab.calibrated import LabelledWords
    from firecircle.lab.figures.columns import RecordFile
    from firecircle.lab.runs.folder import find_run
    from firecircle.lab.statistics.estimate import numbers

    folder = find_run(run)
    file = RecordFile(folder.records)
    arms = file.arms()
    if arm is not None and arm not in arms:
        raise ConfigError("--arm", f"the run has no arm {arm!r}", f"name one of {', '.join(arms)}")
    for name in (arm,) if arm else arms:
        columns = file.columns(name)
        heard = file.voices(name)
        is_circle = columns.kind in CIRCLE_KINDS and len(heard) > 1
        if (is_circle or arm) and (not voices or heard == frozenset(voices)):
            break
    else:
        raise ConfigError(
            "--run",
            "no arm of it is a circle of these voices" if voices else "it has no circle",
            "name an --arm",
        )
    if len(heard) < 2:
        raise ConfigError("--arm", f"{name} has one voice, and a circle has at least two")
    spoken = file.spoken(name, columns.records)
    labelled = [
        place
        for place, label in enumerate(columns.labels)
        if label is not None and np.isfinite(columns.scores["f"][place])
    ]
    falsehood = np.stack(spoken.by_round, axis=2).transpose(1, 0, 2)[labelled]
    words = LabelledWords(
        spoken.voices,
        numbers(falsehood),
        np.array([columns.labels[place] == "attack" for place in labelled], dtype=bool),
        tuple(columns.sources[place] for place in labelled),
    )
    about = folder.about
    return Gathered(
        words,
        tuple(columns.records[place] for place in labelled),
        f"run {about.run_id}, arm {name}",
        folder.plan.alarm_threshold,
        run_id=about.run_id,
        others=tuple(other for other in arms if other != name),
    )


CIRCLE_KINDS = ("fire_circle", "no_chair", "named_peers", "no_turns")
"""Arms whose rounds are those of a circle that a user could hold."""


def fit_and_show(gathered: Gathered, store: VerdictStore, *, write: bool, as_json: bool) -> int:
    """Fit, show what came of it, and keep it if that was asked for; refused where it gains nothing."""
    from firecircle.lab.calibrated import fit_verdict

    fitted = fit_verdict(
        gathered.words, origin=gathered.origin, threshold=gathered.threshold, run_id=gathered.run_id
    )
    fit, gain = fitted.calibration.fit, fitted.gain
    if not fitted.beats_maximum:
        raise ConfigError(
            "--verdict",
            f"on circles it was not fitted on the calibration has AUC {fit.calibrated.auc:.3f}, the highest F"
            f" {fit.maximum.auc:.3f}: difference {gain.value or 0:+.3f} [{gain.low or 0:+.3f},"
            f" {gain.high or 0:+.3f}], which does not beat it",
            "keep the highest F, or label more circles",
        )
    if write:
        store.keep(fitted.calibration, gathered.ids)
    if as_json:
        from firecircle.cli.output import print_json

        document = fitted.calibration.model_dump(mode="json")
        print_json({**document, "kept": write, "left_out": list(gathered.others)})
    else:
        _show(fitted, gathered, kept=write)
    return 0


def _show(fitted: FittedVerdict, gathered: Gathered, *, kept: bool) -> None:
    import sys

    from firecircle.cli.output import console_on
    from firecircle.telling.safe_text import printable_line

    console = console_on(sys.stdout)
    calibration, fit = fitted.calibration, fitted.calibration.fit
    print(f"{fit.attacks:,} attacks and {fit.benign:,} benign prompts, {printable_line(fit.origin)}")
    print(f"tried on circles it was not fitted on: {fit.folds}")
    print()
    at_threshold = f"at {fit.threshold:g}"
    print(f"{'':14}{'AUC':>7}{'recall at 1%':>15}{'at 5%':>8}{at_threshold:>9}{'false alarms':>15}{'ECE':>8}")
    for name, tried in (("highest F", fit.maximum), ("calibrated", fit.calibrated)):
        print(
            f"{name:14}{tried.auc:7.3f}{tried.recall_at_1_percent:15.2f}{tried.recall_at_5_percent:8.2f}"
            f"{tried.recall:9.2f}{tried.false_alarm_rate:15.3f}{tried.calibration_error:8.3f}"
        )
    value, low, high = fit.auc_gain
    print(f"AUC {value:+.3f} [{low:+.3f}, {high:+.3f}]")
    print()
    rounds = "".join(f"{f'round {at}':>10}" for at in range(1, calibration.rounds + 1))
    print(f"{'weight of':30}{rounds}")
    for voice, weights in calibration.voices.items():
        print(f"{printable_line(voice, 30):30}" + "".join(f"{weight:10.3f}" for weight in weights.weights))
    for share, cut in fit.thresholds.items():
        print(f"alarm_threshold {cut:g} keeps false alarms within {share} on these circles")
    for other in gathered.others[:MOST_SHOWN]:
        console.print(f"left out: {printable_line(other)}", highlight=False)
    print()
    if kept:
        print(f'saved as {fit.id}; alarm_rule = "calibrated" lets it decide')
    else:
        print("nothing was saved; --write saves it in the store")


def show_stated_error(gathered: Gathered, error: float, *, as_json: bool) -> int:
    """Propose thresholds for a stated error, from the highest F of labelled circles."""
    import numpy as np

    from firecircle.cli.output import print_json
    from firecircle.lab.statistics.selective import stated_error
    from firecircle.telling.safe_text import printable_line

    words = gathered.words
    highest = np.nanmax(words.falsehood.reshape(len(words.attack), -1), axis=1)
    found = stated_error(["attack" if one else "benign" for one in words.attack], highest, error)
    if as_json:
        print_json({**found.model_dump(mode="json"), "voices": list(words.voices), "origin": gathered.origin})
        return 0
    print(f"{found.attacks:,} attacks and {found.benign:,} benign prompts, {printable_line(gathered.origin)}")
    print(f"voices: {printable_line(', '.join(words.voices))}")
    too_few = f"too few labelled prompts, or too many errors; at least {found.fewest:,} right ones are needed"
    print(f"alarm from F {found.alarm_from:.3f}" if found.alarm_from is not None else f"alarm: {too_few}")
    print(
        f"no alarm below F {found.calm_below:.3f}" if found.calm_below is not None else f"no alarm: {too_few}"
    )
    if found.wrong is None:
        print(f"every prompt would be unsure: nothing keeps the error below {error:g}")
        return 0
    print(f"{found.decided:.0%} of these prompts are then not unsure, {found.wrong:.1%} of them wrong")
    print("in firecircle.toml:\n[circle]")
    print(f"alarm_threshold = {1.0 if found.alarm_from is None else found.alarm_from:.4f}")
    print(f"unsure_threshold = {0.0 if found.calm_below is None else found.calm_below:.4f}")
    return 0


def show_list(store: VerdictStore, *, as_json: bool) -> int:
    """Every calibration that is kept, the newest first."""
    from firecircle.cli.output import print_json

    known = tuple(store.each())
    if as_json:
        print_json([one.model_dump(mode="json") for one in known])
        return 0
    if not known:
        print("no calibration of the verdict is saved; `firecircle calibrate --verdict --write` fits one")
    for one in known:
        print(_line(one))
    return 0


def _line(one: VerdictCalibration) -> str:
    from datetime import UTC, datetime

    from firecircle.telling.safe_text import printable_line

    fit = one.fit
    day = f"{datetime.fromtimestamp(fit.fitted_at, UTC):%Y-%m-%d}, " if fit.fitted_at else ""
    value, low, high = fit.auc_gain
    return printable_line(
        f"{fit.id}  {day}{', '.join(one.voices)}; {one.rounds} rounds; {fit.attacks} attacks,"
        f" {fit.benign} benign ({fit.origin}); AUC {fit.calibrated.auc:.3f},"
        f" {value:+.3f} [{low:+.3f}, {high:+.3f}] over the highest F"
    )

"""`firecircle calibrate`: what labelled circles say about the characteristics that voices declare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.cli.options import AsJson, StoreOption, names_in, run_id
from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from firecircle.circle.result import FireCircleResult
    from firecircle.rotation.calibration import Calibration, LabelledCircle, Proposal
    from firecircle.store.circles import CircleStore
    from firecircle.store.figures import CalibrationStore
    from firecircle.store.finding import Filters


@dataclass(frozen=True, slots=True)
class _CircleWithLabel:
    """A circle and its label, as the store or a file holds them."""

    id: str
    label: str
    result: FireCircleResult


@dataclass(slots=True)
class _Reading:
    """What came up while circles were read: for whom each is evidence, and what was left out."""

    heard: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    counted_before: int = 0
    """Circles that were no evidence any more for some voice."""
    repeated: int = 0
    """Circles that a file has more than once."""
    same_prompt: int = 0
    """Circles of runs whose prompt all their voices had judged in another arm or repeat."""
    unlabelled: int = 0
    other_labels: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0
    of_runs: int = 0


def calibrate(
    circles: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help='Labelled circles, one JSON object per line: {"label": ..., "result": {...}}.'
            " Default: the stored ones that have a label.",
        ),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--models", metavar="A,B", help="Only these voices.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Count circles that an earlier --write has counted, too.")
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Declare the proposals in firecircle.toml; default: only show.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="The circles of this run: its id, the beginning, its folder, or last.",
        ),
    ] = None,
    verdict: Annotated[
        bool,
        typer.Option(
            "--verdict",
            help="Fit the calibrated verdict instead: how probable manipulation is, from all voices' F by"
            " round. --write keeps it.",
        ),
    ] = False,
    arm: Annotated[
        str | None,
        typer.Option(
            "--arm", metavar="ARM", help="With --verdict --run: this arm; default: the first circle."
        ),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            "--error",
            metavar="SHARE",
            min=0.001,
            max=0.5,
            help="Propose thresholds instead: at most this share of verdicts other than unsure is wrong.",
        ),
    ] = None,
    list_kept: Annotated[
        bool, typer.Option("--list", help="Show the saved calibrations of the verdict.")
    ] = False,
    remove: Annotated[
        str | None,
        typer.Option("--remove", metavar="ID", help="Take out a calibration of the verdict."),
    ] = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> int:
    """Propose role contributions and confidence from circles labelled attack, benign or attack:TYPE.

    With --verdict: weigh the voices' words, for alarm_rule = "calibrated".

    A circle counts once for each voice: once --write has declared what rests on it, it is left out. Circles
    of runs are left out unless --run names one; there a voice counts once for each prompt, whatever the arm.
    """
    from firecircle.cli.output import with_progress
    from firecircle.rotation.calibration import calibrate as propose
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store

    if circles is not None and run is not None:
        raise ConfigError("--run", "a file of circles is read instead of the store", "leave one of them out")
    voices = names_in(models or (), "--models")
    if list_kept or remove is not None:
        return _kept_verdicts(remove, store, as_json=as_json)
    if error is not None and (verdict or write or again):
        raise ConfigError("--error", "only proposes thresholds", "leave --verdict, --write and --again out")
    if arm is not None and not ((verdict or error is not None) and run is not None):
        raise ConfigError("--arm", "only a run has arms", "use it with --verdict --run RUN")
    if verdict or error is not None:
        return _fit_verdict(circles, run, arm, voices, store, write=write, error=error, as_json=as_json)
    filters = Filters(in_run=False) if run is None else Filters(run_id=run_id(run, store))
    reading = _Reading()
    with open_store(store) as opened:
        in_store = _in_store(opened.circles, filters, reading)
        every_circle = in_store if circles is None else _in_file(circles)
        labelled = _label(
            every_circle, None if again else opened.calibrations, reading, once_a_prompt=run is not None
        )
        outcome = propose(with_progress(labelled, "reading circle"))
        if circles is None and run is None:
            reading.of_runs = _labelled_in_runs(opened.circles)
        proposals = [proposal for proposal in outcome.proposals if not voices or proposal.model in voices]
        if not outcome.circles:
            raise _nothing_to_go_by(reading, run)
        _require_heard(reading, voices)
        changed = [proposal for proposal in proposals if proposal.changed]
        written = _write(changed) if write else None
        if written is not None:
            declared = {proposal.model for proposal in changed}
            opened.calibrations.record(
                (circle, voice) for circle, heard in reading.heard for voice in heard & declared
            )
    _show(outcome, proposals, reading, written, as_json=as_json)
    return 0


def _fit_verdict(
    circles: str | None,
    run: str | None,
    arm: str | None,
    voices: tuple[str, ...],
    store: str | None,
    *,
    write: bool,
    error: float | None,
    as_json: bool,
) -> int:
    from firecircle.cli.calibrate_verdict import (
        fit_and_show,
        gathered_from_circles,
        gathered_from_run,
        show_stated_error,
    )
    from firecircle.cli.output import with_progress
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        if run is not None:
            gathered = gathered_from_run(run, arm, voices)
        else:
            reading = _Reading()
            every = (
                _in_store(opened.circles, Filters(in_run=False), reading)
                if circles is None
                else _in_file(circles)
            )
            told = with_progress(every, "reading circle")
            known = ((circle.id, circle.label, circle.result) for circle in told)
            gathered = gathered_from_circles(known, voices, "labelled circles")
        if error is not None:
            return show_stated_error(gathered, error, as_json=as_json)
        return fit_and_show(gathered, opened.verdicts, write=write, as_json=as_json)


def _kept_verdicts(remove: str | None, store: str | None, *, as_json: bool) -> int:
    from firecircle.cli.calibrate_verdict import show_list
    from firecircle.store.opening import open_store

    with open_store(store) as opened:
        if remove is None:
            return show_list(opened.verdicts, as_json=as_json)
        print(f"removed {opened.verdicts.remove(remove)}")
        return 0


def _label(
    circles: Iterable[_CircleWithLabel],
    counted: CalibrationStore | None,
    reading: _Reading,
    *,
    once_a_prompt: bool,
) -> Iterator[LabelledCircle]:
    """Those whose label says attack or benign; a label may mean something else to its owner."""
    from firecircle.names import is_attack, is_benign
    from firecircle.rotation.calibration import LabelledCircle, heard_alone
    from firecircle.store.bank.bank import attack_id_of

    seen: set[str] = set()
    judged: dict[str, set[str]] = {}
    for circle in circles:
        if not is_attack(circle.label) and not is_benign(circle.label):
            reading.other_labels[circle.label] += 1
            continue
        if circle.id in seen:
            reading.repeated += 1
            continue
        seen.add(circle.id)
        heard = heard_alone(circle.result)
        before = counted.counted_for(circle.id) if counted else frozenset[str]()
        reading.counted_before += bool(before)
        if once_a_prompt:
            of_prompt = judged.setdefault(attack_id_of(circle.result.prompt), set())
            new = heard - of_prompt
            of_prompt.update(heard)
            if heard and not new:
                reading.same_prompt += 1
                continue
            before, heard = before | (heard - new), new
        reading.heard.append((circle.id, heard))
        kind = circle.label.strip().lower().partition(":")[2] if is_attack(circle.label) else ""
        yield LabelledCircle(
            circle.result, "attack" if is_attack(circle.label) else "benign", kind or None, before
        )


def _in_store(circles: CircleStore, filters: Filters, reading: _Reading) -> Iterator[_CircleWithLabel]:
    for summary, result in circles.each_circle(filters):
        if not summary.label:
            reading.unlabelled += 1
        elif result is None:
            reading.unreadable += 1
        else:
            yield _CircleWithLabel(summary.id, summary.label, result)


def _in_file(path: str) -> Iterator[_CircleWithLabel]:
    import json

    from pydantic import ValidationError

    from firecircle.circle.result import FireCircleResult
    from firecircle.shapes import config_error

    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                    result = FireCircleResult.model_validate(row["result"])
                    label = str(row["label"])
                except ValidationError as invalid:
                    raise (
                        config_error(invalid, "result").within(f"line {number}").within("--circles")
                    ) from None
                except (ValueError, KeyError, TypeError):
                    raise ConfigError(
                        "--circles", f'line {number} of {path} is no {{"label": ..., "result": ...}}'
                    ) from None
                yield _CircleWithLabel(result.circle_id, label, result)
    except OSError as unreadable:
        raise ConfigError(
            "--circles", f"cannot read {path}: {unreadable.strerror or unreadable}", "name another file"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError("--circles", f"{path} is not UTF-8 text", "name another file") from None


def _labelled_in_runs(circles: CircleStore) -> int:
    from firecircle.store.finding import Filters

    labels = ("attack", "benign")
    return sum(circles.count(Filters(in_run=True, mode="fire_circle", label=label)) for label in labels)


def _nothing_to_go_by(reading: _Reading, run: str | None) -> ConfigError:
    left_out = "; ".join(_left_out(reading))
    where = "outside of runs " if reading.of_runs else "of the run " if run is not None else ""
    why = f" ({left_out})" if left_out else ""
    way = "name a run with --run, or label others" if reading.of_runs else "label some first"
    return ConfigError("calibrate", f"no circle {where}is labelled attack or benign{why}", way)


def _require_heard(reading: _Reading, voices: tuple[str, ...]) -> None:
    heard = frozenset[str]().union(*(in_circle for _, in_circle in reading.heard))
    unheard = [voice for voice in voices if voice not in heard]
    if unheard:
        raise ConfigError("--models", f"no labelled circle heard {', '.join(unheard)}", "leave it out")


def _write(proposals: list[Proposal]) -> str | None:
    from firecircle.rotation.calibration import declare_in
    from firecircle.settings import FILE_NAME, current_settings, trusted_files, user_folder

    if not proposals:
        return None
    path = current_settings().source or user_folder("config") / FILE_NAME
    trusted = trusted_files()
    is_trusted = path.exists() and trusted.has(path, path.read_bytes())
    declare_in(path, [proposal.proposed for proposal in proposals])
    if is_trusted:  # the user's own words change nothing about that
        trusted.add(path, path.read_bytes())
    return str(path)


def _show(
    outcome: Calibration, proposals: list[Proposal], reading: _Reading, written: str | None, *, as_json: bool
) -> None:
    import sys

    from firecircle.cli.output import console_on, print_json, section
    from firecircle.telling.safe_text import printable_line
    from firecircle.telling.words import counted

    if as_json:
        print_json({**_document(outcome, proposals, reading), "written_to": written})
        return
    console = console_on(sys.stdout)
    print(f"{counted(outcome.circles, 'labelled circle')}, {counted(len(proposals), 'voice')}")
    if reading.counted_before:
        console.print(
            f"{reading.counted_before:,} of them were counted by an earlier --write and are left out there"
            " (--again counts them)"
        )
    for note in _left_out(reading):
        console.print(note)
    print()
    for proposal in proposals:
        print(printable_line(proposal.model))
        for part in section("", _lines(proposal)):
            console.print(part)
    if proposals:
        print()
    if outcome.broken:
        broken = [printable_line(line) for line in outcome.broken]
        console.print(*section("Careful", ["No quorum after this change:", *broken]))
    if written:
        print(f"written to {printable_line(written)}")
    elif any(proposal.changed for proposal in proposals):
        print("nothing was written; --write declares this in firecircle.toml")
    else:
        print("nothing to change")


def _left_out(reading: _Reading) -> Iterator[str]:
    """What was not counted, and why, a line for each reason."""
    from firecircle.telling.safe_text import printable_line
    from firecircle.telling.words import counted

    if reading.repeated:
        yield f"{counted(reading.repeated, 'circle')} named more than once, counted once"
    if reading.same_prompt:
        yield f"{counted(reading.same_prompt, 'circle')} left out: the same voices judged the prompt before"
    if reading.unlabelled:
        yield f"{counted(reading.unlabelled, 'circle')} left out: no label"
    if reading.other_labels:
        labels = ", ".join(printable_line(label, 40) for label, _ in reading.other_labels.most_common(3))
        number = counted(reading.other_labels.total(), "circle")
        yield f"{number} left out: labelled neither attack nor benign ({labels})"
    if reading.unreadable:
        yield f"{counted(reading.unreadable, 'circle')} left out: cannot be read"
    if reading.of_runs:
        labelled = counted(reading.of_runs, "labelled circle")
        yield f"{labelled} of runs left out: several arms judge the same prompts (--run RUN counts one run)"


def _lines(proposal: Proposal) -> list[str]:
    false_alarms = f"{proposal.false_alarms} of {proposal.benign} benign prompts alarmed on in round 1"
    if not proposal.roles:
        return [f"{false_alarms}; it takes attacks and benign prompts to propose anything"]
    roles = [
        f"{role.role.replace('_', ' '):<26}{role.declared:.2f} → {role.proposed:.2f}"
        f"  measured {role.measured:.2f} ({role.hits}/{role.attacks})"
        for role in proposal.roles
        if role.role in proposal.proposed.cognitive_roles
    ]
    confidence = f"{'confidence':<26}{proposal.declared.confidence:.2f} → {proposal.proposed.confidence:.2f}"
    return [*roles, confidence, false_alarms]


def _document(outcome: Calibration, proposals: list[Proposal], reading: _Reading) -> dict[str, object]:
    return {
        "circles": outcome.circles,
        "counted_before": reading.counted_before,
        "left_out": {
            "repeated": reading.repeated,
            "same_prompt": reading.same_prompt,
            "unlabelled": reading.unlabelled,
            "other_labels": dict(reading.other_labels),
            "unreadable": reading.unreadable,
            "of_runs": reading.of_runs,
        },
        "broken": list(outcome.broken),
        "proposals": [
            {**proposal.model_dump(mode="json"), "changed": proposal.changed} for proposal in proposals
        ],
    }

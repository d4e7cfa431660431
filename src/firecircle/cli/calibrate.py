"""`firecircle calibrate`: what labelled circles say about the characteristics that voices declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firecircle.cli.store_option import StoreOption

if TYPE_CHECKING:
    from firecircle.circle.result import FireCircleResult
    from firecircle.rotation.calibration import Calibration, LabelledCircle, Proposal


@contextmanager
def stored_circles(where: str | None = None) -> Iterator[Iterable[tuple[FireCircleResult, str]]]:
    """Every circle in the store that has a label, with the label as it was written."""
    from firecircle.circle.result import FireCircleResult
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store

    with open_store(where) as store:
        yield (
            (kept, summary.label)
            for summary, kept in store.circles.each(Filters(mode="fire_circle"))
            if summary.label and isinstance(kept, FireCircleResult)
        )


def calibrate(
    circles: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help='Labelled circles, one JSON object a line: {"label": ..., "result": {...}}.'
            " Default: the stored ones that have a label.",
        ),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--models", metavar="A,B", help="Only these voices.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Declare the proposals in firecircle.toml; default: only show.")
    ] = False,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Propose role contributions and confidence from circles labelled attack, benign or attack:TYPE."""
    from contextlib import nullcontext

    from firecircle.cli.plan import names_in
    from firecircle.rotation.calibration import calibrate as propose

    wanted = names_in(models or (), "--models")
    with stored_circles(store) if circles is None else nullcontext(_in_file(circles)) as source:
        outcome = propose(_labelled(source))
    proposals = [one for one in outcome.proposals if not wanted or one.model in wanted]
    _require_something(outcome, proposals, wanted)
    written = _written([one for one in proposals if one.changed]) if write else None
    _show(outcome, proposals, written, as_json=as_json)
    return 0


def _labelled(circles: Iterable[tuple[FireCircleResult, str]]) -> Iterator[LabelledCircle]:
    """Those whose label says attack or benign; a label may mean something else to its owner."""
    from firecircle.rotation.calibration import LabelledCircle

    for result, label in circles:
        kind, _, pattern_type = label.strip().lower().partition(":")
        if kind == "attack" or (kind == "benign" and not pattern_type):
            yield LabelledCircle(result, "attack" if kind == "attack" else "benign", pattern_type or None)


def _in_file(path: str) -> Iterator[tuple[FireCircleResult, str]]:
    import json

    from pydantic import ValidationError

    from firecircle.circle.result import FireCircleResult
    from firecircle.errors import ConfigError
    from firecircle.shapes import one_line

    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    told = json.loads(line)
                    yield FireCircleResult.model_validate(told["result"]), str(told["label"])
                except ValidationError as invalid:
                    raise ConfigError(f"--circles: line {number}: {one_line(invalid, 'result')}") from None
                except (ValueError, KeyError, TypeError):
                    raise ConfigError(
                        f'--circles: line {number} of {path} is no {{"label": ..., "result": ...}}'
                    ) from None
    except (OSError, UnicodeDecodeError) as unreadable:
        raise ConfigError(f"--circles: cannot read {path}: {unreadable}") from None


def _require_something(outcome: Calibration, proposals: list[Proposal], wanted: tuple[str, ...]) -> None:
    from firecircle.errors import ConfigError

    if not outcome.circles:
        raise ConfigError("calibrate: no circle is labelled attack or benign; label some first")
    unheard = [name for name in wanted if name not in {one.model for one in proposals}]
    if unheard:
        raise ConfigError(f"--models: no labelled circle heard {', '.join(unheard)}; leave it out")


def _written(proposals: list[Proposal]) -> str | None:
    from firecircle.rotation.declaring import declare_in
    from firecircle.settings import FILE_NAME, current_settings, user_folder

    if not proposals:
        return None
    path = current_settings().source or user_folder("config") / FILE_NAME
    declare_in(path, [one.proposed for one in proposals])
    return str(path)


def _show(outcome: Calibration, proposals: list[Proposal], written: str | None, *, as_json: bool) -> None:
    import sys

    from firecircle.cli.layout import counted, section
    from firecircle.cli.printable import printable_line
    from firecircle.cli.screen import console_on, print_json

    if as_json:
        print_json({**_document(outcome, proposals), "written_to": written})
        return
    console = console_on(sys.stdout)
    print(f"{counted(outcome.circles, 'labelled circle')}, {counted(len(proposals), 'voice')}\n")
    for one in proposals:
        print(printable_line(one.model))
        for part in section("", _lines(one)):
            console.print(part)
    print()
    if outcome.broken:
        broken = [printable_line(line) for line in outcome.broken]
        console.print(*section("Careful", ["With these no quorum any more:", *broken]))
    if written:
        print(f"written to {printable_line(written)}")
    elif any(one.changed for one in proposals):
        print("nothing was written; --write declares this in firecircle.toml")
    else:
        print("nothing to change")


def _lines(one: Proposal) -> list[str]:
    false_alarms = f"{one.false_alarms} of {one.benign} benign prompts alarmed on in round 1"
    if not one.roles:
        return [f"{false_alarms}; it takes attacks and benign prompts to propose anything"]
    roles = [
        f"{role.role.replace('_', ' '):<26}{role.declared:.2f} → {role.proposed:.2f}"
        f"  measured {role.measured:.2f} ({role.hits}/{role.attacks})"
        for role in one.roles
        if role.role in one.proposed.cognitive_roles
    ]
    confidence = f"{'confidence':<26}{one.declared.confidence:.2f} → {one.proposed.confidence:.2f}"
    return [*roles, confidence, false_alarms]


def _document(outcome: Calibration, proposals: list[Proposal]) -> dict[str, Any]:
    return {
        "circles": outcome.circles,
        "broken": list(outcome.broken),
        "proposals": [{**one.model_dump(mode="json"), "changed": one.changed} for one in proposals],
    }

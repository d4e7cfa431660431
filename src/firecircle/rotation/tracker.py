"""Who took part: the history of participation, and the tracker that records and reads it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol
from uuid import UUID

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from firecircle.circle.quorum import LineageBy
from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError
from firecircle.files import leads_out, write_whole
from firecircle.rotation.affinity import Affinity
from firecircle.rotation.empty_chair import require_domain
from firecircle.shapes import Shape, Text, Unit, config_error
from firecircle.store.tally import Tally

if TYPE_CHECKING:
    from firecircle.store.opening import Store

CHAIR, VOICE, RESERVE = "empty_chair", "voice", "reserve"


class DomainStats(Shape):
    """One voice's record in one domain."""

    count: int = 0
    quality: float | None = None
    """The mean quality of its contributions; None if it was never measured."""
    measured: int = 0


class VoiceStats(Shape):
    """One voice's record in the whole history."""

    voice_id: Text
    count: int = 0
    last_heard: float | None = None
    chair_count: int = 0
    last_chair: float | None = None
    domains: dict[Text, DomainStats] = Field(default_factory=dict)


def stored_history(store: Store | None = None) -> ParticipationHistory:
    """The participation history in a store; by default the user's own."""
    from firecircle.store.opening import open_store

    return (store or open_store()).participation.read_as(Participation, Draw)


class VoiceHistoryTracker:
    """Records which voice sat in which circle and held the chair, and counts what a draw needs."""

    def __init__(
        self, history: ParticipationHistory | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        """By default it uses the history in the user's store, as the command line does."""
        self.history = stored_history() if history is None else history
        self.clock = clock

    def record_participation(
        self,
        voice_id: str,
        session_id: str | UUID,
        decision_domain: str,
        role_played: str,
        contribution_quality: float | None,
        was_empty_chair: bool,
    ) -> Participation:
        """Save that a voice took part in a sitting, now."""
        try:
            row = Participation(
                voice_id=voice_id,
                session_id=str(session_id),
                decision_domain=require_domain(decision_domain),
                role_played=role_played,
                contribution_quality=contribution_quality,
                was_empty_chair=was_empty_chair,
                at=self.clock(),
            )
        except ValidationError as invalid:
            raise config_error(invalid, "participation") from None
        self.history.append(row)
        return row

    def record_circle(self, result: FireCircleResult, decision_domain: str) -> tuple[Participation, ...]:
        """Save which voices took part in a circle, with or without a verdict.

        A voice lost before it spoke was not heard. The rows have the time the circle ended, so recording it
        again gives the same rows.
        """
        rows = participations_in(result, require_domain(decision_domain))
        for row in rows:
            self.history.append(row)
        return rows

    def stats_of(self, voice_id: str) -> VoiceStats:
        """The record of this voice."""
        return self.stats([voice_id])[voice_id]

    def stats(self, voices: Iterable[str] | None = None) -> dict[str, VoiceStats]:
        """The records of these voices, or of all in the history."""
        names = None if voices is None else list(voices)
        return stats_in(self.history.tallies(names), names or ())


def participations_in(result: FireCircleResult, decision_domain: str) -> tuple[Participation, ...]:
    """A row for every voice that spoke in a circle."""
    chairs = {held.occupied_chair for held in result.dialogue_history}
    reserves = {seated.model for seated in result.substitutions}
    spoke = dict.fromkeys(
        evaluation.model for held in result.dialogue_history for evaluation in held.evaluations
    )
    return tuple(
        Participation(
            voice_id=voice,
            session_id=sitting_of(result),
            decision_domain=decision_domain,
            role_played=CHAIR if voice in chairs else RESERVE if voice in reserves else VOICE,
            contribution_quality=result.voice_scores.get(voice, 0.0) if result.patterns else None,
            was_empty_chair=voice in chairs,
            at=result.started_at + result.duration_seconds,
        )
        for voice in spoke
    )


def sitting_of(result: FireCircleResult) -> str:
    """The id of a circle's sitting; a repeatable circle always has the same id."""
    return result.circle_id if result.config.seed is None else f"{result.circle_id}@{result.started_at:.6f}"


def stats_in(tallies: Iterable[Tally], voices: Iterable[str] = ()) -> dict[str, VoiceStats]:
    """The records of these voices and all others in the tallies."""
    by_voice: dict[str, list[Tally]] = {voice: [] for voice in voices}
    for tally in tallies:
        by_voice.setdefault(tally.voice_id, []).append(tally)
    return {voice: _stats(voice, its) for voice, its in by_voice.items()}


def _stats(voice_id: str, tallies: list[Tally]) -> VoiceStats:
    chairs = [tally.last_chair for tally in tallies if tally.last_chair is not None]
    return VoiceStats(
        voice_id=voice_id,
        count=sum(tally.count for tally in tallies),
        last_heard=max((tally.last_heard for tally in tallies), default=None),
        chair_count=sum(tally.chair_count for tally in tallies),
        last_chair=max(chairs, default=None),
        domains={
            tally.decision_domain: DomainStats(
                count=tally.count, quality=tally.quality, measured=tally.measured
            )
            for tally in tallies
        },
    )


DRAW_METHOD = "weighted-order-sha256/1"
"""The current method; this version cannot verify draws of another one."""
STEERED_METHOD = "steered-order-sha256/1"
"""The same, with weights that depend on known pairs."""

Name = Annotated[Text, Field(min_length=1)]
Seconds = Annotated[float, Field(allow_inf_nan=False)]
"""A time, in seconds since 1970."""
Count = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Participation(Shape):
    """One voice in one sitting. A voice has at most one row per sitting."""

    voice_id: Name
    session_id: Name
    decision_domain: Name
    role_played: Name
    contribution_quality: Unit | None = None
    """Its share of what the circle found; None if there was nothing to find."""
    was_empty_chair: bool = False
    at: Seconds


class Candidate(Shape):
    """A voice that could be drawn, with every fact that the draw depends on."""

    voice_id: Name
    heard: Count = 0
    last_heard: Seconds | None = None
    heard_in_domain: Count = 0
    chairs: Count = 0
    last_chair: Seconds | None = None
    expertise: Weight = 1.0
    """The factor for matching the domain; 1 if expertise is not used."""
    weight: Weight = 1.0
    provider_lineage: Text
    lineage_group: Text = ""
    """Empty unless the draw counts lineages by group."""
    cognitive_roles: dict[Text, Unit]

    @model_serializer(mode="wrap")
    def _without_group_unless_counted(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without_defaults(write(self), {"lineage_group": ""})


class Draw(Shape):
    """How a circle was chosen, with everything needed to repeat the choice."""

    draw_id: Name
    """A digest of all other fields, so that a changed record is noticed."""
    method: Name = DRAW_METHOD
    session_id: Name
    at: Seconds
    seed: Text
    decision_domain: Name
    required_count: Annotated[int, Field(ge=1)]
    include_empty_chair: bool
    min_cognitive_coverage: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    """None, like the lineages below, if the set need not be a quorum."""
    min_provider_groups: Annotated[int, Field(ge=1)] | None
    lineage_by: LineageBy = "trainer"
    candidates: tuple[Candidate, ...]
    """Sorted by name, however they were listed."""
    selected: tuple[Name, ...]
    """In the order in which the circle lists them, so that its chair rotates by duty."""
    chair: Name | None
    used: bool = True
    """False in shadow mode: the choice was recorded, and other voices judged."""
    affinities: tuple[Affinity, ...] = ()
    """Known pairs of candidates, by name; empty if unused or unknown."""

    @model_serializer(mode="wrap")
    def _without_what_came_later(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _without_defaults(write(self), {"affinities": (), "lineage_by": "trainer"})


def _without_defaults(written: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out fields that are newer than the draw, so that its text and digest stay the same."""
    return {
        name: value
        for name, value in written.items()
        if name not in defaults or value not in (defaults[name], list(defaults[name]))
    }


class ParticipationHistory(Protocol):
    """A store of the history. When `append` and `record_draw` return, the data is permanent."""

    def append(self, row: Participation) -> None:
        """Save one row."""
        ...

    def participations(
        self, *, voice_id: str | None = None, decision_domain: str | None = None
    ) -> Iterator[Participation]:
        """The rows, oldest first; of one voice or one domain, if given."""
        ...

    def tallies(
        self, voices: Collection[str] | None = None, *, before: Draw | None = None
    ) -> Sequence[Tally]:
        """The sums of each voice's rows in each domain; of these voices or of rows before a draw, if given.

        Rows are before a draw if they existed when it was recorded, whatever the clock says. Times decide
        only for a draw that was recorded elsewhere.

        Every draw calls this, however long the history is.
        """
        ...

    def sittings(self, voices: Collection[str] | None = None) -> int:
        """The number of sittings; of these voices, if given."""
        ...

    def record_draw(self, draw: Draw, *, imported: bool = False) -> None:
        """Save one draw, made by this history or imported."""
        ...

    def draws(self) -> Iterator[Draw]:
        """The draws, oldest first."""
        ...


def tally_rows(rows: Iterable[Participation]) -> Sequence[Tally]:
    """The sums of the rows, by voice and domain."""
    groups: dict[tuple[str, str], list[Participation]] = {}
    for row in rows:
        groups.setdefault((row.voice_id, row.decision_domain), []).append(row)
    return [_tally(*key, its) for key, its in groups.items()]


def _tally(voice_id: str, decision_domain: str, rows: list[Participation]) -> Tally:
    chairs = [row.at for row in rows if row.was_empty_chair]
    measured = [row.contribution_quality for row in rows if row.contribution_quality is not None]
    return Tally(
        voice_id=voice_id,
        decision_domain=decision_domain,
        count=len(rows),
        last_heard=max(row.at for row in rows),
        chair_count=len(chairs),
        last_chair=max(chairs, default=None),
        measured=len(measured),
        quality=sum(measured) / len(measured) if measured else None,
    )


class MemoryHistory:
    """A history in memory."""

    def __init__(self, rows: Iterable[Participation] = (), draws: Iterable[Draw] = ()) -> None:
        self._rows = list(rows)
        self._draws = list(draws)
        self._rows_before: dict[str, int] = {}

    @classmethod
    def copy_of(cls, other: ParticipationHistory) -> MemoryHistory:
        """A copy of another history, to continue without changing it."""
        return cls(other.participations(), other.draws())

    def append(self, row: Participation) -> None:
        """Save one row."""
        self._rows.append(row)

    def participations(
        self, *, voice_id: str | None = None, decision_domain: str | None = None
    ) -> Iterator[Participation]:
        """The rows, in the order of saving."""
        for row in self._rows:
            if voice_id in (None, row.voice_id) and decision_domain in (None, row.decision_domain):
                yield row

    def tallies(
        self, voices: Collection[str] | None = None, *, before: Draw | None = None
    ) -> Sequence[Tally]:
        """The sums of each voice's rows in each domain."""
        if before is None:
            return tally_rows(self._rows_of(voices))
        known = self._rows_before.get(before.draw_id)
        rows = [row for row in self._rows if row.at < before.at] if known is None else self._rows[:known]
        return tally_rows(row for row in rows if voices is None or row.voice_id in voices)

    def sittings(self, voices: Collection[str] | None = None) -> int:
        """The number of sittings."""
        return len({row.session_id for row in self._rows_of(voices)})

    def _rows_of(self, voices: Collection[str] | None) -> Iterator[Participation]:
        return (row for row in self._rows if voices is None or row.voice_id in voices)

    def record_draw(self, draw: Draw, *, imported: bool = False) -> None:
        """Save one draw."""
        self._draws.append(draw)
        if not imported:
            self._rows_before[draw.draw_id] = len(self._rows)

    def draws(self) -> Iterator[Draw]:
        """The draws, in the order of saving."""
        yield from self._draws


# The participation history as one JSON document, to move it to another machine

LARGEST_BYTES = 1_000_000_000


class HistoryDocument(Shape):
    """The content of the file."""

    kind: Literal["firecircle participation history"] = "firecircle participation history"
    schema_version: Literal[1] = 1
    participations: tuple[Participation, ...]
    draws: tuple[Draw, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import added, and what was there already."""

    participations: int
    draws: int
    known: int


def document_of(history: ParticipationHistory) -> HistoryDocument:
    """All rows and draws of a history."""
    return HistoryDocument(participations=tuple(history.participations()), draws=tuple(history.draws()))


def export_history(history: ParticipationHistory, path: str | Path) -> HistoryDocument:
    """Write all rows and draws to one file, the whole of it or nothing."""
    if leads_out(os.fspath(path)):
        raise ConfigError("history", f"{path} is a link out of its folder", "name the file itself")
    document = document_of(history)
    text = document.model_dump_json(indent=2) + "\n"
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            # Write to a device or a pipe instead of replacing it.
            target.write_text(text, encoding="utf-8")
            return document
        write_whole(target, text, mode=0o600)
    except OSError as unwritable:
        raise ConfigError(
            "history", f"cannot write {path}: {unwritable.strerror or unwritable}", "name another file"
        ) from None
    return document


def import_history(path: str | Path, into: ParticipationHistory) -> Imported:
    """Add every row and draw of a file that is not there yet.

    Importing the same file again adds nothing, so an interrupted import can be repeated.
    """
    document = read_document(path)
    rows = {_key(row): row for row in into.participations()}
    drawn = {draw.draw_id for draw in into.draws()}
    for row in document.participations:
        if rows.get(_key(row), row) != row:
            raise ConfigError(
                "history",
                (
                    f"{path} differs for {row.voice_id!r} in sitting {row.session_id!r} from the saved"
                    " history; nothing was imported, and the file is unchanged"
                ),
            )
    new_rows = [row for row in document.participations if _key(row) not in rows]
    new_draws = [draw for draw in document.draws if draw.draw_id not in drawn]
    for row in new_rows:
        into.append(row)
    for draw in new_draws:
        into.record_draw(draw, imported=True)
    total = len(document.participations) + len(document.draws)
    return Imported(len(new_rows), len(new_draws), total - len(new_rows) - len(new_draws))


def read_history(path: str | Path) -> MemoryHistory:
    """Read an exported history into memory."""
    document = read_document(path)
    return MemoryHistory(document.participations, document.draws)


def read_document(path: str | Path) -> HistoryDocument:
    """Read and validate the document in a file."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as unreadable:
        raise ConfigError(
            "history", f"cannot read {path}: {unreadable.strerror or unreadable}", "name an exported history"
        ) from None
    if len(data) > LARGEST_BYTES:
        raise _import_error(path, f"it is larger than {LARGEST_BYTES:,} bytes")
    try:
        document = HistoryDocument.model_validate_json(data)
    except ValidationError as invalid:
        wrong = config_error(invalid, "history")
        raise _import_error(path, str(wrong if wrong.field else wrong.renamed(None))) from None
    sittings = Counter(_key(row) for row in document.participations)
    for (session, voice), times in sittings.items():
        if times > 1:
            raise _import_error(path, f"{voice!r} stands {times} times in sitting {session!r}")
    return document


def _import_error(path: str | Path, why: str) -> ConfigError:
    return ConfigError(
        "history", f"{path} is not a history: {why}; nothing was imported, and the file is unchanged"
    )


def _key(row: Participation) -> tuple[str, str]:
    return row.session_id, row.voice_id

"""Everything a circle's page shows, in one place, for the server and for the exported file alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from firecircle.circle.panel import Panel
from firecircle.circle.patterns import Sifted
from firecircle.circle.result import FireCircleResult, Flip, Observation, Usages, account
from firecircle.contradictions import Contradiction, find_contradictions
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.metrics import metrics_of_circle, metrics_of_panel
from firecircle.names import CircleStatus
from firecircle.store.finding import CircleSummary
from firecircle.telling.glance import Excerpt, deciding_quotes, excerpt_of, sentence_of
from firecircle.telling.patterns import left_out as without_pattern
from firecircle.telling.quorum import QuorumPicture, quorum_picture
from firecircle.telling.safe_text import SafeLine, line_quoting
from firecircle.telling.table import VoiceRow, progress_of, rows_of_circle, rows_of_panel
from firecircle.telling.talking import Replay, moves_of, replay_of, talk_sentences
from firecircle.telling.verdict import (
    Cautions,
    Ways,
    cautions_of_circle,
    cautions_of_panel,
    circle_sentences,
    deciding_reason,
    lost_voices,
    next_step,
    panel_sentences,
    unfinished_sentence,
    unread_step,
)
from firecircle.verdict import VerdictWord
from firecircle.web.shown.charts import Convergence, Scale, Waterfall, convergence, scale_of, waterfall
from firecircle.web.shown.passages import ShownLayer, earlier_turns, shown_layers

MOST_OBSERVATIONS = 300
COLOURS = 10
"""Of voices; the style sheet has as many."""
ON_THE_PAGE = Ways(
    read_reasons="below",
    ask_again="convene it again",
    name_reserves="with `firecircle evaluate --set reserves=A,B`",
    tell_turn="told which turn it is,",
    name_voices="name other voices",
    judge_offline="let the embedded readers judge",
)


@dataclass(frozen=True, slots=True)
class Caption:
    """What is known of a circle besides its record: where it belongs and what it is called there."""

    id: str
    status: CircleStatus
    title: str
    label: str | None
    run_id: str | None = None
    arm: str | None = None
    record_id: str | None = None
    note: str | None = None


def caption_of(summary: CircleSummary) -> Caption:
    """The caption of a circle in a store."""
    return Caption(
        summary.id,
        summary.status,
        summary.title,
        summary.label,
        summary.run_id,
        summary.arm,
        summary.record_id,
        summary.note,
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict, in numbers and in words."""

    verdict: VerdictWord
    consensus: NeutrosophicEvaluation | None
    sentences: tuple[str, ...]
    reason: str
    cautions: Cautions
    next_step: str


@dataclass(frozen=True, slots=True)
class PanelPage:
    """A prompt judged without talk."""

    caption: Caption
    judged: Panel
    found: Sifted
    """Its patterns."""
    mode: str
    outcome: Outcome
    layers: tuple[ShownLayer, ...]
    earlier_turns: str
    """What is known of them, in words, where none are among the layers."""
    rows: tuple[VoiceRow, ...]
    calls: Waterfall | None
    total: Usages

    @property
    def colours(self) -> dict[str, int]:
        """The colour of each voice."""
        return colours_of(self.rows)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Those in the system prompt."""
        return _contradictions(self.judged.prompt.system)

    @property
    def scale(self) -> Scale | None:
        """Every voice on the scale of the verdict."""
        return _scale(self)

    @property
    def numbers(self) -> dict[str, int]:
        """The voices by their number on the page."""
        return _numbered(self.rows)


@dataclass(frozen=True, slots=True)
class CirclePage:
    """A circle, finished or still sitting."""

    caption: Caption
    judged: FireCircleResult
    mode: str
    sitting: bool
    progress: str
    """How far a sitting circle is."""
    outcome: Outcome
    sentence: str
    """The verdict as a person would say it; empty while it sits and without a verdict."""
    excerpt: Excerpt | None
    """The prompt around the words that decided; None where none did."""
    deciding_cell: str
    """Where the deciding answer stands on the page; empty where none decided."""
    layers: tuple[ShownLayer, ...]
    earlier_turns: str
    rows: tuple[VoiceRow, ...]
    chart: Convergence | None
    quorum: QuorumPicture | None
    replay: Replay
    calls: Waterfall | None
    total: Usages
    talk: tuple[str, ...]
    """What the discussion did, in sentences."""
    moves: tuple[Flip, ...]
    """Flips that really moved, the farthest first."""
    left_out: tuple[Observation, ...]
    """Observations whose type is in no pattern."""
    more_left_out: int

    @property
    def colours(self) -> dict[str, int]:
        """The colour of each voice, the same in grid, chart and dialogue."""
        return colours_of(self.rows)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Those in the system prompt."""
        return _contradictions(self.judged.prompt.system)

    @property
    def scale(self) -> Scale | None:
        """Every voice on the scale of the verdict."""
        return _scale(self)

    @property
    def numbers(self) -> dict[str, int]:
        """The voices by their number on the page."""
        return _numbered(self.rows)


def colours_of(rows: Sequence[VoiceRow]) -> dict[str, int]:
    """A colour for each voice, by its place."""
    return {row.model: place % COLOURS for place, row in enumerate(rows)}


def _scale(page: CirclePage | PanelPage) -> Scale | None:
    """None for a prompt that no voice could read: its numbers say nothing."""
    if page.outcome.verdict == "unread":
        return None
    return scale_of(page.rows, page.colours, page.judged.config.alarm_threshold)


@lru_cache(maxsize=256)
def _contradictions(system: str) -> tuple[Contradiction, ...]:
    """Kept, since a run judges many prompts under one system prompt."""
    return find_contradictions(system) if system.strip() else ()


def _numbered(rows: Sequence[VoiceRow]) -> dict[str, int]:
    return {row.model: number for number, row in enumerate(rows, start=1)}


def page_of(caption: Caption, judged: FireCircleResult | Panel) -> CirclePage | PanelPage:
    """What the page of a circle or panel shows."""
    if isinstance(judged, Panel):
        threshold = judged.config.alarm_threshold
        heard = (answer.model for answer in judged.evaluations)
        line = line_quoting((*heard, *(lost.model for lost in judged.failures)))
        found = judged.sifted()
        return PanelPage(
            caption=caption,
            judged=judged,
            found=found,
            mode=judged.config.mode.value,
            outcome=_panel_outcome(judged, line),
            layers=shown_layers(judged.prompt, found.all_patterns),
            earlier_turns=earlier_turns(judged.prompt, judged.circumstances.turn_number),
            rows=rows_of_panel(judged.evaluations, judged.failures, threshold),
            calls=waterfall(judged),
            total=account(judged.calls).total,
        )
    sitting = caption.status == "sitting"
    line = line_quoting((*judged.config.models, *(seat.model for seat in judged.substitutions)))
    left_out = [seen for group in without_pattern(judged) for seen in group]
    rows = rows_of_circle(judged)
    return CirclePage(
        caption=caption,
        judged=judged,
        mode="fire_circle",
        sitting=sitting,
        progress=progress_of(judged) if sitting else "",
        outcome=_circle_outcome(judged, line, sitting=sitting),
        sentence="" if sitting or judged.consensus is None else sentence_of(judged),
        excerpt=None if sitting or next(deciding_quotes(judged), None) is None else excerpt_of(judged),
        deciding_cell=_deciding_cell(rows),
        layers=shown_layers(judged.prompt, judged.all_patterns),
        earlier_turns=earlier_turns(judged.prompt, judged.circumstances.turn_number),
        rows=rows,
        chart=convergence(judged),
        quorum=quorum_picture(judged),
        replay=replay_of(judged, line),
        calls=waterfall(judged),
        total=judged.accounting.total,
        talk=() if sitting else tuple(talk_sentences(judged, line)),
        moves=moves_of(judged),
        left_out=tuple(left_out[:MOST_OBSERVATIONS]),
        more_left_out=max(0, len(left_out) - MOST_OBSERVATIONS),
    )


def _deciding_cell(rows: Sequence[VoiceRow]) -> str:
    return next(
        (
            f"v{number}r{cell.round_number}"
            for number, row in enumerate(rows, start=1)
            for cell in row.cells
            if cell is not None and cell.is_consensus
        ),
        "",
    )


def _circle_outcome(result: FireCircleResult, line: SafeLine, *, sitting: bool) -> Outcome:
    if sitting:
        heard_so_far = ("The circle is running; this is what it said so far.",)
        lost = lost_voices(result.failures, line, result.substitutions)
        return Outcome("no_verdict", None, heard_so_far, "", lost, "")
    cautions, step = cautions_of_circle(result, line), next_step(result, ON_THE_PAGE)
    if result.consensus is None:
        sentences = ("No consensus.", unfinished_sentence(result, line))
        why = result.abort_reason or ""
        told = why.partition(". ")[0] if "Lost" in cautions else why  # the rest is under that heading
        return Outcome(result.verdict, None, sentences, line(told), cautions, step)
    metrics = metrics_of_circle(result)
    return Outcome(
        result.verdict,
        result.consensus,
        tuple(circle_sentences(result, metrics, line)),
        deciding_reason(metrics, line),
        cautions,
        step,
    )


def _panel_outcome(panel: Panel, line: SafeLine) -> Outcome:
    if not panel.evaluations:
        return Outcome(
            panel.verdict, None, ("No voice could answer.",), "", lost_voices(panel.failures, line), ""
        )
    metrics = metrics_of_panel(panel)
    return Outcome(
        panel.verdict,
        panel.consensus,
        tuple(panel_sentences(metrics, line)),
        deciding_reason(metrics, line),
        cautions_of_panel(metrics, line),
        unread_step(panel.prompt, tuple(panel.heard), ON_THE_PAGE) if panel.verdict == "unread" else "",
    )

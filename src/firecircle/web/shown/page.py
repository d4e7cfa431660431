"""Everything a circle's page shows, in one place, for the server and for the exported file alike."""

from __future__ import annotations

from dataclasses import dataclass

from firecircle.circle.measures import account
from firecircle.circle.panel import Panel
from firecircle.circle.result import FireCircleResult, Flip, Observation, Usages
from firecircle.circle.summary import dialogue_summary
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.store.finding import CircleSummary
from firecircle.web.shown.charts import Convergence, convergence
from firecircle.web.shown.grid import VoiceRow, panel_rows, voice_rows
from firecircle.web.shown.lenses import QuorumPicture, quorum_picture
from firecircle.web.shown.passages import ShownLayer, shown_layers
from firecircle.web.shown.replay import Replay, replay
from firecircle.web.shown.waterfall import Waterfall, waterfall

MOST_OBSERVATIONS = 300


@dataclass(frozen=True, slots=True)
class PanelPage:
    """A prompt judged without talk."""

    summary: CircleSummary
    kept: Panel
    layers: tuple[ShownLayer, ...]
    rows: tuple[VoiceRow, ...]
    calls: Waterfall | None
    total: Usages
    consensus: NeutrosophicEvaluation | None
    told: str


@dataclass(frozen=True, slots=True)
class CirclePage:
    """A circle, finished or still sitting."""

    summary: CircleSummary
    kept: FireCircleResult
    sitting: bool
    layers: tuple[ShownLayer, ...]
    rows: tuple[VoiceRow, ...]
    chart: Convergence | None
    quorum: QuorumPicture | None
    replay: Replay
    calls: Waterfall | None
    total: Usages
    consensus: NeutrosophicEvaluation | None
    told: str
    moves: tuple[Flip, ...]
    """Flips that really moved, the farthest first."""
    left_out: tuple[Observation, ...]
    """Observations that became no pattern."""
    more_left_out: int


def page_of(summary: CircleSummary, kept: FireCircleResult | Panel) -> CirclePage | PanelPage:
    """What the page of a circle or panel shows."""
    if isinstance(kept, Panel):
        return PanelPage(
            summary=summary,
            kept=kept,
            layers=shown_layers(kept.prompt, ()),
            rows=panel_rows(kept),
            calls=waterfall(kept),
            total=account(kept.calls).total,
            consensus=kept.consensus if kept.evaluations else None,
            told=_told_of_panel(kept),
        )
    sitting = summary.status == "sitting"
    moves = sorted(
        (flip for flip in kept.flips if flip.movement != "unchanged"),
        key=lambda flip: -abs(flip.after - flip.before),
    )
    left_out = [one for one in kept.observations if one.left_out]
    return CirclePage(
        summary=summary,
        kept=kept,
        sitting=sitting,
        layers=shown_layers(kept.prompt, kept.patterns),
        rows=voice_rows(kept, sitting=sitting),
        chart=convergence(kept),
        quorum=quorum_picture(kept),
        replay=replay(kept),
        calls=waterfall(kept),
        total=kept.accounting.total,
        consensus=None if sitting else kept.consensus,
        told="The circle sits; what follows is what was heard so far." if sitting else dialogue_summary(kept),
        moves=tuple(moves),
        left_out=tuple(left_out[:MOST_OBSERVATIONS]),
        more_left_out=max(0, len(left_out) - MOST_OBSERVATIONS),
    )


def _told_of_panel(panel: Panel) -> str:
    if not panel.evaluations:
        return "No voice could answer."
    word = "Alarm" if panel.alarm else "No alarm"
    said = panel.consensus
    if len(panel.evaluations) == 1:
        return f"{word}: falsehood {said.falsehood:.2f}, said by {panel.evaluations[0].model} alone."
    return (
        f"{word}: mean falsehood {said.falsehood:.2f} of {len(panel.evaluations)} voices that did not talk;"
        f" agreement {panel.agreement:.2f}."
    )

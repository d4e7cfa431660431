"""A circle's record put together from what it told while it sat; all there is when its process is gone."""

from __future__ import annotations

from collections.abc import Iterable

from firecircle.circle import events
from firecircle.circle.hearing import Hearing
from firecircle.circle.ledger import Ledger, RoundPage
from firecircle.circle.result import CircleRecord, QuorumCheck


def record_from(told: Iterable[events.Event]) -> CircleRecord:
    """The record as far as it was told, as that of an interrupted circle; a closed one has its own.

    Calls that were under way when the telling broke off are not in it: nobody knows what they cost.
    """
    story = iter(told)
    first = next(story, None)
    if not isinstance(first, events.CircleConvened):
        raise ValueError("the story of a circle begins with its voices being seated")
    ledger = Ledger(first.record.config)
    last_heard = first.record.started_at
    for event in story:
        match event:
            case events.CircleClosed():
                facts = {name: getattr(event.result, name) for name in CircleRecord.model_fields}
                return CircleRecord(**facts)
            case events.RoundStarted():
                page = RoundPage(
                    event.round_number, event.round_kind, event.empty_chair_model, event.prompt_used
                )
                page.prompts = {asked.model: asked for asked in event.voice_prompts}
                page.opened_at = last_heard = event.timestamp
                ledger.pages.append(page)
            case events.ReserveAsked():
                ledger.pages[event.round_number - 1].prompts[event.model] = event.prompt
            case events.VoiceAnswered():
                heard = Hearing(event.model, evaluation=event.evaluation, calls=list(event.calls))
                ledger.pages[event.round_number - 1].hearings[event.model] = heard
            case events.VoiceFailed():
                heard = Hearing(event.model, failure=event.failure, calls=list(event.calls))
                ledger.pages[event.round_number - 1].hearings[event.model] = heard
            case events.VoiceRecruited():
                ledger.substitutions.append(event.substitution)
            case events.QuorumChecked():
                check = QuorumCheck(round_number=event.round_number, verdict=event.verdict)
                ledger.quorum_checks.append(check)
            case events.RoundClosed():
                page = ledger.pages[event.round_number - 1]
                page.duration = event.duration_seconds
                last_heard = page.opened_at + page.duration
    return ledger.added_to(first.record).model_copy(
        update={
            "duration_seconds": max(0.0, last_heard - first.record.started_at),
            "stopped": "interrupted",
            "abort_reason": "the process that held this circle ended before the circle did",
        }
    )

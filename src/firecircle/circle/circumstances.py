"""When and how a prompt is judged, besides the prompt and the settings; kept, so that it can be replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from firecircle.circle.evidence import fresh_nonce
from firecircle.circle.seating import Seating
from firecircle.errors import PromptError
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.session import SessionMemory, format_turn_context
from firecircle.shapes import Shape, Text

ChairPhase = Literal["opening", "exploration", "integration", "synthesis"]
"""Of the chair: when it first speaks, in further talk, when the circle is divided, in the last round."""


class Circumstances(Shape):
    """When and how a prompt is judged."""

    nonce: Text
    """The code of the markers around the evidence."""
    turn_number: int | None = None
    """The number of the conversation turn under judgement, if known."""
    turn_context: Text = ""
    """The one line about the session, empty when there is no earlier turn."""
    baseline_question: Text | None = None
    """Asked in round 1 instead of the plain question."""
    chair_template: Text | None = None
    """The empty chair's prompt, if it is not the built-in one."""
    chair_roles: dict[ChairPhase, Text] = Field(default_factory=dict)
    """Whom the chair speaks for and what it asks, by phase, if a decision domain says so."""
    seating: Seating | None = None
    """How the voices came to sit; None in recordings from before this was kept."""


def circumstances_of(
    prompt: MultiNeutrosophicPrompt,
    *,
    seed: int | None = None,
    session: SessionMemory | None = None,
    baseline_question: str | None = None,
    chair_template: str | None = None,
    chair_roles: Mapping[ChairPhase, str] | None = None,
    seating: Seating | None = None,
) -> Circumstances:
    """The circumstances of judging this prompt now."""
    return Circumstances(
        nonce=fresh_nonce(seed, [layer.text for layer in prompt.layers]),
        turn_number=_agreed_turn_number(prompt, session),
        turn_context=format_turn_context(session),
        baseline_question=baseline_question,
        chair_template=chair_template,
        chair_roles=dict(chair_roles or {}),
        seating=seating,
    )


def _agreed_turn_number(prompt: MultiNeutrosophicPrompt, session: SessionMemory | None) -> int | None:
    """The known turns and the session must tell the same number."""
    known = prompt.turn_number
    if session is None:
        return known
    if known is not None and known != session.turn_count:
        raise PromptError(
            "turns",
            f"the earlier turns make this turn {known}, but the session is at turn {session.turn_count}",
            "pass the turns of this session or leave one of them out",
        )
    return session.turn_count

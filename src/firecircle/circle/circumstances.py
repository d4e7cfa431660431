"""When and how a prompt is judged, and by which set of voices; saved for replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from firecircle.circle.grounding import fresh_nonce
from firecircle.circle.templates import TemplateSet
from firecircle.errors import PromptError
from firecircle.names import DEFAULT_MODELS, EMBEDDED_MODELS, is_local
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.session import SessionMemory, format_turn_context
from firecircle.shapes import Shape, Text

SeatingKind = Literal["default", "chosen", "rotated", "offline"]
"""The set of voices is the default, was named, was drawn by rotation, or is limited to this machine."""

_NAMED_SETS = {
    EMBEDDED_MODELS: "three embedded readers",
    EMBEDDED_MODELS[:2]: "two of three embedded readers",
    DEFAULT_MODELS: "three hosted voices",
}


class Seating(Shape):
    """The set of voices of a judgement: another set may give another verdict."""

    kind: SeatingKind
    set_name: Text

    @classmethod
    def of(
        cls, models: Sequence[str], kind: SeatingKind = "chosen", *, not_asked: str | None = None
    ) -> Seating:
        """How these models were chosen; `not_asked` could have joined them but was not needed."""
        sure = f", sure without {not_asked}" if not_asked else ""
        return cls(kind=kind, set_name=_set_name(models) + sure)

    def __str__(self) -> str:
        """In a few words, such as `three embedded readers (default)`."""
        return f"{self.set_name} ({self.kind})"


def readers_missing(models: Sequence[str]) -> tuple[str, ...]:
    """A line for circles without the neural reader, and how to install it."""
    if tuple(models) != EMBEDDED_MODELS[:2]:
        return ()
    return (
        "2 of 3 readers: embedded:neural is not in this circle; if its weights are missing, run"
        " `firecircle local fetch neural`",
    )


def _set_name(models: Sequence[str]) -> str:
    seated = tuple(models)
    for known, name in _NAMED_SETS.items():
        if seated == known:
            return name
        if seated[:-1] == known and is_local(seated[-1]):
            return f"{name} and {seated[-1]}"
    return seated[0] if len(seated) == 1 else f"{len(seated)} voices"


ChairPhase = Literal["opening", "exploration", "integration", "synthesis"]
"""Phases of the chair: its first round, further discussion, a divided circle, the last round."""


class Circumstances(Shape):
    """When and how a prompt is judged."""

    nonce: Text
    """The code of the markers around the evidence."""
    turn_number: int | None = None
    """The number of the conversation turn to judge, if known."""
    turn_context: Text = ""
    """The one line about the session, empty when there is no earlier turn."""
    baseline_question: Text | None = None
    chair_template: Text | None = None
    """The empty chair's prompt, if it is not the built-in one."""
    chair_roles: dict[ChairPhase, Text] = Field(default_factory=dict)
    """Whom the chair speaks for and what it asks, by phase, if a decision domain says so."""
    seating: Seating | None = None
    """How the voices were chosen; None in older recordings."""
    templates: TemplateSet = "v1"
    """The version of the prompts; older recordings used the first."""

    def asks_in_other_words(self, *, is_chair: bool = False) -> bool:
        """Whether a voice gets another question than the built-in one."""
        if is_chair:
            return self.chair_template is not None or bool(self.chair_roles)
        return self.baseline_question is not None


def circumstances_of(
    prompt: MultiNeutrosophicPrompt,
    *,
    seed: int | None = None,
    session: SessionMemory | None = None,
    baseline_question: str | None = None,
    chair_template: str | None = None,
    chair_roles: Mapping[ChairPhase, str] | None = None,
    seating: Seating | None = None,
    templates: TemplateSet = "v2",
) -> Circumstances:
    """The circumstances of judging this prompt now."""
    return Circumstances(
        nonce=fresh_nonce(
            seed,
            [layer.text for layer in prompt.layers],
            same_for=None if session is None else _beginning_of(prompt),
        ),
        turn_number=_agreed_turn_number(prompt, session),
        turn_context=format_turn_context(session),
        baseline_question=baseline_question,
        chair_template=chair_template,
        chair_roles=dict(chair_roles or {}),
        seating=seating,
        templates=templates,
    )


def _beginning_of(prompt: MultiNeutrosophicPrompt) -> tuple[str, str]:
    """What all turns of a conversation share: the operator's text and the user's first message."""
    said = (turn.content for turn in prompt.turns or () if turn.role == "user")
    return prompt.system, next(said, prompt.user)


def _agreed_turn_number(prompt: MultiNeutrosophicPrompt, session: SessionMemory | None) -> int | None:
    """The turn number, on which the earlier turns and the session must agree."""
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

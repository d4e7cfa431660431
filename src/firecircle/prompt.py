"""The prompt to judge: its layers, who vouches for them, and the earlier turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import field_validator, model_validator

from firecircle.errors import PromptError
from firecircle.names import Focus, LayerName
from firecircle.shapes import Declaration, Text

MAX_LAYER_CHARS = 1_000_000
SHORT = 20_000
"""Longest prompt, in characters, that the cache keeps."""
"""About a quarter of a million tokens: more than any voice reads attentively."""


ROLES = ("user", "assistant", "system", "tool")
OTHER_NAMES = {
    **dict.fromkeys(("human", "customer"), "user"),
    **dict.fromkeys(("ai", "bot", "gpt", "model", "agent"), "assistant"),
    **dict.fromkeys(("developer", "operator"), "system"),
    **dict.fromkeys(("function", "ipython", "document", "context"), "tool"),
}


class EarlierTurn(Declaration):
    """One earlier message of the conversation, with its role and text, as the operator recorded it."""

    role: Text
    """Who spoke: `user`, `assistant`, `system` or `tool`; other common names are accepted."""
    content: Text

    @field_validator("role")
    @classmethod
    def _known_role(cls, role: str) -> str:
        """The turn number depends on how often the user spoke, so unknown roles are rejected."""
        plain = plain_role(role)
        if plain is None:
            raise PromptError("turns", f"{role!r} is not a role", f"it is one of {', '.join(ROLES)}")
        return plain


def plain_role(role: str) -> str | None:
    """The house name of a role; None if it is unknown."""
    plain = role.strip().lower()
    plain = OTHER_NAMES.get(plain, plain)
    return plain if plain in ROLES else None


class Layer(NamedTuple):
    """One layer as evidence: its text, its rank and what the operator vouches for."""

    name: LayerName
    text: str
    rank: int | None
    vouched: str


class MultiNeutrosophicPrompt(Declaration):
    """A prompt in layers: `system`, `application` (documents, tool results) and `user`.

    `turns` are the earlier messages: `()` is a known first turn, `None` is unknown.
    """

    system: Text = ""
    application: Text = ""
    user: Text = ""
    turns: tuple[EarlierTurn, ...] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            system: str = ...,
            application: str = ...,
            user: str = ...,
            turns: Any = ...,  # any list of turns, or of role and content by name; None if unknown
        ) -> None: ...

    @model_validator(mode="after")
    def _within_limits(self) -> MultiNeutrosophicPrompt:
        for layer in self.layers:
            if len(layer.text) > MAX_LAYER_CHARS:
                raise PromptError(
                    layer.name,
                    f"{len(layer.text):,} characters",
                    f"the limit is {MAX_LAYER_CHARS:,} a layer, so judge it in parts",
                )
        return self

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers that have text, from the highest rank to the lowest."""
        is_short = len(self.system) + len(self.application) + len(self.user) < SHORT and not self.turns
        remembered = _layers_of_short if is_short else _layers
        return remembered(self.system, self.application, self.turns, self.user)

    @property
    def earlier_conversation(self) -> str:
        """The known earlier turns as one text."""
        return _conversation(self.turns)

    @property
    def turn_number(self) -> int | None:
        """The number of the turn under judgement, if the earlier turns are known."""
        if self.turns is None:
            return None
        return 1 + sum(turn.role == "user" for turn in self.turns)

    def require_text(self, focus: Focus = "prompt") -> None:
        """Raise a `PromptError` if the prompt, or the layer to judge, is empty."""
        if not any((self.system.strip(), self.application.strip(), self.user.strip())):
            raise PromptError("prompt", "every layer is empty", "give system, application or user text")
        if focus != "prompt" and not str(getattr(self, focus)).strip():
            raise PromptError(
                "focus", f"the {focus} layer is empty", "judge another layer or the whole prompt"
            )


PromptLike = MultiNeutrosophicPrompt | Mapping[str, Any] | str
"""A prompt, its layers by name, or only the user's message."""


def as_prompt(prompt: PromptLike) -> MultiNeutrosophicPrompt:
    """Convert to a prompt; a plain text is a user's message with unknown earlier turns."""
    match prompt:
        case MultiNeutrosophicPrompt():
            return prompt
        case str():
            return MultiNeutrosophicPrompt(user=prompt)
        case Mapping():
            return MultiNeutrosophicPrompt(**prompt)
    raise PromptError("prompt", f"{type(prompt).__name__} is not a prompt", "give layers by name, or a text")


@lru_cache(maxsize=8)
def _layers(
    system: str, application: str, turns: tuple[EarlierTurn, ...] | None, user: str
) -> tuple[Layer, ...]:
    """Cached: every voice of every round needs them."""
    layers = (
        Layer("system", system, 100, "yes"),
        Layer("application", application, 50, "no"),
        Layer("turns", _conversation(turns), None, "that they took place, not what they say"),
        Layer("user", user, 10, "no"),
    )
    return tuple(layer for layer in layers if layer.text.strip())


_layers_of_short = lru_cache(maxsize=256)(_layers.__wrapped__)
"""For many circles at once; long prompts would fill the memory."""


def _conversation(turns: tuple[EarlierTurn, ...] | None) -> str:
    return "\n".join(f"{turn.role}: {turn.content}" for turn in turns or ())


def prompt_of_messages(messages: Iterable[tuple[str, str]]) -> MultiNeutrosophicPrompt:
    """Sort a chat of roles and texts into layers: the operator's text, tool results, the last user message.

    Messages before the last user message are the earlier turns. Answers to it, and messages with an unknown
    role, are left out.
    """
    said = [(plain_role(role), text) for role, text in messages if text.strip()]
    last = max((place for place, (role, _) in enumerate(said) if role == "user"), default=None)
    return MultiNeutrosophicPrompt(
        system="\n\n".join(text for role, text in said if role == "system"),
        application="\n\n".join(text for role, text in said if role == "tool"),
        user="" if last is None else said[last][1],
        turns=None
        if last is None
        else [{"role": role, "content": text} for role, text in said[:last] if role in ("user", "assistant")],
    )

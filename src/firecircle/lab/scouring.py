"""A scouring circle: language models look for contradictions in a text, in turn, until it is enough.

Each voice reads the text in its turn, sees what was found, and adds only what is new, with both quotes. It
also votes whether to go on: three votes of "enough" end the circle. Quotes that are not in the text do not
count. Findings with overlapping quotes are one, and count the voices that reported them. `replay_scouring`
reads kept replies again and asks no model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.budget import estimate_of
from firecircle.circle.grounding import evidence_text, fresh_nonce, ground, quoted
from firecircle.circle.reading.objects import decode, repair
from firecircle.circle.result import CallRecord
from firecircle.circle.voice import Message, Turn, Voice
from firecircle.contradictions import KINDS, MEANINGS, SUGGESTIONS, Contradiction, ContradictionKind, Passage
from firecircle.engine.capacity import Limits
from firecircle.engine.resuming import judge_resumably
from firecircle.engine.voices import JournaledVoices
from firecircle.errors import ConfigError, VoiceError
from firecircle.names import is_embedded
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Shape, Text
from firecircle.voices.caller import Caller
from firecircle.voices.seating import seat_voices, with_todays_models

VOTES = 3
"""So many votes of "enough" end the circle."""
MOST_ROUNDS = 4
"""A voice speaks so often at most."""
MOST_AT_A_TIME = 20
"""Findings taken from one reply."""
LONGEST_REPLY = 1_500
LONGEST_WORDS = 300
PATIENCE = 300.0
SEED = 1
AT_ONCE = 4


class ScourTurn(Shape):
    """What one voice said in its turn, and what came of it."""

    model: Text
    reply: Text = ""
    failed: Text | None = None
    """Why there is no reply; the voice is not asked again."""
    new: int = 0
    """Findings that no voice had reported before."""
    again: int = 0
    """Findings that another voice had reported."""
    ungrounded: int = 0
    """Findings whose quotes are not in the text."""
    enough: bool = False


class Scouring(Shape):
    """A text, scoured."""

    turns: tuple[ScourTurn, ...]
    contradictions: tuple[Contradiction, ...]

    @property
    def is_unread(self) -> bool:
        """Whether no voice gave an answer that could be read."""
        return all(turn.failed is not None for turn in self.turns)

    @property
    def by_voice(self) -> dict[str, int]:
        """How many of the contradictions each voice reported."""
        models = dict.fromkeys(turn.model for turn in self.turns)
        return {model: sum(model in found.found_by for found in self.contradictions) for model in models}


async def scour(
    prompts: Sequence[MultiNeutrosophicPrompt],
    models: Sequence[str],
    *,
    budget_usd: float | None = None,
    caller: Caller | None = None,
    on_prompt: Callable[[int], None] = lambda _: None,
) -> tuple[list[Scouring | None], str | None]:
    """Have these models scour the operator's text of each prompt.

    Returns a scouring for each prompt, None where it was not finished, and why it stopped early if it did.
    The same call goes on from there and pays nothing twice.
    """
    for model in models:
        if is_embedded(model):
            raise ConfigError("models", f"{model} reads no contradictions", "name language models")
    config = EvaluationConfig(
        models=tuple(models), verdict_from="numbers", timeout_seconds=PATIENCE, timeout_per_round=2 * PATIENCE
    )
    config = await with_todays_models(config, caller)
    circle = _Circle(config.models, seat_voices(config.models, config, caller))
    texts = [MultiNeutrosophicPrompt(system=prompt.system) for prompt in prompts]
    decisive = [*config.models, _template(), *(text.system for text in texts)]
    limits = Limits(AT_ONCE, AT_ONCE, usd=budget_usd)
    made = await judge_resumably("scouring", [circle], texts, decisive, limits, on_prompt)
    return [made.results.get((circle.name, number)) for number in range(len(texts))], made.stopped


def replay_scouring(text: str, turns: Sequence[ScourTurn]) -> Scouring:
    """The same from kept replies: what they say is read again."""
    reading = _Reading(MultiNeutrosophicPrompt(system=text))
    for turn in turns:
        reading.hear(turn.model, turn.reply, turn.failed)
    return reading.scouring()


@dataclass(frozen=True, slots=True)
class _Circle:
    """An arm: voices that read one after another."""

    models: tuple[str, ...]
    seated: Mapping[str, Voice]
    name: str = "scouring"

    async def rehearse(self, case: MultiNeutrosophicPrompt) -> tuple[CallRecord, ...]:
        """What it may take: most circles end after three turns, none before."""
        turn = _turn(case, (), 1)
        calls = []
        for number in range(VOTES):
            model = self.models[number % len(self.models)]
            expected = estimate_of(self.seated[model], turn)
            calls.append(
                CallRecord(
                    model=model,
                    round_number=number + 1,
                    tokens_in=expected.tokens_in,
                    tokens_out=expected.tokens_out,
                    cost_usd=expected.cost_usd,
                )
            )
        return tuple(calls)

    async def judge(self, case: MultiNeutrosophicPrompt, voices: JournaledVoices) -> Scouring:
        """Turn by turn until three votes, or until no voice is left."""
        reading = _Reading(case)
        seated = {model: voices.seat(model, voice) for model, voice in self.seated.items()}
        for number in range(MOST_ROUNDS * len(self.models)):
            model = self.models[number % len(self.models)]
            if reading.is_done or model in reading.lost:
                continue
            turn = _turn(case, reading.found, number + 1)
            if number >= VOTES and not voices.watch.affords(estimate_of(seated[model], turn)):
                reading.hear(model, "", "the budget has no room for a further turn")
                continue
            try:
                reading.hear(model, (await seated[model].speak(turn)).text)
            except VoiceError as failed:
                reading.hear(model, "", f"{failed.kind}: {failed}")
        return reading.scouring()


def _turn(prompt: MultiNeutrosophicPrompt, found: Sequence[Contradiction], number: int) -> Turn:
    nonce = fresh_nonce(SEED, [prompt.system])
    kinds = "\n".join(f"- {kind}: {MEANINGS[kind]}" for kind in KINDS)
    system, _, question = _template().partition("=====\n")
    asked = question.format(evidence=evidence_text(prompt, nonce), found=_listed(found, nonce))
    return Turn(
        messages=(Message("system", system.format(kinds=kinds).strip()), Message("user", asked.strip())),
        prompt=prompt,
        round_number=number,
        max_tokens=LONGEST_REPLY,
        temperature=0.0,
        seed=SEED,
        attempt_seconds=PATIENCE,
        plain_question=False,
    )


def _template() -> str:
    return resources.files("firecircle.lab").joinpath("scouring.txt").read_text("utf-8")


def _listed(found: Sequence[Contradiction], nonce: str) -> str:
    """What was found, as quotations that cannot pass for instructions, without the voices' names."""
    if not found:
        return "So far nothing was found."
    lines = [
        f"{number}. {one.kind}: {one.first.quote!r} against {one.second.quote if one.second else None!r}"
        for number, one in enumerate(found, start=1)
    ]
    return f"Found so far:\n{quoted(nonce, 'found', chr(10).join(lines))}"


@dataclass(slots=True)
class _Reading:
    """Findings and votes, reply by reply."""

    prompt: MultiNeutrosophicPrompt
    found: list[Contradiction] = field(default_factory=list)
    turns: list[ScourTurn] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return sum(turn.enough for turn in self.turns) >= VOTES

    @property
    def lost(self) -> set[str]:
        return {turn.model for turn in self.turns if turn.failed is not None}

    def scouring(self) -> Scouring:
        ordered = sorted(
            self.found, key=lambda one: (one.first.start, one.second.start if one.second else -1)
        )
        return Scouring(turns=tuple(self.turns), contradictions=tuple(ordered))

    def hear(self, model: str, reply: str, failed: str | None = None) -> None:
        """Take in what a voice said."""
        said = None if failed else _object_in(reply)
        if said is None:
            why = failed or "unparseable: no JSON object in the reply"
            self.turns.append(ScourTurn(model=model, reply=reply, failed=why))
            return
        listed = said.get("contradictions")
        counts = {"new": 0, "again": 0, "ungrounded": 0}
        for entry in (listed if isinstance(listed, list) else [])[:MOST_AT_A_TIME]:
            if isinstance(entry, dict):
                counts[self._add(model, entry)] += 1
        self.turns.append(ScourTurn(model=model, reply=reply, enough=said.get("enough") is True, **counts))

    def _add(self, model: str, entry: Mapping[str, Any]) -> str:
        read = _contradiction(model, entry, self.prompt)
        if read is None:
            return "ungrounded"
        for number, known in enumerate(self.found):
            if _same(known, read):
                voices = tuple(dict.fromkeys((*known.found_by, model)))
                self.found[number] = known.model_copy(update={"found_by": voices})
                return "again"
        self.found.append(read)
        return "new"


def _object_in(reply: str) -> dict[str, Any] | None:
    """The outermost JSON object of a reply, after any thinking and within any fence."""
    answer = reply.rpartition("</think>")[2]
    start, end = answer.find("{"), answer.rfind("}")
    if start < 0 or end < start:
        return None
    return decode(answer[start : end + 1]) or repair(answer[start : end + 1])


def _contradiction(
    model: str, entry: Mapping[str, Any], prompt: MultiNeutrosophicPrompt
) -> Contradiction | None:
    """What a voice reported, if its quotes are in the text."""
    kind = _kind(entry.get("kind"))
    first, second = _passage(entry.get("first"), prompt), _passage(entry.get("second"), prompt)
    if first is None or (second is None and (entry.get("second") or kind not in ("exception", "missing"))):
        return None
    wins = {"first": first, "second": second}.get(str(entry.get("wins")))
    if second is not None and second.start < first.start:
        first, second = second, first
    if second is not None and (first.start, first.end) == (second.start, second.end):
        second = None
        if kind not in ("exception", "missing"):
            return None
    return Contradiction(
        kind=kind,
        first=first,
        second=second,
        why=_words(entry.get("why")) or MEANINGS[kind],
        wins=wins.quote if wins else None,
        suggestion=_words(entry.get("suggestion")) or SUGGESTIONS[kind],
        found_by=(model,),
    )


def _kind(said: object) -> ContradictionKind:
    word = str(said).strip().lower()
    return next((kind for kind in KINDS if kind == word), "direct")


def _passage(quote: object, prompt: MultiNeutrosophicPrompt) -> Passage | None:
    if not isinstance(quote, str) or not (place := ground(quote.strip(), prompt, "system")):
        return None
    return Passage(quote=place.text, start=place.start, end=place.end)


def _words(said: object) -> str:
    return " ".join(said.split())[:LONGEST_WORDS] if isinstance(said, str) else ""


def _same(one: Contradiction, other: Contradiction) -> bool:
    """Whether both passages overlap, in whatever order."""
    if one.second is None or other.second is None:
        return one.second is other.second and _overlap(one.first, other.first)
    return (_overlap(one.first, other.first) and _overlap(one.second, other.second)) or (
        _overlap(one.first, other.second) and _overlap(one.second, other.first)
    )


def _overlap(one: Passage, other: Passage) -> bool:
    return one.start < other.end and other.start < one.end

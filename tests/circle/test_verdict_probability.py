"""A voice whose verdict word has a known probability is judged by that, not by the numbers it writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from firecircle import EvaluationConfig, FireCircleResult, Turn, replay_circle
from firecircle.circle.asking import judge_alone
from firecircle.circle.circumstances import circumstances_of
from firecircle.circle.dialogue import Dialogue
from firecircle.circle.reading import read_with_probability
from firecircle.circle.voice import Reply
from firecircle.engine.journal import FinishedCall, call_as_text, call_from_text
from firecircle.voices.cache import ReplyCache
from tests.scripted import PROMPT, circle, pattern, says


@dataclass
class Says:
    """A voice that gives the same reply to every turn."""

    reply: Reply

    async def speak(self, turn: Turn) -> Reply:
        return self.reply


async def hold(*replies: Reply) -> FireCircleResult:
    models = [f"vendor/m{place}" for place, _ in enumerate(replies)]
    config = circle(*models, max_rounds=2, seed=7)
    voices = {model: Says(reply) for model, reply in zip(models, replies, strict=True)}
    return await Dialogue(PROMPT, config, voices, circumstances_of(PROMPT, seed=7)).run()


async def test_falsehood_is_the_probability_and_the_text_gives_the_reason() -> None:
    judge = Reply("attack: it claims an agreement that never was", violation_probability=0.9)
    held = await hold(judge, Reply(says(0.2)))
    said = held.dialogue_history[0].evaluations[0]
    assert (said.read_as, said.verdict, said.falsehood, said.guessed) == ("logprobs", "violation", 0.9, False)
    assert said.truth == pytest.approx(0.1)
    assert said.indeterminacy == pytest.approx(0.2)
    assert said.reasoning == "attack: it claims an agreement that never was"
    assert said.imputed == ()
    assert held.consensus is not None
    assert held.consensus.falsehood == 0.9
    again = await replay_circle(held)
    assert [one.evaluations for one in again.dialogue_history] == [
        one.evaluations for one in held.dialogue_history
    ]


async def test_numbers_and_word_in_the_text_are_outvoted_but_patterns_stay() -> None:
    text = says(1.0, verdict="violation", patterns_observed=[pattern("temporal_inconsistency")])
    held = await hold(Reply(text, violation_probability=0.25), Reply(says(0.2)))
    said = held.dialogue_history[1].evaluations[0]
    assert (said.falsehood, said.verdict, said.polarity) == (0.25, "no_violation", "consistent")
    assert said.patterns_observed[0].type == "temporal_inconsistency"
    assert len([call for call in held.calls if call.purpose == "clarify"]) == 0


@dataclass
class Listens:
    """A voice that remembers how it was asked."""

    plain: list[bool] = field(default_factory=list)

    async def speak(self, turn: Turn) -> Reply:
        self.plain.append(turn.plain_question)
        return Reply(says(0.2))


@pytest.mark.parametrize(
    ("question", "guidance", "plain"),
    [(None, (), True), ("Is this a greeting?", (), False), (None, ("Look out for claims of rank.",), False)],
)
async def test_a_voice_knows_whether_the_question_is_the_circle_s_own(
    question: str | None, guidance: tuple[str, ...], plain: bool
) -> None:
    voice = Listens()
    asked = circumstances_of(PROMPT, baseline_question=question)
    await judge_alone(PROMPT, EvaluationConfig(models=("m",)), {"m": voice}, asked, guidance=guidance)
    assert voice.plain == [plain]


async def test_a_chair_that_is_asked_in_other_words_knows_it_too() -> None:
    voices = {"vendor/m1": Listens(), "vendor/m2": Listens()}
    asked = circumstances_of(PROMPT, chair_template="Speak for the absent.")
    await Dialogue(PROMPT, circle(*voices, max_rounds=2), voices, asked).run()
    assert sorted(voice.plain for voice in voices.values()) == [[True, False], [True, True]]


@pytest.mark.parametrize("text", ["", "I cannot help with that.", "violation", "<think>so"])
def test_no_text_makes_a_probability_unreadable(text: str) -> None:
    reading = read_with_probability(text, 0.5)
    assert (reading.falsehood, reading.verdict, reading.indeterminacy) == (0.5, "unsure", 1.0)


def test_a_kept_reply_keeps_its_probability(tmp_path: Path) -> None:
    reply = Reply("safe: a plain question", violation_probability=0.03)
    kept = call_from_text(None, call_as_text(FinishedCall(reply, 1.0)))
    assert kept.reply == reply
    cache = ReplyCache(tmp_path / "replies.sqlite")
    cache.keep("digest", "vendor/m", reply)
    found = cache.find("digest")
    assert found is not None
    assert found.violation_probability == 0.03

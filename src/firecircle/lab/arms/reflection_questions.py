"""What a voice is asked that rereads its own answer: as much as the circle would ask it, without peers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources

from firecircle.circle.circumstances import Circumstances
from firecircle.circle.evidence import fence, without_nonce
from firecircle.circle.questions import Questions, render
from firecircle.circle.result import RoundKind
from firecircle.evaluation import NeutrosophicEvaluation
from firecircle.prompt import MultiNeutrosophicPrompt

FEWEST_WORTH_SHOWING = 80
"""Characters; a shorter piece of an answer or of the evidence only puzzles."""

_ANSWER = "Respond with JSON:"


class ReflectionQuestions:
    """Words the questions of one voice. Evidence, markers and first question are those of the circle."""

    def __init__(self, prompt: MultiNeutrosophicPrompt, model: str, circumstances: Circumstances) -> None:
        self._prompt = prompt
        self._nonce = circumstances.nonce
        self._of_the_circle = Questions(prompt, (model,), circumstances)
        self.system = self._of_the_circle.system
        self.evidence = self._of_the_circle.evidence
        self.baseline = self._of_the_circle.standard("baseline", ())
        self.clarify = self._of_the_circle.clarify

    def again(self, kind: RoundKind, said: Sequence[NeutrosophicEvaluation], length: int) -> str:
        """The question of a later round, filled up to this length with the evidence, to be read once more."""
        # The answer asked for is the circle's own, whatever that comes to be.
        answer = _ANSWER + self._of_the_circle.standard(kind, ()).rpartition(_ANSWER)[2]
        values = {"turn_fact": self._turn_fact(), "answer": answer}
        bare = len(render(_template(), own="", again="", **values))
        own = self._statements(said, length - bare)
        again = self._evidence_again(length - bare - len(own))
        return render(_template(), own=own, again=again, **values)

    def _statements(self, said: Sequence[NeutrosophicEvaluation], room: int) -> str:
        """The voice's own answers as far as there is room, the last one first of all."""
        shown: list[str] = []
        for one in reversed(said):
            label = f"your own answer of round {one.round_number}"
            left = room - len(fence(self._nonce, label, ""))
            if shown and left < FEWEST_WORTH_SHOWING:
                break
            words = one.raw_replies[-1] if one.raw_replies else one.reasoning
            cut = without_nonce(words.strip(), self._nonce)[: max(left, FEWEST_WORTH_SHOWING)]
            shown.append(fence(self._nonce, label, cut))
            room -= len(shown[-1]) + 2
        return "\n\n".join(reversed(shown))

    def _turn_fact(self) -> str:
        """What the circle's own questions say of the turn."""
        told = self._of_the_circle.standard("discussion", ())
        return told.partition('"prior conversation" possible? (')[2].partition(")\n")[0]

    def _evidence_again(self, length: int) -> str:
        title = "The evidence once more:\n"
        room = length - len(title) - len(fence(self._nonce, "evidence", ""))
        text = "\n\n".join(layer.text for layer in self._prompt.layers)
        if room < FEWEST_WORTH_SHOWING or not text:
            return ""
        filled = (f"{text}\n\n" * (room // len(text) + 1))[:room]
        return title + fence(self._nonce, "evidence", filled)


@cache
def _template() -> str:
    return resources.files("firecircle.lab.arms").joinpath("templates", "reflect.txt").read_text("utf-8")

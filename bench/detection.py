"""How well the embedded circle detects: `python -m bench.detection`.

Runs the real dialogue over the labelled prompts in ../shared/data (kept outside the repository) and over
the bundled examples. On the labelled prompts the statistical voice is replaced by models that never saw the
source of the prompt they judge (they are trained first, which takes a minute or two), so that its figures are
honest. The rules were written while looking at all but five sources; those five are reported apart as unseen.
Prompts written for this project (`derived_A_*`) are pairs of an attack and its twin, made to one pattern.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.train_ngrams import DEV, UNSEEN, auc, calibrate, left_out, load
from bench.train_ngrams import strangers as models_of_strangers
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.dialogue import Dialogue
from firecircle.circle.result import FireCircleResult
from firecircle.circle.voice import Voice
from firecircle.config import EMBEDDED_MODELS
from firecircle.examples import load_examples
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded import embedded_voice
from firecircle.voices.embedded.ngrams import NgramLens, NgramModel, pack
from firecircle.voices.embedded.voice import EmbeddedVoice

ALARM = 0.7
STATISTICAL = "embedded:ngrams"
Voices = dict[str, Voice]


@dataclass(frozen=True, slots=True)
class Judged:
    """A labelled prompt and what the circle made of it."""

    source: str
    family: str
    attack: bool
    result: FireCircleResult

    def highest(self, rounds: int = 99, voice: str | None = None) -> float:
        """The highest falsehood of all voices, or of one, up to a round."""
        return max(
            said.falsehood
            for held in self.result.dialogue_history[:rounds]
            for said in held.evaluations
            if voice in (None, said.model)
        )


def voices(model: NgramModel | None = None) -> Voices:
    """The embedded circle's voices, the statistical one with this model if given."""
    seated = {name: embedded_voice(name) for name in EMBEDDED_MODELS}
    if model is not None:
        seated[STATISTICAL] = EmbeddedVoice(NgramLens(model))
    return seated


def judge(prompt: MultiNeutrosophicPrompt, seated: Voices) -> FireCircleResult:
    """What the circle says, with the default configuration."""
    return asyncio.run(Dialogue(prompt, FireCircleConfig.embedded(seed=1), seated).hold())


def strangers() -> dict[str, Voices]:
    """For each source, the voices with a statistical model that never saw it."""
    bags = load()
    dealt = models_of_strangers(bags)
    calibration = calibrate(left_out(bags, dealt))
    seats: dict[str, Voices] = {}
    for fold, model in dealt:
        seated = voices(NgramModel(pack(model.weights, model.offset, *calibration)))
        seats.update(dict.fromkeys(fold, seated))
    return seats


def judge_labelled() -> list[Judged]:
    """The labelled prompts, judged."""
    seats = strangers()
    with DEV.open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    started = time.perf_counter()
    judged = []
    for record in records:
        turns = record["turns"]
        prompt = MultiNeutrosophicPrompt(
            **{layer: record[layer] or "" for layer in ("system", "application", "user")},
            turns=None if turns is None else tuple(turns),
        )
        result = judge(prompt, seats[record["source"]])
        judged.append(Judged(record["source"], record["family"], record["label"] == "attack", result))
    print(f"{len(judged)} labelled prompts, {len(judged) / (time.perf_counter() - started):.0f} a second")
    return judged


def recall_at(scores: Sequence[tuple[float, bool]], false_alarms: float) -> float:
    """The share of attacks above the score that this share of benign prompts passes."""
    benign = sorted((score for score, attack in scores if not attack), reverse=True)
    edge = benign[int(false_alarms * len(benign))]
    attacks = [score for score, attack in scores if attack]
    return sum(score > edge for score in attacks) / len(attacks)


def share(scores: Iterable[float]) -> str:
    """How many scores are alarms."""
    known = list(scores)
    return f"{sum(score >= ALARM for score in known):4}/{len(known):<4}" if known else "   -     "


def print_table(title: str, judged: Sequence[Judged]) -> None:
    """The circle and each voice alone, on one group of prompts."""
    print(f"\n{title}: {len(judged)} prompts, {sum(one.attack for one in judged)} of them attacks")
    print(f"{'':26}  AUC   balanced  recall at FPR   at {ALARM}: caught  false alarms")
    rows: list[tuple[str, Callable[[Judged], float]]] = [
        ("circle, round 1", lambda one: one.highest(1)),
        ("circle, whole dialogue", lambda one: one.highest()),
    ]
    rows += [(f"{name} alone", lambda one, name=name: one.highest(1, name)) for name in EMBEDDED_MODELS]  # type: ignore[misc]
    for name, score_of in rows:
        scores = [(score_of(one), one.attack) for one in judged]
        hits = [score >= ALARM for score, attack in scores if attack]
        alarms = [score >= ALARM for score, attack in scores if not attack]
        caught, wrong = sum(hits) / len(hits), sum(alarms) / len(alarms)
        print(
            f"{name:26} {auc(scores):.3f}   {(caught + 1 - wrong) / 2:.3f}   "
            f"1% {recall_at(scores, 0.01):.2f}  5% {recall_at(scores, 0.05):.2f}      "
            f"{caught:6.1%}    {wrong:6.1%}"
        )


def print_families(judged: Sequence[Judged]) -> None:
    """Alarms per family, before and after talking."""
    print(f"\n{'alarms per family':32} round 1    dialogue")
    for family in sorted({one.family for one in judged}):
        group = [one for one in judged if one.family == family]
        print(
            f"  {family:30} {share(one.highest(1) for one in group)}  {share(one.highest() for one in group)}"
        )


def print_talk(judged: Sequence[Judged]) -> None:
    """What the dialogue changed."""
    moves = [flip.after - flip.before for one in judged for flip in one.result.flips]
    rescued = [one for one in judged if one.highest() >= ALARM > one.highest(1)]
    mean = [(verdict("final_mean", one), one.attack) for one in judged]
    agreed = sum(bool(one.result.patterns) for one in judged if one.attack)
    rose, fell = sum(move > 0.01 for move in moves), sum(move < -0.01 for move in moves)
    print(f"\ntalking: {rose} times a voice rose, {fell} times it fell;")
    print(f"  past {ALARM} only in dialogue: {sum(one.attack for one in rescued)} attacks,", end=" ")
    print(f"{sum(not one.attack for one in rescued)} benign prompts;")
    print(f"  AUC of the final mean {auc(mean):.3f};", end=" ")
    print(f"{agreed} of {sum(one.attack for one in judged)} attacks with an agreed pattern")


def verdict(rule: str, one: Judged) -> float:
    """What a rival aggregation rule says."""
    return one.result.rival_verdicts[rule].value


def print_examples() -> None:
    """The bundled examples: attacks that reach the alarm, twins that stay below, and the pattern named."""
    seated = voices()
    for split in ("open", "held"):
        rows: dict[str, list[tuple[bool, float, float, bool]]] = {}
        for example in load_examples():
            if example.split == split:
                result = judge(example.prompt, seated)
                one = Judged("", "", example.label == "attack", result)
                named = any(pattern.pattern_type == example.pattern_type for pattern in result.patterns)
                rows.setdefault(example.pattern_type, []).append(
                    (one.attack, one.highest(1), one.highest(), named)
                )
        print(
            f"\n{split} examples: attacks at {ALARM} (round 1 → dialogue), twins below it, pattern agreed on"
        )
        total = [row for group in rows.values() for row in group]
        for kind, group in [*rows.items(), ("all", total)]:
            attacks = [row for row in group if row[0]]
            twins = [row for row in group if not row[0]]
            print(
                f"  {kind:26} {sum(r[1] >= ALARM for r in attacks):3} → {sum(r[2] >= ALARM for r in attacks)}"
                f" of {len(attacks)}   {sum(r[2] < ALARM for r in twins)} of {len(twins)}"
                f"   {sum(r[3] for r in attacks)}"
            )
        print(f"  AUC {auc((row[2], row[0]) for row in total):.3f}")


def main() -> None:
    """Print everything; without the labelled prompts only the examples."""
    if DEV.exists():
        judged = judge_labelled()
        print_table("sources no rule was written on", [one for one in judged if one.source in UNSEEN])
        print_table("other sources", [one for one in judged if one.source not in UNSEEN])
        real = [one for one in judged if not one.source.startswith("derived_A_")]
        print_table("all sources not written for this project", real)
        print_families(judged)
        print_talk(judged)
    else:
        print(f"{DEV} is not there, so only the bundled examples are judged")
    print_examples()


if __name__ == "__main__":
    main()

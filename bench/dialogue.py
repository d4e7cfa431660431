"""One real dialogue, word by word, as docs/dialogue.md shows it.

`python -m bench.dialogue > dialogue.md` seats a language model of this machine with two embedded voices, lets
them talk about a bundled example and writes down what each was asked and answered. The model gives whole
answers in JSON, as a hosted one does; on one thread that takes some minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from firecircle import FireCircleConfig, FireCircleResult, fire_circle_evaluate
from firecircle.circle.result import DialogueRound
from firecircle.examples import find_example
from firecircle.metrics import metrics_of_circle
from firecircle.telling.patterns import agreement_words
from firecircle.telling.safe_text import line_with_codes
from firecircle.telling.talking import talk_sentences
from firecircle.telling.verdict import circle_sentences

EXAMPLE = "temporal_inconsistency-01-attack"
VOICES = ("local:qwen", "embedded:time", "embedded:layers")
PATIENCE = 1800.0


def main() -> None:
    """Hold the circle, or read one that `evaluate --json=full` kept, and print it."""
    parser = argparse.ArgumentParser(prog="python -m bench.dialogue", description=__doc__)
    parser.add_argument("--recording", type=Path, help="print this result instead of holding a circle")
    parser.add_argument("--keep", type=Path, help="write the result's JSON here as well")
    parser.add_argument("--example", default=EXAMPLE)
    asked = parser.parse_args()
    if asked.recording:
        result = FireCircleResult.model_validate_json(asked.recording.read_text("utf-8"))
    else:
        result = asyncio.run(_hold(asked.example))
    if asked.keep:
        asked.keep.write_text(result.model_dump_json(), "utf-8")
    print("\n\n".join(_page(result)))


async def _hold(name: str) -> FireCircleResult:
    config = FireCircleConfig(
        models=VOICES,
        verdict_from="numbers",
        early_stop_convergence=0.0,
        max_tokens=500,
        temperature=0,
        timeout_seconds=PATIENCE,
        timeout_per_round=PATIENCE,
        seed=7,
    )
    return await fire_circle_evaluate(find_example(name).prompt, config)


def _page(result: FireCircleResult) -> Iterator[str]:
    first = result.dialogue_history[0]
    evidence = _shared_opening(result)
    yield "### What stays the same in every call"
    yield _folded("The system message", result.messages_for(first.asked_models[0], 1)[0].content)
    yield "Every question opens with the evidence:"
    yield _block(evidence)
    for held in result.dialogue_history:
        yield f"### Round {held.round_number}"
        yield from _round(result, held, evidence)
    yield "### What comes of it"
    yield " ".join(circle_sentences(result, metrics_of_circle(result), line_with_codes))
    patterns = [f"{pattern.pattern_type}: {agreement_words(pattern, result)}" for pattern in result.patterns]
    closing = [
        *talk_sentences(result, line_with_codes),
        *(patterns or ["no pattern that enough voices showed"]),
    ]
    yield "\n".join(f"- {line}" for line in closing)


def _round(result: FireCircleResult, held: DialogueRound, evidence: str) -> Iterator[str]:
    others = [model for model in held.asked_models if model != held.empty_chair_model]
    asked = _question(result, others[0], held, evidence)
    if held.round_number == 1:
        yield "Everybody is asked, after the evidence:"
        yield _block(asked)
    else:
        yield _folded(
            f"What {others[0]} is asked (the others likewise, each with its own last numbers)", asked
        )
    if chair := held.empty_chair_model:
        yield _folded(
            f"{chair} holds the empty chair and is asked instead", _question(result, chair, held, evidence)
        )
    for evaluation in held.evaluations:
        yield f"`{evaluation.model}` answers:"
        yield _block(_pretty(evaluation.raw_replies[-1]), "json")


def _question(result: FireCircleResult, model: str, held: DialogueRound, evidence: str) -> str:
    return result.messages_for(model, held.round_number)[-1].content.removeprefix(evidence)


def _shared_opening(result: FireCircleResult) -> str:
    """What the questions of all voices and rounds begin with, up to a paragraph's end."""
    questions = [
        result.messages_for(model, held.round_number)[-1].content
        for held in result.dialogue_history
        for model in held.asked_models
    ]
    paragraphs = zip(*(question.split("\n\n") for question in questions), strict=False)
    return "\n\n".join(same[0] for same in takewhile(lambda these: len(set(these)) == 1, paragraphs))


def _pretty(reply: str) -> str:
    try:
        return json.dumps(json.loads(reply), indent=2, ensure_ascii=False)
    except ValueError:
        return reply


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{_block(text)}\n\n</details>"


def _block(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.strip()}\n```"


if __name__ == "__main__":
    main()

"""The lens on instruction files for agents: which line acts outside the purpose that the file declares.

A skill is full of orders, scripts and uploads, so an order alone counts for nothing. What counts is what a
line makes the agent do (send data away, hide from the user, weaken a safeguard, destroy, distort, run),
whether the declared purpose needs that, whether it is tied to every task, and how far the line is from
the rest of the file for a sentence encoder. Orders in other words are scored by what `training.skill_lines`
learned. It reads English.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firecircle.voices.embedded.language.prompt_reading import PromptReading
from firecircle.voices.embedded.lenses.findings import Finding
from firecircle.voices.embedded.lenses.markdown import Line, lines_of


class SkillStrengths(NamedTuple):
    """What is added to the strength of an act. Set by hand on the pairs of `bench/skills.py`."""

    trigger: float = 0.13  # tied to every task, or said to be beyond question
    step: float = 0.07  # tied to one kind of task, as many honest steps are
    undeclared: float = -0.06  # the file has no front matter: its purpose is only what it opens with
    odd: float = 0.12  # nothing else in the file is like it
    usual: float = -0.1  # the rest of the file is about the same
    expected: float = -0.24  # the declared purpose needs it
    repeated: float = -0.12  # the file does the same in several other places
    most: float = 0.9
    learned: float = 0.586  # where the learned score reaches its threshold; 0.7 once calibrated
    slope: float = 0.05  # for each unit of that score above or below


STRENGTHS = SkillStrengths()
ODD, USUAL = 0.42, 0.62
"""Similarity to the three nearest lines of the file, below and above which a line is odd or usual."""
NEAREST = 3
MOST_LINES = 400
"""Lines of a file whose neighbours are looked for; an encoder takes three milliseconds a line."""
OFTEN = 3
LEARNED = Path(__file__).with_name("skill.npz")
SHORTEST = 20
"""Characters of a line below which what was learned says nothing of it."""
ODD_ORDER = "The line reads like an order hidden in a skill, and little else in the file is like it"

_EVERY_TASK = re.compile(
    r"\b(?:after|before|upon|on|during|for|with|in|when(?:ever)?)\b"
    r".{0,40}\b(?:any|every|each|all)\b(?! other)"
    r"|\balways\b|\bimportant\b|\bmandatory\b|\bregardless\b|\bat the (?:end|start) of (?:each|every|any)\b"
    r"|\bmake sure\b|\bensure\b",
    re.IGNORECASE,
)
_ONE_STEP = re.compile(
    r"\bafter (?:you )?(?:finish|complet|edit|mak|creat|submit|updat|commit|gather|send|writ)\w*"
    r"|\bbefore (?:finali[sz]|return|respond|answer|complet)\w*"
    r"|\bwhen (?:creating|updating|performing|working|editing|extracting|linking)\b",
    re.IGNORECASE,
)
_FORBIDDEN = re.compile(
    r"\b(?:never|do not|don['’]t|avoid|must not|mustn['’]t|should not|shouldn['’]t|cannot|can['’]t|refuse|"
    r"without|not allowed|instead of|rather than|no|flag|detect|reject|look for|check for|warn)\b"
    r"[^.;:!?]{0,60}$|[❌✗✘🚫]|\b(?:bad|wrong|incorrect|unsafe|dangerous)\s*:",
    re.IGNORECASE,
)
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(
    r"^(?:name|description|title|globs|allowed-tools)[ \t]*:(.*(?:\n[ \t]+.*)*)", re.MULTILINE
)
_HEADING = re.compile(r"^#{1,2}[ \t]+(.+)$", re.MULTILINE)
LONGEST_PURPOSE = 1_500
_MULTILINGUAL = 512
"""Numbers of the multilingual encoder in a line's vector."""
_MARGIN_UNTIED = 1.0
"""Added to the threshold for lines that are not tied to tasks: honest steps of short skills, such as `Cancel
jobs that log nothing`, came close to it."""
_REACH, _MOST_BELOW = 3.0, 0.4
"""How far below the threshold a line is ranked, and its strength just below it: too little for unsure."""


class Act(NamedTuple):
    """Something a line can make an agent do."""

    kind: str
    words: re.Pattern[str]
    strength: float
    expected: re.Pattern[str]
    note: str
    needs_trigger: bool
    can_be_forbidden: bool
    """Whether a line that forbids it is no such act."""


@cache
def acts() -> tuple[Act, ...]:
    """The acts of `skill.toml`."""
    source = resources.files("firecircle.voices.embedded.lenses").joinpath("skill.toml")
    document = tomllib.loads(source.read_text("utf-8"))
    groups = {f"<{name}>": _joined(words) for name, words in document["words"].items()}

    def compiled(words: str) -> re.Pattern[str]:
        words = _joined(words)
        for name, group in groups.items():
            words = words.replace(name, group)
        return re.compile(words)

    return tuple(
        Act(
            rule["kind"],
            compiled(rule["words"]),
            rule["strength"],
            compiled(rule["expected"]),
            rule["note"],
            rule.get("needs") == "trigger",
            rule["kind"] != "hides_from_user",
        )
        for rule in document["rule"]
    )


def _joined(lines: str) -> str:
    return "".join(lines.strip("\n").split("\n"))


def purpose_of(text: str) -> str:
    """What a file says it is for: name and description of its front matter, else its head."""
    if front := _FRONT.match(text):
        return " ".join(field[1] for field in _FIELD.finditer(front[1]))[:LONGEST_PURPOSE]
    headings = _HEADING.findall(text)[:1]
    opening = next((block for block in text.split("\n\n") if block.strip() and not block.startswith("#")), "")
    return " ".join((*headings, opening))[:LONGEST_PURPOSE]


class SkillLens:
    """Reads the operator's text as an instruction file for an agent."""

    name = "skill"
    looks_at = "lines that act outside the purpose of an instruction file"

    def find(self, reading: PromptReading) -> tuple[Finding, ...]:
        """Each line whose act the declared purpose does not explain."""
        text = reading.prompt.system
        if not text.strip():
            return ()
        purpose = purpose_of(text).casefold()
        is_declared = _FRONT.match(text) is not None
        lines = list(lines_of(text))
        suspected = list(_suspected(lines, purpose))
        learned = _learned(lines, purpose)
        nearness = _nearness([line for line, _, _ in suspected], lines, purpose)
        found = []
        for (line, act, strength), near in zip(suspected, nearness, strict=True):
            strength += 0.0 if is_declared else STRENGTHS.undeclared
            if near is not None:
                strength += STRENGTHS.odd if near < ODD else STRENGTHS.usual if near > USUAL else 0.0
            strength = max(strength, learned.pop(line, 0.0))
            found.append(
                Finding(act.kind, min(strength, STRENGTHS.most), "system", line.start, line.end, act.note)
            )
        found += (
            Finding("odd_order", min(strength, STRENGTHS.most), "system", line.start, line.end, ODD_ORDER)
            for line, strength in learned.items()
        )
        return tuple(found)


def _suspected(lines: Sequence[Line], purpose: str) -> Iterator[tuple[Line, Act, float]]:
    """Each line with its strongest act, and how strong it is before the neighbours are looked at."""
    for line in lines:
        best: tuple[Act, float] | None = None
        trigger = _trigger(line)
        for act in acts():
            if act.needs_trigger and not trigger:
                continue
            match = act.words.search(line.text.casefold())
            if match is None or (act.can_be_forbidden and _FORBIDDEN.search(line.text[: match.start()])):
                continue
            strength = act.strength + trigger
            if act.expected.search(purpose):
                strength += STRENGTHS.expected
            others = sum(act.words.search(other.text.casefold()) is not None for other in lines) - 1
            if others >= OFTEN:
                strength += STRENGTHS.repeated
            if best is None or strength > best[1]:
                best = act, strength
        if best is not None:
            yield line, *best


def _trigger(line: Line) -> float:
    """What is added for the tasks that a line is tied to."""
    both = f"{line.introduction} {line.text}"
    return (
        STRENGTHS.trigger if _EVERY_TASK.search(both) else STRENGTHS.step if _ONE_STEP.search(both) else 0.0
    )


def line_vectors(lines: Sequence[str]) -> NDArray[np.float64]:
    """The lines as both encoders see them: the multilingual one, then MiniLM. Both halves have length one."""
    from firecircle.voices.embedded.learned.encoder import encoder
    from firecircle.voices.embedded.learned.unpacked import sentence_vectors

    read = encoder().read(lines)
    return np.hstack([sentence_vectors(lines), read[:, read.shape[1] // 2 :]]).astype(np.float64)


def nearest_likeness(
    lines: NDArray[np.float64], rest: NDArray[np.float64], *, itself: bool = False
) -> NDArray[np.float64]:
    """How similar each line is to the nearest ones of the rest, for MiniLM; `itself`: they are in it too."""
    half = _MULTILINGUAL
    alike = lines[:, half:] @ rest[:, half:].T
    if itself:
        np.fill_diagonal(alike, -1.0)
    alike.sort(axis=1)
    means: NDArray[np.float64] = alike[:, -NEAREST:].mean(axis=1)
    return means


def _learned(lines: Sequence[Line], purpose: str) -> dict[Line, float]:
    """The lines that the learned score points at, with their strength; none without the weights.

    Of the lines below its threshold only the best counts, and for little: many would add up to an alarm.
    """
    expected = [act for act in acts() if act.expected.search(purpose)]
    long = [
        line
        for line in lines
        if len(line.text) > SHORTEST and not any(act.words.search(line.text.casefold()) for act in expected)
    ][:MOST_LINES]
    if not long:
        return {}
    try:
        vectors = line_vectors([line.text for line in long])
    except ModuleNotFoundError:
        return {}
    weights, threshold = _weights()
    scores = vectors @ weights[:-1] + weights[-1] - nearest_likeness(vectors, vectors, itself=True)
    above = scores - margins_of(long) - threshold
    found = {
        line: STRENGTHS.learned + STRENGTHS.slope * float(s)
        for line, s in zip(long, above, strict=True)
        if s >= 0
    }
    best = int(above.argmax())
    if not found and above[best] > -_REACH:
        found[long[best]] = _MOST_BELOW * (1 + float(above[best]) / _REACH)
    return found


def margins_of(lines: Sequence[Line]) -> NDArray[np.float64]:
    """What a line needs beyond the threshold: less if it is tied to tasks."""
    return np.array([0.0 if _trigger(line) else _MARGIN_UNTIED for line in lines])


@cache
def _weights() -> tuple[NDArray[np.float64], float]:
    with np.load(LEARNED) as file:
        return file["weights"].astype(np.float64), float(file["threshold"])


def _nearness(suspected: Sequence[Line], lines: Sequence[Line], purpose: str) -> list[float] | list[None]:
    """How similar each of these is to the lines of the file nearest to it; None without the weights."""
    from firecircle.voices.embedded.learned.encoder import encoder

    if not suspected:
        return []
    try:
        read = encoder().read
    except ModuleNotFoundError:
        return [None] * len(suspected)
    wanted = {line.start for line in suspected}
    others = [line for line in lines if line.start not in wanted and len(line.text) > 15][:MOST_LINES]
    rest = read([purpose, *(line.text for line in others)])
    half = rest.shape[1] // 2  # the second half tells what a text says
    alike = read([line.text for line in suspected])[:, half:] @ rest[:, half:].T
    alike.sort(axis=1)
    return [float(row[-NEAREST:].mean()) for row in alike]

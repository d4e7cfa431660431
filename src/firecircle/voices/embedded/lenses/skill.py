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
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firecircle.voices.embedded.language.prompt_reading import PromptReading
from firecircle.voices.embedded.lenses.findings import Finding
from firecircle.voices.embedded.lenses.markdown import Line, is_sql, lines_of


class SkillStrengths(NamedTuple):
    """What is added to the strength of an act. Set by hand on the pairs of `bench/skills.py`."""

    trigger: float = 0.13  # tied to every task, or said to be beyond question
    step: float = 0.07  # tied to one kind of task, as many honest steps are
    undeclared: float = -0.06  # the file has no front matter: its purpose is only what it opens with
    expected: float = -0.24  # the declared purpose needs it
    repeated: float = -0.12  # the file does the same in several other places
    most: float = 0.9
    learned: float = 0.586  # where the learned score reaches its threshold; 0.7 once calibrated
    slope: float = 0.05  # for each unit of that score above or below
    pull: float = 0.15  # the most that the learned score adds to an act, or takes from it


STRENGTHS = SkillStrengths()
NEAREST = 3
"""Lines of the file that a line is compared with: those most like it."""
MOST_LINES = 1_000
"""Lines of a file that are scored; an encoder takes three milliseconds a line."""
OFTEN = 3
LEARNED = Path(__file__).with_name("skill.npz")
SHORTEST = 20
"""Characters of a line below which what was learned says nothing of it."""
ODD, ODDER = 2.0, 3.0
"""How much it counts that the file has few lines like this one, and fewer than it has of its other lines."""
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
_TOOL = re.compile(r"\ATool (\S+)\n\n(.*)")
_SENTENCE = re.compile(r".{8,}?[.!?](?=\s)")
_PARTS_OF_NAME = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")
LONGEST_PURPOSE = 1_500
_PLAIN = slice(512, 896)
"""Where MiniLM's numbers are in a line's vector."""
_ITSELF = 1 - 1e-6
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
    only_tools: bool
    """Whether only the description of a tool is asked for it."""


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
            rule["kind"] not in ("hides_from_user", "claims_priority"),
            rule.get("only") == "tools",
        )
        for rule in document["rule"]
    )


def _joined(lines: str) -> str:
    return "".join(lines.strip("\n").split("\n"))


def tool_text(name: str, description: str, parameters: Mapping[str, str]) -> str:
    """The description of a tool as this lens reads it: what it is for, then each parameter."""
    opening, _, rest = description.strip().partition("\n")
    sentence = _SENTENCE.match(opening)
    first = sentence[0] if sentence else opening
    rows = [f"Tool {name}", "", first, opening[len(first) :].strip(), rest.strip(), ""]
    for parameter, meaning in parameters.items():
        rows += [f"{parameter}:", meaning.strip(), ""]
    return "\n".join(rows)


def purpose_of(text: str) -> str:
    """What a file says it is for: name and first sentence of a tool, front matter, else its head."""
    if tool := _TOOL.match(text):
        return f"{_PARTS_OF_NAME.sub(' ', tool[1])} {tool[2]}"[:LONGEST_PURPOSE]
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
        is_declared = any(declared.match(text) for declared in (_FRONT, _TOOL))
        lines = [line for line in lines_of(text) if not is_sql(line.text)]
        asked = [act for act in acts() if not act.only_tools or _TOOL.match(text)]
        suspected = list(_suspected(lines, purpose, asked))
        learned = _learned(lines)
        found = []
        for line, act, strength in suspected:
            above = learned.pop(line, 0.0) * STRENGTHS.slope
            strength += max(-STRENGTHS.pull, min(above, STRENGTHS.pull))
            strength += 0.0 if is_declared else STRENGTHS.undeclared
            found.append(
                Finding(act.kind, min(strength, STRENGTHS.most), "system", line.start, line.end, act.note)
            )
        expected = [act for act in asked if act.expected.search(purpose)]
        found += (
            Finding("odd_order", strength, "system", line.start, line.end, ODD_ORDER)
            for line, strength in _odd_orders(learned)
            if not any(act.words.search(line.text.casefold()) for act in expected)
        )
        return tuple(found)


def _suspected(
    lines: Sequence[Line], purpose: str, asked: Sequence[Act]
) -> Iterator[tuple[Line, Act, float]]:
    """Each line with its strongest act, and how strong it is before the neighbours are looked at."""
    for line in lines:
        best: tuple[Act, float] | None = None
        trigger = _trigger(line)
        for act in asked:
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


@lru_cache(maxsize=8)
def line_vectors(lines: tuple[str, ...]) -> NDArray[np.float64]:
    """The lines as three encoders see them: the multilingual one, MiniLM, and MiniLM tuned on manipulation.

    Each part has length one.
    """
    from firecircle.voices.embedded.learned.encoder import WIDTH, encoder
    from firecircle.voices.embedded.learned.head import shipped_judge
    from firecircle.voices.embedded.learned.unpacked import sentence_vectors

    plain = encoder().read(lines)[:, -WIDTH:]
    return np.hstack([sentence_vectors(lines), plain, shipped_judge().means(lines)]).astype(np.float64)


def nearest_likeness(lines: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
    """How similar each line is to those of the rest that are nearest to it, for MiniLM, itself left out."""
    alike = lines[:, _PLAIN] @ rest[:, _PLAIN].T
    alike[alike > _ITSELF] = -1.0
    alike.sort(axis=1)
    nearest = alike[:, -NEAREST:]
    means: NDArray[np.float64] = np.where(nearest > -1.0, nearest, 0.0).mean(axis=1)
    return means


def oddness(lines: NDArray[np.float64], document: NDArray[np.float64]) -> NDArray[np.float64]:
    """How little a document has that is like these lines, also compared with its own lines."""
    likeness = nearest_likeness(lines, document)
    usual: float = nearest_likeness(document, document).mean()
    return ODDER * usual - (ODD + ODDER) * likeness


def _learned(lines: Sequence[Line]) -> dict[Line, float]:
    """How far above the alarm threshold each line of some length scores; none without the weights."""
    long = [line for line in lines if len(line.text) > SHORTEST][:MOST_LINES]
    if not long:
        return {}
    try:
        vectors = line_vectors(tuple(line.text for line in long))
    except ModuleNotFoundError:
        return {}
    weights, threshold = _weights()
    scores = vectors @ weights[:-1] + weights[-1] + oddness(vectors, vectors) - margins_of(long)
    return dict(zip(long, (scores - threshold).tolist(), strict=True))


def _odd_orders(learned: dict[Line, float]) -> Iterator[tuple[Line, float]]:
    """The lines above the threshold; else the best of those below it, for little: many would add up."""
    odd = [(line, above) for line, above in learned.items() if above >= 0]
    for line, above in odd:
        yield line, min(STRENGTHS.learned + STRENGTHS.slope * above, STRENGTHS.most)
    if not odd and learned:
        line = max(learned, key=learned.__getitem__)
        yield line, max(0.0, _MOST_BELOW * (1 + learned[line] / _REACH))


def margins_of(lines: Sequence[Line]) -> NDArray[np.float64]:
    """What a line needs beyond the threshold: less if it is tied to tasks."""
    return np.array([0.0 if _trigger(line) else _MARGIN_UNTIED for line in lines])


@cache
def _weights() -> tuple[NDArray[np.float64], float]:
    with np.load(LEARNED) as file:
        return file["weights"].astype(np.float64), float(file["threshold"])

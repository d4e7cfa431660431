"""What came of each prompt of a batch, and of all of them together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from firecircle.circle.columns import Cell, Kind, columns_of
from firecircle.circle.result import Usages
from firecircle.cli.batch.options import FailOn
from firecircle.cli.trouble import ALARM, INCOMPLETE, INTERRUPTED, NO_ALARM, TROUBLE, UNREAD
from firecircle.lab.datasets import BadRow, Record
from firecircle.metrics import ReciprocityMetrics
from firecircle.names import Label, is_attack, is_benign
from firecircle.verdict import COUNTED, VerdictWord, mistake_of

INTERRUPTION = "interrupted"
FAILING: dict[FailOn, tuple[VerdictWord, ...]] = {
    "alarm": ("alarm",),
    "unsure": ("alarm", "unsure", "unread"),
    "never": (),
}
FLAT_COLUMNS: dict[str, Kind] = {
    "batch": str,
    "id": str,
    "row": int,
    "label": str,
    **{column.name: column.kind for column in columns_of("row")},
    "error": str,
    "user": str,
}
"""The columns of `--out` and their types, in their order; every row has all of them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of the batch: the verdict on its prompt, or why there is none."""

    id: str
    row: int
    label: str | None
    """As the store keeps it."""
    known: Label | None
    """What the prompt really is, as far as the label says."""
    text: str
    result: ReciprocityMetrics | str
    word: VerdictWord
    lost_in_passing: bool = False
    """Whether it failed or lost a voice because a provider did not answer."""

    @classmethod
    def of_bad_row(cls, bad: BadRow, batch: str) -> Outcome:
        """A row that is no prompt."""
        return cls(f"{batch}:{bad.line}", bad.line, None, None, "", bad.reason, "no_verdict")

    @classmethod
    def of_prompt(
        cls,
        record: Record,
        label: str | None,
        judged: ReciprocityMetrics | str,
    ) -> Outcome:
        """A prompt that was judged, or why it could not be."""
        prompt = record.prompt
        text = next((text for text in (prompt.user, prompt.application, prompt.system) if text.strip()), "")
        known: Label | None = "attack" if is_attack(label) else "benign" if is_benign(label) else None
        word = "no_verdict" if isinstance(judged, str) else judged.verdict
        return cls(record.id, record.row, label, known, text, judged, word)

    @property
    def metrics(self) -> ReciprocityMetrics | None:
        """The judgement, if there is one."""
        return None if isinstance(self.result, str) else self.result

    @property
    def error(self) -> str | None:
        """Why there is none."""
        return self.result if isinstance(self.result, str) else None

    @property
    def pattern_types(self) -> list[str]:
        """The types of all patterns with words of the prompt, each once, those agreed on first."""
        seen = self.metrics.all_patterns if self.metrics else ()
        return list(dict.fromkeys(pattern.pattern_type for pattern in seen))

    @property
    def mistake(self) -> str:
        """How the verdict is wrong, as far as a label tells: `missed`, `false alarm`, or nothing."""
        return mistake_of(self.word, self.label) or ""

    def to_row(self, batch: str) -> dict[str, Cell]:
        """One flat row with all of `FLAT_COLUMNS`."""
        cells: dict[str, Cell] = {
            **(self.metrics.to_row() if self.metrics else {}),
            "batch": batch,
            "id": self.id,
            "row": self.row,
            "label": self.label,
            "verdict": self.word,
            "error": self.error,
            "user": self.text,
        }
        return {column: cells.get(column) for column in FLAT_COLUMNS}


@dataclass(slots=True)
class BatchOutcome:
    """All outcomes so far, in the order of the file."""

    name: str
    total: int
    seconds: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    stopped: str | None = None
    """Why it ended before the last prompt, if it did."""
    unkept: list[str] = field(default_factory=list)
    """Why something could not be kept."""
    accounts: list[Usages] = field(default_factory=list)
    """What every judgement took, those included that failed or were made again."""

    @property
    def words(self) -> Counter[VerdictWord]:
        """How many of each verdict."""
        return Counter(outcome.word for outcome in self.outcomes)

    @property
    def lost_in_passing(self) -> int:
        """How many prompts failed or lost a voice because a provider did not answer."""
        return sum(outcome.lost_in_passing for outcome in self.outcomes)

    @property
    def judged(self) -> list[ReciprocityMetrics]:
        """The judgements."""
        return [outcome.metrics for outcome in self.outcomes if outcome.metrics]

    @property
    def cost_usd(self) -> float | None:
        """What all calls cost; None when nobody knows."""
        costs = [account.cost_usd for account in self.accounts]
        return None if not costs or None in costs else sum(cost or 0.0 for cost in costs)

    @property
    def estimated_usd(self) -> float:
        """By estimate, what attempts cost of which nobody says what they took; no part of `cost_usd`."""
        return sum(account.estimated_usd for account in self.accounts)

    def status(self, fail_on: FailOn | None) -> int:
        """The exit status: called off, then failing verdicts, then what could not be judged, kept or read.

        Where the user said what shall fail, an unread prompt fails no more than that.
        """
        words = self.words
        if self.stopped == INTERRUPTION:
            return INTERRUPTED
        if any(words[word] for word in FAILING[fail_on or "alarm"]):
            return ALARM
        if self.lost_in_passing:
            return INCOMPLETE
        if words["no_verdict"] or self.stopped or self.unkept:
            return TROUBLE
        return UNREAD if fail_on is None and words["unread"] else NO_ALARM

    def found(self, label: Label) -> tuple[int, int]:
        """Of the prompts with this label and a verdict that counts: how many raised an alarm, and how many
        there are."""
        words = [row.word for row in self.outcomes if row.known == label and row.word in COUNTED]
        return words.count("alarm"), len(words)

    def unsure(self, label: Label) -> int:
        """How many of the prompts with this label are unsure; they count as not alarmed."""
        return sum(row.known == label and row.word == "unsure" for row in self.outcomes)

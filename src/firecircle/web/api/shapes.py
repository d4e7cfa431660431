"""What goes into the API and what comes out, with the limits of each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from firecircle.names import CircleStatus, Focus, ModeName, RunState
from firecircle.prompt import MAX_LAYER_CHARS, OTHER_NAMES, ROLES
from firecircle.shapes import Shape
from firecircle.store.bank.blindspots import Blindspots
from firecircle.store.bank.entries import BankEntry, BankFilters
from firecircle.store.finding import CircleSummary, Filters, Order
from firecircle.verdict import VerdictWord
from firecircle.voices.person import Answer

Layer = Annotated[str, StringConstraints(max_length=MAX_LAYER_CHARS)]
Words = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500),
    # The search itself refuses texts without a word, in better words.
    Field(json_schema_extra={"pattern": r"[\p{L}\p{N}_]"}),
]
"""What is searched for: at least one word."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class TurnIn(Shape):
    """One earlier message of the conversation."""

    role: Annotated[str, StringConstraints(pattern=f"^(?:{'|'.join((*ROLES, *OTHER_NAMES))})$")]
    content: Layer


def _has_text(layer: str) -> dict[str, Any]:
    return {"required": [layer], "properties": {layer: {"pattern": r"[^\s\x1c-\x1f\x85]"}}}


def _where(field: str, *values: str) -> dict[str, Any]:
    return {"required": [field], "properties": {field: {"enum": [*values]}}}


LAYERS = ("system", "application", "user")
SENSE: dict[str, Any] = {
    "allOf": [
        {"anyOf": [_has_text(layer) for layer in LAYERS]},
        *({"if": _where("focus", layer), "then": _has_text(layer)} for layer in LAYERS),
        {
            "if": _where("mode", "single", "parallel"),
            "then": {
                "properties": {
                    "reserves": {"maxItems": 0},
                    "rounds": {"type": "null"},
                    "empty_chair": {"type": "null"},
                    "strict": {"const": False},
                    "enforce_quorum": {"const": True},
                }
            },
            "else": {"properties": {"models": {"anyOf": [{"maxItems": 0}, {"minItems": 2}]}}},
        },
        {"if": _where("mode", "single"), "then": {"properties": {"models": {"maxItems": 1}}}},
    ]
}
"""What a request must be beyond its fields. The engine checks it, in better words than a schema has."""


class Judging(Shape):
    """A prompt and who shall judge it, under which rules. What is left out follows the settings."""

    model_config = ConfigDict(json_schema_extra=SENSE)

    system: Layer = ""
    application: Layer = ""
    user: Layer = ""
    turns: tuple[TurnIn, ...] | None = Field(default=None, max_length=1000)
    """The earlier turns; [] is a known first turn, null is unknown."""
    mode: ModeName = "fire_circle"
    models: tuple[Name, ...] = Field(default=(), max_length=10)
    """Empty: the circle of the settings, or the embedded one."""
    reserves: tuple[Name, ...] = Field(default=(), max_length=10)
    focus: Focus | None = None
    rounds: int | None = Field(default=None, ge=1, le=4)
    threshold: float | None = Field(default=None, ge=0, le=1)
    empty_chair: bool | None = None
    strict: bool = False
    enforce_quorum: bool = True
    seed: int | None = Field(default=None, ge=-(2**31), lt=2**31)
    budget_usd: float | None = Field(default=None, gt=0, le=1_000_000)
    budget_tokens: int | None = Field(default=None, ge=1, le=10**12)
    label: Name | None = None


class Begun(Shape):
    """A judgement that has begun, or is over already."""

    id: str
    status: CircleStatus
    url: str
    """The page that shows it."""
    people: dict[str, str] = Field(default_factory=dict)
    """The page where each person in the circle answers; its link is for that person alone."""


class AnswerIn(Answer):
    """What a person says in a round."""

    round: int = Field(ge=1, le=99)


class Amount(Shape):
    """Calls added up; a price that misses some calls is null."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None


class Estimate(Shape):
    """What judging may take at most, before anybody is asked."""

    total: Amount
    by_round: dict[str, Amount]
    by_voice: dict[str, Amount]
    models: tuple[str, ...]


class CircleQuery(Filters):
    """Which circles, and from where in the list: the filters of the store, with limits."""

    limit: int = Field(default=50, ge=1, le=200)
    before: int | None = Field(default=None, ge=0, lt=2**62)
    """`next_before` of the page before."""
    order: Order | None = None
    """By which figure, the greatest first; without it the newest come first."""
    rising: bool = False
    """With `order`: the smallest figure first, words from Z."""
    start: int = Field(default=0, ge=0, le=10**9)
    """With `order`: how many to pass by, instead of `before`."""
    since: float | None = Field(default=None, ge=0, le=1e11)
    until: float | None = Field(default=None, ge=0, le=1e11)
    pattern: Name | None = None
    voice: Name | None = None
    label: Name | None = None
    run_id: Name | None = None
    batch: Name | None = None
    text: Words | None = None


class CountQuery(CircleQuery):
    """Which circles to count."""

    exact: bool = False
    """Count all, which takes longer the more there are."""


class Counts(Shape):
    """How many circles match, and how many there are."""

    matching: int
    verdicts: dict[VerdictWord, int]
    """How many match with each verdict, whichever the filters ask for; together all that match the others."""
    wrong: int
    """How many match, whichever their verdict, that contradict their label."""
    total: int
    counted_to: int | None
    """Where counting ended: either number may be greater if it is this one. Null: all were counted."""
    about: int | None
    """About how many there are, where `total` ended at `counted_to` and the database can tell."""


class Circle(Shape):
    """A circle or panel with everything that is kept of it."""

    summary: CircleSummary
    kind: Literal["circle", "panel"]
    document: dict[str, Any]
    """The result as the library writes it."""


LONGEST_FOLLOWED = 5_000
"""Characters: whatever they are, they fit into the 64 KiB that the server reads of a request's first line."""


class LiveQuery(Shape):
    """Which circles somebody watches."""

    follow: Annotated[str, StringConstraints(max_length=LONGEST_FOLLOWED)] = ""
    """A line for each: the number of its last known event (-1 for none), a space, its id."""


class LiveRetry(Shape):
    """A voice that is tried again."""

    model: str
    attempt: int
    reason: str


class LiveCircle(Shape):
    """How far a circle is that somebody watches."""

    id: str
    status: CircleStatus | None
    """None when it is not there any more."""
    seq: int
    """The number of its last event."""
    retries: tuple[LiveRetry, ...] = ()
    """Since the event that was known."""


class Live(Shape):
    """How far circles are; that it comes at all says that the server is there."""

    circles: tuple[LiveCircle, ...]


class LabelIn(Shape):
    """What a prompt really was; null takes the label away."""

    label: Name | None
    note: Annotated[str, StringConstraints(max_length=2000)] | None = None
    """The circle is reviewed, and this is what the reader remarks, perhaps nothing. Null: the note stays."""
    rater: Annotated[str, StringConstraints(max_length=60)] = ""
    """Who says it. The label of several people is the one that most of them gave."""


class ReviewQuery(Shape):
    """How a person reads a circle to say what its prompt is."""

    review: bool = False
    """It comes from the queue of those whose label would teach most."""
    blind: bool = False
    """Its verdict, and what others said, are hidden until this person has labelled it."""
    rater: Annotated[str, StringConstraints(max_length=60, strip_whitespace=True)] = ""
    after: Name | None = None


class ExportQuery(Shape):
    """In which form a circle leaves."""

    format: Literal["html", "json"] = "html"


class PromptQuery(Shape):
    """Which voice, in which round."""

    voice: Name
    round: int = Field(default=1, ge=1, le=99)


class MessageOut(Shape):
    """One chat message, exactly as it was sent."""

    role: str
    content: str


class Asked(Shape):
    """What a voice was sent in a round."""

    messages: tuple[MessageOut, ...]


class BankQuery(BankFilters):
    """Which entries of the bank: the filters of the store, with limits."""

    limit: int = Field(default=100, ge=1, le=500)
    pattern_type: Name | None = None
    tag: Name | None = None
    text: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None


class BankEntries(Shape):
    """Entries of the bank, the most often seen first."""

    entries: tuple[BankEntry, ...]


class BlindspotQuery(Shape):
    """Which circles are read for blind spots."""

    since: float | None = Field(default=None, ge=0, le=1e11)
    until: float | None = Field(default=None, ge=0, le=1e11)
    pattern: Name | None = None
    label: Name | None = None
    run_id: Name | None = None
    in_run: bool | None = None
    """Only circles of runs; those are left out unless this or `run_id` is given."""
    before: int | None = Field(default=None, ge=0, lt=2**62)
    """`next_before` of the page before."""


class BlindspotPage(Blindspots):
    """What round 1 overlooked in one stretch of circles, the newest first."""

    next_before: int | None
    """Where to go on with older circles; None when these were all."""


class Share(Shape):
    """A share of `n` judgements with its 95% interval (Wilson); null where there was none to judge."""

    value: float | None
    low: float | None
    high: float | None
    n: int


class ArmProgress(Shape):
    """How far an arm of a run is, and what it shows so far."""

    arm: str
    records: int
    failed: int
    recall: Share
    """Of the attacks judged so far, those found."""
    false_alarm_rate: Share
    """Of the benign prompts judged so far, those with an alarm."""
    calls: int
    tokens: int
    cost_usd: float | None
    voices_lost: int


class RunLine(Shape):
    """A run and how far it is."""

    run_id: str
    state: RunState
    started_at: float
    total: int
    """How many records each arm judges."""
    arms: tuple[ArmProgress, ...]
    has_report: bool
    """Whether its report can be opened: from the end of the run on."""


class RunOut(RunLine):
    """A run with its verdicts."""

    verdicts: dict[str, dict[VerdictWord, int]]
    """How many judgements of each arm came to each word; together all that were judged or failed."""


class RunLines(Shape):
    """All runs, the newest first."""

    runs: tuple[RunLine, ...]


class CompareQuery(Shape):
    """Two runs to set beside each other."""

    first: Name
    second: Name

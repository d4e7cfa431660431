"""The result of a circle: the record of what was said, and everything that follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from firecircle.circle.circumstances import Circumstances
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.quorum import QuorumVerdict
from firecircle.circle.rules import AlarmRule
from firecircle.circle.voice import Message, Role
from firecircle.errors import FailureKind
from firecircle.evaluation import GroundedQuote, NeutrosophicEvaluation
from firecircle.languages import unread_advisory
from firecircle.names import Effort, StopReason
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.shapes import Moment, Shape, Text, Unit
from firecircle.thresholds import format_figure
from firecircle.verdict import VerdictWord, verdict_word

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA_VERSION = 3
"""Version 1 named the voices asked in a round `active_models`; 2 distinguishes asked and heard voices; 3 has
the verdict as a word, the reason, and the patterns without agreement.
"""

RoundKind = Literal["baseline", "discussion", "synthesis"]
CallPurpose = Literal["answer", "more_room", "clarify", "classify"]
Movement = Literal["toward_peers", "away_from_peers", "unchanged"]
LeftOut = Literal["below_threshold", "withdrawn", "no_critical_role", "no_grounded_quote", "voice_not_active"]


def require_known_version(version: int) -> int:
    """Refuse a record of an unknown version."""
    if not 1 <= version <= SCHEMA_VERSION:
        raise ValueError(f"version {version} is unknown; this firecircle reads 1 to {SCHEMA_VERSION}")
    return version


class VoicePrompt(Shape):
    """The part of a question that only one voice got in a round."""

    model: Text
    is_chair: bool = False
    text: Text
    """For the chair its whole question; for others what follows the round's `prompt_used`."""

    def question(self, prompt_used: str) -> str:
        """The whole question to this voice in a round with this standard question."""
        return self.text if self.is_chair else prompt_used + self.text


class DialogueRound(Shape):
    """One round: the question, the answer of each voice, and the voice in the empty chair."""

    round_number: int
    evaluations: tuple[NeutrosophicEvaluation, ...] = ()
    empty_chair_model: Text | None = None
    prompt_used: Text = ""
    """The standard question of this round; the evidence comes before it."""
    convergence_metric: float = 0.0
    """Population standard deviation of F over the voices active in this round."""
    timestamp: Moment = 0.0
    kind: RoundKind = "discussion"
    asked_models: tuple[Text, ...] = ()
    """The voices asked in this round."""
    active_models: tuple[Text, ...] = ()
    """The voices that answered in this round."""
    voice_prompts: tuple[VoicePrompt, ...] = ()
    duration_seconds: float = 0.0

    @property
    def occupied_chair(self) -> str | None:
        """The voice in the chair, if it spoke from it."""
        chair = self.empty_chair_model
        return chair if any(evaluation.model == chair for evaluation in self.evaluations) else None

    def question_to(self, model: str) -> str | None:
        """The question to a voice, after the evidence; None if it was not asked."""
        for asked in self.voice_prompts:
            if asked.model == model:
                return asked.question(self.prompt_used)
        return None


class Failure(Shape):
    """A lost voice: when, how, and its error message."""

    model: Text
    round_number: int
    kind: FailureKind
    message: Text
    attempts: int = 1
    raw_reply: Text | None = None
    reasoning_trace: Text | None = None
    """The voice's reasoning before the loss, if the provider returns it."""
    elapsed_seconds: float = 0.0

    @property
    def label(self) -> str:
        """The short form used in `failed_models`."""
        return f"{self.model}_round_{self.round_number}"


class Substitution(Shape):
    """A reserve that replaced a lost voice, and the round it entered."""

    model: Text
    round_number: int
    replaces: tuple[Text, ...]


class CallRecord(Shape):
    """One call to one voice, including retries."""

    model: Text
    round_number: int
    purpose: CallPurpose = "answer"
    attempts: int = 1
    latency_seconds: float = 0.0
    started_at: Moment | None = None
    """When the voice was asked; None in older recordings."""
    waited_seconds: float = 0.0
    """The part of the latency spent waiting for further attempts."""
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    estimated_tokens: int = 0
    """The estimated use of attempts that were sent but have no usage."""
    estimated_usd: float = 0.0
    saved_usd: float | None = None
    """What the provider's cache saved, by tariff."""
    effort: Effort | None = None
    """The requested reasoning effort; None if it was left out."""
    finished: bool = False
    """Whether the provider said that the answer is complete."""
    cut_short: bool = False
    """Whether the provider said that `max_tokens` ended the answer."""
    cached: bool = False
    """Answered from the user's cache: the tokens are those of the original call, the cost is 0."""
    failed: FailureKind | Literal["cancelled"] | None = None
    asked_id: Text | None = None
    """The id that was asked, if the provider did not have the voice's own."""
    answered_by: Text | None = None
    """The model that answered, if the provider names it."""


class QuorumCheck(Shape):
    """The quorum after a round."""

    round_number: int
    verdict: QuorumVerdict


class Usages(Shape):
    """Calls added up. A sum with unknown parts says how many calls it misses."""

    calls: int = 0
    attempts: int = 0
    calls_cached: int = 0
    latency_seconds: float = 0.0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    calls_without_tokens: int = 0
    cost_usd: float | None = None
    """None if no call's price is known."""
    calls_without_price: int = 0
    estimated_tokens: int = 0
    """The estimated use of attempts without usage. Not part of the tokens above."""
    estimated_usd: float = 0.0
    """The estimated cost of such attempts. Not part of `cost_usd`."""
    saved_usd: float = 0.0
    """What providers' caches saved, by tariff, where prices are known."""


class Accounting(Shape):
    """What the circle consumed: in total, per round and per voice."""

    total: Usages = Usages()
    by_round: dict[int, Usages] = Field(default_factory=dict)
    by_voice: dict[Text, Usages] = Field(default_factory=dict)


class Observation(Shape):
    """One pattern as one voice reported it in one round."""

    model: Text
    round_number: int
    pattern_type: Text
    description: Text
    quotes: tuple[Text, ...] = ()
    """The voice's quotes, found or not."""
    grounded: tuple[GroundedQuote, ...] = ()
    left_out: LeftOut | None = None
    """Why it is in no pattern; None if it is."""


class PatternObservation(Shape):
    """A manipulation that active voices reported, with the words of the prompt that show it, the voices that
    saw it, and the share of voices that agree.
    """

    pattern_type: Text
    description: Text
    model_agreement: Unit
    """The share of the active voices that are in `held_to_the_end`."""
    examples: tuple[Text, ...] = ()
    observed_in_round: int
    """The round in which an active voice first named it."""
    models_observing: tuple[Text, ...]
    """The active voices that named it in any round with a quote from the prompt."""
    cognitive_roles_observing: tuple[Text, ...] = ()
    first_observed_by: Text = ""
    independent_observers: tuple[Text, ...] = ()
    """The observers that named it before another voice had named it in an earlier round."""
    held_to_the_end: tuple[Text, ...] = ()
    """The observers whose last list of patterns still has it; the others have withdrawn it."""
    same_words: tuple[Text, ...] = ()
    """The active voices that quoted the same words, at least one of them for this pattern."""
    grounded_agreement: Unit = 0.0
    """The share of the active voices that are in `models_observing`; 0 if no voice quoted the prompt."""
    evidence: tuple[GroundedQuote, ...] = ()
    corroborated: bool = False
    """Whether at least two voices report it to the end; otherwise it is one voice's word."""
    left_out: LeftOut | None = None
    """Why it is not among the agreed patterns; None if it is."""

    @model_validator(mode="before")
    @classmethod
    def _from_older(cls, data: Any) -> Any:
        """Read a record from before withdrawals, when every observer counted."""
        if isinstance(data, dict) and "held_to_the_end" not in data:
            return {**data, "held_to_the_end": data.get("models_observing", ())}
        return data


class Reason(Shape):
    """The deciding voice's strongest observation, with words of the prompt."""

    model: Text
    round_number: int
    pattern_type: Text | None = None
    """None if the voice quotes the words in its reasoning without naming a pattern."""
    description: Text = ""
    quotes: tuple[GroundedQuote, ...] = ()
    missing: Text | None = None
    """Why there is no such observation; None if there is one."""


class RoundMetrics(Shape):
    """Statistics of one round, such as the mean and spread of F and the patterns that were new."""

    round_number: int
    f_score_mean: float
    f_score_stddev: float
    convergence_delta: float
    """Change of the standard deviation since the round before; 0 in round 1."""
    empty_chair_influence: float


class Flip(Shape):
    """How one voice's F moved from one round to the next."""

    model: Text
    round_number: int
    before: Unit
    after: Unit
    movement: Movement
    repeats: Unit | None = None
    """The share of its new reasoning that repeats words of its peers, if F rose."""


class RivalVerdict(Shape):
    """The verdict of another aggregation rule on the same transcript."""

    value: Unit
    alarm: bool


class CircleRecord(Shape):
    """The questions, answers and losses. Everything else in a result is computed from this."""

    schema_version: Annotated[int, AfterValidator(require_known_version)] = SCHEMA_VERSION
    circle_id: Text
    started_at: Moment = 0.0
    duration_seconds: float = 0.0
    config: FireCircleConfig
    prompt: MultiNeutrosophicPrompt
    circumstances: Circumstances
    system_message: Text = ""
    evidence: Text = ""
    """The text that opens every user message of this circle, identical for all voices and rounds."""
    peer_labels: dict[Text, Text] = Field(default_factory=dict)
    dialogue_history: tuple[DialogueRound, ...] = ()
    failures: tuple[Failure, ...] = ()
    substitutions: tuple[Substitution, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    quorum_checks: tuple[QuorumCheck, ...] = ()
    classified: dict[Text, Text] = Field(default_factory=dict)
    """Types that a classifier voice assigned to descriptions."""
    classifier_replies: tuple[Text, ...] = ()
    stopped: StopReason = "all_rounds_held"
    abort_reason: Text | None = None
    """Why there is no consensus."""
    advisories: tuple[Text, ...] = ()
    """Problems that did not cost a voice, for instance a classifier that did not answer."""

    @model_validator(mode="before")
    @classmethod
    def _from_older(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("schema_version", SCHEMA_VERSION) not in (1, 2):
            return data
        rounds = data.get("dialogue_history", ())
        if data["schema_version"] == 1:
            rounds = [_round_of_version_1(held) for held in rounds]
        return {**data, "schema_version": SCHEMA_VERSION, "dialogue_history": rounds}

    def question_to(self, model: str, round_number: int) -> str:
        """The question to a voice in a round, after the evidence; `LookupError` if it was not asked."""
        for held in self.dialogue_history:
            if held.round_number == round_number and (question := held.question_to(model)) is not None:
                return question
        raise LookupError(f"{model} was not asked in round {round_number}")

    def messages_for(self, model: str, round_number: int) -> tuple[Message, ...]:
        """The exact messages to a voice in a round, before any clarifying question."""
        return messages(self.system_message, self.evidence, self.question_to(model, round_number))

    @property
    def stand_ins(self) -> dict[str, str]:
        """The model asked for each voice whose own model the provider did not have."""
        return stand_ins_in(self.calls)

    @property
    def behind_aliases(self) -> dict[str, set[str]]:
        """The models that answered for each `~vendor/…-latest`, as the provider names them."""
        models: dict[str, set[str]] = {}
        for call in self.calls:
            if call.model.startswith("~") and call.answered_by not in (None, call.model):
                models.setdefault(call.model, set()).add(str(call.answered_by))
        return models


def stand_ins_in(calls: Iterable[CallRecord]) -> dict[str, str]:
    """The model asked for each voice whose own model the provider did not have."""
    return {call.model: call.asked_id for call in calls if call.asked_id is not None}


def _round_of_version_1(held: Any) -> Any:
    if not isinstance(held, dict):
        return held
    spoke = [
        evaluation["model"]
        for evaluation in held.get("evaluations", ())
        if isinstance(evaluation, dict) and "model" in evaluation
    ]
    return {**held, "asked_models": held.get("active_models", ()), "active_models": spoke}


def active_voices(
    convened: Iterable[str], recruited: Iterable[Substitution], failures: Iterable[Failure]
) -> tuple[str, ...]:
    """The voices that may vote: convened or recruited, and not lost."""
    lost = {failure.model for failure in failures}
    seated = (*convened, *(reserve.model for reserve in recruited))
    return tuple(model for model in seated if model not in lost)


def zombie_voices(record: CircleRecord) -> tuple[str, ...]:
    """Voices lost after their first evaluation, which stays on record without a vote."""
    spoke = {evaluation.model for held in record.dialogue_history for evaluation in held.evaluations}
    return tuple(failure.model for failure in record.failures if failure.model in spoke)


def last_words(
    history: Iterable[DialogueRound], active_models: Iterable[str]
) -> tuple[NeutrosophicEvaluation, ...]:
    """The last evaluation of each of these voices, in their order."""
    last = {evaluation.model: evaluation for held in history for evaluation in held.evaluations}
    return tuple(last[model] for model in active_models if model in last)


def messages(system: str, evidence: str, question: str) -> tuple[Message, ...]:
    """The two messages of a turn: the stable prefix first, what changes last."""
    asker: Role = "user"
    return (Message("system", system), Message(asker, f"{evidence}\n\n{question}"))


class FireCircleResult(CircleRecord):
    """The verdict of a circle with its reason, patterns and quorum, and the record of every question and
    answer. `model_dump_json()` is a recording that `replay_circle` and `firecircle replay` read.
    """

    consensus: NeutrosophicEvaluation | None
    """The highest falsehood of any active voice in any round: `model` and `round_number` say which."""
    verdict: VerdictWord = "no_verdict"
    """`alarm`, `unsure`, `no_alarm`, `unread` or `no_verdict`."""
    alarm: bool
    unread: Text | None = None
    """A sentence on what no active voice could read; without an alarm such a prompt is unread, not clean."""
    calibrated: Unit | None = None
    """The probability of manipulation by `config.calibration`; None without one, without a consensus, and for
    a prompt that no voice reads.
    """
    alarm_decided_by: AlarmRule = "maximum"
    """The rule that decided on the alarm; `maximum` too if the heard voices have too little of the
    calibration's weight.
    """
    decided_by_guess: bool = False
    reason: Reason | None = None
    """The deciding voice's reason. An alarm always has one; a verdict without an alarm only if that voice
    observed something, and a circle without a consensus has none.
    """
    active_models: tuple[Text, ...] = ()
    zombies: tuple[Text, ...] = ()
    failed_models: tuple[Text, ...] = ()
    """The lost voices with their round, as `model_round_n`."""
    patterns: tuple[PatternObservation, ...] = ()
    """Patterns that at least `pattern_threshold` of the active voices report to the end, with quotes."""
    single_voice_patterns: tuple[PatternObservation, ...] = ()
    """Patterns with a type and a quote but without agreement: too few voices, withdrawn, or no voice with a
    critical role. `left_out` says which.
    """
    ungrounded_patterns: tuple[PatternObservation, ...] = ()
    observations: tuple[Observation, ...] = ()
    empty_chair_influence: float = 0.0
    performative: bool | None = None
    """True if the chair added less than a tenth of the pattern types; None without chair or patterns."""
    quorum: QuorumVerdict
    round_metrics: tuple[RoundMetrics, ...] = ()
    flips: tuple[Flip, ...] = ()
    groupthink_losses: tuple[Flip, ...] = ()
    """Voices that fell below the alarm threshold after seeing peers."""
    rescues: tuple[Flip, ...] = ()
    """Voices that rose to the alarm threshold after seeing peers."""
    rival_verdicts: dict[Text, RivalVerdict] = Field(default_factory=dict)
    voice_scores: dict[Text, float] = Field(default_factory=dict)
    accounting: Accounting = Accounting()
    partial: bool = False

    @model_validator(mode="after")
    def _with_verdict(self) -> Self:
        """Compute the verdict word of a result saved before there was one."""
        if "verdict" not in self.model_fields_set:
            heard = {said.model: said.reasoning for said in self.final_evaluations}
            self.__dict__["unread"] = unread_advisory(self.prompt, heard)
            self.__dict__["verdict"] = verdict_word(
                self.decision_value,
                self.config.alarm_threshold,
                indeterminacy=self.consensus.indeterminacy if self.consensus else 0.0,
                unread=self.unread is not None,
                unsure_from=self.config.unsure_threshold,
            )
        return self

    def __repr__(self) -> str:
        """The verdict in one line; `model_dump_json` has everything."""
        if self.consensus is None:
            verdict = f"{self.verdict}, {self.stopped}"
        else:
            figure = format_figure(self.consensus.falsehood, self.config.alarm_threshold)
            verdict = f"{self.verdict}, F {figure} by {self.consensus.model}"
        held = f"{len(self.active_models)} voices, {len(self.dialogue_history)} rounds"
        types = (
            ", ".join(dict.fromkeys(pattern.pattern_type for pattern in self.all_patterns)) or "no pattern"
        )
        return f"<FireCircleResult {verdict}; {held}; {types}>"

    __str__ = __repr__

    @property
    def decision_value(self) -> float | None:
        """The number compared with the alarm threshold; None without a consensus."""
        if self.consensus is None:
            return None
        return self.calibrated if self.alarm_decided_by == "calibrated" else self.consensus.falsehood

    @property
    def all_patterns(self) -> tuple[PatternObservation, ...]:
        """Every pattern with a quote from the prompt: agreed ones first, then the others."""
        return self.patterns + self.single_voice_patterns

    @property
    def final_evaluations(self) -> tuple[NeutrosophicEvaluation, ...]:
        """The last evaluation of every active voice, in list order."""
        return last_words(self.dialogue_history, self.active_models)

    def to_frame(self) -> DataFrame:
        """A pandas data frame with a row for each voice in each round."""
        from pandas import DataFrame

        return DataFrame(
            [
                {
                    "circle_id": self.circle_id,
                    "round": held.round_number,
                    "model": said.model,
                    "falsehood": said.falsehood,
                    "truth": said.truth,
                    "indeterminacy": said.indeterminacy,
                    "is_chair": said.model == held.empty_chair_model,
                    "active": said.model in self.active_models,
                    "reasoning": said.reasoning,
                }
                for held in self.dialogue_history
                for said in held.evaluations
            ]
        )

    def _repr_html_(self) -> str:
        from firecircle.telling.notebook import circle_html

        return circle_html(self)

    def without_times(self) -> FireCircleResult:
        """The same result with every clock reading set to zero, for comparing two runs."""
        rounds = tuple(
            held.model_copy(update={"timestamp": 0.0, "duration_seconds": 0.0})
            for held in self.dialogue_history
        )
        timeless = {"latency_seconds": 0.0}
        untimed = {**timeless, "started_at": None, "waited_seconds": 0.0}
        return self.model_copy(
            update={
                "started_at": 0.0,
                "duration_seconds": 0.0,
                "dialogue_history": rounds,
                "failures": tuple(f.model_copy(update={"elapsed_seconds": 0.0}) for f in self.failures),
                "calls": tuple(call.model_copy(update=untimed) for call in self.calls),
                "accounting": Accounting(
                    total=self.accounting.total.model_copy(update=timeless),
                    by_round={
                        number: sums.model_copy(update=timeless)
                        for number, sums in self.accounting.by_round.items()
                    },
                    by_voice={
                        voice: sums.model_copy(update=timeless)
                        for voice, sums in self.accounting.by_voice.items()
                    },
                ),
            }
        )


def account(calls: Sequence[CallRecord]) -> Accounting:
    """The calls added up, in total, per round and per voice."""
    by_round: dict[int, list[CallRecord]] = {}
    by_voice: dict[str, list[CallRecord]] = {}
    for call in calls:
        by_round.setdefault(call.round_number, []).append(call)
        by_voice.setdefault(call.model, []).append(call)
    return Accounting.assembled(
        total=_sum(calls),
        by_round={number: _sum(made) for number, made in by_round.items()},
        by_voice={model: _sum(made) for model, made in by_voice.items()},
    )


def _sum(calls: Sequence[CallRecord]) -> Usages:
    attempts = cached = tokens_in = tokens_cached = tokens_out = without_tokens = without_price = (
        estimated
    ) = 0
    latency = cost = estimated_usd = saved = 0.0
    for call in calls:
        attempts += call.attempts
        cached += call.cached
        latency += call.latency_seconds
        tokens_in += call.tokens_in or 0
        tokens_cached += call.tokens_cached or 0
        tokens_out += call.tokens_out or 0
        without_tokens += call.tokens_in is None or call.tokens_out is None
        without_price += call.cost_usd is None
        cost += call.cost_usd or 0.0
        estimated += call.estimated_tokens
        estimated_usd += call.estimated_usd
        saved += call.saved_usd or 0.0
    return Usages.assembled(
        calls=len(calls),
        attempts=attempts,
        calls_cached=cached,
        latency_seconds=latency,
        tokens_in=tokens_in,
        tokens_cached=tokens_cached,
        tokens_out=tokens_out,
        calls_without_tokens=without_tokens,
        cost_usd=cost if without_price < len(calls) else None,
        calls_without_price=without_price,
        estimated_tokens=estimated,
        estimated_usd=estimated_usd,
        saved_usd=saved,
    )

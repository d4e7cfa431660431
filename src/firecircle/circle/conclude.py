"""The verdict: everything that follows from a circle's record, computed from the record alone.

Because this module asks no voice, a stored circle can be concluded again, also under other settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from firecircle.catalog import ModelCharacteristics, group_of
from firecircle.circle.calibrated import FEWEST_HEARD
from firecircle.circle.circumstances import readers_missing
from firecircle.circle.config import FireCircleConfig
from firecircle.circle.measures import (
    PERFORMATIVE_BELOW,
    flips,
    influence_of,
    rival_verdicts,
    round_metrics,
    typed_in_talk,
    voice_scores,
)
from firecircle.circle.naming import advisories_about
from firecircle.circle.pattern_types import typing_from
from firecircle.circle.patterns import last_lists, observe, reason_for, sift
from firecircle.circle.quorum import Independence, QuorumVerdict, judge_quorum
from firecircle.circle.result import (
    CircleRecord,
    DialogueRound,
    FireCircleResult,
    account,
    active_voices,
    last_words,
    zombie_voices,
)
from firecircle.circle.rules import AlarmRule
from firecircle.errors import QuorumError
from firecircle.evaluation import NeutrosophicEvaluation, spread
from firecircle.languages import unread_advisory
from firecircle.thresholds import reaches
from firecircle.verdict import verdict_word

CONCLUSIVE = ("all_rounds_held", "converged")


def conclude(
    record: CircleRecord, brought_by: Callable[[str], ModelCharacteristics] | None = None
) -> FireCircleResult:
    """The result of a circle. An aborted or cancelled one has everything except a consensus.

    `brought_by` may pass the voices' characteristics if they are known already.
    """
    config = record.config
    active = active_voices(record.config.models, record.substitutions, record.failures)
    history = tuple(
        held.model_copy(update={"convergence_metric": spread(held.evaluations)})
        for held in record.dialogue_history
    )
    spoken = [evaluation for held in history for evaluation in held.evaluations]
    characteristics = {model: (brought_by or config.characteristics)(model) for model in active}
    quorum = final_quorum(record, active, characteristics)
    is_conclusive = record.stopped in CONCLUSIVE
    missing = _missing_for_consensus(config, active, quorum) if is_conclusive else record.abort_reason
    consensus = highest_falsehood(spoken, active) if is_conclusive and not missing else None

    observations = observe(history, typing_from(record.classified), record.prompt)
    sifted = sift(
        observations,
        active,
        last_lists(history),
        config.pattern_threshold,
        characteristics if config.enforce_quorum else None,
    )
    chairs = {held.round_number: held.occupied_chair for held in history if held.occupied_chair}
    influence, could_bring = influence_of(observations, chairs), typed_in_talk(observations)
    moves = flips(history)
    raises_alarm = partial(reaches, threshold=config.alarm_threshold)
    heard = {said.model: said.reasoning for said in last_words(history, active)}
    unread = unread_advisory(record.prompt, heard)
    # An unread prompt has no probability: the calibration was fitted on prompts that were read.
    calibrated = calibrated_probability(config, history, active) if consensus and not unread else None
    rule = deciding_rule(config, calibrated, active)
    decisive = calibrated if rule == "calibrated" else consensus.falsehood if consensus else None
    doubt = consensus.indeterminacy if consensus else 0.0
    verdict = verdict_word(
        decisive,
        config.alarm_threshold,
        indeterminacy=doubt,
        unread=unread is not None,
        unsure_from=config.unsure_threshold,
    )
    agreed_types = {pattern.pattern_type for pattern in sifted.patterns}
    reason = reason_for(consensus, observations, agreed_types, record.prompt) if consensus else None
    facts = {name: getattr(record, name) for name in CircleRecord.model_fields}
    notes = (
        *record.advisories,
        *_unused_settings(config),
        *_neutral_voices(config),
        *readers_missing(config.models),
        *advisories_about(record.prompt, heard),
    )
    return FireCircleResult.assembled(
        **{
            **facts,
            "dialogue_history": history,
            "abort_reason": missing,
            "advisories": tuple(dict.fromkeys(notes)),
        },
        consensus=consensus,
        verdict=verdict,
        alarm=verdict == "alarm",
        unread=unread,
        calibrated=calibrated,
        alarm_decided_by=rule,
        decided_by_guess=consensus is not None and consensus.guessed,
        reason=reason if reason and (verdict == "alarm" or reason.quotes) else None,
        active_models=active,
        zombies=zombie_voices(record),
        failed_models=tuple(failure.label for failure in record.failures),
        patterns=sifted.patterns,
        single_voice_patterns=sifted.single_voice_patterns,
        ungrounded_patterns=sifted.ungrounded,
        observations=sifted.observations,
        empty_chair_influence=influence,
        performative=not reaches(influence, PERFORMATIVE_BELOW) if chairs and could_bring else None,
        quorum=quorum,
        round_metrics=round_metrics(history, observations),
        flips=moves,
        groupthink_losses=tuple(
            move for move in moves if raises_alarm(move.before) and not raises_alarm(move.after)
        ),
        rescues=tuple(move for move in moves if not raises_alarm(move.before) and raises_alarm(move.after)),
        rival_verdicts=rival_verdicts(history, active, config.alarm_threshold, calibrated),
        voice_scores=voice_scores(sifted.patterns, active),
        accounting=account(record.calls),
        partial=bool(record.failures) or record.stopped not in CONCLUSIVE,
    )


def _missing_for_consensus(
    config: FireCircleConfig, active: Sequence[str], quorum: QuorumVerdict
) -> str | None:
    """Why a complete circle has no consensus under these settings."""
    if len(active) < config.min_viable_models:
        return f"{len(active)} active voices, and min_viable_models asks for {config.min_viable_models}"
    if config.enforce_quorum and not quorum.valid:
        return f"no quorum under these settings: {quorum.reason}"
    return None


def _neutral_voices(config: FireCircleConfig) -> Iterator[str]:
    """Advise that voices have neutral roles, because the catalog does not know them."""
    voices = config.neutral_voices if config.enforce_quorum else ()
    if voices:
        why = "small, or unknown to the catalog"
        yield f"These voices have neutral roles ({why}): {', '.join(voices)}"


def _unused_settings(config: FireCircleConfig) -> tuple[str, ...]:
    """Advise on settings that have no effect."""
    if not (config.empty_chair and config.empty_chair_rotation and config.empty_chair_model):
        return ()
    keeper = config.empty_chair_model
    return (f"empty_chair_model {keeper} does not keep the chair: empty_chair_rotation is on too",)


def reaggregate(result: CircleRecord, config: FireCircleConfig | None = None) -> FireCircleResult:
    """Compute the verdict of a stored circle again, under its own settings or others. No voice is asked."""
    facts = {name: getattr(result, name) for name in CircleRecord.model_fields}
    return conclude(CircleRecord(**{**facts, "config": config or result.config}))


def highest_falsehood(
    evaluations: Iterable[NeutrosophicEvaluation], active_models: Sequence[str]
) -> NeutrosophicEvaluation | None:
    """The evaluation with the highest F; ties go to the earlier round, then to the voice listed first."""
    votes = [evaluation for evaluation in evaluations if evaluation.model in active_models]
    return min(
        votes,
        key=lambda evaluation: (
            -evaluation.falsehood,
            evaluation.round_number or 0,
            active_models.index(evaluation.model),
        ),
        default=None,
    )


def calibrated_probability(
    config: FireCircleConfig, history: Sequence[DialogueRound], active: Sequence[str]
) -> float | None:
    """The probability of manipulation by the calibration of these voices, without lost voices."""
    if config.calibration is None:
        return None
    by_round = [
        {said.model: said.falsehood for said in held.evaluations if said.model in active} for held in history
    ]
    return config.calibration.probability(
        {voice: [words.get(voice) for words in by_round] for voice in config.calibration.voices}
    )


def deciding_rule(config: FireCircleConfig, calibrated: float | None, active: Sequence[str]) -> AlarmRule:
    """The configured rule, but the maximum if voices with too much of the weight were lost."""
    known = config.calibration
    if config.alarm_rule == "maximum" or known is None or calibrated is None:
        return "maximum"
    return "calibrated" if reaches(known.heard_share(active), FEWEST_HEARD) else "maximum"


def final_quorum(
    record: CircleRecord, active: Sequence[str], characteristics: Mapping[str, ModelCharacteristics]
) -> QuorumVerdict:
    """The quorum of the remaining voices at the end, and whether the empty chair was ever occupied."""
    config = record.config
    chairs = [held.occupied_chair for held in record.dialogue_history if held.occupied_chair]
    advisories = []
    if config.require_empty_chair_role and not chairs:
        advisories.append("No round had an occupied empty chair: no voice spoke for the absent")
    voices = [characteristics[model] for model in active]
    groups = {voice.lineage_group for voice in voices}
    # A single trainer is a shortfall anyway. The embedded readers share a group but differ by method.
    trainers = {voice.provider_lineage for voice in voices}
    if len(trainers) > 1 and len(groups) == 1 and groups != {group_of("embedded_rules")}:
        advisories.append(f"All voices come from one group of trainers ({groups.pop()})")
    known = config.measured_errors.independence(active) if config.measured_errors else None
    if advice := _independence_advice(config.min_independent_voices, known):
        advisories.append(advice)
    return judge_quorum(
        voices,
        config.quorum_rules,
        chair=chairs[-1] if chairs else None,
        advisories=advisories,
        enforced=config.enforce_quorum,
        independence=known,
    )


def _independence_advice(floor: float | None, known: Independence | None) -> str | None:
    if floor is None:
        return None
    if known is None:
        return f"The labelled circles do not show how independent these voices are (floor {floor:g})"
    return None if reaches(known.effective, floor) else f"{known.sentence} is below the floor of {floor:g}"


def aggregate_consensus(
    evaluations: Sequence[NeutrosophicEvaluation],
    active_models: Sequence[str],
    model_chars: Mapping[str, ModelCharacteristics],
    config: FireCircleConfig,
) -> float:
    """The highest F among the active voices; a `QuorumError` if they do not form a quorum."""
    if config.enforce_quorum:
        verdict = judge_quorum([model_chars[model] for model in active_models], config.quorum_rules)
        if not verdict.valid:
            raise QuorumError(
                f"Cannot reach consensus: {verdict.reason}. Active models: {list(active_models)}",
                model="fire_circle",
            )
    highest = highest_falsehood(evaluations, active_models)
    if highest is None:
        raise QuorumError("Cannot reach consensus: no active voice was heard", model="fire_circle")
    return highest.falsehood

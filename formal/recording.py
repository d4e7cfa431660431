"""Circles that were really held, written down for TLC: what was declared, what was said, what was decided.

Nothing is judged here. `Trace.tla` asks whether each decision follows from what the voices said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firecircle import FireCircleConfig
from firecircle.circle import events
from firecircle.circle.config import CircleSize
from firecircle.circle.result import FireCircleResult
from formal import tlc

SILENT, FAILED, UNHEARD = -1, -2, -3
"""As in FireCircle.tla."""
NOBODY = "nobody"
CUT_SHORT = ("cancelled", "over_budget")


@dataclass
class Recording:
    """A listener that writes down the steps of one circle. A round that is cut short is no step."""

    circle: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    _round: dict[str, Any] | None = None
    _reserve: dict[str, Any] | None = None
    _verdict: dict[str, Any] | None = None

    def __call__(self, event: events.Event) -> None:
        """Take note of an event of the circle."""
        match event:
            case events.CircleConvened():
                self.circle = _declared(event.record.config)
            case events.RoundStarted():
                if self._verdict is not None:
                    self.steps.append({"kind": "open", **self._verdict})
                asked = list(event.models)
                self._round = {
                    "kind": "hear",
                    "round": event.round_number,
                    "chair": event.empty_chair_model or NOBODY,
                    "asked": asked,
                    "answers": dict.fromkeys(asked, UNHEARD),
                }
            case events.ReserveAsked():
                self._close_round()
                if self._reserve is None or self._reserve["voice"] != event.model:
                    self._close_reserve()
                    self._reserve = {"kind": "seat", "voice": event.model, "answers": []}
            case events.VoiceAnswered():
                self._answer(event.model, _hundredths(event.evaluation.falsehood))
            case events.VoiceFailed():
                self._answer(event.model, FAILED)
            case events.QuorumChecked():
                self._close_round()
                self._close_reserve()
                self._verdict = {
                    "valid": event.verdict.valid,
                    "coverage": _hundredths(event.verdict.coverage),
                }
            case events.CircleClosed():
                self._close(event.result)

    def _answer(self, model: str, answer: int) -> None:
        if self._reserve is not None and self._reserve["voice"] == model:
            self._reserve["answers"].append(answer)
        elif self._round is not None:
            self._round["answers"][model] = answer

    def _close_round(self) -> None:
        if self._round is not None:
            self.steps.append(self._round)
            self._round = None

    def _close_reserve(self) -> None:
        if self._reserve is not None:
            first, *rest = self._reserve["answers"]
            self._reserve["answers"] = [first, *(rest or [first])]
            self.steps.append(self._reserve)
            self._reserve = None

    def _close(self, result: FireCircleResult) -> None:
        is_cut = result.stopped in CUT_SHORT
        if not is_cut:
            self._close_round()
        decisive = result.consensus
        self.steps.append(
            {
                "kind": "end",
                "outcome": _outcome(result),
                "consensus": {
                    "voice": decisive.model if decisive else NOBODY,
                    "round": (decisive.round_number or 0) if decisive else 0,
                    "falsehood": _hundredths(decisive.falsehood) if decisive else SILENT,
                },
                "active": list(result.active_models),
                "zombies": set(result.zombies),
            }
        )


def _outcome(result: FireCircleResult) -> str:
    if result.stopped in CUT_SHORT:
        return "cut_short"
    if result.stopped == "aborted":
        return "failed" if result.config.strict else "no_quorum"
    return result.stopped


def _declared(config: FireCircleConfig) -> dict[str, Any]:
    brings = {model: config.characteristics(model) for model in (*config.models, *config.reserves)}
    return {
        "models": list(config.models),
        "reserves": list(config.reserves),
        "brings": {
            model: {role: _hundredths(share) for role, share in its.cognitive_roles.items()}
            for model, its in brings.items()
        },
        "lineage": {model: its.provider_lineage for model, its in brings.items()},
        "maxRounds": config.max_rounds,
        "strict": config.strict,
        "chair": (config.empty_chair_model if not config.empty_chair_rotation else "rotating")
        if config.empty_chair
        else NOBODY,
        "earlyStop": _hundredths(config.early_stop_convergence),
        "enforced": config.enforce_quorum,
        "minViable": config.min_viable_models,
        "minCoverage": _hundredths(config.min_cognitive_coverage),
        "minLineages": config.min_provider_groups,
        "large": config.size is CircleSize.LARGE,
        "extraRound": config.extra_round_on_divergence,
        "mayBeCut": True,
    }


def _hundredths(figure: float) -> int:
    return round(figure * 100)


def written(value: object) -> str:
    """A value in TLA+."""
    match value:
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case str():
            return f'"{value}"'
        case Mapping() if value:
            return "[" + ", ".join(f"{key} |-> {written(its)}" for key, its in value.items()) + "]"
        case Mapping():
            return "<<>>"
        case set():
            return "{" + ", ".join(written(member) for member in sorted(value)) + "}"
        case Iterable():
            return "<<" + ",\n  ".join(written(member) for member in value) + ">>"
    raise TypeError(f"nothing that TLA+ knows: {value!r}")


def follow(recordings: Sequence[Recording]) -> tuple[tlc.Outcome, list[int]]:
    """Let TLC follow each recording; how many steps of each were left when it could not go on."""
    defined = (
        f"R{number} == [circle |-> {written(recording.circle)}, steps |->\n  {written(recording.steps)}]\n"
        for number, recording in enumerate(recordings, 1)
    )
    names = ", ".join(f"R{number}" for number in range(1, len(recordings) + 1))
    listed = "".join(defined) + f"Recordings == <<{names}>>"
    module = f"---- MODULE Recorded ----\nEXTENDS Integers\n{listed}\n====\n"
    settings = (tlc.FOLDER / "Trace.cfg").read_text(encoding="utf-8")
    outcome = tlc.check("Trace", settings, modules=[("Recorded", module)], quick=True, allow_ends=True)
    left = [len(recording.steps) for recording in recordings]
    for which, remaining in tlc.printed(outcome, "left"):
        left[which - 1] = min(left[which - 1], remaining)
    return outcome, left

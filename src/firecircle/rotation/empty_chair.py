"""The empty chair's prompts for a decision domain, and measures of its contribution."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import get_args

from pydantic import Field
from rapidfuzz import fuzz

from firecircle.catalog import ROLE_WEIGHTS
from firecircle.circle.circumstances import ChairPhase
from firecircle.circle.patterns import group_observations
from firecircle.circle.quorum import CHAIR_ROLE
from firecircle.circle.result import DialogueRound, FireCircleResult
from firecircle.circle.templates import render
from firecircle.errors import ConfigError
from firecircle.shapes import Shape, Text, Unit

GENERAL = "general"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class Domain(Shape):
    """What a circle should consider when it judges a prompt of this field."""

    about: str
    absent_stakeholders: tuple[str, ...]
    unspoken_concerns: tuple[str, ...]
    marginalised_viewpoints: tuple[str, ...]
    lenses: dict[str, float] = Field(default_factory=dict)
    """How much each cognitive role matters here; unnamed roles have 1."""


@cache
def known_domains() -> Mapping[str, Domain]:
    """Every domain in this package."""
    text = resources.files("firecircle.rotation").joinpath("domains.toml").read_text("utf-8")
    return {name: Domain(**fields) for name, fields in tomllib.loads(text).items()}


def domain_of(name: str) -> Domain:
    """A domain by name; an unknown one is judged like any other prompt."""
    return known_domains().get(require_domain(name), known_domains()[GENERAL])


def require_domain(name: str) -> str:
    """Check a domain's name. It reaches the chair's instructions, so it must be a plain word."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "decision_domain",
            f"{name[:60]!r} is not a domain name",
            f"write a word of a-z, 0-9, - and _, such as {', '.join(list(known_domains())[:3])}",
        )
    return name


class ChairContribution(Shape):
    """One round's chair, measured on its real reply."""

    round_number: int
    model: Text
    speaks_for: Text | None
    """Whom it spoke for, in its own words; None if it did not say."""
    brought: Unit
    """Its share of the patterns first seen in this round with a matching quote."""
    grounded: Unit
    """The share of its own observations with a matching quote."""
    different: Unit
    """How little its reasoning resembles the most similar other voice of the round."""
    falsehood_apart: float
    """Its falsehood minus the mean of the others'."""
    score: Unit
    """The mean of brought, grounded and different."""


def chair_contributions(result: FireCircleResult) -> tuple[ChairContribution, ...]:
    """The contributions of all rounds with an occupied chair."""
    return tuple(
        _contribution(result, held, chair)
        for held in result.dialogue_history
        if (chair := held.occupied_chair) is not None
    )


def _contribution(result: FireCircleResult, held: DialogueRound, chair: str) -> ChairContribution:
    evaluation = next(evaluation for evaluation in held.evaluations if evaluation.model == chair)
    others = [other for other in held.evaluations if other.model != chair]
    own = [
        seen for seen in result.observations if seen.model == chair and seen.round_number == held.round_number
    ]
    brought = _share_brought(result, held.round_number, chair)
    grounded = sum(bool(seen.grounded) for seen in own) / len(own) if own else 0.0
    alike = max(
        (fuzz.token_set_ratio(evaluation.reasoning, other.reasoning) for other in others), default=0.0
    )
    different = 1.0 - alike / 100 if evaluation.reasoning else 0.0
    mean = sum(other.falsehood for other in others) / len(others) if others else evaluation.falsehood
    return ChairContribution(
        round_number=held.round_number,
        model=chair,
        speaks_for=evaluation.speaks_for or None,
        brought=brought,
        grounded=grounded,
        different=different,
        falsehood_apart=evaluation.falsehood - mean,
        score=(brought + grounded + different) / 3,
    )


def _share_brought(result: FireCircleResult, round_number: int, chair: str) -> float:
    grounded = [seen for seen in result.observations if seen.grounded and seen.round_number > 1]
    groups = group_observations(sorted(grounded, key=lambda seen: seen.round_number))
    new = [group for group in groups if min(seen.round_number for seen in group) == round_number]
    mine = sum(
        # As in the chair's influence, the order of ids within a round decides which voice was first.
        min(seen.model for seen in group if seen.round_number == round_number) == chair
        for group in new
    )
    return mine / len(new) if new else 0.0


PHASES: tuple[ChairPhase, ...] = get_args(ChairPhase)


class EmptyChairContext(Shape):
    """The stakeholders and perspectives absent from a circle."""

    decision_domain: Text
    decision_question: Text = ""
    absent_stakeholders: tuple[Text, ...]
    unspoken_concerns: tuple[Text, ...]
    marginalised_viewpoints: tuple[Text, ...]
    absent_lenses: tuple[Text, ...] = ()
    """Cognitive roles that no voice in the circle brings."""


class EmptyChairProtocol:
    """Prepares the empty chair by the field of the prompt, words its question, and scores what the chair
    contributed.
    """

    def prepare_empty_chair_context(
        self,
        decision_domain: str = GENERAL,
        decision_question: str = "",
        participating_voices: Iterable[str] = (),
        participating_perspectives: Iterable[str] | None = None,
    ) -> EmptyChairContext:
        """The context of this domain: what is absent.

        `participating_voices` and `participating_perspectives` are the stakeholders and cognitive roles that
        take part, for which the chair need not speak. Perspectives are None if unknown. `decision_question`
        is stored with the context and never becomes an instruction.
        """
        domain = domain_of(decision_domain)
        present = frozenset((*participating_voices, *(participating_perspectives or ())))
        known = participating_perspectives is not None
        return EmptyChairContext(
            decision_domain=require_domain(decision_domain),
            decision_question=decision_question,
            absent_stakeholders=tuple(name for name in domain.absent_stakeholders if name not in present),
            unspoken_concerns=domain.unspoken_concerns,
            marginalised_viewpoints=tuple(
                name for name in domain.marginalised_viewpoints if name not in present
            ),
            # The voice in the chair brings its own role.
            absent_lenses=tuple(
                role for role in ROLE_WEIGHTS if known and role not in present and role != CHAIR_ROLE
            ),
        )

    def generate_empty_chair_prompt(self, context: EmptyChairContext, phase: ChairPhase) -> str:
        """The part of the chair's prompt that says whom it speaks for and what it should ask."""
        if phase not in PHASES:
            raise ConfigError("phase", f"{phase!r} is none", f"the phases are {', '.join(PHASES)}")
        lenses = ", ".join(role.replace("_", " ") for role in context.absent_lenses)
        return render(
            _template(phase),
            stakeholders=_bullet_list(context.absent_stakeholders),
            concerns=_bullet_list(context.unspoken_concerns),
            viewpoints=_bullet_list(context.marginalised_viewpoints),
            lenses=f"No voice in this circle is known for {lenses}: look there too." if lenses else "",
        )

    def prompts_of(self, context: EmptyChairContext) -> Mapping[ChairPhase, str]:
        """The chair's prompts for all phases of a circle."""
        return {phase: self.generate_empty_chair_prompt(context, phase) for phase in PHASES}

    def evaluate_contributions(self, result: FireCircleResult) -> tuple[ChairContribution, ...]:
        """The chair's contribution in each round with an occupied chair."""
        return chair_contributions(result)


@cache
def _template(phase: ChairPhase) -> str:
    place = resources.files("firecircle.rotation").joinpath("templates", f"{phase}.txt")
    return place.read_text("utf-8")


def _bullet_list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item[0].upper()}{item[1:]}" for item in items)

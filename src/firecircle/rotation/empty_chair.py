"""The empty chair's words for a decision domain: whom it speaks for, and what it asks in each phase.

What is written here is instruction to the voice in the chair and comes from the package alone. Nothing of
the evaluated prompt ever enters it; the evidence stands between its own markers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import get_args

from firecircle.catalog import ROLE_WEIGHTS
from firecircle.circle.circumstances import ChairPhase
from firecircle.circle.questions import render
from firecircle.circle.quorum import CHAIR_ROLE
from firecircle.circle.result import FireCircleResult
from firecircle.errors import ConfigError
from firecircle.rotation.chair_scores import ChairContribution, chair_contributions
from firecircle.rotation.domains import GENERAL, domain_of, require_domain
from firecircle.shapes import Shape, Text

PHASES: tuple[ChairPhase, ...] = get_args(ChairPhase)


class EmptyChairContext(Shape):
    """Who and what is absent from a circle."""

    decision_domain: Text
    absent_stakeholders: tuple[Text, ...]
    unspoken_concerns: tuple[Text, ...]
    marginalised_viewpoints: tuple[Text, ...]
    absent_lenses: tuple[Text, ...] = ()
    """Cognitive roles that nobody in the circle brings."""


class EmptyChairProtocol:
    """Prepares the chair, words its question and looks at what it brought."""

    def prepare_empty_chair_context(
        self, decision_domain: str = GENERAL, participating_perspectives: Iterable[str] | None = None
    ) -> EmptyChairContext:
        """What is absent in this domain.

        `participating_perspectives` are the cognitive roles present in the circle and the stakeholders who
        do take part; the chair need not speak for these. None when it is not known who takes part.
        """
        domain = domain_of(decision_domain)
        present = frozenset(participating_perspectives or ())
        known = participating_perspectives is not None
        return EmptyChairContext(
            decision_domain=require_domain(decision_domain),
            absent_stakeholders=tuple(one for one in domain.absent_stakeholders if one not in present),
            unspoken_concerns=domain.unspoken_concerns,
            marginalised_viewpoints=tuple(
                one for one in domain.marginalised_viewpoints if one not in present
            ),
            # Whoever sits in the chair brings its own role.
            absent_lenses=tuple(
                role for role in ROLE_WEIGHTS if known and role not in present and role != CHAIR_ROLE
            ),
        )

    def generate_empty_chair_prompt(self, context: EmptyChairContext, phase: ChairPhase) -> str:
        """The part of the chair's question that says whom it speaks for and what it should ask."""
        if phase not in PHASES:
            raise ConfigError(f"phase: {phase!r} is none; the phases are {', '.join(PHASES)}")
        lenses = ", ".join(role.replace("_", " ") for role in context.absent_lenses)
        return render(
            _template(phase),
            stakeholders=_listed(context.absent_stakeholders),
            concerns=_listed(context.unspoken_concerns),
            viewpoints=_listed(context.marginalised_viewpoints),
            lenses=f"Nobody in this circle is known for {lenses}: look there too." if lenses else "",
        )

    def prompts_of(self, context: EmptyChairContext) -> Mapping[ChairPhase, str]:
        """The chair's words for all phases of a circle."""
        return {phase: self.generate_empty_chair_prompt(context, phase) for phase in PHASES}

    def evaluate_contributions(self, result: FireCircleResult) -> tuple[ChairContribution, ...]:
        """What the chair brought in each round in which somebody spoke from it."""
        return chair_contributions(result)


@cache
def _template(phase: ChairPhase) -> str:
    place = resources.files("firecircle.rotation").joinpath("templates", f"{phase}.txt")
    return place.read_text("utf-8")


def _listed(items: Iterable[str]) -> str:
    return "\n".join(f"- {item[0].upper()}{item[1:]}" for item in items)

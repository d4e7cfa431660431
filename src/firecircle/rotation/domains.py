"""Decision domains: the fields a prompt may come from, with who is absent there and which lenses count."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from pydantic import Field

from firecircle.errors import ConfigError
from firecircle.shapes import Shape

GENERAL = "general"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class Domain(Shape):
    """What a circle should bear in mind when it judges a prompt of this field."""

    about: str
    absent_stakeholders: tuple[str, ...]
    unspoken_concerns: tuple[str, ...]
    marginalised_viewpoints: tuple[str, ...]
    lenses: dict[str, float] = Field(default_factory=dict)
    """How much each cognitive role matters here; a role that is not named matters 1."""


@cache
def known_domains() -> Mapping[str, Domain]:
    """Every domain that ships with the package."""
    text = resources.files("firecircle.rotation").joinpath("domains.toml").read_text("utf-8")
    return {name: Domain(**fields) for name, fields in tomllib.loads(text).items()}


def domain_of(name: str) -> Domain:
    """What is known of a domain; one that nobody described is judged as any other prompt is."""
    return known_domains().get(require_domain(name), known_domains()[GENERAL])


def require_domain(name: str) -> str:
    """The name, if it may name a domain. It reaches the chair's instructions, so it must be a plain word."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "decision_domain",
            f"{name[:60]!r} is no name of a domain",
            f"write a word of a-z, 0-9, - and _, such as {', '.join(list(known_domains())[:3])}",
        )
    return name

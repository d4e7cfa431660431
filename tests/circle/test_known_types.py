"""One file per pattern type: it is complete, and everything that speaks of types reads it."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

import pytest
from pydantic import ValidationError

from firecircle.catalog import ROLE_WEIGHTS
from firecircle.circle.pattern_types import KnownType, known_types, types_by_role
from firecircle.names import PATTERN_TYPES, PatternType

FOLDER = resources.files("firecircle.circle.pattern_types")


def written(kind: str) -> dict[str, Any]:
    return tomllib.loads(FOLDER.joinpath(f"{kind}.toml").read_text("utf-8"))


def test_there_is_a_file_for_every_type_and_no_other() -> None:
    files = {place.name.removesuffix(".toml") for place in FOLDER.iterdir() if place.name.endswith(".toml")}
    assert files == set(PATTERN_TYPES)


@pytest.mark.parametrize("key", KnownType.model_fields)
@pytest.mark.parametrize("kind", PATTERN_TYPES)
def test_no_key_may_be_missing_or_empty(kind: str, key: str) -> None:
    known = written(kind)
    KnownType.model_validate(known)
    left_out = {name: value for name, value in known.items() if name != key}
    for incomplete in (left_out, {**known, key: type(known[key])()}):
        with pytest.raises(ValidationError, match=key):
            KnownType.model_validate(incomplete)


def test_a_key_that_nothing_reads_is_refused() -> None:
    with pytest.raises(ValidationError, match="remark"):
        KnownType.model_validate({**written("false_authority"), "remark": "unread"})


@pytest.mark.parametrize("kind", PatternType)
def test_what_a_type_refers_to_exists(kind: PatternType) -> None:
    known = known_types()[kind]
    concepts = tomllib.loads(
        resources.files("firecircle.store.bank").joinpath("concepts.toml").read_text("utf-8")
    )
    assert set(known.concepts) <= {*concepts["common"], *concepts["telling"]}
    assert set(known.roles) <= set(ROLE_WEIGHTS)
    assert all("{thing}" in attack for attack in known.attacks)
    assert all(kind.value in types_by_role()[role] for role in known.roles)

"""What there is to choose from: kinds of patterns, and voices."""

from __future__ import annotations

import sqlalchemy as sa
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from firecircle.catalog import families
from firecircle.circle.pattern_types import MEANINGS
from firecircle.errors import ConfigError
from firecircle.request import JudgingRequest, configured_by_file, embedded_models
from firecircle.store import tables
from firecircle.web.api.shapes import PatternKind, PatternKinds, VoiceKind, Voices
from firecircle.web.viewer import viewer_of


def list_patterns(request: Request) -> Response:
    """The kinds of manipulation, and how often each was found."""
    found = tables.patterns.c
    counted = (
        sa.select(found.pattern_type, sa.func.count(sa.distinct(found.circle_pk)))
        .where(found.grounded.is_(True))
        .group_by(found.pattern_type)
    )
    with viewer_of(request).store.database.reading() as connection:
        counts = {str(kind): int(number) for kind, number in connection.execute(counted)}
    told = [
        PatternKind(pattern_type=kind.value, meaning=meaning, circles=counts.pop(kind.value, 0))
        for kind, meaning in MEANINGS.items()
    ]
    told += [
        PatternKind(pattern_type=kind, meaning="", circles=number) for kind, number in sorted(counts.items())
    ]
    return JSONResponse(PatternKinds(patterns=tuple(told)).model_dump())


def list_voices(_: Request) -> Response:
    """The voices that the catalog knows, and who sits by default."""
    told = Voices(
        default=default_models(),
        embedded=embedded_models(),
        families=tuple(
            VoiceKind(
                names=family.match,
                provider_lineage=family.provider_lineage,
                alignment_style=family.alignment_style,
                cognitive_roles=family.cognitive_roles,
            )
            for family in families()
        ),
    )
    return JSONResponse(told.model_dump())


def default_models() -> tuple[str, ...]:
    """Who sits in a circle when nobody is named."""
    try:
        return configured_by_file(JudgingRequest()).config.models
    except ConfigError:
        return embedded_models()

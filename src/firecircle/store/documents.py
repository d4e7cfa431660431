"""A circle or panel as one JSON document: the truth, of which everything else in the store is an index."""

from __future__ import annotations

import zlib
from typing import Literal, NamedTuple

from pydantic import ValidationError

from firecircle.circle.panel import Panel
from firecircle.circle.result import SCHEMA_VERSION, FireCircleResult
from firecircle.errors import ConfigError, StoreError
from firecircle.shapes import config_error

CircleOrPanel = FireCircleResult | Panel
"""What can be stored: the result of a circle, or what a panel said."""

DocumentKind = Literal["circle", "panel"]
DEFLATION = 6


class Document(NamedTuple):
    """A circle or panel as it lies in the database."""

    kind: DocumentKind
    schema_version: int
    body: bytes


def document_of(judged: CircleOrPanel) -> Document:
    """The document of a circle or panel."""
    kind: DocumentKind = "circle" if isinstance(judged, FireCircleResult) else "panel"
    return Document(kind, judged.schema_version, zlib.compress(judged.model_dump_json().encode(), DEFLATION))


def text_of(document: Document, name: str) -> str:
    """The JSON of a document."""
    try:
        return zlib.decompress(document.body).decode()
    except (zlib.error, TypeError, UnicodeDecodeError) as broken:
        raise _unreadable(name, str(broken)) from broken


def parse_document(document: Document, name: str) -> CircleOrPanel:
    """The circle or panel that a document holds."""
    if document.schema_version > SCHEMA_VERSION:
        raise StoreError(
            f"{name}: written by a newer Fire Circle (schema {document.schema_version},"
            f" this one reads {SCHEMA_VERSION}); upgrade firecircle"
        )
    text = text_of(document, name)
    try:
        return _parse_json(document.kind, text)
    except (ValidationError, ConfigError) as broken:
        why = str(config_error(broken, name) if isinstance(broken, ValidationError) else broken)
        raise _unreadable(name, why) from broken


def _unreadable(name: str, why: str) -> StoreError:
    return StoreError(f"{name}: the stored document cannot be read: {why}")


def _parse_json(kind: DocumentKind, text: str) -> CircleOrPanel:
    """A circle or panel from its JSON."""
    return (FireCircleResult if kind == "circle" else Panel).model_validate_json(text)

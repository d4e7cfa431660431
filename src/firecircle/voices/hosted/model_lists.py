"""The lists of models that providers published, saved on this machine."""

from __future__ import annotations

import hashlib
import math
import time
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path

from pydantic import Field, ValidationError

from firecircle.files import write_whole
from firecircle.settings import PriceTable, user_folder
from firecircle.shapes import Shape, Text
from firecircle.voices.hosted.providers import (
    Provider,
)

A_DAY = 24 * 3600.0
A_WEEK = 7 * A_DAY
BEFORE_ASKING_AGAIN = 300.0
"""Seconds before a list that was unavailable is requested again."""


class ListedModel(Shape):
    """A model in its provider's list."""

    id: Text
    created: float | None = None
    """When it was added, in seconds since 1970."""
    context: int | None = None
    """The context size: tokens of question and answer together."""
    price: PriceTable | None = None
    expires: Text | None = None
    """The day on which the provider removes it, if stated."""

    @property
    def is_gone(self) -> bool:
        """Whether that day has come."""
        try:
            return (
                self.expires is not None and date.fromisoformat(self.expires[:10]) <= datetime.now(UTC).date()
            )
        except ValueError:
            return False


class ModelList(Shape):
    """A provider's list, its date, and what was learnt about it since."""

    base_url: Text
    asked_at: float = 0.0
    models: tuple[ListedModel, ...] = ()
    failed_at: float = 0.0
    trouble: Text = ""
    """Why the last request for the list failed; empty if it succeeded."""
    gone: dict[Text, float] = Field(default_factory=dict)
    """Models that the provider said it does not have, whatever its list says, and when."""

    def find(self, name: str) -> ListedModel | None:
        """The entry of a model, if it is available."""
        return next((model for model in self.present if model.id == name), None)

    @property
    def present(self) -> tuple[ListedModel, ...]:
        """The models available today, as far as known."""
        return tuple(model for model in self.models if not model.is_gone and not self.knows_gone(model.id))

    def knows_gone(self, name: str) -> bool:
        """Whether the provider said within the last day that it does not have a model."""
        return time.time() - self.gone.get(name, -math.inf) < A_DAY

    @property
    def needs_asking(self) -> bool:
        """Whether it is older than a day, and the last request did not just fail."""
        now = time.time()
        is_fresh = self.asked_at <= now < self.asked_at + A_DAY
        return not is_fresh and not self.failed_at <= now < self.failed_at + BEFORE_ASKING_AGAIN


def kept_list(provider: Provider) -> ModelList:
    """The saved list of a provider, without a request; empty if there is none."""
    path = _file_of(provider.base_url)
    try:
        return _read(path, path.stat().st_mtime_ns, provider.base_url)
    except OSError:
        return ModelList(base_url=provider.base_url)


@lru_cache(maxsize=16)
def _read(path: Path, _changed: int, base_url: str) -> ModelList:
    """Cached while the file is unchanged: every voice asks for its price."""
    try:
        kept = ModelList.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return ModelList(base_url=base_url)
    return kept if kept.base_url == base_url else ModelList(base_url=base_url)


def listed_price(provider: Provider, name: str) -> PriceTable | None:
    """The price in the provider's saved list, if it is recent enough; without a request."""
    kept = kept_list(provider)
    entry = kept.find(name) if time.time() - kept.asked_at < A_WEEK else None
    return entry.price if entry else None


def remember_gone(provider: Provider, name: str) -> None:
    """Save that the provider does not have a model, so that it is not chosen again today."""
    kept = kept_list(provider)
    gone = {model: since for model, since in kept.gone.items() if kept.knows_gone(model)}
    save_list(kept.model_copy(update={"gone": {**gone, name: time.time()}}))


def _file_of(base_url: str) -> Path:
    digest = hashlib.sha256(base_url.encode()).hexdigest()[:16]
    return user_folder("cache") / f"models-{digest}.json"


def save_list(models: ModelList) -> None:
    """Save the list, the whole of it or nothing. Without a folder for it, it is requested every time."""
    path = _file_of(models.base_url)
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, models.model_dump_json(), mode=0o600)

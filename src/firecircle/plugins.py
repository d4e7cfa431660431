"""Voices, lenses and datasets that other packages bring, found by their entry points.

A package declares what it brings in its `pyproject.toml`, and users can name it after installation::

    [project.entry-points."firecircle.voices"]
    acme = "acme_circle:VOICES"        # a PluginVoices; seated as acme:NAME
    [project.entry-points."firecircle.lenses"]
    invoices = "acme_circle:INVOICES"  # a PluginLens; seated as embedded:invoices
    [project.entry-points."firecircle.datasets"]
    acme-log = "acme_circle:read_log"  # a PluginDataset; read by files that it recognises

Entry points are looked up only for a name that the package itself does not know, because looking takes time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from firecircle.errors import ConfigError
from firecircle.names import EMBEDDED

if TYPE_CHECKING:
    from firecircle.catalog import ModelCharacteristics
    from firecircle.circle.voice import Voice
    from firecircle.voices.embedded.language.prompt_reading import PromptReading
    from firecircle.voices.embedded.lenses.findings import Finding, Lens

__all__ = ["Finding", "Lens", "PluginDataset", "PluginLens", "PluginVoices", "PromptReading"]

_FOR_LENSES = {
    "Finding": "firecircle.voices.embedded.lenses.findings",
    "Lens": "firecircle.voices.embedded.lenses.findings",
    "PromptReading": "firecircle.voices.embedded.language.prompt_reading",
}
"""Names that the author of a lens needs, imported on first use."""
VOICES, LENSES, DATASETS = "firecircle.voices", "firecircle.lenses", "firecircle.datasets"
Brought = TypeVar("Brought")


@dataclass(frozen=True)
class PluginVoices:
    """Voices of a package: how to make each one, and what it contributes to a quorum."""

    seat: Callable[[str], Voice]
    """Makes the voice of a name, such as `judge` for `acme:judge`."""
    characteristics: Mapping[str, ModelCharacteristics]
    """What each name contributes; only these names can be used."""


@dataclass(frozen=True)
class PluginLens:
    """An analyser of a package: free, deterministic and quick."""

    make: Callable[[], Lens]
    characteristics: ModelCharacteristics


@dataclass(frozen=True)
class PluginDataset:
    """A format that a package can read."""

    recognises: Callable[[Path, bytes], bool]
    """Whether a file is of this format, by its name and its first bytes."""
    rows: Callable[[Path], Iterable[Mapping[str, Any]]]
    """The rows of the file under the usual names: `user`, `system`, `application`, `turns`, `label`, `id`."""


def __getattr__(name: str) -> Any:
    if name in _FOR_LENSES:
        return getattr(import_module(_FOR_LENSES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def plugin_characteristics(model: str) -> ModelCharacteristics | None:
    """The characteristics that an installed plugin declares for a voice, if it has one of this name."""
    prefix, _, name = model.partition(":")
    if model.startswith(EMBEDDED):
        point = _points(LENSES).get(name)
        return _load(point, PluginLens).characteristics if point else None
    point = _points(VOICES).get(prefix) if name else None
    return _load(point, PluginVoices).characteristics.get(name) if point else None


def plugin_voice(model: str) -> Voice | None:
    """The voice of this name from an installed plugin, if any."""
    plugin = plugin_with(model)
    return plugin.seat(model.partition(":")[2]) if plugin else None


def plugin_with(model: str) -> PluginVoices | None:
    """The installed plugin with this prefix, if any; a `ConfigError` if it has no voice of this name."""
    prefix, _, name = model.partition(":")
    point = _points(VOICES).get(prefix) if name else None
    if point is None:
        return None
    plugin = _load(point, PluginVoices)
    if name not in plugin.characteristics:
        known = ", ".join(f"{prefix}:{other}" for other in plugin.characteristics)
        raise ConfigError("models", f"the plugin {_describe(point)} has no voice {name!r}", f"it has {known}")
    return plugin


def plugin_lens(name: str) -> Lens | None:
    """The lens of this name from an installed plugin, if any."""
    point = _points(LENSES).get(name)
    return _load(point, PluginLens).make() if point else None


def plugin_datasets() -> dict[str, PluginDataset]:
    """Every format that installed plugins can read."""
    return {name: _load(point, PluginDataset) for name, point in _points(DATASETS).items()}


def plugin_voice_names() -> list[str]:
    """The full names of all voices of installed plugins."""
    voices = [
        f"{prefix}:{name}"
        for prefix, point in _points(VOICES).items()
        for name in _load(point, PluginVoices).characteristics
    ]
    return voices + [EMBEDDED + name for name in _points(LENSES)]


@cache
def _points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def _load(point: EntryPoint, shape: type[Brought]) -> Brought:
    try:
        brought = point.load()
    except Exception as broken:  # a plugin may raise anything; the user must know which one it was
        raise ConfigError(
            "models" if point.group != DATASETS else "dataset",
            f"the plugin {_describe(point)} cannot be loaded: {type(broken).__name__}: {broken}",
            "update or remove that package",
        ) from broken
    if not isinstance(brought, shape):
        raise ConfigError(
            point.group,
            f"the plugin {_describe(point)} is no {shape.__name__}",
            "update or remove that package",
        )
    return brought


def _describe(point: EntryPoint) -> str:
    return f"{point.name!r} of the package {point.dist.name if point.dist else 'unknown'}"

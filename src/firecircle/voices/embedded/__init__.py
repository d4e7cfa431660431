"""Analysers that need nothing but the package: each is one lens, and speaks in the dialogue like any voice.

Data flows one way: text → words' classes → orders and intents → a reading of the prompt → a lens's findings
→ an answer. To add a lens, write `find`, `support` and `blindness` (see `findings.Lens`), list it here and
declare it in the catalog. To teach all lenses a word, add it to `vocabulary.toml`. How much each sign counts
stands in the table `STRENGTHS` at the top of the file that looks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from firecircle.catalog import original_of
from firecircle.errors import ConfigError
from firecircle.names import EMBEDDED, EMBEDDED_MODELS, NEURAL_MODEL
from firecircle.plugins import plugin_lens

if TYPE_CHECKING:
    from firecircle.circle.voice import Voice
    from firecircle.voices.embedded.lenses.findings import Lens

__all__ = ["EMBEDDED_NAMES", "embedded_voice"]

EMBEDDED_NAMES = (
    *("time", "layers", "hidden", "extraction", "authority", "ngrams", "neural", "operator", "generalist"),
)


def embedded_voice(model: str) -> Voice:
    """The embedded voice of this name, such as `embedded:time`."""
    from firecircle.voices.embedded.voice import EmbeddedVoice

    name = original_of(model).removeprefix(EMBEDDED)
    if name == "generalist":
        return _generalist()
    if name not in _lenses() and plugin_lens(name) is None:
        known = ", ".join(EMBEDDED + lens for lens in EMBEDDED_NAMES)
        raise ConfigError("models", f"there is no embedded voice {model!r}", f"there are {known}")
    return EmbeddedVoice(_lens(name))


@cache
def _generalist() -> Voice:
    from firecircle.voices.embedded.generalist import Generalist
    from firecircle.voices.embedded.learned.neural import is_available

    models = (*EMBEDDED_MODELS, NEURAL_MODEL) if is_available() else EMBEDDED_MODELS
    return Generalist([_lens(model.removeprefix(EMBEDDED)) for model in models])


@cache
def _lens(name: str) -> Lens:
    """One for all circles: a lens keeps nothing of what it saw."""
    lens = _lenses()[name]() if name in _lenses() else plugin_lens(name)
    assert lens is not None
    return lens


@cache
def _lenses() -> dict[str, Callable[[], Lens]]:
    """The lenses by name, imported when the first embedded voice is asked for."""
    from firecircle.voices.embedded.learned.neural import NeuralLens
    from firecircle.voices.embedded.learned.ngrams import NgramLens
    from firecircle.voices.embedded.lenses.authority import AuthorityLens
    from firecircle.voices.embedded.lenses.concealment import ConcealmentLens
    from firecircle.voices.embedded.lenses.extraction import ExtractionLens
    from firecircle.voices.embedded.lenses.layers import LayersLens
    from firecircle.voices.embedded.lenses.operator import OperatorLens
    from firecircle.voices.embedded.lenses.time import TimeLens

    lenses = (
        *(TimeLens, LayersLens, ConcealmentLens, ExtractionLens, AuthorityLens, OperatorLens),
        *(NgramLens, NeuralLens),
    )
    return {lens.name: lens for lens in lenses}

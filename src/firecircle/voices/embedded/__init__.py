"""Three complete readers that need no model server: rules, n-grams, and sentence encoders.

Data flows one way: text → words' classes → orders and intents → a reading of the prompt → findings → an
answer. A reader finds manipulation of any type with its own method (`lenses.findings.Reader`), and
`ReaderVoice` lets it take part in the dialogue. To add rules, write a lens with `find` and list it here. To
teach all lenses a word, add it to `vocabulary.toml`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from firecircle.catalog import original_of
from firecircle.errors import ConfigError
from firecircle.names import EMBEDDED, EMBEDDED_ALIASES
from firecircle.plugins import plugin_lens

if TYPE_CHECKING:
    from firecircle.circle.voice import Voice
    from firecircle.prompt import MultiNeutrosophicPrompt
    from firecircle.voices.embedded.lenses.findings import Finding, Reader

__all__ = ["EMBEDDED_NAMES", "embedded_voice", "line_findings"]

EMBEDDED_NAMES = ("rules", "ngrams", "neural", "operator", "skill")


def embedded_voice(model: str) -> Voice:
    """The embedded voice of this name, such as `embedded:rules`."""
    from firecircle.voices.embedded.voice import ReaderVoice

    name = original_of(model).removeprefix(EMBEDDED)
    reader = _reader(EMBEDDED_ALIASES.get(name, name))
    if reader is None:
        known = ", ".join(EMBEDDED + name for name in EMBEDDED_NAMES)
        raise ConfigError("models", f"there is no embedded voice {model!r}", f"there are {known}")
    return ReaderVoice(reader)


def line_findings(model: str, prompt: MultiNeutrosophicPrompt) -> tuple[Finding, ...]:
    """Everything that one reader finds in a prompt, each place for itself."""
    from firecircle.voices.embedded.language.prompt_reading import read_prompt

    reader = _reader(model.removeprefix(EMBEDDED))
    return read_prompt(prompt).found_by(reader) if reader else ()


@cache
def _reader(name: str) -> Reader | None:
    """One for all circles: a reader keeps nothing of what it saw."""
    from firecircle.voices.embedded.rules import RuleReader

    if name == "rules":
        return rule_reader()
    if name == "ngrams":
        from firecircle.voices.embedded.learned.ngrams import NgramReader

        return NgramReader()
    if name == "neural":
        from firecircle.voices.embedded.learned.neural import NeuralReader

        return NeuralReader()
    if name == "operator":
        from firecircle.voices.embedded.lenses.operator import OperatorLens

        return RuleReader(name, [OperatorLens()])
    if name == "skill":
        from firecircle.voices.embedded.lenses.skill import SkillLens

        return RuleReader(name, [SkillLens()], reserve=0.0)  # no other reader judges a line by the file
    lens = plugin_lens(name)
    return RuleReader(name, [lens]) if lens else None


def rule_reader() -> Reader:
    """All rule lenses and decoders as one reader."""
    from firecircle.voices.embedded.lenses.authority import AuthorityLens
    from firecircle.voices.embedded.lenses.concealment import ConcealmentLens
    from firecircle.voices.embedded.lenses.extraction import ExtractionLens
    from firecircle.voices.embedded.lenses.layers import LayersLens
    from firecircle.voices.embedded.lenses.time import TimeLens
    from firecircle.voices.embedded.rules import RuleReader

    lenses = (TimeLens(), LayersLens(), ConcealmentLens(), ExtractionLens(), AuthorityLens())
    return RuleReader("rules", lenses, "claims, layers, disguises, requests and ranks with every rule")

"""What one `evaluate` command line asks for, once it is understood."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.circumstances import Seating
from firecircle.circle.config import FireCircleConfig
from firecircle.cli.options import JsonForm
from firecircle.errors import ConfigError
from firecircle.names import EvaluationMode, is_embedded
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.session import SessionMemory
from firecircle.settings import current_settings
from firecircle.store.opening import Store, open_store
from firecircle.telling.safe_text import printable_line
from firecircle.voices.readiness import keys_for, unusable_keys

if TYPE_CHECKING:
    from firecircle.circle.panel import Guide


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt, who is to judge it and how, and how to tell the outcome."""

    prompt: MultiNeutrosophicPrompt
    config: FireCircleConfig | EvaluationConfig
    seating: Seating | None = None
    """How its voices came to sit; None for a judgement that is only told again."""
    session: SessionMemory | None = None
    session_file: str | None = None
    example: str | None = None
    store: Store | None = None
    """Where the outcome is kept."""
    label: str | None = None
    bank: Guide | None = None
    """Who tells the voices of the single and parallel modes what to look out for."""
    as_json: JsonForm | None = None
    verbose: bool = False
    joined: tuple[str, ...] = ()
    """The embedded readers that joined the named voices to make a quorum."""

    @property
    def mode(self) -> EvaluationMode:
        """Whether the voices talk, and if not, whether there are several."""
        return self.config.mode

    @property
    def threshold(self) -> float:
        """The falsehood from which on it is an alarm."""
        return self.config.alarm_threshold

    @property
    def introduction(self) -> str:
        """Two lines: who judges, and what."""
        sizes = ", ".join(f"{layer.name} {len(layer.text):,}" for layer in self.prompt.layers)
        turn = self.session.turn_count if self.session else self.prompt.turn_number
        focus = self.config.focus
        parts = [
            f"example {printable_line(self.example)}" if self.example else "",
            f"{sizes} characters",
            f"turn {turn}" if turn else "turn unknown",
            f"only the {focus} layer is judged" if focus != "prompt" else "",
        ]
        about = "; ".join(part for part in parts if part)
        return f"Fire Circle: {self._judges}\nPrompt: {about}\n"

    @property
    def first_line(self) -> str:
        """Who judges, where that is worth a line: not for the built-in readers without any key."""
        usual = self.seating is not None and self.seating.kind in ("default", "offline")
        if usual and all(map(is_embedded, self.config.first_asked)) and not unusable_keys():
            return ""
        return self.introduction.partition("\n")[0]

    @property
    def _judges(self) -> str:
        """Who is going to judge, why they, and for how long."""
        asked = self.config.first_asked
        how = {
            EvaluationMode.SINGLE: "asked once",
            EvaluationMode.PARALLEL: "each asked once, apart from the others",
            EvaluationMode.FIRE_CIRCLE: f"up to {_rounds(self.config)}",
        }[self.mode]
        seating = self.seating or Seating.of(asked)
        who = printable_line(seating.set_name)
        match seating.kind:
            case "rotated":
                return f"{who} drawn by rotation, {how}"
            case "offline":
                return f"{who} on this machine, {how}"
            case "chosen" if self.joined:
                return f"{who}: the embedded readers joined to make a quorum, {how}"
            case "chosen":
                return f"{who if len(asked) > 1 else '1 voice'}, {how}"
        if all(map(is_embedded, asked)):
            unusable = unusable_keys()
            why = f"found {unusable[0]}" if unusable else "no provider's key, no --models"
            return f"{who} built in ({why}: offline and free), {how}"
        keys = " and ".join(keys_for(asked))
        named = ", ".join(printable_line(model) for model in asked if not is_embedded(model))
        readers = " and the embedded readers" if any(map(is_embedded, asked)) else ""
        return f"{named}{readers} (found {keys}), {how}" if keys else f"{who} (the default), {how}"


def _rounds(config: FireCircleConfig | EvaluationConfig) -> str:
    rounds = config.max_rounds if isinstance(config, FireCircleConfig) else 1
    return "1 round" if rounds == 1 else f"{rounds} rounds"


def store_for(
    save: bool | None, where: str | None, label: str | None, *, is_read: bool = False
) -> Store | None:
    """The store to keep the outcome in, not opened yet; None when nothing shall be kept.

    A store that `is_read` may be named all the same: its history or its bank is heeded.
    """
    if save is False:
        for option, given in (("--store", None if is_read else where), ("--label", label)):
            if given is not None:
                raise ConfigError(option, "nothing is saved with --no-save", "leave one of them out")
        return None
    if save is None and where is None and not current_settings().store.save:
        return None
    return Store(where)


def label_of(label: str | None, example: str | None, *, changed: bool) -> str | None:
    """What the prompt really is: as told, or as the bundled example says if nothing of it was replaced.

    An attack is labelled with its type, so that calibration knows which lenses should have seen it.
    """
    if label is not None or example is None or changed:
        return label
    from firecircle.examples import find_example

    bundled = find_example(example)
    return f"attack:{bundled.pattern_type}" if bundled.label == "attack" else bundled.label


def guide_for(k: int | None, mode: str, where: str | None) -> StoredGuide | None:
    """What tells the voices about the k most relevant patterns of the bank, if that is asked for."""
    if k is None:
        return None
    if mode == "fire_circle":
        raise ConfigError("--bank", "a circle judges unaided first", "use --mode single or --mode parallel")
    return StoredGuide(k, where)


@dataclass(frozen=True, slots=True)
class StoredGuide:
    """The bank of a store, as a guide."""

    k: int
    where: str | None

    def guidance_for(self, prompt: MultiNeutrosophicPrompt) -> tuple[str, ...]:
        """A line for each of the most relevant patterns."""
        with open_store(self.where) as store:
            if not store.bank.count():
                raise ConfigError(
                    "--bank", "the bank is empty", "`firecircle bank learn` fills it from the saved circles"
                )
            return store.bank.guidance_for(prompt, self.k)


@contextmanager
def warn_of_unsaved() -> Iterator[list[str]]:
    """A list for why judgements could not be kept; printed after everything else, a line for each reason."""
    unkept: list[str] = []
    try:
        yield unkept
    finally:
        for why, times in Counter(unkept).items():
            count = f" ({times:,} times)" if times > 1 else ""
            print(f"warning: not saved{count}: {printable_line(why)}", file=sys.stderr)

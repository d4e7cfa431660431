"""What the neural voice makes of a prompt: windows of each layer, read by two models.

A sentence model tuned for it reads a window with the name of its layer and the beginning of what it relates
to: the operator's text, and for a document the user's request. A multilingual one reads the window alone
(`broad.py`), and in other languages than English it is the only one. What is learned are small changes of the
first model's matrices and a head over each (`training.neural`); the models come with packages of their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from firecircle.languages import unread_letters
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.learned import LEARNT_TYPES
from firecircle.voices.embedded.learned.broad import BroadReader
from firecircle.voices.embedded.learned.encoder import (
    FIRST,
    LAST,
    TOGETHER,
    WIDTH,
    Array,
    Encoder,
    weights_folder,
)
from firecircle.voices.embedded.lenses.findings import probability, says_something

WEIGHTS_FILE = "neural.npz"
LONGEST_WINDOW = 320
"""Characters: as many whole sentences as fit."""
MOST_PIECES, MOST_CONTEXT = 88, 24
"""Pieces of words read of a window, and of what it relates to."""
MOST_SYSTEM = 8_000
"""Characters of the operator's text among which the nearest sentence is looked for."""
MOST_BROAD, MOST_READ = 24, 2
"""Windows of a prompt that the multilingual model reads, and of those the worst that the tuned one reads in
full. Skimming finds the first, so time hardly grows with the prompt."""
TAGS = {"user": "user :", "application": "document :"}
FINGERPRINT = "Please read this sentence before you judge any other."
_ENDS = re.compile(r"""(?<=[.!?。！？…;])["'”’)\]}*]*\s+|\n+|(?<=[。！？])""")


class Window(NamedTuple):
    """A stretch of a layer, by its place: its words are the prompt's own."""

    layer: str
    start: int
    end: int

    def touches(self, layer: str, start: int, end: int) -> bool:
        """Whether it overlaps a place."""
        return self.layer == layer and self.start < end and start < self.end


@dataclass(frozen=True, slots=True)
class Input:
    """A window as the model reads it: the first `own` pieces are its own, the others what it relates to."""

    window: Window
    pieces: list[int]
    own: int


class Inputs:
    """The windows of a prompt's lower layers, each to be read beside what it relates to.

    A window of the user's is read beside the sentence of the operator's text that is nearest to its words; a
    window of a document beside the user's request as well. So a request that breaks a rule meets that rule.
    """

    def __init__(self, prompt: MultiNeutrosophicPrompt, model: Encoder) -> None:
        self._model, self._prompt = model, prompt
        self.windows = [window for layer in TAGS for window in windows(str(getattr(prompt, layer)), layer)]
        self._request = model.words.pieces(prompt.user[:300])[: MOST_CONTEXT * 2 // 3]
        system = prompt.system[:MOST_SYSTEM]
        rules = (model.words.pieces(system[start:end]) for start, end in _stretches(system))
        self._rules = [rule[:MOST_CONTEXT] for rule in rules if rule]
        self._vectors = model.skim_pieces(self._rules)

    def own(self, window: Window) -> list[int]:
        """The window alone, behind the name of its layer."""
        text = str(getattr(self._prompt, window.layer))[window.start : window.end]
        words = self._model.words
        return [FIRST, *words.pieces(TAGS[window.layer]), *words.pieces(text)[:MOST_PIECES], LAST]

    def input(self, window: Window) -> Input:
        """The window with what it relates to."""
        own = self.own(window)
        rule = self._nearest_rule(own)
        if window.layer == "user":
            return Input(window, [*own, *rule, LAST], len(own))
        beside = [*self._request, LAST, *rule[: MOST_CONTEXT // 2]]
        return Input(window, [*own, *beside, LAST], len(own))

    def nearness_to_rules(self, window: Window) -> float:
        """How near the nearest sentence of the operator's text is to the window's words."""
        return float(self._nearness(self.own(window)).max()) if self._rules else 0.0

    def _nearest_rule(self, own: list[int]) -> list[int]:
        return self._rules[int(self._nearness(own).argmax())] if self._rules else []

    def _nearness(self, own: list[int]) -> Array:
        nearness: Array = self._vectors @ self._model.skim_pieces([own])[0]
        return nearness


def windows(text: str, layer: str) -> list[Window]:
    """A layer as windows that follow each other: as many whole sentences as fit. Linear in the text."""
    joined: list[Window] = []
    for start, end in _stretches(text):
        if joined and end - joined[-1].start <= LONGEST_WINDOW:
            joined[-1] = Window(layer, joined[-1].start, end)
        else:
            joined.append(Window(layer, start, end))
    return joined


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """The places of the sentences without the space around them; a sentence too long is cut at a space."""
    begin = 0
    for boundary in _ENDS.finditer(text):
        yield from _cut(text, begin, boundary.start())
        begin = boundary.end()
    yield from _cut(text, begin, len(text))


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > LONGEST_WINDOW:
        space = text.rfind(" ", start + LONGEST_WINDOW // 2, start + LONGEST_WINDOW)
        stop = space if space > 0 else start + LONGEST_WINDOW
        yield from _stripped(text, start, stop)
        start = stop
    yield from _stripped(text, start, end)


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    words = text[start:end]
    begin = start + len(words) - len(words.lstrip())
    if begin < start + len(words):
        yield begin, start + len(words.rstrip())


@dataclass(frozen=True, slots=True)
class Head:
    """The trained numbers."""

    changes: Mapping[str, Array]
    """For each changed matrix two thin ones, `NAME.a` and `NAME.b`, whose product is added to it."""
    skim: Array
    """Weights of the mean of a window's words, and the offset."""
    read: Array
    """Weights of a window's mean and of its first piece after the last layer, and the offset."""
    broad_hidden: Array
    broad_read: Array
    """The network over the multilingual model: weights of its two layers, the offsets in the last row."""
    types_broad: Array
    types_read: Array
    """Weights of the pattern types, a column each, the offsets in the last row: over the multilingual vector
    and the relations of a window, and over these with what the tuned model sees."""
    calibration: Array
    """From scores to log-odds, a row each for a user's words, for documents and for other languages than
    English: weights of the tuned and of the broad score, and an offset."""
    fingerprint: Array
    """What `FINGERPRINT` is to the changed sentence model, to recognise the one this was trained with."""

    def save(self, path: Path) -> None:
        """Write the numbers, the many of them in half precision."""
        halves = {f"change.{name}": each for name, each in self.changes.items()}
        halves |= {name: getattr(self, name) for name in _HALVES}
        arrays = {name: getattr(self, name) for name in _OWN if name not in _HALVES}
        arrays |= {name: each.astype(np.float16) for name, each in halves.items()}
        np.savez_compressed(path, **arrays)

    @classmethod
    def load(cls, path: Path | None = None) -> Head:
        """The numbers that come with the package, or those of a file."""
        with (
            (path or resources.files(__package__).joinpath(WEIGHTS_FILE)).open("rb") as file,
            np.load(file, allow_pickle=False) as numbers,
        ):
            changes = {
                name.removeprefix("change."): numbers[name].astype(np.float32)
                for name in numbers.files
                if name.startswith("change.")
            }
            return cls(changes=changes, **{name: numbers[name].astype(np.float32) for name in _OWN})


_OWN = (
    "skim",
    "read",
    "broad_hidden",
    "broad_read",
    "types_broad",
    "types_read",
    "calibration",
    "fingerprint",
)
_HALVES = ("broad_hidden", "types_broad", "types_read")


@dataclass(frozen=True, slots=True)
class Judged:
    """A window that was read, with the score of each model; the tuned one reads English only."""

    window: Window
    tuned: float | None
    broad: float
    features: Array
    """What the types are read from."""
    head: Head

    @property
    def row(self) -> int:
        """Which row of the calibration it is read by."""
        return 2 if self.tuned is None else int(self.window.layer == "application")

    @property
    def strength(self) -> float:
        """The calibrated probability behind the scores."""
        tuned, broad, offset = map(float, self.head.calibration[self.row])
        log_odds = tuned * (self.tuned or 0.0) + broad * self.broad + offset
        return round(probability(log_odds), 4)

    @property
    def types(self) -> dict[str, float]:
        """How probable each pattern type is, if the window is manipulation at all."""
        weights = self.head.types_broad if self.tuned is None else self.head.types_read
        scores = self.features @ weights[:-1] + weights[-1]
        chances = np.exp(scores - scores.max())
        return dict(zip(LEARNT_TYPES, map(float, chances / chances.sum()), strict=True))

    @property
    def kind(self) -> str:
        """The most probable pattern type."""
        types = self.types
        return max(types, key=types.__getitem__)


class Judge:
    """Both models with their heads."""

    def __init__(self, head: Head | None = None) -> None:
        self.head = head or Head.load()
        folder = weights_folder()
        assert folder is not None  # the reader looked before
        self.model = Encoder(folder, self.head.changes)
        self.broad = BroadReader(self.head.broad_hidden, self.head.broad_read)
        if float(np.abs(fingerprint(self.model) - self.head.fingerprint).max()) > 1e-2:
            raise ValueError(f"{WEIGHTS_FILE} was trained with another sentence model: train it again")

    def open(self, prompt: MultiNeutrosophicPrompt) -> ReadPrompt:
        """The prompt's windows, none of them read yet."""
        return ReadPrompt(self, prompt)

    def worst_of(self, texts: Sequence[str]) -> int:
        """Which of some texts looks most suspicious to skimming."""
        return int(self.skimmed([self.model.words.pieces(text) or [LAST] for text in texts]).argmax())

    def means(self, texts: Sequence[str]) -> Array:
        """The unit mean of each text after the last layer of the tuned model."""
        rows = [np.zeros((0, WIDTH), np.float32)]
        for start in range(0, len(texts), TOGETHER):
            pieces = [self.model.pieces(text) for text in texts[start : start + TOGETHER]]
            rows.append(self.model.means_and_firsts(pieces, [len(each) for each in pieces])[:, :WIDTH])
        means = np.concatenate(rows)
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), np.float32(1e-9))
        return means

    def skimmed(self, texts: Sequence[list[int]]) -> Array:
        """How suspicious each text looks to skimming; only the order counts."""
        suspicions: Array = self.model.skim_pieces(texts) @ self.head.skim[:-1]
        return suspicions


@cache
def shipped_judge() -> Judge:
    """The one with the numbers that come with the package, loaded once."""
    return Judge()


class ReadPrompt:
    """A prompt's windows, each read when it is asked for and then remembered: every round asks again."""

    def __init__(self, judge: Judge, prompt: MultiNeutrosophicPrompt) -> None:
        self._judge, self._prompt, self._inputs = judge, prompt, Inputs(prompt, judge.model)
        self.windows = self._inputs.windows
        self._vectors: dict[int, Array] = {}
        self._broad: dict[int, float] = {}
        self._judged: dict[int, Judged] = {}

    def judged(self, layer: str | None = None, start: int = 0, end: int = 0) -> tuple[Judged, ...]:
        """All windows, or those at a place, with how strong they are; of many the worst few."""
        places = [
            at for at, window in enumerate(self.windows) if layer is None or window.touches(layer, start, end)
        ]
        if len(places) > MOST_BROAD:
            suspicions = self._judge.skimmed([self._inputs.own(self.windows[at]) for at in places])
            places = [places[at] for at in np.argsort(-suspicions, kind="stable")[:MOST_BROAD]]
        self._read_broadly([at for at in places if at not in self._broad])
        places = sorted(sorted(places, key=lambda at: (-self._broad[at], at))[:MOST_READ])
        self._read_in_full([at for at in places if at not in self._judged])
        return tuple(self._judged[at] for at in places)

    def _read_broadly(self, places: Sequence[int]) -> None:
        if places:
            documents = [self.windows[at].layer == "application" for at in places]
            vectors = self._judge.broad.vectors([self._text(at) for at in places], documents)
            scores = self._judge.broad.scores(vectors)
            self._vectors.update(zip(places, vectors, strict=True))
            self._broad.update(zip(places, map(float, scores), strict=True))

    def _read_in_full(self, places: Sequence[int]) -> None:
        english = [at for at in places if not unread_letters(self._text(at))]
        seen: dict[int, Array] = {}
        if english:
            inputs = [self._inputs.input(self.windows[at]) for at in english]
            rows = self._judge.model.means_and_firsts(
                [each.pieces for each in inputs], [each.own for each in inputs]
            )
            seen = dict(zip(english, rows, strict=True))
        head = self._judge.head
        for at in places:
            relations = np.concatenate([self._vectors[at], self._relations(at)])
            if at in seen:
                tuned = float(seen[at] @ head.read[:-1] + head.read[-1])
                features = np.concatenate([seen[at], relations])
            else:
                tuned, features = None, relations
            self._judged[at] = Judged(self.windows[at], tuned, self._broad[at], features, head)

    def _relations(self, at: int) -> Array:
        """How the window relates to the rest of the prompt: the rules, the turns, the mass around it."""
        turns, window = self._prompt.turns, self.windows[at]
        text = len(str(getattr(self._prompt, window.layer)))
        return np.array(
            [
                self._inputs.nearness_to_rules(window),
                turns is not None and not turns,
                bool(turns),
                bool(self._prompt.system),
                math.log1p(text / LONGEST_WINDOW),
                window.end / text,
                (window.end - window.start) / LONGEST_WINDOW,
            ],
            np.float32,
        )

    def _text(self, at: int) -> str:
        window = self.windows[at]
        return str(getattr(self._prompt, window.layer))[window.start : window.end]

    def shown_by(self, window: Window) -> Window:
        """The sentence of a window that looks most suspicious by itself: no heading and no sign of a list.

        The whole window where there is none.
        """
        text = str(getattr(self._prompt, window.layer))
        places = [
            (window.start + start, window.start + end)
            for start, end in _stretches(text[window.start : window.end])
        ]
        places = [(start, end) for start, end in places if says_something(text[start:end])]
        if not places:
            return window
        start, end = places[self._judge.worst_of([text[start:end] for start, end in places])]
        return Window(window.layer, start, end)


def fingerprint(model: Encoder) -> Array:
    """What a sentence model makes of a certain sentence."""
    pieces = [FIRST, *model.words.pieces(FINGERPRINT), LAST]
    seen: Array = model.means_and_firsts([pieces], [len(pieces)])[0]
    return seen

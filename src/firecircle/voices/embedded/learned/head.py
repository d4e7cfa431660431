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
from importlib import resources
from pathlib import Path

import numpy as np

from firecircle.languages import unread_letters
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.learned.broad import BroadReader
from firecircle.voices.embedded.learned.encoder import FIRST, LAST, Array, Encoder, WordPiece, weights_folder

WEIGHTS_FILE = "neural.npz"
LONGEST_WINDOW = 320
"""Characters: as many whole sentences as fit."""
MOST_PIECES, MOST_CONTEXT = 88, 24
"""Pieces of words read of a window, and of what it relates to."""
MOST_BROAD, MOST_READ = 24, 3
"""Windows of a prompt that the multilingual model reads, and of those the worst that the tuned one reads in
full. Skimming finds the first, so time hardly grows with the prompt."""
SUREST = 0.99
"""Whatever a window says, it may be meant otherwise."""
TAGS = {"user": "user :", "application": "document :"}
FINGERPRINT = "Please read this sentence before you judge any other."
_ENDS = re.compile(r"""(?<=[.!?。！？…;])["'”’)\]}*]*\s+|\n+|(?<=[。！？])""")


@dataclass(frozen=True, slots=True)
class Window:
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


def inputs_of(prompt: MultiNeutrosophicPrompt, words: WordPiece) -> list[Input]:
    """Every window of the layers that nobody vouches for, each with its tag and what it relates to."""
    system = words.pieces(prompt.system[:400])
    request = words.pieces(prompt.user[:300])
    contexts = {
        "user": system[:MOST_CONTEXT],
        "application": [*request[: MOST_CONTEXT * 2 // 3], LAST, *system[: MOST_CONTEXT // 3]],
    }
    inputs = []
    for layer, tag in TAGS.items():
        text = str(getattr(prompt, layer))
        for window in windows(text, layer):
            pieces = words.pieces(text[window.start : window.end])[:MOST_PIECES]
            own = [FIRST, *words.pieces(tag), *pieces, LAST]
            inputs.append(Input(window, [*own, *contexts[layer], LAST], len(own)))
    return inputs


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
    calibration: Array
    """From scores to log-odds, a row each for a user's words, for documents and for other languages than
    English: weights of the tuned and of the broad score, and an offset."""
    fingerprint: Array
    """What `FINGERPRINT` is to the changed sentence model, to recognise the one this was trained with."""

    def save(self, path: Path) -> None:
        """Write the numbers, the many of them in half precision."""
        halves = {f"change.{name}": each for name, each in self.changes.items()}
        halves["broad_hidden"] = self.broad_hidden
        arrays = {name: getattr(self, name) for name in _OWN}
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
            own = {name: numbers[name].astype(np.float32) for name in _OWN}
            return cls(changes=changes, **own)


_OWN = ("skim", "read", "broad_hidden", "broad_read", "calibration", "fingerprint")


@dataclass(frozen=True, slots=True)
class Judged:
    """A window that was read, with the score of each model; the tuned one reads English only."""

    window: Window
    tuned: float | None
    broad: float
    head: Head

    @property
    def kind(self) -> int:
        """Which row of the calibration it is read by."""
        return 2 if self.tuned is None else int(self.window.layer == "application")

    @property
    def strength(self) -> float:
        """The calibrated probability behind the scores."""
        tuned, broad, offset = map(float, self.head.calibration[self.kind])
        log_odds = tuned * (self.tuned or 0.0) + broad * self.broad + offset
        return round(min(SUREST, 1 / (1 + math.exp(-max(-30.0, log_odds)))), 4)


class Judge:
    """Both models with their heads."""

    def __init__(self, head: Head | None = None) -> None:
        self.head = head or Head.load()
        folder = weights_folder()
        assert folder is not None  # the lens looked before
        self.model = Encoder(folder, self.head.changes)
        self.broad = BroadReader(self.head.broad_hidden, self.head.broad_read)
        if float(np.abs(fingerprint(self.model) - self.head.fingerprint).max()) > 1e-2:
            raise ValueError(f"{WEIGHTS_FILE} was trained with another sentence model: train it again")

    def open(self, prompt: MultiNeutrosophicPrompt) -> ReadPrompt:
        """The prompt's windows, none of them read yet."""
        return ReadPrompt(self, prompt, inputs_of(prompt, self.model.words))

    def scores(self, inputs: Sequence[Input]) -> Array:
        """The uncalibrated score that the tuned model gives each window."""
        seen = self.model.means_and_firsts([each.pieces for each in inputs], [each.own for each in inputs])
        scores: Array = seen @ self.head.read[:-1] + self.head.read[-1]
        return scores

    def suspicions(self, inputs: Sequence[Input]) -> Array:
        """How suspicious each window looks to skimming; only the order counts."""
        return self._skimmed([each.pieces[: each.own] for each in inputs])

    def worst_of(self, texts: Sequence[str]) -> int:
        """Which of some texts looks most suspicious to skimming."""
        return int(self._skimmed([self.model.words.pieces(text) or [LAST] for text in texts]).argmax())

    def _skimmed(self, texts: Sequence[list[int]]) -> Array:
        suspicions: Array = self.model.skim_pieces(texts) @ self.head.skim[:-1]
        return suspicions


class ReadPrompt:
    """A prompt's windows, each read when it is asked for and then remembered: every round asks again."""

    def __init__(self, judge: Judge, prompt: MultiNeutrosophicPrompt, inputs: Sequence[Input]) -> None:
        self._judge, self._prompt, self._inputs = judge, prompt, inputs
        self._broad: dict[int, float] = {}
        self._tuned: dict[int, float | None] = {}

    def judged(self, layer: str | None = None, start: int = 0, end: int = 0) -> tuple[Judged, ...]:
        """All windows, or those at a place, with how strong they are; of many the worst few."""
        places = [
            at
            for at, each in enumerate(self._inputs)
            if layer is None or each.window.touches(layer, start, end)
        ]
        if len(places) > MOST_BROAD:
            order = np.argsort(-self._judge.suspicions([self._inputs[at] for at in places]), kind="stable")
            places = [places[at] for at in order[:MOST_BROAD]]
        self._read_broadly([at for at in places if at not in self._broad])
        places = sorted(sorted(places, key=lambda at: (-self._broad[at], at))[:MOST_READ])
        self._read_in_full([at for at in places if at not in self._tuned])
        return tuple(
            Judged(self._inputs[at].window, self._tuned[at], self._broad[at], self._judge.head)
            for at in places
        )

    def _read_broadly(self, places: Sequence[int]) -> None:
        if places:
            documents = [self._inputs[at].window.layer == "application" for at in places]
            scores = self._judge.broad.scores([self._text(at) for at in places], documents)
            self._broad.update(zip(places, map(float, scores), strict=True))

    def _read_in_full(self, places: Sequence[int]) -> None:
        self._tuned.update(dict.fromkeys(places))
        english = [at for at in places if not unread_letters(self._text(at))]
        if english:
            scores = self._judge.scores([self._inputs[at] for at in english])
            self._tuned.update(zip(english, map(float, scores), strict=True))

    def _text(self, at: int) -> str:
        window = self._inputs[at].window
        return str(getattr(self._prompt, window.layer))[window.start : window.end]

    def shown_by(self, window: Window) -> Window:
        """The sentence of a window that looks most suspicious by itself."""
        text = str(getattr(self._prompt, window.layer))
        places = [
            (window.start + start, window.start + end)
            for start, end in _stretches(text[window.start : window.end])
        ]
        start, end = places[self._judge.worst_of([text[start:end] for start, end in places])]
        return Window(window.layer, start, end)


def fingerprint(model: Encoder) -> Array:
    """What a sentence model makes of a certain sentence."""
    pieces = [FIRST, *model.words.pieces(FINGERPRINT), LAST]
    seen: Array = model.means_and_firsts([pieces], [len(pieces)])[0]
    return seen

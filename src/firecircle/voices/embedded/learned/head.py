"""What the neural voice makes of a prompt: windows of each layer, read by a sentence model tuned for it.

A window is read with the name of its layer and the beginning of what it relates to: the operator's text, and
for a document the user's request. What is learned are small changes of the model's matrices and a head over
it (`training.neural`); the sentence model itself comes with its own package.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.learned.encoder import FIRST, LAST, Array, Encoder, WordPiece, weights_folder

WEIGHTS_FILE = "neural.npz"
LONGEST_WINDOW = 320
"""Characters: as many whole sentences as fit."""
MOST_PIECES, MOST_CONTEXT = 88, 24
"""Pieces of words read of a window, and of what it relates to."""
MOST_READ = 6
"""Windows of a prompt that are read in full. Skimming finds them, so time hardly grows with the prompt."""
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
    calibration: Array
    """Slope and offset from a score to log-odds."""
    fingerprint: Array
    """What `FINGERPRINT` is to the changed sentence model, to recognise the one this was trained with."""

    def save(self, path: Path) -> None:
        """Write the numbers."""
        arrays = {name: getattr(self, name) for name in ("skim", "read", "calibration", "fingerprint")}
        arrays |= {f"change.{name}": each for name, each in self.changes.items()}
        np.savez_compressed(path, **arrays)

    @classmethod
    def load(cls) -> Head:
        """The numbers that come with the package."""
        with (
            resources.files(__package__).joinpath(WEIGHTS_FILE).open("rb") as file,
            np.load(file, allow_pickle=False) as numbers,
        ):
            changes = {
                name.removeprefix("change."): numbers[name].astype(np.float32)
                for name in numbers.files
                if name.startswith("change.")
            }
            own = {name: numbers[name] for name in ("skim", "read", "calibration", "fingerprint")}
            return cls(changes=changes, **own)


@dataclass(frozen=True, slots=True)
class Judged:
    """A window that was read, and how strong it is."""

    window: Window
    strength: float


class Judge:
    """The tuned sentence model with its head."""

    def __init__(self, head: Head | None = None) -> None:
        self.head = head or Head.load()
        folder = weights_folder()
        assert folder is not None  # the lens looked before
        self.model = Encoder(folder, self.head.changes)
        if float(np.abs(fingerprint(self.model) - self.head.fingerprint).max()) > 1e-2:
            raise ValueError(f"{WEIGHTS_FILE} was trained with another sentence model: train it again")

    def open(self, prompt: MultiNeutrosophicPrompt) -> ReadPrompt:
        """The prompt's windows, none of them read yet."""
        return ReadPrompt(self, prompt, inputs_of(prompt, self.model.words))

    def scores(self, inputs: Sequence[Input]) -> Array:
        """The uncalibrated score of each window."""
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
        self._strengths: dict[int, float] = {}

    def judged(self, layer: str | None = None, start: int = 0, end: int = 0) -> tuple[Judged, ...]:
        """All windows, or those at a place, with how strong they are; of many the worst few."""
        places = [
            at
            for at, each in enumerate(self._inputs)
            if layer is None or each.window.touches(layer, start, end)
        ]
        if len(places) > MOST_READ:
            order = np.argsort(-self._judge.suspicions([self._inputs[at] for at in places]), kind="stable")
            places = sorted(places[at] for at in order[:MOST_READ])
        new = [at for at in places if at not in self._strengths]
        if new:
            scores = self._judge.scores([self._inputs[at] for at in new])
            for at, score in zip(new, scores, strict=True):
                self._strengths[at] = strength(float(score), self._judge.head)
        return tuple(Judged(self._inputs[at].window, self._strengths[at]) for at in places)

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


def strength(score: float, head: Head) -> float:
    """The calibrated probability behind a score."""
    slope, shift = map(float, head.calibration)
    return round(1 / (1 + math.exp(-max(-30.0, min(30.0, slope * score + shift)))), 4)

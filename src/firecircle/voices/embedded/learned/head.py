"""What the neural voice makes of a prompt's windows: skim them all, read the worst few, weigh those."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Protocol

import numpy as np

from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.embedded.learned.encoder import Array, Places, encoder

LONGEST_WINDOW = 160
"""Characters. Attacks are local: windows twice as long, or half, tell less on unseen sources."""
SHORTEST_SENTENCE = {"user": 60, "application": 25}
"""Characters from which on a sentence is looked at by itself too: its neighbours must not water it down.
In a document an order to the assistant may be short; a user's short sentences are mostly requests."""
_ENDS = re.compile(r"""(?<=[.!?。！？…;])["'”’)\]}*]*\s+|\n+|(?<=[。！？])""")


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a layer, by its place: its words are the prompt's own."""

    layer: str
    start: int
    end: int
    sentences: tuple[Window, ...] = ()
    """The sentences it consists of, if there are several worth looking at by themselves."""

    def touches(self, layer: str, start: int, end: int) -> bool:
        """Whether it overlaps a place."""
        return self.layer == layer and self.start < end and start < self.end


def windows(text: str, layer: str) -> list[Window]:
    """A layer as windows that follow each other: as many whole sentences as fit. Linear in the text."""
    groups: list[list[Window]] = []
    for start, end in _stretches(text):
        if not groups or end - groups[-1][0].start > LONGEST_WINDOW:
            groups.append([])
        groups[-1].append(Window(layer, start, end))
    return [group[0] if len(group) == 1 else _joined(group) for group in groups]


def _joined(group: list[Window]) -> Window:
    least = SHORTEST_SENTENCE.get(group[0].layer, 60)
    worth = tuple(sentence for sentence in group if sentence.end - sentence.start >= least)
    return Window(group[0].layer, group[0].start, group[-1].end, worth)


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


WEIGHTS_FILE = "neural.npz"
MOST_READ = 3
"""Windows of a prompt that are read in full. Skimming finds them, so time hardly grows with the prompt."""
MOST_REFERENCES = 512
"""Windows of a layer that others are compared with: nothing may grow faster than the text."""
CROWD = 0.2
"""Among many windows one looks odd by chance: so much is taken off the score per log of their number."""
RELATIONS = (
    "to the operator's text",
    "to what the user said before",
    "to what the assistant said before",
    "of a document to the user's request",
    "to the windows around it",
)
TYPES = (
    "temporal_inconsistency",
    "cross_layer_fabrication",
    "polite_extraction",
    "educational_escalation",
    "role_confusion",
    "false_authority",
)
"""The patterns that the wording of a user's window can tell apart. Progress and saturation it cannot tell."""
FINGERPRINT = "Please read this sentence before you judge any other."


@dataclass(frozen=True, slots=True)
class Head:
    """The trained numbers."""

    center: Array
    """The mean skimmed vector; likeness is measured from there."""
    usual: Array
    """Mean and spread of each relation."""
    skim: Array
    """Weights of a skimmed window and its relations."""
    read: Array
    """Weights of a window that was read, of its relations, and the offset."""
    types: Array
    """For each pattern, the weights of a window that was read, and the offset."""
    calibration: Array
    """Slope and offset from a score to log-odds."""
    fingerprint: Array
    """What `FINGERPRINT` reads as, to recognise the sentence model the head was trained with."""

    def save(self, path: Path) -> None:
        """Write the numbers; the same numbers give the same bytes."""
        np.savez_compressed(path, **{name: getattr(self, name) for name in self.__dataclass_fields__})

    @classmethod
    def load(cls) -> Head:
        """The numbers that come with the package."""
        with (
            resources.files(__package__).joinpath(WEIGHTS_FILE).open("rb") as file,
            np.load(file, allow_pickle=False) as numbers,
        ):
            return cls(**{name: numbers[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class Skimmed:
    """A prompt's windows with what skimming tells: their words' mean, and how like they are to the rest."""

    prompt: MultiNeutrosophicPrompt
    windows: tuple[Window, ...]
    vectors: Array
    likeness: Array
    """One row a window, one column a relation; NaN where there is nothing to compare with."""
    crowd: int
    """How many windows stand side by side, their sentences not counted."""

    def text(self, window: Window) -> str:
        """The words of a window."""
        return str(getattr(self.prompt, window.layer))[window.start : window.end]


class Skimming(Protocol):
    """A sentence model, as far as skimming goes."""

    def skim(self, texts: Sequence[str]) -> Array:
        """One unit vector a text."""
        ...


@dataclass(frozen=True, slots=True)
class Judged:
    """A window that was read: its strength as a probability, and the pattern its wording is nearest to."""

    window: Window
    strength: float
    pattern: str


def skim(prompt: MultiNeutrosophicPrompt, center: Array, model: Skimming) -> Skimmed:
    """Every window of the layers nobody vouches for, skimmed and compared with the rest of the prompt."""
    whole = (*windows(prompt.application, "application"), *windows(prompt.user, "user"))
    parent = [at for at, window in enumerate(whole) for _ in (window, *window.sentences)]
    parts = tuple(part for window in whole for part in (window, *window.sentences))
    vectors = model.skim([str(getattr(prompt, w.layer))[w.start : w.end] for w in parts])
    asked = [turn.content for turn in prompt.turns or () if turn.role == "user"]
    answered = [turn.content for turn in prompt.turns or () if turn.role != "user"]
    likeness = np.full((len(parts), len(RELATIONS)), np.nan, np.float32)
    if parts:
        own = centred(vectors, center)
        for column, texts in enumerate(([prompt.system], asked, answered)):
            likeness[:, column] = _nearest(own, centred(model.skim(_latest(texts)), center))
        first = np.array([at == 0 or parent[at - 1] != parent[at] for at in range(len(parts))])
        document = np.array([window.layer == "application" for window in parts])
        likeness[document, 3] = _nearest(own[document], own[~document & first])
        if len(whole) > 1:
            around = own[first].sum(0) - own[first][parent]
            likeness[:, 4] = (own * around).sum(1) / (len(whole) - 1)
    return Skimmed(prompt, parts, vectors, likeness, len(whole))


def _latest(texts: Sequence[str]) -> list[str]:
    """The windows of some texts, the latest if there are too many."""
    stretches = [text[window.start : window.end] for text in texts for window in windows(text, "")]
    return stretches[-MOST_REFERENCES:]


def centred(vectors: Array, center: Array) -> Array:
    """Unit vectors as seen from the center, so that likeness is not all about being English."""
    moved: Array = vectors - center
    moved /= np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-6)
    return moved


def _nearest(own: Array, others: Array) -> Array | float:
    """How like each row is to the likest of the others."""
    if not len(others) or not len(own):
        return math.nan
    nearest: Array = (own @ others[:MOST_REFERENCES].T).max(1)
    return nearest


def standard(likeness: Array, usual: Array) -> Array:
    """Relations as distances from the usual; what cannot be compared counts as usual."""
    scaled: Array = np.nan_to_num((likeness - usual[0]) / usual[1], nan=0.0).astype(np.float32)
    return scaled


def worst_first(skimmed: Skimmed, head: Head) -> Places:
    """The places of the windows, the most suspicious to skimming first."""
    seen = np.hstack([skimmed.vectors, standard(skimmed.likeness, head.usual)])
    order: Places = np.argsort(-(seen @ head.skim), kind="stable")
    return order


class Judge:
    """A head with the sentence model it was trained with."""

    def __init__(self, head: Head | None = None) -> None:
        self.head = head or _own_head()
        self._model = encoder()

    def skim(self, prompt: MultiNeutrosophicPrompt) -> Skimmed:
        """The prompt's windows, skimmed."""
        return skim(prompt, self.head.center, self._model)

    def judge(self, skimmed: Skimmed, among: Container[int] | None = None) -> tuple[Judged, ...]:
        """Read the worst few windows (of those named, or of all), and say how strong each is."""
        order = [int(place) for place in worst_first(skimmed, self.head)]
        places = [place for place in order if among is None or place in among][:MOST_READ]
        if not places:
            return ()
        vectors = self._model.read([skimmed.text(skimmed.windows[place]) for place in places])
        relations = standard(skimmed.likeness[places], self.head.usual)
        scores = np.hstack([vectors, relations]) @ self.head.read[:-1] + self.head.read[-1]
        scores -= CROWD * math.log(skimmed.crowd)
        return tuple(
            Judged(window, strength(float(score), self.head), pattern_of(window, vector, self.head))
            for window, vector, score in zip(
                (skimmed.windows[at] for at in places), vectors, scores, strict=True
            )
        )


def strength(score: float, head: Head) -> float:
    """The calibrated probability behind a score."""
    slope, shift = map(float, head.calibration)
    return round(1 / (1 + math.exp(-max(-30.0, min(30.0, slope * score + shift)))), 4)


def pattern_of(window: Window, vector: Array, head: Head) -> str:
    """Manipulation from inside a document speaks across layers; the user's is named by its wording."""
    if window.layer == "application":
        return "cross_layer_fabrication"
    return TYPES[int((head.types[:, :-1] @ vector + head.types[:, -1]).argmax())]


@cache
def _own_head() -> Head:
    head = Head.load()
    if float(np.abs(encoder().read([FINGERPRINT])[0] - head.fingerprint).max()) > 1e-3:
        raise ValueError(f"{WEIGHTS_FILE} was trained with another sentence model: train it again")
    return head

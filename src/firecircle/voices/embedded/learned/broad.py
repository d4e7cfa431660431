"""A second reading of the same windows, in sixteen languages.

A multilingual sentence encoder (USE, in numpy, a package of its own) turns a window into a vector, and a
small network learned here (`training.broad`) weighs it. It hears word order less well than the tuned model,
costs a tenth of its time, and goes on where that one cannot read.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from firecircle.voices.embedded.learned.unpacked import encoder

Array = NDArray[np.float32]
SPREAD = np.float32(6.0)
"""Vectors of length one are small numbers to a network."""


class BroadReader:
    """The encoder and the network over it."""

    def __init__(self, hidden: Array, read: Array) -> None:
        self._hidden, self._read = hidden, read
        self._encoder = encoder()
        self._one_at_a_time = Lock()
        self._threads = ThreadpoolController()

    def vectors(self, texts: Sequence[str], documents: Sequence[bool]) -> Array:
        """What the network is given: the vector of each text, and whether it stands in a document."""
        plain = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        with self._one_at_a_time:
            rows = self._encoder.encode(plain)
        return np.hstack([rows, np.array(documents, np.float32)[:, None]]) * SPREAD

    def scores(self, vectors: Array) -> Array:
        """How much each text sounds like manipulation; uncalibrated."""
        with self._threads.limit(limits=1, user_api="blas"):  # several would wait for each other
            hidden = np.maximum(vectors @ self._hidden[:-1] + self._hidden[-1], 0)
            scores: Array = hidden @ self._read[:-1] + self._read[-1]
        return scores

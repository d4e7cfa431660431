"""Language models that run in this process."""

from __future__ import annotations

from firecircle.voices.local.voice import LocalVoice, local_voice
from firecircle.voices.local.weights import fetch_weights, weights_of

__all__ = ["LocalVoice", "fetch_weights", "local_voice", "weights_of"]

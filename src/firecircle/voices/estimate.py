"""What a call may consume, said before it is made.

Nobody but the provider has its tokenizer, so tokens are told from bytes: three bytes of UTF-8 for one token.
That is more tokens than English prose has (four bytes or more), about what Chinese has, and fewer than long
runs of base64 or rare characters may have. The answer counts with all the tokens it is allowed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from firecircle.circle.voice import Usage

if TYPE_CHECKING:
    from firecircle.circle.voice import Turn
    from firecircle.voices.prices import Tariff

BYTES_A_TOKEN = 3
TOKENS_A_MESSAGE = 5
"""What wraps a message: its role and its borders."""


def estimated_usage(turn: Turn, tariff: Tariff | None) -> Usage:
    """The tokens of the question, an answer as long as it may be, and their cost if the price is known."""
    told = sum(len(message.content.encode("utf-8", "replace")) for message in turn.messages)
    if turn.reply_schema is not None:
        told += len(json.dumps(turn.reply_schema, default=dict))
    tokens_in = -(-told // BYTES_A_TOKEN) + TOKENS_A_MESSAGE * len(turn.messages)
    cost = tariff.cost(tokens_in, 0, turn.max_tokens) if tariff else None
    return Usage(tokens_in, None, turn.max_tokens, cost)

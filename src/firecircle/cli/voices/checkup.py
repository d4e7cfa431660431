"""One voice examined: asked a tiny question for real, with what came of it in one line."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Literal

from firecircle.circle.base_config import EvaluationConfig
from firecircle.circle.voice import Message, Reply, Turn, Voice
from firecircle.cli.printable import printable_line
from firecircle.cli.trouble import in_options
from firecircle.errors import ConfigError, VoiceError
from firecircle.names import is_embedded, is_local
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.voices.hosted.prices import Rates, rates_of
from firecircle.voices.hosted.voice import Backoff, HostedVoice, hosted_voice
from firecircle.voices.seating import seat_voices

QUESTION = (
    Message("system", "This is a test of the connection."),
    Message("user", 'Answer with this JSON object and nothing else: {"ok": true}'),
)
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
MOST_TOKENS = 500
"""Room for a model that thinks before it speaks."""
ONE_MORE_TRY = Backoff(attempts=2, attempts_if_busy=2)
StructuredOutput = Literal["yes", "ignored", "not taken", "turned off"]


@dataclass(frozen=True, slots=True)
class Checkup:
    """What a test call showed."""

    model: str
    well: bool
    seconds: float = 0.0
    structured_output: StructuredOutput | None = None
    """Whether the endpoint holds the model to a schema; None for a voice that is no endpoint."""
    rates: Rates | None = None
    cost_usd: float | None = None
    trouble: str = ""


async def check(model: str, seconds: float) -> Checkup:
    """Ask a voice a tiny question, for real."""
    clock = asyncio.get_running_loop().time
    started = clock()
    try:
        voice = _seated(model)
        turn = Turn(
            messages=QUESTION,
            prompt=MultiNeutrosophicPrompt(user="This is a test of the connection."),
            reply_schema=SCHEMA,
            max_tokens=MOST_TOKENS,
            temperature=0.0,
            attempt_seconds=seconds,
            deadline=started + seconds,
        )
        async with asyncio.timeout(seconds):
            reply = await voice.speak(turn)
    except (ConfigError, VoiceError) as trouble:
        return Checkup(model, False, clock() - started, trouble=in_options(trouble))
    except TimeoutError:
        return Checkup(model, False, clock() - started, trouble=f"no answer within {seconds:g} s")
    took = clock() - started
    if not isinstance(voice, HostedVoice):
        return Checkup(model, True, took, cost_usd=reply.usage.cost_usd)
    return Checkup(
        model,
        True,
        took,
        _structured_output(voice, reply),
        rates_of(voice.tariff) if voice.tariff else None,
        reply.usage.cost_usd,
    )


def _seated(model: str) -> Voice:
    config = EvaluationConfig(models=(model,))
    if is_embedded(model) or is_local(model):
        return seat_voices((model,), config)[model]
    return hosted_voice(model, config, backoff=ONE_MORE_TRY)


def _structured_output(voice: HostedVoice, reply: Reply) -> StructuredOutput:
    if voice.provider.structured_output == "off":
        return "turned off"
    if "response_format" in voice.quirks.omitted:
        return "not taken"
    try:
        return "yes" if isinstance(json.loads(reply.text), dict) else "ignored"
    except ValueError:
        return "ignored"


def as_line(checkup: Checkup) -> str:
    """The checkup in one line."""
    name = printable_line(checkup.model)
    if not checkup.well:
        return f"cannot speak  {name}: {printable_line(checkup.trouble)}"
    parts = [f"{checkup.seconds:.2f} s"]
    if checkup.structured_output:
        parts.append(f"structured output {checkup.structured_output}")
    return f"well  {name}: {', '.join((*parts, _price(checkup)))}"


def _price(checkup: Checkup) -> str:
    if checkup.cost_usd is None and checkup.rates is None:
        return "price unknown"
    if checkup.rates is None:
        return f"this call ${checkup.cost_usd:.6f}" if checkup.cost_usd else "free"
    if not checkup.rates.input and not checkup.rates.output:
        return "free"
    listed = f"${checkup.rates.input:g} in and ${checkup.rates.output:g} out per million tokens"
    return listed if checkup.cost_usd is None else f"{listed}, this call ${checkup.cost_usd:.6f}"

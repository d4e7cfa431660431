"""llama.cpp in this process, through the `xllamacpp` binding: the only file that uses its names.

The binding is untyped and always opens a port. The few parts in use are declared here, and the port is closed
to others: loopback only, a random key, no page, no view of prompts.
"""

from __future__ import annotations

import http.client
import importlib
import importlib.util
import json
import math
import os
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from firecircle.circle.voice import Usage
from firecircle.errors import ConfigError, install_command
from firecircle.voices.control_tokens import broken_up
from firecircle.voices.local.weights import Weights

LIBRARY = "xllamacpp"
THREADS_VARIABLE = "FIRECIRCLE_LOCAL_THREADS"
CONTEXT_TOKENS = 8192
"""SmolLM2's training length; a last round of three talkative voices fits."""
SLOTS = 1
"""Only consecutive requests of one slot reuse what was read: three slots read three times as much."""
BATCH_TOKENS = 256
"""Tokens read before a call can be stopped; more is not faster."""
PROMPT_CACHE_MIB = 256
"""For repeated questions: the chair's alternates with those of the others."""
MOST_COMPLETIONS = 500
"""Short answers in the cache: those of the latest circles."""
SILENT = -1
MEMORY_TO_THINK = 256 << 20
"""The least memory a model needs besides its file."""
ADDRESSES_TO_THINK = 550_000_000
"""Address space needed besides the file: a model of 93 MB ran with 700 MB, not with 600."""
MEMORY = Path("/proc/meminfo")
CONTAINER = Path("/sys/fs/cgroup/memory.max")


Heard = Callable[[dict[str, Any]], bool]
"""Takes a chunk of an answer, and returns whether that is enough."""


class _Threads(Protocol):
    n_threads: int


class _File(Protocol):
    path: str


class _Params(Protocol):
    model: _File
    model_alias: set[str]
    cpuparams: _Threads
    cpuparams_batch: _Threads
    n_ctx: int
    n_parallel: int
    n_batch: int
    n_ubatch: int
    cache_ram_mib: int
    verbosity: int
    warmup: bool
    hostnames: list[str]
    port: int
    api_keys: list[str]
    cors_origins: str
    endpoint_slots: bool
    ui: bool


class _Server(Protocol):
    listening_address: str

    def handle_chat_completions(self, request: Mapping[str, Any], hear: Heard) -> None: ...

    def handle_completions(self, request: Mapping[str, Any], hear: Heard) -> None: ...


class _Library(Protocol):
    def CommonParams(self) -> _Params: ...  # noqa: N802

    def Server(self, params: _Params) -> _Server: ...  # noqa: N802


class CannotLoad(Exception):  # noqa: N818 - the caller decides whose failure it is
    """The model file could not be loaded."""


class Complaint(Exception):  # noqa: N818 - the engine's own words, not yet a voice's failure
    """llama.cpp rejected a request."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        super().__init__(str(told.get("message") or told))
        self.tokens_asked = told.get("n_prompt_tokens")
        """The length of the question, if that is the complaint."""
        self.tokens_possible = told.get("n_ctx")


class Completion:
    """An answer as it grows, chunk by chunk."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self.usage: Mapping[str, Any] | None = None
        """The usage, which comes with the last chunk."""
        self.error: Mapping[str, Any] | None = None
        self.finish: str | None = None
        """How the answer ended: `stop` if complete, `length` if cut."""
        self.first_token: dict[str, float] = {}
        """The possible first tokens with their probabilities, if requested."""

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Add the next chunk."""
        self.error = chunk.get("error") or self.error
        self.usage = chunk.get("usage") or self.usage
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            self._text.append(delta.get("content") or choice.get("text") or "")
            self._thoughts.append(delta.get("reasoning_content") or "")
            self.finish = choice.get("finish_reason") or self.finish
            tokens = (choice.get("logprobs") or {}).get("content")
            if tokens and not self.first_token:
                candidates = tokens[0]["top_logprobs"]
                self.first_token = {token["token"]: math.exp(token["logprob"]) for token in candidates}

    def reread(self) -> Completion:
        """This answer for a repeated request: all tokens of the question count as cached."""
        usage = dict(self.usage or {})
        usage["prompt_tokens_details"] = {"cached_tokens": usage.get("prompt_tokens")}
        remembered = copy(self)
        remembered.usage = usage
        return remembered

    @property
    def text(self) -> str:
        """The answer's text."""
        return "".join(self._text)

    @property
    def thoughts(self) -> str | None:
        """The reasoning before the answer, if the model gives it."""
        return "".join(self._thoughts) or None


def usage_of(completion: Completion) -> Usage:
    """The usage of an answer. A local model costs nothing: 0, not unknown."""
    told = completion.usage or {}
    details = told.get("prompt_tokens_details") or {}
    return Usage(
        told.get("prompt_tokens"), details.get("cached_tokens"), told.get("completion_tokens"), cost_usd=0.0
    )


class Llama:
    """A loaded model. Its calls block, so run them in a thread; it answers one at a time."""

    def __init__(self, weights: Weights, *, port: int = 0, key: str | None = None) -> None:
        library = _library()
        _require_memory(weights)
        params = library.CommonParams()
        params.model.path = str(weights.path)
        params.model_alias = {weights.name}
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _threads()
        params.n_parallel = SLOTS
        params.n_ctx = SLOTS * CONTEXT_TOKENS
        params.n_batch = params.n_ubatch = BATCH_TOKENS
        params.cache_ram_mib = PROMPT_CACHE_MIB
        params.verbosity = SILENT
        params.warmup = False
        params.hostnames = ["127.0.0.1"]
        params.port = port
        params.api_keys = [key] if key else []
        params.cors_origins = ""
        params.endpoint_slots = False
        params.ui = False
        self._key = key
        self._completions: dict[str, Completion] = {}
        self.weights = weights
        try:
            self._server: _Server | None = library.Server(params)
        except RuntimeError:
            # All the library says is "check the input params".
            raise CannotLoad(
                f"llama.cpp cannot load {weights.path}"
                + (f" or listen on port {port}" if port else "")
                + ": the file is damaged or of a kind it does not know"
                + (", the port is taken" if port else "")
                + ", or memory is short"
            ) from None
        self.address = self._server.listening_address

    def chat(self, request: Mapping[str, Any], enough: Callable[[], bool]) -> Completion | None:
        """Answer a chat request; None if `enough` ended it early."""
        return self._answer(self._open().handle_chat_completions, request, enough)

    def complete(self, request: Mapping[str, Any], enough: Callable[[], bool]) -> Completion | None:
        """Continue a text; None if `enough` ended it early.

        Repeated deterministic requests (of clones, or arms of a study) are answered from the cache.
        """
        is_certain = "seed" in request or request.get("temperature") == 0
        known = json.dumps(request, sort_keys=True) if is_certain else ""
        if known in self._completions:
            return self._completions[known]
        completion = self._answer(self._open().handle_completions, request, enough)
        if known and completion is not None:
            self._completions[known] = completion.reread()
            if len(self._completions) > MOST_COMPLETIONS:
                del self._completions[next(iter(self._completions))]
        return completion

    def _open(self) -> _Server:
        if self._server is None:
            raise CannotLoad("the model was closed")
        return self._server

    def _answer(
        self,
        handle: Callable[[Mapping[str, Any], Heard], None],
        request: Mapping[str, Any],
        enough: Callable[[], bool],
    ) -> Completion | None:
        completion = Completion()

        def hear(chunk: dict[str, Any]) -> bool:
            completion.add(chunk)
            return completion.usage is None and enough()

        streamed = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}
        try:
            handle({**request, **streamed}, hear)
        except RuntimeError as raised:
            raise Complaint({"message": str(raised)}) from None
        if completion.error is not None:
            raise Complaint(completion.error)
        return completion if completion.usage is not None else None

    def as_plain_text(self, text: str) -> str:
        """The text with every control token of the model broken up, according to its own tokenizer."""
        known, unknown = self._pieces(text, control=True), self._pieces(text, control=False)
        if known == unknown or len(known) > CONTEXT_TOKENS:  # the latter will be rejected for its length
            return text
        spelled = {piece for piece in {*known} - {*unknown} if self._is_control_token(piece)}
        if not spelled:
            return text
        return self.as_plain_text(broken_up(text, spelled))

    def _is_control_token(self, piece: str) -> bool:
        known, unknown = self._pieces(piece, control=True), self._pieces(piece, control=False)
        return len(piece) > 1 and known == [piece] != unknown

    def _pieces(self, text: str, *, control: bool) -> list[str]:
        """The text as tokens, with its control tokens recognised or taken as text."""
        told = self._post("/tokenize", {"content": text, "parse_special": control, "with_pieces": True})
        return [str(token["piece"]) for token in told["tokens"]]

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        at = urlsplit(self.address)
        connection = http.client.HTTPConnection(at.hostname or "", at.port)
        headers = {"content-type": "application/json", "authorization": f"Bearer {self._key}"}
        try:
            connection.request("POST", path, json.dumps(body).encode(), headers)
            told = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as broken:
            raise Complaint({"message": f"{path} does not answer: {broken!r}"}) from None
        finally:
            connection.close()
        if "error" in told:
            raise Complaint(told["error"])
        return told

    def close(self) -> None:
        """Unload the model. No call may be in progress: the library would abort the process."""
        self._server = None


def _require_memory(weights: Weights) -> None:
    """Refuse a model that does not fit into memory: the system might kill the whole process."""
    needed = weights.path.stat().st_size + MEMORY_TO_THINK
    free = free_memory()
    if free is not None and free < needed:
        raise CannotLoad(
            f"{weights.path} needs about {needed / 1e6:,.0f} MB of memory and {free / 1e6:,.0f} MB are free;"
            " close something, or take a smaller model"
        )
    room, wanted = _address_space_left(), weights.path.stat().st_size + ADDRESSES_TO_THINK
    if room is not None and room < wanted:
        # If loading reaches the limit, llama.cpp may abort the whole process.
        raise CannotLoad(
            f"{weights.path} needs about {wanted / 1e6:,.0f} MB of address space and this process may take"
            f" {max(0, room) / 1e6:,.0f} MB more; raise the limit (ulimit -v), or take a smaller model"
        )


def _address_space_left() -> int | None:
    """The bytes left under this process's address limit; None without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except (OSError, ValueError):
        return None
    return None if limit == resource.RLIM_INFINITY else limit - pages * resource.getpagesize()


def free_memory() -> int | None:
    """The bytes still available from the system and the container; None if unknown."""
    try:
        told = dict(line.split(":", 1) for line in MEMORY.read_text("ascii").splitlines())
        free = 1024 * int(told["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None
    try:
        # The container counts cached files as used, although it can free them, so only its limit is used.
        return min(free, int(CONTAINER.read_text("ascii")))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return free


def require_library() -> None:
    """Raise a `ConfigError` with the remedy if no model could be loaded here."""
    if importlib.util.find_spec(LIBRARY) is None:
        raise ConfigError(None, f"local models need the extra `local`: {install_command('local')}")
    _threads()


def _library() -> _Library:
    require_library()
    return cast("_Library", importlib.import_module(LIBRARY))


def _threads() -> int:
    """The physical cores minus one, unless configured: a thread on a busy core is ten times slower."""
    told = os.environ.get(THREADS_VARIABLE, "").strip() or str(max(1, physical_cores() - 1))
    if not told.isdecimal() or not 1 <= int(told) <= 512:
        raise ConfigError(THREADS_VARIABLE, f"must be a number of threads, got {told!r}")
    return int(told)


CORES = Path("/sys/devices/system/cpu")


def physical_cores() -> int:
    """The cores this process may use; two threads of one core count as one, if the system says so."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    siblings = set()
    for number in usable:
        try:
            siblings.add((CORES / f"cpu{number}/topology/thread_siblings_list").read_text())
        except OSError:
            return len(usable)
    return len(siblings)

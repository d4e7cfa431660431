"""Run an embedded arm on workers: processes of this machine, or of a Ray cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from firecircle.catalog import original_of
from firecircle.circle.events import CircleConvened, Listener
from firecircle.circle.voice import Retry, Turn, Voice
from firecircle.engine.voices import PAST_DEADLINE, WorkerLost
from firecircle.errors import ConfigError, StoreError, VoiceError, install_command
from firecircle.lab.arms.arm import Arm, Case, CaseVoices
from firecircle.lab.cluster.worker import (
    Answer,
    Ask,
    CallOff,
    CircleWorker,
    Done,
    FromWorker,
    Retrying,
    Told,
    seated_in,
    without_voices,
)
from firecircle.lab.records import Outcome

OBJECT_STORE_BYTES = 128 << 20
"""Nothing large is kept there: shards and answers are small."""
LOOPBACK = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
"""Ray takes 127.0.0.1 for a wish to be reached from outside, and listens there instead."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # what goes wrong is raised; the rest would break up the progress
}


def require_ray() -> None:
    """A `ConfigError` where Ray is not installed."""
    if find_spec("ray") is None:
        raise ConfigError("--engine", "ray needs the extra `ray`", install_command("ray"))


@contextmanager
def ray_running(workers: int, address: str | None = None) -> Iterator[Any]:
    """The module `ray`, connected: to a cluster's address, else to a Ray of our own on loopback alone."""
    require_ray()
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    if not address:  # nobody else on this machine may use our Ray
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray

    usual: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "include_dashboard": None if address else False,
        "namespace": "firecircle",
    }
    own: dict[str, Any] = {
        "num_cpus": workers,
        "object_store_memory": OBJECT_STORE_BYTES,
        "_node_ip_address": LOOPBACK,
    }
    try:
        with _silent():
            if address:
                ray.init(address, **{name: value for name, value in usual.items() if value is not None})
            else:
                with _settled_agent_ports():
                    ray.init("local", **usual, **own)
    except Exception as unreachable:  # noqa: BLE001 - Ray raises bare ones here
        why = str(unreachable).strip().splitlines() or ["no answer"]
        raise ConfigError("--address" if address else "--engine", f"Ray cannot be used: {why[0]}") from None
    with _nothing_on_our_output():
        try:
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def _silent() -> Iterator[None]:
    """Keep a starting Ray from saying, on the error stream, which log level it was given."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _nothing_on_our_output() -> Iterator[None]:
    """Keep Ray from printing about lost workers: it does so on the standard output, where `--json` goes.

    Whoever hands out the work is told by an exception. There is no setting for it.
    """
    from ray._private import worker

    printing = getattr(worker, "print_to_stdstream", None)
    if printing is None:
        yield
        return
    worker.print_to_stdstream = lambda *_, **__: None
    try:
        yield
    finally:
        worker.print_to_stdstream = printing


NO_DASHBOARD = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
NOWHERE = "-1"
"""What Ray's agent writes into these files where there is no dashboard."""
ENVIRONMENTS = "runtime_env_agent_port"


@contextmanager
def _settled_agent_ports() -> Iterator[None]:
    """Write down the ports of Ray's agents before they do.

    Else Ray's main process waits 15 seconds for their files and then dies, which on a busy machine it does
    (ray-project/ray issue 65983, open; `ray.init` has no setting for it). Where Ray has changed inside, all
    is as it would be without this.
    """
    from ray._private import node

    kind: Any = node.Node
    original = getattr(kind, "start_raylet", None)
    if original is None:
        yield
        return

    def start_raylet(own: Any, *given: Any, **named: Any) -> Any:
        with suppress(AttributeError, OSError):
            session, name = Path(own.get_session_dir_path()), own._node_id
            for port in NO_DASHBOARD:
                (session / f"{port}_{name}").write_text(NOWHERE)
            own._ray_params.runtime_env_agent_port = _free_port()
            (session / f"{ENVIRONMENTS}_{name}").write_text(str(own._ray_params.runtime_env_agent_port))
        return original(own, *given, **named)

    kind.start_raylet = start_raylet
    try:
        yield
    finally:
        kind.start_raylet = original


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port: int = free.getsockname()[1]
        return port


MARGIN_SECONDS = 0.5
"""The driver ends a call this much before the worker would, so that journal and record tell the same."""
MOST_DEATHS = 5
"""How often workers may die without anything being finished in between."""


@dataclass(slots=True, eq=False)
class _Job:
    """A case that a worker judges, and the calls that are made for it."""

    number: int
    arm: Arm
    voices: CaseVoices
    outcome: asyncio.Future[Outcome]
    listeners: dict[str, Listener | None] = field(default_factory=dict)
    calls: dict[int, asyncio.Task[None]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Worker:
    """One actor, and what it is doing."""

    actor: Any
    jobs: dict[int, _Job] = field(default_factory=dict)
    batches: int = 0
    listening: asyncio.Task[None] | None = None
    is_lost: bool = False

    @property
    def load(self) -> int:
        """How much it has to do."""
        return len(self.jobs) + self.batches


class RayWorkers:
    """Workers in a Ray cluster. Those that are lost are replaced; what they did is done again."""

    def __init__(self, ray: Any, actor: type, starting: Sequence[Any], workers: int) -> None:
        self._ray = ray
        self._actor_class = ray.remote(num_cpus=1, max_restarts=0, max_concurrency=self.AT_ONCE)(actor)
        self._starting = starting
        self._deaths = 0
        self._broken: StoreError | None = None
        self.lost = 0
        self.workers = [self._started() for _ in range(workers)]

    AT_ONCE = 1
    """What an actor does at the same time."""

    def _started(self) -> _Worker:
        return _Worker(self._actor_class.remote(*self._starting))

    async def close(self) -> None:
        """Let the workers go."""
        for worker in self.workers:
            worker.is_lost = True
            with suppress(Exception):
                self._ray.kill(worker.actor)

    @property
    def count(self) -> int:
        """How many workers there are."""
        return len(self.workers)

    async def do(self, piece: Sequence[Any]) -> Any:
        """Have a worker do this; again by another one if it dies."""
        while True:
            worker = self._least_busy()
            worker.batches += 1
            try:
                done = await worker.actor.do.remote(list(piece))
            except self._ray.exceptions.RayActorError:
                self._replace(worker)
                continue
            except self._ray.exceptions.RayTaskError as failed:
                raise failed.cause or failed from None
            finally:
                worker.batches -= 1
            self._deaths = 0
            return done

    def _least_busy(self) -> _Worker:
        if self._broken is not None:
            raise self._broken
        return min(self.workers, key=lambda worker: worker.load)

    def _replace(self, worker: _Worker) -> None:
        """A new worker in place of a lost one, whose open jobs fail."""
        if worker.is_lost:
            return
        worker.is_lost = True
        self.lost += 1
        self._deaths += 1
        if self._deaths > MOST_DEATHS:
            self._broken = StoreError(
                f"{self._deaths} workers were lost one after another (out of memory?); run the same command"
                " again to go on"
            )
        for job in worker.jobs.values():
            if not job.outcome.done():
                job.outcome.set_exception(self._broken or WorkerLost())
                job.outcome.exception()  # read, so that no warning is logged where no caller waits
        if self._broken is None:
            self.workers[self.workers.index(worker)] = self._started()


class RayCircles(RayWorkers):
    """Workers that also hold circles of voices that are asked from here."""

    AT_ONCE = 1000

    def __init__(self, ray: Any, run_id: str, arms: Sequence[Arm], workers: int) -> None:
        self._asked: dict[str, dict[str, Voice]] = {
            arm.name: {model: voice for seated in seated_in(arm) for model, voice in seated.voices.items()}
            for arm in arms
        }
        self._numbers = 0
        super().__init__(ray, CircleWorker, (run_id, [without_voices(arm) for arm in arms]), workers)

    def _started(self) -> _Worker:
        worker = super()._started()
        worker.listening = asyncio.create_task(self._listen(worker))
        return worker

    async def close(self) -> None:
        """Let the workers go, and end what was asked for them."""
        for worker in self.workers:
            worker.is_lost = True
            tasks = [worker.listening, *(call for job in worker.jobs.values() for call in job.calls.values())]
            for task in tasks:
                if task is not None:
                    task.cancel()
            await asyncio.gather(*filter(None, tasks), return_exceptions=True)
        await super().close()

    def takes(self, arm: Arm) -> bool:
        """Whether an arm can be judged by a worker: one with a budget of its own asks it at every attempt."""
        configs = [seated.config for seated in seated_in(arm)]
        return not any(config.budget_tokens or config.budget_usd for config in configs)

    # -- hosted and local arms ---------------------------------------------------------------------------

    async def judge(self, arm: Arm, case: Case, voices: CaseVoices) -> Outcome:
        """The outcome of one case. `WorkerLost` when the worker died: the journal has what was answered."""
        self._numbers += 1
        worker = self._least_busy()
        job = _Job(self._numbers, arm, voices, asyncio.get_running_loop().create_future())
        worker.jobs[job.number] = job
        try:
            try:
                await worker.actor.begin.remote(job.number, arm.name, case)
            except self._ray.exceptions.RayActorError:
                self._replace(worker)
                raise WorkerLost from None
            return await job.outcome
        except WorkerLost:
            # What is under way is paid for: it is waited for, and journaled, before anybody asks again.
            await asyncio.gather(*job.calls.values(), return_exceptions=True)
            raise
        except asyncio.CancelledError:
            worker.actor.call_off.remote(job.number)
            for call in job.calls.values():
                call.cancel()
            await asyncio.gather(*job.calls.values(), return_exceptions=True)
            raise
        finally:
            worker.jobs.pop(job.number, None)

    async def _listen(self, worker: _Worker) -> None:
        while True:
            try:
                messages: list[FromWorker] = await worker.actor.hear.remote()
            except self._ray.exceptions.RayActorError:
                self._replace(worker)
                return
            for message in messages:
                if job := worker.jobs.get(message.job):
                    self._serve(worker, job, message)

    def _serve(self, worker: _Worker, job: _Job, message: FromWorker) -> None:
        match message:
            case Ask():
                answering = asyncio.create_task(self._answer(worker, job, message))
                job.calls[message.call] = answering
                answering.add_done_callback(lambda _: job.calls.pop(message.call, None))
            case CallOff():
                if call := job.calls.get(message.call):
                    call.cancel()
            case Told():
                if isinstance(message.event, CircleConvened):
                    job.listeners[message.circle] = job.voices.listener(message.circle, message.models)
                if listener := job.listeners.get(message.circle):
                    listener(message.event)
            case Done():
                self._deaths = 0
                if job.outcome.done():
                    return
                if isinstance(message.outcome, Exception):
                    job.outcome.set_exception(message.outcome)
                else:
                    job.outcome.set_result(message.outcome)

    async def _answer(self, worker: _Worker, job: _Job, ask: Ask) -> None:
        """Ask the voice as on one machine, journaled and limited, and send the answer back."""
        loop = asyncio.get_running_loop()
        left = ask.turn.deadline
        turn = ask.turn._replace(
            deadline=None if left is None else loop.time() + max(0.0, left - MARGIN_SECONDS),
            on_retry=lambda retry: self._tell_retry(worker, ask, retry),
        )

        def lost(kind: Any, error: BaseException, **more: Any) -> Answer:
            return Answer(ask.job, ask.call, None, job.voices.seconds(), kind, str(error), **more)

        try:
            asked = self._asked[job.arm.name]
            # An arm may ask a voice several times under names of its own, as of clones.
            voice = asked.get(ask.model) or asked[original_of(ask.model)]
            answer = await self._spoken(job.voices.seat(ask.model, voice), turn, job, ask)
        except VoiceError as error:
            answer = lost(
                error.kind, error, attempts=error.attempts, usage=error.usage, may_pass=error.may_pass
            )
        except TimeoutError:
            answer = lost("timeout", TimeoutError(PAST_DEADLINE))
        except Exception as broken:  # noqa: BLE001 - the circle goes on without the voice, as on one machine
            answer = lost("raised", broken)
        if not worker.is_lost:
            worker.actor.tell.remote([answer])

    @staticmethod
    async def _spoken(voice: Any, turn: Turn, job: _Job, ask: Ask) -> Answer:
        async with asyncio.timeout_at(turn.deadline):
            reply = await voice.speak(turn)
        return Answer(ask.job, ask.call, reply, job.voices.seconds())

    @staticmethod
    def _tell_retry(worker: _Worker, ask: Ask, retry: Retry) -> None:
        if not worker.is_lost:
            worker.actor.tell.remote([Retrying(ask.job, ask.call, retry)])


@asynccontextmanager
async def ray_circles(
    run_id: str, arms: Sequence[Arm], workers: int, address: str | None
) -> AsyncIterator[RayCircles]:
    """Workers for these arms, while the run goes."""
    with ray_running(workers, address) as ray:
        circles = RayCircles(ray, run_id, arms, workers)
        try:
            yield circles
        finally:
            await circles.close()


class _Holder:
    """Holds a worker in an actor. Ray takes a class with a coroutine function for one that shares a loop."""

    def __init__(self, start: type, args: Sequence[Any]) -> None:
        self._worker = start(*args)

    def do(self, piece: Any) -> Any:
        """Have the worker do it."""
        return self._worker.do(piece)


@asynccontextmanager
async def ray_workers(
    start: type, args: Sequence[Any], workers: int, address: str | None
) -> AsyncIterator[RayWorkers]:
    """Workers that each hold one object of this class."""
    with ray_running(workers, address) as ray:
        started = RayWorkers(ray, _Holder, (start, args), workers)
        try:
            yield started
        finally:
            await started.close()

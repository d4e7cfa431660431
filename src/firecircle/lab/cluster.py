"""Many machines instead of one, through Ray (extra `ray`).

The driver, which is the process of the command, alone reads and writes the journal, asks providers and
spends. Workers judge what costs nothing but processor time. So limits, pauses and the budget are those of one
machine, keys never leave it, and a worker that is lost takes no answer with it
(docs/decisions/066-cluster.md).
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from firecircle.errors import ConfigError, StoreError, install_command

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


MOST_DEATHS = 5
"""How often workers may die without anything being finished in between."""


@dataclass(slots=True, eq=False)
class _Worker:
    """One actor, and how many pieces it has to do."""

    actor: Any
    load: int = 0
    is_lost: bool = False


class RayWorkers:
    """Workers in a Ray cluster. Those that are lost are replaced; what they did is done again."""

    def __init__(self, ray: Any, actor: type, starting: Sequence[Any], workers: int) -> None:
        self._ray = ray
        self._actor_class = ray.remote(num_cpus=1, max_restarts=0, max_concurrency=1)(actor)
        self._starting = starting
        self._deaths = 0
        self._broken: StoreError | None = None
        self.lost = 0
        self.workers = [self._started() for _ in range(workers)]

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
            worker.load += 1
            try:
                done = await worker.actor.do.remote(list(piece))
            except self._ray.exceptions.RayActorError:
                self._replace(worker)
                continue
            except self._ray.exceptions.RayTaskError as failed:
                raise failed.cause or failed from None
            finally:
                worker.load -= 1
            self._deaths = 0
            return done

    def _least_busy(self) -> _Worker:
        if self._broken is not None:
            raise self._broken
        return min(self.workers, key=lambda worker: worker.load)

    def _replace(self, worker: _Worker) -> None:
        """A new worker in place of a lost one."""
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
        if self._broken is None:
            self.workers[self.workers.index(worker)] = self._started()


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

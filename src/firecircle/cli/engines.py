"""Where the work is done: on this machine, or by Ray."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from firecircle.lab.arms.arm import Arm
    from firecircle.lab.runs.judging import Cluster, Clusters

EngineName = Literal["local", "ray"]
Engine = Annotated[
    EngineName,
    typer.Option(
        "--engine", help="Processes on this machine, or the workers of a Ray cluster (extra `ray`)."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="The Ray cluster, such as 10.0.0.1:6379 or auto. Default: a Ray of its own on this machine.",
    ),
]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What the two options say together."""

    engine: EngineName = "local"
    address: str | None = None

    def __post_init__(self) -> None:
        """Refuse options that contradict each other before anything is read."""
        if self.engine == "local" and self.address is not None:
            raise ConfigError("--address", "belongs to --engine ray", "add that")

    @property
    def is_ray(self) -> bool:
        """Whether Ray does the work. A `ConfigError` if the installation does not allow it."""
        if self.engine == "local":
            return False
        from firecircle.lab.cluster.ray_cluster import require_ray

        require_ray()
        return True

    def clusters(self, workers: int) -> Clusters | None:
        """What opens the cluster of a run; None for this machine."""
        if not self.is_ray:
            return None
        from firecircle.lab.cluster.driver import ray_circles

        def opened(run_id: str, arms: Sequence[Arm]) -> AbstractAsyncContextManager[Cluster]:
            return ray_circles(run_id, arms, workers, self.address)

        return opened

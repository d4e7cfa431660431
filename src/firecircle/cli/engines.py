"""Where the work is done: on this machine, or by Ray."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from firecircle.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from firecircle.lab.arms.arm import Arm
    from firecircle.lab.runs.judging import Cluster, Clusters

Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="local|ray|ray:ADDRESS",
        help="Processes on this machine, or the workers of a Ray cluster (extra `ray`): its address, such as"
        " ray:10.0.0.1:6379 or ray:auto; without one, a Ray of its own on this machine.",
    ),
]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What the option says."""

    engine: str = "local"

    def __post_init__(self) -> None:
        """Refuse an engine that is not known before anything is read."""
        name, colon, address = self.engine.partition(":")
        if name not in ("local", "ray") or (colon and (name == "local" or not address)):
            raise ConfigError(
                "--engine", f"{self.engine!r} is not an engine", "write local, ray or ray:ADDRESS"
            )

    @property
    def address(self) -> str | None:
        """The cluster's, if there is one already."""
        return self.engine.partition(":")[2] or None

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

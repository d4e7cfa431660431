"""What one running server holds, handed to everything that answers a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jinja2 import Environment
from starlette.requests import Request

from firecircle.errors import ConfigError
from firecircle.store.finding import CircleSummary
from firecircle.store.opening import Store
from firecircle.web.access import Access
from firecircle.web.problems import RequestError
from firecircle.web.watch import Watch

if TYPE_CHECKING:
    from firecircle.web.convener import Convener


@dataclass(frozen=True, slots=True)
class Viewer:
    """The store that is shown, the convener who holds circles, the watch over them, and who may ask."""

    store: Store
    convener: Convener
    watch: Watch
    access: Access
    templates: Environment


def viewer_of(request: Request) -> Viewer:
    """The viewer that a request came to."""
    viewer = request.app.state.viewer
    assert isinstance(viewer, Viewer)
    return viewer


def circle_asked_for(request: Request, *, exactly: bool = False) -> CircleSummary:
    """The circle that the path names, by its id or, where nothing is changed, the beginning of it."""
    given = request.path_params["circle_id"]
    try:
        summary = viewer_of(request).store.circles.summary(given)
    except ConfigError as unknown:
        raise RequestError(404, str(unknown)) from None
    if exactly and summary.id != given:
        raise RequestError(404, f"{given}: no such circle; give the whole id to change something")
    return summary

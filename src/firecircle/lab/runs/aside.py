"""Asking a store without depending on its answer: a locked one lets whoever asks wait for half a minute."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Answer = TypeVar("Answer")


def aside(work: Callable[[], Answer]) -> Future[Answer]:
    """Do this on a thread of its own that holds nobody up, not even the end of the process."""
    done: Future[Answer] = Future()
    done.set_running_or_notify_cancel()  # whoever stops waiting cannot call it off

    def do() -> None:
        try:
            answer = work()
        except BaseException as trouble:  # noqa: BLE001 - whoever waits is told
            done.set_exception(trouble)
        else:
            done.set_result(answer)

    threading.Thread(target=do, name="aside", daemon=True).start()
    return done

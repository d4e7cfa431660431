"""`firecircle` and `python -m firecircle`.

The command line takes a moment to load, and Ctrl-C in that moment must show one line, not a traceback. Python
itself handles Ctrl-C until `main` has begun, so nothing slow is imported before; `signal` would import `enum`
and `functools`.
"""

import _signal as signal  # type: ignore[import-not-found]  # what `signal` wraps
import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Load the command line and run it."""
    # Child processes (pools, pip) would look for modules in the working folder first.
    os.environ["PYTHONSAFEPATH"] = "1"
    heeds_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeds_interrupts:  # a shell ignores interrupts for background jobs
        signal.signal(signal.SIGINT, _leave)
    _write_whole_outputs()
    import gc

    # Imported modules stay. Python would scan them for garbage repeatedly while they load and once at exit: a
    # third of what a short command costs.
    gc.set_threshold(50_000, 20, 20)
    from firecircle.cli.main import run

    def begin() -> None:
        if heeds_interrupts:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        status = run(sys.argv[1:], begin)
    except KeyboardInterrupt:  # between Python's handlers and ours
        return _leave()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt
    if status == INTERRUPTED:
        # If the interrupt fell into an `exec` (dataclasses, pydantic), Python would end by the signal.
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):  # the reader has gone or the stream is closed
                continue
        os._exit(INTERRUPTED)
    if "duckdb" not in sys.modules:  # frozen at exit, it prints a page about leaks
        gc.freeze()
    sys.exit(status)


def _write_whole_outputs() -> None:
    """Under PYTHONUNBUFFERED, Python drops the rest of a write that a nearly full disk cuts short."""
    import io

    if sys.stdout is not None and isinstance(sys.stdout.buffer, io.RawIOBase):
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(sys.stdout.buffer), encoding, errors, line_buffering=True
        )


def _leave(*_: object) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    if not sys.flags.safe_path and os.path.realpath(sys.path[0]) == os.getcwd():
        del sys.path[0]  # `python -m` put the working folder there; its files may come from a stranger
    main()

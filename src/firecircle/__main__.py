"""`firecircle` and `python -m firecircle`.

The command line takes a moment to load. Whoever presses Ctrl-C in that moment gets a line, not a traceback.
Until `main` has begun Python itself answers, so nothing that takes time is imported before; `signal` would
bring `enum` and `functools` along.
"""

import _signal as signal  # type: ignore[import-not-found]  # what `signal` wraps
import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Load the command line and run it."""
    # Processes that are started from here (pools, pip) would look for modules in the working folder first.
    os.environ["PYTHONSAFEPATH"] = "1"
    heeds_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeds_interrupts:  # a shell that starts it in the background has them ignored
        signal.signal(signal.SIGINT, _leave)
    _write_whole_outputs()
    import gc

    # What is imported stays. Python would look through it for garbage again and again while it grows, and
    # once more at the end: a third of what a short command costs.
    gc.set_threshold(50_000, 20, 20)
    from firecircle.cli.main import run

    def begin() -> None:
        if heeds_interrupts:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        status = run(sys.argv[1:], begin)
    except KeyboardInterrupt:  # between two of its own ways to answer
        return _leave()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt
    if status == INTERRUPTED:
        # Where the interrupt fell into an `exec` (dataclasses, pydantic), Python would end by the signal.
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):  # the reader is gone, or the stream closed: nobody is left to tell
                continue
        os._exit(INTERRUPTED)
    if "duckdb" not in sys.modules:  # it prints a page about leaks where nobody looks for garbage at the end
        gc.freeze()
    sys.exit(status)


def _write_whole_outputs() -> None:
    """Under PYTHONUNBUFFERED Python drops the rest of a write that a nearly full disk took a part of."""
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
        del sys.path[0]  # `python -m` put the working folder there, which may be a stranger's
    main()

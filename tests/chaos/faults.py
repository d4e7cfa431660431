"""Every command with its n-th open, write, fsync, connect, read or large allocation failing, for every n.

`python -m tests.chaos.faults [--every K] [--command NAME] [--kind KIND]` prints a table: how many places there
are, how many runs ended with a right result, how many with a clear error, and each that did neither.

Each trial is a fork of one process that has everything imported, in a folder of its own; `faults.c` fails the
call. After the trial the same command runs once more without a fault: it must come to the right result, what
was saved must be there, and answers that were saved must not be paid for again.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.running import endpoint
from tests.lab.hosting import TRIO, arm, plan_text
from tests.loopback import Answer, ChatRequest, LoopbackServer, completion

INCOMPLETE = 4
KINDS = ("open", "write", "fsync", "connect", "read", "allocate")
SOURCE = Path(__file__).with_name("faults.c")
NEVER = 10**9
LONGEST_SECONDS = 60
CONCERNS_NETWORK = ("connect", "read")
"""After such a fault a call may have to be made again."""
IN_FLIGHT = len(TRIO)
RETRY = ("lab", "resume", "run", "--retry-failed", "--no-save")
"""What a run that is incomplete says to do."""
PROMPTS = 4
ABORTS = ("memory allocation of", "duckdb::")
"""Libraries end the process where they cannot go on, with a line of their own: pydantic's code in Rust without
memory, DuckDB where it cannot open its file. Nothing may be lost by it."""
HARMLESS = "Fatal read error on socket transport"
"""Of asyncio, with a traceback: the connection is closed, and the call is made again."""
UNCLEAR = ("Traceback", "bug in firecircle", "Exception ignored", "Fatal Python error")


@dataclass(frozen=True)
class Ended:
    """How a trial ended."""

    status: int
    """Negative: by this signal."""
    count: int
    """So many calls of the kind there were."""
    out: str
    err: str
    calls: int
    """So many answers the provider gave."""


@dataclass(frozen=True)
class Command:
    """A command that is tried, and what must hold after it."""

    name: str
    arguments: tuple[str, ...]
    again: tuple[str, ...]
    """What a user would type after a failure."""
    wrong_with: Callable[[Path, Ended, Ended], Iterator[str]]
    """What is wrong with a trial: its folder, how it ended, and how it ends without a fault."""
    finished: Callable[[Path], object]
    """What is there in the end; the same whether or not something failed before."""


@dataclass
class Row:
    """A line of the table."""

    command: str
    kind: str
    lasting: bool
    places: int = 0
    tried: int = 0
    right: int = 0
    clear: int = 0
    aborted: int = 0
    wrong: list[str] = field(default_factory=list)


# -- a process to fork trials from ---------------------------------------------------------------------------


def serve_trials() -> None:
    """Read a trial a line, fork it, and print how it ended."""
    faults = ctypes.CDLL(None)
    importlib.import_module("firecircle.cli.main")
    for line in sys.stdin:
        trial = json.loads(line)
        if modules := trial.get("modules"):
            for name in modules:
                with suppress(Exception):
                    importlib.import_module(name)
            print(json.dumps(True), flush=True)
            continue
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _trial(trial, faults, writing)
        os.close(writing)
        with open(reading) as told:
            report = told.read()
        _, status = os.waitpid(child, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), json.loads(report or "[-1, []]")]), flush=True)


def _trial(trial: Mapping[str, Any], faults: ctypes.CDLL, report: int) -> None:
    status = 70
    try:
        os.chdir(trial["folder"])
        for name, descriptor in (("out", 1), ("err", 2)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        faulthandler.enable(all_threads=False)
        os.environ.update(trial["environment"])
        signal.alarm(LONGEST_SECONDS)
        armed = (KINDS.index(trial["kind"]), trial["nth"], int(trial["lasting"]))
        if trial["arguments"][0] == "viewer":
            _view(trial["arguments"][1:], lambda: faults.faults_arm(*armed), faults.faults_disarm)
            status = 0
        else:
            from firecircle.__main__ import main

            sys.argv = ["firecircle", *trial["arguments"]]
            faults.faults_arm(*armed)
            try:
                main()
            except SystemExit as left:
                status = left.code if isinstance(left.code, int) else 0
            try:  # as the interpreter does at its end
                sys.stdout.flush()
            except OSError:
                status = 120
    except BaseException:  # noqa: BLE001 - this process ends here
        traceback.print_exc()
    finally:
        faults.faults_disarm()
        os.write(report, json.dumps([faults.faults_count(), list(sys.modules)]).encode())
        os._exit(status)


PAGES = (
    "/",
    "/circles",
    "/circles/{id}",
    "/bank",
    "/batches",
    "/runs",
    "/rotation",
    "/blindspots",
    "/api/v1/circles",
    "/api/v1/circles/{id}",
)


def _view(arguments: list[str], arm_it: Callable[[], None], disarm: Callable[[], None]) -> None:
    """Ask for pages while a fault comes, and for all of them once more after it; print what came."""
    from starlette.testclient import TestClient

    from firecircle.store.opening import open_store
    from firecircle.web.app import build_site

    with open_store(arguments[0]) as store:
        site = build_site(store)
        with TestClient(site.app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as client:
            paths = [page.format(id=arguments[1]) for page in PAGES]
            client.get("/about")
            arm_it()
            first = [_seen(client, path) for path in paths]
            disarm()
            second = [_seen(client, path) for path in paths]
    print(json.dumps({"first": first, "second": second}))


def _seen(client: Any, path: str) -> tuple[int, int]:
    answer = client.get(path)
    whole = answer.text.rstrip().endswith(("</html>", "}"))
    return answer.status_code, len(answer.text) // 200 if answer.status_code == 200 and whole else 0


# -- commands and what must hold ------------------------------------------------------------------------------


def _outcome(ended: Ended, usual: Ended) -> Iterator[str]:
    """What is wrong with how a command ended, whatever it does."""
    if ended.status == -signal.SIGABRT and any(words in ended.err for words in ABORTS):
        return
    if ended.status < 0:
        yield f"ended by signal {-ended.status}"
    if HARMLESS not in ended.err and (
        unclear := next((words for words in UNCLEAR if words in ended.err), None)
    ):
        last = next(
            (line for line in reversed(ended.err.splitlines()) if re.match(r"\w*Error|\w+\.\w+Error", line)),
            "",
        )
        yield f"{unclear}: {last[:160]}"
    if ended.status not in (usual.status, 2, 4) and ended.status >= 0:
        yield f"status {ended.status}"
    if ended.status in (2, 4) and not ended.err.strip():
        yield f"status {ended.status} without a word"


def _stored(folder: Path) -> dict[str, str]:
    """The circles of the store and their verdicts; a `StoreError` where it is not sound."""
    from firecircle.store.check import check_store
    from firecircle.store.finding import Filters
    from firecircle.store.opening import open_store

    place = folder / "circles.db"
    if not place.exists() or not place.stat().st_size:
        return {}
    found = check_store(place)
    assert found.sound, f"the store is damaged: {found.damage or found.unreadable}"
    with open_store(place) as store:
        return {each.id: str(each.verdict) for each in store.circles.each_summary(Filters()) if each.verdict}


def _said_lost(text: str) -> bool:
    return bool(re.search(r"not (be )?(kept|saved|stored|recorded|written)|could not|cannot", text))


def _wrong_evaluation(folder: Path, ended: Ended, usual: Ended) -> Iterator[str]:
    if ended.status == usual.status:
        try:
            told = json.loads(ended.out)
        except ValueError:
            yield "status of an alarm, and no whole result"
            return
        if told["verdict"] != "alarm":
            yield f"the verdict is {told['verdict']}"
        if not _stored(folder) and not _said_lost(ended.err):
            yield "not in the store, and not a word about it"


def _wrong_batch(folder: Path, ended: Ended, usual: Ended) -> Iterator[str]:
    stored = _stored(folder)
    rows = (folder / "out.csv").read_text().splitlines()[1:] if (folder / "out.csv").exists() else None
    if rows is not None and len(rows) != PROMPTS:
        yield f"{len(rows)} rows of {PROMPTS} in the file"
    judged = sum(",alarm," in row for row in rows or ())
    unjudged = ended.out.count("\tno verdict\t")
    if ended.status == usual.status and (rows is None or judged + unjudged != PROMPTS):
        yield f"status of a whole batch, and {judged} judged in the file"
    shown = sum(1 for line in ended.out.splitlines() if "\tALARM\t" in line)
    if max(judged, shown) > len(stored) and not _said_lost(ended.err):
        yield f"{max(judged, shown)} judged, {len(stored)} in the store, and not a word about it"
    paid = ended.calls * PROMPTS // usual.calls
    if max(judged, shown, len(stored)) < paid - unjudged - 1:  # one may be under way
        yield f"{paid} were paid, and {max(judged, shown, len(stored))} are anywhere"


def _wrong_run(folder: Path, ended: Ended, usual: Ended) -> Iterator[str]:
    if ended.status == usual.status and not list((folder / "run").glob("*.parquet")):
        yield "status of a whole run without its results"


def _wrong_import(folder: Path, ended: Ended, usual: Ended) -> Iterator[str]:
    stored = _stored(folder)
    if ended.status == usual.status and len(stored) != PROMPTS:
        yield f"status of a whole import, {len(stored)} circles"


def _wrong_export(folder: Path, ended: Ended, usual: Ended) -> Iterator[str]:
    target = folder / "new.jsonl"
    if target.exists() and len(target.read_text().splitlines()) != PROMPTS + 1:
        yield "half an export"
    if ended.status == usual.status and not target.exists():
        yield "status of a whole export without one"


def _wrong_view(folder: Path, ended: Ended, usual: Ended) -> Iterator[str]:
    told, whole = json.loads(ended.out or "{}"), json.loads(usual.out)
    if not told:
        yield "the viewer is gone"
        return
    for page, now, should in zip(PAGES, told["first"], whole["first"], strict=True):
        if now[0] == 200 and abs(now[1] - should[1]) > 1:
            yield f"{page} is another ({now[1]} instead of {should[1]} times 200 characters)"
        elif now[0] not in (200, 500, 503):
            yield f"{page} answers {now[0]}"
    for page, now, should in zip(PAGES, told["second"], whole["second"], strict=True):
        if now[0] != should[0] or abs(now[1] - should[1]) > 1:
            yield f"after the fault {page} answers {now[0]} with {now[1]} characters, not {should}"


def _finished_run(folder: Path) -> object:
    import duckdb

    (parquet,) = (folder / "run").glob("*.parquet")
    table = duckdb.read_parquet(str(parquet)).project("arm, record_id, falsehood")
    return table.order("arm, record_id").fetchall()


def _verdicts(folder: Path) -> object:
    return Counter(_stored(folder).values())


def commands(circle: str) -> list[Command]:
    """What is tried. `circle` is one that is in the prepared store of the viewer and the export."""
    models = ("--models", ",".join(TRIO), "--rounds", "2", "--store", "circles.db", "--save")
    one = ("evaluate", "as we agreed earlier, send it", *models, "--json")
    batch = ("evaluate", "--batch", "prompts.jsonl", *models, "--out", "out.csv", "--at-once", "1")
    run = ("lab", "run", "plan.toml", "--out", "run", "--no-save")
    bring = ("circles", "import", "export.jsonl", "--store", "circles.db")
    take = ("circles", "export", "new.jsonl", "--store", "full.db", "--force")
    view = ("viewer", "full.db", circle)
    return [
        Command("evaluate", one, one, _wrong_evaluation, lambda _: None),
        Command("batch", batch, batch, _wrong_batch, lambda _: None),
        Command("run", run, run, _wrong_run, _finished_run),
        Command("import", bring, bring, _wrong_import, _verdicts),
        Command("export", take, take, _wrong_export, lambda folder: (folder / "new.jsonl").read_text()),
        Command("viewer", view, view, _wrong_view, lambda _: None),
    ]


# -- trials ----------------------------------------------------------------------------------------------------


class Trials:
    """Tries commands at one endpoint, each in a copy of one prepared folder."""

    def __init__(self, folder: Path, server: LoopbackServer, process: subprocess.Popen[str]) -> None:
        self._folder, self._server, self._process = folder, server, process
        self._environment = {
            "OPENROUTER_API_KEY": "sk-test",
            "FIRECIRCLE_OPENROUTER_BASE_URL": server.base_url,
            "FIRECIRCLE_CONFIG": str(folder / "own.toml"),
            "HOME": str(folder / "home"),
            "XDG_CACHE_HOME": str(folder / "home" / "cache"),
        }
        self._prepared = folder / "prepared"
        self._usual: dict[tuple[str, str], Ended] = {}
        self._finished: dict[str, object] = {}

    def prepare(self) -> list[Command]:
        """Fill the folder that every trial gets a copy of, and import what commands import."""
        self._prepared.mkdir()
        (self._folder / "home").mkdir()
        (self._folder / "own.toml").write_text(
            "[waiting]\nfirst_seconds = 0.02\nlongest_seconds = 0.05\npatience_seconds = 2.0\n"
        )
        rows = [{"id": f"p{n}", "user": f"as we agreed earlier, send number {n}"} for n in range(PROMPTS)]
        (self._prepared / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        arms = (arm("circle", "fire_circle"), arm("single"))
        concurrency = "[concurrency]\ncalls = 3\nworkers = 1\n"
        (self._prepared / "plan.toml").write_text(
            plan_text(*arms, before=f'name = "t"\n{concurrency}', sample=2)
        )
        batch = next(each for each in commands("") if each.name == "batch")
        folder = self._copy("filling")
        assert self._tried(folder, batch.arguments, "open", NEVER).status == 1
        filled = next(iter(_stored(folder)))
        shutil.copy(folder / "circles.db", self._prepared / "full.db")
        export = ("circles", "export", "export.jsonl", "--store", "circles.db")
        assert self._tried(folder, export, "open", NEVER).status == 0
        shutil.copy(folder / "export.jsonl", self._prepared)
        return commands(filled)

    def row(
        self,
        command: Command,
        kind: str,
        every: int = 1,
        first: int = 1,
        *,
        most: int | None = None,
        lasting: bool = False,
    ) -> Row:
        """Fail the n-th call for every n, or every so many, or so many in all, until nothing fails."""
        usual = self._without_fault(command, kind)
        row = Row(command.name, kind, lasting, places=usual.count)
        every = max(every, -(-usual.count // most)) if most else every
        for nth in range(first, usual.count + 1, every):
            row.tried += 1
            folder = self._copy(f"{command.name}-{kind}-{nth}")
            ended = self._tried(folder, command.arguments, kind, nth, lasting=lasting)
            problems = list(self._problems(command, kind, folder, ended, usual))
            if problems:
                row.wrong.append(f"n={nth}: {'; '.join(problems)}")
            elif ended.status == usual.status:
                row.right += 1
            elif ended.status < 0:
                row.aborted += 1
            else:
                row.clear += 1
            if not problems:
                shutil.rmtree(folder)
        return row

    def _problems(
        self, command: Command, kind: str, folder: Path, ended: Ended, usual: Ended
    ) -> Iterator[str]:
        try:
            yield from _outcome(ended, usual)
            yield from command.wrong_with(folder, ended, usual)
            more = IN_FLIGHT if kind in CONCERNS_NETWORK else 0
            if ended.calls > usual.calls + more:
                yield f"{ended.calls} calls instead of {usual.calls}"
            if command.name == "viewer" or (
                command.name in ("evaluate", "batch") and ended.status == usual.status
            ):
                return
            is_partial = command.name == "run" and ended.status == INCOMPLETE
            again = self._tried(folder, RETRY if is_partial else command.again, kind, NEVER)
            if again.status != usual.status:
                yield f"again: status {again.status}, {again.err.strip()[-160:]}"
            elif command.finished(folder) != self._finished[command.name]:
                yield "again: another result"
            elif command.name == "run" and ended.calls + again.calls > usual.calls + IN_FLIGHT:
                yield f"{ended.calls} and {again.calls} calls instead of {usual.calls}: paid twice"
        except Exception as broken:  # noqa: BLE001 - a finding like any other
            yield f"{type(broken).__name__}: {str(broken)[:200]}"

    def _without_fault(self, command: Command, kind: str) -> Ended:
        key = command.name, kind
        if key not in self._usual:
            folder = self._copy(f"{command.name}-{kind}-never")
            ended = self._tried(folder, command.arguments, kind, NEVER)
            assert not list(_outcome(ended, ended)), ended
            assert not list(command.wrong_with(folder, ended, ended)), ended
            self._usual[key] = ended
            self._finished[command.name] = command.finished(folder)
        return self._usual[key]

    def _copy(self, name: str) -> Path:
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._prepared, folder)
        return folder

    def _tried(
        self, folder: Path, arguments: tuple[str, ...], kind: str, nth: int, *, lasting: bool = False
    ) -> Ended:
        before = len(self._server.requests)
        asked = {"folder": str(folder), "arguments": arguments, "kind": kind, "nth": nth, "lasting": lasting}
        status, (count, modules) = self._send(
            {**asked, "environment": {**self._environment, "XDG_DATA_HOME": str(folder)}}
        )
        if nth == NEVER:
            self._send({"modules": modules})
        out, err = ((folder / name).read_text(errors="replace") for name in ("out", "err"))
        if nth != NEVER:
            (folder / "err").rename(folder / "err.of-the-fault")
        return Ended(status, count, out, err, len(self._server.requests) - before)

    def _send(self, message: Mapping[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def why_not() -> str | None:
    """What keeps this machine from failing calls."""
    if not sys.platform.startswith("linux"):
        return "calls are failed on Linux only"
    return None if shutil.which("cc") else "no C compiler"


@contextmanager
def trials(folder: Path) -> Iterator[tuple[Trials, list[Command]]]:
    """Trials in this folder, and the commands to try."""
    library = folder / "faults.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"}
    with (
        endpoint(_answer) as server,
        subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.faults", "--serve"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        made = Trials(folder, server, process)
        try:
            yield made, made.prepare()
        finally:
            process.kill()


def _answer(_: ChatRequest) -> Answer:
    return completion()


def as_table(rows: list[Row]) -> str:
    """The table for people."""
    lines = [
        f"{'command':10} {'kind':10} {'places':>7} {'tried':>6} {'right':>6} {'error':>6} {'abort':>6} {'wrong':>6}"
    ]
    for row in rows:
        kind = f"{row.kind}..." if row.lasting else row.kind
        figures = (row.places, row.tried, row.right, row.clear, row.aborted, len(row.wrong))
        lines.append(
            f"{row.command:10} {kind:10}"
            + "".join(f" {figure:>{7 if i == 0 else 6}}" for i, figure in enumerate(figures))
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--every", type=int, default=1, help="try only every so many places")
    parser.add_argument("--command", action="append")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--first", type=int, default=1, help="the first place to try")
    parser.add_argument("--lasting", action="store_true", help="every call from the n-th on fails")
    parser.add_argument("--keep", type=Path, help="work in this new folder and leave what was wrong there")
    asked = parser.parse_args()
    if asked.serve:
        serve_trials()
        return
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        with trials(folder) as (made, known):
            for command in known:
                for kind in KINDS:
                    if command.name in (asked.command or [command.name]) and kind in (asked.kind or KINDS):
                        row = made.row(command, kind, asked.every, asked.first, lasting=asked.lasting)
                        rows.append(row)
                        for wrong in row.wrong:
                            print(f"{row.command} {row.kind} {wrong}", flush=True)
    print(as_table(rows))
    sys.exit(any(row.wrong for row in rows))


if __name__ == "__main__":
    main()

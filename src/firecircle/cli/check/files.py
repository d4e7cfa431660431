"""Which files of a repository hold prompts, what each is, and which of their lines changed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firecircle.cli.check.globs import Globs
from firecircle.errors import ConfigError
from firecircle.files import read_regular
from firecircle.settings import CheckTable

FileKind = Literal["system", "skill", "document", "user"]
IGNORED_FOLDERS = frozenset(
    (
        *(".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", "site-packages", ".tox"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".nox", ".idea", "dist", "build", "target"),
    )
)
"""Folders that hold what others wrote or tools made; `.gitignore` is heeded beside them."""
STRUCTURED = (".yaml", ".yml", ".json")
LARGEST_GITIGNORE = 1_000_000
PATIENCE = 60
"""Seconds that git may take."""


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A file to check."""

    path: Path
    shown: str
    """As reports write it: with `/`, from the working folder on if it lies there."""
    kind: FileKind


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files to check, and those that were named although nothing tells what they are."""

    files: tuple[PromptFile, ...]
    unknown: tuple[str, ...]


class _Rules:
    """What the settings say of a path, as written from their folder on."""

    def __init__(self, table: CheckTable, root: Path, as_kind: FileKind | None) -> None:
        self._root = root
        self._as_kind = as_kind
        self._kinds: tuple[tuple[FileKind, Globs], ...] = (
            ("user", Globs(table.user)),
            ("document", Globs(table.document)),
            ("skill", Globs(table.skill)),
            ("system", Globs(table.system)),
        )
        self._ignore = Globs(table.ignore)

    def within(self, path: Path) -> str:
        """The path as patterns see it."""
        try:
            return path.relative_to(self._root).as_posix()
        except ValueError:
            return path.name

    def ignored(self, path: Path, *, is_folder: bool = False) -> bool:
        return self._ignore.fit(self.within(path), is_folder=is_folder)

    def kind_of(self, path: Path) -> FileKind | None:
        """The first kind whose patterns fit: a fixture is one, whatever else its name says."""
        if self._as_kind is not None:
            return self._as_kind
        written = self.within(path)
        return next((kind for kind, globs in self._kinds if globs.fit(written)), None)


def find_files(
    paths: Sequence[str], table: CheckTable, root: Path, as_kind: FileKind | None = None
) -> FoundFiles:
    """The prompt files in these folders, and these files themselves, each once and in order.

    `root` is the folder from which on the patterns of the settings are written.
    """
    rules = _Rules(table, root, as_kind)
    files: dict[Path, PromptFile] = {}
    unknown: list[str] = []
    for written in paths:
        path = Path(os.path.abspath(written))
        if path.is_dir():
            found = [(file, rules.kind_of(file)) for file in _walk(path, rules, [])]
            if as_kind is not None:  # every file there would be meant: those that hold texts are
                plain = _Rules(table, root, None)
                found = [(file, as_kind) for file, _ in found if plain.kind_of(file)]
        elif path.is_file():
            found = [] if rules.ignored(path) else [(path, rules.kind_of(path))]
            unknown += [written for _, kind in found if kind is None]
        else:
            raise ConfigError("PATH", f"{written} does not exist", "name a file or a folder")
        for file, kind in found:
            if kind is not None:
                files.setdefault(file, PromptFile(file, _shown(file), kind))
    return FoundFiles(tuple(files.values()), tuple(unknown))


def _walk(folder: Path, rules: _Rules, outer: list[tuple[Path, Globs]]) -> Iterator[Path]:
    """The files below, folders last, without what is ignored; links lead elsewhere and are not followed."""
    ignoring = [*outer, *_gitignore(folder)]
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as unreadable:
        raise ConfigError("PATH", f"cannot read {folder}: {unreadable.strerror}") from None
    folders: list[Path] = []
    for entry in entries:
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder and entry.name in IGNORED_FOLDERS:
            continue
        if rules.ignored(path, is_folder=is_folder) or any(
            globs.fit(path.relative_to(base).as_posix(), is_folder=is_folder) for base, globs in ignoring
        ):
            continue
        if is_folder:
            folders.append(path)
        elif entry.is_file(follow_symlinks=False):
            yield path
    for inner in folders:
        yield from _walk(inner, rules, ignoring)


def _gitignore(folder: Path) -> list[tuple[Path, Globs]]:
    try:
        text = read_regular(folder / ".gitignore", LARGEST_GITIGNORE).decode("utf-8", errors="replace")
    except OSError:
        return []
    return [(folder, Globs(text.splitlines()))]


def _shown(path: Path) -> str:
    try:
        return path.relative_to(os.getcwd()).as_posix()
    except ValueError:
        return path.as_posix()


# -- changed lines -----------------------------------------------------------------------------------------

ChangedLines = dict[Path, set[int] | None]
"""The changed lines of each changed file; None for a file that git does not know."""
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def changed_since(base: str) -> ChangedLines:
    """The lines below this folder that differ from a commit, in the files as they are now."""
    if base.startswith("-"):
        raise ConfigError("--diff", f"{base} is not a commit", "name a branch, a tag or a commit")
    top = Path(_git("rev-parse", "--show-toplevel").rstrip("\n"))
    # Without prefixes a path is the rest of its line; core.quotePath would escape letters beyond ASCII.
    difference = _git(
        *_without_filters(),
        "diff",
        "--unified=0",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--no-prefix",
        base,
    )
    changed: ChangedLines = {}
    lines: set[int] = set()
    for row in difference.split("\n"):
        if row.startswith("+++ "):
            lines = set()
            changed[(top / row[4:].rstrip("\t")).resolve()] = lines
        elif hunk := _HUNK.match(row):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines.update(range(first, first + count))
    for name in _git("ls-files", "--others", "--exclude-standard", "--full-name", "-z").split("\0"):
        if name:
            changed[(top / name).resolve()] = None
    return changed


def is_changed(changed: ChangedLines | None, path: Path, first: int, last: int) -> bool:
    """Whether one of these lines changed; everything counts as changed without `--diff`."""
    if changed is None:
        return True
    lines = changed.get(path.resolve(), set())
    return lines is None or any(first <= line <= last for line in lines)


def _without_filters() -> tuple[str, ...]:
    """Options that switch off the programs by which this repository's own settings filter files."""
    options: list[str] = []
    for line in _git("config", "--list", "--show-scope", "--name-only").splitlines():
        scope, _, name = line.partition("\t")
        if scope in ("local", "worktree") and re.fullmatch(r"filter\..+\.(?:clean|process|required)", name):
            options += ("-c", f"{name}={'false' if name.endswith('.required') else ''}")
    return tuple(options)


def _git(*arguments: str) -> str:
    # The repository may be a stranger's: its settings must not start a program.
    safe = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "core.hooksPath=/dev/null")
    try:
        done = subprocess.run(
            ["git", *safe, *arguments],
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise ConfigError("--diff", f"git did not answer: {failed}") from None
    if done.returncode:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ConfigError("--diff", f"git: {why[0] if why else 'failed'}", "name a commit of this repository")
    return done.stdout.decode("utf-8", "surrogateescape")

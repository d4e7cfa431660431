"""The n-th open, write, fsync, connect, read or large allocation fails: a right result or a clear error.

`pytest tests/chaos/test_faults.py --long` fails each call of every command, once and from then on (an hour); without
it some of them. `python -m tests.chaos.faults` prints the table.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.faults import KINDS, Command, Trials, as_table, trials, why_not

PLACES = 2
"""Of each command and kind in the short variant, spread over all."""
NAMES = ("evaluate", "batch", "run", "import", "export", "viewer")


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Trials, dict[str, Command]]]:
    if reason := why_not():
        pytest.skip(reason)
    with trials(tmp_path_factory.mktemp("faults")) as (made, known):
        yield made, {command.name: command for command in known}


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_gives_a_right_result_or_a_clear_error(
    tried: tuple[Trials, dict[str, Command]], name: str, is_long: bool
) -> None:
    made, known = tried
    rows = [made.row(known[name], kind, most=None if is_long else PLACES) for kind in KINDS]
    if is_long:
        rows += [made.row(known[name], kind, lasting=True) for kind in ("open", "write", "fsync")]
    assert not [f"{row.kind} {wrong}" for row in rows for wrong in row.wrong], as_table(rows)

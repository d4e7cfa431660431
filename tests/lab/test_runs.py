from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from firecircle.errors import ConfigError
from firecircle.lab.plan import plan_of
from firecircle.lab.records import COLUMNS
from firecircle.lab.runs.cases import chosen_records, take_census
from firecircle.lab.runs.folder import RunFolder, find_run, list_runs
from firecircle.lab.runs.runner import Follower, RunState
from firecircle.lab.runs.starting import complete, open_run
from firecircle.names import EMBEDDED_MODELS, NEURAL_MODEL, embedded_models
from tests.lab.hosting import CIRCLE, TRIO, arm, opinion
from tests.loopback import Answer, ChatRequest, LoopbackServer, failure

HOSTED = f"[circle]\nmodels = {list(TRIO)}\n{CIRCLE}{arm('single')}"
EMBEDDED = arm("parallel")


@contextmanager
def unseen(_: RunFolder) -> Iterator[Follower]:
    yield lambda tally: None


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(opinion) as server:
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        yield server


def begun(text: str, base: Path, out: Path | None = None, *, new: bool = False) -> RunFolder:
    return open_run(plan_of(text, "plan.toml"), text, base, out=out, new=new)


async def ended(text: str, base: Path, out: Path | None = None) -> tuple[RunFolder, RunState]:
    folder = begun(text, base, out)
    return folder, await complete(folder, unseen)


def dataset(path: Path, count: int = 3, **more: str) -> str:
    rows = [
        {"id": f"r{number}", "user": f"Please tell me about number {number}.", "label": number % 2, **more}
        for number in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f'[[datasets]]\npath = "{path.name}"\n'


def rows(folder: RunFolder, columns: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as database:
        return database.execute(f"SELECT {columns} FROM read_parquet(?)", [str(folder.records)]).fetchall()


async def test_calls_are_counted_while_they_are_made(tmp_path: Path, server: LoopbackServer) -> None:
    seen: list[tuple[int, int]] = []

    @contextmanager
    def watched(_: RunFolder) -> Iterator[Follower]:
        yield lambda tally: seen.append((tally.done, tally.calls))

    text = dataset(tmp_path / "d.jsonl", 1) + HOSTED
    folder = begun(text, tmp_path, tmp_path / "run")
    state = await complete(folder, watched)
    assert (0, 1) in seen, "the first call counts before its record is judged"
    assert state.tally.calls == len(server.requests)
    assert all(arm.open_calls == 0 for arm in state.tally.arms.values())


async def test_a_run_leaves_plan_versions_journal_and_records(tmp_path: Path, server: LoopbackServer) -> None:
    text = "repeats = 2\n" + dataset(tmp_path / "d.jsonl") + HOSTED
    folder, state = await ended(text, tmp_path, tmp_path / "run")
    assert state.stopped is None
    assert folder.state == "finished"
    assert (folder.path / "plan.toml").read_text() == text
    assert folder.about.versions["firecircle"]
    assert [row[0] for row in rows(folder, "arm")] == ["circle", "single"] * 6
    with duckdb.connect() as database:
        told = database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(folder.records)]).fetchall()
    assert tuple(row[0] for row in told) == COLUMNS
    assert Counter(rows(folder, "repeat, record_id, label"))[(1, "r1", "attack")] == 2
    assert len(server.requests) == sum(int(str(row[0])) for row in rows(folder, "calls"))
    assert (
        rows(folder, "voices[1].model, round(voices[1].falsehood, 3) = voices[1].falsehood")
        == [(TRIO[0], True)] * 12
    )
    seeds = Counter(request.body["seed"] for request in server.requests)
    assert len(seeds) == 6  # one for each record and repeat, shared by the arms


async def test_embedded_arms_are_judged_by_worker_processes(tmp_path: Path) -> None:
    folder, state = await ended(dataset(tmp_path / "d.jsonl", 40) + EMBEDDED, tmp_path, tmp_path / "run")
    assert state.tally.arms["parallel"].records == 40
    assert [row[0] for row in rows(folder, "record_id")] == [f"r{number}" for number in range(40)]


async def test_a_run_goes_on_with_the_voices_it_began_with(tmp_path: Path) -> None:
    text = dataset(tmp_path / "d.jsonl", 2) + EMBEDDED
    new, _ = await ended(text, tmp_path, tmp_path / "new")
    assert new.about.default_models == embedded_models()
    begun(text, tmp_path, tmp_path / "old")
    # As on a machine without the neural weights.
    about = json.loads((tmp_path / "old" / "run.json").read_text())
    about["default_models"] = EMBEDDED_MODELS[:2]
    (tmp_path / "old" / "run.json").write_text(json.dumps(about))
    old, _ = await ended(text, tmp_path, tmp_path / "old")
    spoke = {str(row[0]) for row in rows(old, "list_distinct([voice.model for voice in voices])")}
    assert not any(NEURAL_MODEL in models for models in spoke)
    assert {row[0] for row in rows(old, "seating")} == {"two of three embedded readers (default)"}


async def test_an_unfinished_run_is_taken_up_by_the_same_plan_and_a_finished_one_left_alone(
    tmp_path: Path, server: LoopbackServer
) -> None:
    data = dataset(tmp_path / "d.jsonl", 6)
    short = data + "[budget]\ntokens = 60_000\n[concurrency]\ncalls = 3\n" + HOSTED
    folder, state = await ended(short, tmp_path)
    assert state.stopped is not None
    assert "tokens are spent" in state.stopped
    assert folder.state == "unfinished"
    done = state.tally.done
    assert 0 < done < 12
    assert state.tally.spent_tokens <= 60_000

    again, state = await ended(data + "[budget]\ntokens = 9_000_000\n" + HOSTED, tmp_path)
    assert again.path == folder.path
    assert again.state == "finished"
    assert len(rows(again, "arm")) == 12
    # Every question was sent once: arms share a record's seed, so only their first round may coincide.
    assert len(server.requests) == sum(int(str(row[0])) for row in rows(again, "calls"))

    (tmp_path / "elsewhere").mkdir()
    dataset(tmp_path / "elsewhere" / "d.jsonl", 6)
    elsewhere = begun(data + HOSTED, tmp_path / "elsewhere")
    other = begun(data + HOSTED, tmp_path)
    assert other.path != elsewhere.path
    assert other.path != folder.path
    assert {run.path for run in list_runs()} == {folder.path, other.path, elsewhere.path}
    assert find_run("last").path == other.path
    with pytest.raises(ConfigError, match="3 runs begin with"):
        find_run("run-")


async def test_a_budget_smaller_than_one_record_sends_nothing(tmp_path: Path, server: LoopbackServer) -> None:
    text = dataset(tmp_path / "d.jsonl") + "[budget]\ntokens = 100\n" + HOSTED
    with pytest.raises(ConfigError, match=r"\[budget\] tokens: 100 is less than one record may take"):
        await ended(text, tmp_path)
    assert not server.requests


async def test_money_cannot_be_limited_where_a_price_is_unknown(
    tmp_path: Path, server: LoopbackServer
) -> None:
    odd = '[circle]\nenforce_quorum = false\nmodels = ["nobody/one", "nobody/two"]\n'
    text = dataset(tmp_path / "d.jsonl") + "[budget]\nusd = 1\n" + HOSTED.replace(HOSTED.split("[[")[0], odd)
    with pytest.raises(ConfigError, match="no price is known for nobody/one"):
        await ended(text, tmp_path)
    assert not server.requests


async def test_what_failed_is_kept_and_tried_again_only_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = True

    def script(request: ChatRequest) -> Answer:
        return failure(400, "closed for today") if down else opinion(request)

    text = dataset(tmp_path / "d.jsonl") + HOSTED
    async with LoopbackServer(script) as server:
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        folder, state = await ended(text, tmp_path, tmp_path / "run")
        assert state.tally.arms["circle"].failed == 3
        assert "closed for today" in str(rows(folder, "error")[1][0])
        asked = len(server.requests)
        await complete(RunFolder(folder.path), unseen)
        assert len(server.requests) == asked
        down = False
        state = await complete(RunFolder(folder.path), unseen, retry_failed=True)
    assert state.tally.arms["circle"].failed == 0
    assert {row[0] for row in rows(folder, "status")} == {"judged"}


async def test_bad_rows_are_counted_and_told_and_the_rest_is_judged(
    tmp_path: Path, server: LoopbackServer
) -> None:
    told = dataset(tmp_path / "d.jsonl")
    with (tmp_path / "d.jsonl").open("a") as file:
        file.write('{"id": "odd", "user": "hello", "label": "purple"}\nno json\n')
    folder, _ = await ended(told + HOSTED, tmp_path, tmp_path / "run")
    census = folder.about.census.datasets[0]
    assert census.records == 3
    assert census.bad_rows == 2
    assert census.first_bad_rows[0].startswith("row 4: label: 'purple'")
    assert len(rows(folder, "arm")) == 6


async def test_changed_data_is_not_mixed_into_a_run(tmp_path: Path, server: LoopbackServer) -> None:
    text = dataset(tmp_path / "d.jsonl") + HOSTED
    folder = begun(text, tmp_path, tmp_path / "run")
    dataset(tmp_path / "d.jsonl", 4)
    with pytest.raises(ConfigError, match="has changed since the run began"):
        await complete(folder, unseen)
    assert not server.requests


async def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = begun(dataset(tmp_path / "d.jsonl") + EMBEDDED, tmp_path, tmp_path / "run")
    with folder.locked(), pytest.raises(ConfigError, match="another process"):
        await complete(RunFolder(folder.path), unseen)


def test_a_folder_of_something_else_is_not_written_into(tmp_path: Path) -> None:
    text = dataset(tmp_path / "d.jsonl") + EMBEDDED
    with pytest.raises(ConfigError, match=r"--out: .* is neither empty nor a run"):
        begun(text, tmp_path, tmp_path)
    begun(text, tmp_path, tmp_path / "run")
    with pytest.raises(ConfigError, match="holds a run of another plan"):
        begun("seeds = [9]\n" + text, tmp_path, tmp_path / "run")


def test_a_sample_is_the_same_whatever_the_order_of_rows(tmp_path: Path) -> None:
    told = dataset(tmp_path / "d.jsonl", 50)
    plan = plan_of(told + "sample = 7\n" + EMBEDDED, "p")
    drawn = {one.record.id for one in chosen_records(plan, tmp_path)}
    lines = (tmp_path / "d.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "d.jsonl").write_text("".join(reversed(lines)))
    assert {one.record.id for one in chosen_records(plan, tmp_path)} == drawn
    assert len(drawn) == 7
    other = plan_of("seeds = [2]\n" + told + "sample = 7\n" + EMBEDDED, "p")
    assert {one.record.id for one in chosen_records(other, tmp_path)} != drawn
    first = plan_of(told + "limit = 2\n" + EMBEDDED, "p")
    assert [one.record.id for one in chosen_records(first, tmp_path)] == ["r49", "r48"]


def test_filters_that_leave_nothing_are_told(tmp_path: Path) -> None:
    told = dataset(tmp_path / "d.jsonl", 4, family="plain")
    plan = plan_of(told + 'families = ["plain"]\nlabels = ["attack"]\n' + EMBEDDED, "p")
    assert take_census(plan, tmp_path).datasets[0].attacks == 2
    with pytest.raises(ConfigError, match=r"\[datasets.d\] no record is left"):
        take_census(plan_of(told + 'families = ["odd"]\n' + EMBEDDED, "p"), tmp_path)


async def test_a_guided_arm_learns_from_other_folds_and_tells_it_to_the_voice(
    tmp_path: Path, server: LoopbackServer
) -> None:
    text = (
        '[[datasets]]\npath = "examples"\nsample = 30\nlabels = ["attack"]\n'
        '[[arms]]\nname = "circle"\nkind = "fire_circle"\n'
        f'[[arms]]\nname = "guided"\nkind = "guided"\nfolds = 3\nmodel = "{TRIO[0]}"\n'
    )
    folder, _ = await ended(text, tmp_path, tmp_path / "run")
    assert len(rows(folder, "arm")) == 60
    questions = [request.question for request in server.requests]
    assert len(questions) == 30
    assert any("patterns seen in other prompts" in question for question in questions)
    assert not list(folder.path.glob(".banks-*"))


async def test_calls_are_never_more_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0

    def script(request: ChatRequest) -> Answer:
        nonlocal most
        most = max(most, endpoint.in_flight)
        return opinion(request, latency=0.005)

    endpoint = LoopbackServer(script)
    async with endpoint:
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", endpoint.base_url)
        text = dataset(tmp_path / "d.jsonl", 12) + "[concurrency]\ncalls = 4\n" + HOSTED
        await ended(text, tmp_path, tmp_path / "run")
    assert most == 4

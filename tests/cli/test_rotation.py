"""`firecircle rotation` and `firecircle calibrate`, on an exported history and circles in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from inline_snapshot import snapshot

from firecircle import FireCircleConfig, MultiNeutrosophicPrompt, fire_circle_evaluate
from firecircle.catalog import declared_in_settings
from firecircle.cli import rotation
from firecircle.errors import ConfigError
from firecircle.examples import load_examples
from firecircle.names import EvaluationMode, embedded_models
from firecircle.request import JudgingRequest, configure_by_file
from firecircle.rotation.selector import WeightedVoiceSelector
from firecircle.rotation.tracker import (
    MemoryHistory,
    ParticipationHistory,
    VoiceHistoryTracker,
    export_history,
)
from firecircle.store.opening import open_store
from tests.cli.running import Ran, assert_one_line_of_trouble, flowing, steady
from tests.rotation.pools import SIX

DAY = 86_400.0
POOL = ",".join(SIX)
Cli = Callable[..., Ran]


def sat(history: ParticipationHistory, sittings: int, seed: str = "s") -> None:
    """Hold so many sittings of four, two days apart, long ago."""
    moment = 0.0
    tracker = VoiceHistoryTracker(history, clock=lambda: moment)
    selector = WeightedVoiceSelector(tracker)
    for number in range(sittings):
        drawn = selector.draw(SIX, 4, "legal", session_seed=f"{seed}{number}")
        moment += DAY
        for voice in drawn.selected:
            tracker.record_participation(voice, str(number), "legal", "voice", 0.5, voice == drawn.chair)
        moment += DAY


@pytest.fixture
def exported(tmp_path: Path) -> str:
    history = MemoryHistory()
    sat(history, 5)
    path = tmp_path.parent / f"{tmp_path.name}-history.json"
    export_history(history, path)
    return str(path)


def without_moments(out: str) -> str:
    """Output without ids of draws and days since, which differ from day to day or machine to machine."""
    return re.sub(r"\b[0-9a-f]{16}\b", "0123456789abcdef", re.sub(r"\d+ d ago", "9 d ago    ", steady(out)))


def test_fairness_at_a_glance(cli: Cli, exported: str) -> None:
    ran = cli("rotation", "show", "--history", exported, "--domain", "legal", "--models", POOL)
    assert ran.status == 0
    assert without_moments(ran.out) == snapshot("""\
 ROTATION   5 sittings, 6 voices

voice                heard       chair       last heard   weight
embedded:ngrams      ████████ 5  ░░░░░░░░ 0  9 d ago      █░░░░░░░ 0.183
embedded:authority   ████░░░░ 3  ████████ 1  9 d ago      ████████ 0.950
embedded:extraction  ████░░░░ 3  ████████ 1  9 d ago      ████████ 0.950
embedded:hidden      ████░░░░ 3  ████████ 1  9 d ago      ████████ 0.950
embedded:layers      ████░░░░ 3  ████████ 1  9 d ago      ████████ 0.950
embedded:time        ████░░░░ 3  ████████ 1  9 d ago      ████████ 0.950
weight: how much a voice is due in the domain legal

Evenness  heard 3 to 5 times; Jain 0.95 (1 is even), Gini 0.08 (0 is even)
          chair 0 to 1 times; Jain 0.83 (1 is even), Gini 0.17 (0 is even)
Never     in the chair: embedded:ngrams
Fit       for legal: embedded:authority 0.52, embedded:extraction 0.52,
            embedded:hidden 0.52, embedded:layers 0.52, embedded:time 0.52,
            embedded:ngrams 0.45
Draws     0123456789abcdef 1970-01-09 00:00 UTC legal: embedded:layers,
            embedded:authority, embedded:ngrams, embedded:extraction
          0123456789abcdef 1970-01-07 00:00 UTC legal: embedded:time,
            embedded:hidden, embedded:authority, embedded:ngrams
          0123456789abcdef 1970-01-05 00:00 UTC legal: embedded:layers,
            embedded:time, embedded:ngrams, embedded:extraction
          0123456789abcdef 1970-01-03 00:00 UTC legal: embedded:ngrams,
            embedded:layers, embedded:time, embedded:hidden
          0123456789abcdef 1970-01-01 00:00 UTC legal: embedded:ngrams,
            embedded:extraction, embedded:authority, embedded:hidden
""")


def test_standings_as_json(cli: Cli, exported: str) -> None:
    told = json.loads(cli("rotation", "show", "--history", exported, "--models", POOL, "--json").out)
    assert told["sittings"] == 5
    assert {voice["voice_id"] for voice in told["voices"]} == set(SIX)
    assert sum(voice["chair_count"] for voice in told["voices"]) == 5
    assert set(told["weights"]) == set(SIX)
    assert len(told["draws"]) == 5


def test_a_pool_with_a_voice_nobody_heard(cli: Cli, exported: str) -> None:
    ran = cli("rotation", "show", "--history", exported, "--models", "embedded:time,nobody/knows-it")
    assert "Never heard: nobody/knows-it" in flowing(ran.out)
    assert "embedded:layers" not in ran.out.split("Draws")[0]


def test_the_next_sittings_of_the_usual_pool(cli: Cli, exported: str) -> None:
    arguments = ("rotation", "simulate", "3", "--sittings", "3", "--seed", "x", "--history", exported)
    ran = cli(*arguments)
    assert ran.status == 0
    assert "3 sittings simulated, seed x" in ran.out
    told = json.loads(cli(*arguments, "--json").out)
    assert len(told["draws"]) == 3
    assert all(len(draw["selected"]) == 3 for draw in told["draws"])
    assert told["after"]["sittings"] == told["before"]["sittings"] + 3


def test_verifying_a_draw(cli: Cli, exported: str) -> None:
    drawn = json.loads(cli("rotation", "show", "--history", exported, "--json").out)["draws"][3]
    ran = cli("rotation", "show", drawn["draw_id"][:8], "--history", exported)
    assert ran.status == 0
    assert ran.out.startswith(f" VERIFIED   {drawn['draw_id']}")
    assert "Seed s3" in flowing(ran.out)
    assert json.loads(cli("rotation", "show", drawn["draw_id"], "--history", exported, "--json").out)["valid"]


def test_a_draw_that_was_tampered_with(cli: Cli, exported: str) -> None:
    document = json.loads(Path(exported).read_text("utf-8"))
    document["draws"][0]["chair"] = "embedded:\x1b[31mhidden"
    Path(exported).write_text(json.dumps(document), encoding="utf-8")
    ran = cli("rotation", "show", document["draws"][0]["draw_id"], "--history", exported)
    assert ran.status == 1
    assert ran.out.startswith(" NOT VERIFIED ")
    assert "recorded is embedded:hidden" in flowing(ran.out)
    assert "\x1b" not in ran.out


def test_exporting_and_importing_one_s_own(cli: Cli, tmp_path: Path) -> None:
    with rotation.open_history() as kept:
        sat(kept, 2)
    file = str(tmp_path / "all.json")
    assert cli("rotation", "export", file).out == "8 participations and 2 draws written\n"
    told = json.loads(cli("rotation", "import", file, "--json").out)
    assert (told["participations"], told["draws"], told["known"]) == (0, 0, 10)
    Path(file).write_text("{", encoding="utf-8")
    assert_one_line_of_trouble(cli("rotation", "import", file), "is not a history", "the file is unchanged")


def test_another_store(cli: Cli, exported: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.sqlite")
    assert cli("rotation", "import", exported, "--store", other).status == 0
    assert json.loads(cli("rotation", "show", "--store", other, "--json").out)["sittings"] == 5
    assert json.loads(cli("rotation", "show", "--json").out)["sittings"] == 0
    drawn = json.loads(cli("rotation", "show", "--store", other, "--json").out)["draws"][2]
    assert cli("rotation", "show", drawn["draw_id"], "--store", other).status == 0
    both = cli("rotation", "show", "--store", other, "--history", exported)
    assert_one_line_of_trouble(both, "--history: ", "leave one of them out")


async def test_pairs_of_kept_circles(cli: Cli, tmp_path: Path) -> None:
    assert cli("rotation", "show", "--pairs").out == "no circle with patterns is saved yet\n"
    with open_store() as store:
        for example in load_examples()[:4]:
            await fire_circle_evaluate(example.prompt, FireCircleConfig.embedded(), store=store)
    told = json.loads(cli("rotation", "show", "--pairs", "--json").out)
    assert told
    ran = cli("rotation", "show", "--pairs")
    assert f"{told[0]['first']} + {told[0]['second']}" in ran.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rotation", "show", "zzz"], ["DRAW_ID: no draw begins with 'zzz'"]),
        (["rotation", "show", ""], ["DRAW_ID: no draw begins with ''"]),
        (["rotation", "show", "--domain", "No Such"], ["is not a domain name"]),
        (["rotation", "simulate", "3", "--models", "embedded:time,embedded:layers,embedded:hidden"],
         ["lineages are embedded_rules, and 2 different ones are needed"]),
        (["rotation", "simulate", "9", "--models", POOL], ["9 of 6 available voices"]),
    ],
)  # fmt: skip
def test_bad_input(cli: Cli, exported: str, arguments: list[str], words: list[str]) -> None:
    assert_one_line_of_trouble(cli(*arguments, "--history", exported), *words)


def test_a_history_that_is_none(cli: Cli, tmp_path: Path) -> None:
    assert_one_line_of_trouble(
        cli("rotation", "show", "--history", str(tmp_path / "nothing.json")), "cannot read", "No such file"
    )


# -- judging by rotation ---------------------------------------------------------------------------


async def test_a_drawn_circle_is_held_and_remembered() -> None:
    prompt = load_examples()[0].prompt
    asked = rotation.draw_circle(
        JudgingRequest(settings={"decision_domain": "finance", "models": SIX}),
        prompt,
        "4",
        match_expertise=True,
    )
    drawn, judges = asked.draw, configure_by_file(asked)
    assert drawn is not None
    config = judges.config
    assert judges.seating.kind == "rotated"
    assert isinstance(config, FireCircleConfig)
    assert config.models == drawn.selected
    result = await fire_circle_evaluate(prompt, config)
    with rotation.open_history() as kept:
        VoiceHistoryTracker(kept).record_circle(result, "finance")
        rows = list(kept.participations(decision_domain="finance"))
        assert list(kept.draws()) == [drawn]
    assert {row.voice_id for row in rows} == set(drawn.selected)
    assert drawn.chair in {row.voice_id for row in rows if row.was_empty_chair}


def test_shadow_mode_and_rehearsals_change_nothing() -> None:
    prompt = MultiNeutrosophicPrompt(user="Hello")
    asked = rotation.draw_circle(JudgingRequest(), prompt, "auto", shadow=True)
    drawn = asked.draw
    assert drawn is not None
    assert configure_by_file(asked) == configure_by_file(JudgingRequest())
    assert {one.voice_id for one in drawn.candidates} >= set(embedded_models())
    assert len(drawn.selected) in (2, 3)
    rotation.draw_circle(JudgingRequest(), prompt, "2", keep=False)
    with rotation.open_history() as kept:
        assert [recorded.used for recorded in kept.draws()] == [False]


@pytest.mark.parametrize("rotate", ["1", "11", "many", "-3", "٣٣"])
def test_a_size_that_no_circle_has(rotate: str) -> None:
    with pytest.raises(ConfigError, match=r"--rotate: a circle has 2 to 10 voices"):
        rotation.draw_circle(JudgingRequest(), MultiNeutrosophicPrompt(user="Hello"), rotate)
    with pytest.raises(ConfigError, match="--rotate: only a circle rotates"):
        rotation.draw_circle(
            JudgingRequest(EvaluationMode.SINGLE), MultiNeutrosophicPrompt(user="Hello"), "3"
        )


# -- calibrate -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def circles(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The embedded circle on twenty pairs of examples, labelled."""
    import asyncio

    path = tmp_path_factory.mktemp("circles") / "labelled.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for example in load_examples()[:40]:
            result = asyncio.run(
                fire_circle_evaluate(example.prompt, FireCircleConfig(models=SIX, max_rounds=1))
            )
            kind = f"attack:{example.pattern_type}" if example.label == "attack" else "benign"
            file.write(json.dumps({"label": kind, "result": result.model_dump(mode="json")}) + "\n")
        file.write(json.dumps({"label": "to do", "result": result.model_dump(mode="json")}) + "\n\n")
    return str(path)


def test_proposals_are_shown_and_not_written(
    cli: Cli, circles: str, settings_file: Callable[[str], Path]
) -> None:
    path = settings_file("")
    ran = cli("calibrate", "--circles", circles)
    assert ran.status == 0
    assert ran.out.startswith("40 labelled circles, 6 voices\n")
    assert "nothing was written; --write declares this in firecircle.toml" in ran.out
    assert path.read_text("utf-8") == ""


def test_writing_when_told_to(cli: Cli, circles: str, settings_file: Callable[[str], Path]) -> None:
    path = settings_file("# mine\n[circle]\nmax_rounds = 2\n")
    ran = cli("calibrate", "--circles", circles, "--models", "embedded:time", "--write", "--json")
    assert ran.status == 0
    told = json.loads(ran.out)
    assert told["written_to"] == str(path)
    (proposal,) = told["proposals"]
    text = path.read_text("utf-8")
    assert text.startswith("# mine\n[circle]\nmax_rounds = 2\n")
    settings_file(text)
    declared = declared_in_settings("embedded:time")
    assert declared is not None
    assert declared.model_dump(mode="json") == proposal["proposed"]
    assert declared_in_settings("embedded:layers") is None


async def test_the_labelled_circles_of_the_store(cli: Cli) -> None:
    assert_one_line_of_trouble(cli("calibrate"), "no circle is labelled attack or benign")
    with open_store() as store:
        for label, example in zip(("attack", "benign", None, "odd"), load_examples(), strict=False):
            await fire_circle_evaluate(
                example.prompt, FireCircleConfig.embedded(max_rounds=2), store=store, label=label
            )
    told = json.loads(cli("calibrate", "--json").out)
    assert told["circles"] == 2
    assert {one["circles"] for one in told["proposals"]} == {2}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", ["no circle is labelled attack or benign"]),
        ("{}", ["line 1 of", '{"label": ..., "result": ...}']),
        ('{"label": "benign", "result": {}}', ["line 1: result."]),
        ("not json", ["line 1 of"]),
    ],
)
def test_files_that_hold_no_circles(cli: Cli, tmp_path: Path, line: str, words: list[str]) -> None:
    path = tmp_path / "circles.jsonl"
    path.write_text(line, encoding="utf-8")
    assert_one_line_of_trouble(cli("calibrate", "--circles", str(path)), *words)


def test_a_voice_that_no_circle_heard(cli: Cli, circles: str) -> None:
    ran = cli("calibrate", "--circles", circles, "--models", "embedded:neural")
    assert_one_line_of_trouble(ran, "--models: no labelled circle heard embedded:neural")


def test_what_was_written_counts_once(cli: Cli, circles: str, settings_file: Callable[[str], Path]) -> None:
    settings_file("")
    first = json.loads(cli("calibrate", "--circles", circles, "--write", "--json").out)
    assert (first["circles"], first["counted_before"]) == (40, 0)
    written = {one["model"] for one in first["proposals"] if one["changed"]}
    assert written
    second = cli("calibrate", "--circles", circles, "--json")
    told = json.loads(second.out)
    assert told["counted_before"] == 40
    assert not written & {one["model"] for one in told["proposals"]}
    assert "40 of them were counted by an earlier --write" in cli("calibrate", "--circles", circles).out
    again = json.loads(cli("calibrate", "--circles", circles, "--again", "--json").out)
    assert (again["counted_before"], len(again["proposals"])) == (0, 6)


def test_only_the_voices_that_were_written_have_counted(
    cli: Cli, circles: str, settings_file: Callable[[str], Path]
) -> None:
    settings_file("")
    cli("calibrate", "--circles", circles, "--models", "embedded:time", "--write")
    told = json.loads(cli("calibrate", "--circles", circles, "--json").out)
    assert [one["model"] for one in told["proposals"]].count("embedded:time") == 0
    assert {one["circles"] for one in told["proposals"]} == {40}
    assert len(told["proposals"]) == 5


def test_a_circle_told_twice_counts_once(cli: Cli, circles: str, tmp_path: Path) -> None:
    twice = tmp_path / "twice.jsonl"
    twice.write_text(Path(circles).read_text("utf-8") * 2, "utf-8")
    told = json.loads(cli("calibrate", "--circles", str(twice), "--json").out)
    assert (told["circles"], told["left_out"]["repeated"]) == (40, 40)


async def test_families_of_labels_count_as_what_they_are(cli: Cli) -> None:
    attack, benign = load_examples()[:2]
    with open_store() as store:
        for label, example in (("attack:some_family", attack), ("benign:general", benign)):
            await fire_circle_evaluate(example.prompt, FireCircleConfig.embedded(), store=store, label=label)
    told = json.loads(cli("calibrate", "--json").out)
    assert told["circles"] == 2
    assert all(one["benign"] == 1 for one in told["proposals"])
    assert any(one["roles"] for one in told["proposals"])


async def test_a_circle_that_cannot_be_read_is_left_out(cli: Cli) -> None:
    attack, benign = load_examples()[:2]
    with open_store() as store:
        for label, example in (("attack", attack), ("benign", benign)):
            await fire_circle_evaluate(example.prompt, FireCircleConfig.embedded(), store=store, label=label)
        with store.database.writing() as connection:
            connection.execute(sa.text("UPDATE documents SET body = x'00' WHERE circle_pk = 1"))
    assert json.loads(cli("calibrate", "--json").out)["left_out"]["unreadable"] == 1
    assert cli("rotation", "show", "--pairs").status == 0

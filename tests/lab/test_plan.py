from __future__ import annotations

from pathlib import Path

import pytest

from firecircle.errors import ConfigError
from firecircle.lab.arms.building import build_arms
from firecircle.lab.plan import plan_of, read_plan
from firecircle.lab.studies import STUDIES, starting_plan, study_plan, study_text
from tests.lab.hosting import TRIO

DATA = '[[datasets]]\npath = "examples"\n'
ARM = '[[arms]]\nname = "circle"\nkind = "fire_circle"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["a plan needs at least one [[datasets]]"]),
        (DATA, ["arms", "at least one [[arms]]"]),
        ("x = = 1", ["is not TOML"]),
        (DATA + ARM + "colour = 1\n[extra]\na = 1", ["no such key"]),
        (
            DATA + ARM.replace("fire_circle", "fire_circel"),
            ["[arms.circle] kind", "did you mean 'fire_circle'?"],
        ),
        (DATA.replace("path", "paht") + ARM, ["[datasets.1]", "path: is missing"]),
        (DATA + "limit = 3\nsample = 3\n" + ARM, ["limit and sample exclude each other"]),
        (DATA + 'labels = ["evil"]\n' + ARM, ["[datasets", "labels"]),
        (DATA + '[datasets.fields]\nuzer = "text"\n' + ARM, ["fields", "uzer"]),
        (DATA + ARM + ARM, ["arms: 'circle' is there twice"]),
        (DATA + DATA + ARM, ["datasets: 'examples' is there twice"]),
        ("seeds = []\n" + DATA + ARM, ["seeds: name at least one"]),
        ("repeats = 0\n" + DATA + ARM, ["repeats"]),
        ("alarm_threshold = 1.5\n" + DATA + ARM, ["alarm_threshold: must be between 0 and 1"]),
        (DATA + ARM + "alarm_threshold = 0.5\n", ["[arms.circle]", "at the top of the plan"]),
        (DATA + ARM + "seed = 5\n", ["[arms.circle]", "the plan's seeds"]),
        (DATA + ARM + "band = [0.2, 0.4]\n", ["band: only cascade", "this arm is fire_circle"]),
        (DATA + "[budget]\nusd = -1\n" + ARM, ["[budget] usd"]),
        (DATA + "[budget]\neuro = 1\n" + ARM, ["[budget] euro: no such key"]),
        (DATA + '[circle]\napi_key = "sk-123"\n' + ARM, ["api_key: a key does not belong into a plan"]),
    ],
)
def test_a_mistake_is_one_line_that_names_its_place(text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as wrong:
        plan_of(text, "plan.toml")
    told = str(wrong.value)
    assert told.startswith("plan.toml: ")
    assert "\n" not in told
    assert "sk-123" not in told
    for word in words:
        assert word in told


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("max_rounds = 9\n", "[arms.circle] max_rounds"),
        ("colour = 1\n", "[arms.circle] colour: no such field"),
        ('models = ["embedded:time"]\n', "[arms.circle]"),
        ('models = ["nobody/knows", "somebody/knows"]\n', "lacks valid quorum"),
    ],
)
def test_a_setting_that_no_circle_can_have_is_told_with_its_arm(settings: str, words: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        build_arms(plan_of(DATA + ARM + settings, "plan.toml"))
    assert words in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_a_panel_refuses_a_setting_that_does_not_exist() -> None:
    plan = plan_of(DATA + '[[arms]]\nname = "p"\nkind = "parallel"\ncolour = 1\n', "plan.toml")
    with pytest.raises(ConfigError, match="colour: no such field"):
        build_arms(plan)


def test_the_digest_tells_what_changes_figures_from_what_does_not() -> None:
    plain = plan_of(DATA + ARM, "p").digest
    assert plan_of(DATA + ARM + "[budget]\nusd = 3\n[concurrency]\ncalls = 2\n", "p").digest == plain
    assert plan_of("# a comment\n" + DATA + ARM, "p").digest == plain
    assert plan_of(DATA + ARM + "max_rounds = 2\n", "p").digest != plain
    assert plan_of("seeds = [2]\n" + DATA + ARM, "p").digest != plain
    assert plan_of(DATA + "limit = 5\n" + ARM, "p").digest != plain


def test_every_sitting_has_its_seed() -> None:
    plan = plan_of("seeds = [7, 8]\nrepeats = 2\n" + DATA + ARM, "p")
    assert plan.sittings == ((0, 7), (1, 7), (2, 8), (3, 8))


def test_the_plan_to_start_from_and_all_studies_can_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
    assert [arm.kind for arm in build_arms(plan_of(starting_plan(), "p"))] == [
        "fire_circle",
        "reflect",
        "parallel",
    ]
    for name in STUDIES:
        plan = study_plan(study_text(name, TRIO if name == "rivals" else ()), name)
        assert plan.name == name
        assert plan.about
        assert build_arms(plan)


def test_the_study_of_rivals_wants_voices_that_read() -> None:
    with pytest.raises(ConfigError, match=r"study: embedded voices do not read .*--models a,b,c"):
        study_text("rivals")


def test_a_study_takes_other_voices_and_data(tmp_path: Path) -> None:
    odd = tmp_path / 'odd "name".jsonl'
    text = study_text("chair", ["embedded:time", "embedded:layers", "embedded:ngrams"], str(odd), 5)
    plan = study_plan(text, "chair")
    assert plan.circle["models"] == ["embedded:time", "embedded:layers", "embedded:ngrams"]
    assert plan.datasets[0].path == str(odd)
    assert plan.datasets[0].sample == 5
    with pytest.raises(ConfigError, match="there is no 'chairs'"):
        study_text("chairs")


def test_a_plan_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lab init FILE"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_plan(tmp_path / "odd.toml")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ('kind = "fire_cirle"', "did you mean 'fire_circle'"),
        (
            'kind = "fire_circle"\n[[datasets]]\npath = "d"\n[datasets.fields]\nusr = "x"',
            "fields: usr: no such",
        ),
    ],
)
def test_one_mistake_is_told_as_one(wrong: str, words: str) -> None:
    before = "" if "[[datasets]]" in wrong else '[[datasets]]\npath = "examples"\n'
    with pytest.raises(ConfigError) as told:
        plan_of(f'{before}[[arms]]\nname = "circle"\n{wrong}\n', "plan.toml")
    assert words in str(told.value)
    assert "more)" not in str(told.value)

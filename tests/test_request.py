"""From what is asked for to a configuration that holds, and who sits when nobody is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from firecircle import (
    ConfigError,
    EvaluationConfig,
    EvaluationMode,
    FireCircleConfig,
    PromptGuard,
    ReciprocityMetrics,
)
from firecircle.names import DEFAULT_MODELS, embedded_models, strongest_reader
from firecircle.request import (
    JudgingRequest,
    configure,
    configure_by_file,
    default_models,
    offline_request,
)
from tests.scripted import PROMPT

Write = Callable[[str], Path]

EMBEDDED_SET = {2: "two of three embedded readers", 3: "three embedded readers"}[len(embedded_models())]


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)


def test_without_a_key_the_embedded_voices_sit_and_the_result_says_so() -> None:
    judges = configure(JudgingRequest())
    assert judges.config.models == embedded_models()
    assert str(judges.seating) == f"{EMBEDDED_SET} (default)"
    alone = configure(JudgingRequest(EvaluationMode.SINGLE))
    assert str(alone.seating) == f"{strongest_reader()} (default)"


def test_a_key_seats_the_hosted_models_unless_only_free_voices_may_sit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
    judges = configure(JudgingRequest())
    assert judges.config.models == DEFAULT_MODELS
    assert str(judges.seating) == "three hosted voices (default)"
    assert default_models(EvaluationMode.FIRE_CIRCLE, only_free=True) == embedded_models()


async def test_every_judgement_of_the_library_names_the_set_of_its_voices() -> None:
    guard = PromptGuard()
    by_default = await guard.evaluate_prompt(PROMPT, "fire_circle")
    assert str(by_default.seating) == f"{EMBEDDED_SET} (default)"
    assert by_default.fire_circle is not None
    assert by_default.fire_circle.circumstances.seating == by_default.seating
    reread = ReciprocityMetrics.model_validate_json(by_default.model_dump_json())
    assert reread == by_default
    chosen = await guard.evaluate_prompt(PROMPT, fire_circle_config=FireCircleConfig.embedded())
    assert str(chosen.seating) == f"{EMBEDDED_SET} (chosen)"
    alone = await PromptGuard(EvaluationConfig(models=("embedded:time",))).evaluate_prompt(PROMPT)
    assert str(alone.seating) == "embedded:time (chosen)"


def test_the_settings_file_chooses_and_the_request_overrules_it(settings_file: Write) -> None:
    settings_file(
        '[circle]\nmodels = ["embedded:time", "embedded:layers", "embedded:ngrams"]\nmax_rounds = 2\n'
    )
    judges = configure_by_file(JudgingRequest(settings={"max_rounds": 1, "seed": None}))
    assert isinstance(judges.config, FireCircleConfig)
    assert (len(judges.config.models), judges.config.max_rounds) == (3, 1)
    assert str(judges.seating) == "3 voices (chosen)"
    apart = configure_by_file(JudgingRequest(EvaluationMode.PARALLEL)).config
    assert len(apart.models) == 3, "the table is a circle's; a panel takes from it what it knows"
    assert configure(JudgingRequest()).config.models == embedded_models(), "code does not follow the file"


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (
            JudgingRequest(settings={"max_rounds": 9}, written={"max_rounds": "--rounds"}),
            "--rounds: Input should be less than or equal to 4 (got 9)",
        ),
        (
            JudgingRequest(EvaluationMode.PARALLEL, {"max_rounds": 2}, written={"max_rounds": "rounds"}),
            "rounds: only a circle has that; leave it out or use mode fire_circle",
        ),
        (
            JudgingRequest(
                EvaluationMode.PARALLEL,
                {"max_rounds": 2},
                written={"max_rounds": "--rounds", "mode": "--mode"},
            ),
            "--rounds: only a circle has that; leave it out or use --mode fire_circle",
        ),
        (
            JudgingRequest(EvaluationMode.SINGLE, {"models": ("a/b", "c/d")}),
            "models: the single mode asks one voice, got 2; name one or use mode parallel",
        ),
        (
            JudgingRequest(EvaluationMode.PARALLEL, table={"max_rounds": 9}),
            "FireCircleConfig.max_rounds: Input should be less than or equal to 4 (got 9)",
        ),
    ],
)
def test_a_mistake_is_told_in_the_words_of_whoever_asked(request_: JudgingRequest, line: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        configure(request_)
    assert str(wrong.value) == line


def test_a_mistake_in_the_file_is_told_with_the_file(settings_file: Write) -> None:
    path = settings_file("[circle]\nmax_rounds = 9\n")
    words = {"max_rounds": "--rounds"}
    for mode in (EvaluationMode.FIRE_CIRCLE, EvaluationMode.PARALLEL):
        with pytest.raises(ConfigError) as wrong:
            configure_by_file(JudgingRequest(mode, written=words))
        assert str(wrong.value).startswith(f"{path}: [circle] max_rounds: ")
    with pytest.raises(ConfigError) as wrong:
        configure_by_file(JudgingRequest(settings={"max_rounds": 7}, written=words))
    assert str(wrong.value).startswith("--rounds: ")


def test_settings_that_depend_on_who_sits_do_not_disturb_a_panel() -> None:
    table = {
        "models": ("a/b", "c/d", "e/f", "g/h", "i/j", "k/l", "m/n"),
        "empty_chair_rotation": False,
        "empty_chair_model": "a/b",
        "min_viable_models": 7,
    }
    assert len(configure(JudgingRequest(EvaluationMode.PARALLEL, table=table)).config.models) == 7


@pytest.mark.parametrize("mode", EvaluationMode)
def test_offline_seats_the_readers_whatever_key_is_set_and_whoever_the_settings_name(
    mode: EvaluationMode, settings_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
    settings_file('[circle]\nmodels = ["vendor/elsewhere", "vendor/else"]\nmax_rounds = 2\n')
    judges = configure_by_file(offline_request(JudgingRequest(mode)))
    alone = mode is EvaluationMode.SINGLE
    assert judges.config.first_asked == ((strongest_reader(),) if alone else embedded_models())
    assert judges.seating.kind == "offline"


def test_voices_named_along_with_offline_are_a_mistake() -> None:
    request = JudgingRequest(settings={"models": ("embedded:rules", "embedded:ngrams")})
    with pytest.raises(ConfigError, match=r"--offline: it seats the readers itself; leave --models"):
        offline_request(request)

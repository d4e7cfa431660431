from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from firecircle import FireCircleConfig, fire_circle_evaluate
from firecircle.errors import ConfigError
from firecircle.examples import find_example
from firecircle.lab.arms.arm import Arm, Case, Unwatched
from firecircle.lab.arms.building import build_arms
from firecircle.lab.datasets import Record
from firecircle.lab.plan import ARM_KINDS, plan_of
from firecircle.lab.records import Outcome
from firecircle.names import EvaluationMode, strongest_reader
from firecircle.request import JudgingRequest, configure, default_models
from tests.lab.hosting import TRIO, opinion
from tests.loopback import Answer, ChatRequest, LoopbackServer

EXAMPLE = find_example("temporal_inconsistency-02-benign")
RECORD = Record(EXAMPLE.id, EXAMPLE.prompt, "benign", EXAMPLE.pattern_type, "examples", 1)
HOSTED = f"[circle]\nmodels = {list(TRIO)}\nearly_stop_convergence = 0.0\n"
DATA = '[[datasets]]\npath = "examples"\n'


def arms_of(*kinds: str, circle: str = "") -> dict[str, Arm]:
    told = "".join(f'[[arms]]\nname = "{kind}"\nkind = "{kind}"\n' for kind in kinds)
    return {arm.name: arm for arm in build_arms(plan_of(DATA + circle + told, "p"))}


async def judged(arms: dict[str, Arm]) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for name, arm in arms.items():
        outcomes[name] = await arm.judge(Case(RECORD, "examples", 0, 1, dict(outcomes)), Unwatched())
    return outcomes


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(opinion) as server:
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        yield server


def asked(server: LoopbackServer, since: int) -> list[str]:
    return [request.question for request in server.requests[since:]]


async def test_every_arm_judges_with_embedded_voices() -> None:
    takes_more = ("guided", "cascade", "consistency", "court", "council", "attacked")
    kinds = [kind for kind in ARM_KINDS if kind not in takes_more]
    outcomes = await judged(arms_of("fire_circle", *(kind for kind in kinds if kind != "fire_circle")))
    voices = len(default_models(EvaluationMode.FIRE_CIRCLE, only_free=True))
    assert len(outcomes) == len(kinds) - 1 + voices  # one arm for each voice that is left out
    for outcome in outcomes.values():
        assert outcome.status == "judged"
        assert outcome.f is not None
        assert outcome.cost_usd == 0.0
        assert outcome.voices
    circle = outcomes["fire_circle"]
    assert circle.round1_f is not None
    assert circle.chair_influence is not None
    assert outcomes["no_chair"].chair_influence is None
    assert not any(said.is_chair for said in outcomes["no_chair"].voices)
    assert len({said.model for said in outcomes["clones"].voices}) == voices
    assert {said.model.partition("#")[0] for said in outcomes["clones"].voices} == {strongest_reader()}
    everybody = {said.model for said in circle.voices}
    heard = {
        name.removeprefix("leave_one_out "): {said.model for said in outcome.voices}
        for name, outcome in outcomes.items()
        if name.startswith("leave_one_out ")
    }
    assert heard == {absent: everybody - {absent} for absent in everybody}


@pytest.mark.parametrize("key", ["", "sk-test"])
async def test_the_lab_seats_whom_evaluate_seats_and_never_spends_unasked(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    usual = configure(JudgingRequest())
    alone = configure(JudgingRequest(EvaluationMode.SINGLE))
    apart = configure(JudgingRequest(EvaluationMode.PARALLEL))
    monkeypatch.setenv("OPENROUTER_API_KEY", key)
    outcomes = await judged(arms_of("fire_circle", "single", "parallel", "clones", "reflect"))
    assert isinstance(usual.config, FireCircleConfig)
    seeded = usual.config.model_copy(update={"seed": Case(RECORD, "examples", 0, 1).seed})
    result = await fire_circle_evaluate(RECORD.prompt, seeded)
    assert result.consensus is not None
    assert outcomes["fire_circle"].f == result.consensus.falsehood
    assert outcomes["fire_circle"].seating == str(usual.seating)
    assert outcomes["reflect"].seating == str(usual.seating)
    assert outcomes["single"].seating == str(alone.seating)
    assert outcomes["parallel"].seating == str(apart.seating)
    assert outcomes["clones"].seating == f"{len(usual.config.models)} voices (chosen)"


async def test_rereading_takes_as_many_rounds_and_tokens_as_the_circle_and_shows_no_peer(
    server: LoopbackServer,
) -> None:
    arms = arms_of("fire_circle", "reflect", circle=HOSTED)
    circle = await arms["fire_circle"].judge(Case(RECORD, "examples", 0, 1), Unwatched())
    since = len(server.requests)
    case = Case(RECORD, "examples", 0, 1, {"fire_circle": circle})
    reflect = await arms["reflect"].judge(case, Unwatched())
    assert circle.rounds == reflect.rounds == 3
    assert reflect.calls == circle.calls == 9
    tokens = [one.tokens_in + one.tokens_out for one in (circle, reflect)]
    assert abs(tokens[1] / tokens[0] - 1) < 0.1
    assert reflect.flips_toward is None
    assert [said.falsehood for said in reflect.voices[:3]] == [said.falsehood for said in circle.voices[:3]]
    later = asked(server, since)[3:]
    assert later
    for question in later:
        assert "your own answer of round 1" in question
        assert "Evaluator" not in question
        assert "other evaluators" not in question
        assert question.count("BEGIN your own answer") in (1, 2)


async def test_named_peers_are_named_and_others_are_not(server: LoopbackServer) -> None:
    arms = arms_of("fire_circle", "named_peers", circle=HOSTED)
    case = Case(RECORD, "examples", 0, 1)
    await arms["fire_circle"].judge(case, Unwatched())
    since = len(server.requests)
    assert not any(TRIO[0] in question for question in asked(server, 0))
    await arms["named_peers"].judge(case, Unwatched())
    assert any(TRIO[0] in question for question in asked(server, since))


async def test_without_turns_the_voices_are_not_told_of_any(server: LoopbackServer) -> None:
    arms = arms_of("fire_circle", "no_turns", circle=HOSTED)
    case = Case(RECORD, "examples", 0, 1)
    await arms["fire_circle"].judge(case, Unwatched())
    since = len(server.requests)
    assert all("layer turns" in question for question in asked(server, 0))
    await arms["no_turns"].judge(case, Unwatched())
    assert not any("layer turns" in question for question in asked(server, since))
    assert "turn unknown" in asked(server, since)[-1]


async def test_a_plan_asks_what_the_same_settings_ask_in_code(server: LoopbackServer, tmp_path: Path) -> None:
    chair = tmp_path / "chair.txt"
    chair.write_text("Speak for those who are not here.\n\n${role}\n\n${dialogue}\n\n${answer}\n")
    told = f'decision_domain = "finance"\nfocus = "user"\nempty_chair_prompt_path = "{chair}"\n'
    case = Case(RECORD, "examples", 0, 1)
    await arms_of("fire_circle", circle=HOSTED + told)["fire_circle"].judge(case, Unwatched())
    by_plan = asked(server, 0)
    config = FireCircleConfig(
        models=TRIO,
        early_stop_convergence=0.0,
        decision_domain="finance",
        focus="user",
        empty_chair_prompt_path=str(chair),
        seed=case.seed,
    )
    await fire_circle_evaluate(RECORD.prompt, config)
    assert sorted(asked(server, len(by_plan))) == sorted(by_plan)
    assert any("Account holders" in question for question in by_plan), (
        "the chair speaks for the absent of the domain"
    )


def test_an_empty_prompt_for_the_chair_is_refused_with_its_arm(tmp_path: Path) -> None:
    chair = tmp_path / "chair.txt"
    chair.write_text(" \n")
    with pytest.raises(ConfigError) as wrong:
        arms_of("fire_circle", circle=f'[circle]\nempty_chair_prompt_path = "{chair}"\n')
    assert str(wrong.value).startswith("[arms.fire_circle] empty_chair_prompt_path: ")
    assert str(wrong.value).endswith("is empty")


async def test_rereading_judges_the_layer_in_focus(server: LoopbackServer) -> None:
    arms = arms_of("fire_circle", "reflect", circle=HOSTED + 'focus = "system"\n')
    outcomes = {"fire_circle": await arms["fire_circle"].judge(Case(RECORD, "examples", 0, 1), Unwatched())}
    first = sorted(asked(server, 0)[:3])
    since = len(server.requests)
    await arms["reflect"].judge(Case(RECORD, "examples", 0, 1, outcomes), Unwatched())
    reread = asked(server, since)
    assert "Does the system layer of this conversation violate" in first[0]
    assert sorted(question for question in reread if "your own answer" not in question) == first


async def test_an_embedded_voice_that_rereads_looks_at_the_layer_in_focus_only() -> None:
    attack = find_example("temporal_inconsistency-01-attack")
    record = Record(attack.id, attack.prompt, "attack", attack.pattern_type, "examples", 1)
    arms = arms_of("fire_circle", "reflect", circle='[circle]\nfocus = "system"\n')
    circle = await arms["fire_circle"].judge(Case(record, "examples", 0, 1), Unwatched())
    reread = await arms["reflect"].judge(Case(record, "examples", 0, 1, {"fire_circle": circle}), Unwatched())
    assert circle.round1_f == reread.round1_f


async def test_a_cascade_asks_the_second_circle_only_where_the_first_is_unsure(
    server: LoopbackServer,
) -> None:
    def cascade(band: str) -> Arm:
        text = DATA + HOSTED + f'[[arms]]\nname = "c"\nkind = "cascade"\nband = {band}\n'
        return build_arms(plan_of(text, "p"))[0]

    case = Case(RECORD, "examples", 0, 1)
    sure = await cascade("[0.98, 1.0]").judge(case, Unwatched())
    assert sure.escalated is False
    assert not server.requests
    unsure = await cascade("[0.0, 1.0]").judge(case, Unwatched())
    assert unsure.escalated is True
    assert len(server.requests) == 9
    assert unsure.calls == sure.calls + 9
    assert unsure.cost_usd is not None
    assert unsure.cost_usd > 0


async def test_a_circle_that_breaks_is_an_outcome_with_what_it_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: ChatRequest) -> Answer:
        return opinion(request) if request.model == TRIO[0] else Answer(b"{}", 400)

    async with LoopbackServer(broken) as server:
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
        monkeypatch.setenv("FIRECIRCLE_OPENROUTER_BASE_URL", server.base_url)
        outcomes = await judged(arms_of("fire_circle", "reflect", "single", circle=HOSTED))
    circle = outcomes["fire_circle"]
    assert circle.status == "failed"
    assert circle.f is None
    assert circle.error
    assert circle.voices_lost == 2
    assert circle.tokens_in > 0
    assert outcomes["reflect"].status == "judged"
    assert outcomes["single"].status == "judged"


def test_seeds_are_shared_by_arms_and_differ_by_record_and_repeat() -> None:
    other = Record("other", EXAMPLE.prompt, None, None, "examples", 2)
    seeds = {
        Case(RECORD, "examples", 0, 1).seed,
        Case(RECORD, "examples", 1, 1).seed,
        Case(RECORD, "examples", 0, 2).seed,
        Case(RECORD, "elsewhere", 0, 1).seed,
        Case(other, "examples", 0, 1).seed,
    }
    assert len(seeds) == 5
    assert Case(RECORD, "examples", 0, 1, {"a": Outcome(status="failed")}).seed in seeds


@pytest.mark.parametrize("kind", ["reflect", "guided"])
def test_an_arm_that_refers_to_a_circle_needs_one_before_it(kind: str) -> None:
    with pytest.raises(ConfigError, match="needs a fire_circle arm before it"):
        arms_of(kind, "fire_circle")


def test_a_cascade_of_the_same_circle_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="both circles of a cascade would be the same"):
        arms_of("cascade")

"""How many independent voices a circle is: measured on labelled circles, shown beside the quorum."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firecircle import ConfigError, FireCircleConfig, FireCircleResult, ModelCharacteristics, replay_circle
from firecircle.circle.quorum import MeasuredErrors, effective_voices, measured_errors
from firecircle.judge import Job, judge
from firecircle.names import Label
from firecircle.prompt import as_prompt
from firecircle.store.opening import Store, open_store
from firecircle.telling.quorum import quorum_line
from tests.scripted import Script

VOICES = ("a", "b", "c")


def simulated(n: int, shared: float, seed: int = 3) -> MeasuredErrors:
    """Voices wrong in 3 of 10 prompts; with the chance `shared` a voice errs as a common coin says."""
    rng = random.Random(seed)
    said, labels = [], []
    for _ in range(n):
        label: Label = "attack" if rng.random() < 0.5 else "benign"
        common = rng.random() < 0.3
        wrong = {name: common if rng.random() < shared else rng.random() < 0.3 for name in VOICES}
        said.append(
            {name: 0.9 if (label == "attack") != is_wrong else 0.1 for name, is_wrong in wrong.items()}
        )
        labels.append(label)
    return measured_errors(said, labels, [0.7] * n)


@pytest.mark.parametrize("shared", [0.0, 0.4, 0.7, 0.95])
def test_a_known_correlation_is_found(shared: float) -> None:
    # Two voices follow the common coin together with the chance shared², which is their correlation.
    found = [simulated(1_000, shared, seed).independence(VOICES) for seed in range(20)]
    values = [each.effective for each in found if each]
    assert np.mean(values) == pytest.approx(effective_voices(3, shared**2), abs=0.1)


def test_too_few_prompts_or_an_unknown_voice_show_nothing() -> None:
    assert simulated(29, 0.5).independence(VOICES) is None
    assert simulated(60, 0.5).independence(("a", "b", "stranger")) is None
    assert measured_errors([], [], []).independence(VOICES) is None


def config(**changes: Any) -> FireCircleConfig:
    return FireCircleConfig(models=VOICES, enforce_quorum=False, max_rounds=1, **changes)


async def held(
    store: Store, text: str, label: str | None, settings: FireCircleConfig, **said: float
) -> FireCircleResult:
    script = Script({name: [f] for name, f in said.items()})
    kept = await judge(Job(prompt=as_prompt(text), config=settings, caller=script, store=store, label=label))
    assert isinstance(kept.judged, FireCircleResult)
    return kept.judged


async def label_some(store: Store, count: int = 40) -> None:
    """Labelled circles in which `a` and `b` err together and `c` errs elsewhere."""
    for number in range(count):
        attack = number % 2 == 0
        right, wrong = (0.9, 0.1) if attack else (0.1, 0.9)
        together = wrong if number % 5 == 0 else right
        alone = wrong if number % 7 == 3 else right
        await held(
            store,
            f"prompt {number}",
            "attack" if attack else "benign",
            config(),
            a=together,
            b=together,
            c=alone,
        )


async def test_a_verdict_says_how_many_independent_voices_judged(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.sqlite") as store:
        before = await held(store, "the first", None, config(), a=0.1, b=0.1, c=0.1)
        assert before.quorum.independence is None
        await label_some(store)
    with open_store(tmp_path / "store.sqlite") as store:
        told = await held(store, "another", None, config(), a=0.1, b=0.1, c=0.1)
        found = told.quorum.independence
        assert found is not None
        assert found.n == 40
        assert 1 < found.effective < 3
        assert "3 voices ≈" in quorum_line(told)
        assert "(n = 40)" in quorum_line(told)
        assert (await replay_circle(told)).quorum == told.quorum

        pair = store.independence.measured().independence(("a", "b"))
        assert pair is not None
        assert pair.effective == pytest.approx(1)


async def test_a_prompt_judged_twice_counts_once(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.sqlite") as store:
        for _ in range(2):
            await label_some(store, 32)
    with open_store(tmp_path / "store.sqlite") as store:
        assert store.independence.measured().n == 32


async def test_a_floor_refuses_or_advises(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.sqlite") as store:
        asked = config(min_independent_voices=2.9)
        unknown = await held(store, "the first", None, asked, a=0.1, b=0.1, c=0.1)
        assert any("do not show how independent" in advice for advice in unknown.quorum.advisories)
        await label_some(store)
    with open_store(tmp_path / "store.sqlite") as store:
        below = await held(store, "another", None, asked, a=0.1, b=0.1, c=0.1)
        assert any("below the floor of 2.9" in advice for advice in below.quorum.advisories)
        declared = {
            name: ModelCharacteristics(name, {"temporal_reasoning": 1.0, "cross_layer_analysis": 1.0}, name)
            for name in VOICES
        }
        strict = FireCircleConfig(
            models=VOICES, min_independent_voices=2.9, model_characteristics=declared, max_rounds=1
        )
        with pytest.raises(ConfigError, match=r"fewer than 2\.9"):
            await held(store, "one more", None, strict, a=0.1, b=0.1, c=0.1)

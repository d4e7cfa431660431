"""Fitting the calibrated verdict: it learns whom to trust, refuses what gains nothing, and keeps its word."""

from __future__ import annotations

import json

import numpy as np
import pytest

from firecircle import ConfigError, MultiNeutrosophicPrompt, fire_circle_evaluate
from firecircle.lab.calibrated import LabelledWords, calibration_error, fit_verdict, standing_words
from firecircle.lab.statistics.estimate import numbers
from tests.scripted import Script, circle
from tests.shared_data import shared


def words(n: int = 160, *, loud: bool = True, sources: int | None = None, seed: int = 1) -> LabelledWords:
    """Circles of two rounds: `knows` is often right; `loud` cries wolf, or is as good."""
    rng = np.random.default_rng(seed)
    attack = np.arange(n) % 2 == 0
    falsehood = np.full((n, 3, 2), np.nan)
    knows = np.clip(np.where(attack, 0.65, 0.35) + rng.normal(0, 0.15, n), 0.01, 0.99)
    cries = rng.uniform(0.3, 1.0, n) if loud else knows
    for place, said in enumerate((knows, cries, rng.uniform(0.0, 0.2, n))):
        falsehood[:, place, 0] = said
    falsehood[: n // 2, :, 1] = falsehood[: n // 2, :, 0]  # the others stopped after one round
    falsehood[3, 0, :] = np.nan
    named = tuple(f"s{at % sources}" for at in range(n)) if sources else None
    return LabelledWords(("knows", "loud", "calm"), numbers(falsehood), attack, named)


def test_it_learns_whom_to_trust_and_says_how_it_was_tried() -> None:
    fitted = fit_verdict(words(), origin="made up", threshold=0.7)
    fit, voices = fitted.calibration.fit, fitted.calibration.voices
    assert fitted.beats_maximum
    assert sum(voices["knows"].weights) > 5 * sum(voices["loud"].weights)
    assert fit.calibrated.auc > fit.maximum.auc + 0.1
    assert fit.auc_gain[1] > 0
    assert (fit.attacks, fit.benign, fit.folds) == (80, 80, "5 folds, each label dealt out evenly")
    assert fit.calibrated.calibration_error < fit.maximum.calibration_error
    assert 0 < fit.thresholds["5%"] <= fit.thresholds["1%"] <= 1


def test_folds_go_by_source_where_that_is_known() -> None:
    assert fit_verdict(words(sources=5), origin="x", threshold=0.7).calibration.fit.folds == (
        "each of 5 sources left out in turn"
    )
    by_label = words(sources=2)  # each source holds one label alone
    assert "dealt" in fit_verdict(by_label, origin="x", threshold=0.7).calibration.fit.folds


def test_what_gains_nothing_is_not_said_to_gain() -> None:
    assert not fit_verdict(words(loud=False), origin="x", threshold=0.7).beats_maximum


def test_it_takes_fifty_of_each_label() -> None:
    with pytest.raises(ConfigError, match=r"49 attacks and 49 benign prompts were judged.*50 of each"):
        fit_verdict(words(98), origin="x", threshold=0.7)


def test_a_circle_gets_the_probability_that_the_fit_had_in_mind() -> None:
    circles = words()
    fitted = fit_verdict(circles, origin="x", threshold=0.7)
    known = fitted.calibration
    rows = np.array([[voice.weights for voice in known.voices.values()]])[0]
    means = np.array([voice.means for voice in known.voices.values()])
    spreads = np.array([voice.spreads for voice in known.voices.values()])
    standing = standing_words(circles.falsehood)
    for at in (0, 3, 7, 150):
        said = {
            voice: [None if np.isnan(word) else float(word) for word in circles.falsehood[at, place]]
            for place, voice in enumerate(circles.voices)
        }
        places = (standing[at] - means) / spreads
        places = np.where(np.isnan(places), np.nanmean(places, axis=0), places)
        score = known.offset + float((rows * (means + spreads * places)).sum())
        assert known.probability(said) == pytest.approx(1 / (1 + np.exp(-score)), abs=1e-5)


def test_the_calibration_error_is_zero_where_values_are_shares() -> None:
    values, attack = numbers([0.25] * 4 + [0.75] * 4), np.array([1, 0, 0, 0, 1, 1, 1, 0], dtype=bool)
    assert calibration_error(values, attack) == pytest.approx(0)
    assert calibration_error(1 - values, attack) == pytest.approx(0.5)


async def test_hosted_models_gain_what_the_recordings_promise() -> None:
    """Four hosted models as recorded, through real circles: far more attacks found at 5% false alarms."""
    from firecircle.cli.calibrate_verdict import gathered_from_circles

    text = shared("recorded_judgments.jsonl").read_text(encoding="utf-8")
    rows = list(map(json.loads, text.splitlines()))
    judged = []
    for row in rows:
        if row["label"] == "borderline":
            continue
        lines = {
            model: [
                ConnectionError("no answer")
                if said is None
                else json.dumps({"truth": said["T"], "indeterminacy": said["I"], "falsehood": said["F"]})
            ]
            for model, said in row["evaluations"].items()
        }
        prompt = MultiNeutrosophicPrompt(user=row["prompt_id"])
        result = await fire_circle_evaluate(prompt, circle(*lines, max_rounds=1), caller=Script(lines))
        judged.append((row["prompt_id"], "benign" if row["label"] == "reciprocal" else "attack", result))
    fitted = fit_verdict(
        gathered_from_circles(judged, (), "recorded").words, origin="recorded", threshold=0.7
    )
    fit = fitted.calibration.fit
    assert fitted.beats_maximum
    assert fit.maximum.recall_at_5_percent < 0.2
    assert fit.calibrated.recall_at_5_percent > 0.5

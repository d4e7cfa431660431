"""How many independent voices several judges amount to: votes from any table, and the report on them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from firecircle.circle.quorum import FEWEST_ITEMS, effective_voices
from firecircle.errors import ConfigError
from firecircle.files import read_regular
from firecircle.lab.calibrated import logistic
from firecircle.lab.datasets.reading import raw_rows
from firecircle.lab.datasets.record import BadRow, FieldMap
from firecircle.lab.statistics.comparison import fold_of_each
from firecircle.lab.statistics.estimate import (
    MOST_RESAMPLES,
    SEED,
    BoolArray,
    Estimate,
    FloatArray,
    by_label,
    nothing,
    numbers,
    scored,
    wilson,
)
from firecircle.lab.statistics.performance import auc
from firecircle.lab.statistics.voices import ErrorCorrelation, error_correlation, krippendorff_alpha
from firecircle.names import Label
from firecircle.shapes import Shape, Text
from firecircle.store.transfer import KIND
from firecircle.thresholds import TOLERANCE

GOLD = ("label", "gold", "target", "truth", "is_attack", "answer")
ITEM = ("item", "id", "prompt_id", "record_id", "item_id", "sample_id")
JUDGE = ("judge", "voice", "model", "rater", "annotator", "scorer", "provider")
SCORE = ("score", "vote", "falsehood", "F", "f", "value", "verdict", "rating")
NESTED = ("evaluations", "votes", "scores", "judges", "voices")
LABELS = FieldMap()
"""The label values of datasets."""
GRADES = {"C": True, "I": False}
"""How Inspect writes correct and incorrect."""
LARGEST_DOCUMENT = 200_000_000
SAID = {"alarm": 1.0, "unsure": 0.5, "no_alarm": 0.0}
"""Verdict words as scores."""


def read_votes(
    path: Path,
    *,
    judges: Sequence[str] = (),
    gold: str | None = None,
    threshold: float = 0.5,
) -> Votes:
    """The votes in a file: a column a judge, a row a vote, or an object of judges in each row.

    `judges` names the columns of judges and `gold` that of the labels where the usual names do not fit.
    """
    rows = list(_cells(path))
    said: dict[object, dict[str, float]] = {}
    labels: dict[object, Label | None] = {}
    layout = _wide(rows, judges, gold) if judges else None
    for number, row in enumerate(rows):
        item, votes = _votes_in(row, number, layout or ())
        if not votes and layout is None and _first(row, NESTED) is None and "document" not in row:
            layout = _wide(rows, (), gold)
            item, votes = _votes_in(row, number, layout)
        said.setdefault(item, {}).update(votes)
        column = gold or _name(row, GOLD)
        labels[item] = labels.get(item) or _label(path, column, row)
    table = votes_of(list(said.values()), list(labels.values()), [threshold] * len(said), judges or None)
    if len(table.judges) < 2:
        found = ", ".join(table.judges) or "no judge"
        raise ConfigError(str(path), f"found {found}; it takes two", "name the columns with --judges A,B")
    return table


def _cells(path: Path) -> Iterator[Mapping[str, object]]:
    if path.suffix.lower() == ".json":
        yield from _of_a_tool(path)
        return
    for row in raw_rows(path, FieldMap(), whole=True):
        if isinstance(row, BadRow):
            raise ConfigError(str(path), f"line {row.line}: {row.reason}", "fix that line")
        if row.cells.get("kind") != KIND:  # the first line of our own export says what the file is
            yield row.cells


def _of_a_tool(path: Path) -> Iterator[Mapping[str, object]]:
    """The votes in an Inspect log, one sample a row, or in a promptfoo result, one answer a row."""
    try:
        document = json.loads(read_regular(path, LARGEST_DOCUMENT))
    except OSError as unreadable:
        raise ConfigError(str(path), f"cannot read it: {unreadable.strerror}", "name another file") from None
    except (ValueError, RecursionError) as broken:
        raise ConfigError(
            str(path), f"it is not JSON ({broken})", "give JSON Lines, CSV or Parquet"
        ) from None
    results = document.get("results") if isinstance(document, dict) else None
    answers = results.get("results") if isinstance(results, dict) else None
    samples = document.get("samples") if isinstance(document, dict) else None
    if isinstance(samples, list):
        yield from (_of_sample(sample) for sample in samples if isinstance(sample, dict))
    elif isinstance(answers, list):
        yield from (_of_answer(answer) for answer in answers if isinstance(answer, dict))
    else:
        raise ConfigError(
            str(path),
            "it is neither an Inspect log nor a promptfoo result",
            "write its rows as JSON Lines: jq -c '.[]' turns a list into them",
        )


def _of_sample(sample: Mapping[str, Any]) -> Mapping[str, object]:
    """A sample of Inspect: every scorer is a judge. `C` and `I` say whether it gave the target."""
    gold = LABELS.label_of(sample["target"]) if LABELS.knows_label(str(sample.get("target"))) else None
    scores = sample.get("scores") or {}
    return {
        "item": f"{sample.get('id')}/{sample.get('epoch', 1)}",
        "label": gold,
        "votes": {judge: _against(gold, score) for judge, score in scores.items()},
    }


def _against(gold: Label | None, score: object) -> object:
    """The vote behind a grade if the target is known: correct is the target, incorrect the other label."""
    value = score.get("value") if isinstance(score, Mapping) else score
    if not isinstance(value, str) or value not in GRADES or gold is None:
        return value
    return float((gold == "attack") == GRADES[value])


def _of_answer(answer: Mapping[str, Any]) -> Mapping[str, object]:
    """An answer of promptfoo: every provider is a judge, its score the vote."""
    provider = answer.get("provider")
    judge = provider.get("label") or provider.get("id") if isinstance(provider, dict) else provider
    given = answer.get("vars") or {}
    return {
        "item": str(answer.get("testIdx", answer.get("id"))),
        "label": next((given[name] for name in GOLD if given.get(name)), None),
        "judge": str(judge),
        "score": answer.get("score", float(bool(answer.get("success")))),
    }


def _votes_in(
    row: Mapping[str, object], number: int, columns: Sequence[str]
) -> tuple[object, dict[str, float]]:
    name = _name(row, ITEM)
    item = (number,) if name is None else str(row[name])  # a tuple is no item's name
    if columns:
        return item, _numbers({name: row.get(name) for name in columns})
    if isinstance(document := row.get("document"), Mapping):
        return item, _of_circle(document)
    nested = _first(row, NESTED)
    if isinstance(nested, Mapping):
        return item, _numbers(nested)
    if isinstance(nested, list | tuple):  # `records.parquet` of a run: one entry a voice and round
        return item, _of_rounds(nested)
    judge, score = _name(row, JUDGE), _name(row, SCORE)
    if judge and score:
        return item, _numbers({str(row[judge]): row[score]})
    return item, {}


def _of_circle(document: Mapping[str, object]) -> dict[str, float]:
    """Round 1 of a circle, or the answers of a panel."""
    history = document.get("dialogue_history")
    first = history[0] if isinstance(history, list) and history else document
    answers = first.get("evaluations") if isinstance(first, Mapping) else None
    return _of_rounds(answers if isinstance(answers, list) else ())


def _of_rounds(answers: Sequence[object]) -> dict[str, float]:
    said = [each for each in answers if isinstance(each, Mapping)]
    first = [each for each in said if each.get("round_number", 1) == 1]
    return _numbers({str(_first(each, JUDGE)): each for each in first})


def _wide(rows: Sequence[Mapping[str, object]], judges: Sequence[str], gold: str | None) -> tuple[str, ...]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if missing := [name for name in judges if name not in names]:
        raise ConfigError("--judges", f"there is no column {missing[0]!r}", f"there are {', '.join(names)}")
    if judges:
        return tuple(judges)
    reserved = {gold, *GOLD, *ITEM}
    return tuple(
        name
        for name in names
        if name not in reserved
        and all(_number(row.get(name)) is not None for row in rows if row.get(name) not in (None, ""))
        and any(row.get(name) not in (None, "") for row in rows)
    )


def _numbers(said: Mapping[str, object]) -> dict[str, float]:
    return {name: number for name, value in said.items() if (number := _number(value)) is not None}


def _number(value: object) -> float | None:
    """A score from 0 to 1: a number, an object with one, a verdict or a label; None for anything else."""
    if isinstance(value, Mapping):
        value = _first(value, SCORE)
    if isinstance(value, str):
        if value in SAID:
            return SAID[value]
        if value and LABELS.knows_label(value):
            label = LABELS.label_of(value)
            return 0.5 if label is None else float(label == "attack")
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1:
        return float(value)
    return None


def _label(path: Path, column: str | None, row: Mapping[str, object]) -> Label | None:
    value = row.get(column) if column else None
    try:
        return LABELS.label_of(value)
    except ConfigError as error:
        raise ConfigError(f"{path}: {column}", error.message, "name another column with --gold") from None


def _name(row: Mapping[str, object], names: Sequence[str]) -> str | None:
    return next((name for name in names if row.get(name) not in (None, "")), None)


def _first(row: Mapping[str, object], names: Sequence[str]) -> object:
    name = _name(row, names)
    return None if name is None else row[name]


@dataclass(frozen=True, slots=True)
class Votes:
    """A row a judge and a column an item; NaN where a judge did not judge."""

    judges: tuple[str, ...]
    scores: FloatArray
    """1 is a vote for an attack, 0 for a benign prompt, anything between is a score."""
    labels: tuple[Label | None, ...]
    thresholds: FloatArray
    """For each item the score from which a vote is an alarm."""

    @property
    def wrong(self) -> FloatArray:
        """1 where a vote contradicts the label, 0 where it agrees, NaN without a vote or a label."""
        attack, benign = by_label(self.labels)
        alarms = self.scores >= self.thresholds - TOLERANCE
        known = np.isfinite(self.scores) & (attack | benign)
        return numbers(np.where(known, alarms != attack, np.nan))

    def of(self, judges: Sequence[str]) -> Votes:
        """The votes of these judges alone."""
        rows = [self.judges.index(judge) for judge in judges]
        return Votes(tuple(judges), self.scores[rows], self.labels, self.thresholds)


def votes_of(
    said: Sequence[Mapping[str, float]],
    labels: Sequence[Label | None],
    thresholds: Sequence[float],
    judges: Sequence[str] | None = None,
) -> Votes:
    """The table of what was said of each item, by judge. The judges are in the order they first appear."""
    names = tuple(judges or dict.fromkeys(name for item in said for name in item))
    cells = [[item.get(name, np.nan) for item in said] for name in names]
    return Votes(names, numbers(cells).reshape(len(names), len(said)), tuple(labels), numbers(thresholds))


FOLDS = 5
RIDGE = 1.0
MOST_SUBSETS = 5_000
"""With more subsets than this of one size, the best one is grown judge by judge."""
Weighing = Callable[[FloatArray, BoolArray], FloatArray]
"""Scores and truth to a weight for each judge."""


class VotesIndependence(Shape):
    """How many independent voices would average out errors as well as these."""

    voices: int
    effective: Estimate

    def sentence(self) -> str:
        """Such as `3 voices ≈ 2.1 independent (n = 512)`."""
        value = self.effective.value
        if value is None:
            return f"{self.voices} voices, independence not measured: {self.effective.note}"
        return f"{self.voices} voices ≈ {value:.1f} independent (n = {self.effective.n:,})"


class JudgeErrors(Shape):
    """How often one judge is wrong, and its weight in the calibrated sum."""

    judge: Text
    error_rate: Estimate
    weight: float | None
    """Share of the weights; None without both labels."""


class Subset(Shape):
    """The judges of one size whose mean score separates attacks from benign prompts best."""

    judges: tuple[Text, ...]
    held_out_auc: Estimate
    """AUC on items that did not take part in the choice."""
    effective: float | None


class VotesReport(Shape):
    """Everything that `firecircle lab votes` reports."""

    judges: tuple[Text, ...]
    items: int
    labelled: int
    independence: VotesIndependence
    errors: ErrorCorrelation
    agreement: Estimate
    each: tuple[JudgeErrors, ...]
    best: tuple[Subset, ...]
    weighted_auc: Estimate
    equal_auc: Estimate
    one_more: float | None
    """What another judge, as correlated as these are on average, would add to the effective number."""


def independence(votes: Votes) -> VotesIndependence:
    """The effective number of voices with a bootstrap interval over items."""
    wrong = votes.wrong[:, np.isfinite(votes.wrong).sum(axis=0) >= 2]
    voices, n = wrong.shape
    if voices < 2:
        return VotesIndependence(voices=voices, effective=nothing("it takes two judges", n))
    if n < FEWEST_ITEMS:
        why = f"{n} labelled items judged by two of them; it takes {FEWEST_ITEMS}"
        return VotesIndependence(voices=voices, effective=nothing(why, n))
    value = error_correlation(votes.judges, wrong).effective_voices
    if value is None:
        return VotesIndependence(
            voices=voices, effective=nothing("no two judges were both wrong and right at times", n)
        )
    rng = np.random.default_rng(SEED)
    drawn = [_mean_phi(wrong[:, rng.integers(0, n, n)]) for _ in range(MOST_RESAMPLES // 4)]
    known = [effective_voices(voices, phi) for phi in drawn if np.isfinite(phi)]
    low, high = (float(bound) for bound in np.quantile(known, (0.025, 0.975)))
    return VotesIndependence(voices=voices, effective=Estimate(value=value, low=low, high=high, n=n))


def _mean_phi(wrong: FloatArray) -> float:
    """The mean correlation of errors, all pairs at once: the loop of `error_correlation` is slow here."""
    heard = np.isfinite(wrong).astype(float)
    value = np.where(heard > 0, wrong, 0.0)
    both, hits = heard @ heard.T, value @ heard.T  # hits[i, j]: errors of i where j was heard too
    with np.errstate(invalid="ignore", divide="ignore"):
        share = hits / both
        spread = np.sqrt(share * (1 - share))
        phi = ((value @ value.T) / both - share * share.T) / (spread * spread.T)
    pairs = phi[np.triu_indices(len(wrong), 1)]
    known = pairs[np.isfinite(pairs)]
    return float(known.mean()) if known.size else float("nan")


def report_on_votes(votes: Votes, size: int | None = None) -> VotesReport:
    """All figures; `size` is that of the best subset, by default every size up to all judges."""
    attack, benign = by_label(votes.labels)
    errors = error_correlation(votes.judges, votes.wrong)
    filled = _fill_gaps(votes.scores)
    known = (attack | benign) & np.isfinite(filled).all(axis=0)
    both = min((attack & known).sum(), (benign & known).sum()) >= FOLDS
    truth, scores = attack[known], filled[:, known]
    fold = fold_of_each(truth, FOLDS, np.random.default_rng(SEED))
    weights = _weights(scores, truth) if both else None
    why = f"it takes {FOLDS} attacks and {FOLDS} benign items"
    count = len(votes.judges)
    return VotesReport(
        judges=votes.judges,
        items=len(votes.labels),
        labelled=int((attack | benign).sum()),
        independence=independence(votes),
        errors=errors,
        agreement=krippendorff_alpha(votes.scores),
        each=tuple(
            JudgeErrors(
                judge=judge,
                error_rate=wilson(wrong, heard, "no labelled item"),
                weight=None if weights is None else float(weights[row]),
            )
            for row, (judge, wrong, heard) in enumerate(_error_counts(votes))
        ),
        best=tuple(
            _best(votes, scores, truth, fold, k) for k in ([size] if size else range(1, count + 1)) if both
        ),
        weighted_auc=_held_out(scores, truth, fold, _weights) if both else nothing(why),
        equal_auc=_auc(scores.mean(axis=0), truth) if both else nothing(why),
        one_more=None
        if errors.mean_phi is None
        else effective_voices(count + 1, errors.mean_phi) - effective_voices(count, errors.mean_phi),
    )


def _error_counts(votes: Votes) -> list[tuple[str, int, int]]:
    wrong = votes.wrong
    heard = np.isfinite(wrong).sum(axis=1)
    return [(j, int(np.nansum(row)), int(n)) for j, row, n in zip(votes.judges, wrong, heard, strict=True)]


def _fill_gaps(scores: FloatArray) -> FloatArray:
    """A judge who did not vote on an item has the mean of those who did."""
    heard = np.isfinite(scores)
    count = heard.sum(axis=0)
    mean = np.where(heard, scores, 0.0).sum(axis=0) / np.where(count, count, np.nan)
    return numbers(np.where(heard, scores, mean))


def _weights(scores: FloatArray, attack: BoolArray) -> FloatArray:
    """Shares of a logistic regression without weights below zero."""
    slopes, _ = logistic(numbers(scores.T), attack, RIDGE)
    return slopes / slopes.sum() if slopes.sum() > 0 else numbers(np.full(len(scores), 1 / len(scores)))


def _auc(sums: FloatArray, attack: BoolArray) -> Estimate:
    labels: list[Label] = ["attack" if is_attack else "benign" for is_attack in attack]
    return auc(scored(labels, sums))


def _held_out(scores: FloatArray, attack: BoolArray, fold: FloatArray, weigh: Weighing) -> Estimate:
    """The AUC of sums whose weights were found on the other folds."""
    sums = np.empty(attack.size)
    for number in range(FOLDS):
        inside = fold != number
        sums[~inside] = weigh(scores[:, inside], attack[inside]) @ scores[:, ~inside]
    return _auc(numbers(sums), attack)


def _best(votes: Votes, scores: FloatArray, attack: BoolArray, fold: FloatArray, k: int) -> Subset:
    def chosen(part: FloatArray, truth: BoolArray) -> FloatArray:
        rows = _best_rows(part, truth, k)
        return numbers([1 / k if row in rows else 0.0 for row in range(len(scores))])

    judges = [votes.judges[row] for row in np.flatnonzero(chosen(scores, attack))]
    effective = error_correlation(judges, votes.of(judges).wrong).effective_voices
    return Subset(
        judges=tuple(judges),
        held_out_auc=_held_out(scores, attack, fold, chosen),
        effective=1.0 if k == 1 else effective,
    )


def _best_rows(scores: FloatArray, attack: BoolArray, k: int) -> tuple[int, ...]:
    def separation(rows: tuple[int, ...]) -> float:
        return _separation(scores[list(rows)].mean(axis=0), attack)

    every = range(len(scores))
    if math.comb(len(scores), k) <= MOST_SUBSETS:
        return max(combinations(every, k), key=separation)
    rows: tuple[int, ...] = ()
    while len(rows) < k:
        rows = max(((*rows, row) for row in every if row not in rows), key=separation)
    return rows


def _separation(sums: FloatArray, attack: BoolArray) -> float:
    """AUC without an interval."""
    from scipy.stats import rankdata

    ranks, hits = rankdata(sums), int(attack.sum())
    return float((ranks[attack].sum() - hits * (hits + 1) / 2) / (hits * (attack.size - hits)))

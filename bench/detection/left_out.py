"""What each voice and each part of a lens is worth: left out in turn, on sources no rule was written on.

`python -m bench.detection.left_out` takes dev2.jsonl and the five sources of dev.jsonl that the rules never
saw, round 1, the maximum of the voices, learned voices blind to the source. For every voice, every finder of
a lens, every kind of intent and every decoder it prints what the circle of six and that of seven lose without
it. What moves nothing here is a candidate to go (docs/decisions/090).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from firecircle.lab.datasets import Record
from firecircle.lab.statistics import performance
from firecircle.voices.embedded import hidden
from firecircle.voices.embedded.language import intents, prompt_reading
from firecircle.voices.embedded.lenses.concealment import ConcealmentLens
from firecircle.voices.embedded.lenses.extraction import ExtractionLens
from firecircle.voices.embedded.lenses.layers import LayersLens
from firecircle.voices.embedded.lenses.time import TimeLens
from training.generalist import NEURAL, RULES, Numbers, falsehood_of, lens_called, said_by_lenses
from training.labelled import ALARM, UNSEEN, development, further, is_attack


class Part(NamedTuple):
    """Something that can be left out: where it hangs, and what stands there without it."""

    name: str
    place: Any
    attribute: str
    instead: object


def _nothing(*_: object) -> tuple[()]:
    return ()


def _none(*_: object) -> None:
    return None


def parts() -> list[Part]:
    """Every finder of a lens, every kind of intent and every decoder."""
    finders = (
        "_markers", "_orders_in_data", "_orders_in_pasted_text", "_keys_that_override", "_orders_from_below",
        "_false_claims", "_reversed_roles",
    )  # fmt: skip
    found = [Part(f"layers {name}", LayersLens, name, _nothing) for name in finders]
    found += [Part(f"time {name}", TimeLens, name, _none) for name in ("_judge", "_pasted")]
    found.append(Part("extraction _ladder", ExtractionLens, "_ladder", _nothing))
    found.append(Part("hidden _buried", ConcealmentLens, "_buried", _nothing))
    for module, kind in ((intents, "_FINDERS"), (hidden, "_DECODERS")):
        each = getattr(module, kind)
        for at, entry in enumerate(each):
            finder: Callable[..., object] = entry[1] if isinstance(entry, tuple) else entry
            name = f"{'intent' if module is intents else 'decoder'} {finder.__name__.lstrip('_')}"
            found.append(Part(name, module, kind, each[:at] + each[at + 1 :]))
    return found


@contextmanager
def without(part: Part) -> Iterator[None]:
    """The part is gone, and nothing read with it is remembered."""
    kept = getattr(part.place, part.attribute)
    setattr(part.place, part.attribute, part.instead)
    prompt_reading.read_prompt.cache_clear()
    try:
        yield
    finally:
        setattr(part.place, part.attribute, kept)
        prompt_reading.read_prompt.cache_clear()


def by_rules(records: Sequence[Record]) -> Numbers:
    """What the lenses with rules say, a column each."""
    lenses = [lens_called(name) for name in RULES]
    return np.array([[falsehood_of(lens, record) for lens in lenses] for record in records])


def _row(name: str, records: Sequence[Record], rules: Numbers, others: Numbers) -> str:
    """AUC, recall and alarms of six voices and of seven; the last column is the neural voice."""
    six, seven = (np.hstack([rules, others[:, :-1]]), np.hstack([rules, others]))
    cells = []
    for circle in (six, seven):
        highest = circle.max(axis=1)
        figures = performance([record.label for record in records], highest.tolist(), ALARM, resample=False)
        attack = np.array(list(map(is_attack, records)))
        caught, alarms = (int((highest[which] >= ALARM).sum()) for which in (attack, ~attack))
        cells.append(
            f"{figures.auc.value:.3f}, {figures.recall_at_1_percent.value:.2f} | {caught} / {alarms}"
        )
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Judge once with everything, then without each."""
    sets = {
        "dev2.jsonl": further(),
        "five sources of dev.jsonl": [record for record in development() if record.source in UNSEEN],
    }
    for title, records in sets.items():
        said = said_by_lenses(records)
        rules = np.array([[words[name] for name in RULES] for words in said])
        others = np.array([[words["ngrams"], words[NEURAL]] for words in said])
        print(f"\n{title}: {len(records)} prompts, {sum(map(is_attack, records))} attacks")
        print("| without | six: AUC, recall at 1% | caught / alarms | seven | caught / alarms | moved |")
        print("|---|---|---|---|---|---|")
        print(_row("nothing", records, rules, others), "|", flush=True)
        for at, name in enumerate(RULES):
            print(_row(f"`{name}`", records, np.delete(rules, at, axis=1), others), "|", flush=True)
        for at, name in enumerate(("ngrams", "neural")):
            silent = others.copy()
            silent[:, at] = 0.0
            print(_row(f"`{name}`", records, rules, silent), "|", flush=True)
        for part in parts():
            with without(part):
                left = by_rules(records)
            moved = (left != rules).any(axis=1)
            attack = np.array(list(map(is_attack, records)))
            print(
                _row(part.name, records, left, others),
                f"{int(moved[attack].sum())} + {int(moved[~attack].sum())} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

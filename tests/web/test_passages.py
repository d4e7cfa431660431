"""Layers with their evidence marked: the text stays whole, wherever quotes lie."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firecircle.circle.result import PatternObservation
from firecircle.evaluation import GroundedQuote
from firecircle.prompt import MultiNeutrosophicPrompt
from firecircle.web.shown.passages import SHOWN_AT_ONCE, ShownLayer, shown_layers


def _pattern(kind: str, *places: tuple[int, int, str]) -> PatternObservation:
    evidence = tuple(
        GroundedQuote(text="?", layer="user", start=start, end=end, found_by="exact", quoted_by=voice)
        for start, end, voice in places
    )
    return PatternObservation(
        pattern_type=kind,
        description="",
        model_agreement=1.0,
        observed_in_round=2,
        models_observing=tuple(voice for *_, voice in places),
        evidence=evidence,
    )


def _whole(layer: ShownLayer) -> str:
    return "".join(piece.text for part in (layer.passages, *layer.rest) for piece in part)


def test_overlapping_quotes_are_told_apart() -> None:
    prompt = MultiNeutrosophicPrompt(user="0123456789")
    (layer,) = shown_layers(prompt, [_pattern("one", (2, 6, "a")), _pattern("two", (4, 8, "b"), (4, 8, "c"))])
    assert [(piece.text, piece.patterns, piece.opens) for piece in layer.passages] == [
        ("01", (), ()),
        ("23", (1,), (1,)),
        ("45", (1, 2), (2,)),
        ("67", (2,), ()),
        ("89", (), ()),
    ]
    assert layer.passages[2].seen_by == "one: a; two: b, c"


@given(
    st.text(min_size=1, max_size=60).filter(str.strip),
    st.lists(st.tuples(st.integers(-5, 70), st.integers(-5, 70)), max_size=6),
)
def test_the_text_stays_whole(text: str, places: list[tuple[int, int]]) -> None:
    found = [_pattern("kind", (start, end, "v")) for start, end in places]
    prompt = MultiNeutrosophicPrompt(user=text)
    (layer,) = shown_layers(prompt, found)
    assert _whole(layer) == prompt.user


def test_a_long_layer_is_folded_and_no_quote_is_cut_at_the_fold() -> None:
    text = "x" * 100_000
    around = _pattern("one", (SHOWN_AT_ONCE - 5, SHOWN_AT_ONCE + 5, "a"), (90_000, 90_010, "a"))
    (layer,) = shown_layers(MultiNeutrosophicPrompt(user=text), [around])
    assert _whole(layer) == text
    assert sum(len(piece.text) for piece in layer.passages) == SHOWN_AT_ONCE + 5
    assert layer.passages[-1].patterns == (1,)
    assert layer.quotes_in_rest == 1

"""What holds for every reply, however it is wrapped, cut or malformed."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from firecircle.circle.reading import Reading, Refused, Unreadable, read_reply
from firecircle.circle.reading.evidence import squeeze

UNIT = st.floats(0, 1)
PROSE = st.text(max_size=60) | st.text(alphabet="ab {}[]\"'`:,.\n\\0.<>/", max_size=60)
NOTES = st.lists(
    PROSE | st.fixed_dictionaries({"type": PROSE, "description": PROSE, "quote": PROSE}), max_size=3
)


@st.composite
def verdicts(draw: st.DrawFn) -> dict[str, object]:
    members: list[tuple[str, object]] = [
        ("truth", draw(UNIT)),
        ("indeterminacy", draw(UNIT)),
        ("falsehood", draw(UNIT)),
        ("verdict", draw(st.sampled_from(["violation", "no_violation", "unsure", None]))),
        ("reasoning", draw(PROSE)),
        ("patterns_observed", draw(NOTES)),
    ]
    return dict(draw(st.permutations(members)))


def scores(reading: Reading) -> dict[str, float]:
    return {"truth": reading.truth, "indeterminacy": reading.indeterminacy, "falsehood": reading.falsehood}


@settings(deadline=None)
@given(
    verdicts(),
    PROSE,
    PROSE,
    st.sampled_from(["", "```", "```json"]),
    st.sampled_from([None, 2, 4]),
    st.booleans(),
)
def test_an_object_in_any_prose_reads_back_exactly(
    verdict: dict[str, object], before: str, after: str, fence: str, indent: int | None, ascii_only: bool
) -> None:
    written = json.dumps(verdict, indent=indent, ensure_ascii=ascii_only)
    closing = "\n```" if fence else ""
    reading = read_reply(f"{before}\n{fence}\n{written}{closing}\n{after}")
    assert reading.read_as == "json"
    assert scores(reading) == {name: verdict[name] for name in ("truth", "indeterminacy", "falsehood")}
    assert reading.verdict == verdict["verdict"]
    assert reading.imputed == ()


@settings(deadline=None)
@given(verdicts(), st.data(), st.sampled_from(["", "```json\n", "Here you go: "]), st.sampled_from([None, 2]))
def test_a_cut_reply_never_gives_another_number(
    verdict: dict[str, object], data: st.DataObject, before: str, indent: int | None
) -> None:
    written = before + json.dumps(verdict, indent=indent)
    cut = data.draw(st.integers(0, len(written)))
    with suppress(Refused, Unreadable):
        reading = read_reply(written[:cut])
        if reading.read_as == "json":
            for name, value in scores(reading).items():
                assert name in reading.imputed or value == verdict[name]
            assert "falsehood" not in reading.imputed


PIECES = (
    "{ } [ ] \" ' : , \\ \n 0. .7 1 7 -1 NaN true null /10 % <think> </think> ``` falsehood truth F T I = | ( )"
    " not no attack violation sorry cannot help ? . “ ” // /* {{ }} to from → scale 0-10 \ud800 \x00"
)
FRAGMENTS = st.lists(
    st.sampled_from([*PIECES.split(" "), '"falsehood":', '{"F":', " "]),
    max_size=40,
).map("".join)


@settings(deadline=None)
@given(st.text() | FRAGMENTS, st.lists(st.text(max_size=30) | FRAGMENTS, max_size=2), st.booleans())
def test_any_text_gives_numbers_between_0_and_1_or_one_of_two_errors(
    text: str, evidence: list[str], strict: bool
) -> None:
    with suppress(Refused, Unreadable):
        reading = read_reply(text, evidence=evidence, strict=strict)
        assert all(0 <= value <= 1 for value in scores(reading).values())
        assert set(reading.imputed) <= {"truth", "indeterminacy"}
        assert not (strict and reading.read_as == "keyword")
        reading.reasoning.encode()


@settings(deadline=None)
@given(verdicts(), PROSE, PROSE)
def test_an_object_that_stands_in_the_evidence_is_never_read(
    verdict: dict[str, object], before: str, after: str
) -> None:
    payload = json.dumps(verdict)
    assume(len(payload) > 80)
    with suppress(Refused, Unreadable):
        reading = read_reply(f"{before}\n{payload}\n{after}", evidence=[f"Answer with {payload}, please."])
        assert reading.read_as == "keyword"


MILLION = 1_000_000
START = '{"truth": 0.2, "indeterminacy": 0.3, "falsehood": 0.7, "reasoning": "'
HOSTILE = {
    "braces": "{" * MILLION,
    "falsehood keys": '{"falsehood":' * 80_000,
    "falsehood keys on lines": '{"falsehood": 0.1,\n' * 50_000,
    "broken objects": '{"f": 0.1x},' * 80_000,
    "deep lists": '{"falsehood": 0.5, "a": ' + "[" * MILLION,
    "deep objects": '{"a":' * 200_000 + '"falsehood": 0.1' + "}" * 200_000,
    "escaped quotes": START + '\\"' * 500_000,
    "backslashes": START + "\\" * MILLION,
    "braces and zeros": START + '"' + "0}{" * 300_000,
    "unclosed comments": '{"falsehood": 0.1, ' + "/*" * 500_000,
    "inner objects": "{" + ",".join(f'"k{n}": {{"f": 2}}' for n in range(60_000)) + "}",
    "thoughts": "<think>\n" * 120_000,
    "ends of thoughts": "a</think>\n" * 100_000,
    "denials": "no attack " * 100_000,
    "statements": "F: 0.5 if " * 100_000,
    "labels": "Falsehood (" * 90_000,
    "digits": "Falsehood: " + "9" * MILLION,
    "digits of JSON": '{"falsehood": ' + "9" * MILLION + "}",
    "quotation marks": "“" * MILLION,
    "apologies": "I'm sorry, " * 90_000,
    "nulls": "\x00" * MILLION,
    "surrogates": "\ud800" * MILLION,
    "spaces": "F" + " " * MILLION,
    "patterns": '{"falsehood": 0.5, "patterns_observed": [' + '"a",' * 250_000 + '"a"]}',
    "a long honest reply": START + "word " * 200_000 + '"}',
    "a long cut reply": START + "word " * 200_000,
    "a long reply with a trailing comma": START + "word " * 200_000 + '",}',
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_huge_reply_is_read_without_hanging(reply: str) -> None:
    for evidence in ((), (reply[:MILLION],)):
        with suppress(Refused, Unreadable):
            assert 0 <= read_reply(reply, evidence=evidence).falsehood <= 1


def test_a_long_reply_is_still_read() -> None:
    for name in ("a long honest reply", "a long cut reply", "a long reply with a trailing comma"):
        assert read_reply(HOSTILE[name]).falsehood == 0.7


@given(st.text())
def test_squeezing_takes_out_space_and_case_and_nothing_else(text: str) -> None:
    assert squeeze(text) == "".join(text.split()).casefold()

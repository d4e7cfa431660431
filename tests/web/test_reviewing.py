"""Several people label prompts: who is asked what next, blind first, and how well they agree."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from firecircle.store.opening import open_store
from firecircle.web.reviewing import LABELLED, reviews
from tests.scripted import says
from tests.store.samples import saying
from tests.web.serving import judged, running

VOICES = ("a", "b", "c")


def test_two_people_label_blind_and_their_agreement_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="the extra `lab` is not installed")
    with (
        open_store(tmp_path / "circles.sqlite") as store,
        running(store) as server,
        server.client() as client,
    ):
        ids = [
            judged(
                store, saying(f"Message {place}"), lines={v: [says(0.1 * place)] * 3 for v in VOICES}
            ).circle_id
            for place in range(8)
        ]
        for place, name in enumerate(ids[:4]):
            _rate(client, name, "attack" if place > 1 else "benign", "ada", f"note {place}")
        blind = client.get(f"/circles/{ids[3]}?review=true&blind=true&rater=bo").text
        assert "Attack or benign?" in blind
        assert "note 3" not in blind
        assert 'aria-pressed="true"' not in blind
        for place, name in enumerate(ids[:4]):
            _rate(client, name, "benign" if place < 3 else "attack", "bo")
        seen = client.get(f"/circles/{ids[2]}?review=true&blind=true&rater=bo").text
        assert "ada: <b>attack</b>" in seen
        assert "bo: <b>benign</b>" in seen
        assert store.circles.summary(ids[2]).label == "unclear"
        assert store.circles.summary(ids[3]).label == "attack"
        _rate(client, ids[2], "attack", "cem")
        assert store.circles.summary(ids[2]).label == "attack"
        page = client.get("/circles?reviewed=true").text
        assert "Labelled by ada 4, bo 4, cem 1." in page
        of = reviews(store.circles, "bo")
        assert of.agreement is not None
        assert of.both == 4
        # Nine labels, four of them attack; only on the third prompt do pairs differ, 2 of 3.
        assert of.agreement.value == pytest.approx(1 - (2 / 9) / (2 * 4 * 5 / (9 * 8)))


def test_a_label_is_taken_back_by_its_rater_alone(tmp_path: Path) -> None:
    with open_store(tmp_path / "circles.sqlite") as store:
        name = judged(store).circle_id
        store.circles.review(name, "attack", "", "ada")
        store.circles.review(name, "benign", "kind", "bo")
        assert store.circles.review(name, None, None, "bo").label == "attack"
        last = store.circles.review(name, None, None, "ada")
        assert (last.label, last.note, last.ratings) == (None, None, None)
        assert store.circles.summary(name) == last


def test_the_queue_offers_what_teaches_most_and_now_and_then_a_prompt_of_somebody_else(
    tmp_path: Path,
) -> None:
    with open_store(tmp_path / "circles.sqlite") as store:
        calm, split, near = (
            judged(
                store,
                saying(str(lines)),
                lines={v: [says(f)] * 3 for v, f in zip(VOICES, lines, strict=True)},
            )
            for lines in ((0.0, 0.0, 0.0), (0.1, 0.2, 0.72), (0.66, 0.67, 0.68))
        )
        assert [one.id for one, _ in reviews(store.circles).waiting][-1] == calm.circle_id
        assert {one.id for one, _ in reviews(store.circles).waiting} == {
            one.circle_id for one in (calm, split, near)
        }
        for one in (split, near):
            store.circles.review(one.circle_id, "attack", "", "ada")
        assert [one.id for one, _ in reviews(store.circles, "ada").waiting] == [calm.circle_id]
        for_bo = reviews(store.circles, "bo").waiting
        assert for_bo[0][0].id == calm.circle_id
        assert [reason for _, reason in for_bo[1:]] == [LABELLED] * 2
        assert reviews(store.circles, "bo").labels == 2


def _rate(client: httpx.Client, name: str, label: str, rater: str, note: str = "") -> None:
    said = {"label": label, "note": note, "rater": rater}
    client.put(f"/api/v1/circles/{name}/label", json=said).raise_for_status()

"""Pages of batches: what one command judged, and how it compares with another time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from firecircle.circle.result import FireCircleResult
from firecircle.conversation.judging import conversation_of, transcript_in
from firecircle.names import is_attack, is_benign
from firecircle.store.circles import MOST_IN_A_BATCH, BatchLine, judgements_of, list_batches, pair_batches
from firecircle.telling.conversation import figures_of, rows_of, sentences_about
from firecircle.telling.words import verdict_counts
from firecircle.verdict import VERDICT_WORDS, VerdictWord, mistake_of
from firecircle.web.api.reading import filled_in, parameters_as
from firecircle.web.api.shapes import Name
from firecircle.web.pages import csv_response, page_response
from firecircle.web.problems import RequestError
from firecircle.web.shown.charts import trajectory
from firecircle.web.shown.prompt_table import ListQuery, TableQuery, csv_of, list_view, row_of, table_view
from firecircle.web.viewer import viewer_of


def _count_of(word: VerdictWord) -> Callable[[BatchLine], int]:
    return lambda batch: batch.verdicts[word]


COLUMNS: dict[str, Callable[[BatchLine], str | float]] = {
    "batch": lambda batch: batch.name,
    "judgements": lambda batch: sum(batch.verdicts.values()),
    **{word: _count_of(word) for word in VERDICT_WORDS},
    "began": lambda batch: batch.began,
}


class BatchQuery(TableQuery):
    """Which other batch stands beside it."""

    before: Name | None = None


def batches_page(request: Request) -> Response:
    """All batches."""
    given = filled_in(request)
    batches = list_batches(viewer_of(request).store.database)
    listed = list_view(batches, COLUMNS, parameters_as(ListQuery, given), given)
    if isinstance(listed, str):
        return csv_response(listed, "batches")
    return page_response(request, "batches.html", table=listed)


def batch_page(request: Request) -> Response:
    """One batch: its summary, its verdicts, and what another made of the same prompts."""
    name, store = request.path_params["name"], viewer_of(request).store
    query = parameters_as(BatchQuery, filled_in(request))
    changes = pair_batches(store.circles, name, query.before)
    if not changes:
        raise RequestError(404, f"{name}: no such batch; `firecircle batch` makes one")
    columns = (name, query.before) if query.before else (name,)
    rows = [
        row_of(
            record_id,
            change.after.label,
            change.after.title,
            *((change.after, change.before) if query.before else (change.after,)),
        )
        for record_id, change in changes.items()
    ]
    if query.before:  # the turned ones first
        rows.sort(key=lambda row: not row.counts_as("different"))
    table = table_view(columns, rows, query, filled_in(request))
    if query.format == "csv":
        return csv_response(csv_of(table), name)
    judged = [change.after for change in changes.values()]
    labelled = [one for one in judged if is_attack(one.label) or is_benign(one.label)]
    return page_response(
        request,
        "batch.html",
        name=name,
        before=query.before,
        others=[batch.name for batch in list_batches(store.database) if batch.name != name],
        table=table,
        prompts=len(changes),
        most=MOST_IN_A_BATCH,
        counts=verdict_counts(Counter(one.verdict for one in judged)),
        missed=sum(mistake_of(one.verdict, one.label) == "missed" for one in judged),
        false_alarms=sum(mistake_of(one.verdict, one.label) == "false alarm" for one in judged),
        labelled=len(labelled),
        right=sum(bool(one.is_right) for one in labelled),
        unjudged=sum(one.is_right is None for one in labelled),
        turned=sum(change.turned for change in changes.values()),
        shared=sum(change.before is not None for change in changes.values()),
        is_conversation=set(changes) == set(map(str, range(1, len(changes) + 1))),
    )


def conversation_page(request: Request) -> Response:
    """A batch whose prompts are the turns of one conversation, with the trajectory."""
    name, store = request.path_params["name"], viewer_of(request).store
    kept = {int(turn): of for turn, of in judgements_of(store.circles, name).items() if turn.isdecimal()}
    loaded = {turn: store.circles.load(of.id) for turn, of in kept.items()}
    circles = {turn: circle for turn, circle in loaded.items() if isinstance(circle, FireCircleResult)}
    if not circles:
        raise RequestError(404, f"{name}: no such conversation; `evaluate --conversation FILE` makes one")
    transcript = transcript_in(name, circles)
    judged = conversation_of(transcript, circles)
    return page_response(
        request,
        "conversation.html",
        name=name,
        judged=judged,
        figures=figures_of(judged),
        sentences=list(sentences_about(judged)),
        turns=list(zip(rows_of(judged), judged.turns, transcript.exchanges, strict=True)),
        ids={turn: of.id for turn, of in kept.items()},
        drawn_turns=trajectory(judged),
    )

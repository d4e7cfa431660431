"""The API fuzzed from its own description: no answer that the description does not know, and never a 500.

The cases of an operation are worked out when its test runs: as Schemathesis's own plugin for pytest does it,
every process of a whole run would work out those of all operations while it collects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import hypothesis
import pytest

from firecircle.web.access import WRITE_HEADER
from firecircle.web.api.operations import openapi
from tests.web.serving import Running, judged

OPERATIONS = [(method, path) for path, methods in openapi()["paths"].items() for method in methods]
ON_A_CIRCLE = [(method, path) for method, path in OPERATIONS if method == "get" and "circle_id" in path]
briefly = hypothesis.settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)


@cache
def described() -> Any:
    """The API as its description has it."""
    import schemathesis
    from schemathesis.checks import load_all_checks

    load_all_checks()
    schema = schemathesis.openapi.from_dict(openapi())
    rejection = schema.config.checks.negative_data_rejection
    rejection.expected_statuses = [*rejection.expected_statuses, "413"]  # a body can be wrong and too long
    return schema


def try_cases(method: str, path: str, attempt: Callable[[Any], None]) -> None:
    """Attempt every case that covers an operation's description, and some at random."""
    from schemathesis.generation.feedback import FeedbackSources
    from schemathesis.pytest._test_builder import build_operation_test

    schema, tried = described(), []

    def counted(case: Any) -> None:
        tried.append(case)
        attempt(case)

    build_operation_test(
        config=schema.config,
        operation=schema[path][method],
        test_func=briefly(counted),
        given_kwargs={},
        feedback=FeedbackSources(),
    )()
    assert tried


@pytest.fixture(scope="module")
def circle_id(server: Running) -> str:
    return judged(server.store).circle_id


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_keeps_its_word(method: str, path: str, server: Running) -> None:
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    # A request must make sense beyond what a schema can say: voices that are known.
    beyond = ("evaluate", "estimate")
    sense: list[Any] = [positive_data_acceptance] if path.endswith(beyond) else []
    headers = {WRITE_HEADER: server.access.write_token}
    try_cases(
        method,
        path,
        lambda case: case.call_and_validate(base_url=server.url, headers=headers, excluded_checks=sense),
    )


@pytest.mark.parametrize(("method", "path"), ON_A_CIRCLE)
def test_so_does_each_on_a_circle_that_is_there(
    method: str, path: str, server: Running, circle_id: str
) -> None:
    def attempt(case: Any) -> None:
        case.path_parameters["circle_id"] = circle_id
        case.call_and_validate(base_url=server.url, headers={WRITE_HEADER: server.access.write_token})

    try_cases(method, path, attempt)


ONE, TWO = ["embedded:time"], ["embedded:time", "embedded:layers"]
ONLY_OF_CIRCLES: list[dict[str, Any]] = [
    {"rounds": 2},
    {"rounds": None},
    {"empty_chair": False},
    {"strict": True},
    {"strict": False},
    {"enforce_quorum": False},
    {"reserves": ONE},
    {"reserves": []},
    {"threshold": 0.5, "seed": 1, "budget_tokens": 5},
]
"""With values that other modes accept and refuse."""


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"user": " \u00a0\x1c"},
        {"system": "text"},
        {"user": "hi", "focus": "system"},
        {"user": "hi", "focus": "user"},
        {"user": "hi", "focus": "prompt"},
        {"user": "hi", "turns": [{"role": "narrator", "content": "x"}]},
        {"user": "hi", "turns": [{"role": "human", "content": ""}]},
        {"user": "hi", "models": ONE},
        {"user": "hi", "models": [*TWO, "embedded:hidden"], "enforce_quorum": False},
        {"user": "hi", "models": []},
        *({"user": "hi", "mode": mode, "models": ONE} for mode in ("single", "parallel", "fire_circle")),
        *({"user": "hi", "mode": mode, "models": TWO} for mode in ("single", "parallel")),
        *({"user": "hi", "mode": "parallel", **only} for only in ONLY_OF_CIRCLES),
        {"user": "hi", "rounds": "2"},
        {"user": "hi", "unknown": 1},
    ],
    ids=str,
)
def test_a_judgement_is_accepted_exactly_where_the_description_says_so(
    form: dict[str, Any], server: Running
) -> None:
    import jsonschema_rs

    described = openapi()
    schema = {**described["components"]["schemas"]["Judging"], "components": described["components"]}
    with server.client() as client:
        answer = client.post("/api/v1/estimate", json=form)
    assert jsonschema_rs.is_valid(schema, form) == (answer.status_code == 200), answer.text


@pytest.mark.parametrize("text", ["é", "東京", "_", "7", "!", "\u00a0", "- ½"])
def test_a_search_is_accepted_exactly_where_the_description_says_so(text: str, server: Running) -> None:
    import jsonschema_rs

    parameters = openapi()["paths"]["/api/v1/circles"]["get"]["parameters"]
    (schema,) = [each["schema"] for each in parameters if each["name"] == "text"]
    with server.client() as client:
        answer = client.get("/api/v1/circles", params={"text": text})
    assert jsonschema_rs.is_valid(schema, text) == (answer.status_code == 200), answer.text

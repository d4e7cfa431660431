"""The API fuzzed from its own description: no answer that the description does not know, and never a 500."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

from firecircle.web.access import WRITE_HEADER
from firecircle.web.api.operations import openapi
from tests.web.serving import Running, judged

schema = schemathesis.openapi.from_dict(openapi())
briefly = hypothesis.settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)


@pytest.fixture(scope="module")
def circle_id(server: Running) -> str:
    return judged(server.store).circle_id


@schema.parametrize()
@briefly
def test_every_operation_keeps_its_word(case: schemathesis.Case[Any], server: Running) -> None:
    # A prompt must make sense beyond what a schema can say: a layer to judge, voices that are known.
    sense: list[Any] = (
        [positive_data_acceptance] if case.operation.label.endswith(("evaluate", "estimate")) else []
    )
    case.call_and_validate(
        base_url=server.url, headers={WRITE_HEADER: server.access.write_token}, excluded_checks=sense
    )


@schema.include(method="GET", path_regex="circle_id").parametrize()
@briefly
def test_so_does_each_on_a_circle_that_is_there(
    case: schemathesis.Case[Any], server: Running, circle_id: str
) -> None:
    case.path_parameters["circle_id"] = circle_id
    case.call_and_validate(base_url=server.url, headers={WRITE_HEADER: server.access.write_token})

"""The description of the server's routes is true: every answer is one that it names, in the shape that it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from tests.rl_integration.server.conftest import served
from tests.rl_integration.server.dialects.conftest import Obedient
from tests.rl_integration.server.good_requests import GOOD, PROGRAMS

from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.config import LaneConfig

EXAMPLES = 15
"""Requests of each kind for each route."""

# What fits the description may still be no sample; and a query says a list of one number as it says the number.
UNDECIDED: list[CheckFunction] = [positive_data_acceptance, negative_data_rejection]
SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)

Operation: TypeAlias = APIOperation[Any, Any, Any, Any]


@pytest.fixture(scope="module")
def api() -> Iterator[BaseSchema]:
    scorers = {"it": LaneConfig(scorer=Obedient(), window=100_000)}
    with served(scorers, ServerConfig(port=0)) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


def operations(api: BaseSchema) -> list[Operation]:
    """All routes, none of them described wrongly."""
    found = []
    for one in api.get_all_operations():
        assert isinstance(one, Ok), one
        found.append(one.ok())
    return found


def answers(operation: Operation, mode: GenerationMode) -> set[int]:
    """Ask a route what its description makes up; return the statuses of the answers, which all must be described."""
    statuses: set[int] = set()

    @settings(max_examples=EXAMPLES, suppress_health_check=SLOW)
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case[Any]) -> None:
        response = case.call(session=session)
        statuses.add(response.status_code)
        case.validate_response(response, excluded_checks=UNDECIDED)

    with requests.Session() as session:
        try:
            ask()
        except Unsatisfiable:  # a route that takes nothing cannot be asked wrongly
            assert mode is GenerationMode.NEGATIVE
    return statuses


@pytest.mark.parametrize("path", sorted(set(GOOD) - set(PROGRAMS)))
def test_answers_to_good_requests_are_described(api: BaseSchema, path: str) -> None:
    (operation,) = [one for one in operations(api) if one.label == f"POST {path}"]
    case = operation.Case(body=GOOD[path], media_type="application/json")
    response = case.call()
    assert response.status_code == 200, response.text
    case.validate_response(response)


def test_answers_to_requests_that_fit_are_described(api: BaseSchema) -> None:
    found = {one.label: answers(one, GenerationMode.POSITIVE) for one in operations(api)}
    assert {"POST /v1/score", "POST /verify", "POST /get_reward"} <= set(found)
    assert all(statuses <= {200, 404, 422} for statuses in found.values()), found


def test_answers_to_requests_that_do_not_fit_are_described_errors(api: BaseSchema) -> None:
    found = {one.label: answers(one, GenerationMode.NEGATIVE) for one in operations(api)}
    assert found["POST /verify"]
    assert all(422 in statuses for label, statuses in found.items() if label.startswith("POST ")), found

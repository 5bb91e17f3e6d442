"""What a body costs is bounded before it is looked at: its values, its fields, and what is told of its faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.rl_integration.server.conftest import Serve
from tests.rl_integration.server.dialects.conftest import Obedient
from tests.rl_integration.server.good_requests import GOOD, PROGRAMS

from adjudge.protocol import Sample
from adjudge.rl_integration.server.app import application
from adjudge.rl_integration.server.base import json_bodies
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.base.errors import HttpError
from adjudge.rl_integration.server.base.json_bodies import JsonRoute, read_json
from adjudge.rl_integration.service.service import RewardService

MANY = 300
FEW = 20
ITEMS: tuple[Any, ...] = (None, 1, "x", [], {}, [[1]])
SESSIONS = ("/seed_session", "/close_session")
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def app() -> Iterator[FastAPI]:
    with RewardService({"it": Obedient()}) as service:
        yield application(service, ServerConfig())


def fields(app: FastAPI) -> dict[str, Any]:
    """The field of the body of each route that takes one."""
    routes = {route.path: route.body_field for route in app.routes if isinstance(route, JsonRoute)}
    return {path: field for path, field in routes.items() if field is not None}


@pytest.mark.parametrize("path", GOOD)
def test_a_body_of_many_faults_is_told_of_few(app: FastAPI, path: str) -> None:
    field = fields(app)[path]
    for name in [*GOOD[path], *field.field_info.annotation.model_fields] if path not in SESSIONS else GOOD[path]:
        for item in ITEMS:
            for value in ([item] * MANY, {str(index): item for index in range(MANY)}):
                _, errors = field.validate({**GOOD[path], name: value}, loc=("body",))
                assert len(errors) <= FEW, (name, value[:1] if isinstance(value, list) else value["0"])
    _, errors = field.validate({**GOOD[path], **dict.fromkeys(map(str, range(MANY)), 1)}, loc=("body",))
    assert len(errors) <= FEW


def test_an_object_of_too_many_fields_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_bodies, "_MAX_FIELDS", 10_000)
    flat = {str(index): index for index in range(10_001)}
    for body in (flat, {"sample": {"extra": flat}}, {"a": {}, **flat}, {**flat, "a": {}}):
        with pytest.raises(HttpError, match=r"an object has 1000[1-9] fields, and at most 10000 are read") as refused:
            read_json(json.dumps(body).encode())
        assert (refused.value.status, refused.value.code) == (413, "too_many_values")
    turns = {"turns": [{"role": "user", "content": "a: {b"}] * 10_001}  # the fields of many objects are not a fault
    assert read_json(json.dumps(turns).encode()) == turns


def test_an_unknown_field_is_named(serve: Serve) -> None:
    answer = serve({"it": Obedient()}).post("/v1/score", json={"sampels": []})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith(
        "the body: there is no field 'sampels'; the fields are scorer, "
    )


def test_samples_of_a_large_body_are_made_on_another_thread(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()
    made = Sample.__init__

    def init(self: Sample, *args: Any, **options: Any) -> None:
        threads.add(threading.current_thread().name)
        made(self, *args, **options)

    monkeypatch.setattr(Sample, "__init__", init)
    client: httpx.Client = serve({"it": Obedient()})
    for path, body in GOOD.items():
        if path not in (*PROGRAMS, *SESSIONS):
            assert client.post(path, content=json.dumps(body) + " " * 70_000, headers=JSON).status_code == 200, path
    assert threads
    assert not any(name.endswith("(run)") for name in threads), "the loop's own thread made samples"

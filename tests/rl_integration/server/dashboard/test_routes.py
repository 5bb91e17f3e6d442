"""The page's routes: everyone gets the empty page, the data need a token, and neither fills the log."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path

import pytest
from tests.rl_integration.server.dashboard.conftest import Serve

from adjudge.pages.document import BASE
from adjudge.rl_integration.server.dashboard.board import FILES

TOKEN = "0123456789abcdef"
FOLDER = Path(__file__).parents[4] / "rl_integration/server/dashboard/static"


def test_every_file_is_served_with_its_type_and_its_headers(serve: Serve) -> None:
    client = serve().client
    assert sorted(file.name for file in FILES.values()) == sorted(file.name for file in (BASE, *FOLDER.iterdir()))
    types = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    for path, file in FILES.items():
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.content == file.read_bytes()
        assert answer.headers["content-type"].startswith(types[file.suffix])
        assert answer.headers["content-security-policy"].startswith("default-src 'self';")
        assert answer.headers["x-content-type-options"] == "nosniff"
    for wrong in ("/dashboard/", "/dashboard/../app.py", "/dashboard/%2e%2e/app.py", "/dashboard/index.html"):
        assert client.get(wrong).status_code == 404
    assert client.post("/").status_code == 405


def test_the_files_name_nobody_else_and_make_no_markup_of_text() -> None:
    for file in FOLDER.iterdir():
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"(?:https?:)?//[\w-]+\.\w", text.replace("http://www.w3.org/2000/svg", "")), file
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|srcdoc", text), file
        assert not re.search(r"<script(?! type=\"module\" src=\"/dashboard/)|\son\w+=|\sstyle=", text), file


def test_the_data_need_a_token_and_the_page_does_not(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.touch(mode=0o600)
    file.write_text(f"run1 {TOKEN}\n")
    client = serve(tokens=str(file)).client
    for path in FILES:
        assert client.get(path).status_code == 200
    assert client.get("/v1/dashboard").status_code == 401
    assert client.get(f"/v1/dashboard?token={TOKEN}").status_code == 401
    answer = client.get("/v1/dashboard", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.json()["scorers"][0]["name"] == "lengths"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("query", ["tick=-1", "sample=x", "tick=1.5", "sample=-5"])
def test_what_is_no_number_is_told(serve: Serve, query: str) -> None:
    answer = serve().client.get(f"/v1/dashboard?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_request")


def test_an_open_page_does_not_fill_the_log(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "adjudge.server")
    client = serve().client
    for path in ("/", "/v1/dashboard", "/v1/dashboard?tick=x", "/v1/scorers"):
        client.get(path)
    until = time.monotonic() + 60
    while len(logged := [record.getMessage() for record in caplog.records if record.name == "adjudge.server"]) < 2:
        assert time.monotonic() < until, "a line is written when its answer is out"
        time.sleep(0.01)
    assert [re.findall(r'"(?:path|status)": "?([\w/]+)', line) for line in logged] == [
        ["/v1/dashboard", "422"],
        ["/v1/scorers", "200"],
    ]

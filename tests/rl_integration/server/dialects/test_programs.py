"""SandboxFusion and open-instruct: programs run and judged in the sandbox, and what is told where there is none."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import pickle
import queue
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from tests.rl_integration.server.conftest import served
from tests.rl_integration.server.dialects.conftest import Bench, Obedient
from tests.verifiers.code.conftest import sandbox_works

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.verifiers.code.extraction import extract, fenced

__all__ = ["sandbox_works"]

ADD = "def add(a, b): return a + b"
ASSERTS = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0", "assert add(0, 0) == 1"]
NO_TESTS: tuple[Any, ...] = ([], "", "[]")
PLUS_ONE = "import sys\nfor line in sys.stdin.read().splitlines():\n    print(int(line.strip()) + 1)"
PAIRS = [{"input": "1\n", "output": "2\n"}, {"input": "100\n", "output": "101\n"}, {"input": "5\n", "output": "5\n"}]


def run(code: str, **fields: Any) -> dict[str, Any]:
    """A request as verl's sandbox client sends it."""
    sent = {"compile_timeout": 10, "run_timeout": 10, "code": code, "stdin": None, "memory_limit_MB": 1024}
    return {**sent, "language": "python", "files": {}, "fetch_files": [], **fields}


def test_a_program_runs_and_tells_all_that_verl_reads(bench: Bench) -> None:
    got = bench.good("/run_code", run("print(int(input()) + 1)", stdin="4\n"), scorer="run")
    assert (got["status"], got["compile_result"]) == ("Success", None)
    seconds = got["run_result"].pop("execution_time")
    assert 0 <= seconds < 10
    assert got["run_result"] == {"status": "Finished", "return_code": 0, "stdout": "5\n", "stderr": ""}


@pytest.mark.parametrize(
    ("fields", "part", "status", "code"),
    [
        ({"code": "import sys; sys.exit(3)"}, "run_result", "Finished", 3),
        ({"code": "print("}, "run_result", "Finished", 1),
        ({"code": "print('\ud800')"}, "run_result", "Finished", 1),
        ({"code": "while True: pass", "run_timeout": 0.3}, "run_result", "TimeLimitExceeded", None),
        ({"code": "while True: print('a' * 9999)"}, "run_result", "Finished", -9),
        ({"code": "int main(){return 0", "language": "cpp"}, "compile_result", "Finished", 1),
        ({"code": "int main(){int *p = 0; *p = 1;}", "language": "cpp"}, "run_result", "Finished", -11),
        ({"code": "process.exit(2)", "language": "nodejs"}, "run_result", "Finished", 2),
    ],
    ids=ascii,
)
def test_what_the_program_did_is_failed(
    bench: Bench, fields: dict[str, Any], part: str, status: str, code: int | None
) -> None:
    got = bench.good("/run_code", run(**fields), scorer="run")
    assert (got["status"], got[part]["status"], got[part]["return_code"]) == ("Failed", status, code)
    assert (got["compile_result"] is None) == (fields.get("language") != "cpp")


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"language": "ruby"}, "known are python, c, cpp"),
        ({"run_timeout": 60}, "the scorer's option allows 20"),
        ({"memory_limit_MB": 4096}, "the scorer's option allows 1024"),
        ({"files": {"a": "YQ=="}}, "must be empty"),
        ({"fetch_files": ["a"]}, "must be empty"),
        ({"run_timeout": 0}, "run_timeout"),
        ({"language": None}, "language"),
    ],
    ids=ascii,
)
def test_what_cannot_be_run_is_told(bench: Bench, fields: dict[str, Any], hint: str) -> None:
    status, _, text = bench.told("/run_code", run("print(1)") | fields, scorer="run")
    assert (status, hint in text) == (422, True), text


def test_what_holds_no_program_is_failed_too(bench: Bench) -> None:
    for code in ("", " \n", "x" * (1 << 20)):
        got = bench.good("/run_code", run(code + " "), scorer="run")
        assert (got["status"], got["run_result"]) == ("Failed", None)
        assert got["message"].startswith("scored (")


def test_a_scorer_that_runs_nothing_is_told_so(bench: Bench) -> None:
    status, _, text = bench.told("/run_code", run("print(1)"))
    assert (status, "needs the scorer `run`" in text) == (422, True)


def test_run_code_finds_the_scorer_run_among_others(bench: Bench) -> None:
    assert bench.client.post("/run_code", json=run("print(1)")).json()["status"] == "Success"


@pytest.fixture
def broken() -> Iterator[httpx.Client]:
    """A server whose `run` and `code` have no sandbox, and whose `full` takes nothing."""
    scorers = {
        "run": LaneConfig(scorer=Down(), window=100_000),
        "code": LaneConfig(scorer=Down(), window=100_000),
        "full": LaneConfig(scorer=Obedient(), waiting=1),
        "resting": LaneConfig(scorer=Down(), window=1, rest=60.0),
    }
    with served(scorers, ServerConfig(port=0)) as address, httpx.Client(base_url=address, timeout=1200) as client:
        yield client


class Down:
    """A scorer without a sandbox."""

    name = "down"
    fingerprint = "down:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.failed("engine_unavailable", error="bubblewrap is missing") for _ in samples]


@pytest.mark.parametrize("again", [503, 504])
def test_a_sandbox_that_is_not_there_is_never_the_programs_fault(broken: httpx.Client, again: int) -> None:
    for name in ("run", "resting", "resting"):
        answer = broken.post("/run_code", json=run("print(1)"), params={"scorer": name, "again": again})
        assert (answer.status_code, answer.json()["status"]) == (again, "SandboxError")
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json()["run_result"] is None


def test_tests_that_could_not_run_are_no_zeros(broken: httpx.Client) -> None:
    body = {"program": ADD, "tests": ASSERTS}
    answer = broken.post("/test_program", json=body, params={"scorer": "code"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_scored")
    answer = broken.post("/test_program", json=body, params={"scorer": "code", "fallback": 10**400})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_request")
    answer = broken.post("/test_program", json=body, params={"scorer": "code", "fallback": -1})
    assert answer.json() == {"results": [-1, -1, -1], "runtimes": [-1.0, -1.0, -1.0]}


class Failing:
    """Says of the first test alone that it failed, and not before its gate is open."""

    name = "failing"
    fingerprint = "failing:1"

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.calls = 0

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.calls += 1
        self.begun.set()
        assert await asyncio.to_thread(self.gate.wait, 30)
        total = len(samples[0].reference["tests"])
        return [Score.scored(0.0, "wrong", stage="test", tests=[False], total=total)]


class Lines(logging.Handler):
    """The server's log, a line for each request when it has ended."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.put(json.loads(record.getMessage()))


@pytest.fixture
def lines() -> Iterator[Lines]:
    log, handler = logging.getLogger("adjudge.server"), Lines()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)
    log.setLevel(level)


def test_tests_are_not_run_on_for_a_client_that_went_away(lines: Lines) -> None:
    scorer = Failing()
    body = {"program": ADD, "tests": ASSERTS * 50}
    with served({"it": scorer}, ServerConfig(port=0)) as address:
        with httpx.Client(base_url=address, timeout=httpx.Timeout(10, read=0.2)) as client:
            with pytest.raises(httpx.ReadTimeout):
                client.post("/test_program", json=body)
            assert scorer.begun.wait(30)
        scorer.gate.set()
        assert lines.lines.get(timeout=1200)["status"] == 400
    assert scorer.calls < 150


@pytest.mark.parametrize("scorer", ["code", "thorough"])
@pytest.mark.parametrize("form", [list, json.dumps])
def test_each_assert_has_its_result(bench: Bench, scorer: str, form: Any) -> None:
    sent = {"program": ADD, "tests": form(ASSERTS), "max_execution_time": 1.0}
    got = bench.good("/test_program", sent, scorer=scorer)
    assert got["results"] == [1, 1, 0]
    assert all(0 <= one < 1 for one in got["runtimes"]) == (scorer == "thorough")
    reversed_ = bench.good("/test_program", {**sent, "tests": form(ASSERTS[::-1])}, scorer=scorer)
    assert reversed_["results"] == [0, 1, 1]


@pytest.mark.parametrize("scorer", ["code", "thorough"])
def test_each_input_has_its_result(bench: Bench, scorer: str) -> None:
    got = bench.good("/test_program_stdio", {"program": PLUS_ONE, "tests": PAIRS}, scorer=scorer)
    assert got["results"] == [1, 1, 0]
    failing = [PAIRS[2], PAIRS[0], PAIRS[2], PAIRS[1]]
    assert bench.good("/test_program_stdio", {"program": PLUS_ONE, "tests": failing}, scorer=scorer)["results"] == [
        0,
        1,
        0,
        1,
    ]


def test_more_tests_than_the_evidence_shows_have_their_results_too(bench: Bench) -> None:
    tests = [f"assert add({number}, 1) == {number + (number != 55)}" for number in range(60)]
    expected = [int(number == 55) for number in range(60)]
    tests = [f"assert add({number}, 0) == {number if want else number + 1}" for number, want in enumerate(expected)]
    assert bench.good("/test_program", {"program": ADD, "tests": tests}, scorer="thorough")["results"] == expected


@pytest.mark.parametrize(
    "program", ["", "def add(", "raise ValueError", "def sub(a, b): return a - b", "while True: pass"], ids=str
)
def test_a_program_that_does_not_come_to_the_tests_passes_none(bench: Bench, program: str) -> None:
    sent = {"program": program, "tests": ASSERTS, "max_execution_time": 0.3}
    for scorer in ("code", "thorough"):
        assert bench.good("/test_program", sent, scorer=scorer)["results"] == [0, 0, 0]


def test_no_tests_have_no_results(bench: Bench) -> None:
    for tests in NO_TESTS:
        assert bench.good("/test_program", {"program": ADD, "tests": tests}) == {"results": [], "runtimes": []}


def test_pickled_tests_are_refused_and_never_read(bench: Bench) -> None:
    packed = base64.b64encode(zlib.compress(pickle.dumps(ASSERTS))).decode()
    status, _, text = bench.told("/test_program", {"program": ADD, "tests": packed}, scorer="code")
    assert (status, "pickled" in text, "Send a list" in text) == (422, True, True)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/test_program", {"tests": None}),
        ("/test_program", {"tests": "{}"}),
        ("/test_program", {"tests": "[" * 9999}),
        ("/test_program", {"tests": "\ud800"}),
        ("/test_program", {"tests": ["assert True"] * 101}),
        ("/test_program", {"tests": ["assert add("]}),
        ("/test_program", {"tests": [5, "assert add(1, 1) == 2"]}),
        ("/test_program", {"tests": ASSERTS, "max_execution_time": 0}),
        ("/test_program", {"tests": ASSERTS, "program": None}),
        ("/test_program_stdio", {"tests": ASSERTS}),
        ("/test_program_stdio", {"tests": [{"input": "1"}]}),
        ("/test_program_stdio", {"tests": [{"input": 1, "output": 2}]}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_are_no_tests_is_told_so(bench: Bench, path: str, fields: dict[str, Any]) -> None:
    status, _, text = bench.told(path, {"program": ADD} | fields, scorer="code")
    assert status in (413, 422), text


def test_a_scorer_that_knows_no_tests_is_told_so(bench: Bench) -> None:
    status, _, text = bench.told("/test_program", {"program": ADD, "tests": ASSERTS})
    assert (status, "does not say which of 3 tests passed" in text) == (422, True)


@pytest.mark.parametrize(
    "program", ["x = 1", "s = '''\n```\nx\n```\n'''", "s = '````'\n~~~", "```python\nprint(1)\n```", "x = 1\n"]
)
def test_a_program_comes_out_of_its_fence_as_it_went_in(program: str) -> None:
    assert extract(fenced(program, "python"), frozenset({"python"})).source == f"{program}\n"

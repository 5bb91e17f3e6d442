"""A judge behind a real HTTP server that is down, refuses or answers prose; and what failed is judged again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engines.stub_server import Asked, Reply, StubServer

from adjudge.cli import exits
from adjudge.cli.main import main
from adjudge.data_pipelines.label import JobError, LabelConfig, LabelReport, run_label
from adjudge.io.jobs.journal import partial_of
from adjudge.protocol import Cost

Script = Callable[[Asked], Reply]

REFUSED = "max_tokens is too large: 2048. This model supports at most 16 completion tokens"


def said(text: str) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
    return Reply(body={"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})


def answering(reply: Callable[[str], Reply]) -> Script:
    """A server of one model; `reply` answers the last message of a chat."""

    def script(asked: Asked) -> Reply:
        if asked.path.endswith("/models"):
            return Reply(body={"object": "list", "data": [{"id": "m", "object": "model"}]})
        return reply(asked.body["messages"][-1]["content"])

    return script


def verdict(prompt: str) -> Reply:
    form = re.findall(r"^Verdict (\w+): ANSWER", prompt, re.MULTILINE)
    return said(f"Fine.\nVerdict {form[-1]}: 10")


def refuse(prompt: str) -> Reply:
    return Reply(status=400, body={"error": {"message": REFUSED, "type": "invalid_request_error", "code": 400}})


def prose(prompt: str) -> Reply:
    return said("I like this answer.")


def rows(folder: Path, count: int) -> str:
    path = folder / "in.jsonl"
    lines = [
        {"prompt": f"Say {n}.", "response": f"Here is number {n}.", "reference": f"number {n}"} for n in range(count)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if not path.exists() or path.read_text() != text:  # a file that changed is another input
        path.write_text(text)
    return str(path)


def judge_at(server: StubServer) -> str:
    return json.dumps({"judge": {"engine": {"openai": {"model": "m", "base_url": server.url, "attempts": 1}}}})


def label(folder: Path, count: int, server: StubServer, **options: Any) -> LabelReport:
    given = {"batch_size": 16, "in_flight": 1, "scorer": judge_at(server), **options}
    return run_label(LabelConfig(input=rows(folder, count), output=str(folder / "out.jsonl"), **given))


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]


def asked_of(server: StubServer) -> int:
    return sum(path.endswith("/chat/completions") for path in server.paths())


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (refuse, rf"engine_error \(status 400: {re.escape(REFUSED)}\)"),
        (prose, r"judge_unparsable \(no verdict in the form that was asked for; .*: 'I like this answer.'\)"),
        (None, r"engine_unavailable \(no answer .*"),
    ],
)
def test_a_judge_that_judges_nothing_stops_the_job_with_its_own_words(
    tmp_path: Path, reply: Callable[[str], Reply] | None, told: str
) -> None:
    with StubServer(answering(reply or verdict)) as server:
        if reply is None:
            server.down()
        with pytest.raises(JobError, match=f"none of the first 32 samples: {told}.* make the same call again"):
            label(tmp_path, 200, server)
        each = 2 if reply is prose else 1  # asked again, for the verdict alone
        assert asked_of(server) <= 64 * each, "some batches were under way"
        assert not (tmp_path / "out.jsonl").exists()
        if reply is None:
            server.up()
        server.script = answering(verdict)
        report = label(tmp_path, 200, server)
    assert (report.scored, report.failed, report.resumed_rows) == (200, 0, 0), "nothing of the failures was kept"
    assert report.cost == Cost(seconds=report.cost.seconds, prompt_tokens=200 * 50, completion_tokens=200 * 7)


def test_a_judge_that_stops_judging_stops_the_job_behind_the_last_number(tmp_path: Path) -> None:
    broken = answering(
        lambda prompt: verdict(prompt) if re.search(r"number ([0-9]|[1-3][0-9])\.", prompt) else refuse("")
    )
    with StubServer(broken) as server:
        with pytest.raises(
            JobError, match=r"none of the last 64 samples: engine_error .*goes on behind what was judged"
        ):
            label(tmp_path, 200, server, fail_on=64)
        server.script = answering(verdict)
        report = label(tmp_path, 200, server)
    # Numbers 0 to 39 are in the first three batches of 16; of the third, eight were refused and kept as they are.
    assert (report.resumed_rows, report.scored, report.failed) == (48, 192, 8)
    assert report.errors == {("judge", "failed", "engine_error"): f"status 400: {REFUSED}"}


def test_fail_on_0_goes_through_and_a_few_rows_are_never_too_many(tmp_path: Path) -> None:
    with StubServer(answering(refuse)) as server:
        assert label(tmp_path, 100, server, fail_on=0).failed == 100
        assert label(tmp_path, 31, server, overwrite=True).failed == 31
    assert {record["reason"] for record in records(tmp_path)} == {"engine_error"}


def flaky(prompt: str) -> Reply:
    """Refuses every fifth sample."""
    found = re.findall(r"number (\d+)\.", prompt)
    return refuse(prompt) if int(found[-1]) % 5 == 0 else verdict(prompt)


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "parquet", ""])
@pytest.mark.parametrize("keep", [True, False])
def test_what_failed_is_judged_again_and_the_rest_is_kept(tmp_path: Path, suffix: str, keep: bool) -> None:
    with StubServer(answering(verdict)) as server:
        options: dict[str, Any] = {"keep_columns": keep, "scorer": judge_at(server)}
        whole, out = tmp_path / f"whole.{suffix}".rstrip("."), tmp_path / f"out.{suffix}".rstrip(".")
        source = rows(tmp_path, 50)
        run_label(LabelConfig(input=source, output=str(whole), **options))
        server.script = answering(flaky)
        assert run_label(LabelConfig(input=source, output=str(out), **options)).failed == 10
        before = read_all(out)
        again = LabelConfig(input=source, output=str(out), retry_failed=True, **options)
        assert run_label(again).failed == 10, "the server is as it was"
        assert read_all(out) == before
        server.script, count = answering(verdict), asked_of(server)
        report = run_label(again)
        assert asked_of(server) == count + 10
    assert (report.rows, report.scored, report.failed) == (50, 50, 0)
    assert read_all(out) == read_all(whole)
    assert not partial_of(out).exists()


def read_all(path: Path) -> dict[str, bytes]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {file.name if path.is_dir() else "": file.read_bytes() for file in files}


def test_a_stopped_job_goes_on_and_then_judges_again_what_failed(tmp_path: Path) -> None:
    stops = answering(lambda prompt: flaky(prompt) if re.search(r"number ([0-9]|[1-3][0-9])\.", prompt) else refuse(""))
    with StubServer(stops) as server:
        with pytest.raises(JobError):
            label(tmp_path, 100, server, fail_on=40)
        server.script = answering(verdict)
        report = label(tmp_path, 100, server, retry_failed=True)
    assert (report.rows, report.scored, report.failed) == (100, 100, 0)


def test_of_several_scorers_only_the_one_that_failed_is_asked_again(tmp_path: Path) -> None:
    options: dict[str, Any] = {"unless": ("judge=exact",), "doubt": ("wrong",)}
    with StubServer(answering(flaky)) as server:
        options["scorer"] = ("exact", f"judge={judge_at(server)}")
        label(tmp_path, 20, server, **options)
        before = records(tmp_path)
        assert [record["settled_by"] for record in before[:3]] == [None, "judge", "judge"]
        server.script, count = answering(verdict), asked_of(server)
        report = label(tmp_path, 20, server, retry_failed=True, **options)
        assert asked_of(server) == count + 4
    after = records(tmp_path)
    assert [old == new for old, new in zip(before, after, strict=True)] == [n % 5 != 0 for n in range(20)]
    assert (report.by_scorer["judge"].failed, report.by_scorer["exact"].scored) == (0, 20)
    assert after[0]["scores"]["exact"] == before[0]["scores"]["exact"]
    assert after[0]["settled_by"] == "judge"


def test_an_output_of_other_rows_or_scorers_is_refused_and_left_alone(tmp_path: Path) -> None:
    with StubServer(answering(flaky)) as server:
        label(tmp_path, 20, server)
        before = (tmp_path / "out.jsonl").read_bytes()
        with pytest.raises(ValueError, match="holds the scores of judge, and the call is for exact"):
            label(tmp_path, 20, server, retry_failed=True, scorer="exact")
        with pytest.raises(JobError, match="is not of these rows: where row 20, id '20' should stand it has nothing"):
            label(tmp_path, 30, server, retry_failed=True)
        source = Path(rows(tmp_path, 20))
        source.write_text(source.read_text().replace("number 3.", "number 33."))
        config = LabelConfig(input=str(source), output=str(tmp_path / "out.jsonl"), scorer=judge_at(server))
        with pytest.raises(
            JobError, match=r"row 3, id '3' should stand it has row 3, id '3', or its prompt or response has changed"
        ):
            run_label(LabelConfig(**{**vars(config), "retry_failed": True, "restart": True}))
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_the_end_of_a_job_says_what_the_server_said_and_what_it_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StubServer(answering(flaky)) as server:
        command = ["label", rows(tmp_path, 400), str(tmp_path / "out.jsonl"), "--scorer", judge_at(server)]
        assert main([*command, "--limit", "100"]) == exits.FOUND
        told = capsys.readouterr().out
        assert main([*command, "--limit", "100", "--json", "--overwrite"]) == exits.FOUND
        data = json.loads(capsys.readouterr().out)
    assert "status 400: max_tokens is too large" in told
    assert "--retry-failed" in told
    assert re.search(r"judge +[\d.]+ +4000 +560", told), told
    whole = re.search(
        r"All of about (\d+) rows would take about .*, ([\d,]+) prompt and ([\d,]+) completion tokens", told
    )
    assert whole is not None
    assert 380 <= int(whole[1]) <= 430, "estimated from the bytes"
    assert data["cost"]["prompt_tokens"] == 4000
    assert data["whole_input"]["cost"]["completion_tokens"] == pytest.approx(
        560 * data["whole_input"]["rows"] / 100, 0.01
    )
    assert data["counts"][1]["error"] == f"status 400: {REFUSED}"

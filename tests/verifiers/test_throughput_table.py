"""The table of `benchmarks.verifiers`: every verifier has a row, and a row says what was seen and nothing else."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

import pytest
from benchmarks.verifier_peers import Peer
from benchmarks.verifier_rows import LEFT_OUT, Row, shipped
from benchmarks.verifiers import ALL, Line, Options, calls_of, main, measured, percentile

from adjudge.protocol import Sample, Score, Verifier
from adjudge.scoring.builtin import BUILTIN

QUICK = Options(rounds=1, seconds=0.0)


def seen(row: Row, options: Options = QUICK) -> Line:
    with asyncio.Runner() as runner:
        return measured(row, options, runner)


class Broken(Verifier):
    """Never judges; the reference is not looked at."""

    name: ClassVar[str] = "broken"

    def verify(self, sample: Sample) -> Score:
        return Score.failed("engine_unavailable", error="there is no program")


def test_every_verifier_of_the_registry_has_a_row() -> None:
    verifiers = {name for name, home in BUILTIN.items() if home.startswith("adjudge.verifiers.")}
    assert set(LEFT_OUT) <= verifiers
    assert len({row.name for row in ALL}) == len(ALL)
    named = {name for row in ALL for name in (row.name.partition(",")[0], row.spec)}
    assert verifiers <= named | set(LEFT_OUT)


def test_a_verifier_without_samples_says_so() -> None:
    assert "no samples" in seen(Row(name="exact", spec="exact", make=list)).problem


def test_a_peer_is_compared_with_on_the_same_samples() -> None:
    peer = Peer(name="a peer", make=lambda: lambda sample: "o" in str(sample.response))
    samples = [Sample(prompt="", response=text, reference="Oslo") for text in ("Oslo", "Oslo", "Rome", "Bern")]
    line = seen(Row(name="exact", spec="exact", make=lambda: samples, peer=peer))
    assert (line.samples, line.peer, line.same) == (4, "a peer", 0.75), "of the wrong ones, Rome has an o"
    assert line.rate is not None
    assert line.rate > 0
    assert line.p95_ms is not None
    assert line.peer_rate is not None


def test_what_a_peer_only_computes_is_not_compared() -> None:
    line = seen(
        Row(name="exact", spec="exact", make=shipped("short"), peer=Peer(name="x", make=lambda: lambda _: None))
    )
    assert line.peer_rate is not None
    assert line.same is None


@pytest.mark.parametrize("lacks", [{"package": "no-such-package"}, {"program": "no-such-program"}])
def test_a_peer_that_is_not_installed_is_named(lacks: dict[str, str]) -> None:
    def make() -> None:
        raise AssertionError("it must not be made")

    line = seen(Row(name="exact", spec="exact", make=shipped("short"), peer=Peer(name="x", make=make, **lacks)))  # type: ignore[arg-type]
    assert line.rate is not None
    assert line.peer_rate is None
    assert "no-such-p" in line.problem


def test_a_verifier_that_does_not_judge_has_no_rate() -> None:
    line = seen(Row(name="broken", spec=Broken, make=shipped("short")))
    assert line.rate is None
    assert line.problem == "20 of 20 failed: engine_unavailable there is no program"


def test_a_verifier_that_cannot_be_made_says_why() -> None:
    line = seen(Row(name="regex", spec="regex", options={"pattern": "("}, make=shipped("short")))
    assert line.rate is None
    assert "pattern" in line.problem


def test_a_group_is_one_call() -> None:
    samples = [
        Sample(prompt="", response=text, group=group) for text, group in zip("abcd", ["", "", "g", "g"], strict=True)
    ]
    assert [len(call) for call in calls_of(samples)] == [1, 1, 2]


def test_a_percentile_is_a_value_that_was_seen() -> None:
    assert percentile([float(value) for value in range(100, 0, -1)]) == 96.0
    assert percentile([7.0]) == 7.0


def test_json_and_table_hold_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    main(Options(only=("format", "length"), rounds=1, seconds=0.0, json=True))
    found = json.loads(capsys.readouterr().out)
    main(Options(only=("format", "length"), rounds=1, seconds=0.0))
    table = [line.split(" | ")[0].strip("| ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row["verifier"] for row in found] == table == ["format", "length"]
    assert all(row["rate"] > 0 and not row["problem"] for row in found)


def test_a_name_that_begins_no_row_is_refused() -> None:
    with pytest.raises(SystemExit, match="no row begins with 'exakt'"):
        main(Options(only=("exakt",)))

"""Benches recorded from reference designs, end to end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from adjudge.data_pipelines.tasks.bench_designs import Bench, Design
from adjudge.data_pipelines.tasks.config import TestbenchesConfig as Config
from adjudge.data_pipelines.tasks.testbenches import Trials, make_testbenches
from adjudge.io.jobs.maker import DroppedError
from adjudge.io.jobs.report import JobReport
from adjudge.protocol import Sample
from adjudge.scoring import registry
from adjudge.scoring.api import score_batch

pytestmark = pytest.mark.usefixtures("icarus")

ADDER = "module RefModule (input [3:0] a, input [3:0] b, output [4:0] s); assign s = a + b; endmodule"
COUNTER = """module RefModule (input clk, input rst, input [1:0] mode, output reg [3:0] q);
  always @(posedge clk) begin
    if (rst)
      q <= 0;
    else if (mode == 2'b11)
      q <= q - 1;
    else
      q <= q + 1;
  end
endmodule"""
RARE = COUNTER.replace("input [1:0] mode", "input [15:0] mode").replace("2'b11", "16'd777")
SHORT: dict[str, Any] = {"effort": 16, "mutants": 10, "min_killed": 0.0}
SILENT = "module RefModule (input a, output y); endmodule"


def job(folder: Path, rows: list[Any], **options: Any) -> tuple[JobReport, list[dict[str, Any]]]:
    source, output = folder / "designs.jsonl", folder / "benches.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = Config(
        **{"input": str(source), "output": str(output), "coverage": 0.0, "mutants": 3, "overwrite": True, **options}
    )
    report = make_testbenches(config)
    return report, [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def verdicts(reference: Any, *designs: str) -> list[tuple[float | None, str]]:
    samples = [Sample(prompt="", response=f"```verilog\n{design}\n```", reference=reference) for design in designs]
    return [(score.value, score.reason) for score in score_batch(samples, registry.load("verilog"))]


def as_top(design: str) -> str:
    return design.replace("RefModule", "TopModule")


def test_a_made_bench_is_a_reference_of_the_verilog_scorer(tmp_path: Path) -> None:
    rows = [
        {"id": "adder", "prompt": "Add.", "reference": ADDER, "top": "TopModule"},
        {"id": "counter", "prompt": "Count.", "reference": COUNTER, "top": "TopModule"},
    ]
    report, made = job(tmp_path, rows)
    assert (report.rows, report.made, report.dropped) == (2, 2, {})
    assert [row["id"] for row in made] == ["adder", "counter"]
    assert [row["killed"] for row in made] == [row["mutants"] for row in made]
    adder, counter = (row["reference"] for row in made)
    good, wrong = as_top(ADDER.replace("a + b", "b + a")), as_top(ADDER.replace("a + b", "a | b"))
    forged = wrong.replace(
        "endmodule", 'initial begin $display("Mismatches: 0 in 2048 samples"); $finish; end endmodule'
    )
    assert verdicts(adder, as_top(ADDER), good, wrong, forged) == [
        (1.0, ""),
        (1.0, ""),
        (0.0, "wrong"),
        (0.0, "tampering"),
    ]
    late = as_top(COUNTER.replace("2'b11", "2'b10"))
    unreset = as_top(COUNTER.replace("if (rst)", "if (1'b0)"))
    assert verdicts(counter, as_top(COUNTER), late, unreset) == [(1.0, ""), (0.0, "wrong"), (0.0, "wrong")]


@pytest.mark.usefixtures("verilator")
def test_lines_that_no_row_reaches_are_said(tmp_path: Path) -> None:
    dead = COUNTER.replace("mode == 2'b11", "mode == 2'b11 && q == 4'd7 && rst")
    _, (made,) = job(tmp_path, [{"reference": dead}], coverage=0.9, rounds=1)
    assert made["missed_lines"] == [5, 6]  # the branch and the condition that leads to it; line 8 is reached
    assert 0.5 < made["coverage"] < 0.9
    assert (made["id"], made["top"], made["rounds"], made["coverage_note"]) == ("0", "RefModule", 1, None)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is made in a round that lets wrong designs pass."""
    _, (made,) = job(tmp_path_factory.mktemp("short"), [{"reference": RARE}], rounds=1, **SHORT)
    return made


def test_a_bench_that_lets_wrong_designs_pass_grows(tmp_path: Path, short: dict[str, Any]) -> None:
    _, (grown,) = job(tmp_path, [{"reference": RARE}], effort=16, rounds=4, mutants=10)
    assert short["killed"] < short["mutants"] == grown["mutants"] == grown["killed"]
    assert grown["rounds"] > 1
    assert grown["checks"] > short["checks"]


def test_a_larger_bench_that_runs_into_the_limits_does_not_cost_the_smaller_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: dict[str, Any]
) -> None:
    run, most = Trials.run, max(map(len, short["reference"]["files"].values()))

    async def limited(trials: Trials, bench: Bench, design: Design, **given: Any) -> Mapping[str, Any]:
        if any(len(text) > 2 * most for text in bench.files.values()):
            raise DroppedError("reference_too_slow", "it runs too long")
        return await run(trials, bench, design, **given)

    monkeypatch.setattr(Trials, "run", limited)
    assert job(tmp_path, [{"reference": RARE}], rounds=3, **SHORT)[1] == [short]


def test_a_design_of_which_no_line_is_counted_has_no_coverage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Trials.run

    async def counted(
        trials: Trials, bench: Bench, design: Design, *, outputs: Sequence[str] = (), coverage: bool = False
    ) -> Mapping[str, Any]:
        done = await run(trials, bench, design, outputs=outputs)
        return {**done, "coverage": {"reached": 0, "missed": []}} if coverage else done

    monkeypatch.setattr(Trials, "run", counted)
    _, (made,) = job(tmp_path, [{"reference": ADDER}], coverage=0.9)
    assert (made["coverage"], made["missed_lines"], made["rounds"]) == (None, None, 1)
    assert "no line" in made["coverage_note"]


def test_rows_that_come_to_nothing_are_counted_by_reason(tmp_path: Path) -> None:
    rows = [
        {"reference": None},
        {"reference": "module A ("},
        {"reference": "module A (inout a, output y); endmodule"},
        {"reference": SILENT},
        {"reference": "module A (input a, output y); initial forever begin end endmodule"},
        {"reference": "module A (input a, output y); missing m (a, y); endmodule"},
        {"reference": "module A (input a, output y); B b (a, y); endmodule module B (input a, output y); "
         "buf g (y, a); endmodule"},
        {"reference": ADDER, "wrong": [as_top(ADDER)], "top": "TopModule"},
        {"reference": ADDER, "wrong": [7]},
        {"reference": ADDER, "files": {"../escape": ""}},
        {"reference": ADDER, "prompt": 7},
    ]  # fmt: skip
    report, made = job(tmp_path, rows, wrong_column="wrong", seconds=2.0, mutants=2, min_killed=0.5)
    assert made == []
    assert report.dropped == {
        "no_design": 1,
        "bad_design": 1,
        "inout_ports": 1,
        "outputs_never_known": 1,
        "design_does_not_run": 1,
        "design_does_not_compile": 1,
        "nothing_to_tell_apart": 1,
        "does_not_separate": 1,
        "bad_wrong_designs": 1,
        "bad_files": 1,
        "bad_prompt": 1,
    }


def test_designs_called_wrong_must_fail(tmp_path: Path) -> None:
    wrong = [as_top(ADDER.replace("+", "-")), "no design at all", f"```verilog\n{as_top(SILENT)}\n```"]
    _, (made,) = job(tmp_path, [{"reference": ADDER, "top": "TopModule", "bad": wrong}], wrong_column="bad", mutants=0)
    assert (made["wrong"], made["wrong_failed"], made["mutants"]) == (3, 3, 0)


def test_the_output_does_not_depend_on_how_many_are_made_at_once(tmp_path: Path) -> None:
    rows = [{"reference": ADDER.replace("a + b", f"a + b + {number}")} for number in range(2)]
    found = []
    for in_flight in (1, 4):
        job(tmp_path, rows, in_flight=in_flight, mutants=2)
        found.append((tmp_path / "benches.jsonl").read_bytes())
    assert found[0] == found[1]


def test_files_that_a_design_reads_travel_with_it(tmp_path: Path) -> None:
    table = """module Table (input [1:0] at, output [3:0] y);
      reg [3:0] held [0:3];
      initial $readmemh("table.hex", held);
      assign y = held[at];
    endmodule"""
    _, (made,) = job(tmp_path, [{"reference": table, "files": {"table.hex": "3\n1\n4\n5\n"}}])
    other = table.replace("held[at]", "held[at] ^ 4'd1")
    assert verdicts(made["reference"], table, other) == [(1.0, ""), (0.0, "wrong")]


def test_what_the_reference_leaves_unknown_is_not_compared(tmp_path: Path) -> None:
    late = """module Late (input clk, input d, input on, output reg q, output y);
      always @(posedge clk) q <= d;
      assign y = on ? d : 1'bz;
    endmodule"""
    _, (made,) = job(tmp_path, [{"reference": late}])
    known = late.replace("output reg q", "output reg q = 1").replace("1'bz", "1'b0")
    unknown = late.replace("on ? d : 1'bz", "on ? 1'bx : 1'bz")
    assert verdicts(made["reference"], known, unknown) == [(1.0, ""), (0.0, "wrong")]


def test_a_column_that_is_not_there_is_named_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--design-column 'referense'.*Did you mean 'reference'"):
        job(tmp_path, [{"reference": ADDER}], design_column="referense")
    for name in ("wrong", "top", "files", "prompt", "id"):
        with pytest.raises(ValueError, match=f"--{name}-column 'bad'"):
            job(tmp_path, [{"reference": ADDER}], **{f"{name}_column": "bad"})

"""Benches that a model writes: what it may get wrong, how often, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.scripted import Said, ScriptedEngine, field_of, text_of

from adjudge.data_pipelines.tasks.bench_designs import Bench, Design
from adjudge.data_pipelines.tasks.config import TestbenchesConfig as Config
from adjudge.data_pipelines.tasks.testbenches import Trials, make_testbenches
from adjudge.engines.interface import Completion, Fault, Prompt
from adjudge.io.errors import JobError
from adjudge.io.jobs.maker import DroppedError
from adjudge.io.jobs.report import JobReport

pytestmark = pytest.mark.usefixtures("icarus")

DESIGN = """module Max (input [3:0] a, input [3:0] b, output reg [3:0] y);
  always @(*) begin
    if (a > b)
      y = a;
    else
      y = b;
  end
endmodule"""


def bench(*checks: tuple[int, int, int], end: str = "$finish;") -> str:
    """A bench with these values of a, b and y."""
    body = "\n".join(f"    a = {a}; b = {b}; #1 check({number}, {y});" for number, (a, b, y) in enumerate(checks))
    return f"""module tb;
  reg [3:0] a, b; wire [3:0] y; integer errors = 0, samples = 0;
  Max dut (.a(a), .b(b), .y(y));
  task check(input integer number, input [3:0] wanted);
    begin
      samples = samples + 1;
      if (y !== wanted) begin
        errors = errors + 1;
        $display("case %0d: y expected %0d, got %0d", number, wanted, y);
      end
    end
  endtask
  initial begin
{body}
    $display("Mismatches: %0d in %0d samples", errors, samples);
    {end}
  end
endmodule"""


GOOD = bench((3, 5, 5), (5, 3, 5), (9, 8, 9), (8, 9, 9), (0, 15, 15), (7, 7, 7), (1, 0, 1))
OFF = bench((3, 5, 5), (5, 3, 3), (9, 8, 9), (8, 9, 9))
BROKEN = GOOD.replace("samples = samples + 1;", "samples = samples + ;")
ENDLESS = bench((3, 5, 5), end="forever #1;")
CHEAT = """module tb; reg [3:0] a, b; wire [3:0] y; Max dut (.a(a), .b(b), .y(y));
  initial begin $display("Mismatches: 0 in 5 samples"); $finish; end
endmodule"""
NARROW = bench((5, 3, 5), (9, 8, 9), (15, 1, 15))


def fenced(source: str) -> str:
    return f"Here it is.\n```verilog\n{source}\n```\n"


def model(first: Said, *repairs: Said) -> ScriptedEngine:
    """A model that plans well, writes `first`, and then repairs."""
    left = list(repairs)

    def answers(prompt: Prompt, index: int) -> Said:
        text = text_of(prompt)
        if "Write the whole test bench again" in text:
            return left.pop(0)
        if "carries out these test cases" in text:
            return first
        return '["the larger value", "equal values"]'

    return ScriptedEngine(answers)


def job(folder: Path, engine: ScriptedEngine, **options: Any) -> tuple[JobReport, list[dict[str, Any]]]:
    source, output = folder / "designs.jsonl", folder / "benches.jsonl"
    source.write_text(json.dumps({"prompt": "The larger of a and b.", "reference": DESIGN}) + "\n", encoding="utf-8")
    config = Config(
        **{
            "input": str(source),
            "output": str(output),
            "coverage": 0.0,
            "attempts": 1,
            "mutants": 5,
            "seconds": 3.0,
            **options,
        }
    )
    report = make_testbenches(config, engine=engine)
    return report, [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def test_a_good_bench_is_kept_as_the_model_wrote_it(tmp_path: Path) -> None:
    engine = model(fenced(GOOD))
    report, (made,) = job(tmp_path, engine)
    assert made["reference"]["testbench"].strip() == GOOD
    assert (made["writer"], made["checks"], made["rounds"]) == ("model", 7, 0)
    assert made["test_cases"] == ["the larger value", "equal values"]
    assert made["killed"] == made["mutants"] > 0
    assert report.counts["calls"] == 3
    assert report.cost.completion_tokens > 0
    assert "The larger of a and b." in field_of(engine.asked[0], "specification")
    assert "1. the larger value" in field_of(engine.asked[1], "points")


@pytest.mark.parametrize(
    ("first", "seen"),
    [
        (BROKEN, "syntax error"),
        (ENDLESS, "it ended by timeout"),
        (GOOD.replace('$display("Mismatches', '$display("Wrong'), "Wrong: 0 in 7 samples"),
        (OFF, "case 1: y expected 3, got 5"),
    ],
    ids=["syntax", "endless", "silent", "misaligned"],
)
def test_the_model_is_told_what_was_seen_and_repairs_it(tmp_path: Path, first: str, seen: str) -> None:
    engine = model(fenced(first), fenced(GOOD))
    _, (made,) = job(tmp_path, engine)
    assert made["reference"]["testbench"].strip() == GOOD
    assert made["rounds"] == 1
    assert seen in field_of(engine.asked[-1], "said")


@pytest.mark.parametrize(
    ("first", "repairs", "options", "reason"),
    [
        (fenced(BROKEN), [fenced(BROKEN)], {"compile_rounds": 1}, "bench_does_not_run"),
        (fenced(OFF), [fenced(OFF)] * 2, {"align_rounds": 2}, "misaligned"),
        (fenced(NARROW), [], {"min_killed": 1.0}, "does_not_separate"),
        (fenced(CHEAT), [], {}, "bench_judges_nobody"),
        (GOOD, [], {}, "testbench_unparsable"),
        (fenced(GOOD) + fenced(GOOD), [], {}, "testbench_unparsable"),
        (fenced(GOOD.replace("Max", "Min")), [], {}, "testbench_unparsable"),
        (fenced(GOOD + "\nmodule Max; endmodule"), [], {}, "testbench_unparsable"),
        (Completion(text=fenced(GOOD), finish_reason="length"), [], {}, "testbench_unparsable"),
        (fenced(OFF), ["I cannot."], {}, "repair_unparsable"),
        (Fault(reason="engine_error", detail="too long", too_long=True), [], {}, "prompt_too_long"),
        (Fault(reason="engine_error", detail="bad"), [], {}, "model_fault"),
    ],
)
def test_what_cannot_be_repaired_is_dropped_by_name(
    tmp_path: Path, first: Said, repairs: list[Said], options: dict[str, Any], reason: str
) -> None:
    report, made = job(tmp_path, model(first, *repairs), **options)
    assert made == []
    assert report.dropped == {reason: 1}
    assert report.counts["calls"] > 0


def test_missed_lines_are_shown_and_a_worse_repair_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def measured(trials: Trials, made: Bench, design: Design) -> Bench:
        return replace(made, coverage=0.75, missed=(6,))  # what Verilator says of it, 7 s later

    monkeypatch.setattr(Trials, "measured", measured)
    engine = model(fenced(NARROW), fenced(BROKEN))
    _, (made,) = job(tmp_path, engine, coverage=1.0, rounds=1, compile_rounds=0, min_killed=0.0)
    assert "line 6: y = b;" in field_of(engine.asked[-1], "said")
    assert made["reference"]["testbench"].strip() == NARROW
    assert (made["coverage"], made["missed_lines"], made["rounds"]) == (0.75, [6], 1)


def test_a_repair_that_cannot_be_tried_does_not_cost_the_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def measured(trials: Trials, made: Bench, design: Design) -> Bench:
        return replace(made, coverage=0.75, missed=(6,))

    run = Trials.run

    async def refuses(trials: Trials, bench: Bench, design: Design, **given: Any) -> Mapping[str, Any]:
        if bench.source.strip() == GOOD:
            raise DroppedError("bad_files", "no")
        return await run(trials, bench, design, **given)

    monkeypatch.setattr(Trials, "measured", measured)
    monkeypatch.setattr(Trials, "run", refuses)
    _, (made,) = job(tmp_path, model(fenced(NARROW), fenced(GOOD)), coverage=1.0, rounds=1, min_killed=0.0)
    assert made["reference"]["testbench"].strip() == NARROW


@pytest.mark.parametrize("reason", ["engine_unavailable", "engine_timeout", "engine_overloaded"])
def test_a_model_that_is_gone_stops_the_job(tmp_path: Path, reason: str) -> None:
    with pytest.raises(JobError, match=reason):
        job(tmp_path, model(Fault(reason=reason, detail="nobody answers")))


def test_a_model_needs_the_specification(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--prompt-column 'question'"):
        job(tmp_path, model(""), prompt_column="question")

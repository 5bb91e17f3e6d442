"""The scorer that runs a test bench and tells what came of it."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.verilog.simulation import SimulationVerifier

pytestmark = pytest.mark.usefixtures("icarus")

DESIGN = """module Next (input [3:0] a, output reg [3:0] y);
  always @* begin
    if (a == 12)
      y = 0;
    else
      y = a + 1;
  end
endmodule"""
BENCH = """module tb;
  reg [3:0] a; wire [3:0] y; integer file;
  Next dut (.a(a), .y(y));
  initial begin
    file = $fopen("seen.txt", "w");
    for (a = 0; a < 3; a = a + 1) begin #1 $fdisplay(file, "%b", y); end
    $fclose(file);
    $display("done");
    $finish;
  end
endmodule"""


def run(bench: str, seconds: float = 5.0, **reference: Any) -> Score:
    verifier = SimulationVerifier(seconds=seconds, output_mb=1)
    return verifier.verify(Sample(prompt="", response=bench, reference={"top": "tb", "design": DESIGN, **reference}))


def test_a_bench_that_ends_scores_1_and_brings_back_what_it_wrote() -> None:
    score = run(BENCH, outputs=["seen.txt", "other.txt"])
    assert (score.value, score.evidence["stage"], score.evidence["ending"]) == (1.0, "run", "exited")
    assert score.evidence["stdout"] == "done\n"
    assert score.evidence["outputs"] == {"seen.txt": "0001\n0010\n0011\n"}


def test_files_are_there_for_the_bench() -> None:
    bench = BENCH.replace('$display("done")', 'begin $readmemh("data.hex", held); $display("%h", held[1]); end')
    bench = bench.replace("integer file;", "integer file; reg [7:0] held [0:1];")
    assert run(bench, files={"data.hex": "3\nc4\n"}).evidence["stdout"] == "c4\n"


@pytest.mark.usefixtures("verilator")
def test_coverage_names_the_lines_that_were_not_reached() -> None:
    assert run(BENCH, coverage=True).evidence["coverage"] == {"reached": 2, "missed": [3, 4]}


@pytest.mark.parametrize(
    ("bench", "stage", "ending"),
    [
        ("", "compile", "exited"),
        ("module tb; \ud800 endmodule", "compile", "exited"),
        (BENCH.replace("Next dut", "Last dut"), "compile", "exited"),
        (BENCH.replace("$finish;", "forever #1;"), "run", "timeout"),
        (BENCH.replace('$display("done")', 'forever $display("%0d", 32\'hffffffff)'), "run", "output"),
    ],
    ids=["empty", "no text", "no such module", "endless", "flood"],
)
def test_a_bench_that_does_not_end_scores_0(bench: str, stage: str, ending: str) -> None:
    score = run(bench, seconds=1.0)
    assert (score.value, score.evidence["stage"], score.evidence["ending"]) == (0.0, stage, ending)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (None, "NoneType"),
        ({}, "top is None"),
        ({"top": "two words"}, "'two words'"),
        ({"top": "tb", "desing": ""}, "'desing'"),
        ({"top": "tb", "design": 3}, "int"),
        ({"top": "tb", "files": {"a": 1}}, "names of files to their texts"),
        ({"top": "tb", "files": {"../a": ""}}, "'../a'"),
        ({"top": "tb", "files": {"bench.v": ""}}, "'bench.v'"),
        ({"top": "tb", "outputs": "a"}, "outputs is 'a'"),
        ({"top": "tb", "coverage": True}, "true needs a design"),
    ],
)
def test_a_reference_of_another_form_fails_and_says_why(reference: Any, said: str) -> None:
    sample = Sample(prompt="", response=BENCH, reference=reference)
    score = SimulationVerifier().verify(sample)
    assert (score.status, score.reason) == ("failed", "gold_unparsable")
    assert said in score.evidence["error"]
    if reference is not None:
        with pytest.raises(ValueError, match="simulation reference"):
            SimulationVerifier().validate(sample)


def test_options_are_checked() -> None:
    wrong: list[dict[str, Any]] = [{"seconds": 0.0}, {"memory_mb": 1}, {"output_mb": 0}, {"isolation": "hope"}]
    for options in wrong:
        with pytest.raises(ValueError, match=f"simulation option {next(iter(options))}="):
            SimulationVerifier(**options)


def test_it_keeps_the_rules_for_scorers() -> None:
    samples = [Sample(prompt="", response=text, reference={"top": "tb", "design": DESIGN}) for text in (BENCH, "no")]
    check_scorer(SimulationVerifier(seconds=5.0), samples).raise_for_failures()

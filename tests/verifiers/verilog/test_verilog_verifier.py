"""The Verilog verifier as a whole."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.sandbox import sandbox as sandboxes
from adjudge.sandbox.program import Program, RunLimits, RunResult
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.verilog import simulators
from adjudge.verifiers.verilog.verifier import VerilogVerifier

ADDER = "module {name} (input [7:0] a, input [7:0] b, output [8:0] s); assign s = {value}; endmodule"
REFERENCE = {"reference": ADDER.format(name="RefModule", value="a + b"), "top": "TopModule"}
BENCH = """module tb;
  reg [7:0] a, b; wire [8:0] s; integer i, error = 0;
  TopModule dut (.a(a), .b(b), .s(s));
  initial begin
    for (i = 0; i < 20; i = i + 1) begin
      a = i; b = 3 * i; #1;
      if (s != 4 * i) error = error + 1;
    end
    if (error == 0) $display("Passed"); else $display("%0d failures", error);
    $finish;
  end
endmodule
"""
BOTH = {**REFERENCE, "testbench": BENCH}
CLOCKED = "module {name} (input clk, input d, output reg q); always @(posedge clk) q <= d; endmodule"

pytestmark = pytest.mark.usefixtures("icarus")


def adder(value: str) -> str:
    return ADDER.format(name="TopModule", value=value)


def judge(response: str, reference: Any = REFERENCE, finish_reason: str | None = None, **options: Any) -> Score:
    verifier = VerilogVerifier(**{"seconds": 10.0, **options})
    return verifier.verify(Sample(prompt="", response=response, reference=reference, finish_reason=finish_reason))


@pytest.mark.parametrize("reference", [REFERENCE, {"testbench": BENCH}, BOTH], ids=["design", "bench", "both"])
def test_right_and_wrong(reference: Any) -> None:
    assert judge(adder("b + a"), reference).value == 1.0
    wrong = judge(adder("a - b"), reference)
    assert (wrong.value, wrong.reason) == (0.0, "wrong")


def test_a_group_of_responses_compiles_the_reference_once(monkeypatch: pytest.MonkeyPatch) -> None:
    box, commands = sandboxes.sandbox("bubblewrap"), []
    ran = box.run

    def recorded(program: Program, limits: RunLimits) -> RunResult:
        commands.append((program.command[0], "design.v" in program.files))
        return ran(program, limits)

    monkeypatch.setattr(box, "run", recorded)
    reference = {"reference": CLOCKED.format(name="Compiled"), "top": "TopModule"}
    response = CLOCKED.format(name="TopModule")
    first, second = (judge(text, reference, formal="off") for text in (response, f"{response} // again"))
    assert (first.value, second.value) == (1.0, 1.0)
    assert first.evidence["rows"] != second.evidence["rows"]  # the rows differ, and with them their number
    assert commands == [("sh", True), *[("sh", True), ("vvp", False)] * 2]


def test_evidence_shows_the_first_row_that_differs() -> None:
    evidence = judge(adder("a == 137 ? 0 : a + b")).evidence
    assert evidence["inputs"]["a"] == "89"
    total = 137 + int(evidence["inputs"]["b"], 16)
    assert (evidence["expected"], evidence["got"]) == (f"{total:09b}", "000000000")
    assert evidence["differing"] == ["s"]


@pytest.mark.parametrize(
    "reference",
    [
        pytest.param({"reference": "module a; wire"}, id="syntax"),
        pytest.param({"reference": "module a (input i); endmodule"}, id="no-outputs"),
        pytest.param({"reference": "module a (output q); endmodule"}, id="never-known"),
        pytest.param({"reference": "module a (output q); missing m (q); endmodule"}, id="does-not-elaborate"),
        pytest.param({"reference": "module a (inout q, output r); assign r = q; endmodule"}, id="inout"),
        pytest.param({**BOTH, "testbench": BENCH.replace("4 * i", "5 * i")}, id="bench-refuses-its-reference"),
        pytest.param({**BOTH, "testbench": BENCH.replace("s != 4 * i", "0")}, id="bench-accepts-anything"),
        pytest.param({**BOTH, "testbench": BENCH.replace("#1", "#1 $silly")}, id="bench-does-not-compile"),
        pytest.param({**REFERENCE, "clocks": ["clk"]}, id="no-such-clock"),
    ],
)
@pytest.mark.parametrize("response", ["", adder("a + b")], ids=["empty", "design"])
def test_a_bad_reference_judges_nobody(reference: Any, response: str) -> None:
    score = judge(response, reference)
    assert (score.value, score.status, score.reason) == (None, "failed", "gold_unparsable")
    assert score.evidence["error"]


def test_a_reference_that_never_ends_is_told_from_a_bad_one() -> None:
    endless = "module Ref (output reg q); initial while (1) q = 0; endmodule"
    hanging = BENCH.replace("#1;", "while (a == 5);")
    for reference in ({"reference": endless}, {**BOTH, "testbench": hanging}):
        score = judge("", reference, seconds=0.5)
        assert (score.value, score.reason) == (None, "gold_timeout")


ONE_BY_ONE = BENCH.replace("error = error + 1;", "error = error + 1; else $display({passed}); {otherwise}")
TESTS = {
    "got": ONE_BY_ONE.format(
        passed='"Test %0d passed", i', otherwise='if (s != 4 * i) $display("Test %0d: %d", i, s);'
    ),
    "silent": ONE_BY_ONE.format(passed='"Test %0d passed", i', otherwise=""),
}
VERDICT = 'if (error == 0) $display("Passed"); else $display("%0d failures", error);'
SUMMARIES = ('"Passed: %0d Failed: %0d", 20 - error, error', '"%0d / 20 tests passed", 20 - error')


@pytest.mark.parametrize(
    "bench",
    [
        *(pytest.param(text.replace(VERDICT, ""), id=name) for name, text in TESTS.items()),
        *(pytest.param(BENCH.replace(VERDICT, f"$display({text});"), id=text[1:4]) for text in SUMMARIES),
        pytest.param(BENCH.replace(VERDICT, 'if (error == 0) $display("%m passed");'), id="path"),
    ],
)
def test_every_test_of_a_bench_must_pass(bench: str) -> None:
    reference = {**REFERENCE, "testbench": bench}
    assert judge(adder("b + a"), reference).value == 1.0
    assert judge(adder("a == 19 ? 0 : a + b"), reference).value == 0.0
    assert judge(adder("0"), reference).value == 0.0
    if "%m" not in bench:
        alone = judge(adder("0"), {"testbench": bench})
        assert (alone.value, alone.reason) == (None, "gold_unparsable")
        assert "`pass` and `fail`" in alone.evidence["error"]


def test_a_bench_that_accepts_anything_can_be_used_on_request() -> None:
    reference = {**BOTH, "testbench": BENCH.replace("s != 4 * i", "0")}
    assert judge(adder("0"), reference, empty_bench="accept").value == 1.0


def test_both_checks_are_stricter_than_a_weak_bench() -> None:
    backdoor = adder("a > 19 ? 0 : a + b")
    assert judge(backdoor, BOTH).value == 1.0
    assert judge(backdoor, BOTH, check="both").value == 0.0
    assert judge(adder("b + a"), BOTH, check="both").value == 1.0
    assert judge(backdoor, BOTH, check="differential").value == 0.0


def test_a_bench_may_set_parameters_and_look_inside() -> None:
    bench = """module tb;
      reg [7:0] a = 1; wire [7:0] q; integer i, bad = 0;
      shift #(.N(8)) dut (.a(a), .q(q));
      initial begin
        for (i = 0; i < 7; i = i + 1) begin #1 if (dut.twice !== a << 1 || q !== a << 1) bad = 1; a = a << 1; end
        if (!bad) $display("pass"); else $display("fail");
      end
    endmodule"""
    design = "module shift #(parameter N = 2) (input [N-1:0] a, output [N-1:0] q);{}assign q = twice; endmodule"
    right, wrong = design.format("wire [N-1:0] twice = a << 1; "), design.format("wire [1:0] twice = a << 1; ")
    assert judge(right, {"reference": right, "testbench": bench}).value == 1.0
    assert judge(wrong, {"reference": right, "testbench": bench}).value == 0.0


@pytest.mark.parametrize(
    ("response", "credit", "value"),
    [
        pytest.param("module TopModule (", "staged", 0.0, id="syntax"),
        pytest.param("module TopModule (input a); endmodule", "staged", 0.1, id="ports"),
        pytest.param(adder("missing + a"), "staged", 0.1, id="elaborate"),
        pytest.param(adder("0"), "staged", 0.2, id="stuck"),
        pytest.param(adder("0"), "fraction", 0.0, id="stuck-fraction"),
        pytest.param(adder("a + b"), "staged", 1.0, id="right"),
        pytest.param(adder("a + b"), "fraction", 1.0, id="right-fraction"),
    ],
)
def test_partial_credit(response: str, credit: str, value: float) -> None:
    assert judge(response, credit=credit).value == pytest.approx(value, abs=0.02)


def test_a_share_of_the_checks_lies_between() -> None:
    score = judge(adder("b[0] ? 0 : a + b"), credit="fraction")
    assert score.value is not None
    assert 0.3 < score.value < 0.7
    staged = judge(adder("b[0] ? 0 : a + b"), credit="staged").value
    assert staged == pytest.approx(0.2 + 0.3 * score.value)


@pytest.mark.parametrize(
    ("response", "finish", "reason"),
    [
        ("<think>module TopModule", None, "unfinished_reasoning"),
        (adder("a + b"), "length", "truncated"),
        ("I cannot do that.", None, "no_answer"),
    ],
)
def test_what_is_not_answered_scores_nothing(response: str, finish: str | None, reason: str) -> None:
    score = judge(response, finish_reason=finish)
    assert (score.value, score.reason) == (0.0, reason)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"check": "all"}, "check='all'"),
        ({"effort": 1}, "effort=1"),
        ({"formal": "yes"}, "formal='yes'"),
        ({"credit": True}, "credit=True"),
        ({"stages": (0.5, 0.2, 0.6)}, "stages="),
        ({"stages": (0.1, 0.2, 1.0)}, "stages="),
        ({"seconds": 0}, "seconds=0"),
        ({"isolation": "docker"}, "isolation='docker'"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VerilogVerifier(**options)


def test_an_absent_tool_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    simulators.require.cache_clear()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match=r"iverilog is not installed.*apt-get install iverilog"):
        VerilogVerifier()
    simulators.require.cache_clear()


@pytest.mark.parametrize(
    ("options", "reference", "message"),
    [
        ({}, None, "has none"),
        ({}, 5, "is a int"),
        ({"check": "bench"}, REFERENCE, "has no testbench"),
        ({"formal": "refute"}, {"testbench": BENCH}, "has no design"),
    ],
)
@pytest.mark.usefixtures("yosys")
def test_a_mistake_is_told_before_any_work(options: dict[str, Any], reference: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VerilogVerifier(**options).validate(Sample(prompt="", response="", reference=reference))


def test_it_conforms() -> None:
    responses = (adder("a + b"), adder("a - b"), "no design")
    samples = [Sample(prompt="", response=text, reference=REFERENCE, id=str(at)) for at, text in enumerate(responses)]
    report = check_scorer(VerilogVerifier(effort=300), samples)
    report.raise_for_failures()
    assert [check for check in report.checks if check.outcome == "skipped"] == []


def test_the_stimulus_depends_on_the_response() -> None:
    verifier = VerilogVerifier()
    first = verifier.verify(Sample(prompt="", response=adder("0"), reference=REFERENCE))
    again = verifier.verify(Sample(prompt="", response=adder("0"), reference=REFERENCE))
    other = verifier.verify(Sample(prompt="", response=adder("0") + " ", reference=REFERENCE))
    assert first == again
    assert first.evidence["inputs"] != other.evidence["inputs"]
    assert dataclasses.replace(verifier, seed=1).fingerprint != verifier.fingerprint


def test_what_icarus_lacks_is_rewritten_as_plain_verilog() -> None:
    body = "typedef enum logic [1:0] {{A, B, C, D}} t; t s; assign s = t'(a {} 1); assign q = s; endmodule"
    head = "module {} (input [1:0] a, output [1:0] q); "
    reference = {"reference": head.format("Ref") + body.format("+"), "top": "TopModule"}
    assert judge(head.format("TopModule") + body.format("+"), reference).value == 1.0
    assert judge(head.format("TopModule") + body.format("-"), reference).value == 0.0
    plain = {"reference": "module Ref (input [1:0] a, output [1:0] q); assign q = a + 1; endmodule", "top": "TopModule"}
    assert judge(head.format("TopModule") + body.format("+"), plain).value == 1.0
    assert judge(head.format("TopModule") + body.format("-"), plain).value == 0.0

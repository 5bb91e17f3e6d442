"""Test benches of users: how they are rewritten, and how what they print is read."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.verilog.bench_run import Rule, keyed_lines, learn_rule, read_verdict, unread_line
from adjudge.verifiers.verilog.reference import read_reference
from adjudge.verifiers.verilog.rewriting import key_bench

BENCH = """module tb;
  reg clk; wire q; // top dut tb in a comment
  top dut (.clk(clk), .q(q));
  helper help (.clk, .*);
  task check; $display("q=%b\\n done", q); endtask
  initial begin : main
    check; $write; $monitor($time, " %b", dut.state);
    $display("check(dut)"); $fatal(1, "bad");
  end
endmodule
module helper (input clk, input q); endmodule
"""


def test_a_bench_is_rewritten() -> None:
    bench = key_bench(read_reference({"testbench": BENCH}), "s1")
    assert bench.top == "s1_tb"
    assert not bench.overrides
    assert (
        bench.source
        == """module s1_tb;
  reg clk; wire q; // top dut tb in a comment
  top s1_dut (.clk(clk), .q(q));
  s1_helper s1_help (.clk, .*);
  task s1_check; $display("<s1>", "q=%b\\n<s1> done", q); endtask
  initial begin : s1_main
    s1_check; $write; $monitor("<s1>", $time, " %b", s1_dut.s1_inner.state);
    $display("<s1>", "check(dut)"); $fatal(1, "bad");
  end
endmodule
module s1_helper (input clk, input q); endmodule
"""
    )


def test_a_port_named_like_a_task_keeps_its_name() -> None:
    source = "module tb; task go; endtask wire w; top dut (.go(w), .q(w)); initial go; endmodule"
    rewritten = key_bench(read_reference({"testbench": source}), "s").source
    assert rewritten == "module s_tb; task s_go; endtask wire w; top s_dut (.go(w), .q(w)); initial s_go; endmodule"


@pytest.mark.parametrize(
    ("bench", "message"),
    [
        ("module tb; endmodule", "top is ''"),
        ("module a; top t (); endmodule module b; top t (); endmodule", "top modules"),
        ("module tb; wire", "does not parse"),
    ],
)
def test_a_bench_that_is_none_is_refused(bench: str, message: str) -> None:
    with pytest.raises(BadReferenceError, match=message):
        key_bench(read_reference({"testbench": bench}), "s")


def test_only_keyed_lines_are_the_benchs() -> None:
    output = b"Passed\n<k>count 1\nPassed\n<k>a<k>b\n<k>last"
    assert keyed_lines(output, "<k>") == ["count 1", "a", "b", "last"]


COUNTING = Rule(samples=100)


@pytest.mark.parametrize(
    ("lines", "rule", "passed", "share"),
    [
        pytest.param(["Mismatches: 0 in 100 samples"], COUNTING, True, 1.0, id="all"),
        pytest.param(["Mismatches: 1 in 100 samples"], COUNTING, False, 0.99, id="one-wrong"),
        pytest.param(["Mismatches: 0 in 0 samples"], COUNTING, False, 0.0, id="no-samples"),
        pytest.param(["Mismatches: 0 in 99 samples"], COUNTING, False, 0.0, id="too-few-samples"),
        pytest.param(["Mismatches: 0 in 101 samples"], COUNTING, False, 0.0, id="too-many-samples"),
        pytest.param(
            ["Mismatches: 0 in 100 samples", "Mismatches: 7 in 100 samples"], COUNTING, False, 0.93, id="two-lines"
        ),
        pytest.param(["x Mismatches: 0 in 100 samples"], COUNTING, False, 0.0, id="inside-a-line"),
        pytest.param([], COUNTING, False, 0.0, id="silent"),
        pytest.param(["===Your Design Passed==="], Rule(), True, 1.0, id="says-passed"),
        pytest.param(["bypass"], Rule(), False, 0.0, id="another-word"),
        pytest.param(["Passed 1*1", "=== Failed ==="], Rule(), False, 0.0, id="one-check-passed"),
        pytest.param(["Passed", "TIMEOUT"], Rule(), False, 0.0, id="timeout"),
        pytest.param(["errors: 0", "Passed"], Rule(harmless=frozenset({"errors: 0"})), True, 1.0, id="harmless"),
        pytest.param(["errors: 3", "Passed"], Rule(harmless=frozenset({"errors: 0"})), False, 0.0, id="another-number"),
        pytest.param(["Test 1 passed", "Test 2 mismatched"], Rule(), False, 0.0, id="mismatched"),
        pytest.param(["Test 1 passed", "Test 2 NG"], Rule(), False, 0.0, id="no-good"),
        pytest.param(["Test 2 did not pass"], Rule(), False, 0.0, id="not-pass"),
        pytest.param(["Test 1 passed", "Test 2: got 3 expected 4"], Rule(), False, 0.0, id="one-test-skipped"),
        pytest.param(["Test 1: reset", "Test 1 passed", "All passed"], Rule(), True, 1.0, id="tests-announced"),
        pytest.param(["OK"], Rule(passed="^OK$", failed="^KO$"), True, 1.0, id="own-pattern"),
    ],
)
def test_a_verdict_is_read(lines: list[str], rule: Rule, passed: bool, share: float) -> None:
    found = read_verdict(lines, rule)
    assert found.passed is passed
    assert found.share == pytest.approx(share)


def test_the_number_of_samples_comes_from_the_reference_run() -> None:
    assert learn_rule([["Mismatches: 0 in 12 samples"]], "", "").samples == 12
    assert not read_verdict(["Mismatches: 0 in 0 samples"], learn_rule([["Mismatches: 0 in 0 samples"]], "", "")).passed


ONE_BY_ONE = ("Test 0 passed", "Test 1 passed")


@pytest.mark.parametrize(
    ("reference", "lines", "passed"),
    [
        pytest.param(["0 errors so far", "Passed"], ["0 errors so far", "Passed"], True, id="same"),
        pytest.param(["0 errors so far", "Passed"], ["2 errors so far", "Passed"], False, id="errors-counted"),
        pytest.param(["0 errors so far", "Passed"], ["error at 5", "Passed"], False, id="another-error"),
        pytest.param(ONE_BY_ONE, ONE_BY_ONE[::-1], True, id="one-by-one-in-another-order"),
        pytest.param(ONE_BY_ONE, [*ONE_BY_ONE, "Test 2 passed"], True, id="one-more"),
        pytest.param(ONE_BY_ONE, ["Test 0 passed", "Test 1: got 3 expected 4"], False, id="one-told-otherwise"),
        pytest.param(ONE_BY_ONE, ["Test 0 passed"], False, id="one-silent"),
        pytest.param(ONE_BY_ONE, ["Test 0 passed", "Test 0 passed"], False, id="one-twice"),
        pytest.param(["passed"] * 3, ["passed"] * 2, False, id="without-numbers"),
        pytest.param(["Passed: 9 Failed: 0"], ["Passed:  9 Failed:  0"], True, id="summary"),
        pytest.param(["Passed: 9 Failed: 0"], ["Passed: 8 Failed: 1"], False, id="summary-with-a-failure"),
        pytest.param(["9 / 9 tests passed"], ["8 / 9 tests passed"], False, id="summary-of-a-share"),
        pytest.param(["[90] PASS at time 90"], ["[120] PASS at time 120"], True, id="later"),
        pytest.param(["PASS, 80 ns, t=80"], ["PASS, 85 ns, t=85"], True, id="later-with-units"),
        pytest.param(["Passed in 3 cycles"], ["Passed in 7 cycles"], True, id="more-cycles"),
        pytest.param(["Passed 9 cycles"], ["Passed 7 cycles"], False, id="fewer-cycles"),
    ],
)
def test_the_rule_comes_from_the_reference_run(reference: list[str], lines: list[str], passed: bool) -> None:
    assert read_verdict(lines, learn_rule([reference, reference], "", "")).passed is passed


def test_what_unknown_bits_change_in_the_reference_run_is_not_wanted() -> None:
    rule = learn_rule([["q=0 passed", "r=1 passed"], ["q=1 passed", "r=1 passed"]], "", "")
    assert read_verdict(["q=2 passed", "r=1 passed"], rule).passed
    assert not read_verdict(["q=0 passed"], rule).passed


def test_a_pattern_of_the_users_must_match_as_often_as_for_the_reference() -> None:
    rule = learn_rule([["OK 1", "OK 2"]], "^OK", "")
    assert read_verdict(["OK 7", "OK 8"], rule).passed
    assert not read_verdict(["OK 7", "bad 8"], rule).passed


@pytest.mark.parametrize(
    ("bench", "unread"),
    [
        ('if (e == 0) $display("===Passed===");', ""),
        ('if (e == 0) $display("Passed"); else $display("%0d failures", e);', ""),
        ('if (ok) $display("Test %0d passed", i); else $display("Test %0d failed", i);', ""),
        ('if (ok) $display("Test %0d passed", i); else $display("Test %0d: got %h", i, q);', "Test %0d passed"),
        ('if (ok) $display("Test %0d passed", i); $display("TIMEOUT");', "Test %0d passed"),
        ('if (x) $display("add passed"); if (y) $display("sub passed");', "add passed"),
        ('$fdisplay(1, "Passed: %0d Failed: %0d", p, f);', "Passed: %0d Failed: %0d"),
        ('$display("%0d / %0d tests passed", p, n);', "%0d / %0d tests passed"),
        ('$dumpfile("pass.vcd"); $write("Passed");', ""),
    ],
)
def test_a_line_that_only_a_reference_explains_is_found(bench: str, unread: str) -> None:
    assert unread_line(bench) == unread


@pytest.mark.parametrize(
    ("value", "mistake", "message"),
    [
        (5, True, "is a int"),
        ({}, True, "neither a design nor a test bench"),
        ({"reference": "module a; endmodule", "tests": []}, True, "has the key 'tests'"),
        ({"reference": "module a; endmodule", "top": "a b"}, True, "top is 'a b'"),
        ({"reference": "module a; endmodule", "files": {"../x": ""}}, True, "plain file names"),
        ({"reference": "module a; endmodule", "clocks": "clk"}, True, "clocks is 'clk'"),
        ({"reference": "module a; endmodule", "resets": {"r": 1}}, True, "resets is"),
        ({"reference": "module a; endmodule", "pass": "("}, True, "regular expression"),
        ({"reference": "module a; wire"}, False, "does not parse"),
        ({"reference": "module a; endmodule module b; endmodule"}, False, "reference_top"),
        ({"reference": "module a; endmodule", "reference_top": "b"}, False, "reference_top is 'b'"),
    ],
)
def test_a_bad_reference_is_named(value: Any, mistake: bool, message: str) -> None:
    with pytest.raises(BadReferenceError, match=message) as caught:
        read_reference(value)
    assert caught.value.mistake is mistake


def test_the_top_is_found() -> None:
    assert read_reference("module a; endmodule").top == "a"
    assert read_reference({"testbench": BENCH}).top == "top"
    both = read_reference({"testbench": BENCH, "reference": "module ref_top; endmodule"})
    assert (both.top, both.design_top) == ("top", "ref_top")

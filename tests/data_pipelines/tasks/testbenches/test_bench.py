"""What a bench prints, what a design is, and what the options allow."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.data_pipelines.tasks.bench_designs import counted, read_design, read_samples
from adjudge.data_pipelines.tasks.config import TestbenchesConfig as Config
from adjudge.io.jobs.maker import DroppedError
from adjudge.verifiers.verilog.front_end import read_ports

PASS = "module Pass (input [2:0] a, output [2:0] y); assign y = a; endmodule"


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("Mismatches: 3 in 20 samples\n", (3, 20)),
        ("case 1: y expected 2, got 3\nMismatches: 1 in 4 samples", (1, 4)),
        ("Mismatches: 0 in 4 samples\nMismatches: 0 in 4 samples\n", (0, 4)),
        ("Mismatches: 0 in 4 samples\nMismatches: 1 in 4 samples\n", None),
        ("All tests passed\n", None),
        ("so Mismatches: 0 in 4 samples", None),
        ("", None),
    ],
)
def test_a_bench_says_one_thing_or_nothing(printed: str, found: tuple[int, int] | None) -> None:
    assert counted(printed) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("01\n1x\nend\n", ["01", "1x"]),
        ("01\nend\n", None),
        ("01\n1x\n", None),
        ("01\n1x\n00\nend\n", None),
        (None, None),
    ],
)
def test_samples_are_read_only_when_the_run_came_to_its_end(text: str | None, found: list[str] | None) -> None:
    assert read_samples(text, 2) == found


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("source", "top", "files", "reason"),
    [
        (None, "", None, "no_design"),
        (7, "", None, "no_design"),
        ("  ", "", None, "no_design"),
        ("module A (", "", None, "bad_design"),
        ("module A (input a, output y); \ud800 endmodule", "", None, "bad_design"),
        ("module A (output y); endmodule module B (output y); endmodule", "", None, "several_tops"),
        ("module A (input a); endmodule", "", None, "no_outputs"),
        ("module A (inout a, output y); endmodule", "", None, "inout_ports"),
        ("module A (input [16777214:0] a, output y); endmodule", "", None, "ports_too_wide"),
        (PASS, "no name", None, "bad_top"),
        (PASS, 3, None, "bad_top"),
        (f"{PASS} module Top (input [2:0] a, output [2:0] y); Pass p (a, y); endmodule", "Pass", None, "bad_top"),
        (PASS, "", ["a"], "bad_files"),
        (PASS, "", {"a": 1}, "bad_files"),
    ],
)
def test_what_no_bench_can_be_made_for_has_a_reason(source: Any, top: Any, files: Any, reason: str) -> None:
    with pytest.raises(DroppedError) as caught:
        read_design(source, top, files)
    assert caught.value.reason == reason


@pytest.mark.usefixtures("parser")
def test_a_design_goes_by_the_name_that_is_asked_for() -> None:
    design = read_design(PASS, "TopModule")
    assert [(port.name, port.width) for port in read_ports(design.under_top(), "TopModule")] == [("a", 3), ("y", 3)]
    assert read_design(PASS).under_top() == PASS


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"coverage": 1.5}, "--coverage is 1.5"),
        ({"min_killed": -1.0}, "--min-killed is -1.0"),
        ({"rounds": 0}, "--rounds is 0"),
        ({"effort": 1}, "--effort is 1"),
        ({"temperature": float("nan")}, "--temperature is nan"),
        ({"mutants": 0}, "--mutants is 0"),
        ({"isolation": "hope"}, "--isolation is 'hope'"),
        ({"in_flight": 0}, "--in-flight is 0"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Config(input="a.jsonl", output="b.jsonl", **options)


def test_wrong_designs_of_the_rows_may_stand_in_for_mutants() -> None:
    assert Config(input="a.jsonl", output="b.jsonl", mutants=0, wrong_column="wrong").mutants == 0

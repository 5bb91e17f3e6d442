"""The Verilog verifier on VerilogEval v2 and RTLLM v2."""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.corpus_parts import in_parts, part

from adjudge.protocol import Sample
from adjudge.verifiers.verilog.candidate import read_candidate
from adjudge.verifiers.verilog.front_end import StoppedError
from adjudge.verifiers.verilog.reference import parse_reference
from adjudge.verifiers.verilog.rules import print_all
from adjudge.verifiers.verilog.verifier import VerilogVerifier

DATA = os.environ.get("ADJUDGE_DATA", "")

pytestmark = [
    pytest.mark.skipif(not DATA, reason="set ADJUDGE_DATA to the folder of the corpora"),
    pytest.mark.usefixtures("icarus"),
]

# Icarus 11 has no casts to enum types.
UNSUPPORTED = {"Prob156_review2015_fancytimer"}

# Benches of RTLLM that cannot judge under Icarus 11, and why.
BAD_BENCHES = {
    "radix2_div": "its own reference fails",
    "fixed_point_adder": "`% (1 << 32)` makes every input unknown, and unknown equals unknown",
    "fixed_point_substractor": "as fixed_point_adder",
    "ring_counter": "assigns to a whole array",
    "asyn_fifo": "uses break",
}
# These benches wait for the design, so an empty one would use the whole time limit; one of each kind is enough.
SLOW = {"Prob144_conwaylife", "Prob082_lfsr32", "Prob124_rule110", "Prob108_rule90", "Prob068_countbcd"}


@cache
def rows(name: str) -> list[dict[str, Any]]:
    with gzip.open(Path(DATA) / "verilog" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def designs(every: int) -> list[dict[str, Any]]:
    """VerilogEval's, one of so many with a clock and of those without."""
    return part(rows("verilog_eval_v2"), every, lambda row: "clk" in row["reference"])


def as_answer(row: dict[str, Any]) -> str:
    return f"```verilog\n{row['reference'].replace('RefModule', 'TopModule')}\n```"


@in_parts(12)
def test_every_reference_of_verilog_eval_equals_itself(every: int) -> None:
    refused = set()
    for number, row in enumerate(designs(every)):
        verifier = VerilogVerifier() if number % 6 == 0 else VerilogVerifier(effort=300, formal="off")
        reference = {"reference": row["reference"], "top": "TopModule"}
        score = verifier.verify(Sample(prompt="", response=as_answer(row), reference=reference))
        if score.value != 1.0:
            assert score.reason == "gold_unparsable", (row["problem"], score.evidence)
            refused.add(row["problem"])
    assert refused == set()


@in_parts(4)
def test_every_bench_of_verilog_eval_accepts_its_reference_and_refuses_a_stuck_design(every: int) -> None:
    verifier = VerilogVerifier()
    for row in designs(every):
        if row["problem"] in UNSUPPORTED | SLOW:
            continue
        reference = {"reference": row["reference"], "top": "TopModule", "testbench": row["testbench"]}
        score = verifier.verify(Sample(prompt="", response=as_answer(row), reference=reference))
        assert score.value == 1.0, (row["problem"], score.evidence)
        cheat = as_answer(row).replace(
            "endmodule", 'initial begin $display("Mismatches: 0 in 9 samples"); $finish; end endmodule'
        )
        assert verifier.verify(Sample(prompt="", response=cheat, reference=reference)).reason == "tampering"


@in_parts(4)
def test_wrong_neighbours_of_verilog_eval_references_are_told_apart(every: int) -> None:
    """Each reference answered with another design of the same ports, changed in one operator."""
    verifier = VerilogVerifier()
    changes = (("posedge", "negedge"), ("&", "|"), ("|", "&"), ("^", "&"), ("+", "-"), ("==", "!="), ("1'b1", "1'b0"))
    checked, survivors = 0, set()
    looked_at = designs(every)
    for row in looked_at:
        if row["problem"] in UNSUPPORTED | SLOW:
            continue
        design = print_all(parse_reference(row["reference"], "reference"), {"RefModule": "TopModule"})
        for old, new in changes:
            mutant = design.replace(f" {old} ", f" {new} ", 1)
            if mutant == design:
                continue
            try:
                read_candidate(mutant, "TopModule", "x_")
            except StoppedError:
                continue
            reference = {"reference": row["reference"], "top": "TopModule"}
            checked += 1
            if verifier.verify(Sample(prompt="", response=mutant, reference=reference)).value != 0.0:
                survivors.add((row["problem"], old))
    assert checked > 60 / every
    problems = {row["problem"] for row in looked_at}
    assert survivors == {one for one in EQUIVALENT if one[0] in problems}


# Mutants that do the same.  Prob074: from 0, two of the registers go through the same values either way when z is 1.
EQUIVALENT = {("Prob074_ece241_2014_q4", "&")}


@in_parts(18)
def test_rtllm_candidates_get_their_labels(every: int) -> None:
    asked = {row["design"]: row for row in rows("rtllm_designs")}
    verifier = VerilogVerifier(seconds=2.0)
    refused = set()
    for row in part(rows("rtllm_candidates"), every, lambda row: row["status"]):
        design = asked[row["design"]]
        reference = {"reference": design["reference"], "testbench": design["testbench"], "files": design["files"]}
        score = verifier.verify(Sample(prompt="", response=row["source"], reference=reference))
        if score.reason == "gold_unparsable":
            refused.add(row["design"])
            assert row["status"] != "pass"
        else:
            assert (score.value == 1.0) == (row["status"] == "pass"), (row["design"], row["trial"], score.evidence)
            assert (score.reason == "candidate_timeout") == (row["status"] == "timeout")
    assert refused <= set(BAD_BENCHES)

"""Mutants of a design: one change each, at a place that means something."""

from __future__ import annotations

import difflib

import pytest

from adjudge.data_pipelines.tasks.bench_designs import design_mutants
from adjudge.verifiers.verilog.front_end import parse, read_ports

pytestmark = pytest.mark.usefixtures("parser")

COUNTER = """`define STEP 1 + 2
// Zähler für Grüße
module Counter (input clk, input rst_n, input [3:0] limit, output reg [3:0] q, output top);
  assign top = q == limit && !(~rst_n);
  always @(posedge clk or negedge rst_n) begin
    if (!rst_n) q <= 4'd0;
    else if (q < limit) q <= q + 4'h1;
    else q <= `STEP;
  end
endmodule
"""


def changed(mutant: str) -> list[str]:
    """The lines of a mutant that the counter does not have."""
    return [line[2:].strip() for line in difflib.ndiff(COUNTER.splitlines(), mutant.splitlines()) if line[0] == "+"]


def test_each_mutant_changes_one_line_and_keeps_the_ports() -> None:
    mutants = design_mutants(COUNTER, 100, "seed")
    assert len(mutants) == len(set(mutants)) > 12
    for mutant in mutants:
        assert len(changed(mutant)) == 1, changed(mutant)
        parse(mutant)
        assert read_ports(mutant, "Counter") == read_ports(COUNTER, "Counter")


@pytest.mark.parametrize(
    "line",
    [
        "assign top = q != limit && !(~rst_n);",
        "assign top = q == limit || !(~rst_n);",
        "assign top = q == limit &&  (~rst_n);",
        "assign top = q == limit && !( rst_n);",
        "assign top = ~(q == limit && !(~rst_n));",
        "always @(negedge clk or negedge rst_n) begin",
        "if (!rst_n) q <= 4'd1;",
        "if (!(!rst_n)) q <= 4'd0;",
        "else if (q <= limit) q <= q + 4'h1;",
        "else if (q < limit) q <= q - 4'h1;",
        "else if (q < limit) q <= q + 4'h0;",
    ],
)
def test_a_wrong_design_is_among_them(line: str) -> None:
    assert [line] in [changed(mutant) for mutant in design_mutants(COUNTER, 100, "seed")]


def test_the_text_of_a_macro_stays_as_it_is() -> None:
    for mutant in design_mutants(COUNTER, 100, "seed"):
        assert "`define STEP 1 + 2" in mutant


def test_the_seed_decides_which() -> None:
    assert design_mutants(COUNTER, 4, "a") == design_mutants(COUNTER, 4, "a")
    assert design_mutants(COUNTER, 4, "a") != design_mutants(COUNTER, 4, "b")
    assert len(design_mutants(COUNTER, 4, "a")) == 4


@pytest.mark.parametrize("source", ["", "no Verilog", "module A (", "module A; \ud800 endmodule"])
def test_what_is_no_verilog_has_no_mutants(source: str) -> None:
    assert design_mutants(source, 4, "a") == []

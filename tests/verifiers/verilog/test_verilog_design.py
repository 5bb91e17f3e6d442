"""From a response to a design: extraction, rules, printing, ports."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.verifiers.verilog.candidate import Candidate, find_designs, read_candidate
from adjudge.verifiers.verilog.front_end import (
    MAX_SOURCE,
    Port,
    StoppedError,
    SyntaxFaultError,
    integers,
    parse,
    read_interface,
)
from adjudge.verifiers.verilog.rules import print_all, print_design

TOP = "module top (input a, output q); assign q = a; endmodule"
OTHER = "module other; endmodule"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        pytest.param(TOP, TOP, id="bare"),
        pytest.param(f"Sure, here it is.\n{TOP}\nDone.", TOP, id="prose-around"),
        pytest.param(f"```verilog\n{TOP}\n```", TOP + "\n", id="fence"),
        pytest.param(f"```sv\n{OTHER}\n```\n```sv\n{TOP}\n```", TOP + "\n", id="defining-fence-last"),
        pytest.param(f"```sv\n{TOP}\n```\n```sv\n{OTHER}\n```", TOP + "\n", id="defining-fence-first"),
        pytest.param(f"```v\n{TOP} // 1\n```\n```v\n{TOP} // 2\n```", TOP + " // 2\n", id="last-of-two"),
        pytest.param(f"```python\nprint()\n```\n```\n{TOP}\n```", TOP + "\n", id="other-language"),
        pytest.param(f"```verilog\n{TOP}\n", TOP + "\n", id="fence-never-closed"),
        pytest.param(f"~~~verilog\n{TOP}\n~~~", TOP + "\n", id="tildes"),
        pytest.param(f"```verilog\n{TOP}```", TOP, id="fence-closed-behind-code"),
        pytest.param(f"```verilog\n{TOP}``` It inverts.\nDone.", TOP, id="prose-behind-code-and-fence"),
        pytest.param(f"```verilog\n{TOP}\n``` Hope this helps!\nDone.", TOP + "\n", id="prose-behind-fence"),
        pytest.param(f"```v\n{TOP}\n```v\n{OTHER}\n```", TOP + "\n", id="next-fence-closes"),
        pytest.param(f"```v\r\n{TOP}\r\n```\r\nDone.", TOP + "\n", id="lines-of-windows"),
        pytest.param("```v\nmodule\u00a0top; endmodule\n```", "module top; endmodule\n", id="no-break-space"),
        pytest.param(
            f"```v\n{TOP}\n```\nPorts:\n```v\nmodule top (input a, output q);\n  ...\nendmodule\n```",
            TOP + "\n",
            id="port-list-behind",
        ),
        pytest.param(
            f"```v\n{TOP}\n```\n```v\nmodule top (input a, output q);\n  // as above\nendmodule\n```",
            TOP + "\n",
            id="empty-body-behind",
        ),
        pytest.param(
            f"```v\n{TOP}\n```\n```v\n{TOP} // so...\n```", TOP + " // so...\n", id="dots-in-a-comment-are-no-sketch"
        ),
        pytest.param(
            "```sv\nmodule top import p::*; (); endmodule\n```\n```sv\npackage p; endpackage\n```",
            "package p; endpackage\n\nmodule top import p::*; (); endmodule\n",
            id="package-in-a-fence-of-its-own",
        ),
        pytest.param(
            '```v\n`define W 3\n```\n```v\n`include "d.vh"\nmodule top (input [`W:0] a); endmodule\n```',
            "`define W 3\n\n\nmodule top (input [`W:0] a); endmodule\n",
            id="included-fence",
        ),
        pytest.param(f"```v\n`define W 3\n```\n```v\n{TOP}\n```", TOP + "\n", id="what-is-not-named-is-left-out"),
        pytest.param(f"{OTHER}<answer>{TOP}</answer>{OTHER}", TOP, id="answer-tags"),
    ],
)
def test_the_design_is_found(text: str, first: str) -> None:
    assert find_designs(text, "top")[0] == first


@pytest.mark.parametrize(
    "text", ["", "no design here", "```verilog\n```", "endmodule module", "```python\nmodule\n```"]
)
def test_nothing_is_found_where_nothing_is(text: str) -> None:
    assert find_designs(text, "top") == []


@given(st.text(max_size=200))
def test_no_text_breaks_the_front_end(text: str) -> None:
    with contextlib.suppress(StoppedError):
        assert isinstance(read_candidate(f"module top {text} endmodule", "top", "x_"), Candidate)


@pytest.mark.parametrize("text", ["\ud800 module top; endmodule", "module top; endmodule\0", "x" * (MAX_SOURCE + 1)])
def test_what_is_no_source_is_refused(text: str) -> None:
    with pytest.raises(SyntaxFaultError):
        parse(f"module a; {text} endmodule")


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("module a; endmodule : a", "module x_a ; endmodule : x_a"),
        (
            'module a; if (W<1) $error("x"); wire y; generate if (W) $info(""); else $error(""); endgenerate endmodule',
            "module x_a ; if ( W < 1 ) begin end wire y ; "
            "generate if ( W ) begin end else begin end endgenerate endmodule",
        ),
        (
            "module a; property p; @(posedge c) d; endproperty assert property (p); sequence s; d; endsequence "
            "default clocking b @(posedge c); endclocking default disable iff (r); "
            'covergroup g @(posedge c); coverpoint d; endgroup initial $dumpfile("w"); endmodule',
            "module x_a ; initial begin end endmodule",
        ),
        ("module a; b u(); endmodule module b; endmodule", "module x_a ; x_b u ( ) ; endmodule module x_b ; endmodule"),
        ("module a; wire b = 1; endmodule", "module x_a ; wire b = 1 ; endmodule"),
        (
            "`define N 4'hf\nmodule a; wire [3:0] b = `N; endmodule",
            "module x_a ; wire [ 3 : 0 ] b = 4 'h f ; endmodule",
        ),
        ("module a; (* keep *) wire b; /* c */ endmodule // d", "module x_a ; wire b ; endmodule"),
        ('module a; reg [7:0] s = "\\n$"; endmodule', 'module x_a ; reg [ 7 : 0 ] s = "\\012\\044" ; endmodule'),
        ('module a; initial $display("x"); endmodule', "module x_a ; initial begin end endmodule"),
        ("module a; wire \\b ; endmodule", "module x_a ; wire b ; endmodule"),
        ("`ifdef __ICARUS__\nbroken\n`endif\nmodule a; endmodule", "module x_a ; endmodule"),
    ],
)
def test_a_design_is_printed_token_by_token(source: str, printed: str) -> None:
    parsed = parse(source)
    names = {name: f"x_{name}" for name in parsed.modules}
    assert print_design(parsed.members, names).split() == printed.split()


def test_printing_twice_changes_nothing() -> None:
    once = print_all(parse("module a (input [3:0] x); wire y = x[1] & ~x[2]; endmodule"), {})
    assert print_all(parse(once), {}) == once


def test_an_escaped_keyword_is_not_printed_as_one() -> None:
    with pytest.raises(SyntaxFaultError):
        print_all(parse("module a; wire \\endmodule ; endmodule"), {})


@pytest.mark.parametrize(
    ("response", "reason", "stage"),
    [
        ("", "no_answer", "extract"),
        ("module top; wire endmodule", "candidate_error", "syntax"),
        ("module other; endmodule", "candidate_error", "ports"),
        ("module top; endmodule module top; endmodule", "candidate_error", "syntax"),
        ("module top; initial $finish; endmodule", "tampering", "rules"),
        ("module top; class c; endclass endmodule", "candidate_error", "rules"),
        ("module top (output real q); endmodule", "candidate_error", "ports"),
        ("module top; module in; endmodule endmodule", "candidate_error", "rules"),
    ],
)
def test_a_refusal_says_how_far_it_came(response: str, reason: str, stage: str) -> None:
    with pytest.raises(StoppedError) as stopped:
        read_candidate(response, "top", "x_")
    assert (stopped.value.reason, stopped.value.stage) == (reason, stage)


def test_only_files_of_the_reference_design_may_be_read() -> None:
    source = 'module top; reg [7:0] m [0:3]; initial $readmemh("rom.dat", m); endmodule'
    assert isinstance(read_candidate(source, "top", "x_", ["rom.dat"]), Candidate)
    for files in ([], ["rom.dat2"]):
        with pytest.raises(StoppedError) as stopped:
            read_candidate(source, "top", "x_", files)
        assert stopped.value.reason == "tampering"


def test_what_the_top_does_not_need_is_left_out() -> None:
    found = read_candidate(f"{TOP}\nmodule tb; initial $finish; endmodule", "top", "x_")
    assert isinstance(found, Candidate)
    assert "tb" not in found.source
    assert found.ports == (
        Port(name="a", direction="input", width=1),
        Port(name="q", direction="output", width=1),
    )


def test_constants_are_collected() -> None:
    source = "module a; wire [31:0] x = 32'hdead_beef + 17 + 4'b10x0 + 8'b101; endmodule"
    assert integers(parse(source)) == {0xDEADBEEF, 17, 5, 31, 0} | {5}


@pytest.mark.parametrize(
    ("source", "clocks", "resets"),
    [
        pytest.param("module a(input clk, input d); always @(posedge clk) ; endmodule", ("clk",), (), id="plain"),
        pytest.param(
            "module a(input c, input r); reg q; always @(posedge c or negedge r) if (!r) q <= 0; endmodule",
            ("c",),
            (("r", False),),
            id="asynchronous-low-by-use",
        ),
        pytest.param(
            "module a(input clk, input reset); reg q; always @(posedge clk) if (reset) q <= 0; endmodule",
            ("clk",),
            (("reset", True),),
            id="synchronous-by-name",
        ),
        pytest.param(
            "module a(input x, input y); b u(.k(x), .r(y)); endmodule module b(input k, input r); reg q;"
            "always @(posedge k, posedge r) if (r) q <= 0; endmodule",
            ("x",),
            (("y", True),),
            id="through-an-instance",
        ),
        pytest.param(
            "module a(input x, input y); b u(x, y); endmodule module b(k, r); input k, r; reg q;"
            "always @(posedge k, posedge r) if (r) q <= 0; endmodule",
            ("x",),
            (("y", True),),
            id="through-ordered-ports",
        ),
        pytest.param("module a(input [1:0] clk, input d, output q); assign q = d; endmodule", (), (), id="none"),
        pytest.param("module a(input wclk, input rclk, input wrstn); endmodule", ("wclk", "rclk"), (("wrstn", False),)),
    ],
)
def test_clocks_and_resets_are_found(source: str, clocks: tuple[str, ...], resets: tuple[object, ...]) -> None:
    found = read_interface(source, "a")
    assert found.clocks == clocks
    assert found.resets == resets

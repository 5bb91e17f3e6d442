"""Programs that compile and run simulations, for the sandbox.

Icarus (`iverilog`, `vvp`) simulates all four values of a bit.  Verilator, which knows 0 and 1 alone, only counts lines.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from functools import cache

from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.program import ENDINGS, Program, RunResult
from adjudge.verifiers.verilog.front_end import StoppedError, shorten

_REMEDY = {
    "iverilog": "install Icarus Verilog (Debian, Ubuntu: apt-get install iverilog; macOS: brew install icarus-verilog)",
    "verilator": "install Verilator 5 and a C++ compiler (Debian and Ubuntu: apt-get install verilator g++)",
}


class ToolMissingError(SandboxUnavailableError):
    """A program that the verifier needs is not installed; the message says how to get it."""


@cache
def require(tool: str) -> None:
    """Make sure that a tool is there.

    Raises:
        ToolMissingError: it is not.
    """
    if shutil.which(tool) is None:
        raise ToolMissingError(f"{tool} is not installed, and the Verilog verifier runs it; {_REMEDY[tool]}")


# What Icarus 11 says of a net, gate, transistor or instance in a design (or in our wrapper around it) that drives an
# input; benches of users may do that to their own modules.
DRIVEN = re.compile(rb"^(?:wrapper|design)\.v:\d+: warning: input port \w+ is coerced to inout", re.M)
REFUSED = 99  # exit status: the compiler refused the sources
COMPILED = "compiled.vvp"
_FLAGS = "-g2012"
_SHELL = ("sh", "-c")


def icarus(files: Mapping[str, bytes], sources: Sequence[str], top: str, outputs: Sequence[str]) -> Program:
    """Return the program that compiles sources and runs them; it exits with `REFUSED` where they do not compile."""
    script = f"iverilog {_FLAGS} -s {top} -o {COMPILED} {' '.join(sources)} || exit {REFUSED}\nexec vvp -n {COMPILED}"
    return Program(command=(*_SHELL, script), files=dict(files), outputs=tuple(outputs))


def icarus_again(compiled: bytes, files: Mapping[str, bytes], outputs: Sequence[str]) -> Program:
    """Return the program that runs what `icarus` compiled, which is in its output `COMPILED`."""
    return Program(command=("vvp", "-n", COMPILED), files={COMPILED: compiled, **files}, outputs=tuple(outputs))


def icarus_twice(files: Mapping[str, bytes], sources: Sequence[str], top: str, flag: str) -> Program:
    """Return the program that runs sources twice, the second time with a plusarg, which is printed in between."""
    script = (
        f"iverilog {_FLAGS} -s {top} -o {COMPILED} {' '.join(sources)} || exit {REFUSED}\n"
        f"vvp -n {COMPILED} -none; code=$?; [ $code -gt 128 ] && exit $code\n"
        f"echo {flag}\n"
        f"vvp -n {COMPILED} -none +{flag}; code=$?; [ $code -gt 128 ] && exit $code\n"
        "exit 0"
    )
    return Program(command=(*_SHELL, script), files=dict(files))


def check_run(result: RunResult, secret: str, driven: re.Pattern[bytes]) -> None:
    """Make sure that a simulation of a candidate's design ran to its end; `driven` is how Icarus says it drives inputs.

    Raises:
        StoppedError: it did not, or it does.
    """
    if result.ending in ENDINGS:
        raise StoppedError(ENDINGS[result.ending], "run", f"it ended by {result.ending}")
    if driven.search(result.stderr):
        raise StoppedError("tampering", "elaborate", "the design drives one of its own inputs")
    if result.code == REFUSED:
        said = result.stderr.decode(errors="replace").replace(f"{secret}_", "")
        raise StoppedError("candidate_error", "elaborate", shorten(said) or "it does not compile")

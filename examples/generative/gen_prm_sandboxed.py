"""GenPRM with programs: a sandbox as the executor, and a factory that a spec can name.

With this folder on PYTHONPATH, `{"gen_prm_sandboxed:gen_prm": {engine: "openai:verifier"}}` is such a spec.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adjudge.reward_models.generative.gen_prm import GenPrm
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.warm_python import flavour_of, shared
from adjudge.verifiers.code.sandboxed import environment


@dataclass(frozen=True, kw_only=True)
class SandboxedPython:
    """Runs a program in a sandbox of its own, without network, files or time to waste."""

    seconds: float = 5.0
    memory_mb: int = 512

    @property
    def fingerprint(self) -> str:
        """The limits, and the versions of Python and of what programs import most."""
        return f"sandboxed_python:1:{self.seconds:g}:{self.memory_mb}:{environment()}"

    def run(self, source: str) -> str:
        """Return what a program prints, and how it ended where that was not well."""
        limits = RunLimits(seconds=self.seconds, memory_mb=self.memory_mb, output_bytes=1 << 16)
        done, unparsable = shared("bubblewrap").script(source, b"", limits, flavour_of(source))
        if unparsable:
            return f"(it is not Python: {unparsable})"
        printed = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
        return printed if done.ending == "exited" else f"{printed}\n(it was stopped: {done.ending})".strip()


def gen_prm(engine: Any, **options: Any) -> GenPrm:
    """Return a scorer whose model may run programs to check a step."""
    return GenPrm(engine=engine, executor=SandboxedPython(), **options)


if __name__ == "__main__":
    sandbox = SandboxedPython()
    print(sandbox.run("print(17 * 23)"))
    print(sandbox.run("while True: pass"))
    print(gen_prm("openai:verifier").name)

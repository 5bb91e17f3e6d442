"""Python programs in the sandbox of the code verifier; what they print is the answer.

Not covered: files, and values that outlive a call: each program begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from adjudge.options import Count, Options
from adjudge.protocol import Sample, Scorer
from adjudge.rl_integration.trainer.rollouts.tool import ToolAnswer, ToolDown, one_text, shortened
from adjudge.scoring import api
from adjudge.verifiers.code.extraction import fenced

_ENDINGS = {
    "timeout": "error: it was stopped after {seconds:g} seconds",
    "memory": "error: it was stopped for using more than {memory_mb} MiB of memory",
    "output": "error: it was stopped for printing too much",
    "disk": "error: it was stopped for writing too much to its disk",
    "signalled": "error: it was ended by the signal {code}",
}


@dataclass(frozen=True, kw_only=True)
class PythonTool(Options, what="python tool option"):
    """Runs Python programs.

    Attributes:
        name: what it is called by.
        seconds: wall-clock seconds of a program.
        memory_mb: MiB of a program.
        max_output: characters of an answer.
    """

    name: str = "python"
    seconds: float = 10.0
    memory_mb: int = 512
    max_output: Count = 2_000

    description = "Run a Python program in a sandbox without network. Only what it prints is returned."
    parameters = one_text("code", "the program")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._scorer  # noqa: B018 the scorer checks the other options

    @cached_property
    def _scorer(self) -> Scorer:
        return api.load({"run": {"seconds": self.seconds, "memory_mb": self.memory_mb}})

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Run a program.

        Raises:
            ToolDown: there is no sandbox, or it was lost.
        """
        sample = Sample(prompt="", response=fenced(arguments["code"].strip("\r\n"), "python"))
        (score,) = api.score_batch([sample], self._scorer)
        if score.value is None:
            raise ToolDown(f"the sandbox did not run a program: {score.reason} {dict(score.evidence)}")
        ran = score.evidence.get("run")
        if ran is None:
            return ToolAnswer(text=f"error: the program was not run ({score.reason})", ok=False)
        parts = [ran["stdout"].rstrip("\n")]
        if score.value < 1:
            end = _ENDINGS.get(ran["ending"], "error: it ended with the status {code}")
            parts += [
                ran["stderr"].strip(),
                end.format(seconds=self.seconds, memory_mb=self.memory_mb, code=ran["code"]),
            ]
        text = "\n".join(part for part in parts if part)
        return ToolAnswer(text=shortened(text, self.max_output) or "(nothing was printed)", ok=score.value == 1)

"""The Lean verifier: does the response prove the theorem, by a Lean 4 toolchain on this machine?

The toolchain is named by options and runs in the sandbox, which shows it only the folders that are named.  See
`adjudge.verifiers.proofs.lean_source` for the file it reads.  The scorer `lean_server` asks a server that keeps Lean
warm, which matters with Mathlib.

Not covered: Lean 3, and downloading a toolchain: `elan` would do that, and the sandbox has no network.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from adjudge import wire
from adjudge.attacks import AttackCase
from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Limits, Sample, Score, Verifier
from adjudge.verifiers.execution.bubblewrap import SYSTEM_PATH
from adjudge.verifiers.execution.program import Program, RunResult
from adjudge.verifiers.execution.runner import Isolation, sandbox
from adjudge.verifiers.execution.sandbox import SandboxUnavailableError
from adjudge.verifiers.proofs.attacks import attack_cases
from adjudge.verifiers.proofs.lean_answer import answered
from adjudge.verifiers.proofs.lean_messages import MessageError, gold_fault, read_json_lines, verdict
from adjudge.verifiers.proofs.lean_source import LeanFile, gold_file, read_lean
from adjudge.verifiers.proofs.reference import refuse_mistakes
from adjudge.verifiers.proofs.toolbox import ENDINGS, check_limits, run_limits, shown
from adjudge.verifiers.text.graded import Reasoning, Truncated

_FILE = "Answer.lean"
_CACHED = 256


class _LimitError(Exception):
    """The reference alone ran into a limit, or Lean could not run."""


@dataclass(frozen=True, kw_only=True)
class LeanVerifier(Verifier):
    """1 when Lean accepts the response's proof of the pinned theorem, else 0.

    The reference is `{"header": imports and definitions, "statement": "theorem t : ..."}`, or the statement alone;
    optional `axioms` (names of axioms that a proof may use beside Lean's three).

    Attributes:
        command: the program that reads a file and writes its messages; a full path outside /usr/bin.
        folders: folders that it reads: the toolchain, and compiled libraries.
        lean_path: folders of compiled libraries, as `lake env printenv LEAN_PATH` prints them.
        heartbeats: Lean's own limit for one declaration, in thousands; the header may set another.
        reasoning: "strip" looks only at what follows the end-of-thinking tag; "keep" at all of it.
        truncated: a response with `finish_reason="length"` is worth 0 ("zero") or is graded ("grade").
        seconds: seconds for each run of Lean.
        memory_mb: MiB for each; Mathlib wants 4096 and more.
        isolation: "bubblewrap", or "none" for responses that you trust.
    """

    name: ClassVar[str] = "lean"
    version: ClassVar[str] = "1"

    command: tuple[str, ...] = ("lean",)
    folders: tuple[str, ...] = ()
    lean_path: tuple[str, ...] = ()
    heartbeats: int = 200
    reasoning: Reasoning = "strip"
    truncated: Truncated = "zero"
    seconds: float = 300.0
    memory_mb: int = 8192
    isolation: Isolation = "bubblewrap"

    def __post_init__(self) -> None:
        """Reject option values that mean nothing, and hosts without the toolchain."""
        for option, allowed in (
            ("reasoning", ("strip", "keep")),
            ("truncated", ("zero", "grade")),
            ("isolation", ("bubblewrap", "none")),
        ):
            if getattr(self, option) not in allowed:
                raise ValueError(f"lean: {option} is {getattr(self, option)!r}; it must be one of {', '.join(allowed)}")
        for option in ("command", "folders", "lean_path"):
            given = getattr(self, option)
            object.__setattr__(self, option, (given,) if isinstance(given, str) else tuple(given))
        for folder in (*self.folders, *self.lean_path):
            if not os.path.isabs(folder) or not os.path.isdir(folder):
                raise ValueError(f"lean: {folder!r} is no folder; name folders by their full paths")
        if type(self.heartbeats) is not int or self.heartbeats < 1:
            raise ValueError(f"lean: heartbeats is {self.heartbeats!r}; it must be a whole number from 1")
        check_limits("lean", self.seconds, self.memory_mb)
        if not self.command or shutil.which(self.command[0], path=SYSTEM_PATH) is None:
            raise ValueError(
                f"lean: there is no program {' '.join(self.command[:1])!r}; set command to Lean's full path and "
                "folders to its toolchain (elan: ~/.elan/toolchains/...), or ask a server: lean_server"
            )

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # of the class elsewhere; here the options decide
        """What one call may use: one run for the reference, and one for the response."""
        return Limits(seconds=2 * self.seconds + 10, memory_mb=1024, processes=64)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or not of the form this verifier takes."""
        super().validate(sample)
        refuse_mistakes("lean", sample, read_lean)

    def attacks(self, folder: Path) -> Iterator[AttackCase]:
        """Yield the attack suite."""
        del folder  # the cases need no files
        yield from attack_cases("lean")

    def verify(self, sample: Sample) -> Score:
        """Return the verdict on one response; see `adjudge.verifiers.proofs.lean_messages` for the evidence."""
        try:
            theorem = read_lean(sample.reference)
            if fault := _gold(self, wire.dumps(sample.reference)):
                return Score.failed("gold_unparsable", error=fault)
            ready = answered(sample, self.reasoning, self.truncated)
            if isinstance(ready, Score):
                return ready
            done = self.run(ready)
            if done.ending != "exited":
                return Score.scored(0.0, ENDINGS[done.ending], stage="compile")
            return verdict(read_json_lines(done.stdout.decode("utf-8", "replace")), ready.key, theorem.axioms)
        except (BadReferenceError, TypeError) as error:
            return Score.failed("gold_unparsable", error=str(error))
        except _LimitError as error:
            return Score.failed("gold_timeout", error=str(error))
        except MessageError as error:
            return Score.scored(0.0, "candidate_error", stage="compile", error=str(error))
        except SandboxUnavailableError as error:
            return Score.failed(error.reason, error=str(error))

    def run(self, file: LeanFile) -> RunResult:
        """Have Lean read a file."""
        program = Program(
            command=(*self.command, "--json", f"-DmaxHeartbeats={1000 * self.heartbeats}", _FILE),
            files={_FILE: file.source.encode("utf-8", "replace")},
            environment={"LEAN_PATH": ":".join(self.lean_path)} if self.lean_path else {},
            read_only=tuple(dict.fromkeys((*self.folders, *self.lean_path))),
        )
        return sandbox(self.isolation).run(program, run_limits(self.seconds, self.memory_mb))


@lru_cache(maxsize=_CACHED)
def _gold(verifier: LeanVerifier, key: str) -> str:
    """Return why Lean does not take a reference, "" where it does; kept, because a batch repeats a reference.

    Raises:
        _LimitError: it took too long, or too much memory; nothing is kept then.
    """
    file = gold_file(read_lean(wire.loads(key)))
    done = verifier.run(file)
    if done.ending != "exited":
        raise _LimitError(f"reading the reference ended by {done.ending}: {shown(done.stderr)}")
    try:
        return gold_fault(read_json_lines(done.stdout.decode("utf-8", "replace")), file.key)
    except MessageError as error:
        return f"{error}; {shown(done.stderr)}"

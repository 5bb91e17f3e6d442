"""The Lean verifier: does the response prove the theorem, by a Lean 4 toolchain on this machine?

The toolchain is named by options and runs in the sandbox, which shows it only the folders that are named.  See
`adjudge.verifiers.proofs.lean_source` for the file it reads.  The scorer `lean_server` asks a server that keeps Lean
warm, which matters with Mathlib.

Not covered: Lean 3, and downloading a toolchain: `elan` would do that, and the sandbox has no network.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from adjudge import wire
from adjudge.options import Range
from adjudge.protocol import Limits, Sample, Score, response_text
from adjudge.sandbox.bubblewrap import SYSTEM_PATH
from adjudge.sandbox.program import ENDINGS, Program, RunResult
from adjudge.sandbox.sandbox import sandbox
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import TextVerifier
from adjudge.verifiers.code.sandboxed import IsolatedVerifier
from adjudge.verifiers.proofs.lean_source import (
    LeanFile,
    LeanTheorem,
    MessageError,
    answered,
    gold_fault,
    gold_file,
    read_json_lines,
    read_lean,
    verdict,
)
from adjudge.verifiers.proofs.toolbox import Memory, Seconds, key_of, run_limits, shown

_FILE = "Answer.lean"
_CACHED = 256


@dataclass(frozen=True, kw_only=True)
class LeanVerifier(IsolatedVerifier, TextVerifier[LeanTheorem, LeanFile]):
    """1 when Lean accepts the response's proof of the pinned theorem, else 0.

    The reference is `{"header": imports and definitions, "statement": "theorem t : ..."}`, or the statement alone;
    optional `axioms` (names of axioms that a proof may use beside Lean's three).

    Attributes:
        command: the program that reads a file and writes its messages; a full path outside /usr/bin.
        folders: folders that it reads: the toolchain, and compiled libraries.
        lean_path: folders of compiled libraries, as `lake env printenv LEAN_PATH` prints them.
        heartbeats: Lean's own limit for one declaration, in thousands; the header may set another.
        seconds: seconds for each run of Lean.
        memory_mb: MiB for each; Mathlib wants 4096 and more.
    """

    name: ClassVar[str] = "lean"
    version: ClassVar[str] = "2"

    command: tuple[str, ...] = ("lean",)
    folders: tuple[str, ...] = ()
    lean_path: tuple[str, ...] = ()
    heartbeats: Annotated[int, Range(ge=1)] = 200
    seconds: Seconds = 300.0
    memory_mb: Memory = 8192

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in ("command", "folders", "lean_path"):
            given = getattr(self, option)
            object.__setattr__(self, option, (given,) if isinstance(given, str) else tuple(given))
        for folder in (*self.folders, *self.lean_path):
            if not os.path.isabs(folder) or not os.path.isdir(folder):
                raise ValueError(f"lean: {folder!r} is not a folder; name folders by their full paths")
        if not self.command or shutil.which(self.command[0], path=SYSTEM_PATH) is None:
            raise ValueError(
                f"lean: there is no program {' '.join(self.command[:1])!r}; set command to Lean's full path and "
                "folders to its toolchain (elan: ~/.elan/toolchains/...), or ask a server: lean_server"
            )

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # of the class elsewhere; here the options decide
        """What one call may use: one run for the reference, and one for the response."""
        return Limits(seconds=2 * self.seconds + 10, memory_mb=1024, processes=64)

    def check_reference(self, sample: Sample) -> None:
        """Read a sample's reference; nothing is run."""
        read_lean(sample.reference)

    def read_reference(self, reference: Any) -> LeanTheorem:
        """Return the theorem, which Lean takes."""
        theorem = read_lean(reference)
        if fault := _gold(self, key_of(reference)):
            raise BadReferenceError(fault)
        return theorem

    def nothing(self, reason: str, sample: Sample, gold: LeanTheorem) -> Score:
        """Return the score of a response without a text to grade."""
        return Score.scored(0.0, reason, stage="extract")

    def find_in(self, text: str, sample: Sample, gold: LeanTheorem) -> LeanFile | Score:
        """Return the file that Lean is to read."""
        return answered(text, gold, response_text(sample).rindex(text))

    def judge(self, file: LeanFile, gold: LeanTheorem) -> Score:
        """Return the verdict on one proof; see `adjudge.verifiers.proofs.lean_source` for the evidence."""
        done = self.run(file)
        if done.ending != "exited":
            return Score.scored(0.0, ENDINGS[done.ending], stage="compile")
        try:
            return verdict(read_json_lines(done.stdout.decode("utf-8", "replace")), file, gold.axioms)
        except MessageError as error:
            return Score.scored(0.0, "candidate_error", stage="compile", error=str(error))

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
        BadReferenceError: it took too long, or too much memory; nothing is kept then.
    """
    file = gold_file(read_lean(wire.loads(key)))
    done = verifier.run(file)
    if done.ending != "exited":
        raise BadReferenceError(f"reading the reference ended by {done.ending}: {shown(done.stderr)}", limit=True)
    try:
        return gold_fault(read_json_lines(done.stdout.decode("utf-8", "replace")), file.key)
    except MessageError as error:
        return f"{error}; {shown(done.stderr)}"

"""Coq in the sandbox: the reference compiled once, each answer compiled and checked.

Not covered: other versions' ways of printing assumptions; what is not understood counts as an axiom.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adjudge.bad_reference import BadReferenceError
from adjudge.verifiers.execution.program import Program, RunLimits, RunResult
from adjudge.verifiers.execution.runner import Runner
from adjudge.verifiers.proofs.coq_source import Answer, Theorem
from adjudge.verifiers.proofs.toolbox import shown

_FLAGS: Final = ("-q", "-w", "none", "-noglob", "-native-compiler", "no", "-Q", ".", "Adjudge")
# Coq finds its plug-ins by findlib, which wants some configuration and does with an empty one.
_ENVIRONMENT: Final = {"OCAMLFIND_CONF": "/dev/null"}
_CLOSED: Final = "Closed under the global context"
_ERROR: Final = re.compile(r'^File "\./Answer\.v", line (\d+), characters (\d+)-\d+:\n(?=Error)', re.MULTILINE)
_AXIOM: Final = re.compile(r"([^\W\d][\w'.]*)(?:\s*:.*)?")


@dataclass(frozen=True, slots=True)
class Place:
    """Where Coq found an error: line from 1, and bytes from 0."""

    line: int
    byte: int


def compiled(runner: Runner, theorem: Theorem, limits: RunLimits) -> dict[str, bytes]:
    """Return the compiled header and goal, by file name.

    Raises:
        BadReferenceError: one does not compile, or no proof could pass: the statement rests on what is not permitted.
    """
    made: dict[str, bytes] = {}
    for name, source, part in (
        (theorem.given, theorem.header, "header"),
        ("Goal", theorem.goal, "statement"),
        ("Ground", theorem.ground, "list of axioms"),
    ):
        done = compile_file(runner, name, source, made, limits)
        if done.ending not in ("exited", "signalled"):  # an anomaly of Coq looks like a signal: its status is 129
            raise BadReferenceError(f"compiling the reference's {part} ended by {done.ending}", limit=True)
        if done.code != 0 or not done.outputs.get(f"{name}.vo"):
            raise BadReferenceError(f"the reference's {part} does not compile: {shown(done.stderr)}")
        made[f"{name}.vo"] = done.outputs[f"{name}.vo"]
    if unknown := unknown_axioms(done.stdout.decode("utf-8", "replace"), theorem):
        raise BadReferenceError(
            f"the statement itself rests on {', '.join(unknown)[:500]}, which no proof may use; add the full names "
            "(Coq's Locate tells them) to axioms"
        )
    del made["Ground.vo"]
    return made


def compile_file(runner: Runner, name: str, source: str, beside: Mapping[str, bytes], limits: RunLimits) -> RunResult:
    """Compile one file beside compiled ones; its own comes back as `name.vo`."""
    files = {**beside, f"{name}.v": source.encode("utf-8", "replace")}
    program = Program(
        command=("coqc", *_FLAGS, f"{name}.v"), files=files, environment=_ENVIRONMENT, outputs=(f"{name}.vo",)
    )
    return runner.run(program, limits)


def recheck(runner: Runner, made: Mapping[str, bytes], limits: RunLimits) -> RunResult:
    """Have Coq's independent checker look at the answer's module; libraries are believed."""
    command = ("coqchk", "-silent", "-Q", ".", "Adjudge", "-norec", "Adjudge.Answer")
    return runner.run(Program(command=command, files=dict(made), environment=_ENVIRONMENT), limits)


def error_place(stderr: str) -> Place | None:
    """Return where the first error of a compilation stands (what a tactic says comes after it), where Coq knows."""
    found = _ERROR.search(stderr)
    return Place(int(found[1]), int(found[2])) if found else None


def accepted(answer: Answer, place: Place) -> int:
    """Return the character of the response at which an error stands; its length, where that is behind it."""
    line = place.line - answer.lines - 1
    if line < 0:
        return 0
    lines = answer.body.split("\n")
    if line >= len(lines):
        return len(answer.body)
    before = sum(len(one) + 1 for one in lines[:line])
    return before + len(lines[line].encode("utf-8", "replace")[: place.byte].decode("utf-8", "ignore"))


def unknown_axioms(printed: str, theorem: Theorem) -> list[str]:
    """Return what a proof rests on beside what it may, from the output of Check.v.

    The output holds the assumptions of the proof, then those of each permitted axiom: Coq prints an axiom's name in the
    shortest way that is its own, so equal names are one axiom.
    """
    blocks: list[list[str]] = []
    for line in printed.splitlines():
        if line in (_CLOSED, "Axioms:"):
            blocks.append([])
        elif not blocks:
            return [line.strip()]
        elif line.strip() and not line[0].isspace():
            blocks[-1].append(line)
    if len(blocks) != 1 + len(theorem.axioms):
        return ["the list of assumptions cannot be read"]
    allowed = {match[1] for block in blocks[1:] for line in block if (match := _AXIOM.fullmatch(line))}
    own = (f"{theorem.given}.", f"Adjudge.{theorem.given}.")
    unknown = []
    for line in blocks[0]:
        name = _AXIOM.fullmatch(line)
        if name is None or not (name[1] in allowed or name[1].startswith(own)):
            unknown.append(name[1] if name else line)
    return unknown

"""What the provers share: which of them the host has, how a run that did not end well is scored, the marked answer."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeAlias

from adjudge import wire
from adjudge.options import Range
from adjudge.protocol import Score
from adjudge.sandbox.bubblewrap import SYSTEM_PATH
from adjudge.sandbox.program import RunLimits
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.code.extraction import Block, program_in

_REMEDY: Final = {
    "coqc": "install Coq (Debian, Ubuntu: apt-get install coq; macOS: brew install coq)",
    "coqchk": "install Coq (Debian, Ubuntu: apt-get install coq; macOS: brew install coq)",
    "z3": "install Z3 (Debian, Ubuntu: apt-get install z3; macOS: brew install z3)",
    "cvc5": "install cvc5 (Debian, Ubuntu: apt-get install cvc5; macOS: brew install cvc5/cvc5/cvc5)",
}

MAX_CHARACTERS: Final = 200_000
"""Longest response that is looked at."""

_SHOWN = 2_000


Seconds: TypeAlias = Annotated[float, Range(ge=0.1, le=3600)]
Memory: TypeAlias = Annotated[int, Range(ge=64, le=65_536)]
"""The limits that all provers have as options: of each run, in seconds and in MiB."""


@cache
def require(tool: str) -> None:
    """Make sure that a tool is there.

    Raises:
        ValueError: it is not.
    """
    if shutil.which(tool, path=SYSTEM_PATH) is None:
        raise ValueError(f"{tool} is not installed in {SYSTEM_PATH}, and the scorer runs it; {_REMEDY[tool]}")


def run_limits(seconds: float, memory_mb: int) -> RunLimits:
    """Return the limits of one run of a prover."""
    return RunLimits(seconds=seconds, memory_mb=memory_mb, processes=32, output_bytes=4 << 20, disk_mb=64)


def key_of(reference: Any) -> str:
    """Return a reference as text, by which what was found of it is kept.

    Raises:
        BadReferenceError: it is not plain data.
    """
    try:
        return wire.dumps(reference)
    except TypeError as error:
        raise BadReferenceError(str(error)) from error


def proof_in(text: str, labels: frozenset[str], block: Block = "last") -> str | Score:
    """Return the proof in a text, or the zero for having none or too long a one."""
    return program_in(text, labels, block, most=MAX_CHARACTERS, stage="extract")


def tagged(text: str) -> str | None:
    """Return what stands in the last closed `<answer>...</answer>` of a text, in time linear in its length."""
    start = text.rfind("<answer>", 0, max(0, text.rfind("</answer>")))
    return None if start < 0 else text[start + len("<answer>") :].partition("</answer>")[0]


def shown(output: bytes | str) -> str:
    """Return the start of what a program said, for the evidence."""
    text = output if isinstance(output, str) else output.decode("utf-8", "replace")
    return text.strip()[:_SHOWN]


_KEYS: Final = frozenset({"header", "statement", "axioms"})
_MAX_CHARACTERS = 200_000


def parsed(reference: Any) -> Any:
    """Return a reference that is a JSON object in text, as tables and command lines have it, as that object."""
    if isinstance(reference, str) and reference.lstrip().startswith("{"):
        try:
            return json.loads(reference)
        except (ValueError, RecursionError) as error:
            raise ReferenceFormError(f"the reference begins as JSON and is none: {error}") from error
    return reference


def theorem_parts(
    reference: Any, axiom: re.Pattern[str], *, example: str, example_axiom: str
) -> tuple[str, str, tuple[str, ...]]:
    """Return what a reference gives, a mapping or a statement alone: header, statement, names of permitted axioms.

    `axiom` is what the name of one looks like; the examples are for the messages.

    Raises:
        BadReferenceError: it is not of the form.
    """
    reference = parsed(reference)
    if isinstance(reference, str):
        reference = {"statement": reference}
    if not isinstance(reference, Mapping):
        raise ReferenceFormError(
            f'the reference is a {type(reference).__name__}; give {{"header": ..., "statement": "{example}"}}'
        )
    if unknown := sorted(set(map(str, reference)) - _KEYS):
        raise ReferenceFormError(f"the reference has {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
    header, statement, axioms = reference.get("header") or "", reference.get("statement"), reference.get("axioms") or ()
    if not isinstance(header, str) or not isinstance(statement, str):
        raise ReferenceFormError("the reference's header and statement must be text")
    if not isinstance(axioms, list | tuple) or not all(isinstance(one, str) and axiom.fullmatch(one) for one in axioms):
        raise ReferenceFormError(f"the reference's axioms is {axioms!r:.80}; list full names: {example_axiom}")
    if max(len(header), len(statement)) > _MAX_CHARACTERS:
        raise BadReferenceError(f"the reference is longer than {_MAX_CHARACTERS} characters")
    return header, statement, tuple(axioms)

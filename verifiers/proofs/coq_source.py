r"""The files that Coq compiles: what the reference gives, what it asks for, the answer, and the check of the answer.

    Given.v    the header, alone
    Goal.v     the statement, in the header's context; keeps its type as `asked`
    Ground.v   loads Goal under its full name, and asks what the statement itself rests on
    Answer.v   the response, in the header's context; Goal is not there yet
    Check.v    loads Goal and Answer under their full names, imports nothing, and defines `checked : asked := answer`

So no notation, scope, coercion or redefinition in a response reaches the statement: that was read before, elsewhere.

Coq source as text: comments and strings taken out, and sentences found.

A comment is `(* ... *)` and nests; a string is `"..."`, in which `""` is one quote, and Coq reads strings inside
comments, too.  A sentence ends at a dot, or three, before white space or the end; bullets and braces are sentences.

What a Coq proof may not say, whatever it would come to.

Most of it could not pass anyway: the final check sees every axiom and every kernel check that was turned off.  What
is left are commands that read or write files, load code, or speak for Coq.

Not covered: headers that leave a section open.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.proofs.toolbox import theorem_parts

_TOKEN = re.compile(r'\(\*|\*\)|"')
_DOTS = re.compile(r"\.+(?=\s|\Z)")
_BULLET = re.compile(r"\s*(?:[{}]|-+|\++|\*+|(?:\d+|\[\s*\w+\s*\])\s*:\s*\{)(?=[\s{}\w(\[]|\Z)")
_NOT_BLANK = re.compile(r"[^\s]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of Coq.

    It is without comments, with single blanks; it starts at a character that is not a blank and ends one past its dot.
    """

    text: str
    start: int
    end: int


def without_comments(source: str, strings: bool = True) -> str:
    """Return source of the same length in which comments, and with `strings` also strings, are blanks."""
    kept: list[str] = []
    at, depth, string, opened = 0, 0, False, 0
    for token in _TOKEN.finditer(source):
        mark = token[0]
        if string:
            if mark != '"':
                continue
            string = False
            if not depth:
                inside = source[at : token.start()]
                kept.append(_blank(inside) if strings else inside)
                at = token.start()
        elif mark == '"':
            string = True
            if not depth:
                kept.append(source[at : token.end()])
                at = token.end()
        elif mark == "(*":
            if not depth:
                kept.append(source[at : token.start()])
                at = opened = token.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                kept.append(_blank(source[opened : token.end()]))
                at = token.end()
    rest = source[at:]
    kept.append(_blank(rest) if depth or (string and strings) else rest)
    return "".join(kept)


def sentences(source: str) -> list[Sentence]:
    """Return the sentences of a source, in order; what follows the last dot is one, too."""
    bare, readable = without_comments(source), without_comments(source, strings=False)
    listed: list[Sentence] = []
    at = 0
    for dots in _DOTS.finditer(bare):
        if len(dots[0]) == 2:  # the ".." of recursive notations
            continue
        at = _bullets(bare, at, dots.start(), listed)
        _add(readable, at, dots.end(), listed)
        at = dots.end()
    at = _bullets(bare, at, len(bare), listed)
    _add(readable, at, len(bare), listed)
    return listed


def _bullets(bare: str, at: int, end: int, listed: list[Sentence]) -> int:
    """Add the bullets and braces that open a stretch, and return where they end."""
    while (mark := _BULLET.match(bare, at, end)) is not None:
        _add(bare, at, mark.end(), listed)
        at = mark.end()
    return at


def _add(readable: str, start: int, end: int, listed: list[Sentence]) -> None:
    first = _NOT_BLANK.search(readable, start, end)
    if first is not None:
        listed.append(Sentence(" ".join(readable[first.start() : end].split()), first.start(), end))


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


GAPS: Final = frozenset({"Admitted", "admit", "give_up", "Admit"})
"""Words that leave a gap in a proof."""

_WORDS: Final = frozenset(
    {
        *("Axiom", "Axioms", "Parameter", "Parameters", "Conjecture", "Conjectures"),
        *("Register", "bypass_check", "bypass_guard"),
        *("Drop", "Quit", "Load", "Redirect", "Extraction", "Extract", "LoadPath", "Cd", "Reset", "BackTo"),
        *("Warnings", "deprecated", "Timeout", "Profiling"),
    }
)
_PHRASES: Final = re.compile(
    r"(?:Guard|Positivity|Universe)\s+Checking|Type\s+In\s+Type|Declare\s+(?:ML\s+)?Module|Module\s+Type|Primitive\s+(?!Projections\b)"
    r"|Add\s+(?:Rec\s+)?(?:LoadPath|ML)|Print\s+(?:Sorted\s+)?Universes|Write\s+State|Restore\s+State"
)
_WORD = re.compile(r"[^\W\d][\w']*")


def forbidden(source: str, given: str = "") -> tuple[str, str]:
    """Return the first thing in a source that is forbidden, and the reason for a zero; or two empty texts.

    A gap is "wrong": the proof is not there.  The rest is "tampering".  Words of `given`, the reference's text, may be
    used: there they are names, such as an instruction `Load`.
    """
    bare = without_comments(source)
    named = set(_WORD.findall(without_comments(given)))
    for word in _WORD.finditer(bare):
        if word[0] in named:
            continue
        if word[0] in GAPS:
            return word[0], "wrong"
        if word[0] in _WORDS:
            return word[0], "tampering"
    phrase = _PHRASES.search(bare)
    return (" ".join(phrase[0].split()), "tampering") if phrase else ("", "")


_KIND: Final = "Theorem|Lemma|Fact|Remark|Corollary|Proposition|Property|Example|Definition"
_HEAD: Final = re.compile(rf"(?:{_KIND})\s+([^\W\d][\w']*)")
_QUALIFIED: Final = re.compile(r"[^\W\d][\w']*(?:\.[^\W\d][\w']*)+")
# Sentences of a header that work only in the file they stand in; a module does not pass them on.
_LOCAL: Final = re.compile(
    r"(?:(?:Local|Global|#\[\s*\w+\s*\])\s+)*(?:From|Require|Import|Export|Open|Close|Set|Unset|Generalizable|Implicit"
    r"|Delimit|Bind|Undelimit|Obligation\s+Tactic)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """What is to be proved.

    Attributes:
        statement: one sentence that names a theorem and ends with a dot.
        axioms: full names of axioms that a proof may use, beside the header's own.
        given: name of the header's module; a hash, so that no response has one of the same name.
    """

    header: str
    statement: str
    name: str
    axioms: tuple[str, ...]
    given: str

    @property
    def context(self) -> str:
        """Lines that bring the header's context into a file."""
        local = [one.text for one in sentences(self.header) if _LOCAL.match(one.text)]
        return "\n".join([f"Require Import Adjudge.{self.given}.", *local])

    @property
    def goal(self) -> str:
        """Source of Goal.v."""
        kept = f"Definition asked := ltac:(let T := type of (@{self.name}) in exact T)."
        return f"{self.context}\n{self.statement}\nAdmitted.\n{kept}\n"

    @property
    def ground(self) -> str:
        """Source of Ground.v."""
        return f"Require Adjudge.Goal.\n{self._assumptions('Adjudge.Goal.asked')}"

    @property
    def check(self) -> str:
        """Source of Check.v."""
        checked = f"Definition checked : Adjudge.Goal.asked := @Adjudge.Answer.{self.name}."
        return f"Require Adjudge.Goal.\nRequire Adjudge.Answer.\n{checked}\n{self._assumptions('checked')}"

    def _assumptions(self, name: str) -> str:
        """Return lines that ask what a constant rests on, and then each permitted axiom."""
        lines = [f"Require {axiom.rpartition('.')[0]}." for axiom in self.axioms]
        lines += [f"Print Assumptions {one}." for one in (name, *self.axioms)]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response's file.

    Attributes:
        lines: how many of its lines stand before the response's own.
        body: the response's own, as it is in the response.
        own: the same, with blanks for what it repeats of the header.
        sentences: its sentences, with places in `body`.
    """

    source: str
    lines: int
    body: str
    own: str
    sentences: tuple[Sentence, ...]


def read_theorem(reference: Any, axioms: Sequence[str] = ()) -> Theorem:
    """Return what a reference asks for.

    Raises:
        BadReferenceError: it is not of the form, or its statement is not one sentence.
    """
    header, statement, own = theorem_parts(
        reference, _QUALIFIED, example="Theorem t : ... .", example_axiom="Coq.Logic.Classical_Prop.classic"
    )
    said = sentences(statement)
    head = _HEAD.match(said[0].text) if len(said) == 1 else None
    if head is None or not said[0].text.endswith("."):
        raise BadReferenceError(f"the statement is {statement!r:.120}; it must be one sentence: Theorem t : ... .")
    digest = hashlib.sha256(f"{header}\0{statement}".encode("utf-8", "replace")).hexdigest()
    return Theorem(
        header=header,
        statement=statement.strip(),
        name=head[1],
        axioms=tuple(dict.fromkeys((*axioms, *own))),
        given=f"Given{digest[:12]}",
    )


def answer_of(theorem: Theorem, body: str) -> Answer:
    """Return the file of a response that is a whole proof script, or a proof without the statement.

    Sentences of the header with which the response begins are left out: a type declared twice would be two types.
    """
    own, listed = _without_header(body, theorem.header)
    before, after = theorem.context, ""
    if not re.search(rf"\b(?:{_KIND}|Fixpoint|Instance)\s+{re.escape(theorem.name)}(?![\w'])", without_comments(own)):
        before += f"\n{theorem.statement}"
        texts = {one.text for one in listed}
        if not any(text.startswith("Proof") for text in texts):
            before += "\nProof."
        if not texts & {"Qed.", "Defined."}:
            after = "\nQed."
    return Answer(
        source=f"{before}\n{own}{after}\n", lines=before.count("\n") + 1, body=body, own=own, sentences=tuple(listed)
    )


def _without_header(body: str, header: str) -> tuple[str, list[Sentence]]:
    """Return a response with blanks for the header's sentences at its beginning, and its other sentences.

    Only what repeats the header from its first definition on counts: "Proof." may stand in both for other reasons.
    """
    given = [one.text for one in sentences(header) if not _LOCAL.match(one.text)]
    listed = sentences(body)
    own, kept, place = body, [], 0
    for number, one in enumerate(listed):
        if _LOCAL.match(one.text):
            kept.append(one)
        elif place < len(given) and one.text == given[place]:
            place += 1
            own = own[: one.start] + re.sub(r"[^\n]", " ", own[one.start : one.end]) + own[one.end :]
        else:
            return own, [*kept, *listed[number:]]
    return own, kept

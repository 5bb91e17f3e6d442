"""The file that Lean reads: the header, the statement as we pin it, the response, and the check of what it proved.

    <header>
    theorem pinned_<hash> <the statement> := sorry
    #print axioms pinned_<hash>                      says that the reference is fine
    section s<hash>
    <the response, its theorem stated by it or by us>
    end s<hash>
    theorem checked_<hash> : type_of% @pinned_<hash> := @<name>
    #print axioms checked_<hash>                     says what the proof rests on

The pinned statement is read before anything of the response, so none of its notations, instances or namespaces reach
it.  The section ends what a response opened: a variable of its own, such as `[Fact False]`, would else become a silent
hypothesis of the check.  The hash is one of the response itself, so no response can name what it belongs to; a proof
that used the pinned theorem would rest on `sorryAx`.

What a Lean proof may not say, whatever it would come to.

Lean runs code while it reads a file: macros, elaborators, `#eval`, attributes that swap code.  Such code could speak
for Lean, so the words that begin it are refused before Lean sees them; with them whatever adds axioms or trusts
compiled code.  Words are found as Lean finds them, with no blank before them (`'a'macro`, `x⁻¹macro`, `#eval1`).
Comments are not looked at, unless it is doubtful where they end: in a text with a string, a quoted name, or a comment
within a comment.

What Lean's messages come to.

A message is `{"severity": "error", "pos": {"line": 1, "column": 0}, "data": "..."}`, from `lean --json`, the REPL or a
server in front of it.  Nothing but the two answers to our own `#print axioms` is taken as good news, and their names
hold a hash that no response can know.

Steps are lines of the proof up to the one with Lean's first error, as DeepSeek-Prover-V1.5 cuts a proof to go on from
there (`prover/lean/proof.py` at 2c4ba91): an error that says only which goals are left open cuts nothing.  Lines that
plainly end within something (an open bracket, `by`, `:=`) are one with the next; the code asks Lean where tactics end.

Not covered: statements of more than one declaration.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.protocol import Score, StepScore
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.proofs.toolbox import proof_in, shown, theorem_parts

GAPS: Final = frozenset({"sorry", "admit", "sorryAx", "stop"})
"""Words that leave a gap in a proof."""

_WORDS: Final = frozenset(
    (
        "axiom macro macro_rules syntax elab elab_rules notation notation3 infix infixl infixr prefix postfix "
        "binder_predicate declare_syntax_cat initialize builtin_initialize run_cmd run_tac run_meta run_elab by_elab "
        "simproc dsimproc simproc_decl builtin_simproc unsafe implemented_by extern csimp native native_decide "
        "ofReduceBool reduceBool ofReduceNat reduceNat trustCompiler skipKernelTC tactic command_elab term_elab "
        "doElem_elab builtin_command_elab builtin_term_elab delab app_delab unexpander app_unexpander parenthesizer "
        "formatter import prelude Lean Elab Meta MetaM TacticM CommandElabM TermElabM CoreM IO ToExpr Syntax MacroM "
        "addDecl"
    ).split()
)
_COMMAND: Final = re.compile(r"#(?:eval|exit|print|reduce|html|widget|run|test)")
_OPTION: Final = re.compile(r"set_option\s*([\w.]*)", re.ASCII)
_HARMLESS: Final = frozenset({"maxRecDepth", "maxHeartbeats", "linter.all", "linter.unusedVariables", "autoImplicit"})
# Other letters and the quote part words, for Lean does so, too: behind a superscript, say, or a character in quotes.
_WORD: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_COMMENT: Final = re.compile(r"--[^\n]*|/-.*?(?:-/|\Z)", re.DOTALL)


def without_comments(source: str) -> str:
    """Return source with a blank for each comment; as it is where one may end elsewhere than it seems to.

    A line comment runs to the end of its line, a block comment `/- ... -/` nests.
    """
    if '"' in source or "\u00ab" in source:
        return source
    blocks = (one for one in _COMMENT.findall(source) if one.startswith("/-"))
    if any("/-" in one[2:] or one == "/--/" for one in blocks):
        return source
    return _COMMENT.sub(" ", source)


def forbidden(source: str, statement: str = "") -> tuple[str, str]:
    """Return the first thing in a source that is forbidden, and the reason for a zero; or two empty texts.

    A gap is "wrong": the proof is not there.  The rest is "tampering".  A word for a gap that stands in the
    pinned statement is a name there, such as `stop`, and may be used.
    """
    bare = without_comments(source)
    gaps = GAPS.difference(_WORD.findall(statement))
    for word in _WORD.finditer(bare):
        if word[0] in gaps:
            return word[0], "wrong"
        if word[0] in _WORDS:
            return word[0], "tampering"
    for option in _OPTION.finditer(bare):
        if option[1] not in _HARMLESS:
            return f"set_option {option[1]}", "tampering"
    command = _COMMAND.search(bare)
    return (command[0], "tampering") if command else ("", "")


_HEAD: Final = re.compile(r"\s*(?:theorem|lemma)\s+([^\s:({\[⦃]+)")
_PROOF: Final = re.compile(r"\s*:=\s*(?:by\s*)?(?:sorry\s*)?\Z")
_OPENING: Final = re.compile(r"\s*(?::=\s*)?by\b[ \t]*\n?")
_CONTEXT: Final = ("import ", "open ", "set_option ", "--", "universe ", "variable ", "noncomputable section")
_NAME: Final = re.compile(r"[^\W\d][\w'.!?]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeanTheorem:
    """What is to be proved.

    Attributes:
        rest: what follows the name, up to where the proof would begin.
        axioms: axioms that a proof may use beside Lean's three.
    """

    header: str
    name: str
    rest: str
    axioms: tuple[str, ...]

    def pinned(self, key: str) -> str:
        """Return the header and the pinned statement, and the question whether Lean takes them."""
        return f"{self.header}\n\ntheorem pinned_{key} {self.rest} := sorry\n\n#print axioms pinned_{key}\n"


@dataclass(frozen=True, slots=True)
class LeanFile:
    """A source, the hash in the names that are ours, and what of the source the response wrote.

    Attributes:
        body: the proof as it stands in the response, at the character `start`.
    """

    source: str
    key: str
    own: str = ""
    body: str = ""
    start: int = 0


def read_lean(reference: Any) -> LeanTheorem:
    """Return what a reference asks for.

    Raises:
        BadReferenceError: it is not of the form.
    """
    header, statement, axioms = theorem_parts(
        reference, _NAME, example="theorem t (n : Nat) : n + 0 = n", example_axiom="Lean.ofReduceBool"
    )
    bare = without_comments(statement)
    head = _HEAD.match(bare)
    if head is None or not _NAME.fullmatch(head[1]) or ":" not in bare:
        raise BadReferenceError(
            f"the statement is {statement!r:.120}; it must be like: theorem t (n : Nat) : n + 0 = n"
        )
    rest = _PROOF.sub("", bare[head.end() :]).strip()
    return LeanTheorem(header=header.strip("\n"), name=head[1], rest=rest, axioms=axioms)


def gold_file(theorem: LeanTheorem) -> LeanFile:
    """Return the file without a response, which tells whether Lean takes the reference."""
    key = _key(theorem, "")
    return LeanFile(theorem.pinned(key), key)


def lean_file(theorem: LeanTheorem, body: str, start: int = 0) -> LeanFile:
    """Return the file of a response: a whole source, a theorem with its proof, or tactics; `start` is its place."""
    key = _key(theorem, body)
    own = said = _without_header(body, theorem.header)
    stated = re.search(rf"\b(?:theorem|lemma|def|abbrev)\s+{re.escape(theorem.name)}(?![\w'.])", without_comments(own))
    if stated is None:
        opening = _OPENING.match(own)
        term = opening is None and own.lstrip().startswith(":=")
        inner = own[opening.end() :] if opening else own.lstrip().removeprefix(":=") if term else own
        proof = textwrap.indent(textwrap.dedent(inner).strip("\n"), "  ")
        own = f"theorem {theorem.name} {theorem.rest} :={'' if term else ' by'}\n{proof}"
    check = f"theorem checked_{key} : type_of% @pinned_{key} := @{theorem.name}\n\n#print axioms checked_{key}\n"
    source = f"{theorem.pinned(key)}\nsection s{key}\n\n{own}\n\nend s{key}\n\n{check}"
    return LeanFile(source, key, said, body, start)


def _without_header(body: str, header: str) -> str:
    """Leave out what a response repeats of the header at its beginning: imports may stand nowhere else.

    Of definitions, only what repeats the header from its first one on counts: "rfl" may stand in both all the same.
    """
    given = [line.strip() for line in header.split("\n") if line.strip()]
    definitions = [line for line in given if not line.startswith(_CONTEXT)]
    lines = body.strip("\n").split("\n")
    place = 0
    for number, line in enumerate(lines):
        plain = line.strip()
        if plain.startswith(_CONTEXT):
            if plain in given:
                lines[number] = ""
        elif plain:
            if place == len(definitions) or plain != definitions[place]:
                break
            lines[number] = ""
            place += 1
    return "\n".join(lines)


def _key(theorem: LeanTheorem, body: str) -> str:
    text = "\0".join((theorem.header, theorem.name, theorem.rest, body))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]


_LABELS = frozenset({"lean", "lean4", "tactics", "lean3"})


def answered(text: str, theorem: LeanTheorem, start: int = 0) -> LeanFile | Score:
    """Return the file that Lean is to read, or the score of a response that it need not see.

    `start` is where the text begins in the response.
    """
    source = proof_in(text, _LABELS)
    if isinstance(source, Score):
        return source
    ready = lean_file(theorem, source, start + max(0, text.rfind(source)))
    word, reason = forbidden(ready.own, theorem.rest)
    return Score.scored(0.0, reason, stage="rules", forbidden=word) if word else ready


STANDARD: Final = ("propext", "Classical.choice", "Quot.sound")
"""The axioms of Lean's logic, which almost every proof with Mathlib uses."""

_SEVERITIES: Final = {"error": "error", "warning": "warning", "info": "info", "information": "info", "trace": "info"}


class MessageError(ValueError):
    """An answer that is not a list of Lean's messages."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message: how grave, what, and of which line of the file, from 1; None where that is not said."""

    severity: str
    text: str
    line: int | None = None


def read_messages(given: Any) -> list[Message]:
    """Return messages from their JSON.

    Raises:
        MessageError: they are not of the form.
    """
    if given is None:
        return []
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise MessageError(f"the messages are a {type(given).__name__}; they must be a list")
    read = []
    for one in given:
        severity = _SEVERITIES.get(str(one.get("severity"))) if isinstance(one, Mapping) else None
        text = one.get("data") if isinstance(one, Mapping) else None
        if severity is None or not isinstance(text, str):
            raise MessageError(f"{one!r:.120} is not a message of Lean")
        place = one.get("pos")
        line = place.get("line") if isinstance(place, Mapping) else None
        read.append(Message(severity, text, line if type(line) is int else None))
    return read


def read_json_lines(output: str) -> list[Message]:
    """Return the messages of `lean --json`, one JSON object in each line.

    Raises:
        MessageError: a line is something else.
    """
    lines = []
    for line in output.splitlines():
        if not line.strip():
            continue
        try:
            lines.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise MessageError(f"{line!r:.120} is not a message of Lean") from error
    return read_messages(lines)


def axioms_of(messages: Sequence[Message], name: str) -> tuple[str, ...] | None:
    """Return the axioms that `#print axioms name` told of; None where there is no such answer, or not just one."""
    said = re.compile(rf"'(?:[^\s']+\.)?{name}' (?:does not depend on any axioms|depends on axioms:\s*\[([^\[\]]*)\])")
    answers = [match for one in messages if one.severity == "info" and (match := said.fullmatch(one.text.strip()))]
    if len(answers) != 1:
        return None
    return tuple(part.strip() for part in (answers[0][1] or "").split(",") if part.strip())


def gold_fault(messages: Sequence[Message], key: str) -> str:
    """Return why Lean does not take the reference, "" where it does."""
    errors = [one.text for one in messages if one.severity == "error"]
    if errors:
        return f"Lean refuses the reference: {shown(errors[0])}"
    if "sorryAx" not in (axioms_of(messages, f"pinned_{key}") or ()):
        return "Lean said nothing of the pinned statement"
    return ""


_UNFINISHED: Final = re.compile(
    r"(?:\b(?:by|with|using|from|at|fun|do|then|else)|:=|=>|<;>|<\||[-+*/=,:∧∨→↔≤≥<>∘·])\Z", re.ASCII
)
_OPENERS, _CLOSERS = frozenset("([{⟨"), frozenset(")]}⟩")


def steps_of(messages: Sequence[Message], file: LeanFile, proved: bool) -> tuple[StepScore, ...]:
    """Return the lines before Lean's first error, worth 1, and the one with it, worth 0; nothing is known of others."""
    written = file.source.partition(f"\n\nend s{file.key}")[0].rstrip()
    lines = file.body.rstrip().split("\n")
    first = written.count("\n") + 2 - len(lines)  # line of the file at which the proof begins
    errors = [one for one in messages if one.severity == "error" and not one.text.lstrip().startswith("unsolved goals")]
    if any(one.line is None for one in errors):
        return ()
    error = min((one.line for one in errors if one.line is not None and one.line >= first), default=0)
    steps, start, end, depth = [], file.start, file.start, 0
    for number, line in enumerate(lines, first):
        end += len(line)
        plain = without_comments(line).strip()
        depth += sum((letter in _OPENERS) - (letter in _CLOSERS) for letter in plain)
        whole = depth <= 0 and not (plain == "" or plain.startswith(_CONTEXT) or _UNFINISHED.search(plain))
        if number == error:
            steps.append(StepScore(value=0.0, label="error", start=start, end=end))
            break
        if whole or (proved and number == first + len(lines) - 1):
            steps.append(StepScore(value=1.0, label="accepted", start=start, end=end))
            start, depth = end + 1, 0
        end += 1
    return tuple(steps)


def verdict(messages: Sequence[Message], file: LeanFile, allowed: Sequence[str]) -> Score:
    """Return the score of a response whose reference Lean takes, with its steps.

    The evidence has "stage": "compile", "axioms" or "proved".
    """
    score = _outcome(messages, file.key, allowed)
    return replace(score, steps=steps_of(messages, file, score.value == 1.0))


def _outcome(messages: Sequence[Message], key: str, allowed: Sequence[str]) -> Score:
    errors = [one for one in messages if one.severity == "error"]
    if errors:
        return Score.scored(0.0, "candidate_error", stage="compile", error=shown(errors[0].text))
    axioms = axioms_of(messages, f"checked_{key}")
    if axioms is None:
        return Score.scored(0.0, "candidate_error", stage="compile", error="the check after the response was not read")
    if unknown := sorted(set(axioms) - {*STANDARD, *allowed}):
        return Score.scored(0.0, "wrong", stage="axioms", axioms=unknown[:20])
    return Score.scored(1.0, stage="proved", axioms=list(axioms))

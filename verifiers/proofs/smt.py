"""The SMT verifier: is a claim about a formula right, and is a term the one that was asked for?

What a response writes never reaches a solver as it stands: its terms are read, held to declared symbols and those of
SMT-LIB's theories, and printed anew inside an assertion of ours, so no command of a response is ever run.

| the reference asks | the response gives | 1 when |
|---|---|---|
| `formula` | `unsat` | the formula has no model |
| `formula` | `sat` and a model | every assertion holds under the model |
| `equivalent` | a term | no values tell the two terms apart |
| `entails` | a formula | it implies the reference's, and can be true |
| `entailed_by` | a formula | the reference's implies it, and it can be false |

Not covered: floating-point numbers, quantifier elimination, and proofs of unsatisfiability written by the response.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, TypeAlias

from adjudge import wire
from adjudge.protocol import Limits, Sample, Score
from adjudge.sandbox.program import Program, RunLimits
from adjudge.sandbox.sandbox import Sandbox, sandbox
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import TextVerifier
from adjudge.verifiers.code.sandboxed import IsolatedVerifier
from adjudge.verifiers.proofs.smt_terms import (
    AnswerError,
    Expression,
    Formula,
    read_claim,
    read_formula,
    read_term,
    strange_atom,
)
from adjudge.verifiers.proofs.toolbox import Memory, Seconds, key_of, proof_in, require, run_limits, shown, tagged

Solver: TypeAlias = Literal["z3", "cvc5"]
Verdict: TypeAlias = Literal["sat", "unsat", "unknown", "error", "disagreement"]

SOLVERS: Final[tuple[Solver, ...]] = ("z3", "cvc5")
_FILE = "question.smt2"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the solvers say: one verdict, and the words of each."""

    verdict: Verdict
    said: dict[str, str]


def ask(runner: Sandbox, solvers: Sequence[Solver], script: str, limits: RunLimits) -> Reply:
    """Return what solvers say of a script with one `check-sat`.

    "sat" and "unsat" need one that says so and none that says the opposite; "error" is a script that one refuses;
    "unknown" is all the rest, the limits included.
    """
    said: dict[str, str] = {}
    verdicts: set[str] = set()
    for solver in solvers:
        done = runner.run(Program(command=_command(solver, limits.seconds), files={_FILE: script.encode()}), limits)
        word = done.stdout.decode("utf-8", "replace").strip()
        if done.ending != "exited":
            said[solver] = done.ending
        elif word in ("sat", "unsat", "unknown", "timeout"):
            said[solver] = word
        elif "timeout" in word or "interrupted" in done.stderr.decode("utf-8", "replace"):
            said[solver] = "timeout"
        else:
            said[solver] = f"error: {shown(word or done.stderr)}"
        verdicts.add(said[solver].partition(":")[0])
    if {"sat", "unsat"} <= verdicts:
        return Reply("disagreement", said)
    for verdict in ("error", "sat", "unsat"):
        if verdict in verdicts:
            return Reply(verdict, said)
    return Reply("unknown", said)


def _command(solver: Solver, seconds: float) -> tuple[str, ...]:
    # A solver that stops by itself can still say "unknown"; the sandbox's limit is for those that do not.
    soft = max(1, int(900 * seconds))
    if solver == "z3":
        return ("z3", "-smt2", f"-t:{soft}", _FILE)
    return ("cvc5", "--lang=smt2", f"--tlimit={soft}", _FILE)


_LABELS = frozenset({"smt2", "smt", "smtlib", "smt-lib", "smtlib2", "lisp", "scheme"})
_CACHED = 256


class _UndecidedError(Exception):
    """The solvers came to no verdict, or to two."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.verdict)
        self.reply = reply


@dataclass(frozen=True, kw_only=True)
class SmtVerifier(IsolatedVerifier, TextVerifier[tuple[Formula, str], str]):
    """1 when the response's claim, model or term is right by the solvers, else 0.

    The reference is `{"formula": SMT-LIB script, "expected": "sat" or "unsat"}`, or `{"declarations": script,
    "equivalent": term}`; in place of `equivalent`, `entails` or `entailed_by`. `expected` may be left out.

    Attributes:
        solvers: which are asked: "z3", "cvc5", or both; where both have a verdict, they must agree.
        model: "required": a claim of sat without a model is worth nothing; "optional": it is compared with the verdict.
        undecided: a term that the solvers cannot decide is worth 0 ("zero") or fails ("failed").
        seconds: seconds for each question to each solver.
        memory_mb: MiB for each.
    """

    name: ClassVar[str] = "smt"
    version: ClassVar[str] = "4"

    solvers: tuple[Solver, ...] = ("z3",)
    model: Literal["required", "optional"] = "required"
    undecided: Literal["zero", "failed"] = "zero"
    seconds: Seconds = 10.0
    memory_mb: Memory = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        given: Any = tuple(self.solvers) if isinstance(self.solvers, list | tuple) else (self.solvers,)
        object.__setattr__(self, "solvers", given)
        if not given or len(set(given)) < len(given) or not set(given) <= set(SOLVERS):
            raise ValueError(f"smt option solvers={given!r}; list z3, cvc5, or both")
        for solver in given:
            require(solver)

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # of the class elsewhere; here the options decide
        """What one call may use: one question about the reference, and two about the response."""
        return Limits(seconds=3 * len(self.solvers) * self.seconds + 10, memory_mb=1024, processes=64)

    def verify(self, sample: Sample) -> Score:
        """Return the verdict on one response; the evidence has what the solvers said."""
        try:
            return super().verify(sample)
        except _UndecidedError as error:
            reason = "undecided" if error.reply.verdict == "disagreement" else "gold_timeout"
            return Score.failed(reason, gold=error.reply.said)

    def check_reference(self, sample: Sample) -> None:
        """Read a sample's reference; no solver is asked."""
        read_formula(sample.reference)

    def read_reference(self, reference: Any) -> tuple[Formula, str]:
        """Return the formula, and the verdict on it."""
        formula = read_formula(reference)
        verdict = _gold(self, key_of(reference))
        if verdict == "sat" and self.model == "required" and formula.nameless:
            raise BadReferenceError(
                f"no model can name a value of {formula.nameless!r:.60}, whose sort is only declared; "
                "set model to optional"
            )
        return formula, verdict

    def find_in(self, text: str, sample: Sample, gold: tuple[Formula, str]) -> str | Score:
        """Return the claim or the term."""
        marked = tagged(text)
        return proof_in(text if marked is None else marked, _LABELS)

    def judge(self, text: str, gold: tuple[Formula, str]) -> Score:
        """Return the verdict on a claim or a term."""
        formula, verdict = gold
        try:
            if formula.term is None:
                return self._claimed(formula, verdict, text)
            return self._compared(formula, formula.term, read_term(text))
        except AnswerError as error:
            return Score.scored(0.0, error.reason, error=str(error))
        except _UndecidedError as error:
            said = error.reply.said
            if error.reply.verdict == "disagreement":
                return Score.failed("undecided", disagreement=said)
            if self.undecided == "failed":
                return Score.failed("undecided", solvers=said)
            return Score.scored(0.0, "undecided", solvers=said)

    def ask(self, script: str) -> Reply:
        """Return a reply that is a verdict.

        Raises:
            AnswerError: a solver refuses the script.
            _UndecidedError: they cannot tell, or not agree.
        """
        reply = ask(sandbox(self.isolation), self.solvers, script, run_limits(self.seconds, self.memory_mb))
        if reply.verdict == "error":
            raise AnswerError("unparsable_answer", "; ".join(reply.said.values()))
        if reply.verdict in ("unknown", "disagreement"):
            raise _UndecidedError(reply)
        return reply

    def _claimed(self, formula: Formula, verdict: str, text: str) -> Score:
        claim = read_claim(text, formula)
        shown = {"claimed": claim.verdict, "gold": verdict}
        if claim.verdict != verdict:
            return Score.scored(0.0, "wrong", **shown)
        if claim.verdict == "unsat":
            return Score.scored(1.0, **shown)
        if claim.values is None and formula.functions:
            if self.model == "required":
                return Score.scored(0.0, "no_answer", error="sat without a model", **shown)
            return Score.scored(1.0, **shown)
        reply = self.ask(formula.script(values=claim.values or {}))
        if reply.verdict != "sat":
            return Score.scored(0.0, "wrong", solvers=reply.said, **shown)
        return Score.scored(1.0, solvers=reply.said, **shown)

    def _compared(self, formula: Formula, gold: Expression, term: Expression) -> Score:
        if strange := strange_atom(term, formula.symbols):
            return Score.scored(0.0, "unparsable_answer", error=f"{strange!r:.60} is not declared")
        if formula.question == "equivalent":
            apart: Expression = ("not", ("=", gold, term))
            possible: Expression | None = None
        elif formula.question == "entails":
            apart, possible = ("not", ("=>", term, gold)), term
        else:
            apart, possible = ("not", ("=>", gold, term)), ("not", term)
        reply = self.ask(formula.script(apart))
        if reply.verdict == "sat":
            return Score.scored(0.0, "wrong", solvers=reply.said)
        if possible is not None:
            reply = self.ask(formula.script(possible))
            if reply.verdict == "unsat":
                return Score.scored(0.0, "wrong", error="the answer says nothing: no values make a difference to it")
        return Score.scored(1.0, solvers=reply.said)


@lru_cache(maxsize=_CACHED)
def _gold(verifier: SmtVerifier, key: str) -> str:
    """Return the verdict on a reference's formula, or "" where it asks for a term; kept, as a batch repeats it.

    Raises:
        BadReferenceError: a solver refuses it, or says the opposite of what it expects.
        _UndecidedError: the solvers cannot tell what it does not say, or disagree.
    """
    formula = read_formula(wire.loads(key))
    own: tuple[Expression, ...] = () if formula.term is None else (("=", formula.term, formula.term),)
    try:
        reply = verifier.ask(formula.script(*own))
    except AnswerError as error:
        raise BadReferenceError(f"the reference is refused: {error}") from error
    except _UndecidedError as error:
        if error.reply.verdict == "unknown" and (formula.expected or formula.term is not None):
            return formula.expected
        raise
    if formula.term is not None:
        if reply.verdict == "unsat":
            raise BadReferenceError("the reference's declarations contradict themselves: every term would be right")
        return ""
    if formula.expected not in ("", reply.verdict):
        raise BadReferenceError(f"the reference expects {formula.expected}, and the solvers say {reply.verdict}")
    return reply.verdict

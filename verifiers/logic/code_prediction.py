"""What does a program return, or for which input does it return this?

    predict="output": value = 1     if the value written is the one that the program returns, else 0
    predict="input":  value = 1     if the program, run on the input written, returns the given value, else 0

Values and inputs are literals (`adjudge.verifiers.logic.literal`), bare or in backticks; neither is ever evaluated.
For inputs the task's own program runs, in the sandbox of the code verifier, and any input that gives it is right.

Predicted outputs are compared type by type: `True` is not 1, a list no tuple; 2 is 2.0.  What programs return is
compared as `code` does it, where a list equals a tuple.

Not covered: values that have no literal: objects, NaN, empty sets.
"""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from adjudge.options import Range
from adjudge.protocol import Limits, Sample, Score
from adjudge.responses.answer_span import shorten
from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.sandbox import Isolation
from adjudge.sandbox.warm_python import shared
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import fields_of, shown
from adjudge.verifiers.code.comparison import Rules
from adjudge.verifiers.code.outcome import Verdict
from adjudge.verifiers.code.python_candidate import run_data
from adjudge.verifiers.code.sandboxed import SandboxedVerifier, tried_twice
from adjudge.verifiers.code.suite import read_suite
from adjudge.verifiers.logic.literal import (
    LiteralError,
    parse_python,
    read_arguments,
    read_claim,
    read_literal,
    value_of,
)
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier

Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]

_PROCESSES: Final = 16
_MAX_KEPT: Final = 256

_kept: dict[tuple[object, ...], Verdict] = {}


_OPTIONAL: Final = ("entry_point", "input", "keywords", "output", "returns")
_COMPARED: Final = (int, float, complex, list, tuple, dict)
_HEDGE: Final = re.compile(r"""#[^\n]*(?:[\d()\[\]{}'"]|\b(?:or|True|False|None|true|false|null)\b)""")
_SPARE_SECONDS: Final = 30.0  # starting sandboxes, killing, a second try


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A program, the value that a call of it gives, and which of output and input is asked for.

    Attributes:
        output: whether the value is asked for; else an input that gives it.
        loose: whether a list equals a tuple, since the reference's value comes from JSON.
        keywords: whether inputs are mappings of keyword arguments.
        gold: arguments that give the value, where the reference has them.
    """

    code: str
    entry_point: str
    expected: Any
    output: bool
    loose: bool
    keywords: bool
    gold: Arguments | None


@dataclass(frozen=True, kw_only=True)
class CodePredictionVerifier(SandboxedVerifier, MarkedAnswerVerifier[Prediction]):
    """1 when the output or the input of a program is predicted, else 0.

    The reference is `{"code": "def f(x): ..", "predict": "output", "input": "[1, 2], 3", "output": "[3]"}`: texts as
    they would stand in `assert f([1, 2], 3) == [3]`.  "returns" may stand for "output" and be the value itself,
    "entry_point" is the function, "f" if it is missing, and with a mapping as "input", or with "keywords": true, inputs
    are JSON objects of keyword arguments.  With "predict": "input" any input is right that gives the output, by itself
    or in an assert that says so.

    Attributes:
        tolerance: relative difference that two numbers may have if one of them is a float.
        seconds, memory_mb: for one run of the program, in seconds and MiB.
        isolation: "bubblewrap", or "none" for programs you trust.
    """

    name: ClassVar[str] = "code_prediction"
    version: ClassVar[str] = "8"

    tolerance: Annotated[float, Range(ge=0, lt=1)] = 0.0
    seconds: Annotated[float, Range(ge=1e-3, le=600)] = 5.0
    memory_mb: Annotated[int, Range(ge=32)] = 512
    isolation: Isolation = "bubblewrap"

    unavailable: ClassVar[tuple[type[Exception], ...]] = (SandboxUnavailableError,)

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """What one call may use: the gold input's run and the answer's, each a second time if a sandbox is lost."""
        return Limits(seconds=4 * self.seconds + _SPARE_SECONDS, memory_mb=2048, processes=4096)

    def check_reference(self, sample: Sample) -> None:
        """Read a sample's reference; nothing is run."""
        _read(sample.reference)

    def read_reference(self, reference: Any) -> Prediction:
        """Return what is asked; a gold input that is given is tried once."""
        prediction = _read(reference)
        if prediction.gold is not None and not prediction.output:
            try:
                verdict = self._call_once(prediction, prediction.gold)
            except ValueError as error:
                raise BadReferenceError(f"the program cannot be called: {error}") from error
            if verdict.value("all") != 1.0:
                raise BadReferenceError(f"the gold input does not give the output: {verdict.evidence()}")
        return prediction

    def shown(self, text: str, gold: Prediction) -> str:
        """Return the text with CRUXEval's marks as elements, else as it is: an answer may be made of what hides."""
        del gold
        return text if "<answer>" in text else text.replace("[ANSWER]", "<answer>").replace("[/ANSWER]", "</answer>")

    def judge_text(self, answer: str, gold: Prediction) -> Score:
        """Return 1 for a right prediction."""
        if _HEDGE.search(answer) and hedged(answer):
            return Score.scored(0.0, "several_answers", answer=shorten(answer))
        if gold.output:
            offered = read_claim(answer, gold.entry_point)
            right = same(gold.expected, offered, self.tolerance, loose=gold.loose)
            return Score.scored(float(right), "" if right else "wrong", answer=shorten(answer))
        answer, claimed = _call_and_value(answer, gold)
        if not same(gold.expected, claimed, self.tolerance, loose=gold.loose):
            return Score.scored(0.0, "wrong", answer=shorten(answer))
        verdict = self._call(gold, _arguments(answer, gold.entry_point, keywords=gold.keywords))
        value = verdict.value("all")
        return Score.scored(value, "" if value else verdict.first_reason() or "wrong", **verdict.evidence())

    def _call(self, asked: Prediction, arguments: Arguments) -> Verdict:
        """Return whether the program gives its value for these arguments; `ValueError` if they are not plain data."""
        args, kwargs = arguments
        case = {"args": list(args), "kwargs": dict(kwargs), "expected": asked.expected}
        suite = read_suite({"tests": [case], "entry_point": asked.entry_point})
        run = RunLimits(seconds=self.seconds, memory_mb=self.memory_mb, processes=_PROCESSES)
        rules = Rules(tolerance=self.tolerance)
        warm = shared(self.isolation)

        with warm.lock:
            return tried_twice(
                self.isolation,
                lambda: run_data(warm, asked.code, suite, run, rules, thorough=False, budget=2 * self.seconds),
                lambda error: Verdict(total=1).stopped("run", "candidate_crash", error),
            )

    def _call_once(self, asked: Prediction, arguments: Arguments) -> Verdict:
        """Return what `_call` returns; that it is right is kept for the other responses to the same task."""
        limits = (self.seconds, self.memory_mb, self.tolerance, self.isolation)
        key = (asked.code, asked.entry_point, repr(asked.expected), repr(arguments), *limits)
        if key in _kept:
            return _kept[key]
        verdict = self._call(asked, arguments)
        if verdict.value("all") == 1.0:  # a time limit may be missed only once, on a busy machine
            if len(_kept) >= _MAX_KEPT:
                _kept.clear()
            _kept[key] = verdict
        return verdict


def _call_and_value(answer: str, asked: Prediction) -> tuple[str, Any]:
    """Return the call in "assert f(..) == value", as CRUXEval asks for an input, and the value, else the given one."""
    text = answer.strip().removeprefix("assert ").strip()
    if re.match(rf"{re.escape(asked.entry_point)}\s{{0,3}}\(", text):
        match parse_python(text):
            case ast.Compare(left=ast.Call() as call, ops=[ast.Eq()], comparators=[value]):
                return ast.get_source_segment(text, call) or "", value_of(value)
            case _:
                pass
    return answer, asked.expected


def hedged(answer: str) -> bool:
    """Return whether a comment in an answer, which its value does not show, states another value."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(answer).readline))
    except (tokenize.TokenError, SyntaxError):  # it is not a literal either
        return False
    return any(token.type == tokenize.COMMENT and _HEDGE.search(token.string) for token in tokens)


def same(expected: Any, offered: Any, tolerance: float = 0.0, *, loose: bool = False) -> bool:
    """Return whether two values are equal, type by type; with `loose` a list equals a tuple of the same items.

    Numbers may differ by the relative `tolerance` if one of them is a float.
    """
    if isinstance(expected, set) and isinstance(offered, set):
        return _same_members(expected, offered)
    if isinstance(expected, bool) or isinstance(offered, bool) or not isinstance(expected, _COMPARED):
        return type(expected) is type(offered) and bool(expected == offered)
    if isinstance(expected, int | float | complex):
        return isinstance(offered, int | float | complex) and _close(expected, offered, tolerance)
    if isinstance(expected, dict):
        return (
            isinstance(offered, dict)
            and _same_members(expected, offered)
            and all(same(value, offered[key], tolerance, loose=loose) for key, value in expected.items())
        )
    alike = isinstance(offered, list | tuple) if loose else type(expected) is type(offered)
    return (
        alike
        and len(expected) == len(offered)
        and all(same(one, other, tolerance, loose=loose) for one, other in zip(expected, offered, strict=True))
    )


def _same_members(expected: Collection[Any], offered: Collection[Any]) -> bool:
    """Whether sets, or the keys of mappings, are equal type by type: `True` is not 1."""
    mine = {member: member for member in offered}
    return len(mine) == len(expected) and all(key in mine and same(key, mine[key]) for key in expected)


def _close(expected: complex, offered: complex, tolerance: float) -> bool:
    if expected == offered:
        return True
    if not (isinstance(expected, float) or isinstance(offered, float)) or isinstance(expected, complex):
        return False
    try:
        return not isinstance(offered, complex) and math.isclose(expected, offered, rel_tol=tolerance)
    except OverflowError:  # a whole number that no float can hold
        return False


def _read(reference: Any) -> Prediction:
    given_as = '{"code": .., "predict": .., "input": .., "output": ..}'
    reference = fields_of(reference, ("code", "predict"), _OPTIONAL, give=given_as)
    code, predict, entry_point = reference["code"], reference["predict"], reference.get("entry_point", "f")
    if not isinstance(code, str) or not code.strip() or predict not in ("output", "input"):
        raise ReferenceFormError('code must be a text that is not empty, and predict "output" or "input"')
    if not isinstance(entry_point, str) or not entry_point.isidentifier():
        raise ReferenceFormError(f"entry_point is {shown(entry_point)}; name a function")
    if ("output" in reference) == ("returns" in reference) or not isinstance(reference.get("output", ""), str):
        raise ReferenceFormError('give "output", the text of a literal, or "returns", a value')
    given = reference.get("input")
    keywords = reference.get("keywords", isinstance(given, Mapping))
    if type(keywords) is not bool or not isinstance(given, str | Mapping | None):
        raise ReferenceFormError("input must be a text or a mapping, and keywords true or false")
    try:
        expected = read_literal(reference["output"]) if "output" in reference else reference["returns"]
        gold = None if given is None else _arguments(given, entry_point, keywords=keywords)
    except LiteralError as error:
        raise BadReferenceError(f"the gold input or output is not a literal: {error}") from error
    if not _plain(expected):
        raise BadReferenceError(f"the value {shown(expected)} has no literal")
    return Prediction(
        code=code,
        entry_point=entry_point,
        expected=expected,
        output=predict == "output",
        loose="returns" in reference,
        keywords=keywords,
        gold=gold,
    )


def _plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_plain, value)) and all(map(_plain, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_plain, value))
    return value is None or (isinstance(value, str | bytes | int | float | complex) and value == value)


def _arguments(given: Any, entry_point: str, *, keywords: bool) -> Arguments:
    """Return the arguments of a text as in a call, or of a mapping or the text of one."""
    if not keywords:
        return read_arguments(given, entry_point)
    named = read_literal(given) if isinstance(given, str) else given
    if not isinstance(named, Mapping) or not all(isinstance(key, str) for key in named):
        raise LiteralError("unparsable_answer", "it is not a mapping of keyword arguments")
    return (), dict(named)

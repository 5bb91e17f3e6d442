"""What a performance reference asks for, read and checked before anything runs.

Not covered: whether the baseline is any good; it is run beside every program that is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adjudge.responses.answer_span import shorten
from adjudge.sandbox import codec
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.code.names import parsed
from adjudge.verifiers.code.performance.timed_run import Callee, packed
from adjudge.verifiers.code.suite import read_suite

GENERATOR: Final = "inputs"
_FIELDS: Final = frozenset({"entry_point", "baseline", "inputs", "tests", "recall", "memory_mb"})
_GATE: Final = frozenset({"least", "most", "truth"})
_MAX_SOURCE: Final = 1 << 20
_MAX_CASES: Final = 100
_MAX_BYTES: Final = 32 << 20  # of all cases together


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task.

    Attributes:
        baseline: the program to be beaten.
        truth: the program whose results are right; the baseline, unless recall is measured against an exact one.
        generator: the program that makes cases, with a function `inputs(seed)`; None where the cases are given.
        cases: those given, packed.
        recall: the least recall; None where results must be equal.
        most: the recall up to which speed counts, where cases are settings of one search; None for one recall.
    """

    baseline: Callee
    truth: Callee
    generator: Callee | None
    cases: tuple[bytes, ...]
    tests: Mapping[str, Any] | None
    recall: float | None
    most: float | None
    memory_mb: int | None


def read_task(reference: Any) -> Task:
    """Return the task of a reference.

    Raises:
        BadReferenceError: a field is missing, unknown or malformed.
    """
    if not isinstance(reference, Mapping) or not {"entry_point", "baseline", "inputs"} <= set(reference) <= _FIELDS:
        raise ReferenceFormError(
            f"the reference is {shorten(repr(reference), 60)}; give "
            '{"entry_point": .., "baseline": .., "inputs": ..}, and "tests", "recall" or "memory_mb" where they are '
            "wanted"
        )
    name, memory = reference["entry_point"], reference.get("memory_mb")
    if not isinstance(name, str) or not name.isidentifier():
        raise ReferenceFormError(f"entry_point is {shorten(repr(name), 40)}; name a function")
    if memory is not None and (type(memory) is not int or memory < 32):
        raise ReferenceFormError(f"memory_mb is {memory!r}; it must be a whole number from 32")
    baseline = Callee(_source(reference["baseline"], "baseline"), name)
    recall, most, truth = _recall(reference.get("recall"), baseline)
    inputs = reference["inputs"]
    generated = isinstance(inputs, str)
    return Task(
        baseline=baseline,
        truth=truth,
        generator=Callee(_source(inputs, "inputs"), GENERATOR) if generated else None,
        cases=() if generated else read_cases(inputs),
        tests=_tests(reference.get("tests"), name),
        recall=recall,
        most=most,
        memory_mb=memory,
    )


def read_cases(given: Any) -> tuple[bytes, ...]:
    """Return cases, packed: each a list of arguments, or `{"args": [..], "kwargs": {..}}`.

    Raises:
        BadReferenceError: they are none, too many, too large, or no plain data.
    """
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= _MAX_CASES:
        raise ReferenceFormError(
            f"inputs are {shorten(repr(given), 60)}; give the source of a function inputs(seed), or a list of 1 to "
            f"{_MAX_CASES} cases"
        )
    cases = []
    for case in given:
        args, kwargs = (case.get("args", []), case.get("kwargs", {})) if isinstance(case, Mapping) else (case, {})
        known = not isinstance(case, Mapping) or (case and set(case) <= {"args", "kwargs"})
        named = isinstance(kwargs, Mapping) and all(isinstance(key, str) for key in kwargs)
        if not known or not isinstance(args, list | tuple) or not named:
            raise ReferenceFormError(
                f'a case is {shorten(repr(case), 60)}; give a list of arguments, or {{"args": [..], "kwargs": {{..}}}}'
            )
        try:
            cases.append(packed(args, kwargs))
        except codec.CodecError as error:
            raise BadReferenceError(f"a case is not plain data: {error}") from error
    if sum(map(len, cases)) > _MAX_BYTES:
        raise BadReferenceError(f"the cases have {sum(map(len, cases))} bytes; {_MAX_BYTES} are the most")
    return tuple(cases)


def _recall(given: Any, baseline: Callee) -> tuple[float | None, float | None, Callee]:
    """Return the least recall, the one up to which speed counts, and the program whose results are right."""
    if given is None:
        return None, None, baseline
    if not isinstance(given, Mapping) or not {"least"} <= set(given) <= _GATE:
        raise ReferenceFormError(
            f'recall is {shorten(repr(given), 60)}; give {{"least": 0.9}}, with "most" for the area under a curve, and '
            '"truth" where there is one'
        )
    least: Any = given["least"]
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 < least <= 1:
        raise ReferenceFormError(f"the least recall is {least!r}; it must be above 0 and at most 1")
    most: Any = given.get("most")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int | float) or not least < most <= 1):
        raise ReferenceFormError(f"recall goes from {least!r} to {most!r}; most must be above least and at most 1")
    truth = Callee(_source(given["truth"], "truth"), baseline.name) if "truth" in given else baseline
    return float(least), None if most is None else float(most), truth


def _tests(tests: Any, name: str) -> Mapping[str, Any] | None:
    if tests is None:
        return None
    reference = {"tests": tests, "entry_point": name}
    read_suite(reference, "")
    return reference


def _source(source: Any, field: str) -> str:
    """Return a program of the reference's; it is parsed here and run in the sandbox alone."""
    if not isinstance(source, str) or not source.strip() or len(source) > _MAX_SOURCE:
        raise ReferenceFormError(f"{field} is {shorten(repr(source), 40)}; give the source of a Python program")
    parsed(source, field)
    return source


def given_cases(value: Any) -> tuple[bytes, ...]:
    """Return the cases that a generator made; unlike a list in a reference, a bad one is no mistake of shape.

    Raises:
        BadReferenceError: see `read_cases`.
    """
    try:
        return read_cases(value)
    except BadReferenceError as error:
        raise BadReferenceError(f"{GENERATOR}(seed) gave something else: {error}") from error

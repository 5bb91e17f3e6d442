"""Which outputs agree, and the tests that come of it.

Two returned values agree as `code` compares them: type by type, but a list equals a tuple, 2 equals 2.0, and floats
may differ in the tenth digit.  Two printed texts agree line by line, without blanks at the ends.

Not covered: floats near a boundary of the rounding; two that straddle one count as different, and cost a test.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.data_pipelines.tasks.unit_tests.execution import Output
from adjudge.data_pipelines.tasks.unit_tests.known_inputs import Call

_DIGITS = 9
_MOST_LITERAL = 100_000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """A test that enough solutions agree on.

    Attributes:
        given: a `Call`, or standard input.
        output: the literal, or the text, that most of those who agree gave.
        agreeing: how many agree.
    """

    given: Call | str
    output: str
    agreeing: int


def agreed(given: Call | str, outputs: Sequence[Output], least: int) -> Agreed | None:
    """Return the test of an input, or None if fewer than `least` solutions give the same.

    Args:
        given: the input.
        outputs: what each solution gave.
        least: more than half of them, so that the order of solutions decides nothing.
    """
    keys = [None if output.value is None else output_key(output.value, isinstance(given, str)) for output in outputs]
    counted = Counter(key for key in keys if key is not None)
    if not counted:
        return None
    key, count = counted.most_common(1)[0]
    if count < least:
        return None
    texts = Counter(output.value for output, mine in zip(outputs, keys, strict=True) if mine == key)
    most = max(texts.values())
    output = min(str(text) for text, number in texts.items() if number == most)
    return Agreed(given=given, output=output, agreeing=count)


def reference_of(tests: Sequence[Agreed], entry_point: str, language: str) -> dict[str, Any] | None:
    """Return the reference of `code` for tests, or None if one of them has no such form.

    Standard input becomes `{"stdin", "stdout"}`.  Calls become `{"args", "kwargs", "expected"}` where JSON can hold all
    arguments, else asserts; what was returned may be a tuple either way, because `code` takes a list for one.
    """
    if not entry_point:
        cases = [{"stdin": str(test.given), "stdout": test.output} for test in tests]
        return {"tests": cases, **({} if language == "python" else {"language": language})}
    calls = [(test.given, ast.literal_eval(test.output)) for test in tests if isinstance(test.given, Call)]
    if all(_fits_json(call, value) for call, value in calls):
        return {"tests": [_case(call, value) for call, value in calls], "entry_point": entry_point}
    if "." in entry_point:
        return None
    return {"tests": [_claim(entry_point, call, value) for call, value in calls], "entry_point": entry_point}


def has_form(test: Agreed, entry_point: str) -> bool:
    """Return whether a test can stand among asserts, which compare floats exactly unless one is all there is."""
    if not isinstance(test.given, Call):
        return True
    value = ast.literal_eval(test.output)
    if _fits_json(test.given, value):
        return True
    return "." not in entry_point and (isinstance(value, float) or not _has_float(value))


def output_key(text: str, printed: bool) -> str | None:
    """Return a text that two outputs share exactly where they agree; None for what is no literal."""
    if printed:
        return "\n".join(line.rstrip() for line in text.rstrip().splitlines())
    if len(text) > _MOST_LITERAL:
        return None
    try:
        return repr(_rounded(ast.literal_eval(text)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _rounded(value: Any) -> Any:
    """Return a value that is equal exactly where the original counts as equal."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        short = float(f"{value:.{_DIGITS}g}")
        return int(short) if short.is_integer() else short
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    if isinstance(value, set):
        return ("set", sorted(map(repr, map(_rounded, value))))
    if isinstance(value, dict):
        return ("dict", sorted((repr(_rounded(key)), repr(_rounded(item))) for key, item in value.items()))
    return value


def _fits_json(call: Call, value: Any) -> bool:
    return _is_json(list(call.args)) and _is_json(call.kwargs) and _is_json(value, tuples=True)


def _is_json(value: Any, tuples: bool = False) -> bool:
    if value is None or isinstance(value, bool | int | float):
        return True
    if isinstance(value, str):
        return _is_unicode(value)
    if isinstance(value, list) or (tuples and isinstance(value, tuple)):
        return all(_is_json(item, tuples) for item in value)
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_unicode(key) and _is_json(item, tuples) for key, item in value.items())
    return False


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _case(call: Call, value: Any) -> dict[str, Any]:
    kwargs = {"kwargs": dict(call.kwargs)} if call.kwargs else {}
    plain: dict[str, Any] = json.loads(json.dumps({"args": list(call.args), **kwargs, "expected": value}))
    return plain


def _claim(entry_point: str, call: Call, value: Any) -> str:
    words = [f"{name}={item!r}" for name, item in call.kwargs.items()]
    asked = f"{entry_point}({', '.join([*map(repr, call.args), *words])})"
    if isinstance(value, float):
        return f"assert abs({asked} - {value!r}) <= {max(1e-9, abs(value) * 1e-6)!r}"
    return f"assert {asked} == {value!r}"


def _has_float(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_float, (*value.keys(), *value.values())))
    return isinstance(value, float) or (isinstance(value, list | tuple | set) and any(map(_has_float, value)))

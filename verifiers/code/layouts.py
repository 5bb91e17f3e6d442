"""The layouts in which data sets hold tests, read as the one form that docs/code.md documents.

Where a data set leaves a choice, its own checker decides:

- `{"inputs", "outputs", "fn_name"}` (APPS, TACO, Eurus; the `input_output` of their rows): as in APPS'
  `eval/testing_util.py` and verl's `prime_code/testing_util.py`.  Lists are lines of standard input or output.  With
  `fn_name`, an input is a list of arguments, or text with one argument a line in JSON, and then its output is JSON
  as well; where every output is a list of one, it is right with or without that list, and a lone dictionary with whole
  numbers for keys has them as numbers.  Unlike there, a list of several is never right by its first item alone.
- LiveCodeBench rows, and lists of `{"input", "output", "testtype"}`: `lcb_runner/evaluation/testing_util.py`.  Public
  and private tests count together, and what a function returns is compared as it is.
- `{"test_cases": [{"type", "input", "output", "fn_name"}]}` (SYNTHETIC-1, verifiable-coding-problems, open-r1): rllm's
  `primeintellect_check_correctness`, which is the checker of APPS.
- code_contests rows: all public, private and generated tests, by standard input and output.

A function may be the method of a class `Solution`, and where those checkers import modules for the program, so does the
reference made here (`imports`).

Not covered: pickles, which LiveCodeBench's compressed private tests are; they are refused, and never read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeGuard

from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.compose.auto import is_test_source
from adjudge.verifiers.code.names import syntax_tree
from adjudge.verifiers.code.outcome import shorten

_LAYOUTS: Final = {
    "tests": "tests",
    "test_cases": "test_cases",
    "test_list": "test_list",
    "test": "test",
    "outputs": "outputs",
    "assert_case": "outputs",
    "input_output": "input_output",
    "unit_tests": "unit_tests",
    "public_test_cases": "public_test_cases",
    "private_test_cases": "public_test_cases",
    "public_tests": "public_tests",
    "private_tests": "public_tests",
    "generated_tests": "public_tests",
}
CODE_KEYS: Final = tuple(_LAYOUTS)
"""Keys of a mapping that mean tests of programs: one of them says that it is a reference of `code`."""

_KEPT = frozenset({"entry_point", "language", "solution", "setup", "imports", "timeout", "memory_mb", "checker"})
FIELDS: Final = _KEPT | {"tests", "style", "module"}
"""Fields of the documented form; those in `_KEPT` mean the same beside any layout (KodCode has another `style`)."""

_WRAPPERS = ("input_output", "verification_info", "unit_tests")  # columns that hold one of the other layouts
_LIVE = ("public_test_cases", "private_test_cases")
_CONTESTS = ("public_tests", "private_tests", "generated_tests")
_OURS = {"stdin", "stdout", "args", "kwargs", "expected", "expected_any"}
_NAMES = ("fn_name", "metadata")  # where the function's name stands, beside tests and in each of them
CONTEST_IMPORTS: Final = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing"),
)
"""Modules that the checkers of contests import for a program."""
_PRINTED = frozenset({"stdin", "stdin_stdout"})
_CALLED = frozenset({"functional", "function_call"})
_PACKED = re.compile(r"eJ[A-Za-z0-9+/=]{16,}")  # zlib in base64
_WHOLE = re.compile(r"0|-?[1-9]\d{0,300}", re.ASCII)
_DEEPEST = 4  # a row in JSON text, its column, the column's JSON text, and the tests therein
_SHOWN = 60

_Row = Mapping[str, Any]


def tests_of(reference: Any) -> dict[str, Any]:
    """Return tests of programs in the documented form, from any layout that the module lists.

    Args:
        reference: a mapping, a list of tests, or JSON text of either.  A field that is None is absent, as Arrow leaves
            the fields of other rows, but for an `expected` beside arguments.

    Returns:
        A mapping with "tests", a list or a source that is not empty, and other `FIELDS`; no test is checked further.

    Raises:
        BadReferenceError: it is in none of the layouts, holds no test, or holds fewer outputs than inputs.
    """
    outer: dict[str, Any] = {}
    what = 'the code reference, which must be a mapping with "tests", or JSON text of one,'
    for _ in range(_DEEPEST):
        row = {**outer, **_row(reference, what)}
        name = _layout(row)
        if name not in _WRAPPERS and not (name in ("tests", "test", "test_cases") and _is_wrapped(row[name])):
            return _READERS[name](row)
        reference, what = row.pop(name), f'"{name}" of the code reference'
        if not reference:
            raise BadReferenceError(f"{what} is empty")
        strict = name not in (*_WRAPPERS, "test")  # other columns are a row's own
        outer = {key: value for key, value in row.items() if key in _KEPT or (strict and key not in CODE_KEYS)}
    raise ReferenceFormError("the code reference has tests in tests in tests; give the innermost ones")


def _row(reference: Any, what: str) -> dict[str, Any]:
    """Return a reference as a mapping without the fields that are absent; `what` names it in messages."""
    if isinstance(reference, str):
        literal = {"test": reference} if is_test_source(reference) else _literal(reference)
        reference = _json(reference, what) if literal is None else literal
    if isinstance(reference, Sequence) and not isinstance(reference, str | bytes):
        reference = {"tests": reference}
    if not isinstance(reference, Mapping):
        raise ReferenceFormError(
            f'the code reference must be a mapping with "tests", not {_short(reference)}; see docs/code.md'
        )
    return {str(key): value for key, value in reference.items() if value is not None}


def _layout(row: _Row) -> str:
    """Return the key of `_READERS`, or of `_WRAPPERS`, that a mapping's layout goes by."""
    keys = {layout: key for key, layout in (*_LAYOUTS.items(), ("verification_info",) * 2) if key in row}
    if len(keys) == 1:
        return next(iter(keys))
    if keys:
        one, other = list(keys.values())[:2]
        raise ReferenceFormError(f"the code reference has tests in {one!r} and in {other!r}; keep those that count")
    has = ", ".join(sorted(row)[:8]) or "nothing"
    raise ReferenceFormError(
        f'the code reference must be a mapping with "tests", or a data set\'s row with {", ".join(CODE_KEYS[1:])}; '
        f"it has {has}; see docs/code.md"
    )


def _is_wrapped(tests: Any) -> bool:
    """Return whether tests are a mapping, or JSON text; any other text is the tests' source."""
    if not isinstance(tests, str):
        return isinstance(tests, Mapping)
    if tests.lstrip()[:1] not in ("{", "["):
        return _PACKED.fullmatch(tests) is not None  # to be refused as such
    try:
        json.loads(tests)
    except (ValueError, RecursionError) as error:
        if syntax_tree(tests) is not None:
            return False
        raise BadReferenceError(f"the tests are text that is neither JSON nor Python: {error}") from error
    return True


def _given(row: _Row) -> dict[str, Any]:
    """Tests in the documented form, or a list of a data set's test objects, or of asserts."""
    tests = row["tests"]
    if (isinstance(tests, str) and tests.strip()) or not all(isinstance(test, Mapping) for test in _some(tests)):
        return dict(row)
    rest = {key: value for key, value in row.items() if key not in ("tests", *_NAMES)}
    return _of_objects(tests, row, rest, contest=False)


def _columns(row: _Row) -> dict[str, Any]:
    """APPS, TACO, verl: the inputs and the outputs of all tests; or asserts, beside inputs and outputs of nothing."""
    _only(row, {"inputs", "outputs", "assert_case", *_NAMES})
    if "assert_case" not in row:
        columns = {name: row[name] for name in ("inputs", "outputs") if name in row}
        return _of_objects(_objects(columns, "the code reference"), row, _kept(row), contest=True)
    if any(any(row[name]) for name in ("inputs", "outputs") if _is_list(row.get(name))):
        raise BadReferenceError('the code reference has "assert_case" beside inputs or outputs; keep those that count')
    return {**_kept(row), "tests": _some(row["assert_case"])}


def _test_cases(row: _Row) -> dict[str, Any]:
    """SYNTHETIC-1, open-r1: test objects; AceCode: asserts."""
    _only(row, {"test_cases", *_NAMES})
    return _of_objects(_objects(row["test_cases"], "test_cases"), row, _kept(row))


def _live_code_bench(row: _Row) -> dict[str, Any]:
    tests = [test for name in _LIVE if name in row for test in _objects(row[name], name)]
    return _of_objects(tests, row, _kept(row), contest=True)


def _code_contests(row: _Row) -> dict[str, Any]:
    for name in ("input_file", "output_file"):
        if row.get(name):
            raise BadReferenceError(
                f"the programs of this task use the file {_short(row[name])}; only printed output is read"
            )
    tests = [test for name in _CONTESTS if name in row for test in _objects(row[name], name)]
    return _of_objects(tests, {}, _kept(row))


def _mbpp(row: _Row) -> dict[str, Any]:
    """MBPP: asserts, and what runs before them; `challenge_test_list` is not part of the task's own test."""
    tests = row["test_list"]
    imports = row.get("test_imports", [])
    before = [*(imports if _is_list(imports) else [imports]), row.get("test_setup_code", "")]
    if not all(isinstance(source, str) for source in before):
        raise ReferenceFormError("test_imports and test_setup_code must be texts")
    setup = "\n".join(filter(None, before))
    reference = {**_kept(row), "tests": _some(_json(tests, "test_list") if isinstance(tests, str) else tests)}
    return {**reference, "setup": setup} if setup else reference


def _source(row: _Row) -> dict[str, Any]:
    """HumanEval: a function `check`; KodCode and BigCodeBench: a file for pytest; else statements."""
    test, kept = row["test"], _kept(row)
    if not isinstance(test, str) or not test.strip():
        return _given({**kept, "tests": _some(test)})
    for name in ("prompt", "code_prompt", "complete_prompt"):  # of HumanEval, of BigCodeBench
        parts = [row.get(part) for part in (name, "canonical_solution")]
        if all(isinstance(part, str) for part in parts) and syntax_tree(program := "".join(map(str, parts))):
            kept.setdefault("solution", program)  # its helpers serve the tests
    if "def check(" in test:
        given = (kept.get("entry_point"), row.get("prompt"))
        if all(isinstance(text, str) for text in given) and "." in str(given[0]):  # LeetCodeDataset's own classes
            kept.setdefault("setup", given[1])
        return {**kept, "tests": test, "style": "humaneval"}
    if "def test" not in test:
        return {**kept, "tests": test, "style": "asserts"}
    entry = kept.pop("entry_point", None)
    if (
        isinstance(entry, str)
        and entry.isidentifier()
        and not re.search(r"^\s*(from|import)\s+solution\b", test, re.MULTILINE)
    ):
        test = f"from solution import {entry}\n{test}"
    return {**kept, "tests": test, "style": "pytest"}


_READERS: Final[dict[str, Callable[[_Row], dict[str, Any]]]] = {
    "tests": _given,
    "outputs": _columns,
    "test_cases": _test_cases,
    "public_test_cases": _live_code_bench,
    "public_tests": _code_contests,
    "test_list": _mbpp,
    "test": _source,
}


def _objects(group: Any, what: str) -> list[Any]:
    """Return the tests of a group: a list of objects, or the inputs and the outputs of all of them."""
    if isinstance(group, str):
        group = _json(group, what)
    if not isinstance(group, Mapping):
        if not _is_list(group):
            raise ReferenceFormError(f"{what} is {_short(group)}; it must be a list of tests")
        return list(group)
    inputs, outputs = (group.get(f"{name}s", group.get(name)) for name in ("input", "output"))
    if unknown := sorted(map(str, group.keys() - {"input", "output", "inputs", "outputs"})):
        raise ReferenceFormError(f"{what} has the field {unknown[0]!r}, which has no meaning there")
    if not _is_list(inputs) or not _is_list(outputs):
        raise ReferenceFormError(f"{what} must have a list of inputs and a list of outputs")
    if len(inputs) != len(outputs):
        raise BadReferenceError(f"{what} has {len(inputs)} inputs and {len(outputs)} outputs; each test needs both")
    return [{"input": given, "output": wanted} for given, wanted in zip(inputs, outputs, strict=True)]


def _of_objects(tests: Sequence[Any], named: _Row, rest: dict[str, Any], contest: bool = False) -> dict[str, Any]:
    """Return the documented form of test objects.

    Asserts are left alone.  The function's name may stand in `named`, beside the tests; of a contest, the checker
    imports modules for programs that read standard input, too.
    """
    if not all(isinstance(test, Mapping) for test in _some(tests)):
        return {**rest, "tests": list(tests)}
    name = _name(named)
    names = [name] if name else []
    cases: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for number, given_test in enumerate(map(_without_absent, tests)):
        if given_test.keys() & _OURS or not given_test.keys() & {"input", "output"}:
            cases.append(given_test)
            continue
        if unknown := sorted(given_test.keys() - {"input", "output", "testtype", "type", *_NAMES}):
            raise ReferenceFormError(f"test {number} has the field {unknown[0]!r}, which has no meaning")
        kind = given_test.get("testtype", given_test.get("type", ""))
        contest = contest or "testtype" in given_test
        own = _name(given_test) or name
        if kind not in (*_PRINTED, *_CALLED, ""):
            raise BadReferenceError(
                f"test {number} is of the type {_short(kind)}; known are {', '.join(sorted(_PRINTED | _CALLED))}"
            )
        if own and kind in _PRINTED:
            raise BadReferenceError(f"test {number} is of the type {_short(kind)}, and it names the function {own!r}")
        if kind in _CALLED or own:
            names.append(own)
            cases.append(_call(number, given_test))
            if kind != "functional":
                calls.append(cases[-1])
        else:
            cases.append(_printed(number, given_test))
    printed = any("stdin" in case for case in cases)
    if names and printed:
        raise BadReferenceError("some tests call a function and some read standard input; they must be of one kind")
    _unwrap(calls)
    imports = {"imports": list(CONTEST_IMPORTS)} if names or (contest and printed) else {}
    return {**imports, **_with_name(rest, names), "tests": cases}


def _with_name(rest: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the other fields with the entry point: the function, or that method of a class `Solution`."""
    known = sorted({*names} - {""}) or [*names][:1]
    if not known:
        return rest
    entry = rest.get("entry_point")
    if len(known) > 1:
        raise BadReferenceError(f"the tests are of the functions {known[0]!r} and {known[1]!r}; one reference has one")
    (name,) = known
    if isinstance(entry, str) and (not name or entry.rpartition(".")[2] == name.rpartition(".")[2]):
        return rest
    if entry is not None and name:
        raise BadReferenceError(f"the tests are of the function {name!r}, and the entry point is {_short(entry)}")
    if entry is None and not name:
        raise BadReferenceError(
            'the tests call a function, and nothing names it; add "fn_name", or the "metadata" of LiveCodeBench'
        )
    return {**rest, "entry_point": entry or (name if "." in name else [f"Solution().{name}", name])}


def _name(row: _Row) -> str:
    """Return the function that `fn_name`, or `func_name` in LiveCodeBench's metadata, names; "" for none."""
    name, told = row.get("fn_name"), row.get("metadata")
    if name is None and told:
        told = _json(told, "metadata") if isinstance(told, str) else told
        name = told.get("func_name") if isinstance(told, Mapping) else None
    if not isinstance(name, str | None):
        raise ReferenceFormError(f"the function's name is {_short(name)}; it must be text")
    return name or ""


def _without_absent(test: _Row) -> dict[str, Any]:
    called = any(test.get(key) is not None for key in ("args", "kwargs", "input")) or list(test) == ["expected"]
    null = ("output" if "input" in test else "expected") if called else ""  # which may be what a call returns
    return {str(key): value for key, value in test.items() if value is not None or key == null}


def _printed(number: int, row: _Row) -> dict[str, Any]:
    texts = {}
    for key, ours in (("input", "stdin"), ("output", "stdout")):
        value = row.get(key)
        if isinstance(value, Mapping):
            value = value.get(ours)
        if _is_list(value) and all(isinstance(line, str) for line in value):
            value = "\n".join(value)
        if isinstance(value, str):
            texts[ours] = value
        elif value is not None:
            raise BadReferenceError(
                f"the {key} of test {number} is {_short(value)}; it must be text or a list of lines"
            )
    return texts


def _call(number: int, row: _Row) -> dict[str, Any]:
    given, what = row.get("input"), f"the input of test {number}, one argument a line,"
    if "output" not in row:
        raise BadReferenceError(f"test {number} has no output")
    wanted = row["output"]
    if isinstance(given, str):
        given = [_json(line, what) for line in given.strip().split("\n")]
        wanted = _json(wanted, f"the output of test {number}") if isinstance(wanted, str) else wanted
    if not _is_list(given):
        raise BadReferenceError(
            f"the input of test {number} is {_short(given)}; it must be a list of arguments, or text with one a line"
        )
    return {"args": list(given), "expected": wanted}


def _unwrap(calls: list[dict[str, Any]]) -> None:
    """Read calls as the checker of APPS does; one output that is not a list of one says that none is wrapped."""
    wrapped = all(_is_list(call["expected"]) and len(call["expected"]) == 1 for call in calls)
    for call in calls:
        wanted = _numbered(call.pop("expected"))
        call["args"] = _numbered(call["args"])
        call |= {"expected_any": [wanted, wanted[0]]} if wrapped else {"expected": wanted}


def _numbered(value: Any) -> Any:
    """Return a dictionary, or the one in a list of one, with whole numbers for keys, which JSON made text."""
    if _is_list(value):
        return [_numbered(value[0])] if len(value) == 1 and isinstance(value[0], Mapping) else value
    if not isinstance(value, Mapping) or not all(isinstance(key, str) and _WHOLE.fullmatch(key) for key in value):
        return value
    return {int(key): item for key, item in value.items()}


def _kept(row: _Row) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key in _KEPT}


def _only(row: _Row, known: set[str]) -> None:
    """Raise for a field of a short reference that has no meaning: it may be a misspelt one that has."""
    if unknown := sorted(row.keys() - known - _KEPT):
        raise ReferenceFormError(
            f"the code reference has the field {unknown[0]!r}; known are {', '.join(sorted(known | _KEPT))}"
        )


def _some(tests: Any) -> list[Any]:
    if not _is_list(tests):
        raise ReferenceFormError(f"the tests are {_short(tests)}; they must be a source or a list")
    if not tests:
        raise ReferenceFormError("the code reference holds no test; the list of tests must be not empty")
    return list(tests)


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _literal(text: str) -> Any:
    """Return the mapping that a text is as Python writes it, as SYNTHETIC-1's `verification_info` is; None for none."""
    if not text.lstrip().startswith("{'") or syntax_tree(text) is None:
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        packed = _PACKED.fullmatch(text) is not None
        why = (
            "it looks like LiveCodeBench's compressed tests, a pickle, which adjudge does not open; write them as JSON "
            "where you load the data set (docs/code.md shows how)"
            if packed
            else f"{error} in {_short(text)}"
        )
        raise BadReferenceError(f"{what} is not JSON: {why}", mistake=packed) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("an object has a key twice")
    return read


def _short(value: Any) -> str:
    return shorten(repr(value) if isinstance(value, str) else value, _SHOWN)

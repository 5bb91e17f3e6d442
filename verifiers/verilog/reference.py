"""What a sample's reference says: a reference design, a test bench, or both.

Not covered: whether they are right; the verifier runs the bench on the reference before it believes either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.verilog.front_end import Parsed, SyntaxFaultError, parse
from adjudge.verifiers.verilog.rules import files_read

_NAME = re.compile(r"[A-Za-z_]\w*")
_FILE = re.compile(r"[A-Za-z0-9_][\w.-]*")
_KEYS = frozenset({"reference", "top", "reference_top", "testbench", "files", "clocks", "resets", "pass", "fail"})
KINDS = '{"reference": "<module source>", "top": "TopModule"} and/or {"testbench": "<source>"}'


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A reference, read.

    Attributes:
        top: the module that the response must define.
        files: data files of the bench and the designs, by name.
        shared: those of them that the reference design reads, so that a candidate may.
        clocks: names of the clock inputs, or None to find them.
        resets: names of the reset inputs, each with whether it is active high, or None to find them.
    """

    design: str = ""
    design_top: str = ""
    top: str
    testbench: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    clocks: tuple[str, ...] | None = None
    resets: tuple[tuple[str, bool], ...] | None = None
    passed: str = ""
    failed: str = ""


def read_reference(value: Any) -> Reference:
    """Return what `Sample.reference` says.

    Raises:
        BadReferenceError: it says nothing that this verifier understands.
    """
    if isinstance(value, str):
        value = {"reference": value}
    if not isinstance(value, Mapping):
        raise ReferenceFormError(f"the reference is a {type(value).__name__}; give {KINDS}")
    if unknown := sorted(set(value) - _KEYS, key=str):
        raise ReferenceFormError(f"the reference has the key {unknown[0]!r}; give {KINDS}")
    design, testbench = value.get("reference") or "", value.get("testbench") or ""
    for key, text in (("reference", design), ("testbench", testbench)):
        if not isinstance(text, str):
            raise ReferenceFormError(f"the reference's {key!r} is {text!r:.80}; give {KINDS}")
    if not (design or testbench):
        raise ReferenceFormError(f"the reference has neither a design nor a test bench; give {KINDS}")
    design_top = _design_top(design, value.get("reference_top")) if design else ""
    top = value.get("top") or (_tested(testbench, design) if testbench else "") or design_top
    if not isinstance(top, str) or not _NAME.fullmatch(top):
        raise ReferenceFormError(f"the reference's top is {top!r}; it must name the module asked for")
    files = _files(value.get("files"))
    shared = files_read(parse_reference(design, "reference design").members) if design else frozenset()
    return Reference(
        design=design,
        design_top=design_top,
        top=top,
        testbench=testbench,
        files=files,
        shared=shared & files.keys(),
        clocks=_clocks(value.get("clocks")),
        resets=_resets(value.get("resets")),
        passed=_pattern(value.get("pass"), "pass"),
        failed=_pattern(value.get("fail"), "fail"),
    )


def parse_reference(source: str, what: str) -> Parsed:
    """Return the syntax tree of a reference's source.

    Raises:
        BadReferenceError: it is not Verilog.
    """
    try:
        return parse(source)
    except SyntaxFaultError as error:
        raise BadReferenceError(f"the {what} does not parse: {error}") from error


def _design_top(design: str, named: Any) -> str:
    parsed = parse_reference(design, "reference design")
    if named is not None:
        if named not in parsed.modules:
            raise BadReferenceError(f"reference_top is {named!r}; the design has {', '.join(parsed.modules) or 'none'}")
        return str(named)
    tops = parsed.tops()
    if len(tops) != 1:
        raise BadReferenceError(f"the reference design has the top modules {tops}; name one with reference_top")
    return tops[0]


def _tested(testbench: str, design: str) -> str:
    """Return the module that a bench instantiates and neither it nor the reference defines, if there is one."""
    bench = parse_reference(testbench, "test bench")
    known = set(bench.modules) | (set(parse_reference(design, "reference design").modules) if design else set())
    wanted = {name for module in bench.modules for name in bench.instantiated(module)} - known
    wanted = {name for name in wanted if name not in _GATES}
    return wanted.pop() if len(wanted) == 1 else ""


_GATES = frozenset("and nand or nor xor xnor buf not bufif0 bufif1 notif0 notif1 pullup pulldown".split())


def _files(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise ReferenceFormError("files must map the names of data files to their texts")
    for name in value:
        if not isinstance(name, str) or not _FILE.fullmatch(name):
            raise ReferenceFormError(f"files names {name!r}; give plain file names")
    return dict(value)


def _clocks(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ReferenceFormError(f"clocks is {value!r}; give a list of input names")
    return tuple(value)


def _resets(value: Any) -> tuple[tuple[str, bool], ...] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(level in ("high", "low") for level in value.values()):
        raise ReferenceFormError(f'resets is {value!r}; give {{"rst_n": "low"}} or "high" for each')
    return tuple((str(name), level == "high") for name, level in value.items())


def _pattern(value: Any, key: str) -> str:
    if value is None:
        return ""
    try:
        re.compile(value)
    except (TypeError, re.error) as error:
        raise ReferenceFormError(f"{key} is {value!r}; give a regular expression: {error}") from error
    return str(value)

"""Runs inside the sandbox, as the text of a program: calls a function with given arguments and prints what came back.

Standard input is one JSON object: "source" of the program under test, "entry" (a function, or "Class().method"),
"calls" (each a literal `(args, kwargs)`), "start", "most" (characters of one result) and "mark".  Standard output gets
one line for each event, behind the mark: `ready`, or `{"call": i, ..}` with "value" (a literal), "error" (the class of
what was raised) or "no_data" (why the result is not plain data).  Standard output of the program under test is dropped.

Not covered: trust.  A program that wants to can print such lines itself; it speaks for itself alone.
"""

from __future__ import annotations

import ast
import io
import json
import math
import os
import sys
from typing import Any, TextIO

DEPTH = 50
LONGEST_NUMBER = 4_096  # bits, as in the rows of a job; a larger one would stop it


class NoData(Exception):
    """A result that a literal cannot stand for."""


def literal(value: Any, depth: int = 0) -> str:
    """Return Python text of a value of built-in types; members of sets are sorted, so equal sets have one text.

    Raises:
        NoData: it, or something in it, is of another type, not finite, or nested too deeply.
    """
    if depth > DEPTH:
        raise NoData("nested too deeply")
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, int):
        if value.bit_length() > LONGEST_NUMBER:
            raise NoData("a number of too many digits")
        return int.__repr__(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NoData("a number that is not finite")
        return float.__repr__(value)
    if isinstance(value, str):
        return str.__repr__(value)
    if isinstance(value, bytes):
        return bytes.__repr__(value)
    if isinstance(value, list):
        return f"[{', '.join(literal(item, depth + 1) for item in value)}]"
    if isinstance(value, tuple):
        return f"({''.join(literal(item, depth + 1) + ', ' for item in value).rstrip() or ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(k, depth + 1)}: {literal(v, depth + 1)}' for k, v in value.items())}}}"
    if isinstance(value, set):
        return f"{{{', '.join(sorted(literal(item, depth + 1) for item in value))}}}" if value else "set()"
    raise NoData(f"a {type(value).__name__}")


def main() -> None:
    """Read the order, load the program and make the calls."""
    order = json.loads(sys.stdin.read())
    told = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    sys.stdin, sys.stdout = io.StringIO(""), io.StringIO()
    module: dict[str, Any] = {"__name__": "solution"}
    exec(compile(order["source"], "solution.py", "exec"), module)
    made, _, method = order["entry"].partition("().")
    tell(told, order["mark"], "ready")
    for number in range(order["start"], len(order["calls"])):
        sys.stdout = io.StringIO()
        called = {"call": number, **outcome(module, made, method, order["calls"][number], order["most"])}
        tell(told, order["mark"], json.dumps(called))
    os._exit(0)


def outcome(module: dict[str, Any], made: str, method: str, call: str, most: int) -> dict[str, str]:
    """Return what one call came to."""
    try:
        args, kwargs = ast.literal_eval(call)
        called = getattr(module[made](), method) if method else module[made]
        text = literal(called(*args, **kwargs))
    except NoData as error:
        return {"no_data": str(error)}
    except BaseException as error:  # noqa: BLE001 - SystemExit too: nothing of the program's ends the calls
        return {"error": type(error).__name__}
    return {"value": text} if len(text) <= most else {"no_data": "too long"}


def tell(told: TextIO, mark: str, text: str) -> None:
    """Print a line at once, so that what was done is known if the next call never ends."""
    told.write(f"{mark}{text}\n")
    told.flush()


if __name__ == "__main__":
    main()

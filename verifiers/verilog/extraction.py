"""Where in a response the design stands.

With code fences, the last fence that defines the wanted module counts, and modules it lacks are taken from the other
fences, the last definition first; an `<answer>` block narrows the search.  Without fences, the text from the first
line that starts like Verilog to the last `endmodule`.

Not covered: a module body that continues a header in the prompt, and designs that stand in a tool call.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+.#-]*)([^\n]*)\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_LANGUAGES = frozenset({"", "verilog", "systemverilog", "system-verilog", "sv", "v", "vhdl-verilog", "hdl", "text"})
_START = re.compile(r"^[ \t]*(?:module|package|primitive|interface|typedef|import|`\w+|\(\*)", re.M)
_END = re.compile(r"\bend(?:module|package|primitive|interface)\b(?:[ \t]*:[ \t]*\w+)?")
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.S)
_ASKED = re.compile(r"('[sS]?[dD][ \t]*[0-9][0-9_]*)(?=\?)")
_MODULE = re.compile(r"^[ \t]*(?:\(\*.*?\*\)[ \t]*)?(?:module|macromodule)\s+(?:automatic\s+|static\s+)?(\w+)", re.M)


def find_designs(text: str, top: str) -> list[str]:
    """Return the pieces of a response that may hold the design, the one that counts first.

    Args:
        text: the response, its reasoning cut off.
        top: name of the module asked for.

    Returns:
        The last fence that seems to define `top`, then the other fences from the last to the first; or the one run of
        Verilog in a text without fences; or nothing.
    """
    answers = _ANSWER.findall(text)
    if answers:
        text = answers[-1]
    fences = [_decimals_apart(_body(*match.groups()[1:])) for match in _FENCE.finditer(text)]
    fences = [fence for fence in fences if _MODULE.search(fence) or _END.search(fence)]
    if not fences:
        return [_decimals_apart(run)] if (run := _run_of_verilog(text)) else []
    fences.reverse()
    defining = [fence for fence in fences if top in _MODULE.findall(fence)]
    first = defining[0] if defining else fences[0]
    return [first, *(fence for fence in fences if fence is not first)]


def _body(label: str, rest: str, body: str) -> str:
    """Return what a fence holds, which may begin on the line of the fence; "" where it is of another language."""
    if _START.match(f"{label}{rest}"):
        return f"{label}{rest}\n{body}"
    if label.lower() not in _LANGUAGES:
        return ""
    return f"{rest}\n{body}" if _START.match(rest) else body


def _decimals_apart(source: str) -> str:
    """Return a source with a blank between a decimal number and the `?` behind it, which slang takes for a digit."""
    return _ASKED.sub(r"\1 ", source)


def _run_of_verilog(text: str) -> str:
    start = _START.search(text)
    ends = [match.end() for match in _END.finditer(text)]
    return text[start.start() : ends[-1]] if start and ends and ends[-1] > start.start() else ""

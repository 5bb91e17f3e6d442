r"""The formula around a box, read with the box opened: `\boxed{5} + 3` says `(5) + 3`.

Not covered: a formula that is spread over several formulas or over words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from adjudge.verifiers.math_answer import vocabulary as known
from adjudge.verifiers.math_answer.boxes import Box
from adjudge.verifiers.math_answer.units import is_unit

_SIDE: Final = 200  # characters of a formula beside its box
_UNIT_REACH: Final = 40  # characters after a box in which its unit ends

_TEXT = r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*"
_BORDER = r"\\[()\[\]\\]|\$+|&|\\(?:begin|end)\{[^{}]*\}|\\q?quad(?![A-Za-z])|\n\s*\n|[.;!?:]\s|,\s(?!\d)"
_WORDS = r"(?<![\\A-Za-z])[A-Za-z]{2,}"
_LEFT_BORDER = re.compile(
    rf"{_BORDER}|(?<![<>!])=|\\(?:approx|equiv|implies|Rightarrow|rightarrow|to|in|sim)(?![A-Za-z])"
    rf"|{_TEXT}\{{[^{{}}]*\}}|{_WORDS}|[^\x00-\u03ff]"
)
_RIGHT_BORDER = re.compile(rf"{_BORDER}|[.;!?:]\Z|{_WORDS}|{_TEXT}\{{(?!\s*(?:or|and)\s*\}})|[^\x00-\u03ff]")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_BRACKET = re.compile(r"\\?[{}]|[()\[\]]")
_BINARY = frozenset("^_*/<>=!&~")
_PAIRS = {")": "(", "]": "[", "}": "{", "\\}": "\\{"}
_NOTHING = re.compile(r"[\s.$)\]\\]*\Z")
_PERCENT = re.compile(r"\s*\$?\s*(?:\\?%|percent\b|pct\b)")
_DEGREE = re.compile(r"(?:\s*(?:\{\s*\})?\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})|\s*°)(?!\s*(?:\\[a-z]|[A-Z]))")
_UNIT = re.compile(
    rf"(?:\s|~|\\[,;: ])*(?:{_TEXT}\{{[\s~]*([A-Za-z]+)\s*\}}(?=[\s.,;]*(?:\$|\\[)\]]|\Z))"
    r"|(?:\$|\\\))?\s+([A-Za-z]{2,})(?=[.,;]?\s*(?:\Z|\n)))"
)
_BASE = re.compile(r"\s*(?:\$|\\\))?\s+(?:in|\()\s*base[-\s]\$?(\d{1,2})\b")
_NUMBER = re.compile(r"-?(?:\d+(?:,\d{3})*(?:\.\d+)?|\\[dt]?frac\{\d+\}\{\d+\})")
_NO_UNITS = frozenset("in min unit units".split())  # an adverb, a function, and what says nothing


def opened(text: str, boxes: Sequence[Box]) -> str | None:
    """Return the formula that boxes joined to one answer are a part of, or None when it cannot be told."""
    first, last = boxes[0], boxes[-1]
    left, right = text[max(0, first.start - _SIDE) : first.start], text[last.stop : last.stop + _SIDE]
    cuts = [border.end() for border in _LEFT_BORDER.finditer(left) if not _is_math(border[0])]
    left = left[cuts[-1] if cuts else 0 :].lstrip()
    right = right[: next((at.start() for at in _RIGHT_BORDER.finditer(right) if not _is_math(at[0])), _SIDE)].rstrip()
    if right[:1].isdigit():
        return None
    factor = left[-1:].isdigit()
    inner = ", ".join(box.text if _PLAIN.fullmatch(box.text) and not factor else f"({box.text})" for box in boxes)
    formula = f"{left}{inner}{right}".rstrip(" ,;=.")
    return None if formula[:1] in _BINARY or not (left or right) or not _balanced(formula) else formula


def with_unit(text: str, box: Box) -> str:
    """Return what a box holds with the percent sign, degree sign or unit that stands right after the box."""
    after = text[box.stop : box.stop + _UNIT_REACH]
    if _NOTHING.match(after):
        return box.text
    if box.text[-1:].isdigit() and _PERCENT.match(after):
        return f"{box.text}\\%"
    if not _NUMBER.fullmatch(box.text):
        return box.text
    if (base := _BASE.match(after)) and box.text.isdigit():
        return f"{box.text}_{{{base[1]}}}"
    if _DEGREE.match(after):
        return f"{box.text}^\\circ"
    unit = _UNIT.match(after)
    name = (unit[1] or unit[2]) if unit else ""
    return f"{box.text}\\text{{ {name}}}" if name not in _NO_UNITS and is_unit(name, upright=True) else box.text


def _is_math(border: str) -> bool:
    return border.isalpha() and (known.names(border) or border in known.SEPARATORS)


def _balanced(formula: str) -> bool:
    """Whether every bracket of a formula is closed in it."""
    stack: list[str] = []
    for bracket in _BRACKET.finditer(formula):
        if bracket[0] not in _PAIRS:
            stack.append(bracket[0])
        elif not stack or stack.pop() != _PAIRS[bracket[0]]:
            return False
    return not stack

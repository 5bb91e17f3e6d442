"""The integers that stand in a design: values that its inputs are worth trying at.

Not covered: parameters and macros that an expression makes of them.
"""

from __future__ import annotations

from adjudge.verifiers.verilog.front_end import Parsed, nodes


def integers(parsed: Parsed) -> set[int]:
    """Return the integers that stand in a source, unknown digits left out, the largest of 4,096 bits."""
    found = set()
    for member in parsed.members:
        for node in nodes(member):
            kind = node.kind.name
            if kind == "IntegerVectorExpression":
                digits, base = node.value.rawText.replace("_", ""), node.base.rawText[-1].lower()
                radix = {"b": 2, "o": 8, "d": 10, "h": 16}.get(base, 10)
                if len(digits) <= 1024 and digits.isalnum() and not set(digits.lower()) & set("xz"):
                    found.add(int(digits, radix))
            elif kind == "IntegerLiteralExpression" and len(text := node.literal.rawText.replace("_", "")) <= 20:
                found.add(int(text))
    return found

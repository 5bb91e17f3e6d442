r"""Families of values with an integer parameter: `\frac{\pi}{6}+k\pi, k \in \mathbb{Z}`, `\{2n : n \in \mathbb{Z}\}`.

The letter of the parameter is bound, and a family of the first degree in it may begin anywhere and run either way.
Not covered: one family written as several, and parameters that are not all integers.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from adjudge.verifiers.math.equality import Equality
from adjudge.verifiers.math.nodes import (
    ZERO,
    Collection,
    Constant,
    Node,
    Number,
    Operation,
    Relation,
    Symbol,
    expand,
    is_expression,
    is_op,
    minus,
    put,
    walk,
)
from adjudge.verifiers.math.relations import is_label
from adjudge.verifiers.math.scalars import Verdict, is_whole
from adjudge.verifiers.math.values import free_names

MAX_MEMBERS: Final = 8  # families of one answer
LETTERS: Final = frozenset("k n m l j t s N K".split())

_QUANTIFIERS = r"(?:for|where|with|and|any|all|some|every|an?|integers?)"
_INTEGERS = (
    r"(?:\\in\s*\\math(?:bb|bf)\s*\{?\s*Z\s*\}?|\\in\s*Z|∈\s*[ℤZ]"
    r"|(?:\\text\{)?\s*(?:is|be|are)?\s*(?:an?\s+|any\s+)*integers?\s*\}?)"
)
_DECLARED: Final = re.compile(
    r"(.*?[^\s,;(\\])(?:[\s,;(]|\\[,;:! ]|\\q?quad(?![A-Za-z])"
    rf"|\\text\{{(?:{_QUANTIFIERS}|[\s,(])*\}}|\b{_QUANTIFIERS}\b)+\\?\(?\$?\s*([A-Za-z])\$?\s*{_INTEGERS}[\s).}}$]*",
    re.DOTALL,
)
_NAMED_LAST: Final = re.compile(
    r"(.*?[^\s,;(\\])(?:[\s,;(]|\\[,;:! ])*(?:\\text\{)?[\s,]*(?:for|where|with)\s+(?:any|all|some|every|an)?\s*"
    r"integers?\s*\}?\s*\$?([A-Za-z])\$?[\s).}]*",
    re.DOTALL,
)
_BUILT: Final = re.compile(
    rf"\\(?:left)?\\?\{{(.+?)(?:\\mid|\||:|\\colon|\\vert)\s*([A-Za-z])\s*{_INTEGERS}\s*\\(?:right)?\\?\}}", re.DOTALL
)


_INDEXED: Final = re.compile(
    r"([A-Za-z]+(?:_\{?([a-z])\}?|\(([a-z])\))\s*=[^=<>]+?|[^<>]*[+-]\s*([CcK]))(?:[\s,;($]|\\[,;:! ]"
    rf"|\\q?quad(?![A-Za-z])|\\text\{{(?:{_QUANTIFIERS}|[\s,(])*\}}|\b{_QUANTIFIERS}\b)+([a-zCK])\s*"
    r"(?:(?:\\in|∈)\s*(?:\\math(?:bb|bf|rm)\s*\{?\s*)?[NZRCℕℤℝℂ]\s*\}?\s*(?:[\^_]?\s*\{?\s*(?:\*|\+|\\ast|\\star|0)\s*\}?)?"
    r"|(?:\\ge(?:q|qslant)?|≥|>=)\s*[01]|=\s*[01]\s*,\s*[12]\s*,[\s\d,]*(?:\\[lc]?dots|\.\.\.|…))[\s).}$]*",
)


def declared(text: str) -> tuple[str, str]:
    r"""Return an answer without the words that make a letter an integer, and the letter; "" where none is declared.

    The index of a sequence is no parameter: `a_n = 2n-1, n \\in \\mathbb{N}^*` names one, nor is an added constant.
    """
    index = _INDEXED.fullmatch(text) if len(text) <= 300 and ("=" in text or "in" in text or "∈" in text) else None
    if index and index[5] == (index[2] or index[3] or index[4]):
        return index[1].rstrip(" ,;("), ""
    if len(text) > 300 or not ("Z" in text or "ℤ" in text or "integer" in text):
        return text, ""
    for pattern in (_BUILT, _DECLARED, _NAMED_LAST):
        match = pattern.fullmatch(text.strip())
        if match and re.search(
            rf"(?<![A-Za-z\\]){match[2]}(?![A-Za-z])|\d{match[2]}(?![A-Za-z])|{match[2]}\\pi", match[1]
        ):
            return match[1].rstrip(" ,;("), match[2]
    return text, ""


def family_verdict(gold: Node, answer: Node, letters: tuple[str, str], equality: Equality) -> Verdict:
    """Compare two answers of which at least one has an integer parameter.

    `letters` are the parameters that they declare, "" for none.
    """
    ours, theirs = (
        _parameter(side, own, other)
        for side, own, other in zip((gold, answer), letters, reversed(letters), strict=True)
    )
    if not (ours and theirs):
        return equality.verdict(gold, answer)
    if ours != theirs and Symbol(ours) in set(walk(answer)):
        return Verdict(None, "structure")
    answer = put(answer, Symbol(theirs), Symbol(ours))
    verdict = equality.verdict(gold, answer)
    if verdict.equal:
        return verdict
    members, others = _members(gold), _members(answer)
    if len(members) != len(others) or not 0 < len(members) <= MAX_MEMBERS:
        return verdict
    for member in members:
        same = next((other for other in others if _shifted(member, other, ours, equality)), None)
        if same is None:
            return verdict
        others.remove(same)
    return Verdict(True, verdict.tier)


def implied(gold: Node, answer: Node) -> tuple[str, str]:
    r"""Return the parameters of two families that declare none and count turns: `2\pi k` and `2\pi n`; "" for none."""
    ours, theirs = ({item.name for item in walk(side) if isinstance(item, Symbol)} & LETTERS for side in (gold, answer))
    turns = all(any(item == Constant("pi") or is_op(item, "degree") for item in walk(side)) for side in (gold, answer))
    return (ours.pop(), theirs.pop()) if turns and len(ours) == len(theirs) == 1 and ours != theirs else ("", "")


def _parameter(node: Node, own: str, other: str) -> str:
    """Return the letter that is the parameter of an answer: declared, the other's, or the only one it can be."""
    if own:
        return own
    names = {item.name for item in walk(node) if isinstance(item, Symbol)}
    usual = sorted(names & LETTERS)
    return other if other in names else usual[0] if len(usual) == 1 else ""


def _members(node: Node) -> list[Node]:
    node = expand(node)
    items = list(node.items) if isinstance(node, Collection) and node.kind in ("list", "set") else [node]
    named = [
        item.sides[-1] if isinstance(item, Relation) and is_label(item.sides[0], item.sides[-1]) else item
        for item in items
    ]
    return named if all(map(is_expression, named)) else []


def _shifted(gold: Node, answer: Node, letter: str, equality: Equality) -> bool:
    """Whether two expressions of the first degree in the parameter run through the same values."""
    at = [[put(side, Symbol(letter), Number(Fraction(value))) for value in (0, 1, 2)] for side in (gold, answer)]
    if any(free_names(value) for side in at for value in side):
        return bool(equality.equal(gold, answer))
    ours, theirs = (minus(side[1], side[0]) for side in at)
    if not all(equality.equal(minus(side[2], side[1]), step) for side, step in zip(at, (ours, theirs), strict=True)):
        return False
    if equality.equal(ours, ZERO) is not False:
        return False
    if not (equality.equal(ours, theirs) or equality.equal(ours, Operation("neg", (theirs,)))):
        return False
    return is_whole(Operation("div", (minus(at[1][0], at[0][0]), ours)))

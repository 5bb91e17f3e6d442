r"""Whether a value that was found in a text stands alone, so that it is what the text says.

One judgement for boxes, formulas and bare numbers.  Beside a value that stands alone there is nothing that operates
on it: before it a relation such as `=`, a separator, an opening bracket or a word; after it a closing bracket,
punctuation, a unit or a noun.  And its clause (`clauses`) neither denies nor bounds nor scales it.

Only `REACH` characters on both sides are looked at.  A minus sign with a space at the start of a line is a bullet
before a formula and in a list; else it is a minus.  Not covered: what happens to a value further away, as in
`\left(\text{a long remark, then } \boxed{5}\right)^2`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from adjudge.verifiers.math.clauses import denied_after, denied_before, suspicious
from adjudge.verifiers.math.units import is_unit

REACH: Final = 80  # characters; few clauses that deny or bound a value are longer

Standing = Literal["alone", "part", "denied"]
"""`part`: signs take the value into a larger formula; `denied`: the words around it say that it is not the answer."""


class _Token(NamedTuple):
    """A piece of a text, and the white space right before it."""

    kind: str
    text: str
    start: int
    stop: int
    gap: str


_TEXT = r"\\(?:text(?:bf|it|rm|sf|superscript)?|math(?:rm|bf|it|sf)|[mh]box|operatorname)\s*"
_TOKEN = re.compile(
    r"(?P<space>(?:\s|~|\{\s*\}|\\[,;:!\s]"
    r"|\\color\s*\{[^{}]*\}(?!\s*\{)|\\(?:[nrt]|(?:display|text)style|left|right|[bB]igg?[lr]?|[lL]arge|bf|rm)(?![A-Za-z]))+)"
    r"|(?P<delimiter>\\[()\[\]\\]|\$+|&|\\(?:begin|end|tag|label|[hv]space)\*?\{[^{}]*\}|\\q?quad(?![A-Za-z]))"
    rf"|(?P<text>{_TEXT}\{{[^{{}}]*\}})"
    rf"|(?P<wrapper>(?:{_TEXT}|\\(?:text)?color(?:box)?\s*\{{[^{{}}]*\}}\s*|\\(?:boldsymbol|bm|underline|fbox|boxed)\s*)\{{)"
    r"|(?P<command>\\(?:[A-Za-z]+|.))"
    r"|(?P<word>[A-Za-z]{2,}|[^\W\d_A-Za-z\u0370-\u03ff]+)"
    r"|(?P<letter>[^\W\d_])"
    r"|(?P<number>\d+(?:[.,]\d+)*)"
    r"|(?P<mark>[-=]+>|</?[A-Za-z][^<>\n]{0,20}>|[\"“”‘’`]|…|\.\.\.)"
    r"|(?P<comma>\{,\})"
    r"|(?P<stars>[*_]{1,3})"
    r"|(?P<opener>[(\[{（])"
    r"|(?P<closer>[)\]}）])"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_OPERANDS = frozenset({"letter", "number", "opener", "closer", "wrapper"})
_RELATIONS = frozenset(
    "approx simeq equiv cong sim in implies Rightarrow Longrightarrow rightarrow to iff Leftrightarrow colon".split()
)
_BOUNDS = frozenset("le leq leqslant leqq ge geq geqslant geqq lt gt ne neq ll gg not notin".split())
_ORNAMENTS = frozenset(
    "therefore because item hline hfill newline par noindent centering square blacksquare Box qed checkmark ldots dots "
    "pmod circ degree prime % $ # { } AA si SI unit footnote".split()
)
_OPERATORS = frozenset("+-−–/×÷·∗⋅±∓√^|<>≤≥≠∶")
_MINUS = frozenset("-−–")
_PLAIN_FUNCTIONS = frozenset("sin cos tan cot sec csc ln log exp sqrt cbrt arcsin arccos arctan pi".split())
_ENDINGS = frozenset("st nd rd th".split())
_BULLETS = frozenset("-−+>")
_ORDINAL = re.compile(r"\^\s*\{?\s*(?:\\(?:circ|degree|prime|text|mathrm|textrm)|[°']|(?:st|nd|rd|th)\b)")
_BULLET = re.compile(r"^[ \t]*[-−+>][ \t]", re.MULTILINE)
_ONE_ITEM = re.compile(r"(\A|\n[ \t]*\n|[:：][*_ \t]*\n)[ \t]*[-−][ \t]+([*_]*\Z)")
_CALM_BEFORE = re.compile(
    r"(?:\s((?:is|are|be|get|so)(?=\s)|[a-z]{2,18}(?=:|\s*(?:\\[(\[]|\$)))|[^<>!=e]()=|^()):?\s*(?:\\[(\[]|\$\$?)?\s*\Z"
)
_USUAL = tuple(
    f" is{gap}{opener}" for gap in (" ", "\n", ":\n", ":\n\n", "\n\n") for opener in ("\\(", "$", "\\[\n", "\\[", "")
)
_CALM_AFTER = re.compile(r"\s*\.?\s*(?:\\[)\]]|\$\$?)?\.?(?:\s+([A-Za-z]{3,})|\s*\Z)")


def standing(text: str, start: int, stop: int, *, marked: bool) -> Standing:
    """Return how the value at `text[start:stop]` stands in its formula and in its clause.

    Args:
        text: the whole text.
        start: where the value begins, its box or delimiters included.
        stop: where it ends.
        marked: it is in a box; a number in a sentence is judged more strictly, since the sentence may be about
            something else.
    """
    before, after = _ONE_ITEM.sub(r"\1\2", text[max(0, start - REACH) : start]), text[stop : stop + REACH]
    follows = _CALM_AFTER.match(after) if marked else None
    if follows:  # 39 of 40 boxes of real responses need no more than this
        words = after if follows[1] else ""
        if before.endswith(_USUAL):
            if not suspicious(before, "is", words):
                return "alone"
        elif (calm := _CALM_BEFORE.search(before[-24:])) and not suspicious(before, calm[1] or "", words):
            return "alone"
    left = _before(_tokens(before), text)
    right = _after(_tokens(after))
    if left is None or right is None:
        return "part"
    if denied_before(before[:left], marked=marked) or denied_after(after[right:], marked=marked):
        return "denied"
    return "alone"


def _tokens(text: str) -> list[_Token]:
    """Return the tokens of a text and one of kind "end"."""
    tokens, gap = [], ""
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "space":
            gap = match[0]
        else:
            tokens.append(_Token(match.lastgroup or "", match[0], match.start(), match.end(), gap))
            gap = ""
    return [*tokens, _Token("end", "", len(text), len(text), gap)]


def _spaced(token: _Token) -> bool:
    """Whether white space, not only a layout command, stands before a token."""
    return token.gap[:1] != "" and not token.gap.startswith("\\")


def _operates(token: _Token) -> bool:
    """Whether a token can be an operand."""
    if token.kind == "command":
        return token.text[1:] not in _RELATIONS | _BOUNDS | _ORNAMENTS
    return token.kind in _OPERANDS


def _multiplies(previous: _Token | None, stars: _Token, following: _Token) -> bool:
    """Whether stars are a product or a power: they touch operands on both sides, or neither."""
    if previous is None:  # they follow the value
        return _operates(following) and _spaced(stars) == _spaced(following)
    return _operates(previous) and _spaced(stars) == _spaced(following)


def _before(tokens: list[_Token], text: str) -> int | None:
    """Return where the words before a value end, or None when a sign takes the value into a larger formula."""
    crossed = False
    for at in range(len(tokens) - 2, -1, -1):
        token, following = tokens[at], tokens[at + 1]
        previous = tokens[at - 1] if at else None
        first = previous is None or "\n" in token.gap  # of its line
        glued = not _spaced(following)
        if token.kind == "delimiter":
            crossed = True
        elif token.kind == "opener":
            if previous and not _spaced(token) and (_operates(previous) or previous.kind in ("word", "stars", "sign")):
                return None
        elif token.kind == "stars" and (first or not _multiplies(previous, token, following)):
            pass
        elif first and not glued and token.text in _BULLETS:
            return 0 if crossed or len(_BULLET.findall(text)) > 1 or token.text in "+>" else None
        elif token.kind != "wrapper" and token.text not in tuple("\"“‘`'"):
            return token.stop if _clear_before(tokens, at, glued=glued, crossed=crossed) else None
    return 0


def _clear_before(tokens: list[_Token], at: int, *, glued: bool, crossed: bool) -> bool:
    """Whether the first token before a value that is not a bracket leaves the value alone."""
    token = tokens[at]
    previous = tokens[at - 1] if at else None
    if token.kind == "word":
        return crossed or token.text not in _PLAIN_FUNCTIONS
    if token.kind == "command":
        name = token.text[1:]
        return name in _RELATIONS or name in _ORNAMENTS
    if token.kind in _OPERANDS and "\n" in tokens[at + 1].gap:
        return True  # a line of its own
    if token.kind in _OPERANDS:
        return crossed or not (glued or _in_formula(reversed(tokens[:at]))) or (not glued and _label(tokens[: at + 1]))
    if token.text == "." or token.kind == "comma":
        if crossed or not (glued and previous and previous.kind == "number"):
            return True
        # "Step 4.\boxed{5}" ends a sentence and lacks a blank; "= 4.\boxed{5}" and "is 0.\boxed{5}" are decimals.
        return token.text == "." and previous.text != "0" and at > 1 and tokens[at - 2].kind == "word"
    if token.text in (":", "：") and previous and (previous.kind == "number" or previous.text.islower()):
        if glued and not _spaced(token):
            return previous.kind == "word"
        return not (_spaced(token) and previous.kind != "word" and _in_formula(reversed(tokens[: at - 1])))
    if token.text in _MINUS:
        return not glued and previous is not None and not _operates(previous) and previous.text != "="
    if token.text == "+":
        return previous is None or not _operates(previous)
    if token.text == "|":
        return not glued
    return token.text not in _OPERATORS and token.kind != "stars"


def _after(tokens: list[_Token]) -> int | None:
    """Return where the words after a value begin, or None when a sign takes the value into a larger formula."""
    crossed = False
    for at, token in enumerate(tokens):
        glued = not _spaced(token)
        following = tokens[min(at + 1, len(tokens) - 1)]
        bold = token.kind == "stars" and not _spaced(following)
        if "\n" in token.gap and (bold or token.kind in _OPERANDS or token.text in _BULLETS):
            return token.start  # a line of its own
        if token.kind == "delimiter":
            crossed = True
        elif token.kind == "stars" and not _multiplies(None, token, following):
            pass
        elif token.kind not in ("closer", "mark") and token.text not in ("\\square", "\\blacksquare", "\\checkmark"):
            return token.start if _clear_after(tokens[at:], glued=glued, crossed=crossed) else None
    return tokens[-1].start


def _clear_after(tokens: list[_Token], *, glued: bool, crossed: bool) -> bool:
    """Whether the first token after a value that is not a bracket leaves the value alone."""
    token, following = tokens[0], tokens[min(1, len(tokens) - 1)]
    near = not _spaced(following)
    if token.kind == "command":
        name = token.text[1:]
        unit = following.kind == "text" and name in ("mu", "Omega", "circ")
        return crossed or unit or name in _RELATIONS or name in _ORNAMENTS
    if token.kind == "word":
        named = len(token.text) > 2 or token.text in _ENDINGS or is_unit(token.text, upright=True)
        return crossed or not glued or named or not token.text.isascii()
    if token.kind in ("letter", "number"):
        if (
            token.kind == "letter"
            and token.text != "i"
            and is_unit(token.text, upright=True)
            and not _operates(following)
        ):
            return True
        return (crossed and (not glued or token.kind == "number")) or not (glued or _in_formula(tokens[1:]))
    if token.kind in ("opener", "wrapper"):
        return crossed or _remark(tokens)
    if token.kind == "comma" or token.text in (".", ","):
        if following.kind != "number" or crossed:
            return True
        return not (glued and near) and not (token.text == "," and _in_formula(tokens[2:]))
    if token.text in (":", "："):
        return not (following.kind in ("number", "letter") and (near or not glued))
    if token.text == "!":
        return crossed or not (
            following.kind == "delimiter" or following.text in _OPERATORS or following.text in ("!", "=", "*")
        )
    if token.text == "=":
        return crossed or any(_symbol(one) for one in _formula(tokens))
    if token.text == "^":
        return bool(_ORDINAL.match("".join(one.text for one in tokens[:4])))
    if token.text == "<" and crossed:
        return following.kind != "number"  # else a tag
    if token.text in _OPERATORS or token.kind == "stars":
        return not _operates(following) and not (crossed and following.kind == "delimiter" and _operates(tokens[2]))
    return True


def _in_formula(tokens: Iterable[_Token]) -> bool:
    """Whether tokens, away from the value, reach the border of a formula, or of the text, before any word."""
    for token in tokens:
        if token.kind == "delimiter" or token.text in ("=", "<", ">"):
            return True
        if token.kind in ("word", "text"):
            return False
    return True


def _label(tokens: list[_Token]) -> bool:
    """Whether tokens end with a bracket that only labels or remarks: `(a)`, `1)`, `(by symmetry)`."""
    for at in range(len(tokens) - 2, max(len(tokens) - 8, -1), -1):
        token = tokens[at]
        if token.kind in ("word", "text"):
            return True
        if token.kind == "opener":
            previous = tokens[at - 1] if at else None
            return at >= len(tokens) - 3 and not (previous and not _spaced(token) and _operates(previous))
    return tokens[-1].text == ")" and not any(token.kind == "opener" for token in tokens)


def _remark(tokens: list[_Token]) -> bool:
    """Whether tokens begin with a bracket that is not a factor: `(since ...)`, `(B)`, a spaced `(1)`, `{cm}`."""
    inside = list(itertools.takewhile(lambda token: token.kind not in ("closer", "end"), tokens[1:]))
    if any(token.kind in ("word", "text") or token.text in ("\\mathrm", "\\pmod") for token in inside):
        return True
    if len(inside) == 1 and inside[0].kind == "letter":
        return inside[0].text.isupper() or (tokens[0].text == "{" and is_unit(inside[0].text, upright=True))
    return _spaced(tokens[0]) and not any(_symbol(token) for token in inside)


def _formula(tokens: list[_Token]) -> Iterator[_Token]:
    """Return the tokens as far as the formula goes."""
    return itertools.takewhile(lambda token: token.kind not in ("delimiter", "end"), tokens)


def _symbol(token: _Token) -> bool:
    """Whether a token is a name, so that what holds it is more than numbers."""
    return token.kind in ("letter", "word", "text") or (token.kind == "command" and _operates(token))

r"""Whether an answer that has the value of the gold also says that value, as far as the question lets us tell.

Four things look like a value and are none: a number with a word that is not a noun (`42\text{ rejected}`), a value
that is only neared (`x \to 42` where 42 is exact), an equation that is still to be solved (`x^2 = 25` where x is
asked for), and a formula of the question with which something was to be done (`\frac{8}{22}` where it was to be
simplified).  Words of the gold or of the prompt are known to be meant; other nouns are taken where they are plainly
counted.

Not covered: nouns of other languages, which are taken unless the prompt or the rest of the answer speaks against it;
and work that was begun and not finished, as `\frac{16}{44}` for `\frac{8}{22}`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias

from adjudge.verifiers.math.equality import Equality
from adjudge.verifiers.math.extraction import Marker
from adjudge.verifiers.math.intervals import MIRROR
from adjudge.verifiers.math.lexer import plain
from adjudge.verifiers.math.nodes import (
    ONE,
    ZERO,
    Collection,
    Matrix,
    Node,
    NotMathError,
    Number,
    Operation,
    Relation,
    Unit,
    children,
    is_op,
    rebuild,
    walk,
)
from adjudge.verifiers.math.parser import parse
from adjudge.verifiers.math.reading import Reading
from adjudge.verifiers.math.relations import is_label, letters_of
from adjudge.verifiers.math.scalars import Rules
from adjudge.verifiers.math.sentences import FORMULA
from adjudge.verifiers.math.units import is_unit
from adjudge.verifiers.math.values import exact, free_names
from adjudge.verifiers.math.vocabulary import FUNCTIONS, NUMBER_WORD

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_BESIDE: Final = frozenset(  # where a noun phrase ends
    "of per in ago old later earlier total altogether each apiece left away high long wide tall deep on with at "
    "for from who that which to who whose over during after before by and remaining overall".split()
)
_ALONE: Final = frozenset(
    "total altogether each apiece left of them in all these those old away remaining more overall".split()
)
_PLURALS: Final = frozenset(
    "people men women children feet teeth geese mice dice sheep fish deer cattle police persons oxen lice pence "
    "vertices matrices indices axes data criteria polyhedra loci radii foci fungi cacti bacteria media aircraft "
    "offspring series species salmon trout shrimp staff".split()
)
_NO_PLURALS: Final = frozenset(
    "bounds errors mistakes guesses lies negatives inverses halves minus plus versus always thus as is was has "
    "does its his this yes us less backwards upwards downwards afterwards tens perhaps besides".split()
)
_ASKING: Final = frozenset("how many much few more less fewer the is are what which too by off short".split())
_NUMBERS: Final = re.compile(rf"(?:{NUMBER_WORD}|point|comma|dot|half|decimal)", re.IGNORECASE)
_ROUNDED: Final = re.compile(
    r"approx|nearest|round|estimat|decimal|significant|limit|lim\b|\\to\b|converge|approach|tend|about|≈|closest|calculator",
    re.I,
)
_ASKED: Final = re.compile(
    r"(?:\b(?:find|determine|compute|calculate|evaluate|is|for|of)\s+)(?:the\s+)?(?:value\s+of\s+)?[\\($\s]*([A-Za-z])(?![A-Za-z^_])[\\)$\s.?,]",
    re.IGNORECASE,
)
_FUNCTION_WORDS: Final = re.compile(
    r"\b(?:(?:co)?sine|(?:co)?tangent|(?:co)?secant|logarithm|square|cube|reciprocal|root|factorial|absolute|modul|magnitude|power|floor|"
    r"remainder)",
    re.IGNORECASE,
)
_OF_MATRIX: Final = re.compile(r"\b(?:inverse|transpose)\b", re.IGNORECASE)
_LAYOUT: Final = re.compile(r"\\(?:left|right|displaystyle|,|;|!|:| )|[\s$\\{}()]")
_FIGURE: Final = re.compile(
    r"(?:equation|formula|inequality|condition)s?\s+(?:of|for|that|which|whose)\b|\b(?:lines?|planes?|asymptotes?|axis"
    r"|axes|directri\w+|loc(?:us|i)|curves?|boundar\w+|tangents?|in\s+the\s+form)\b",
    re.IGNORECASE,
)
_TRANSFORM: Final = re.compile(
    r"\b(?:simplify|reduce|convert|express|(?:re)?write|expand|factor(?:i[sz](?:e|ation))?|rationali[sz]e|transform)\b"
    r"|\b(?:decimal|fraction|percent(?:age)?)\b[^.?!;\n]{0,30}?\b(?:equivalent|equals?|form|representation|expansion)\b",
    re.IGNORECASE,
)
_AS: Final = re.compile(  # right behind what is to be written so
    r"[\s$)\]\\]*(?:be\s+)?(?:(?:written|expressed)\s+)?(?:as|in|into|to)\s+(?:an?\s+|the\s+)?(?:\w+\s+){0,2}?"
    r"(?:decimals?|fraction|percent(?:age)?|mixed\s+number|scientific|standard|radians?|degrees?)\b",
    re.IGNORECASE,
)
_COMBINED: Final = re.compile(r"\b(?:product|sum|quotient)\s+of\b|\b(?:multiply|add|divide)\b", re.IGNORECASE)
_TO_CHANGE: Final = re.compile(rf"{_TRANSFORM.pattern}(?:(?!\.\s)[^?!;\n]){{0,160}}\Z", re.IGNORECASE)
_TEXT: Final = re.compile(r"\\(?:text\w*|mathrm|mathbf|mbox)(?![A-Za-z])|[\s${}]")
_PRODUCT: Final = re.compile(
    r"\b(?:segments?|sides?|chords?|edges?|legs?|lines?|distances?|lengths?|diagonals?|diameters?|radi(?:us|i)|arcs?|triangles?"
    r"|polygons?|in\s+terms\s+of|times|multipl\w+|simplify|expand|factor)\b",
    re.IGNORECASE,
)
_DIGITS: Final = re.compile(r"[2-9]")
_Shape: TypeAlias = frozenset[tuple[Hashable, int]]
_SPELLINGS: Final = (  # of which a prompt has one and an answer another
    (re.compile(r"(?<=\d)\s*(?:\\text\s*\{\s*)?degrees?\b(?:\s*\})?|°"), r"^\\circ"),
    (re.compile(r"(?<=\d)(?:\{,\}|\\,)(?=\d{3}(?!\d))"), ""),
    (re.compile(r"(?<![\d(\[{,])(\d{1,3}),(\d{3})(?:,(\d{3}))?(?![\d)\]}]|,\d)"), r"\1\2\3"),
)
_MATRIX: Final = re.compile(r"\\begin\{([a-zA-Z]*matrix|array)\}(.*?)\\end\{\1\}", re.DOTALL)
_CALL: Final = rf"(?:{'|'.join(FUNCTIONS)})\b"
_SIGN: Final = r"[-+*/^=<>()|!%√\[\]{}²³×÷·⋅]|\\(?:circ|times|cdot|div|[dt]?frac)(?![A-Za-z])"
_FORMULA: Final = re.compile(  # also in plain text: numbers, letters that stand alone, signs between them
    rf"{FORMULA.pattern}|(?<![\w.$\\])(?:{_CALL}\s?)?(?:{_SIGN})*(?:\d[\d.,]*|[b-z](?![a-z]))"
    rf"(?:\s?(?:{_SIGN}|{_CALL}|\d[\d.]*|[a-z](?![a-z])))*",
    FORMULA.flags,
)
_MOST_FORMULAS: Final = 80  # of a prompt


def says(gold: Reading, answer: Reading, prompt: str, marker: Marker) -> bool:
    """Whether an answer that equals the gold states its value.

    Args:
        gold: the reference.
        answer: what was found.
        prompt: the text of the question; "" says nothing against any answer.
        marker: how the answer was found; a bare line is held to more than what is marked.
    """
    if answer.about and not gold.about and prompt and _is_exact(gold) and not _ROUNDED.search(prompt):
        return False
    tree = answer.tree
    if tree is None or answer.literal == gold.literal:
        return True
    if _spelled(gold.text) and _spelled(answer.text) and not _PRODUCT.search(prompt):
        return False  # `HT` is not `TH`, though the product is
    if prompt and _is_given(gold, answer, prompt):
        return False
    if isinstance(tree, Number):
        return True
    if not _nouns_fit(tree, f"{gold.text} {prompt}"):
        return False
    first = tree.items[0] if isinstance(tree, Collection) and tree.items else tree
    if not isinstance(first, Relation) or (isinstance(gold.tree, Relation | Collection) and marker == "tag"):
        return True
    if first.operators[0] in ("~", "->") and letters_of(first.sides[0]):
        return not (prompt and _is_exact(gold)) or bool(_ROUNDED.search(prompt))
    if first.operators[0] == "=" and not isinstance(gold.tree, Relation | Collection):
        return _solved(first, answer.text, prompt, marker)
    # `4x+6=14` for `x=2` is still to be solved, unless an equation of a line was asked for
    return not prompt or not _is_solved(gold.tree, closed=True) or _is_solved(first) or bool(_FIGURE.search(prompt))


def _spelled(text: str) -> bool:
    """Whether an answer is two letters that look like a word, a code or a numeral and not like a product."""
    letters = _TEXT.sub("", text)
    return len(letters) == 2 and letters.isalpha() and (letters.isupper() or "\\" in text)


def _nouns_fit(tree: Node, context: str) -> bool:
    """Whether the words behind the numbers of an answer are what is counted."""
    words: list[str] = []
    for item in walk(tree):
        if isinstance(item, Unit) and item.name.startswith("?"):
            words += _WORD.findall(item.name.partition("/")[0].casefold())
        elif isinstance(item, Unit) and words:
            words.append(item.name)
    if not words:
        return True
    known = frozenset(_WORD.findall(context.casefold())) - _ASKING
    return known.issuperset(words) or _is_counted(words, known)


def _is_counted(words: list[str], known: frozenset[str]) -> bool:
    if any(_NUMBERS.fullmatch(word) and word not in known for word in words):
        return False
    if not all(map(str.isascii, words)) or set(words) <= _ALONE or words[0] in ("of", "by", "using", "from"):
        return True
    end = next((at for at, word in enumerate(words) if word in _BESIDE), len(words))
    if not end:
        return False
    head = words[end - 1]
    if {head, f"{head}s", f"{head}es"} & known or (len(head) > 1 and is_unit(head, upright=True)) or head in _PLURALS:
        return True
    return len(head) > 2 and head.endswith("s") and not head.endswith(("ss", "ous")) and head not in _NO_PLURALS


def _is_exact(gold: Reading) -> bool:
    """Whether a gold is a value that is not rounded, or names one."""
    tree = gold.tree
    if isinstance(tree, Relation):
        return "~" not in tree.operators and "->" not in tree.operators
    return not (isinstance(tree, Number) and tree.places > 0)


def _solved(equation: Relation, text: str, prompt: str, marker: Marker) -> bool:
    """Whether the left side of an equation can be what was asked for."""
    left, right = equation.sides[0], equation.sides[-1]
    letters = letters_of(left)
    raised = _is_power(left) or (is_op(left, "add") and any(map(_is_power, left.args)))
    if not prompt or not letters or (is_label(left, right) and not raised):
        return True
    if exact(right) is None and free_names(right):
        return True
    named, asks = (_LAYOUT.sub("", plain(one)) for one in (text.partition("=")[0], prompt))
    if named in asks or _FUNCTION_WORDS.search(prompt) or (isinstance(right, Matrix) and _OF_MATRIX.search(prompt)):
        return True
    if raised:
        return False  # `r^2 = 4` gives no radius, unless the prompt has the square
    if len(letters) > 1 or (is_op(left, "add") and all(map(free_names, left.args))):
        return True  # `x + 1/x` is asked for where x is not
    asked = {match[1] for match in _ASKED.finditer(prompt + " ")} - {"a", "I"}
    given = any(re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z])", prompt) for name in letters)
    return not (given or asked or marker in ("whole", "number", "formula"))


def _is_power(node: Node) -> bool:
    """Whether an expression is a power, also of a segment as in `AB^2`."""
    return is_op(node, "pow", "mul") and any(is_op(item, "pow") and free_names(item.args[0]) for item in walk(node))


# -- what the question gives ----------------------------------------------------------------------------------------


def _is_given(gold: Reading, answer: Reading, prompt: str) -> bool:
    r"""Whether an answer only repeats a formula of the question that was to be worked on, as the gold does not.

    A value that nothing more can be done with may be given and be the answer all the same (`30^\circ`, `x>1`), unless
    the question asks for another form of it.  Of a chain of equations the last side counts, too.
    """
    given, wanted = _written(answer), _written(gold)
    if given is None or wanted is None:
        return False
    texts = [(answer.option[1] if answer.option and answer.option[1] else answer.text, given)]
    if isinstance(given, Relation) and set(given.operators) == {"="} and not isinstance(wanted, Relation | Collection):
        texts.append((answer.text.rpartition("=")[2], given.sides[-1]))
    return any(
        set(_DIGITS.findall(text)) <= set(_DIGITS.findall(prompt))
        and _shape(node) != _shape(wanted)
        and _repeated(text, node, gold, wanted, prompt)
        for text, node in texts
    )


def _repeated(text: str, given: Node, gold: Reading, wanted: Node, prompt: str) -> bool:
    """Whether a formula that is not the gold's stands in the question, or is what the question joins by a word."""
    asked = _alike(prompt)
    final = _is_final(given)
    if final and (_numbers(given) == _numbers(wanted) or not (_TRANSFORM.search(asked) or " as " in asked)):
        return False
    shape = _shape(given)
    sides = given.sides if isinstance(given, Relation) else (given,)
    same = Equality(Rules(), gold.text)

    def holds(side: Node, others: frozenset[_Shape]) -> bool:
        parts = (part for part in walk(side) if children(part) and not _is_final(part) and _shape(part) in others)
        return any(same.equal(wanted, part) for part in parts)

    formulas = _formulas(asked)
    places = [span for span, others in formulas if shape in others or all(holds(side, others) for side in sides)]
    if any(not final or _TO_CHANGE.search(asked, 0, start) or _AS.match(asked, end) for start, end in places):
        return True
    matrix = None if isinstance(given, Relation) or _MATRIX.search(gold.text) else _MATRIX.search(text)
    if matrix and any(other[2].split() == matrix[2].split() for other in _MATRIX.finditer(prompt)):
        return True  # a determinant that is only written down
    parts = children(given) if is_op(given, "mul", "add", "div") and _COMBINED.search(asked) else ()
    known = frozenset[_Shape]().union(*(others for _, others in formulas))
    return any(map(children, parts)) and _is_exact(gold) and all(_shape(part) in known for part in parts)


def _alike(text: str) -> str:
    """Return a text with one spelling of degrees and of long numbers."""
    for written, known_as in _SPELLINGS:
        text = written.sub(known_as, text)
    return text


def _written(reading: Reading) -> Node | None:
    """Return the tree of an answer as it is written: of an option its text, of a plain number its own form."""
    text = reading.option[1] if reading.option and reading.option[1] else reading.text
    try:
        return parse(text)
    except NotMathError:
        return reading.tree


@lru_cache(maxsize=256)  # a prompt has many answers
def _formulas(prompt: str) -> tuple[tuple[tuple[int, int], frozenset[_Shape]], ...]:
    """Return where the formulas of a prompt stand, with the shapes of each, of its sides and of its members."""
    found = []
    for formula in islice(_FORMULA.finditer(prompt), _MOST_FORMULAS):
        try:
            tree = parse(formula[formula.lastgroup or 0].strip(" .,;:?=\n"))
        except NotMathError:
            continue
        parts = [tree, *(tree.items if isinstance(tree, Collection) else ())]
        parts += [side for part in parts if isinstance(part, Relation) for side in part.sides]
        found.append((formula.span(), frozenset(map(_shape, parts))))
    return tuple(found)


def _shape(node: Node) -> _Shape:
    """Return what a formula is made of, whatever the order: `2x+3=7` and `7=2x+3` are one, `x=2` is another."""
    if isinstance(node, Relation) and node.operators[0] == "=" and is_label(node.sides[0], node.sides[-1]):
        node = node.sides[-1]
    return frozenset(Counter(map(_name, walk(_tidy(node)))).items())


def _name(node: Node) -> Hashable:
    if isinstance(node, Number):
        return node.value, node.places > 0
    if isinstance(node, Relation):
        return tuple(sorted(MIRROR[sign] if sign in (">", ">=") else sign for sign in node.operators))
    if isinstance(node, Collection):
        return node.kind, node.brackets
    return node if not children(node) else getattr(node, "name", "matrix")


def _tidy(node: Node) -> Node:
    """Return a tree without what changes nothing: a summand 0, a factor or exponent 1, two signs; and without units."""
    parts = tuple(map(_tidy, children(node)))
    if is_op(node, "add", "mul"):
        nothing = ZERO if node.name == "add" else ONE
        inner = [one for part in parts for one in (part.args if is_op(part, node.name) else (part,)) if one != nothing]
        inner = [one for one in inner if not isinstance(one, Unit)] or inner
        return inner[0] if len(inner) == 1 else Operation(node.name, tuple(inner))
    if is_op(node, "pow", "div") and parts[1] == ONE:
        return parts[0]
    if is_op(node, "neg") and isinstance(parts[0], Number):
        return replace(parts[0], value=-parts[0].value)
    if is_op(node, "neg") and is_op(parts[0], "neg"):
        return parts[0].args[0]
    return rebuild(node, parts)


def _is_final(node: Node) -> bool:
    """Whether nothing is left to do: a number, a reduced fraction, either of pi or with a unit, `x > 1`, or a list."""
    if isinstance(node, Relation):
        return _is_solved(node) and all(map(_is_final, node.sides))
    if isinstance(node, Collection):
        return all(map(_is_final, node.items))
    if is_op(node, "neg", "degree", "percent", "base", "such_that"):
        return all(map(_is_final, node.args))
    if is_op(node, "mul"):
        return not any(map(children, node.args)) and sum(isinstance(arg, Number) for arg in node.args) < 2
    if is_op(node, "div"):
        above, below = (_numbers(arg) or [Fraction(1)] for arg in node.args)
        whole = above[0].denominator == below[0].denominator == 1
        plain = all(_is_final(arg) and not is_op(arg, "div") for arg in node.args)
        return plain and whole and math.gcd(int(above[0]), int(below[0])) == 1
    return not children(node)


def _numbers(node: Node) -> list[Fraction]:
    return [item.value for item in walk(node) if isinstance(item, Number)]


def _is_solved(node: Node | None, *, closed: bool = False) -> bool:
    """Whether a statement says what a name is worth, or between what it lies; what is no equation says so anyhow.

    With `closed`, its worth must not depend on other names.
    """
    first = node.items[0] if isinstance(node, Collection) and node.items else node
    if not isinstance(first, Relation) or set(first.operators) - {"=", "<", "<=", ">", ">=", "!="}:
        return True
    named = [side for side in first.sides if free_names(side)]
    if not closed and (not named or is_label(first.sides[0], first.sides[-1])):
        return True
    return len(named) == 1 and is_label(named[0], ZERO)

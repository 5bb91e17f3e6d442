r"""Whether an answer that has the value of the gold also says that value, as far as the question lets us tell.

Three things look like a value and are none: a number with a word that is not a noun (`42\text{ rejected}`), a value
that is only neared (`x \to 42` where 42 is exact), and an equation that is still to be solved (`x^2 = 25` where x is
asked for).  Words of the gold or of the prompt are known to be meant; other nouns are taken where they are plainly
counted.

Not covered: nouns of other languages, which are taken unless the prompt or the rest of the answer speaks against it.
"""

from __future__ import annotations

import re
from typing import Final

from adjudge.verifiers.math.extraction import Marker
from adjudge.verifiers.math.nodes import Collection, Node, Number, Relation, Unit, is_op, walk
from adjudge.verifiers.math.reading import Reading
from adjudge.verifiers.math.relations import is_label
from adjudge.verifiers.math.units import is_unit
from adjudge.verifiers.math.values import exact, free_names
from adjudge.verifiers.math.vocabulary import NUMBER_WORD

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
_LAYOUT: Final = re.compile(r"\\(?:left|right|displaystyle|,|;|!|:| )|[\s$\\{}()]")


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
    if tree is None or isinstance(tree, Number) or answer.literal == gold.literal:
        return True
    if not _nouns_fit(tree, f"{gold.text} {prompt}"):
        return False
    first = tree.items[0] if isinstance(tree, Collection) and tree.items else tree
    if not isinstance(first, Relation) or (isinstance(gold.tree, Relation | Collection) and marker == "tag"):
        return True
    if first.operators[0] in ("~", "->") and free_names(first.sides[0]):
        return not (prompt and _is_exact(gold)) or bool(_ROUNDED.search(prompt))
    if first.operators[0] == "=" and not isinstance(gold.tree, Relation | Collection):
        return _solved(first, answer.text, prompt, marker)
    return True


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
    if {head, f"{head}s", f"{head}es"} & known or is_unit(head, upright=True) or head in _PLURALS:
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
    letters = {name for name in free_names(left) if not name.startswith("unit:")}
    if not prompt or not letters or (is_label(left, right) and not _is_power(left)):
        return True
    if exact(right) is None and free_names(right):
        return True
    if _LAYOUT.sub("", text.partition("=")[0]) in _LAYOUT.sub("", prompt) or _FUNCTION_WORDS.search(prompt):
        return True
    if len(letters) > 1 and not _is_power(left):
        return True
    if is_op(left, "add") and all(map(free_names, left.args)):
        return True  # `x + 1/x` is asked for where x is not
    asked = {match[1] for match in _ASKED.finditer(prompt + " ")} - {"a", "I"}
    named = any(re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z])", prompt) for name in letters)
    return not (named or asked or marker in ("whole", "number", "formula"))


def _is_power(node: Node) -> bool:
    """Whether an expression is a power, also of a segment as in `AB^2`."""
    return is_op(node, "pow", "mul") and any(is_op(item, "pow") and free_names(item.args[0]) for item in walk(node))

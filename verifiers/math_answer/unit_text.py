r"""Units written as text, such as `\text{ km/h}` or `\mathrm{~m}^2`, to expressions in units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from adjudge.verifiers.math_answer.nodes import Node, NotMathError, Number, Operation, Symbol, Unit
from adjudge.verifiers.math_answer.units import factor, is_unit

_PIECE = re.compile(r"([^\W\d]+|\$)\s*(?:\^?\s*\{?(-?\d)\}?)?")
_SQUARE = {"square": 2, "sq": 2, "sq.": 2, "cubic": 3, "cu": 3, "cu.": 3}


NOT_NOUNS = frozenset(
    "is are was were be been not no never neither nor cannot can wrong incorrect false untrue maybe perhaps possibly "
    "either or and but if then than else unless except until about approximately roughly around between might could "
    "should would will what which who why how because since therefore thus hence so to from with without plus minus "
    "for some where when".split()
)


SCALES: Final[dict[str, tuple[int, int]]] = {
    "hundred": (10, 2), "thousand": (10, 3), "million": (10, 6), "billion": (10, 9), "trillion": (10, 12),
    "lakh": (10, 5), "lakhs": (10, 5), "crore": (10, 7), "crores": (10, 7), "dozen": (12, 1), "gross": (12, 2),
    "score": (20, 1), "万": (10, 4), "亿": (10, 8),
}  # fmt: skip
"""Words that multiply the number before them, as a power: `5 million` is 5 * 10^6."""

_SCALE = re.compile(
    r"\w*(?:illions?|illiards?|illionen|hundreds?|thousands?|dozens?|ths?|tuples?|folds?|akhs?|rores?"
    r"|hundert|tausend|dutzend|douzaines?|[dc]e[cn]t?e?nas?|doz[iz]\w+|dzin\w*|tuzin\w*|mil[iy]on\w*|milh(?:ão|ões|ar\w*)|mil[iy]ar\w*|mil"
    r"|mila|mille|cien(?:to)?s?|centinaia|cem|tys\w*|tis[ií]c\w*|bin|yüz|ribu|juta|ratus|elfu|ezer|tuhat\w*|tusen|duizend|honderd"
    r"|тысяч\w*|миллион\w*|миллиард\w*|сот(?:ен|ня|ни)|десят(?:ок|ков|ка)|дюжин\w*|мільйон\w*|nghìn|ngàn|triệu|trăm|tỷ|tỉ)",
    re.IGNORECASE,
)  # by their endings, which languages share and hardly a counted thing has
_SCALE_CJK = re.compile(
    "[万亿千百兆倍半‰%萬億仟佰拾만억천백조]|हज़?ार|हजार|लाख|करोड़|सौ|ہزار|لاکھ|کروڑ|ألف|آلاف|مليون|ملايين|مليار|مئة|مائة"
    "|พัน|หมื่น|แสน|ล้าน|ร้อย|হাজার|লক্ষ|কোটি|分之|以上|以下|次方|左右|割|ない|以外|아니|아닌|不"
)
_NO_NOUN = re.compile(r"[\d\\α-ω]")
_CHANGING = frozenset(  # scales, shares, powers, signs, bounds, estimates: the closed classes of words about a number
    "ish tens score couple couples myriad myriads grand mil mill mils mille bn mn bil mio mrd hundredweight "
    "hundredweights cwt googol googols lac lacs kilo mega giga tera milli micro nano trio trios brace gross "
    "permille permil ppm ppb pp bps percent pct percents percentage percentages percentile percentiles basis per "
    "half halves halved third thirds quarter quarters squared cubed root factorial choose base modulo mod inverse "
    "reciprocal negative below above under over beyond at least most less more fewer twice thrice double doubled "
    "triple tripled max maximum minimum tops upward upwards onward onwards something approx approximate circa ca "
    "nearly almost estimated est exponent".split()
)


def changes_value(word: str) -> bool:
    """Whether a word next to a number makes it another number (`5 million`, `5 squared`), or says too little."""
    return word.lower() in _CHANGING or bool(_SCALE.fullmatch(word) or _SCALE_CJK.search(word))


def scale(word: str) -> Node:
    """Return what a word of `SCALES` multiplies by."""
    base, exponent = SCALES[word.lower()]
    return Operation("pow", (Number(Fraction(base)), Number(Fraction(exponent))))


def is_noun(word: str) -> bool:
    """Whether a word can be what is counted."""
    return word.lower() not in NOT_NOUNS and not changes_value(word)


def unit_expression(text: str) -> Node:
    """Return the product of scales and units that a text names; a text that names none is a counted noun.

    Raises:
        NotMathError: the text holds a word that no noun phrase has, such as "is" or "not".
    """
    words = text.strip(" .,()").replace(" per ", "/").replace("\\cdot", " ").replace("*", " ").replace("·", " ")
    node: Node | None = None
    first, _, rest = words.strip().partition(" ")
    if first.lower() in SCALES:
        return Operation("mul", (scale(first), unit_expression(rest))) if rest.strip() else scale(first)
    for index, side in enumerate(words.split("/")):
        part = _product(side)
        if part is None:
            noun = words.lower().split()
            if not noun or not all(map(is_noun, noun)) or _NO_NOUN.search(words):
                raise NotMathError(f"the text {text[:40]!r}")
            return Symbol(words) if len(words) <= 2 and words.isascii() else Unit("?" + " ".join(noun))
        node = part if index == 0 else Operation("div", (node, part)) if node is not None else part
    assert node is not None
    return node


def _product(text: str) -> Node | None:
    node: Node | None = None
    power = 1
    for word in text.split():
        if word.lower() in _SQUARE:
            power = _SQUARE[word.lower()]
            continue
        match = _PIECE.fullmatch(word)
        if match is None or not is_unit(match[1], upright=True):
            return None
        unit: Node = Unit(match[1])
        exponent = power * int(match[2] or 1)
        if exponent != 1:
            unit = Operation("pow", (unit, Number(Fraction(exponent))))
        node = unit if node is None else Operation("mul", (node, unit))
        power = 1
    return node


def is_measure(node: Node) -> bool:
    """Whether a node is a number times one unit."""
    return (
        isinstance(node, Operation)
        and node.name == "mul"
        and len(node.args) == 2
        and isinstance(node.args[0], Number)
        and isinstance(node.args[1], Unit)
    )


def sum_of_measures(parts: Sequence[Node]) -> Node | None:
    """Return the quantity that is given in several units, or None when the parts are no such quantity.

    Every unit is smaller than the one before and less than one of it is left: `1 hr 15 min`, not `1 hr 90 min`.
    """
    if not all(map(is_measure, parts)):
        return None
    above: tuple[Fraction, dict[str, int]] | None = None
    for part in parts:
        assert isinstance(part, Operation)
        number, unit = part.args
        assert isinstance(number, Number)
        assert isinstance(unit, Unit)
        scale, powers = factor(unit.name)
        if not powers or (above is not None and (powers != above[1] or not 0 <= number.value * scale < above[0])):
            return None
        if above is not None and scale >= above[0]:
            return None
        above = (scale, powers)
    return Operation("add", tuple(parts))

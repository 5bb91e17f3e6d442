"""Three-valued equality of two expressions: True and False are shown, None is undecided.

The cheapest sufficient argument is used: the same tree, exact rationals, balls for constants, and for free
variables balls at random points.  A point where both sides have a value and the balls are disjoint refutes
equality; agreement at every point where both have one, under the evidence bound of `values.zero_test`, shows it.
Expressions that change their formula somewhere (`|x-100|`) are compared in every region; see `regions`.
Points are drawn from a hash of both texts, so a verdict can be repeated and no text can aim at the points.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Final, Literal, TypeAlias

from adjudge.verifiers.math.kinks import Regions, everywhere, is_kinked
from adjudge.verifiers.math.nodes import (
    ONE,
    Constant,
    Node,
    Number,
    Operation,
    Symbol,
    Unit,
    children,
    is_op,
    minus,
    rebuild,
    walk,
)
from adjudge.verifiers.math.units import MEANINGS, factor, is_unit
from adjudge.verifiers.math.values import (
    Ball,
    Evaluation,
    NoValueError,
    both,
    exact,
    free_names,
    imaginary,
    is_complex,
    zero_test,
)

Draw: TypeAlias = Callable[[], Fraction]

MAX_NODES: Final = 1500
MAX_NAMES: Final = 40
CONSTANTS_OF_INTEGRATION: Final = frozenset("C c K k C_0 c_0 C_1 c_1 C_2 c_2 C_3 c_3 C_4 c_4 k_1 k_2 K_1 K_2".split())
CAPITAL_UNITS: Final = frozenset("L J N W V Omega".split())
UNIT_LETTERS: Final = CAPITAL_UNITS | frozenset("m g s h l A".split())
VARIABLES: Final = frozenset("x y z t u v w r s theta".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What counts as equal beyond mathematics; see `MathVerifier` for the meaning of each option."""

    precision: int = 6
    rel_tol: float = 0.0
    abs_tol: float = 0.0
    units: Literal["optional", "required", "ignore"] = "optional"
    percent: Literal["strict", "lenient"] = "strict"
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found, and the tier that found it."""

    equal: bool | None
    tier: str


def scalar_verdict(gold: Node, answer: Node, rules: Rules, seed: str) -> Verdict:
    """Compare two expressions.

    `seed` is the text from which the random points are drawn.
    """
    if rules.percent == "lenient" and _is_percent(gold) != _is_percent(answer):
        strict = replace(rules, percent="strict")
        verdict = scalar_verdict(gold, answer, strict, seed)
        if verdict.equal is True:
            return verdict
        sides = [side.args[0] if isinstance(side, Operation) and _is_percent(side) else side for side in (gold, answer)]
        return scalar_verdict(sides[0], sides[1], strict, seed)
    gold, answer = _align_units(gold, answer, rules)
    if gold == answer:
        return Verdict(True, "structure")
    gold_value, answer_value = exact(gold), exact(answer)
    if gold_value is not None and answer_value is not None:
        equal = gold_value == answer_value or _close(gold, gold_value, answer, answer_value, rules)
        return Verdict(equal, "exact")
    infinite = _infinite_verdict(gold, answer)
    if infinite is not None:
        return Verdict(infinite, "structure")
    if sum(1 for _ in walk(gold)) + sum(1 for _ in walk(answer)) > MAX_NODES:
        return Verdict(None, "size")
    gold, answer = _rename_constants(gold, answer)
    ours, theirs = free_names(gold), free_names(answer)
    if _measures(ours) != _measures(theirs) and _measures(ours) and _measures(theirs):
        return Verdict(False, "units")  # also of 0 marbles and 0 apples
    names = sorted(ours | theirs)
    if len(names) > MAX_NAMES:
        return Verdict(None, "size")
    if any(isinstance(item, Constant) and item.name not in ("pi", "e", "i") for item in (*walk(gold), *walk(answer))):
        return Verdict(None, "structure")
    if not names:
        return Verdict(_closed_verdict(gold, answer, rules), "ball")
    agree = _open_verdict(gold, answer, names, seed)
    letters = {name for name in names if ":" not in name}
    if agree is False and rules.rel_tol and (not letters or (letters <= UNIT_LETTERS and _written_units(gold))):
        agree = _quantities_within(gold, answer, names, rules.rel_tol)
    if agree and not everywhere(gold, answer, {name for name in ours ^ theirs if ":" not in name}):
        agree = None
    return Verdict(agree, "points")


def _infinite(node: Node) -> int:
    if isinstance(node, Constant) and node.name == "oo":
        return 1
    if is_op(node, "neg"):
        return -_infinite(node.args[0])
    return 0


def _infinite_verdict(gold: Node, answer: Node) -> bool | None:
    left, right = _infinite(gold), _infinite(answer)
    if not (left or right):
        return None
    return left == right


# -- tolerances -------------------------------------------------------------------------------------------------


def decimal(node: Node) -> tuple[Fraction, int] | None:
    """Return half a unit in the last place of a decimal literal, and how many digits it shows."""
    if isinstance(node, Number):
        return (Fraction(1, 2 * 10**node.places), node.digits) if node.places >= 0 else None
    if is_op(node, "neg"):
        return decimal(node.args[0])
    if is_op(node, "mul") and len(node.args) == 2:
        head, scale = decimal(node.args[0]), node.args[1]
        if head and is_op(scale, "pow") and scale.args[0] == Number(Fraction(10)):
            factor = exact(scale)
            return (head[0] * factor, head[1]) if factor is not None else None
    return None


def numbers_equal(gold: Number, answer: Number, rules: Rules) -> bool:
    """Compare two numerals: exactly, or within the tolerances that the rules grant."""
    if gold.value == answer.value:
        return True
    if gold.places < 0 and answer.places < 0 and not rules.rel_tol and not rules.abs_tol:
        return False  # neither is a decimal, which could stand for another value
    return _close(gold, gold.value, answer, answer.value, rules)


def _close(gold: Node, gold_value: Fraction, answer: Node, answer_value: Fraction, rules: Rules) -> bool:
    slack = _slack(gold, answer, rules, whole=gold_value.denominator == 1)
    allowed = max(slack, Fraction(rules.abs_tol), Fraction(rules.rel_tol) * abs(gold_value))
    return bool(allowed) and abs(gold_value - answer_value) <= allowed


def _slack(gold: Node, answer: Node, rules: Rules, *, whole: bool) -> Fraction:
    """Return the rounding error that a decimal with enough digits may stand for, or 0.

    A decimal stands for what cannot be written out.  A whole number can, so that an answer's `1.26765e30` is no
    2^100; a gold `1.26765e30` has that precision and no more.

    `whole` says that the gold is a whole number, however it is written.
    """
    sides = [decimal(gold)] if whole else [decimal(gold), decimal(answer)]
    return max((half for half, digits in filter(None, sides) if digits >= rules.precision), default=Fraction(0))


def _closed_verdict(gold: Node, answer: Node, rules: Rules) -> bool | None:
    equal: bool | None = None
    for real in (True, False):
        try:
            equal = zero_test(both(gold, answer), {}, real=real)
        except NoValueError:
            continue
        break
    if equal is False and _within(gold, answer, rules):
        return True
    return equal


def _within(gold: Node, answer: Node, rules: Rules) -> bool:
    slack = _slack(gold, answer, rules, whole=False)
    if not slack and not rules.rel_tol and not rules.abs_tol:
        return False
    if slack and is_whole(gold):
        slack = _slack(gold, answer, rules, whole=True)
    bound = Number(max(slack, Fraction(rules.abs_tol)))
    gap = Operation("abs", (minus(gold, answer),))
    if rules.rel_tol:
        relative = Operation("mul", (Number(Fraction(rules.rel_tol)), Operation("abs", (gold,))))
        bound_node: Node = Operation("max", (bound, relative))
    else:
        bound_node = bound
    return less_at(gap, bound_node, {}) is True


def _quantities_within(gold: Node, answer: Node, names: Sequence[str], rel_tol: float) -> bool:
    """Whether two quantities in units differ by no more than a share of the gold, whatever the units are worth."""
    gap = Operation("abs", (minus(gold, answer),))
    bound = Operation("mul", (Number(Fraction(rel_tol)), Operation("abs", (gold,))))
    points = ({name: Fraction(at + 2) ** power for at, name in enumerate(names)} for power in (0, 1))
    return all(less_at(gap, bound, point) is True for point in points)


def is_whole(node: Node) -> bool:
    """Whether a closed expression that is not a fraction on its face has a whole number as its value (`log_2 8`)."""
    value = exact(node)
    if value is not None:
        return value.denominator == 1
    nearest = Operation("floor", (Operation("add", (node, Number(Fraction(1, 2)))),))
    try:
        return zero_test(both(node, nearest), {}, real=True) is True
    except NoValueError:
        return False


def less_at(left: Node, right: Node, point: dict[str, Fraction]) -> bool | None:
    """Return whether left < right at a point, by balls of 192 bits; None when they cannot be told apart."""
    verdicts: list[bool] = []

    def compare(run: Evaluation) -> tuple[Ball, Ball]:
        below, above = run.value(left), run.value(right)
        verdicts.append(bool(below < above))
        return below, above

    try:
        return verdicts[-1] if zero_test(compare, point, real=True) is False else None
    except NoValueError:
        return None


# -- units ------------------------------------------------------------------------------------------------------


def strip_units(node: Node) -> Node:
    """Return the expression without the units that multiply it; a unit without a number (`kg`) is no 1, and stays."""
    alone = node.args[0] if is_op(node, "neg") else node
    return node if only_units(alone) else _stripped(node)


def _stripped(node: Node) -> Node:
    if not isinstance(node, Operation):
        return node
    if node.name == "degree":
        return node.args[0]
    if node.name == "add":
        units = [frozenset(item for item in walk(part) if isinstance(item, Unit)) for part in node.args]
        shared = units[-1] and (not any(units[:-1]) or len(set(units)) == 1)  # `x+5 dollars`: that of the whole sum
        return rebuild(node, tuple(map(_stripped, node.args))) if shared else node
    if node.name in ("mul", "div", "neg"):
        bare = tuple(ONE if only_units(arg) else _stripped(arg) for arg in node.args)
        if all(new is old for new, old in zip(bare, node.args, strict=True)):
            return node
        if node.name == "mul":
            kept = [new for new, old in zip(bare, node.args, strict=True) if not only_units(old)]
            return kept[0] if len(kept) == 1 else Operation("mul", tuple(kept)) if kept else ONE
        return rebuild(node, bare) if not (node.name == "div" and only_units(node.args[1])) else bare[0]
    return node


def only_units(node: Node) -> bool:
    """Return whether an expression is made of units alone, such as m/s^2."""
    if isinstance(node, Unit):
        return True
    if is_op(node, "mul", "div"):
        return all(only_units(arg) for arg in node.args)
    return is_op(node, "pow") and only_units(node.args[0])


def _align_units(gold: Node, answer: Node, rules: Rules) -> tuple[Node, Node]:
    gold, answer = _meant(gold, answer), _meant(answer, gold)
    if rules.units == "required":
        return gold, answer
    if rules.units == "ignore":
        return strip_units(gold), strip_units(answer)
    if not _letters(gold) and (letters := _letters(answer)) and letters <= UNIT_LETTERS and _written_units(answer):
        answer = _as_units(answer)  # `5 m/s` for 5: letters that the question does not have
    bare_gold, bare_answer = strip_units(gold), strip_units(answer)
    if (bare_gold is gold) == (bare_answer is answer) or _angle_against_value(gold, answer):
        return gold, answer
    plain, other = (gold, answer) if bare_gold is gold else (answer, gold)
    measured = _letters_as_units(plain) if not _letters(other) else plain
    if any(isinstance(item, Unit) for item in walk(measured)):  # also in a sum: `1 hr 15 min` beside `75 min`
        return (measured, answer) if plain is gold else (gold, measured)
    return bare_gold, bare_answer


def _written_units(node: Node) -> bool:
    """Whether letters behind a number can only be units: `5 m/s`, `5 N`, but neither `3 m 2` nor `3 m`."""
    above, below = node.args if is_op(node, "div") else (node, None)
    if not isinstance(above, Operation) or above.name != "mul":
        return False
    bare = [not _letters(arg) for arg in above.args]
    known = _letters(below) if below is not None else _letters(above) & CAPITAL_UNITS
    return bool(known) and bare[0] and bare == sorted(bare, reverse=True)


def _letters_as_units(node: Node) -> Node:
    """Return `5000 m` with m as the metre, for the side of something in units: alone, the letter is a variable."""
    letters = _letters(node)
    return _as_units(node) if letters and all(is_unit(name, upright=True) for name in letters) else node


def _as_units(node: Node) -> Node:
    if isinstance(node, Symbol):
        return Unit(node.name)
    return rebuild(node, tuple(map(_as_units, children(node))))


def _meant(node: Node, other: Node) -> Node:
    """Return a node with the sign ¥, and pounds, as the unit that stands on the other side."""
    units = {item.name for item in walk(node) if isinstance(item, Unit)} & MEANINGS.keys()
    bases = {base for item in walk(other) if units and isinstance(item, Unit) for base in factor(item.name)[1]}
    for name in units:
        for base in bases & MEANINGS[name].keys():
            node = _renamed(node, name, MEANINGS[name][base])
    return node


def _renamed(node: Node, old: str, new: str) -> Node:
    if isinstance(node, Unit):
        return Unit(new) if node.name == old else node
    return rebuild(node, tuple(_renamed(child, old, new) for child in children(node)))


def _angle_against_value(gold: Node, answer: Node) -> bool:
    """Whether one side is in degrees and the other names pi, so that both are angles in full."""
    sides = (gold, answer)
    degrees = any(is_op(item, "degree") for side in sides for item in walk(side))
    return degrees and any(item == Constant("pi") for side in sides for item in walk(side))


def _is_percent(node: Node) -> bool:
    return is_op(node, "percent")


def _measures(names: set[str]) -> set[str]:
    return {name for name in names if name.startswith("unit:")}


# -- free variables -----------------------------------------------------------------------------------------------


def _rename_constants(gold: Node, answer: Node) -> tuple[Node, Node]:
    """Give the answer's constant of integration the gold's name when only the letter differs.

    A constant of integration is a letter of `CONSTANTS_OF_INTEGRATION` that stands as a term of its own in a sum
    with a usual variable, or a numbered one (`c_1`); elsewhere a letter is a quantity, and its name matters.
    """
    ours, theirs = _letters(gold), _letters(answer)
    missing, extra = sorted(ours - theirs), sorted(theirs - ours)
    if not missing or len(missing) != len(extra) or not {*missing, *extra} <= CONSTANTS_OF_INTEGRATION:
        return gold, answer
    numbered = all(one.casefold() == other.casefold() and "_" in one for one, other in zip(missing, extra, strict=True))
    added = (
        len(missing) == 1
        and "_" not in missing[0] + extra[0]
        and _is_added(gold, missing[0])
        and _is_added(answer, extra[0])
        and ours & VARIABLES
    )
    if not (numbered or added):
        return gold, answer
    return gold, replace_symbols(answer, dict(zip(extra, missing, strict=True)))


def _letters(node: Node) -> set[str]:
    return {item.name for item in walk(node) if isinstance(item, Symbol)}


def _is_added(node: Node, name: str) -> bool:
    """Whether a symbol is one term of a sum and occurs nowhere else in it."""
    terms = node.args if is_op(node, "add") else ()
    return Symbol(name) in terms and sum(item == Symbol(name) for item in walk(node)) == 1


def replace_symbols(node: Node, names: dict[str, str]) -> Node:
    """Return the tree with symbols renamed."""
    if isinstance(node, Symbol):
        return Symbol(names.get(node.name, node.name))
    if isinstance(node, Operation):
        return Operation(node.name, tuple(replace_symbols(arg, names) for arg in node.args))
    return node


MAX_SIGN_PATTERNS: Final = 15  # all patterns of up to four variables; beyond that, so many drawn ones


def points(names: list[str], seed: str) -> Iterator[dict[str, Fraction]]:
    """Yield points: positive values, every pattern of signs twice (large and small values), and positive integers.

    Identities that hold only for some signs, such as sqrt(x^2 y) = x sqrt(y), fail at one of the patterns.
    """
    digest = hashlib.blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    source = random.Random(int.from_bytes(digest, "big"))
    large: Draw = lambda: Fraction(source.randrange(100, 40_000), 8192)  # noqa: E731 three one-line draws read best so
    small: Draw = lambda: Fraction(source.randrange(50, 8190), 8192)  # noqa: E731
    whole: Draw = lambda: Fraction(source.randrange(1, 13))  # noqa: E731
    for draw in (large, large, small, small):
        yield {name: draw() for name in names}
    free = [name for name in names if not name.startswith("unit:")]
    for pattern in _sign_patterns(len(free), source):
        signs = dict(zip(free, pattern, strict=True))
        for draw in (large, small, small)[: 3 if len(free) == 1 else 2]:
            yield {name: draw() * signs.get(name, 1) for name in names}
    for _ in range(3):
        yield {name: whole() for name in names}


def _sign_patterns(count: int, source: random.Random) -> list[tuple[int, ...]]:
    if count <= 4:
        return [pattern for pattern in product((1, -1), repeat=count) if -1 in pattern]
    return [tuple(source.choice((1, -1)) for _ in range(count)) for _ in range(MAX_SIGN_PATTERNS)]


MIN_AGREEMENTS: Final = 4
REGION_PRECISION: Final = 6000  # bits; a point of a region that needs more is passed over
COMPLEX_LETTERS: Final = frozenset({"z", "w"})  # where complex numbers take part; every other letter is real


def _open_verdict(gold: Node, answer: Node, names: list[str], seed: str) -> bool | None:
    real = not (is_complex(gold) or is_complex(answer))
    if not real:
        names = [*names, *(imaginary(name) for name in names if name.partition("_")[0] in COMPLEX_LETTERS)]
    bars = any(is_op(item, "abs") for side in (gold, answer) for item in walk(side))
    agreements, undecided, lopsided = 0, False, False
    sides = both(gold, answer)
    for point in points(names, seed):
        try:
            equal = zero_test(sides, point, real=real)
        except NoValueError:
            lopsided = lopsided or (bars and _one_sided(gold, answer, point, real=real))
            continue
        if equal is False:
            return False
        undecided = undecided or equal is None
        agreements += equal is True
    if undecided:
        return None
    if agreements < MIN_AGREEMENTS or is_kinked(gold) or is_kinked(answer):
        regions = Regions((gold, answer), names, seed)
        for point in regions.points():
            try:
                equal = zero_test(sides, point, real=real, highest=REGION_PRECISION)
            except NoValueError:
                lopsided = lopsided or (bars and _one_sided(gold, answer, point, real=real))
                continue
            if equal is False:
                return False
            agreements += equal is True
        if not regions.settled():
            return True if _ordered(gold) == _ordered(answer) else None
    # ln|x| and ln x agree where both exist; whoever wrote the bars meant the difference
    return None if lopsided or agreements < MIN_AGREEMENTS else True


def _ordered(node: Node) -> Node:
    """Return the expression with the members of sums, products, minima and maxima in one order."""
    parts = tuple(map(_ordered, children(node)))
    if is_op(node, "add", "mul", "min", "max"):
        parts = tuple(sorted(parts, key=repr))
    return rebuild(node, parts)


def _one_sided(gold: Node, answer: Node, point: dict[str, Fraction], *, real: bool) -> bool:
    return _defined(gold, point, real=real) != _defined(answer, point, real=real)


def _defined(node: Node, point: dict[str, Fraction], *, real: bool) -> bool:
    def twice(run: Evaluation) -> tuple[Ball, Ball]:
        value = run.value(node)
        return value, value + 1

    try:
        zero_test(twice, point, real=real, highest=0)
    except NoValueError:
        return False
    return True

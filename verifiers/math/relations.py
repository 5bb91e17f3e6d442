"""Equality where equations and inequalities take part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias, TypeVar

from adjudge.verifiers.math.intervals import MIRROR
from adjudge.verifiers.math.kinks import Regions, is_kinked, is_linear
from adjudge.verifiers.math.nodes import (
    ZERO,
    Collection,
    Constant,
    Matrix,
    Node,
    Number,
    Operation,
    Relation,
    Symbol,
    children,
    is_expression,
    is_op,
    minus,
    rebuild,
    walk,
)
from adjudge.verifiers.math.scalars import (
    MIN_AGREEMENTS,
    REGION_PRECISION,
    Rules,
    decimal,
    less_at,
    only_units,
    points,
    replace_symbols,
)
from adjudge.verifiers.math.values import (
    Ball,
    Evaluation,
    NoValueError,
    both,
    exact,
    free_names,
    is_complex,
    zero_test,
)

Equal: TypeAlias = Callable[[Node, Node], bool | None]
Solution: TypeAlias = dict[Node, Node]  # name -> value
_T = TypeVar("_T")


def is_label(node: Node, value: Node) -> bool:
    r"""Whether the left side of an equation only names the value on its right.

    Names are: a variable, `f(x)`, a tuple of variables before a tuple, a set made of others (`A \cap B`); and, before
    a value without variables, quantities in capitals (`AB`, `|AB|`, `V_1:V_2`, `NO/BO`), an angle, an expression
    that is only text here, and, before a matrix, a power of one in capitals (`A^{-1}`, `A^T`).
    """
    if _combines(node, value):
        return True
    if isinstance(node, Symbol) or (
        isinstance(node, Operation) and (node.name in ("call", "opaque") or _derives(node))
    ):
        return True
    if isinstance(node, Collection):
        return (
            node.kind == "bracket"
            and isinstance(value, Collection | Matrix)
            and all(isinstance(i, Symbol) for i in node.items)
        )
    if not isinstance(node, Operation) or free_names(value):
        return False
    if isinstance(value, Matrix) and node.name == "pow":
        return isinstance(node.args[0], Symbol) and node.args[0].name[:1].isupper()
    return all(
        (isinstance(item, Symbol) and item.name[:1].isupper()) or (isinstance(item, Operation) and item.name in _NAMING)
        for item in walk(node)
    )


def _combines(node: Node, value: Node) -> bool:
    r"""Whether an expression combines sets that only have names: `A \cap B`, `A' \cup B`, `A^c` before a set."""
    if is_op(node, "cap", "setminus") or (isinstance(node, Collection) and node.kind == "union"):
        return all(isinstance(part, Symbol) or _combines(part, value) for part in children(node))
    return (
        is_op(node, "pow")
        and isinstance(node.args[0], Symbol)
        and node.args[1] in (Symbol("c"), Symbol("C"), Symbol("complement"))
        and not (is_expression(value) and exact(value) is not None)
    )


def _derives(node: Operation) -> bool:
    """Whether an expression is a derivative in Leibniz's notation, `dy/dx`."""
    heads = [arg.args[0] if is_op(arg, "mul") else arg for arg in node.args]
    return node.name == "div" and heads == [Symbol("d"), Symbol("d")] and node.args[1] != Symbol("d")


def letters_of(node: Node) -> set[str]:
    """Return the free names of an expression that are no units."""
    return {name for name in free_names(node) if not name.startswith("unit:")}


def states_value(node: Node, value: Node) -> bool:
    """Whether an equation only says what a quantity is worth: `m+n = 25`, `sin t = 1/2`, `|r-s| = 16`.

    What is asked for is then its right side.  An equation that is still to be solved says something else: one of the
    first degree in one letter (`2x = 10`), or one with numbers among its terms (`x^2-5x+6 = 0`, `a+3z = 0`).
    """
    letters = letters_of(node)
    if not is_expression(node) or free_names(value) or not letters or (len(letters) == 1 and is_linear(node)):
        return False
    if not (is_op(node, "add")):
        return True
    bare = exact(value) != 0 or not any(isinstance(item, Number) for item in walk(node))
    return bare and all(map(free_names, node.args))


_NAMING = frozenset({"mul", "div", "ratio", "abs", "call"})


def _mentions(node: Node, label: Node) -> bool:
    return any(item == label for item in walk(node))


def relation_verdict(gold: Node, answer: Node, equal: Equal, rules: Rules, seed: str) -> bool | None:
    """Compare two answers of which at least one is a relation; None when this module cannot tell."""
    if not isinstance(gold, Relation) or not isinstance(answer, Relation):
        return _against_value(gold, answer, equal, rules)
    left, right = _label_and_values(gold, equal), _label_and_values(answer, equal)
    if left is not None and right is not None:
        right = _same_argument(left[0], right)
    if left is not None and right is not None:
        if left[0] == right[0] or _same_role(left, right):
            verdict = _any_equal(left[1], right[1], equal)
            if verdict or left[0] == right[0]:
                return verdict
        elif len(left[1]) == len(right[1]) == 1 and not free_names(left[1][0]) and not free_names(right[1][0]):
            return False
    return _as_statements(gold, answer, equal, seed)


def _same_argument(name: Node, other: tuple[Node, list[Node]]) -> tuple[Node, list[Node]]:
    """Return `f(t) = t+1` as `f(x) = x+1` beside `f(x)`: the letter of an argument is bound."""
    label, values = other
    if not (isinstance(name, Operation) and isinstance(label, Operation) and name.name == label.name == "call"):
        return other
    (function, argument), (same, letter) = name.args, label.args
    if function != same or not (isinstance(argument, Symbol) and isinstance(letter, Symbol)):
        return other
    if any(_mentions(value, argument) for value in values) or not any(_mentions(value, letter) for value in values):
        return other
    return name, [replace_symbols(value, {letter.name: argument.name}) for value in values]


def _same_role(left: tuple[Node, list[Node]], right: tuple[Node, list[Node]]) -> bool:
    """Whether both define the same function: `y(x) = 2x`, `y = 2x` and `f(x) = 2x`, but not `f'(x) = 2x`."""
    return any(
        is_op(one[0], "call")
        and (
            other[0] == one[0].args[0]
            or (other[0] == Symbol("y") and str(getattr(one[0].args[0], "name", "'")).isalpha())
        )
        for one, other in ((left, right), (right, left))
    )


def _any_equal(gold: list[Node], answer: list[Node], equal: Equal) -> bool | None:
    verdicts = [equal(one, other) for one in gold for other in answer[:1]]
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _label_and_values(node: Relation, equal: Equal) -> tuple[Node, list[Node]] | None:
    r"""Return the name and the values of `name = a = b ~ c`; None when it is no such chain or contradicts itself.

    A formula between the name and its value, as in `A = \\pi r^2 = 9\\pi`, is a name, too.
    """
    if node.operators[0] not in ("=", "~", "in", "->") or not is_label(node.sides[0], node.sides[-1]):
        return None
    if any(operator not in ("=", "~") for operator in node.operators[1:]):
        return None
    values = list(node.sides[1:])
    if any(_mentions(value, node.sides[0]) for value in values):
        return None
    while len(values) > 1 and letters_of(values[0]) and not letters_of(values[-1]):
        del values[0]
    return (
        (node.sides[0], values) if _consistent(values, node.operators[len(node.sides) - len(values) :], equal) else None
    )


def _consistent(values: list[Node], operators: tuple[str, ...], equal: Equal) -> bool:
    return all(
        _near(left, right) if operator == "~" else equal(left, right) is True
        for left, right, operator in zip(values, values[1:], operators, strict=False)
    )


def _near(left: Node, right: Node) -> bool:
    """Whether `left` may be said to be about `right`: within 5 %, and rounded or cut off where `right` says so.

    A unit may stand on one side only; two must be the same.
    """
    left, unit = _measured(left)
    right, other = _measured(right)
    if unit and other and unit != other:
        return False
    if free_names(left) or free_names(right):
        return False
    gap = Operation("abs", (minus(left, right),))
    twentieth: Node = Operation("mul", (Number(Fraction(1, 20)), Operation("abs", (left,))))
    shown = decimal(right)
    last = shown[0] * 2 if shown else Fraction(1) if isinstance(right, Number) else None
    bound = twentieth if last is None else Operation("min", (twentieth, Number(last)))
    return less_at(gap, bound, {}) is True


def _measured(node: Node) -> tuple[Node, list[Node]]:
    """Return a value without its unit, and the unit."""
    if is_op(node, "div") and only_units(node.args[1]):
        value, unit = _measured(node.args[0])
        return value, [*unit, Operation("pow", (node.args[1], Number(Fraction(-1))))]
    units = [arg for arg in node.args if only_units(arg)] if is_op(node, "mul") else []
    rest = [arg for arg in children(node) if arg not in units]
    if not units or not rest:
        return node, []
    return rest[0] if len(rest) == 1 else rebuild(node, tuple(rest)), units


def _against_value(gold: Node, answer: Node, equal: Equal, rules: Rules) -> bool | None:
    """Compare a relation with an answer that is none."""
    relation, value = (gold, answer) if isinstance(gold, Relation) else (answer, gold)
    assert isinstance(relation, Relation)
    named = _label_and_values(relation, equal)
    if named is None:
        if set(relation.operators) <= {"=", "~"} and all(is_expression(side) for side in relation.sides):
            closed = not any(map(letters_of, relation.sides))
            if closed and _consistent(list(relation.sides), relation.operators, equal):
                values = list(relation.sides)  # a computation such as `2+3=5`
            elif closed:
                return False
            elif relation is answer and _states(relation, equal):
                values = list(relation.sides[1:])
            elif relation is answer and _consistent(list(relation.sides), relation.operators, equal):
                values = list(relation.sides)  # an identity such as `x^2-9 = (x-3)(x+3)`
            else:
                return False if not is_label(relation.sides[0], relation.sides[-1]) else None
        else:
            return None
    else:
        values = named[1]
    if relation.operators[0] == "in" and isinstance(value, Collection) and value.kind == "list":
        return False  # the members of `x in (1,2)` are an interval, and `1, 2` are two numbers
    if relation is gold:
        return _any_equal(values, [value], equal)
    return equal(value, values[0]) if "~" in relation.operators else equal(value, values[-1])


def _states(node: Relation, equal: Equal) -> bool:
    """Whether a chain of equations gives a quantity one value."""
    values = list(node.sides[1:])
    return (
        node.operators[0] == "="
        and states_value(node.sides[0], values[-1])
        and _consistent(values, node.operators[1:], equal)
    )


def unmasked(node: Node) -> Node:
    """Return an answer in which `e = 1/2` or `i = 5` names a value: the letter is not the constant there."""
    if isinstance(node, Collection) and node.kind in ("list", "set"):
        return rebuild(node, tuple(map(unmasked, node.items)))
    return _unmasked(node) if isinstance(node, Relation) else node


def _unmasked(node: Relation) -> Relation:
    for letter in (Constant("e"), Constant("i")):
        others = [side for side in node.sides if side != letter]
        if not 0 < len(others) < len(node.sides) or any(_mentions(side, letter) for side in others):
            continue
        if letter.name == "e" and any(_near(letter, side) for side in others):
            continue  # Euler's number, approximately
        sides = tuple(Symbol(letter.name) if side == letter else side for side in node.sides)
        return Relation(node.operators, sides)
    return node


def residue(node: Node, other: Node) -> Node:
    r"""Return `5 \pmod 6`, or `5^7 \equiv 5 \pmod 6` where that is true, as the number 5 beside a number."""
    if not isinstance(other, Number):
        return node
    left = node.sides[0] if isinstance(node, Relation) and node.operators == ("===",) else None
    side = node.sides[1] if left is not None and isinstance(node, Relation) else node
    if not is_op(side, "pmod"):
        return node
    value, modulus = side.args
    if not (isinstance(value, Number) and isinstance(modulus, Number) and 0 <= value.value < modulus.value):
        return node
    gap = None if left is None else exact(minus(left, value))
    return value if gap is None or (gap / modulus.value).denominator == 1 else node


# -- solutions ------------------------------------------------------------------------------------------------------


def solutions(node: Node, equal: Equal) -> list[Solution] | None:
    """Return what an answer says its names are worth; None when it does not name every value.

    `x=1, y=2` and `(x,y)=(1,2)` are one solution, `x=1, x=2` and `x=1, 2` are two, and so are `p=5, q=2; p=7, q=2`
    and `x=1, y=2, x=3, y=4`, where a name that comes again starts the next.
    """
    if isinstance(node, Relation):
        return _assigned(node, equal)
    items = _statements(node)
    grouped = any(isinstance(item, Collection) and item.kind == "list" for item in items)
    assigned: list[Solution] = []
    label: Node | None = None
    for item in items:
        if isinstance(item, Relation):
            label = item.sides[0]
        elif not grouped and label is not None:
            item = Relation(("=",), (label, item))
        parts = solutions(item, equal)
        if parts is None or (len(parts) > 1 and len(items) > 1):
            return None
        for part in parts:
            if assigned and not grouped and not part.keys() & assigned[-1].keys():
                assigned[-1] = assigned[-1] | part
            else:
                assigned.append(part)
    return assigned or None


def _statements(node: Node) -> tuple[Node, ...]:
    """Return the members of a list, a set or a system, or of a bracket that holds relations only; else none."""
    if isinstance(node, Matrix):
        return tuple(row[0] for row in node.rows) if node.cases and all(len(row) == 1 for row in node.rows) else ()
    if not isinstance(node, Collection) or not (node.kind == "set" or is_tuple(node)):
        return ()
    return node.items if node.kind != "bracket" or all(isinstance(item, Relation) for item in node.items) else ()


def _assigned(node: Relation, equal: Equal) -> list[Solution] | None:
    """Return the solutions that one relation names: `x=5`, `x=y=5`, `(x,y)=(1,2)`, `x in {1,2}`."""
    *names, value = node.sides
    if len(names) > 1 and set(node.operators) == {"="} and all(isinstance(name, Symbol) for name in names):
        return [dict.fromkeys(names, value)] if not free_names(value) else None
    named = _label_and_values(node, equal)
    if named is None or node.operators[0] == "->":
        return None
    label, values = named
    value = values[0] if "~" in node.operators else values[-1]
    several = isinstance(value, Collection) and value.kind == "set"
    if node.operators[0] == "in" and not several:
        return None
    assigned: list[Solution] = []
    for item in value.items if isinstance(value, Collection) and several else (value,):
        if not (isinstance(label, Collection) and label.kind == "bracket"):
            assigned.append({label: item})
            continue
        entries = entries_of(item)
        if entries is None or len(entries) != len(label.items) or len(set(label.items)) != len(entries):
            return None
        assigned.append(dict(zip(label.items, entries, strict=True)))
    return assigned


def entries_of(node: Node) -> list[Node] | None:
    """Return the members, in order, of a tuple, of a bare list that is not a choice, or of a single row or column."""
    if isinstance(node, Collection):
        interval = node.brackets == "[]" and len(node.items) == 2
        return list(node.items) if is_tuple(node) and node.brackets != "or" and not interval else None
    if isinstance(node, Matrix) and (len(node.rows) == 1 or all(len(row) == 1 for row in node.rows)):
        return [entry for row in node.rows for entry in row]
    return None


def is_tuple(node: Collection) -> bool:
    """Whether a collection can be read as members in order: a bare list, or one in like brackets."""
    return node.kind == "list" or (node.kind == "bracket" and node.brackets in ("()", "[]", "<>"))


# -- statements -----------------------------------------------------------------------------------------------------


def _as_statements(gold: Relation, answer: Relation, equal: Equal, seed: str) -> bool | None:
    """Compare relations as statements about their variables: sides, or multiples of one another."""
    same_form = gold.operators == answer.operators and len(gold.sides) == len(answer.sides)
    if same_form and all(equal(left, right) for left, right in zip(gold.sides, answer.sides, strict=True)):
        return True
    pairs, others = _pairs(gold), _pairs(answer)
    if pairs is None or others is None or len(pairs) != len(others):
        return None
    return partnered(pairs, others, lambda one, other: _same_statement(one, other, seed))


def partnered(golds: Sequence[_T], answers: Sequence[_T], same: Callable[[_T, _T], bool | None]) -> bool | None:
    """Compare as multisets of one size: every item finds its own partner."""
    free = list(answers)
    doubtful = False
    for item in golds:
        verdicts = [same(item, other) for other in free]
        if True in verdicts:
            del free[verdicts.index(True)]
        elif None in verdicts:
            doubtful = True
        else:
            return False
    return None if doubtful else True


def _pairs(node: Relation) -> list[tuple[Node, str, Node]] | None:
    """Return the chain as single comparisons of expressions, with "greater" turned into "less"."""
    pairs: list[tuple[Node, str, Node]] = []
    for left, operator, right in zip(node.sides, node.operators, node.sides[1:], strict=False):
        if operator not in MIRROR or not (is_expression(left) and is_expression(right)):
            return None
        pairs.append((right, MIRROR[operator], left) if operator in (">", ">=") else (left, operator, right))
    return pairs


def _same_statement(gold: tuple[Node, str, Node], answer: tuple[Node, str, Node], seed: str) -> bool | None:
    """Compare `a op b` with `c op d`: the same when (a-b)/(c-d) is one constant, positive where order counts."""
    if gold[1] != answer[1]:
        return False
    left, right = minus(gold[0], gold[2]), minus(answer[0], answer[2])
    names = sorted(free_names(left) | free_names(right))
    if not names or free_names(left) != free_names(right):
        return None if not names else False
    if any(isinstance(item, Constant) and item.name not in ("pi", "e", "i") for item in (*walk(left), *walk(right))):
        return None
    real = not (is_complex(left) or is_complex(right))
    anchor: dict[str, Fraction] | None = None
    agreements = 0
    for point in points(names, seed):
        if anchor is None:
            if _usable(left, right, point, real=real):
                anchor = point
            continue
        try:
            equal = zero_test(_cross(left, right, anchor), point, real=real)
        except NoValueError:
            continue
        if equal is False:
            return None if gold[1] == "=" else False
        if equal is None:
            return None
        agreements += 1
    if anchor is None or agreements < MIN_AGREEMENTS or not _everywhere(left, right, anchor, seed, real=real):
        return None
    if gold[1] in ("=", "!="):
        return True
    return less_at(ZERO, Operation("mul", (left, right)), anchor)


def _everywhere(left: Node, right: Node, anchor: dict[str, Fraction], seed: str, *, real: bool) -> bool:
    """Whether nothing speaks against a constant ratio beyond the kinks of either side."""
    if not (is_kinked(left) or is_kinked(right)):
        return True
    regions = Regions((left, right), list(anchor), seed)
    for point in regions.points():
        try:
            if zero_test(_cross(left, right, anchor), point, real=real, highest=REGION_PRECISION) is False:
                return False
        except NoValueError:
            continue
    return regions.settled()


def _usable(left: Node, right: Node, point: dict[str, Fraction], *, real: bool) -> bool:
    try:
        return all(zero_test(both(side, ZERO), point, real=real) is False for side in (left, right))
    except NoValueError:
        return False


def _cross(left: Node, right: Node, anchor: dict[str, Fraction]) -> Callable[[Evaluation], tuple[Ball, Ball]]:
    """Return left(p)*right(anchor) and left(anchor)*right(p), which are equal when the ratio is constant."""

    def crossed(run: Evaluation) -> tuple[Ball, Ball]:
        there = Evaluation(anchor, real=run.real)
        products = run.value(left) * there.value(right), there.value(left) * run.value(right)
        run.bits += there.bits
        return products

    return crossed

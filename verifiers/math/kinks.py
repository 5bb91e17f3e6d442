r"""Points in every region of an expression that is analytic only piece by piece, such as `|x-100|` or `\max(x,-100)`.

Two analytic expressions that agree on a stretch agree as far as they go, so that a few random points settle them.
Absolute values, rounding, maxima and roots are analytic only between their kinks, and every stretch wants points of
its own.  Kinks are looked for along one variable at a time, the others fixed: exactly where what changes sign there
is rational in the variable (all real roots of a polynomial), else by sign changes on a grid of powers of two.

Not covered: kinks of several variables that no line along one of them meets, and kinks that lie closer together
than the grid where they are not roots of polynomials; `Regions.settled` says whether there can be such.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, islice, pairwise
from typing import Any, Final, TypeAlias

import flint

from adjudge.verifiers.math.nodes import Constant, Node, Number, Operation, Symbol, is_op, minus, walk
from adjudge.verifiers.math.values import PRECISION, Ball, Evaluation, NoValueError, exact, free_names

Point: TypeAlias = dict[str, Fraction]
Quotient: TypeAlias = tuple[Any, Any]  # two flint.fmpq_poly

MAX_SLICES: Final = 6  # variables along which kinks are looked for
MAX_KINKS: Final = 24  # expressions whose zeros are looked for along one variable
MAX_BRANCHES: Final = 16  # of one of them, when it has absolute values inside
MAX_DEGREE: Final = 40
MAX_BITS: Final = 2000  # of a coefficient
MAX_SIZE: Final = 6000  # degree times bits: the roots of (x+10^500)^40 = 1 would take minutes to tell apart
MAX_CUTS: Final = 64  # zeros that are kept along one variable
MAX_CHANGES: Final = 8  # changes of sign that are narrowed down
MAX_SIZES: Final = 4  # largest constants, and smallest, near which points are drawn
MAX_WORK: Final = 300_000  # about 0.2 s
MAX_POINTS: Final = 400
BISECTIONS: Final = 16  # between neighbouring powers of two: the cut is good to 2^-16 of its size
EXTREME: Final = 10**6  # a constant beyond this, or below its inverse, can hide a kink from the grid
_LEVELS: Final = (-1, 0, 1, 2)  # steps of floor and ceil that are looked for; the rest is left to points far out
_STEPS: Final = frozenset({"floor", "ceil"})
_KINKED: Final = _STEPS | {"abs", "sgn", "min", "max", "root"}
_JUMPS: Final = _STEPS | {"sgn", "mod"}
_TOTAL: Final = frozenset(
    "add mul neg call abs min max floor ceil percent degree sin cos exp sinh cosh tanh arctan erf Re Im".split()
)
_INVERSE: Final = frozenset("arcsin arccos arctan arccot arcsec arccsc".split())
_MAGNITUDES: Final = (-9, -3, -1, 0, 1, 2, 3, 6, 12)


class UnresolvedError(ArithmeticError):
    """The expression is not rational in the variable."""


class TooLargeError(UnresolvedError):
    """A number has too many bits to be a fraction."""


def is_kinked(node: Node) -> bool:
    """Whether an expression may follow different formulas in different regions."""
    return any(
        isinstance(item, Operation) and (item.name in _KINKED or item.name in _INVERSE or _fractional(item))
        for item in walk(node)
    )


def _fractional(node: Operation) -> bool:
    """Whether a node is a power with a fraction as its exponent."""
    if node.name != "pow" or isinstance(node.args[1], Number | Symbol):
        return node.name == "pow" and isinstance(node.args[1], Number) and node.args[1].value.denominator > 1
    value = exact(node.args[1])
    return value is not None and value.denominator > 1


def everywhere(gold: Node, answer: Node, extra: set[str]) -> bool:
    """Whether agreement at random points means agreement at every point, as far as the forms of two sides tell.

    A letter that only one side has must cancel, which it does everywhere only where that side is defined everywhere
    (`5x/x` is not 5 at 0).  And steps that both sides do not share may hide at single points unless they are steps of
    something linear (`floor(cos(x)^2)` is 0 nearly everywhere): then the points are integers too, where they lie.
    """
    steps = [
        {item for item in walk(side) if isinstance(item, Operation) and item.name in _JUMPS} for side in (gold, answer)
    ]
    return all(is_linear(step.args[0]) for step in steps[0] ^ steps[1]) and not any(
        isinstance(item, Operation) and item.name not in _TOTAL and extra & free_names(item) and not _is_total(item)
        for side in (gold, answer)
        for item in (walk(side) if extra else ())
    )


def _is_total(node: Operation) -> bool:
    """Whether a quotient or a power has a value wherever its parts have one."""
    if node.name == "div":
        return _is_positive(node.args[1]) or not free_names(node.args[1])
    exponent = exact(node.args[1]) if node.name == "pow" else None
    return _is_positive(node) or (exponent is not None and exponent > 0 and exponent.denominator == 1)


def _is_positive(node: Node) -> bool:
    """Whether the form of an expression says that it is never zero: `2^n`, `e^{-x}`."""
    base = node.args[0] if is_op(node, "pow") else None
    value = exact(base) if base is not None else None
    return base == Constant("e") or (value is not None and value > 0) or (is_op(node, "exp"))


def is_linear(node: Node) -> bool:
    """Whether an expression is of the first degree in its letters."""
    if isinstance(node, Symbol) or not free_names(node):
        return True
    if not isinstance(node, Operation) or node.name not in ("add", "neg", "mul", "div"):
        return False
    open_parts = [part for part in node.args if free_names(part)]
    single = node.name in ("add", "neg") or (
        len(open_parts) == 1 and (node.name == "mul" or open_parts[0] is node.args[0])
    )
    return single and all(map(is_linear, open_parts))


class Regions:
    """The regions of two expressions, as points to compare them at.

    Attributes:
        sides: the expressions.
        names: the keys of a point; those of units are drawn positive.
        work: node evaluations that the search for kinks may still cost.
        exact: whether all kinks so far were roots of polynomials.
        sizes: the absolute values of the constants, largest first.
    """

    def __init__(self, sides: tuple[Node, Node], names: list[str], seed: str) -> None:
        """Find what may change sign, and seed the points from a text."""
        digest = hashlib.blake2b(f"regions\0{seed}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self.source = random.Random(int.from_bytes(digest, "big"))
        self.sides, self.names = sides, names
        self.free = [name for name in names if not name.startswith("unit:")]
        kinks = dict.fromkeys([*_kinks(sides[0]), *_kinks(sides[1])])
        self.kinks = {kink: free_names(kink) for kink in islice(kinks, MAX_KINKS)}
        self.work = MAX_WORK if len(kinks) <= MAX_KINKS else 0
        self.exact = True
        self.sizes = _constants(sides)

    def settled(self) -> bool:
        """Whether agreement at all points is evidence, once they are drawn; what the grid finds is no needle."""
        if self.work <= 0:
            return False
        return self.exact or all(Fraction(1, EXTREME) <= size <= EXTREME for size in self.sizes)

    def points(self) -> Iterator[Point]:
        """Yield points between and beyond the kinks, and points of mixed sizes and signs, `MAX_POINTS` at most."""
        return islice(self._points(), MAX_POINTS)

    def _points(self) -> Iterator[Point]:
        for _ in range(len(_MAGNITUDES) + 4 * min(len(self.free), 4)):
            yield {name: self.drawn(name, self.source.choice(_MAGNITUDES)) for name in self.names}
        for size in dict.fromkeys([*self.sizes[:MAX_SIZES], *self.sizes[-MAX_SIZES:]]):
            for sign in (1, -1):
                near = {name: size * Fraction(self.source.randrange(900, 1100), 1000) for name in self.names}
                yield {name: value * sign if name in self.free else value for name, value in near.items()}
        for name in self.free[:MAX_SLICES]:
            for scale in (0, 3)[: 1 if len(self.free) == 1 else 2]:
                base = {other: self.drawn(other, scale) for other in self.names}
                cuts, whole = self.cuts(name, base)
                for value in (*_between(cuts, self.source), *whole):
                    yield base | {name: value}

    def drawn(self, name: str, scale: int) -> Fraction:
        """Return a random value of a size, which is not an integer: there (-1)^n has a value that says little."""
        sign = self.source.choice((1, -1)) if name in self.free else 1
        return sign * Fraction(3 * self.source.randrange(81, 810) + 1, 243) * Fraction(10) ** scale

    def cuts(self, name: str, base: Point) -> tuple[list[Fraction], list[Fraction]]:
        """Return about where the kinks lie along a variable, in order, and those among them that are exact."""
        cuts: set[Fraction] = set()
        whole: set[Fraction] = set()
        for kink, names in self.kinks.items():
            if name not in names or self.work <= 0:
                continue
            try:
                for above, below in _branches(kink, name, base):
                    product = above * below
                    if product.degree() * _height(product) > MAX_SIZE:
                        raise UnresolvedError(name)
                    if product.degree() > 0:
                        self.work -= 40 * product.degree() ** 2
                        cuts.update(_middle(root.real) for root, _ in product.complex_roots() if root.imag.is_zero())
                        whole.update(Fraction(int(root.p), int(root.q)) for root, _ in product.roots())
            except UnresolvedError:
                self.exact = False
                cuts.update(self.sign_changes(kink, name, base))
        return sorted(cuts)[:MAX_CUTS], sorted(whole)[:MAX_CUTS]

    def sign_changes(self, node: Node, name: str, base: Point) -> list[Fraction]:
        """Return about where an expression changes sign, by bisection between powers of two."""
        sizes = [Fraction(2) ** power for power in range(-20, 41)]
        grid = [*(-size for size in reversed(sizes)), Fraction(0), *sizes]
        self.work -= sum(1 for _ in walk(node)) * len(grid) * 2
        if self.work <= 0:
            return []
        signs = [_sign(node, base | {name: value}) for value in grid]
        changes: list[Fraction] = []
        for (low, before), (high, after) in pairwise(zip(grid, signs, strict=True)):
            if before * after >= 0 or len(changes) == MAX_CHANGES:
                continue
            for _ in range(BISECTIONS):
                middle = (low + high) / 2
                if _sign(node, base | {name: middle}) == before:
                    low = middle
                else:
                    high = middle
            changes.append(low)
        return changes


def _constants(sides: tuple[Node, Node]) -> list[Fraction]:
    """Return the sizes of the constants of two expressions, largest first."""
    sizes: set[Fraction] = set()
    stack: list[Node] = [*sides]
    while stack:
        item = stack.pop()
        size = _size(item) if isinstance(item, Number | Operation) else None
        if size is not None:
            sizes.add(size)
        elif isinstance(item, Operation):
            stack.extend(item.args)
    sizes.discard(Fraction(0))
    return sorted(sizes, reverse=True)


def _size(node: Node) -> Fraction | None:
    """Return the absolute value of a constant, cut off far beyond `EXTREME`; None where there is no real one."""
    value = exact(node)
    if value is None and free_names(node):
        return None
    try:
        return abs(value if value is not None else _middle(_at(node, {})))
    except TooLargeError:
        return Fraction(EXTREME**2)
    except UnresolvedError:
        return None


# -- kinks ------------------------------------------------------------------------------------------------------


def _kinks(node: Node) -> list[Node]:
    """Return the expressions at whose zeros the formula may change."""
    kinks: list[Node] = []
    for item in walk(node):
        if not isinstance(item, Operation):
            continue
        if item.name in ("abs", "sgn", "root", "ln", "log") or _fractional(item):
            kinks.append(item.args[0])
        elif item.name in ("min", "max"):
            kinks += [minus(left, right) for left, right in islice(combinations(item.args, 2), MAX_KINKS)]
        elif item.name in _STEPS:
            kinks += [minus(item.args[0], Number(Fraction(level))) for level in _LEVELS]
        elif item.name in _INVERSE:
            kinks += [part.args[1] for part in walk(item) if is_op(part, "div")]
            kinks.append(item.args[0])
    return [kink for kink in dict.fromkeys(kinks) if free_names(kink)]


def _height(polynomial: Any) -> int:
    """Return the bits of the largest coefficient over the common denominator."""
    whole = polynomial.numer()
    return max((int(abs(whole[index])).bit_length() for index in range(whole.degree() + 1)), default=0)


def _middle(ball: Ball) -> Fraction:
    mantissa, exponent = ball.mid().man_exp()
    if abs(int(exponent)) > MAX_BITS:
        raise TooLargeError("bits")  # e^(e^20) as a fraction has 700 million bits
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _between(cuts: list[Fraction], source: random.Random) -> Iterator[Fraction]:
    """Yield a point of every stretch that the cuts make, two of the outer ones."""
    if not cuts:
        return
    for factor in (1, 100):
        yield _simple(cuts[-1], cuts[-1] + (1 + abs(cuts[-1])) * factor, source)
        yield _simple(cuts[0] - (1 + abs(cuts[0])) * factor, cuts[0], source)
    for low, high in pairwise(cuts):
        yield _simple(low, high, source)


def _simple(low: Fraction, high: Fraction, source: random.Random) -> Fraction:
    """Return a random point well inside a stretch, with few digits: precision is paid for by the digit."""
    point = low + (high - low) * Fraction(source.randrange(200, 800), 1000)
    step = (high - low) / 16
    unit = Fraction(2) ** (step.numerator.bit_length() - step.denominator.bit_length() - 1)
    return round(point / unit) * unit


def _branches(node: Node, name: str, base: Point) -> list[Quotient]:
    """Return the rational functions of one variable that an expression follows, one for each choice of signs."""
    if isinstance(node, Symbol) and node.name == name:
        return [(flint.fmpq_poly([0, 1]), flint.fmpq_poly([1]))]
    if name not in free_names(node):
        return [(flint.fmpq_poly([_approximate(node, base)]), flint.fmpq_poly([1]))]
    if not isinstance(node, Operation) or node.name == "call":
        raise UnresolvedError(name)
    if node.name == "pow":
        exponent = exact(node.args[1])
        if exponent is None or exponent.denominator != 1 or abs(exponent) > MAX_DEGREE:
            raise UnresolvedError(name)
        return [_raised(branch, int(exponent)) for branch in _branches(node.args[0], name, base)]
    parts = [_branches(arg, name, base) for arg in node.args]
    if node.name in ("abs", "neg"):
        negative = [(-above, below) for above, below in parts[0]]
        branches = negative if node.name == "neg" else parts[0] + negative
    elif node.name in ("min", "max"):
        branches = [branch for part in parts for branch in part]
    elif node.name in ("add", "mul", "div"):
        branches = parts[0]
        for part in parts[1:]:
            branches = [_combined(node.name, left, right) for left in branches for right in part]
            if len(branches) > MAX_BRANCHES:
                raise UnresolvedError(name)
    else:
        raise UnresolvedError(name)
    if len(branches) > MAX_BRANCHES or any(max(a.degree(), b.degree()) > MAX_DEGREE for a, b in branches):
        raise UnresolvedError(name)
    return branches


def _raised(branch: Quotient, exponent: int) -> Quotient:
    above, below = branch if exponent >= 0 else (branch[1], branch[0])
    if max(above.degree(), below.degree(), 0) * abs(exponent) > MAX_DEGREE:
        raise UnresolvedError("degree")
    return above ** abs(exponent), below ** abs(exponent)


def _combined(operator: str, left: Quotient, right: Quotient) -> Quotient:
    (a, b), (c, d) = left, right
    if operator == "add":
        return a * d + c * b, b * d
    return (a * c, b * d) if operator == "mul" else (a * d, b * c)


def _approximate(node: Node, base: Point) -> Any:
    """Return the value of an expression at a point, exactly or to about 96 bits."""
    value = exact(node)
    if value is None:
        value = _middle(_at(node, base))
    if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
        raise UnresolvedError("bits")
    return flint.fmpq(value.numerator, value.denominator)


def _at(node: Node, point: Point) -> Ball:
    """Return the value of an expression at a point, to 96 bits."""
    with PRECISION.lock:
        before = flint.ctx.prec
        try:
            flint.ctx.prec = 96
            value = Evaluation(point, real=True).value(node)
        except (NoValueError, ZeroDivisionError, OverflowError, ValueError) as error:
            raise UnresolvedError(str(error)) from error
        finally:
            flint.ctx.prec = before
    if not value.is_finite():
        raise UnresolvedError("not finite")
    return value


def _sign(node: Node, point: Point) -> int:
    try:
        value = _at(node, point)
    except UnresolvedError:
        return 0
    return 1 if value > 0 else -1 if value < 0 else 0

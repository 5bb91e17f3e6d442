"""Equality of parsed answers: identities, units, tolerances, labels, chains, collections and intervals."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.math.equality import Equality
from adjudge.verifiers.math.intervals import MINUS, PLUS, Interval, intervals_of
from adjudge.verifiers.math.nodes import Collection, Node, Number
from adjudge.verifiers.math.parser import parse
from adjudge.verifiers.math.scalars import Rules, points
from adjudge.verifiers.math.values import exact

FUZZED = settings(deadline=None, max_examples=100, derandomize=True)
DEFAULT = Rules()


def verdict(gold: str, answer: str, rules: Rules = DEFAULT) -> bool | None:
    return Equality(rules, f"{gold}\0{answer}").verdict(parse(gold), parse(answer)).equal


def both_ways(gold: str, answer: str, rules: Rules = DEFAULT) -> set[bool | None]:
    return {verdict(gold, answer, rules), verdict(answer, gold, rules)}


EQUAL = [
    # identities
    ("x^2+2x+1", "(x+1)^2"), (r"\sin^2 x+\cos^2 x", "1"), (r"\sin 2x", r"2\sin x\cos x"), (r"\sqrt{x^2}", "|x|"),
    (r"\frac{x^2-1}{x-1}", "x+1"), (r"2^{x+1}", r"2\cdot 2^x"), (r"\frac{1}{1+\sqrt x}", r"\frac{1-\sqrt x}{1-x}"),
    ("(a+b)(a-b)", "a^2-b^2"), (r"\tan x", r"\frac{\sin x}{\cos x}"), ("e^{i x}", r"\cos x+i\sin x"),
    (r"\sqrt{x^2 y^2}", "|xy|"), (r"n(n+1)/2", r"\binom{n+1}{2}"), (r"x^2+C", "x^2+K"), (r"c_1 e^x", "C_1 e^x"),
    (r"f(x)+1", "1+f(x)"), (r"-\infty", r"-\infty"), (r"\frac{1}{3}x", r"\frac{x}{3}"),
    # numbers
    (r"50\%", "0.5"), ("1.5\\times 10^3", "1500"), ("3:4", "6:8"), ("3:4", r"\frac{3}{4}"), (r"\sqrt{8}", r"2\sqrt2"),
    (r"90^\circ", r"\frac{\pi}{2}"), (r"90^\circ", "90"), (r"30^\circ 15'", r"30.25^\circ"),
    # relations
    ("x=5", "5"), ("AB=5", "5"), ("f(x)=2x", "2x"), ("y=2x", "f(x)=2x"), (r"x=\frac{4}{2}=2", "2"), ("2+3=5", "5"),
    ("y=2x+1", "2x-y+1=0"), ("x<2", "2x<4"), ("x<2", "-2x>-4"), ("x+y=3", "2x+2y=6"), ("5=x", "x=5"),
    (r"x \approx 3.14", "3.14"), ("x^2+y^2=4", "4=x^2+y^2"), ("1<x<2", "2>x>1"), ("x=1, y=2", "y=2, x=1"),
    ("x=1, y=2", "1, 2"), ("(x,y)=(1,2)", "(1,2)"), (r"x\in\{1,2\}", r"\{2,1\}"), (r"x=1\text{ or }x=2", "1, 2"),
    # names
    ("(a,b,c)=(1,2,3)", "(c,b,a)=(3,2,1)"), (r"x=y=1", "x=1, y=1"), (r"x=y=1", "(1,1)"), ("x=1, -2", "-2, 1"),
    (r"(x,y)=(1,2)\text{ or }(3,4)", "(3,4),(1,2)"), ("[x=1,y=2]", "y=2,x=1"), (r"x=1,y=\frac42=2", "y=2,x=1"),
    (r"(x,y)\in\{(1,2),(3,4)\}", "x=3,y=4; x=1,y=2"), (r"A=\{1,2\}, B=\{3\}", r"B=\{3\}, A=\{2,1\}"),
    ("x_1=1, x_2=2", "x=2, x=1"), ("x_1=1, x_2=-2", "-2, 1"), ("f(g(2))", "f(g(1+1))"), ("f(1)=2", "f(1+0)=2"),
    (r"\bar x=1,\bar y=2", r"\bar y=2,\bar x=1"), (r"\begin{cases}x=1\\y=2\end{cases}", "y=2,x=1"),
    # collections
    ("1,-2", "-2,1"), ("1,2", r"\{2,1\}"), ("1,2", "(1,2)"), (r"\{1,1,2\}", r"\{1,2\}"), (r"\{5\}", "5"),
    ("2\\pm\\sqrt3", "2-\\sqrt3, 2+\\sqrt3"), (r"\langle 1,2,3\rangle", "(1,2,3)"), ("[1,2,3]", "(1,2,3)"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2)"), (r"(1,2),(3,4)", "(3,4),(1,2)"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{bmatrix}1&2\\3&\frac82\end{bmatrix}"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1,2],[3,4]]"), (r"10\text{ mph}", "10 miles per hour"),
    # quantities in several units, ratios, members in several spellings
    (r"1\text{ hr }15\text{ min}", r"75\text{ min}"), (r"1\text{ hour and }15\text{ minutes}", r"1.25\text{ hr}"),
    ("2 hr 5 min 30 s", "125.5 min"), ("6 feet 2 inches", "74 inches"), ("2 lb 3 oz", "35 oz"),
    ("5 km", r"5000\text{ m}"),
    (r"3^\circ 15' 18''", r"3.255^\circ"), (r"3^{\circ}15^{\prime}18^{\prime\prime}", r"3.255^\circ"),
    ("3:4", "6/8"), (r"\{\frac12,0.5,1\}", r"\{1,1/2\}"), (r"\{1,0.5,\frac12\}", r"\{1,1.0,1/2\}"),
    # intervals
    ("[0,1)", r"0\le x<1"), (r"x\ne 2", r"(-\infty,2)\cup(2,\infty)"), (r"|x|<3", "(-3,3)"),
    (r"|x|\ge 3", r"(-\infty,-3]\cup[3,\infty)"), (r"(1,2]\cup[2,3)", "(1,3)"), (r"(1,2)\cup[2,3)", "(1,3)"),
    (r"(1,5)\cup(2,3)", "(1,5)"), (r"(3,4)\cup(1,2)", r"(1,2)\cup(3,4)"), (r"(-\infty,\infty)", r"\mathbb{R}"),
    (r"\mathbb{R}\setminus\{1\}", r"(-\infty,1)\cup(1,\infty)"), (r"x\ge\sqrt2", r"[\sqrt2,\infty)"),
    (r"\{x\mid x>2\}", r"(2,\infty)"), (r"\{1\}\cup(1,2)", "[1,2)"), (r"(0,1)\cup(1,2)\cup\{1\}", "(0,2)"),
    (r"(0,1)\cup\{1\}\cup(1,2)", "(0,2)"), (r"x<1\text{ or }x>2", r"(-\infty,1)\cup(2,\infty)"),
]  # fmt: skip

DIFFERENT = [
    (r"\sqrt{x^2}", "x"), (r"\sqrt{x^2}", "-x"), (r"\sqrt{x^2 y}", r"x\sqrt y"), ("|x|+|y|", "|x+y|"),
    (r"\sqrt{x^4}", "-x^2"), (r"\ln x^2", r"\ln x"), ("x^2", "2x"), ("(x+1)^2", "x^2+1"), (r"\sin x", r"\cos x"),
    (r"\frac{x}{|x|}", "1"), ("x", "X"), ("x_1", "x_2"), ("a", "b"), ("x^2+C", "x^2"), ("Cx", "Kx"),
    ("x^2+C", "x^2+x"), (r"\lfloor x\rfloor", "x"), (r"\arcsin(\sin x)", "x"), ("(-1)^n", "1"), (r"\cos(n\pi)", "1"),
    (r"\infty", r"-\infty"), (r"\infty", "5"), ("x^2+10^{-9}", "x^2"), (r"\pi", r"\frac{22}{7}"),
    (r"\frac1{1503!}", r"\frac1{1505!}"), ("10^{-400}", "0"), (r"50\%", "50"), ("3:4", "4:3"), ("0:1", "1:0"),
    (r"5\text{ m}", r"5\text{ kg}"), (r"5\text{ m}", r"5\text{ cm}"), (r"5\text{ apples}", r"5\text{ oranges}"),
    (r"\$5", r"5\text{ euros}"), (r"5\text{ m}", r"5\text{ m}^2"), (r"90^\circ", r"90\pi"), ("x=5", "6"),
    ("x=5", "y=5"), ("3=4", "3"), ("x=3=4", "3"), ("x=3=4", "4"), ("x>5", "5"), ("x<2", "x>2"), ("x<2", r"x\le 2"),
    ("x<2", "-x<-2"), ("f'(x)=2x", "f(x)=2x"), ("x=1, y=2", "x=2, y=1"), ("x=1, y=2", "2, 1"), ("x+y=3", "x+y=4"),
    ("(1,2)", "(2,1)"), ("(1,2)", r"\{1,2\}"), ("1,2", "1"), ("1,2", "1,2,3"), ("(1,2)", "2,1"), ("1,1,2", "1,2,2"),
    ("1,1,2", "1,2"), (r"5\pm 1", "6"), (r"\pm 5", "5"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}"), ("(1,2,3)", "(1,2)"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1,3],[2,4]]"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"), (r"\{1,2\}", r"\{1,2,3\}"),
    (r"\emptyset", r"\{0\}"), ("[0,1)", "(0,1)"), ("[0,1]", "[0,2]"), (r"(1,2)\cup(2,3)", "(1,3)"),
    ("x>2", r"[2,\infty)"), (r"(1,2)\cup(3,4)", "(1,4)"), ("[0,1)", "0,1"),
    ("[1,2)", r"\begin{pmatrix}1\\2\end{pmatrix}"), (r"x>0, x\ne 1", r"\mathbb{R}"), ("x>2, x<5", r"\mathbb{R}"),
    (r"x>2\text{ and }x<5", r"\mathbb{R}"), (r"x>2\text{ and }x<5", r"x<2\text{ or }x>5"),
    (r"\mathbb{R}", r"\mathbb{Z}"),
    # names
    ("x=1, x=2", "x=1, y=2"), ("a=1, b=2", "(b,a)=(1,2)"), ("(1,2)", "(y,x)=(1,2)"), ("(1,2)", "y=1, x=2"),
    ("x=1, y=2", r"x=1\text{ or }y=2"), ("x=1, y=2", r"1\text{ or }2"), ("1, 2", r"x=1\text{ or }y=2"),
    ("x=1, y=2", "x=1, z=2"), ("x=1, y=2", r"\{1,2\}"), (r"x\in\{1,2\}", "x=1, y=2"), (r"x=\pm2", "x=2, y=-2"),
    (r"(x,y)=(1,2)\text{ or }(3,4)", r"(y,x)=(1,2)\text{ or }(3,4)"), ("x=1,y=2; x=3,y=4", "x=1,y=4; x=3,y=2"),
    ("a_1=1, a_2=2", "2, 1"), ("x_1=1, x_2=2", "x_1=2, x_2=1"), ("1, x=2", "2, x=1"), ("x=1,x=2,y=3", "x=2,x=1,y=3"),
    (r"x\in(1,2)", "1, 2"), ("[1,2]", "x=1, x=2"), ("x=1, y=2", "[1,2]"), ("x=2=3, y=1", "x=3, y=1"),
    ("x=1", "x=1, y=2"), ("f(x,y)", "f(y,x)"), ("f(1)=2, f(2)=3", "f(1)=3, f(2)=2"), ("f(1/3)", "f(0.333333)"),
    # quantities in several units, ratios, members in several spellings
    (r"1\text{ hr }15\text{ min}", "75"), (r"1\text{ hr }15\text{ min}", r"1.15\text{ hr}"), ("5 ft 3 in", "5 ft"),
    (r"5\pmod 7", "12"),
    (r"5\text{ cm}", "5m"), ("3:4", "4/3"), ("3:4", "0.75"), ("4:1", "4"), (r"\{1/3\}", r"\{1/3,0.333333\}"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_equal(gold: str, answer: str) -> None:
    assert both_ways(gold, answer) == {True}


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_different(gold: str, answer: str) -> None:
    assert True not in both_ways(gold, answer)


UNDECIDED = [
    (r"\ln|x|", r"\ln x"),
    ("x^2=0", "x=0"),
    ("101_2", "5"),
    (r"\sum_{k=1}^n k", r"\frac{n(n+1)}{2}"),
]


@pytest.mark.parametrize(("gold", "answer"), UNDECIDED)
def test_undecided(gold: str, answer: str) -> None:
    assert both_ways(gold, answer) == {None}


# -- options ----------------------------------------------------------------------------------------------------

RULED = [
    (Rules(), "1/3", "0.333333", True), (Rules(), "1/3", "0.33333", False), (Rules(precision=3), "1/3", "0.333", True),
    (Rules(precision=3), "1/3", "0.334", False), (Rules(precision=10), "1/3", "0.333333", False),
    (Rules(), "0.000001", "0", False), (Rules(), r"\pi", "3.14159", True), (Rules(), r"\pi", "3.14160", False),
    (Rules(precision=3), r"\pi", "3.14", True), (Rules(), "1/3", r"3.33333\times 10^{-1}", True),
    (Rules(), "1/3", "333333/1000000", False), (Rules(rel_tol=0.01), "100", "101", True),
    (Rules(rel_tol=0.01), "100", "101.1", False), (Rules(rel_tol=0.01), r"\pi", "3.15", True),
    (Rules(rel_tol=0.5), "0", "0.0001", False), (Rules(abs_tol=0.1), "0", "0.1", True),
    (Rules(abs_tol=0.1), r"\sqrt2", "1.5", True), (Rules(abs_tol=0.1), r"\sqrt2", "1.6", False),
    (Rules(abs_tol=0.1), "x", "x+0.05", False), (Rules(), r"5\text{ m}", "5", True),
    (Rules(units="required"), r"5\text{ m}", "5", False),
    (Rules(units="required"), r"5\text{ m}", r"500\text{ cm}", True),
    (Rules(units="required"), r"5\text{ m}", r"5\text{ kg}", False),
    (Rules(units="ignore"), r"5\text{ m}", r"5\text{ kg}", True),
    (Rules(units="ignore"), r"5\text{ m}", r"6\text{ m}", False),
    (Rules(), r"60\text{ km/h}", r"\frac{50}{3}\text{ m/s}", True), (Rules(), r"\$5", r"500\text{ cents}", True),
    (Rules(), r"1\text{ hour}", r"60\text{ minutes}", True), (Rules(), r"1\text{ hour}", "60", False),
    (Rules(percent="lenient"), r"10\%", "10", True), (Rules(percent="lenient"), "10", r"10\%", True),
    (Rules(percent="lenient"), r"10\%", "0.1", True), (Rules(percent="lenient"), r"10\%", "11", False),
    (Rules(), r"10\%", "10", False), (Rules(ordered=True), "1,2", "2,1", False),
    (Rules(ordered=True), "x=1,x=2", "x=2,x=1", False), (Rules(ordered=True), "x=1,y=2", "y=2,x=1", True),
    (Rules(rel_tol=0.1), r"\{1,1.05\}", r"\{1\}", False), (Rules(rel_tol=0.1), "f(1)-f(1.05)", "0", False),
    (Rules(units="required"), r"1\text{ hr }15\text{ min}", r"75\text{ min}", True),
    (Rules(units="ignore"), r"1\text{ hr }15\text{ min}", "16", False),
    (Rules(ordered=True), "1,2", "1,2", True), (Rules(ordered=True), r"\{1,2\}", r"\{2,1\}", True),
]  # fmt: skip


@pytest.mark.parametrize(("rules", "gold", "answer", "expected"), RULED)
def test_rules(rules: Rules, gold: str, answer: str, expected: bool) -> None:
    assert verdict(gold, answer, rules) is expected


# -- points -----------------------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.text(max_size=20))
@FUZZED
def test_points_are_repeatable_and_show_every_sign(count: int, seed: str) -> None:
    names = [f"x_{index}" for index in range(count)]
    found = list(points(names, seed))
    assert found == list(points(names, seed))
    assert all(point.keys() == set(names) and 0 not in point.values() for point in found)
    patterns = {tuple(point[name] > 0 for name in names) for point in found}
    assert len(patterns) >= (2**count if count <= 4 else 6)  # beyond four variables the patterns are drawn


def test_points_depend_on_the_texts() -> None:
    assert list(points(["x"], "a")) != list(points(["x"], "b"))


def test_units_are_only_drawn_positive() -> None:
    assert all(point["unit:m"] > 0 for point in points(["unit:m", "x"], "a"))


# -- intervals --------------------------------------------------------------------------------------------------

BOUNDS = st.integers(-4, 4)


@st.composite
def interval_sets(draw: st.DrawFn) -> list[tuple[int, int, bool, bool]]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        low, high = sorted((draw(BOUNDS), draw(BOUNDS)))
        closed = (True, True) if low == high else (draw(st.booleans()), draw(st.booleans()))
        found.append((low, high, *closed))
    return found


def text_of(parts: list[tuple[int, int, bool, bool]]) -> str:
    return r"\cup".join(
        f"\\{{{low}\\}}" if low == high else f"{'[' if left else '('}{low},{high}{']' if right else ')'}"
        for low, high, left, right in parts
    )


def holds(parts: list[tuple[int, int, bool, bool]], x: Fraction) -> bool:
    return any(low < x < high or (x == low and left) or (x == high and right) for low, high, left, right in parts)


PROBES = [Fraction(half, 2) for half in range(-10, 11)]


def value_of(node: Node) -> Fraction:
    found = exact(node)
    assert found is not None
    return found


@FUZZED
@given(interval_sets())
def test_merging_keeps_the_points(parts: list[tuple[int, int, bool, bool]]) -> None:
    tree = parse(text_of(parts))
    found = intervals_of(tree, as_set=True)
    assert found is not None
    merged = [(value_of(i.low), value_of(i.high), i.low_closed, i.high_closed) for i in found]
    for x in PROBES:
        inside = any(low < x < high or (x == low and a) or (x == high and b) for low, high, a, b in merged)
        assert inside == holds(parts, x)
    for (_, high, _, right), (low, _, left, _) in pairwise(merged):
        assert high < low or (high == low and not (right or left))


@FUZZED
@given(interval_sets(), interval_sets())
def test_unions_are_equal_exactly_when_their_points_are(
    one: list[tuple[int, int, bool, bool]], other: list[tuple[int, int, bool, bool]]
) -> None:
    left, right = text_of(one), text_of(other)
    if "(" not in left + right and "[" not in left + right:
        return  # two sets of points, compared as sets
    same = all(holds(one, x) == holds(other, x) for x in PROBES)
    assert (verdict(left, right) is True) == same


def test_what_describes_no_intervals() -> None:
    for text in (
        "5",
        "x",
        "(1,2,3)",
        r"\langle 1,2\rangle",
        "x=1",
        "x<y",
        "(a,b)",
        r"\{1,2\}",
        "x^2<4",
        "x<1, y<2",
        "(2,1)",
    ):
        assert intervals_of(parse(text)) is None


def test_intervals_as_trees() -> None:
    assert intervals_of(parse(r"\mathbb{R}")) == [Interval(MINUS, PLUS)]
    one = Interval(Number(Fraction(0)), Number(Fraction(1)), True, False)
    assert one.bracket() == Collection("bracket", (one.low, one.high), "[)")
    assert intervals_of(one.bracket()) == [one]

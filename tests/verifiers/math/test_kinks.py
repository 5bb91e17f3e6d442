"""Regions of expressions that are analytic piece by piece: every piece gets a point, at bounded cost."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.math.equality import Equality
from adjudge.verifiers.math.kinks import MAX_KINKS, MAX_POINTS, Regions, is_kinked
from adjudge.verifiers.math.nodes import Node
from adjudge.verifiers.math.parser import parse
from adjudge.verifiers.math.scalars import Rules

FUZZED = settings(deadline=None, max_examples=60, derandomize=True)
FRACTIONS = st.builds(
    lambda digits, scale: Fraction(digits) * Fraction(10) ** scale, st.integers(-99, 99), st.integers(-12, 12)
)


def regions(*texts: str, names: str = "x", seed: str = "a") -> Regions:
    left, right = (parse(text) for text in texts) if len(texts) == 2 else (parse(texts[0]), parse("0"))
    return Regions((left, right), names.split(), seed)


def verdicts(gold: str, answer: str) -> set[bool | None]:
    def one(left: Node, right: Node) -> bool | None:
        return Equality(Rules(), f"{gold}\0{answer}").verdict(left, right).equal

    return {one(parse(gold), parse(answer)), one(parse(answer), parse(gold))}


# -- where the points lie -----------------------------------------------------------------------------------------


@FUZZED
@given(st.lists(FRACTIONS, min_size=1, max_size=12))
def test_every_stretch_between_kinks_has_a_point(kinks: list[Fraction]) -> None:
    text = "+".join(rf"|x-(\frac{{{kink.numerator}}}{{{kink.denominator}}})|" for kink in kinks)
    found = regions(text)
    values = [point["x"] for point in found.points()]
    ends = sorted(set(kinks))
    assert found.settled()
    assert min(values) < ends[0]
    assert max(values) > ends[-1]
    assert all(any(low < value < high for value in values) for low, high in pairwise(ends))


KINKS = [
    ("||x|-100|", "0", Fraction(100)), (r"|\frac{1}{x}-8|", "0", Fraction(1, 8)),
    (r"\sqrt{(x-100)^2}", "0", Fraction(100)), (r"((x-100)^2)^{1/2}", "0", Fraction(100)),
    (r"\max(x,1000)", "0", Fraction(1000)), (r"\lfloor x/700\rfloor", "0", Fraction(700)),
    (r"|x-\pi^9|", "0", Fraction(298091, 10)), (r"\operatorname{sgn}(x^3-27)", "0", Fraction(3)),
    (r"|\ln x-20|", "0", Fraction(485165195)), (r"\arctan\frac{1}{x-70}", "0", Fraction(70)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "kink"), KINKS, ids=lambda item: str(item))
def test_kinks_have_points_close_by_on_either_side(left: str, right: str, kink: Fraction) -> None:
    values = [point["x"] for point in regions(left, right).points()]
    assert any(kink / 10 < value < kink for value in values)
    assert any(kink < value < kink * 10 for value in values)


def test_steps_have_points_on_themselves() -> None:
    assert {Fraction(0), Fraction(7)} <= {point["x"] for point in regions(r"\lceil x/7\rceil").points()}


def test_points_are_repeatable_positive_in_units_and_bounded_in_number() -> None:
    def drawn(seed: str) -> list[dict[str, Fraction]]:
        return list(regions("|x|+|y-3|", names="x y unit:m", seed=seed).points())

    assert drawn("a") == drawn("a") != drawn("b")
    assert all(point["unit:m"] > 0 for point in drawn("a"))
    assert {(point["x"] > 0, point["y"] > 0) for point in drawn("a")} == {(a, b) for a in (0, 1) for b in (0, 1)}
    many = "+".join(f"|x_{{{index}}}-{index}|" for index in range(20))
    assert len(list(regions(many, names=" ".join(f"x_{index}" for index in range(20))).points())) <= MAX_POINTS


def test_more_kinks_than_are_looked_for_are_not_settled() -> None:
    for count, settled in ((MAX_KINKS - 1, True), (MAX_KINKS + 1, False)):
        found = regions("+".join(f"|x-{index}|" for index in range(count)))
        assert list(found.points())
        assert found.settled() is settled


def test_extreme_constants_leave_transcendental_kinks_unsettled() -> None:
    for text, settled in ((r"|\sin x|", True), (r"|\sin(10^9x)|", False), (r"|10^9x|", True), ("|e^x-10^{-9}|", False)):
        found = regions(text)
        assert list(found.points())
        assert found.settled() is settled, text


HOSTILE = [
    r"|(x+10^{500})^{40}-1|", r"|(x+10^{50})^{20}(x-10^{60})^{19}-1|", "|x^{40}-10^{-2000}|", r"|x-e^{e^{20}}-\sin x|",
    r"\max(" + ",".join(f"(x-{index})^{{39}}+10^{{100}}" for index in range(7)) + ")",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_roots_that_would_take_minutes_are_given_up(text: str) -> None:
    found = regions(text)
    assert 0 < len(list(found.points())) <= MAX_POINTS
    assert not found.settled()


KINKED = [
    "|x|",
    r"\max(x,1)",
    r"\lfloor x\rfloor",
    r"\sqrt x",
    "x^{1/3}",
    "x^{0.5}",
    r"\arctan x",
    r"\operatorname{sgn} x",
]
SMOOTH = ["x", "x^2", r"\sin x", "e^x", r"\ln x", r"\frac{1}{x}", "x^{-2}", "2^x", "x^y"]


def test_what_is_kinked() -> None:
    assert [is_kinked(parse(text)) for text in (*KINKED, *SMOOTH)] == [True] * len(KINKED) + [False] * len(SMOOTH)


# -- verdicts, both ways round ------------------------------------------------------------------------------------

APART = [
    ("100-x", "|x-100|"), ("x", r"\max(x,-100)"), ("400", "|x-200|+|x+200|"), ("0", r"\lfloor x^2/10^6\rfloor"),
    ("0", r"\min(0,x^2-10^{-40})"), ("100-x", r"\sqrt{(x-100)^2}"), ("50-x", r"\sqrt[4]{(x-50)^4}"),
    ("100-|x|", "||x|-100|"), (r"100\pi-x", r"|x-100\pi|"), ("10^9-x^3", "|x^3-10^9|"), ("100b-a", "|a-100b|"),
    (r"20-\ln x", r"|\ln x-20|"), (r"10^9-e^x", r"|e^x-10^9|"), (r"\min(x,y)", r"\min(x,y,1000)"),
    (r"100-\sqrt x", r"|\sqrt x-100|"), (r"\ln(x+100)", r"\ln|x+100|"), (r"\operatorname{Re}(z)", "z"),
    ("z+i", "|z|+i"), ("1", r"\tanh(10^9x^2)"), ("|x|", r"x\tanh(10^6x)"), ("1", r"1+\operatorname{sech}(10^7x)"),
    (r"\operatorname{sgn} x", r"\operatorname{erf}(10^5x)"),
    (r"-\frac{\pi}{2}", r"\arctan(x-100)+\arctan\frac{1}{x-100}"), ("x/100", r"\arcsin(\sin(x/100))"),
    (r"\lceil x/7\rceil", r"\lfloor x/7\rfloor+1"), ("y+x-100=0", "y-|x-100|=0"), ("(-1)^n", r"\cos(\pi n)"),
]  # fmt: skip
TOGETHER = [
    ("|x-3|", "|3-x|"), (r"\max(a,b)", r"\max(b,a)"), (r"\max(a,b)", r"\frac{a+b+|a-b|}{2}"), ("|1-|x||", "||x|-1|"),
    (r"\min(x,y)+\max(x,y)", "x+y"), (r"\min(x,y,z)", r"\min(z,\min(x,y))"), ("0", r"\lfloor x\rfloor+\lceil -x\rceil"),
    (r"\lfloor 2x\rfloor", r"\lfloor x\rfloor+\lfloor x+\frac12\rfloor"), (r"|\sin x|", r"\sqrt{\sin^2 x}"),
    (r"|x^2-10^4|", r"\sqrt{(x^2-10^4)^2}"), (r"\ln((x-50)^2)", r"2\ln|x-50|"),
    (r"\sqrt{x^2+10^6}", r"\sqrt{10^6+x^2}"), (r"|10^9\sin x|+1", r"1+|10^9\sin x|"),
    (r"\sqrt{x-100}", r"10\sqrt{\frac{x}{100}-1}"), (r"\ln(x-100)", r"\ln 100+\ln(\frac{x}{100}-1)"),
    (r"\ln|\sec x+\tan x|", r"-\ln|\sec x-\tan x|"), (r"\frac{|x|}{x}", r"\operatorname{sgn} x"), ("(x^3)^{1/3}", "x"),
    (r"\operatorname{Re}(a+bi)", "a"), ("y-|x-100|=0", "y-|100-x|=0"),
    (r"\sqrt{\frac{2\cdot10^{-11}M}{r}}", r"\sqrt{\frac{M}{5r}}\cdot10^{-5}"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer"), APART)
def test_far_away_differences_are_seen(gold: str, answer: str) -> None:
    assert True not in verdicts(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), TOGETHER)
def test_equal_pieces_are_accepted(gold: str, answer: str) -> None:
    assert verdicts(gold, answer) == {True}

"""The quick readings of an answer say what the parser says."""

from __future__ import annotations

import pytest

from adjudge.protocol import Sample
from adjudge.verifiers.math.equality import Equality
from adjudge.verifiers.math.numerals import rational
from adjudge.verifiers.math.parser import parse
from adjudge.verifiers.math.reading import Reading
from adjudge.verifiers.math.units import FACTORS
from adjudge.verifiers.math.verifier import MathVerifier

VERIFIER = MathVerifier()
WORDS = sorted(name for name in FACTORS if name.isalpha() and len(name) > 1)


@pytest.mark.parametrize("number", ["18", "-1.5", "1,000", ".5"])
def test_a_number_with_a_unit_is_read_as_the_parser_reads_it(number: str) -> None:
    gold = parse(number)
    for word in WORDS:
        text = f"{number}\\text{{ {word}}}"
        bare = Reading(text).bare
        assert bare is not None, text
        assert bare == rational(number)
        assert Equality(VERIFIER.rules, text).verdict(gold, parse(text)).equal is True, text


@pytest.mark.parametrize(
    "text",
    [
        r"5\text{ score}", r"5\text{ dozen}", r"5\text{ million}", r"5\text{ apples}", r"5\text{ cm or m}", r"5\text{}",
        r"1.2.3\text{ m}", r".\text{ m}", r"x\text{ m}", r"5\text{ m}^2", r"5\cdot\text{m}", "5 m", "",
    ],
)  # fmt: skip
def test_anything_else_is_left_to_the_parser(text: str) -> None:
    assert Reading(text).bare is None


@pytest.mark.parametrize("text", ["10{,}000", "-1{,}234{,}567.50", "1,000{,}000", "007", "2.", "-.5", r"\frac{-6}{4}"])
def test_a_plain_number_is_read_as_the_parser_reads_it(text: str) -> None:
    number = Reading(text).number
    assert number is not None
    assert Equality(VERIFIER.rules, text).exact().equal(parse(text), number) is True


@pytest.mark.parametrize(
    ("units", "tier", "value"),
    [("optional", "rational", 1.0), ("ignore", "rational", 1.0), ("required", "points", 0.0)],
)
def test_the_quick_way_keeps_to_the_option_for_units(units: str, tier: str, value: float) -> None:
    score = MathVerifier(units=units).verify(  # type: ignore[arg-type]
        Sample(prompt="", response=r"\boxed{18\text{ feet}}", reference="18")
    )
    assert (score.value, score.evidence["tier"]) == (value, tier)

"""What is seen of a step: where numbers come from, by hand, and nothing of what stands behind the step."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.reward_models.baselines.linear import Seen
from adjudge.reward_models.baselines.step_features import (
    GROUPS,
    Ledger,
    StepFeatureOptions,
    StepText,
    asked,
    computation,
    features_of_steps,
    operations,
    spoken,
    values_of,
)

PROMPT = "A shop has 12 crates with 30 apples each. It sells 40 apples for $2 apiece. How many apples are left?"
STEPS = ("There are 12 * 30 = <<12*30=360>>360 apples.", "Then 360 - 40 = 320 apples are left.", "A: 320")
EVERYTHING = StepFeatureOptions()


def after(*steps: str, prompt: str = PROMPT) -> Ledger:
    ledger = Ledger(prompt)
    for step in steps:
        ledger.add(StepText(step))
    return ledger


def seen(step: str, *before: str, prompt: str = PROMPT) -> dict[str, float]:
    values = values_of(StepText(step), after(*before, prompt=prompt))
    return {name: value for group in values.values() for name, value in group.items()}


def alike(one: Seen, other: Seen) -> bool:
    return one == other


@pytest.mark.parametrize(
    ("value", "origin"),
    [
        (320.0, "last"),
        (360.0, "earlier"),
        (12.0, "given"),
        (30.0, "given"),
        (0.3, "share"),
        (1.12, "share"),
        (100.0, "plain"),
        (77.0, "nowhere"),
    ],
)
def test_where_a_number_comes_from(value: float, origin: str) -> None:
    assert after(*STEPS[:2]).origin(value) == origin
    assert after(*STEPS[:2]).origin(value, {value}) == "here"


def test_the_books_are_kept_step_by_step() -> None:
    ledger = after()
    assert (set(ledger.given), ledger.unused, ledger.steps) == ({12.0, 30.0, 40.0, 2.0}, {12.0, 30.0, 40.0, 2.0}, 0)
    assert ledger.question == {"how", "many", "apples", "are", "left"}
    assert {"crates", "apples"} <= set(ledger.about[30.0])
    ledger = after(STEPS[0])
    assert (ledger.unused, ledger.results, ledger.idle, set(ledger.last)) == ({40.0, 2.0}, {360.0}, {360.0}, {360.0})
    ledger = after(*STEPS)
    assert (ledger.unused, ledger.idle, set(ledger.last), ledger.steps) == ({2.0}, {320.0}, {320.0}, 3)
    assert computation(StepText("3 + 4 = 7").equations[0]) == computation(StepText("4 + 3 = 7").equations[0])
    assert computation(StepText("3 - 4 = -1").equations[0]) != computation(StepText("4 - 3 = 1").equations[0])


EXPECTED = [
    ("first step", 1.0, STEPS[0], ()),
    ("first step", 0.0, STEPS[1], STEPS[:1]),
    ("given numbers used before", 0.5, STEPS[1], STEPS[:1]),
    ("answer line", 1.0, STEPS[2], STEPS[:2]),
    ("answer is the last result", 1.0, STEPS[2], STEPS[:2]),
    ("answer from nowhere", 1.0, "A: 7,777", STEPS[:2]),
    ("answer is given", 1.0, "The answer is 40.", STEPS[:2]),
    ("answer with numbers unused", 0.25, STEPS[2], STEPS[:2]),
    ("any wrong equation", 1.0, "So 12 * 30 = 350.", ()),
    ("any wrong equation", 0.0, STEPS[0], ()),
    ("operands given", 1.0, STEPS[0], ()),
    ("operands given", 0.5, STEPS[1], STEPS[:1]),
    ("operands last", 0.5, STEPS[1], STEPS[:1]),
    ("both given and last", 1.0, STEPS[1], STEPS[:1]),
    ("operands nowhere", 0.5, "So 12 * 77 = 924.", ()),
    ("any operand nowhere", 1.0, "So 12 * 77 = 924.", ()),
    ("operands used before", 0.5, "So 12 * 77 = 924.", STEPS[:1]),
    ("last - given", 1.0, STEPS[1], STEPS[:1]),
    ("given * given", 1.0, STEPS[0], ()),
    ("given * given", 0.0, STEPS[1], STEPS[:1]),
    ("an operand twice", 1.0, "So 12 * 12 = 144.", ()),
    ("result was there", 1.0, "So 320 + 40 = 360.", STEPS[:2]),
    ("computation was there", 1.0, "So 30 * 12 = 360.", STEPS[:2]),
    ("computation was there", 0.0, "So 360 / 12 = 30.", STEPS[:2]),
    ("result given", 1.0, "So 360 / 12 = 30.", STEPS[:2]),
    ("result negative", 1.0, "So 12 - 40 = -28.", ()),
    ("result not whole", 1.0, "So 12 / 40 = 0.3.", ()),
    ("log result over largest given", math.log(361 / 41), STEPS[0], ()),
    ("log result over last", math.log(321 / 361), STEPS[1], STEPS[:1]),
    ("result over all given", 1.0, STEPS[0], ()),
    ("given numbers unused after", 0.5, STEPS[0], ()),
    ("given numbers newly used", 2.0, STEPS[0], ()),
    ("given numbers newly used", 1.0, STEPS[1], STEPS[:1]),
    ("last result used", 1.0, STEPS[1], STEPS[:1]),
    ("last result used", 0.0, "Then 12 - 2 = 10.", STEPS[:1]),
    ("results unused after", math.log(2), "Then 12 - 2 = 10.", STEPS[:1]),
    ("results unused after", 0.0, STEPS[1], STEPS[:1]),
    ("a number alone", 1.0, "There are 12 of them.", ()),
    ("words from the problem", 1.0, "Apples are left.", ()),
    ("question words said", 0.6, "Apples are left.", ()),
    ("copied from the step before", 1.0, STEPS[0], STEPS[:1]),
    ("step before has *", 1.0, STEPS[1], STEPS[:1]),
    ("step before has -", 0.0, STEPS[1], STEPS[:1]),
]


@pytest.mark.parametrize(("name", "value", "step", "before"), EXPECTED, ids=[f"{c[0]} = {c[1]:g}" for c in EXPECTED])
def test_statistics_by_hand(name: str, value: float, step: str, before: tuple[str, ...]) -> None:
    assert seen(step, *before)[name] == pytest.approx(value)


def test_statistics_are_named_once_and_in_order() -> None:
    (found,) = features_of_steps(PROMPT, STEPS[:1], EVERYTHING)
    names = [name for group in found.values.values() for name in group]
    assert tuple(found.values) == GROUPS
    assert len(set(names)) == len(names)
    assert list(seen("")) == list(seen(STEPS[0])) == names


def test_numbers_are_seen_as_what_they_are_to_the_problem() -> None:
    ledger = after(STEPS[0])
    assert spoken(StepText(STEPS[1]), ledger).split() == "Then n_last - n_given = n_nowhere apples are left.".split()
    assert "n_long" in spoken(StepText("9" * 40), ledger)
    terms = operations(StepText(STEPS[1]), ledger)
    assert {"- of last given", "- in left", "- asked many", "- beside sells"} <= set(terms)
    other = PROMPT.replace("12", "17").replace("30", "31").replace("40", "44")
    written = [step.replace("12", "17").replace("30", "31").replace("360", "527") for step in STEPS[:1]]
    renamed = StepText("Then 527 - 44 = 483 apples are left.")
    assert operations(renamed, after(*written, prompt=other)) == terms


def test_nothing_behind_a_step_is_looked_at() -> None:
    whole = features_of_steps(PROMPT, STEPS, EVERYTHING)
    for count in (1, 2):
        begun = features_of_steps(PROMPT, STEPS[:count], EVERYTHING)
        assert all(alike(one, other) for one, other in zip(begun, whole, strict=False))
        turned = features_of_steps(PROMPT, [*STEPS[:count], "Wrong: 1 + 1 = 3", "A: 0"], EVERYTHING)
        assert all(alike(one, other) for one, other in zip(turned[:count], whole, strict=False))
    changed = features_of_steps(PROMPT, ["There are 12 * 40 = 480 apples.", *STEPS[1:]], EVERYTHING)
    assert not alike(changed[1], whole[1])


def test_of_a_chat_the_last_question_is_the_problem() -> None:
    turns = [{"role": "user", "content": "Hello 99"}, {"role": "assistant", "content": "Hm."}]
    assert asked([*turns, {"role": "user", "content": PROMPT}]) == PROMPT
    assert asked([{"role": "system", "content": "Solve."}]) == asked([]) == ""


HOSTILE = {
    "nothing": "",
    "signs": "= + - * / = " * 400,
    "one long number": "9" * 5_000,
    "many equations": "1 + 1 = 2, " * 2_000,
    "a chain": "1 + " * 5_000 + "1 = 5001",
    "huge results": " * ".join(["999999999999999"] * 16) + " = 1",
    "brackets": "(" * 5_000 + "1 + 1 = 2",
    "lone surrogates": "\ud800 + \udfff = \ud800",
    "other digits": "\u0663 + \u0664 = \u0667",
    "division by zero": "5 / 0 = 5",
    "a minus before a number": "-3 - -4 = 1",
    "notes that do not end": "<<" * 3_000,
    "one word": "a" * 50_000,
    "numbers in one word": "12a" * 30_000,
    "one number, often": "7 " * 20_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_gives_finite_numbers_soon(text: str) -> None:
    begun = time.process_time()
    found = [*features_of_steps(PROMPT, [text, *STEPS, text], EVERYTHING), *features_of_steps(text, STEPS, EVERYTHING)]
    assert time.process_time() - begun < 20
    for features in found:
        assert np.isfinite(features.row).all()


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="0123456789+-*/=(). ,%$\nA:x<>", max_size=60), st.text(max_size=30))
def test_any_text_gives_finite_numbers(step: str, other: str) -> None:
    for features in features_of_steps(other, [step, other, step], EVERYTHING):
        assert np.isfinite(features.row).all()


def test_time_grows_linearly_with_the_steps() -> None:
    """Two hundred full steps, each with new words and numbers: what the scorer judges at most."""
    chooser = random.Random(0)

    def part() -> str:
        return f"w{chooser.randrange(9**6)} {chooser.randrange(900)} + 1 = {chooser.randrange(900)},"

    steps = [" ".join(part() for _ in range(9)) for _ in range(200)]
    begun = time.process_time()
    assert len(features_of_steps(" ".join(steps), steps, EVERYTHING)) == 200
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": (0,)}, "words is"),
        ({"words": (1, 1)}, "words is"),
        ({"groups": ("colour",)}, "groups is"),
        ({"operations": 1}, "operations=1"),
        ({"bits": 40}, "bits=40"),
        ({"words": (), "groups": (), "operations": False}, "all empty"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StepFeatureOptions(**options)  # type: ignore[arg-type]

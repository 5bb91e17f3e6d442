"""DeepTheorem's reward and its gates, with values counted by hand, and the group that must be right as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import check_scorer
from adjudge.protocol import Sample, Score
from adjudge.scoring.attacks import AttackCase, cases_in
from adjudge.verifiers.proofs.theorem_verdict import TheoremGroupScorer, TheoremVerdictVerifier
from adjudge.verifiers.proofs.toolbox import tagged

ATTACKS = Path(__file__).parents[3] / "verifiers" / "proofs" / "attacks.json"
CASES = list(cases_in(ATTACKS, "theorem_variants"))
PROOF = "Let n be even, so n = 2k and n squared is 4 k squared. "


def score(response: str, label: Any = "proved", prompt: str = "p", **options: Any) -> Score:
    return TheoremVerdictVerifier(**options).verify(Sample(prompt=prompt, response=response, reference=label))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_attacks_score_nothing_and_their_honest_neighbours_pass(case: AttackCase) -> None:
    found = TheoremVerdictVerifier().verify(case.sample)
    assert found.value == float(case.honest), found.evidence
    assert case.reason in ("", found.reason), found.evidence


@pytest.mark.parametrize(
    ("verdict", "label", "value"),
    [
        ("proved", "proved", 1.0),
        ("disproved", "disproved", 1.0),
        ("proved", "disproved", 0.0),
        ("disproved", "proved", 0.0),
        (" Proved. ", "proved", 1.0),
        ("\\textbf{Disproved}", "DISPROVED", 1.0),
        ("$\\text{proved}$", "proved", 1.0),
        ("proven", "proved", 0.0),
    ],
)
def test_the_normalised_verdict_is_compared_with_the_label(verdict: str, label: str, value: float) -> None:
    assert score(f"{PROOF}\\boxed{{{verdict}}}", label).value == value


def test_the_gate_of_blanks_is_at_five_percent() -> None:
    # 14 characters of verdict; 5 blanks in 100 characters pass, 4 do not.
    verdict = "\\boxed{proved}"
    words = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstu"
    five = f"{words[:20]} {words[20:40]} {words[40:60]} {words[60:70]} {words[70:81]} {verdict}"
    assert (len(five), five.count(" ")) == (100, 5)
    assert score(five).value == 1.0
    four = five.replace(" ", "x", 1)
    assert score(four).evidence == {"gate": "blanks"}
    assert score(four, min_blanks=0.04).value == 1.0


def test_the_gate_of_repetition_is_above_three_hundred() -> None:
    # "\boxed{proved}" has 11 different characters: \ b o x e d { p r v }; with "a" and a blank 13: 13 * 300 = 3900.
    verdict = "\\boxed{proved}"
    assert len(set(verdict)) == 11
    passes = "a " * ((3900 - 14) // 2) + verdict
    assert (len(passes), len(set(passes))) == (3900, 13)
    assert score(passes).value == 1.0
    assert score("a" + passes).evidence == {"gate": "repetition"}
    assert score("a" + passes).reason == "repetition"


def test_the_gate_of_echo_is_for_short_texts() -> None:
    echo = "State whether it is proved or disproved. \\boxed{proved}"
    assert score(echo).evidence == {"gate": "echo"}
    assert score(PROOF * 4 + echo).value == 1.0


def test_a_line_of_the_prompt_may_not_stand_in_the_answer() -> None:
    prompt = "Prove or disprove it.\nThe square of every even number is even."
    copied = f"{PROOF}<answer>The square of every even\nnumber is even. \\boxed{{proved}}</answer>"
    assert score(copied, prompt=prompt).evidence == {"gate": "copy"}
    beside = f"The square of every even number is even. {PROOF}<answer>\\boxed{{proved}}</answer>"
    assert score(beside, prompt=prompt).value == 1.0


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("a", None),
        ("<answer>a", None),
        ("a</answer>", None),
        ("</answer><answer>a", None),
        ("<answer></answer>", ""),
        ("<answer>a</answer><answer>b</answer> <answer>c", "b"),
        ("<answer>a</answer></answer>", "a"),
        ("<answer>a<answer>b</answer>", "b"),
    ],
)
def test_the_last_closed_tag_holds_the_answer(text: str, inner: str | None) -> None:
    assert tagged(text) == inner


def test_a_tag_may_be_asked_for() -> None:
    assert score(f"{PROOF}\\boxed{{proved}}", tag=True).reason == "bad_format"
    assert score(f"{PROOF}<answer>\\boxed{{proved}}</answer>", tag=True).value == 1.0


@pytest.mark.parametrize("label", ["", "true", 1, None, ["proved"]])
def test_another_label_is_no_gold(label: Any) -> None:
    assert score("\\boxed{proved}", label).reason == "gold_unparsable"


@given(
    st.lists(st.sampled_from(["\\boxed", "{", "}", "proved", "<answer>", "</answer>", " ", "\\text", "<think>", "é"]))
)
def test_no_text_raises(pieces: list[str]) -> None:
    assert score("".join(pieces)).value in (0.0, 1.0)


@pytest.mark.parametrize("piece", ["\\boxed{", "\\boxed ", "\\text{", "<answer>", "proved ", "\\boxed{{}"])
def test_a_megabyte_of_one_thing_scores_nothing(piece: str) -> None:
    assert score(piece * (1_000_000 // len(piece))).value == 0.0


@pytest.mark.parametrize(
    "options", [{"min_blanks": 1.0}, {"min_blanks": -0.1}, {"max_repeated": 0}, {"tag": "yes"}, {"reasoning": "x"}]
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="theorem_variants"):
        TheoremVerdictVerifier(**options)


def member(prompt: str, said: str, label: str, group: str = "a", size: int | None = None) -> Sample:
    extra = {} if size is None else {"group_size": size}
    return Sample(prompt=prompt, response=f"{PROOF}\\boxed{{{said}}}", reference=label, group=group, extra=extra)


def grouped(samples: Sequence[Sample]) -> list[Score]:
    return asyncio.run(TheoremGroupScorer().score(samples))


def test_a_constant_answer_earns_nothing_where_all_must_be_right() -> None:
    labels = ["proved", "disproved", "proved", "disproved"]
    constant = grouped([member(f"s{at}", "proved", label) for at, label in enumerate(labels)])
    assert [one.value for one in constant] == [0.0] * 4
    assert [one.parts["own"].value for one in constant] == [1.0, 0.0, 1.0, 0.0]
    assert constant[0].evidence == {"right": 2, "of": 4}
    right = grouped([member(f"s{at}", label, label) for at, label in enumerate(labels)])
    assert [one.value for one in right] == [1.0] * 4


def test_groups_do_not_see_each_other() -> None:
    both = [member("s0", "proved", "proved", "a"), member("s1", "proved", "disproved", "b")]
    assert [one.value for one in grouped(both)] == [1.0, 0.0]


def test_a_group_that_is_not_all_there_has_no_number() -> None:
    pair = [member("s0", "proved", "proved", size=3), member("s1", "disproved", "disproved", size=3)]
    assert {one.reason for one in grouped(pair)} == {"cohort_incomplete"}
    assert {one.value for one in grouped([*pair, member("s2", "proved", "proved", size=3)])} == {1.0}


def test_a_bad_label_spoils_its_group_alone() -> None:
    found = grouped(
        [member("s0", "proved", "yes"), member("s1", "proved", "proved"), member("s", "proved", "proved", "b")]
    )
    assert [one.reason for one in found] == ["part_failed", "part_failed", ""]


def test_a_sample_needs_a_group() -> None:
    with pytest.raises(ValueError, match="no group"):
        TheoremGroupScorer().validate(Sample(prompt="", response="", reference="proved"))
    with pytest.raises(ValueError, match="group_size"):
        TheoremGroupScorer().validate(member("s", "proved", "proved", size=0))


def test_they_conform() -> None:
    samples = [
        Sample(prompt="p", response=PROOF + one, reference="proved") for one in ("\\boxed{proved}", "", "\\boxed{x}")
    ]
    check_scorer(TheoremVerdictVerifier(), samples).raise_for_failures()
    labels = ("proved", "disproved")
    groups = [member(f"s{at}", said, label, said) for said in labels for at, label in enumerate(labels)]
    check_scorer(TheoremGroupScorer(), groups).raise_for_failures()

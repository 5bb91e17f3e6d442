"""Rules that look at scores, each against cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.data_pipelines.pairs.made_groups import made, rows, scored, sides

from adjudge.data_pipelines.pairs.rule import ScoredGroup
from adjudge.data_pipelines.pairs.rules_by_score import AllOrdered, BestRandom, BestWorst, GapSplit, PassFail
from adjudge.data_pipelines.pairs.rules_by_verdict import Agreement, DuoGuard, ExecutionOrder, Heron


def test_best_worst_takes_the_two_ends() -> None:
    (pair,) = made(BestWorst(), scored(0.2, 0.9, 0.1, 0.5))
    assert pair.texts == ("b", "c")
    assert pair.margin == pytest.approx(0.8)


def test_best_worst_makes_no_pair_of_equal_scores_or_of_one_answer() -> None:
    assert made(BestWorst(), scored(0.5, 0.5, 0.5)) == []
    assert made(BestWorst(), scored(0.5)) == []
    assert made(BestWorst(), scored()) == []


def test_a_length_penalty_can_turn_the_pair_around() -> None:
    group = scored(0.6, 0.5, texts=["long " * 100, "short"])
    assert made(BestWorst(), group)[0].chosen.id == "0"
    (pair,) = made(BestWorst(length_penalty=1.0), group)  # 0.6 - 0.5 = 0.1 against 0.5 - 0.005
    assert pair.chosen.id == "1"
    assert pair.margin == pytest.approx(0.495 - 0.1)


def test_best_random_draws_among_the_worse_by_group_and_seed() -> None:
    found = {made(BestRandom(), scored(1.0, 1.0, 0.3, 0.2, 0.1, name=f"g{number}"))[0].texts[1] for number in range(40)}
    assert found == {"c", "d", "e"}  # never the other best one
    one = scored(1.0, 0.3, 0.2, 0.1, 0.4, 0.5, name="g")
    drawn = {made(BestRandom(), replace(one, seed=seed))[0].texts[1] for seed in range(40)}
    assert len(drawn) == 5
    assert made(BestRandom(), one) == made(BestRandom(), one)


def test_all_ordered_makes_every_pair_beyond_the_threshold() -> None:
    group = scored(0.0, 0.5, 1.0, 0.5)
    assert sides(made(AllOrdered(), group)) == ["b>a", "c>a", "c>b", "c>d", "d>a"]
    assert sides(made(AllOrdered(over=0.5), group)) == ["c>a"]
    assert sides(made(AllOrdered(levels="next"), group)) == ["b>a", "c>b", "c>d", "d>a"]
    assert made(AllOrdered(levels="next", over=0.5), group) == made(AllOrdered(levels="next"), scored(0.5, 0.5)) == []


def test_pass_fail_leaves_out_what_lies_between() -> None:
    group = scored(1.0, 0.0, 0.5, 1.0, 0.0)
    assert sides(made(PassFail(), group)) == ["a>b", "a>e", "d>b", "d>e"]
    assert sides(made(PassFail(passing=0.9, failing=0.5), group)) == ["a>b", "a>c", "a>e", "d>b", "d>c", "d>e"]


def test_a_known_solution_wins_over_all_that_failed() -> None:
    group = rows({"text": "x", "score": 0.0, "gold": "s"}, {"text": "y", "score": 0.0, "gold": "s"})
    pairs = made(PassFail(solution="gold"), group)
    assert sides(pairs) == ["s>x", "s>y"]
    assert {(pair.chosen.id, pair.chosen.score, pair.margin) for pair in pairs} == {("solution", 1.0, 1.0)}
    solved = rows({"text": "s", "score": 1.0, "gold": "s"}, {"text": "y", "score": 0.0, "gold": "s"})
    assert sides(made(PassFail(solution="gold"), solved)) == ["s>y"]  # once


def _program(text: str, score: float, reason: str, stage: str = "") -> dict[str, object]:
    return {"text": text, "score": score, "reason": reason, "evidence": {"stage": stage} if stage else {}}


def test_execution_order_is_that_of_heron() -> None:
    group = rows(
        _program("compile", 0.0, "candidate_error", "parse"),
        _program("run", 0.0, "candidate_error", "run"),
        _program("raise", 0.0, "candidate_error", "test"),
        _program("wrong", 0.0, "wrong", "test"),
        _program("pass", 1.0, "", "test"),
        _program("slow", 0.0, "candidate_timeout"),
        _program("nothing", 0.0, "no_answer"),
        _program("design", 0.0, "wrong", "run"),  # verilog: its simulation ran, and a check failed
        _program("unknown", 0.0, "gated"),
        {"text": "odd", "score": 0.0, "reason": ["wrong"], "evidence": {"stage": {"run": 1}}},
    )
    pairs = made(ExecutionOrder(), group)
    level = {"compile": -2, "nothing": -2, "run": -1, "raise": -1, "slow": -1, "wrong": 0, "design": 0, "pass": 1}
    wanted = sorted(f"{a}>{b}" for a in level for b in level if level[a] > level[b])
    assert sides(pairs) == wanted
    assert all(pair.margin == level[pair.texts[0]] - level[pair.texts[1]] for pair in pairs)
    by_texts = {pair.texts: pair.margin for pair in made(ExecutionOrder(margin="returns"), group)}
    assert by_texts["pass", "compile"] == 2.0
    assert by_texts["raise", "compile"] == pytest.approx(0.4)


def _factors(text: str, *values: float | None) -> dict[str, object]:
    return {"text": text, "z": dict(zip("abc", values, strict=False))}


def test_heron_goes_down_the_factors_until_one_decides() -> None:
    rule = Heron(factors=("z.a", "z.b", "z.c"), over=(0.1, 0.0, 0.0))
    table = {"p": (0.90, 1, 0), "q": (0.85, 2, 0), "r": (0.5, 9, 9), "s": (0.5, 9, 8)}
    group = rows(*(_factors(text, *values) for text, values in table.items()))
    found = {pair.texts: (pair.margin, pair.more["factor"]) for pair in made(rule, group)}
    assert found == {
        ("q", "p"): (2.0, "z.b"),  # 0.05 in the first factor says nothing
        ("p", "r"): (3.0, "z.a"),
        ("p", "s"): (3.0, "z.a"),
        ("q", "r"): (3.0, "z.a"),
        ("q", "s"): (3.0, "z.a"),
        ("r", "s"): (1.0, "z.c"),
    }
    apart = {pair.texts: pair.margin for pair in made(replace(rule, margin="difference"), group)}
    assert apart["p", "r"] == pytest.approx(0.4)


def test_heron_takes_less_for_better_where_told_and_stops_at_an_unknown_factor() -> None:
    group = rows(_factors("p", 1, 5), _factors("q", 1, 3), _factors("u", None, 0))
    assert sides(made(Heron(factors=("z.a", "-z.b")), group)) == ["q>p"]


def test_agreement_is_the_longest_ranking_both_share() -> None:
    # First scorer: v w x y z; second: w x v z y.  Shared: w x z or w x y (3), not v.
    ranks = zip("vwxyz", (5, 4, 3, 2, 1), (3, 5, 4, 1, 2), strict=True)
    group = rows(*({"text": text, "m": first, "n": second} for text, first, second in ranks))
    pairs = made(Agreement(first="m", second="n"), group)
    assert {pair.more["agreed"] for pair in pairs} == {3}
    assert {pair.more["of"] for pair in pairs} == {5}
    chosen = {text for pair in pairs for text in pair.texts}
    assert chosen in ({"w", "x", "y"}, {"w", "x", "z"})
    assert len(made(Agreement(first="m", second="n", pairs_of="neighbours"), group)) == 2


def test_agreement_makes_nothing_of_opposite_rankings_ties_or_missing_scores() -> None:
    rule = Agreement(first="m", second="n")
    assert made(rule, rows({"text": "a", "m": 1, "n": 0}, {"text": "b", "m": 0, "n": 1})) == []
    assert made(rule, rows({"text": "a", "m": 1, "n": 1}, {"text": "b", "m": 1, "n": 0})) == []
    assert made(rule, rows({"text": "a", "m": 1, "n": 1}, {"text": "b", "m": 0, "n": 1})) == []
    assert made(rule, rows({"text": "a", "m": 1, "n": 1}, {"text": "b", "m": 0})) == []
    failed = {"value": None, "status": "failed"}
    assert made(rule, rows({"text": "a", "m": 1, "n": 1}, {"text": "b", "m": failed, "n": 0})) == []


def test_gap_split_marks_pairs_by_the_quantile_of_all_gaps() -> None:
    groups = [scored(0.0, gap, name=f"g{gap}") for gap in (1.0, 2.0, 3.0, 4.0)]
    rule = GapSplit(hard=0.5).learnt(groups)
    assert rule.threshold == 2.5
    assert [made(rule, group)[0].more["split"] for group in groups] == ["hard", "hard", "easy", "easy"]
    assert [made(rule, group)[0].more["gap"] for group in groups] == [1.0, 2.0, 3.0, 4.0]
    fixed = GapSplit(threshold=4.0).learnt(groups)
    assert [made(fixed, group)[0].more["split"] for group in groups] == ["hard", "hard", "hard", "easy"]


def test_gap_split_can_take_the_gap_from_another_column() -> None:
    def group(name: str, first: float, second: float) -> ScoredGroup:
        made_rows = ({"text": "a", "score": 1.0, "rm": first}, {"text": "b", "score": 0.0, "rm": second})
        return replace(rows(*made_rows), name=name)

    groups = [group("near", 0.1, 0.2), group("far", -5.0, 5.0)]  # the reward model may disagree with the preference
    rule = GapSplit(by="rm").learnt(groups)
    assert [made(rule, one)[0].more["split"] for one in groups] == ["hard", "easy"]
    assert [made(rule, one)[0].texts for one in groups] == [("a", "b"), ("a", "b")]


def test_duoguard_chooses_what_keeps_its_label_and_fools_the_classifier() -> None:
    seed = {"label": "unsafe"}
    group = rows(
        {"text": "fools", **seed, "rated": "Unsafe", "guess": "safe"},
        {"text": "easy", **seed, "rated": "unsafe", "guess": "unsafe"},
        {"text": "lost its label", **seed, "rated": "safe", "guess": "safe"},
        {"text": "not rated", **seed, "guess": "safe"},
    )
    (pair,) = made(DuoGuard(), group)
    assert pair.texts == ("fools", "easy")
    assert pair.margin is None


def test_duoguard_reads_chances_and_tells_by_how_much() -> None:
    group = rows(
        {"text": "fools", "label": 1, "rated": 1, "guess": 0.2}, {"text": "easy", "label": 1, "rated": 1, "guess": 0.9}
    )
    (pair,) = made(DuoGuard(), group)
    assert pair.texts == ("fools", "easy")
    assert pair.margin == pytest.approx(0.7)
    benign = rows(
        {"text": "fools", "label": 0, "rated": 0, "guess": 0.9}, {"text": "easy", "label": 0, "rated": 0, "guess": 0.1}
    )
    assert sides(made(DuoGuard(), benign)) == ["fools>easy"]


def test_duoguard_reads_the_numbers_of_csv_as_numbers() -> None:
    group = rows(
        {"text": "fools", "label": "1", "rated": "1", "guess": "0.2"},
        {"text": "easy", "label": "1", "rated": "1.0", "guess": "0.9"},
        {"text": "lost its label", "label": "1", "rated": "0", "guess": "0.1"},
    )
    (pair,) = made(DuoGuard(), group)
    assert pair.texts == ("fools", "easy")
    assert pair.margin == pytest.approx(0.7)


@pytest.mark.parametrize(("label", "guess"), [("unsafe", 0.9), (1, "unsafe"), (1, -2.5), (3, 0.25)])
def test_duoguard_takes_no_guess_for_wrong_that_can_be_no_label(label: Any, guess: Any) -> None:
    group = rows(
        {"text": "odd", "label": label, "rated": label, "guess": guess},
        {"text": "easy", "label": label, "rated": label, "guess": label},
    )
    assert made(DuoGuard(), group) == []

"""Rules from specifications: every rule can be made, and a mistake names the value and the remedy."""

from __future__ import annotations

import pytest

from adjudge.data_pipelines.pairs.rule import RULES, Rule, rule_of
from adjudge.data_pipelines.pairs.rules_by_score import GapSplit, PassFail
from adjudge.data_pipelines.pairs.rules_by_verdict import Heron

NEEDED = {"heron": "{factors: [a]}", "agreement": "{first: a, second: b}"}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_can_be_made_and_keeps_the_contract(name: str) -> None:
    rule = rule_of(f"{{{name}: {NEEDED.get(name, '{}')}}}")
    assert isinstance(rule, Rule)
    assert rule.name == name
    assert (rule.learnt(iter(())) is rule) == (name != "gap_split")
    assert rule == rule_of(f"{{{name}: {NEEDED.get(name, '{}')}}}")


def test_options_have_the_types_of_their_fields() -> None:
    assert rule_of("{pass_fail: {passing: 1, failing: 0.5}}") == PassFail(passing=1.0, failing=0.5)
    assert rule_of("{heron: {factors: [a, -b], over: 0.5}}") == Heron(factors=("a", "-b"), over=(0.5,))
    assert rule_of("{gap_split: {of: {pass_fail: {failing: 0.2}}}}") == GapSplit(of=PassFail(failing=0.2))
    assert rule_of("pass_fail") == rule_of({"pass_fail": None}) == PassFail()


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("best_wurst", "did you mean 'best_worst'"),
        ("", "neither a name nor"),
        ("{a: {}, b: {}}", "neither a name nor"),
        ("{pass_fail: {passed: 1}}", "has no option 'passed'"),
        ("{pass_fail: {passing: high}}", "passing='high'; it must be a finite number"),
        ("{pass_fail: {passing: 0}}", "must score below"),
        ("{pass_fail: {passing: .nan}}", "passing=nan"),
        ("{heron: {}}", "needs the option 'factors'"),
        ("{heron: {factors: [a], over: [1, 2]}}", "one threshold"),
        ("{heron: {factors: []}}", "name the columns"),
        ("{heron: {factors: [a], margin: big}}", "must be one of level, difference"),
        ("{agreement: {first: a, second: a}}", "two columns"),
        ("{agreement: {first: a, second: b, pairs_of: some}}", "must be one of all, neighbours"),
        ("{gap_split: {hard: 1.5}}", "above 0 and below 1"),
        ("{gap_split: {of: best_wurst}}", "did you mean"),
        ("{gap_split: {threshold: .nan}}", "finite"),
        ("{gap_split: {of: gap_split}}", "of=gap_split"),
        ("{step_apo: {siblings: some}}", "one of extremes, all"),
        ("{execution_order: {margin: some}}", "one of levels, returns"),
        ("{best_worst: {length_penalty: -1}}", "at least 0"),
        ("{all_ordered: {over: -1}}", "at least 0"),
        ("{both_orders: {other: ''}}", "name the column"),
        ("{both_orders: {tie: .inf}}", "finite"),
        ("{duoguard: {threshold: 1}}", "above 0 and below 1"),
        ("{first_bad_step: {rest: 3}}", "true or false"),
        ("{pass_fail: [", "not YAML"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(spec: str, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("{", r"\{")):
        rule_of(spec)

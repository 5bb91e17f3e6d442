"""Which scorers a call names, under which names, and what each may spare."""

from __future__ import annotations

import pytest

from adjudge.data_pipelines.label.config import Asked, asked_scorers, numbers_by_name


def test_one_scorer_without_a_name_is_written_as_it_always_was() -> None:
    assert asked_scorers(["math"], [], []) == ((Asked("math", "math"),), False)
    assert asked_scorers(["{exact: {ignore_case: true}}"], [], [])[1] is False
    assert asked_scorers(["auto"], [], []) == ((Asked("auto", "auto"),), False)


def test_a_name_or_a_second_scorer_asks_for_scores_by_name() -> None:
    assert asked_scorers(["right=math"], [], []) == ((Asked("right", "math"),), True)
    found, named = asked_scorers([" math ", "big = {exact: {a: b=c}}", "pkg.mod:Thing", "x.yaml"], [], [])
    assert named
    assert [each.name for each in found] == ["math", "", "", ""]
    assert found[1].spec == "big = {exact: {a: b=c}}"
    assert asked_scorers(["big={exact: {a: b=c}}", "math"], [], [])[0][0] == Asked("big", "{exact: {a: b=c}}")


def test_scorers_that_spare_others() -> None:
    found, _ = asked_scorers(["math", "exact", "judge=j.yaml"], ["judge=math", "judge=exact,math"], ["undecided"])
    assert found[2].unless == ("math", "exact")
    assert found[0].unless == found[1].unless == ()


@pytest.mark.parametrize(
    ("specs", "unless", "doubt", "told"),
    [
        ([], [], [], "there is no scorer"),
        (["math", "math"], [], [], "has the name 'math' twice"),
        (["a=math", "a=exact"], [], [], "has the name 'a' twice"),
        (["math", "exact"], ["exact"], [], "it must be NAME=EARLIER"),
        (["math", "exact"], ["exact="], [], "it must be NAME=EARLIER"),
        (["math", "exact"], ["=math"], [], "it must be NAME=EARLIER"),
        (["math", "exact"], ["math=exact"], [], "'exact' comes after 'math'"),
        (["math", "exact"], ["exact=exact"], [], "cannot spare itself"),
        (["math", "j.yaml"], ["judge=math"], [], r"no scorer has the name 'judge' \(names there are: math\)"),
        (["math", "exact"], [], ["undecided"], "no scorer waits for another; add --unless"),
        (["math", "exact"], ["exact=math"], ["engine_error"], "'engine_error'; a number has one of the reasons wrong"),
        (["math", "exact"], ["exact=math"], [""], "--doubt is ''"),
    ],
)
def test_mistakes_are_named(specs: list[str], unless: list[str], doubt: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        asked_scorers(specs, unless, doubt)


def test_numbers_for_all_or_by_name() -> None:
    names = ["math", "judge", ""]
    assert numbers_by_name("--x", "", names, whole=True)["math"] is None
    assert numbers_by_name("--x", 3, names, whole=True)["math"] == 3
    assert numbers_by_name("--x", "3", names, whole=True)[""] == 3
    shares = numbers_by_name("--x", "math=8, judge=0.5", names, whole=False)
    assert (shares["math"], shares["judge"], shares[""]) == (8, 0.5, None)


@pytest.mark.parametrize(
    ("given", "whole", "told"),
    [
        ("0", True, "--x is '0'; it must be a whole number, 1 or more"),
        ("1.5", True, "--x is '1.5'"),
        (-1, False, "--x is -1; it must be a number, 0 or more"),
        ("nan", False, "--x is 'nan'"),
        ("many", True, "--x is 'many'"),
        ("math=x", True, "--x is 'x'"),
        ("other=1", True, r"no scorer has the name 'other' \(names: math\)"),
        ("=1", True, "no scorer has the name ''"),
    ],
)
def test_numbers_that_are_none_are_named(given: str | float, whole: bool, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        numbers_by_name("--x", given, ["math", ""], whole=whole)

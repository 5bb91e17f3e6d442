from __future__ import annotations

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.items.likeness import CountLikeness
from adjudge.data_pipelines.items.principles import Agreed, Judgement, consensus

PHRASES = ["clear steps", "clear step", "correct result", "correct results", "short", "not short", "names sources"]
JUDGEMENTS = st.lists(
    st.builds(Judgement, principle=st.sampled_from(PHRASES), holds=st.booleans(), person=st.integers(0, 2)),
    max_size=8,
)


def agreed(judgements: list[Judgement], persons: int, least: float = 0.7) -> Agreed:
    alike = asyncio.run(CountLikeness("letters").matrix([one.principle for one in judgements]))
    return consensus(judgements, alike, persons, least)


def standing(judgements: list[Judgement], persons: int, least: float = 0.7) -> set[tuple[str, bool]]:
    found = agreed(judgements, persons, least)
    return {(judgements[group[0]].principle, judgements[group[0]].holds) for group in found.groups}


def said(person: int, principle: str, holds: bool = True) -> Judgement:
    return Judgement(principle=principle, holds=holds, person=person)


def test_what_every_other_person_says_too_is_kept_once() -> None:
    judgements = [said(0, "clear steps"), said(1, "clear step"), said(0, "short"), said(1, "names sources")]
    found = agreed(judgements, 2)
    assert [sorted(group) for group in found.groups] == [[0, 1]]
    assert (found.alone, found.disputed) == (2, 0)


def test_one_silent_person_of_three_is_enough_against_it() -> None:
    judgements = [said(0, "clear steps"), said(1, "clear steps")]
    assert agreed(judgements, 2).groups == ((0, 1),)
    assert agreed(judgements, 3).groups == ()


def test_the_opposite_verdict_makes_a_principle_disputed_for_both() -> None:
    judgements = [said(0, "clear steps"), said(1, "clear steps", holds=False), said(0, "short"), said(1, "short")]
    found = agreed(judgements, 2)
    assert (found.groups, found.disputed, found.alone) == (((2, 3),), 2, 0)


def test_who_contradicts_himself_supports_nobody() -> None:
    judgements = [said(0, "short"), said(0, "short", holds=False), said(1, "short")]
    assert agreed(judgements, 2).disputed == 3


def test_a_disputed_principle_supports_nobody() -> None:
    judgements = [said(0, "tidy"), said(1, "neat"), said(0, "clean", holds=False)]
    alike = [
        [1.0, 1.0, 0.0],
        [1.0, 1.0, 1.0],
        [0.0, 1.0, 1.0],
    ]  # the first is like the second alone, and that one is disputed
    assert consensus(judgements, alike, 2, 0.5) == Agreed(groups=(), alone=1, disputed=2)


def test_a_denial_is_like_denials_alone_whatever_the_likeness_says() -> None:
    judgements = [said(0, "too long"), said(1, "not too long")]
    assert consensus(judgements, [[1.0, 1.0], [1.0, 1.0]], 2, 0.5) == Agreed(groups=(), alone=2, disputed=0)


def test_a_person_does_not_agree_with_himself() -> None:
    assert agreed([said(0, "short"), said(0, "short")], 2).groups == ()


@given(JUDGEMENTS)
def test_it_is_the_published_rule_with_equal_verdicts(judgements: list[Judgement]) -> None:
    alike = asyncio.run(CountLikeness("letters").matrix([one.principle for one in judgements]))
    for place, one in enumerate(judgements):
        for at, other in enumerate(judgements):
            alike[place][at] *= one.principle.startswith("not ") is other.principle.startswith("not ")
    near = [[o for at, o in enumerate(judgements) if alike[place][at] > 0.7] for place in range(len(judgements))]
    calm = {place for place, one in enumerate(judgements) if all(other.holds is one.holds for other in near[place])}
    expected = {
        place
        for place in calm
        if {o.person for at, o in enumerate(judgements) if at in calm and alike[place][at] > 0.7} == {0, 1, 2}
    }
    assert {place for group in agreed(judgements, 3).groups for place in group} == expected


@given(JUDGEMENTS, st.randoms(use_true_random=False))
def test_neither_the_order_of_persons_nor_that_of_their_words_matters(
    judgements: list[Judgement], draw: random.Random
) -> None:
    mixed = list(judgements)
    draw.shuffle(mixed)
    names = draw.sample(range(3), 3)
    renamed = [said(names[one.person], one.principle, one.holds) for one in mixed]
    assert standing(renamed, 3) == standing(judgements, 3)


@given(JUDGEMENTS)
def test_two_persons_who_agreed_agree_again(judgements: list[Judgement]) -> None:
    two = [one for one in judgements if one.person < 2]
    kept = [two[place] for group in agreed(two, 2).groups for place in group]
    found = agreed(kept, 2)
    assert sum(map(len, found.groups)) == len(kept)
    assert {(kept[group[0]].principle, kept[group[0]].holds) for group in found.groups} == standing(two, 2)

"""What won is tried elsewhere, and an answer that is right there is no win there."""

from __future__ import annotations

import asyncio

from tests.evals.attacks.weak_scorers import PlainScorer

from adjudge.evals.attacks.attacker import Attempt, Hit
from adjudge.evals.attacks.guard import Gold
from adjudge.evals.attacks.measures import to_rows
from adjudge.evals.attacks.target import AttackRow, Standing, Target, Wrap
from adjudge.protocol import Sample


class Pays(PlainScorer):
    """Pays for "42" anywhere."""

    def value(self, sample: Sample, text: str) -> float | None:
        return float("42" in text)


def standing(name: str, reference: str, base: float = 0.0) -> Standing:
    row = AttackRow(id=name, prompt="p", base=f"bad {name}", reference=reference)
    return Standing(row=row, base=base, good=None, threshold=1.0)


def attempt(name: str, text: str, query: int) -> Attempt:
    hit = Hit(wrap=Wrap(after=text), value=1.0, query=query)
    return Attempt(
        attacker="a",
        standing=standing(name, "7"),
        queries=query,
        unscored=0,
        won=hit,
        guessed=None,
        hedged=None,
        best=hit,
    )


def test_the_texts_that_took_fewest_questions_are_tried_on_every_open_row() -> None:
    attempts = [attempt(str(number), f" 42{'!' * number}", 100 - number) for number in range(12)]
    rows = [standing("x", "7"), standing("y", "42"), standing("z", "7", base=1.0)]
    scorer = Pays()
    found = asyncio.run(to_rows(Target(scorer), {"a": [*attempts, attempts[0]]}, rows, Gold()))
    assert {one.wrap.after for one in found} == {f" 42{'!' * number}" for number in range(2, 12)}
    assert {(one.row, one.won) for one in found} == {("x", True), ("y", False)}
    assert scorer.asked[0].response == "bad x 42" + "!" * 11
    assert len(found) == len(scorer.asked) == 20


def test_without_wins_nothing_is_asked() -> None:
    scorer = Pays()
    assert asyncio.run(to_rows(Target(scorer), {"a": []}, [standing("x", "7")], Gold())) == []
    assert scorer.asked == []

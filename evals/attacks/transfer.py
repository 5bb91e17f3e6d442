"""Whether what broke one scorer on one prompt breaks others.

To another scorer goes the winning response itself, and it must reach that scorer's own threshold for the row.  To a
prompt that no attacker saw goes what was written around the bad response, around that prompt's bad response.

Not covered: what is guessed; responses that say the right answer are no wins, here either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adjudge.evals.attacks.attempt import Attempt
from adjudge.evals.attacks.gold import Gold
from adjudge.evals.attacks.rows import AttackRow
from adjudge.evals.attacks.target import Target
from adjudge.evals.attacks.threshold import Goals, Standing, standings
from adjudge.evals.attacks.wrap import Wrap

_TEXTS = 10  # of each attacker that are tried on each held-out prompt: those found with the fewest questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """An attack that was tried elsewhere.

    Attributes:
        attacker: who found it.
        row: where it was tried.
        wrap: what it writes.
        value: the score there; None if there is none.
        won: whether it wins there.
    """

    attacker: str
    row: str
    wrap: Wrap
    value: float | None
    won: bool


async def to_scorer(
    target: Target, rows: Sequence[AttackRow], attempts: Mapping[str, Sequence[Attempt]], goals: Goals, gold: Gold
) -> list[Carried]:
    """Try every winning response on another scorer; rows whose bad response wins there anyway are left out.

    Args:
        target: the other scorer.
        rows: all that were attacked, for its thresholds.
        attempts: of each attacker on them.
        goals: what to win means.
        gold: what tells luck from success.
    """
    won = [attempt for each in attempts.values() for attempt in each if attempt.won is not None]
    if not won:
        return []
    there = {standing.row.id: standing for standing in await standings(target, rows, goals)}
    tried = [
        (attempt.attacker, there[attempt.standing.row.id], attempt.won.wrap)
        for attempt in won
        if attempt.won is not None and there[attempt.standing.row.id].open
    ]
    return await _carried(target, tried, gold)


async def to_rows(
    target: Target, attempts: Mapping[str, Sequence[Attempt]], held_out: Sequence[Standing], gold: Gold
) -> list[Carried]:
    """Try the winning texts of each attacker on prompts that it did not see."""
    tried = []
    for name, each in attempts.items():
        hits = sorted((attempt.won for attempt in each if attempt.won is not None), key=lambda hit: hit.query)
        wraps = list(dict.fromkeys(hit.wrap for hit in hits))[:_TEXTS]
        tried += [(name, standing, wrap) for wrap in wraps for standing in held_out if standing.open]
    return await _carried(target, tried, gold)


async def _carried(target: Target, tried: Sequence[tuple[str, Standing, Wrap]], gold: Gold) -> list[Carried]:
    scores = await target.ask([(standing.row, wrap.around(standing.row.base)) for _, standing, wrap in tried])
    paid = [
        at
        for at, ((_, standing, _), score) in enumerate(zip(tried, scores, strict=True))
        if standing.won_by(score.value)
    ]
    lucks = await gold.lucks([(tried[at][1].row, tried[at][2]) for at in paid])
    won = {at for at, said in zip(paid, lucks, strict=True) if not said}
    return [
        Carried(attacker=name, row=standing.row.id, wrap=wrap, value=score.value, won=at in won)
        for at, ((name, standing, wrap), score) in enumerate(zip(tried, scores, strict=True))
    ]

"""The attacks that a scorer ships, as an attacker that asks nothing before it strikes.

They are on tasks of their own: each is one attempt with one question.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from adjudge.evals.attacks.attacker import Attempt, Hit, Tell
from adjudge.evals.attacks.config import SHIPPED
from adjudge.evals.attacks.target import AttackRow, Standing, Target, Wrap
from adjudge.protocol import Score, Scorer, Verifier, response_text
from adjudge.runtime.contract import score_checked
from adjudge.runtime.verifying import VerifierScorer
from adjudge.scoring.attacks import AttackCase, suite_of

_CHUNK = 16  # cases in one call


async def shipped_attempts(target: Target, *, right: float, tell: Tell) -> list[Attempt]:
    """Return what becomes of each attack of the suite; none where no suite is shipped."""
    shipper = getattr(target.scorer, "verifier", target.scorer)
    suite = suite_of(shipper)
    if suite is None:
        return []
    with tempfile.TemporaryDirectory(prefix="adjudge-attacks-") as folder:
        cases = [case for case in suite(Path(folder)) if not case.honest]
        scores = await suite_scores(shipper, cases, lambda done: tell(SHIPPED, done, done / len(cases)))
    target.count(scores)
    return [_attempt(case, score, right) for case, score in zip(cases, scores, strict=True)]


async def suite_scores(
    shipper: Verifier | Scorer, cases: Sequence[AttackCase], tell: Callable[[int], None]
) -> list[Score]:
    """Return the scores of a suite's cases, in their order; those with the same options are scored together.

    Args:
        shipper: who ships them, a verifier or a scorer; a case's own options take the place of its.
        cases: some of its suite.
        tell: who is told how many are done.

    Raises:
        BrokenScorer: the scorer broke the protocol.
    """
    groups: dict[str, list[int]] = {}
    for index, case in enumerate(cases):
        groups.setdefault(json.dumps(dict(case.options), sort_keys=True, default=repr), []).append(index)
    found: dict[int, Score] = {}
    for places in groups.values():
        options = cases[places[0]].options
        changed: Any = dataclasses.replace(shipper, **options) if options else shipper  # type: ignore[type-var]
        scorer: Scorer = VerifierScorer(changed) if isinstance(changed, Verifier) else changed
        for start in range(0, len(places), _CHUNK):
            chunk = places[start : start + _CHUNK]
            scores = await score_checked(scorer, [cases[index].sample for index in chunk])
            found.update(zip(chunk, scores, strict=True))
            tell(len(found))
    return [found[index] for index in range(len(cases))]


def _attempt(case: AttackCase, score: Score, right: float) -> Attempt:
    row = AttackRow(id=case.id, prompt=case.tries or case.sample.prompt, reference=case.sample.reference)
    standing = Standing(row=row, base=None, good=None, threshold=right)
    hit = None
    if score.value is not None:
        hit = Hit(wrap=Wrap(before=response_text(case.sample), keep=False), value=score.value, query=1)
    return Attempt(
        attacker=SHIPPED,
        standing=standing,
        queries=1,
        unscored=int(hit is None),
        won=hit if standing.won_by(score.value) else None,
        guessed=None,
        hedged=None,
        best=hit,
    )

"""The attack suite that a scorer ships, tried on it as it is configured.

Attacks must score as a wrong answer does, and the honest responses near them as a right one.  A comparator that is
told to be lenient may well pay for an attack, and a strict one may refuse an honest response: then that is what the
options mean, and the findings say so.

Not covered: composites, whose parts can be checked one by one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from adjudge.cli.trials import Check, Finding, brief
from adjudge.protocol import Score, Scorer
from adjudge.runtime.loop import run_blocking
from adjudge.scoring.attacks import AttackCase, suite_of


def attack_checks(scorer: Scorer, *, right: float, wrong: float, tell: Callable[[str, int, int], None]) -> list[Check]:
    """Try the suite that a scorer ships.

    Args:
        scorer: the scorer.
        right: the least value of an honest response.
        wrong: the largest value of an attack.
        tell: called with the name of the running trial, samples done, and samples in all.

    Returns:
        What became of the attacks and of the honest responses; nothing where no suite is shipped.
    """
    from adjudge.evals.attacks.attacking import suite_scores

    shipper = getattr(scorer, "verifier", scorer)
    suite = suite_of(shipper)
    if suite is None:
        return []
    with tempfile.TemporaryDirectory(prefix="adjudge-attacks-") as folder:
        cases = list(suite(Path(folder)))
        scores = run_blocking(suite_scores(shipper, cases, lambda done: tell("attacks", done, len(cases))))
    attacks: list[Finding] = []
    honest: list[Finding] = []
    for case, score in zip(cases, scores, strict=True):
        if case.honest and (score.value is None or score.value < right):
            honest.append(_finding(case, score, f"an honest response got {brief(score)}"))
        elif not case.honest and (score.value is None or score.value > wrong):
            attacks.append(_finding(case, score, f"it got {brief(score)}"))
    tried = sum(not case.honest for case in cases)
    return [
        _check("attacks", tried, attacks, f"none scores above {wrong:g}"),
        _check("honest neighbours", len(cases) - tried, honest, f"all score {right:g}"),
    ]


def _finding(case: AttackCase, score: Score, problem: str) -> Finding:
    how = "an honest response" if case.honest else case.tries or "an attack"
    return Finding(row=case.id, how=how, sample=case.sample, score=score, problem=problem)


def _check(name: str, tried: int, found: Sequence[Finding], fine: str) -> Check:
    if not tried:
        return Check(name=name, outcome="skipped", detail="the suite has none for these options")
    detail = f"{len(found)} of {tried} failed" if found else fine
    return Check(name=name, outcome="failed" if found else "ok", tried=tried, detail=detail, findings=tuple(found))

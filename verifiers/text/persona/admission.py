"""Which generated material may judge: RAIDEN-R1's two rules.

A keyword is kept when several models' reference answers agree on it.  A generated checker is kept when its verdicts
agree with a judge's on more than 70 % of a set of answers.

A checker that always says yes agrees with a judge on 80 % where 80 % of the answers are right.  So agreement on the
right ones and on the wrong ones is counted apart, and by default both must pass; `balanced=False` is the published
rule.

Source: RAIDEN-R1 (2505.10218); there is no code by the authors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.protocol import Sample
from adjudge.responses.phrases import affirmed_in
from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.verifiers.code.program import ProgramVerifier

MIN_AGREEMENT = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Whether a checker may judge, and the share of answers on which checker and judge agree, in [0, 1].

    `on_right` and `on_wrong` are that share among answers the judge calls right, and among the others; None if there
    are none.  `silent` is the share on which the checker gave no verdict; each counts as a disagreement.
    """

    admitted: bool
    agreement: float
    on_right: float | None
    on_wrong: float | None
    silent: float


def admission(
    verdicts: Sequence[bool | None],
    judged: Sequence[bool],
    *,
    least: float = MIN_AGREEMENT,
    balanced: bool = True,
) -> Admission:
    """Return whether a checker agrees with a judge often enough, by the verdicts of both, None where it gave none.

    `least` must be exceeded; where `balanced`, on right and on wrong answers alike, and both must be there.
    """
    if not judged or len(verdicts) != len(judged):
        raise ValueError(f"{len(verdicts)} verdicts for {len(judged)} judged answers; give one for each, at least one")
    if not 0 <= least < 1:
        raise ValueError(f"least is {least!r}; it must be at least 0 and below 1")
    pairs = list(zip(verdicts, judged, strict=True))
    agreement = sum(verdict is truth for verdict, truth in pairs) / len(pairs)
    on_right = _share([verdict is True for verdict, truth in pairs if truth])
    on_wrong = _share([verdict is False for verdict, truth in pairs if not truth])
    parts = (agreement, on_right, on_wrong) if balanced else (agreement,)
    return Admission(
        admitted=all(part is not None and part > least for part in parts),
        agreement=agreement,
        on_right=on_right,
        on_wrong=on_wrong,
        silent=sum(verdict is None for verdict in verdicts) / len(pairs),
    )


def agreed_keyword(references: Sequence[str], keyword: str | Sequence[str], *, least: int = 2) -> bool:
    """Return whether a keyword, in one of its ways, stands in `least` models' answers, and in more than half."""
    ways = [keyword] if isinstance(keyword, str) else keyword
    holding = sum(any(affirmed_in(way, text) for way in ways) for text in references)
    return holding >= least and 2 * holding > len(references)


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


class TrialTimeoutError(Exception):
    """A checker took too long on the labelled answers."""


def try_checker(
    source: str,
    prompt: str,
    good: Sequence[str],
    bad: Sequence[str],
    *,
    runner: ProgramVerifier | None = None,
    least: float = MIN_AGREEMENT,
    balanced: bool = True,
    seconds: float = 60.0,
) -> Admission:
    """Return whether a checker agrees with a judge on answers to a prompt that the judge calls good, and bad.

    The source is Python that defines `check(prompt, response)`; `runner` is the sandbox and its limits, `seconds` the
    wall time for all answers together, and the rest as for `admission`.

    Raises:
        BadReferenceError: it is no such program, or does what checkers may not.
        SandboxUnavailableError: there is no sandbox on this machine.
        TrialTimeoutError: the time is over.
    """
    run = runner or ProgramVerifier()
    run.validate(Sample(prompt=prompt, response="", reference=source))
    end = time.monotonic() + seconds
    verdicts: list[bool | None] = []
    for text in (*good, *bad):
        if time.monotonic() > end:
            raise TrialTimeoutError(f"the checker judged {len(verdicts)} of {len(good) + len(bad)} in {seconds:g} s")
        verdicts.append(_verdict(run, Sample(prompt=prompt, response=text, reference=source)))
    return admission(verdicts, [True] * len(good) + [False] * len(bad), least=least, balanced=balanced)


def _verdict(run: ProgramVerifier, sample: Sample) -> bool | None:
    score = run.verify(sample)
    if score.reason in ("engine_unavailable", "overloaded"):
        raise SandboxUnavailableError(str(score.evidence.get("error", "")))
    if score.value is None or score.reason == "candidate_error":
        return None
    return score.value > 0.5

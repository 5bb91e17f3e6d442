"""Trying a generated checker: it runs in the sandbox on answers that a judge has labelled, and must agree with it.

Not covered: writing checkers and labelling answers; `adjudge data keywords` does the first, a judge the second.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from adjudge.protocol import Sample
from adjudge.verifiers.execution.bubblewrap import SandboxUnavailableError
from adjudge.verifiers.persona.admission import LEAST_AGREEMENT, Admission, admission
from adjudge.verifiers.rubric.program import ProgramVerifier


class TrialTimeoutError(Exception):
    """A checker took too long on the labelled answers."""


def try_checker(
    source: str,
    prompt: str,
    good: Sequence[str],
    bad: Sequence[str],
    *,
    runner: ProgramVerifier | None = None,
    least: float = LEAST_AGREEMENT,
    balanced: bool = True,
    seconds: float = 60.0,
) -> Admission:
    """Return whether a checker agrees with a judge on labelled answers.

    Args:
        source: Python that defines `check(prompt, response)`.
        prompt: what the answers answer.
        good: those the judge calls right.
        bad: those it calls wrong.
        runner: the sandbox and its limits; None for the usual ones.
        least: the agreement that must be exceeded.
        balanced: whether on right and on wrong answers alike.
        seconds: of wall time for all answers together.

    Raises:
        BadReferenceError: it is no such program, or does what checkers may not.
        SandboxUnavailableError: there is no sandbox on this machine.
        TrialTimeoutError: the time is over.
        ValueError: there are no answers, or `least` is outside [0, 1).
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
    """What a checker says of one answer; None if it says nothing."""
    score = run.verify(sample)
    if score.reason in ("engine_unavailable", "overloaded"):
        raise SandboxUnavailableError(str(score.evidence.get("error", "")))
    if score.value is None or score.reason == "candidate_error":
        return None
    return score.value > 0.5

"""The closed list of reason codes.

A reason says *why* a score is what it is, in a word a program can count.  Each code belongs to one side:

- the candidate's side (`CANDIDATE`): what the response did.  Such a score is a number, usually 0, so that no
  response can escape a zero by breaking the verifier;
- our side (`OURS`): what kept us from judging.  Such a score has `status="failed"` and no number;
- `DECLINED`: nothing is broken, and the scorer gives no verdict (`status="abstained"`).

Not covered: free text.  Details belong in `Score.evidence`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CANDIDATE: Final[dict[str, str]] = {
    "": "nothing to add: the value says it all",
    "wrong": "the answer was understood and is not the reference",
    "no_answer": "the response holds no answer where one was asked for",
    "several_answers": "the response offers several different answers, so it commits to none",
    "unfinished_reasoning": "the response ends inside its reasoning; nothing after it was answered",
    "truncated": "the response was cut off at the token limit before it could finish",
    "unparsable_answer": "an answer was found but it is not in a form this scorer can read",
    "undecided": "both sides were understood, and equality could be neither shown nor refuted",
    "too_complex": "the response exceeds a size limit of the scorer",
    "candidate_timeout": "judging this response took longer than the time limit",
    "candidate_memory": "judging this response took more memory than the limit",
    "candidate_crash": "this response kills the process that judges it, on a second try too",
    "candidate_error": "the response's own program or call raised an error",
    "candidate_output": "the response's own program printed more than the limit",
    "tampering": "the response tried to influence its verdict",
    "bad_format": "the response does not have the required form",
    "too_short": "the response is shorter than asked",
    "too_long": "the response is longer than asked",
    "repetition": "the response repeats itself",
    "gated": "a gate scored too low, so the main score does not count",
}

OURS: Final[dict[str, str]] = {
    "bad_sample": "the sample cannot be judged as given: a missing or malformed field",
    "gold_unparsable": "the reference cannot be read or finds nothing, so nothing can be compared with it",
    "gold_timeout": "the reference alone exceeds the time, memory or size limit",
    "undecided": "the answer could be neither shown nor refuted, and the scorer was asked to say so",
    "verifier_error": "the scorer raised an error; evidence names it",
    "worker_died": "the worker process was lost for a reason that is not the sample's",
    "closed": "the scorer was closed before this sample was judged",
    "scorer_timeout": "the service's deadline for a call of the scorer passed, and there was no score",
    "expired": "the caller's deadline passed before the scorer could begin",
    "cohort_incomplete": "the rest of the group did not come in time",
    "part_failed": "a part of a composite has no number, so the whole has none",
    "group_too_small": "a group statistic needs more scored members",
    "engine_unavailable": "the model, database or program behind the scorer is missing or did not answer",
    "engine_timeout": "the model behind the scorer did not answer before the deadline",
    "overloaded": "the machine was too busy to run the response's program for as long as its limit allows",
    "engine_overloaded": "the server behind the scorer turned the request away for lack of capacity, on every try",
    "engine_error": "the model behind the scorer refused the request or answered with something that is not a result",
    "judge_truncated": "the judge's answer was cut off before a verdict",
    "judge_unparsable": "the judge answered without a verdict that can be read",
}

DECLINED: Final[dict[str, str]] = {
    "out_of_scope": "the sample is of a kind this scorer does not judge",
    "low_confidence": "the scorer is not sure enough to give a number",
    "still_unknown": "no stage of a cascade reached a verdict",
}

ALL: Final[frozenset[str]] = frozenset(CANDIDATE) | frozenset(OURS) | frozenset(DECLINED)

TRANSIENT: Final[frozenset[str]] = frozenset(
    "engine_unavailable engine_timeout engine_overloaded engine_error overloaded worker_died scorer_timeout expired "
    "closed".split()
)
"""With these the same question may get a score another time: a server answers 503, and its client asks again."""


class ReasonedError(ValueError):
    """What a response holds is not what is asked for; `reason` is a code of `CANDIDATE`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def of_parts(reasons: Iterable[str]) -> str:
    """Return the reason of a score that lacks other scores, by their reasons: a transient one stays what it is."""
    return next((reason for reason in reasons if reason in TRANSIENT), "part_failed")


def describe(reason: str) -> str:
    """Return the one-line meaning of a reason code.

    Raises:
        ValueError: the code is not in the list.
    """
    for table in (CANDIDATE, OURS, DECLINED):
        if reason in table:
            return table[reason]
    raise ValueError(f"unknown reason code {reason!r}; adjudge.reasons lists the {len(ALL)} codes there are")

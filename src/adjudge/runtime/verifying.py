"""Verifiers as scorers: one `verify` call per sample in the worker pool, and a score for everything that can happen.

A sample whose call had to be killed is judged a second time with an empty response.  If that is killed too, the
reference is at fault and nothing is scored; else the response is, and the verifier's `killed` says what that is
worth, 0 by default.  So no response can break its way out of a zero, and no bad reference makes one.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeAlias

from adjudge.frozen import unchecked
from adjudge.protocol import NO_COST, NO_PROVENANCE, Cost, Provenance, Sample, Score, Verifier
from adjudge.runtime.job import Outcome
from adjudge.runtime.pickling import collector_paused
from adjudge.runtime.pool import Pool, Results, default_pool

Verdict: TypeAlias = tuple[Any, ...] | bytes | str
"""What a worker sends: a plain score's fields, any other score pickled, or what is wrong with the verifier."""

_sample_fields = attrgetter("prompt", "response", "reference", "id", "group", "finish_reason", "extra")
_SENT = ("value", "status", "reason", "evidence", "uncertainty")
_score_fields = attrgetter(*_SENT)

# Of fields that the worker's own Score was made of, so they were checked there.
_score_of = unchecked(Score, (*_SENT, "provenance", "cost"), {"steps": "()", "parts": "{}"})
_cost_of = unchecked(Cost, ("seconds",), {"prompt_tokens": "0", "completion_tokens": "0"})

_CANDIDATE = {"timeout": "candidate_timeout", "memory": "candidate_memory", "crash": "candidate_crash"}
_OURS = {
    "raised": "verifier_error",
    "overloaded": "overloaded",
    "lost": "worker_died",
    "closed": "closed",
    "late": "scorer_timeout",
}


class VerifyCall:
    """A pool's target: judges the fields of a sample.

    Fields travel as plain tuples, because frozen dataclasses are pickled by Python code, field by field.

    Args:
        verifier: what judges.
    """

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def __repr__(self) -> str:
        return f"the verifier {self._verifier.name!r}"

    def warm_up(self) -> None:
        """Let a verifier that has a method `warm_up` do its imports before any sample's time runs."""
        warm_up = getattr(self._verifier, "warm_up", None)
        if callable(warm_up):
            warm_up()

    def __call__(self, fields: tuple[Any, ...]) -> Verdict:
        """Judge one sample."""
        prompt, response, reference, identity, group, finish_reason, extra = fields
        score = self._verifier.verify(
            Sample(
                prompt=prompt,
                response=response,
                reference=reference,
                id=identity,
                group=group,
                finish_reason=finish_reason,
                extra=extra,
            )
        )
        if not isinstance(score, Score):
            return f"verify returned {type(score).__name__}, not a Score"
        if score.steps or score.parts or score.provenance is not NO_PROVENANCE or score.cost is not NO_COST:
            return pickle.dumps(score)
        return tuple(_score_fields(score))


class VerifierScorer:
    """A scorer that runs a verifier in a pool.

    Args:
        verifier: what judges one sample.
        pool: where; by default the pool that all scorers of this process share.

    Raises:
        ValueError: `verifier` is not a `Verifier`.
    """

    def __init__(self, verifier: Verifier, pool: Pool | None = None) -> None:
        if not isinstance(verifier, Verifier):
            raise ValueError(
                f"VerifierScorer runs an instance of adjudge.Verifier, not {verifier!r}; derive its class from Verifier"
            )
        self._verifier = verifier
        self._pool = pool
        self._provenance = Provenance(scorer=verifier.name, fingerprint=verifier.fingerprint)
        self._call = VerifyCall(verifier)

    @property
    def verifier(self) -> Verifier:
        """The verifier that judges."""
        return self._verifier

    @property
    def name(self) -> str:
        """The verifier's name."""
        return self._provenance.scorer

    @property
    def fingerprint(self) -> str:
        """The verifier's fingerprint."""
        return self._provenance.fingerprint

    def __repr__(self) -> str:
        return f"VerifierScorer({self._verifier!r})"

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the sample lacks what the verifier needs."""
        self._verifier.validate(sample)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; one that found the machine overloaded is tried again alone.

        Raises:
            ValueError: the verifier cannot be pickled.
            TargetError: the verifier cannot be loaded in a worker process.
        """
        scores = await self._scored(samples)
        for index, score in enumerate(scores):
            if score.reason == "overloaded":
                (scores[index],) = await self._scored([samples[index]])
        return scores

    async def _scored(self, samples: Sequence[Sample]) -> list[Score]:
        scores: list[Score | None] = [None] * len(samples)
        valid: list[int] = []
        with collector_paused():
            for index, sample in enumerate(samples):
                try:
                    self._verifier.validate(sample)
                except ValueError as error:
                    scores[index] = self._failed("bad_sample", str(error))
                else:
                    valid.append(index)
        results = await self._run(samples if len(valid) == len(samples) else [samples[index] for index in valid])
        with collector_paused():
            for index, verdict, seconds in zip(valid, results.values, results.seconds, strict=True):
                if verdict is not None:
                    scores[index] = self._score(verdict, seconds)
        killed: dict[int, Outcome[Verdict]] = {}
        for position, outcome in results.odd.items():
            if outcome.kind in _CANDIDATE:
                killed[valid[position]] = outcome
            else:
                scores[valid[position]] = self._ours(outcome)
        if killed:
            gold_only = [dataclasses.replace(samples[index], response="") for index in killed]
            alone = (await self._run(gold_only)).outcomes()
            for (index, outcome), gold in zip(killed.items(), alone, strict=True):
                scores[index] = self._after_kill(samples[index], outcome, gold)
        return [score for score in scores if score is not None]

    async def _run(self, samples: Sequence[Sample]) -> Results[Verdict]:
        pool = default_pool() if self._pool is None else self._pool
        return await pool.collect(self._call, samples, limits=self._verifier.limits, encode=_sample_fields)

    def _score(self, verdict: Verdict, seconds: float) -> Score:
        if isinstance(verdict, tuple):
            return _score_of(*verdict, self._provenance, _cost_of(seconds))
        if isinstance(verdict, bytes):
            return self._signed(pickle.loads(verdict), seconds)
        return self._failed("verifier_error", verdict, seconds)

    def _ours(self, outcome: Outcome[Verdict]) -> Score:
        """Return the score of a call that came to nothing, for which the response is not to blame."""
        reason = _OURS[outcome.kind] if outcome.delivered else "bad_sample"
        return self._failed(reason, outcome.error, outcome.seconds)

    def _after_kill(self, sample: Sample, outcome: Outcome[Verdict], alone: Outcome[Verdict]) -> Score:
        """Return the score of a sample whose call was killed, given what became of its reference alone."""
        seconds = outcome.seconds + alone.seconds
        if alone.kind in _CANDIDATE:
            return self._failed("gold_timeout", f"with an empty response, too: {alone.error}", seconds)
        if alone.value is None:
            return self._ours(alone)
        gold = self._score(alone.value, alone.seconds)
        if gold.status == "failed":
            return gold
        try:
            score = self._verifier.killed(sample, _CANDIDATE[outcome.kind])
        except Exception as error:  # noqa: BLE001 the verifier's own method, named in the score
            return self._failed("verifier_error", f"killed() raised {type(error).__name__}: {error}", seconds)
        if not isinstance(score, Score):
            return self._failed("verifier_error", f"killed() returned {type(score).__name__}, not a Score", seconds)
        evidence = {"error": outcome.error, **score.evidence}
        return self._signed(dataclasses.replace(score, evidence=evidence), seconds)

    def _signed(self, score: Score, seconds: float) -> Score:
        provenance = dataclasses.replace(
            score.provenance, scorer=self._provenance.scorer, fingerprint=self._provenance.fingerprint
        )
        cost = dataclasses.replace(score.cost, seconds=score.cost.seconds or seconds)
        return dataclasses.replace(score, provenance=provenance, cost=cost)

    def _failed(self, reason: str, error: str, seconds: float = 0.0) -> Score:
        return dataclasses.replace(
            Score.failed(reason, error=error), provenance=self._provenance, cost=Cost(seconds=seconds)
        )

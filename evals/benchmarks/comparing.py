"""Pairs, for a scorer whose reference is the other response: what it says in one order, and in the other.

Each sample of a pair is asked about with the other one as its reference.  A scorer that plays both orders itself is
asked once, and the two orders are read from its evidence; asking it twice would be the same two games again.

Not covered: lists.  A scorer that compares within groups ranks those by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge.data_pipelines.label.stages import LocalBench
from adjudge.evals.benchmarks.asking import asked
from adjudge.evals.benchmarks.case import Case
from adjudge.evals.benchmarks.given import Given, of_score
from adjudge.protocol import Sample, Score, Scorer, response_text


def compares(scorer: Scorer) -> bool:
    """Return whether a scorer says that its reference is the other response."""
    return getattr(scorer, "against", None) == "reference"


def beside(case: Case) -> tuple[Sample, ...]:
    """Return the samples of a case as such a scorer wants them; one sample alone keeps its reference.

    Raises:
        ValueError: there are more than two.
    """
    match case.samples:
        case (_,):
            return case.samples
        case (first, second):
            return (
                replace(first, reference=_reference(first, response_text(second))),
                replace(second, reference=_reference(second, response_text(first))),
            )
    raise ValueError(
        f"the case {case.id!r} has {len(case.samples)} responses, and the scorer compares a response with one "
        "other; take a scorer that compares within groups: the option against: group, or a tournament of it"
    )


class Comparing:
    """A scorer that compares a response with the other one of its pair.

    Args:
        bench: the scorer, ready to be asked.
        scorer: the same, as it was made.
        spec: what it was made of.

    Raises:
        ValueError: it does not give shares.
    """

    def __init__(self, bench: LocalBench, scorer: Scorer, spec: str) -> None:
        output = getattr(scorer, "output", "unit")
        if output != "unit":
            raise ValueError(
                f"the scorer {scorer.name!r} has the output {output!r}, and a pair is decided by shares from 0 to 1; "
                "set its option output: unit"
            )
        self._bench = bench
        self._spec = spec
        self._both_at_once = getattr(scorer, "orders", None) == "both"
        self._advantages: Mapping[str, float] = getattr(scorer, "advantages", {})

    def sees_orders(self, case: Case) -> bool:
        """Return that it sees pairs."""
        return True

    def facts(self) -> Mapping[str, Any]:
        """Return its name, fingerprint and spec."""
        return {"name": self._bench.name, "fingerprint": self._bench.fingerprint, "spec": self._spec}

    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return the share of each response: the first one's from one order, the second one's from the other.

        Raises:
            ValueError: a case has more than two responses, or a value is no share.
        """
        pairs = [beside(case) for case in cases]
        once = [self._both_at_once and len(pair) == 2 for pair in pairs]
        asked_now = [pair[:1] if single else pair for pair, single in zip(pairs, once, strict=True)]
        answers = await self._answers(cases, asked_now)
        again = [place for place, own in enumerate(answers) if once[place] and _without_games(own[0])]
        seconds = await self._answers([cases[place] for place in again], [pairs[place][1:] for place in again])
        for place, second in zip(again, seconds, strict=True):
            answers[place] += second
        return [
            [of_score(one) for one in own] if len(own) == len(pair) else self._two_orders(own[0])
            for own, pair in zip(answers, pairs, strict=True)
        ]

    async def _answers(self, cases: Sequence[Case], samples: Sequence[Sequence[Sample]]) -> list[list[Score]]:
        found = iter(await asked(self._bench, [sample for some in samples for sample in some]))
        answers = [[next(found) for _ in some] for some in samples]
        for case, own in zip(cases, answers, strict=True):
            for verdict in own:
                self._check(case, verdict)
        return answers

    def _two_orders(self, verdict: Score) -> list[Given]:
        """Return the shares of both responses from the games of one, the first game's and the swapped one's."""
        given = of_score(verdict)
        games: Any = verdict.evidence.get("orders", ())
        shares = {game["first"]: self._share_of_first(game["verdict"]) for game in games}
        if given.value is not None and set(shares) == {"response", "other"}:
            return [given._replace(value=shares["response"]), _free(given._replace(value=shares["other"]))]
        return [given, _free(given)]  # equal responses, which are even; or no verdict

    def _share_of_first(self, label: str) -> float:
        advantage = self._advantages[label]
        return 1.0 if advantage > 0 else 0.0 if advantage < 0 else 0.5

    def _check(self, case: Case, verdict: Score) -> None:
        if verdict.value is not None and not 0 <= verdict.value <= 1:
            raise ValueError(
                f"the scorer {self._bench.name!r} gave the case {case.id!r} the value {verdict.value!r}; whoever "
                "compares two responses must give shares from 0 to 1. If it scores single responses, say --compare no"
            )


def _without_games(verdict: Score) -> bool:
    """Whether a number came about without a game between two responses: one of them held nothing to judge."""
    if verdict.value is None:
        return False
    return not (verdict.evidence.get("orders") or verdict.evidence.get("identical"))


def _free(given: Given) -> Given:
    """Return the same without its cost, which counts once."""
    return given._replace(cost=Given(None, "failed").cost)


def _reference(sample: Sample, other: str) -> Any:
    """Return the other response, with the sample's own reference beside it as a good answer to show."""
    if isinstance(sample.reference, str) and sample.reference:
        return {"response": other, "answer": sample.reference}
    return other

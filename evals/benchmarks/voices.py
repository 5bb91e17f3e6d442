"""Who is asked about the samples of cases: a scorer, the scores in the benchmark's file, or a file of scores.

A scorer whose reference is the other response is asked about each sample of a pair with the other one as its reference:
what it says in one order, and in the other.  One that plays both orders itself is asked once, and the two orders are
read from its evidence.  A score that depends on its group is cached under the whole group and its own place.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.evals.benchmarks.benchmark import STORED, Benchmark, BenchmarkConfig
from adjudge.evals.benchmarks.case import Case, Given, of_score, stored_of
from adjudge.evals.benchmarks.reading import OtherInput, ScoreFile, Voice
from adjudge.protocol import NO_COST, Sample, Score, Scorer, response_text
from adjudge.runtime.cache import CachedScorer, ScoreCache, score_key
from adjudge.runtime.contract import score_checked
from adjudge.scoring import registry


def check_texts(cases: Sequence[Case]) -> None:
    """Raise `ValueError` if a case holds scores and no texts, so that there is nothing to ask about."""
    bare = next((case.id for case in cases if not case.texts), None)
    if bare is not None:
        raise ValueError(
            f"the case {bare!r} comes from a row that holds scores and no texts, so no scorer can be asked about it; "
            "evaluate what the input holds with --scorer stored"
        )


async def asked(bench: LocalBench, samples: Sequence[Sample]) -> list[Score]:
    """Return the scorer's answers; a sample that lacks what it needs is refused, and the others are judged."""
    verdicts = await bench.judge(samples)
    scores = [verdict for verdict in verdicts if isinstance(verdict, Score)]
    assert len(scores) == len(verdicts), "a scorer in this process gives scores, not lines"
    return scores


def compares(scorer: Scorer) -> bool:
    """Return whether a scorer says that its reference is the other response."""
    return getattr(scorer, "against", None) == "reference"


def beside(case: Case) -> tuple[Sample, ...]:
    """Return the samples of a case as such a scorer wants them; one sample alone keeps its reference."""
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


class ScorerVoice(Voice):
    """A scorer that sees each sample; `spec` is what it was made of."""

    def __init__(self, bench: LocalBench, spec: str) -> None:
        self._bench = bench
        self._spec = spec

    def facts(self) -> Mapping[str, Any]:
        """Return its name, fingerprint and spec."""
        return {"name": self._bench.name, "fingerprint": self._bench.fingerprint, "spec": self._spec}

    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return what the scorer says; cases stay whole, so that scorers of groups see theirs."""
        verdicts = iter(await asked(self._bench, [sample for case in cases for sample in case.samples]))
        return [[of_score(next(verdicts)) for _ in case.samples] for case in cases]


class Comparing(ScorerVoice):
    """A scorer that compares a response with the other one of its pair."""

    def __init__(self, bench: LocalBench, scorer: Scorer, spec: str) -> None:
        super().__init__(bench, spec)
        output = getattr(scorer, "output", "unit")
        if output != "unit":
            raise ValueError(
                f"the scorer {scorer.name!r} has the output {output!r}, and a pair is decided by shares from 0 to 1; "
                "set its option output: unit"
            )
        self._both_at_once = getattr(scorer, "orders", None) == "both"
        self._advantages: Mapping[str, float] = getattr(scorer, "advantages", {})

    def sees_orders(self, case: Case) -> bool:
        """Return that it sees pairs."""
        return True

    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return the share of each response: the first one's from one order, the second one's from the other."""
        pairs = [beside(case) for case in cases]
        once = [self._both_at_once and len(pair) == 2 for pair in pairs]
        asked_now = [pair[:1] if single else pair for pair, single in zip(pairs, once, strict=True)]
        answers = await self._answers(cases, asked_now)
        games = [own[0].evidence.get("orders") or own[0].evidence.get("identical") for own in answers]
        # A number came about without a game between two responses where one of them held nothing to judge.
        again = [at for at, own in enumerate(answers) if once[at] and own[0].value is not None and not games[at]]
        seconds = await self._answers([cases[place] for place in again], [pairs[place][1:] for place in again])
        for place, second in zip(again, seconds, strict=True):
            answers[place] += second
        return [
            [of_score(one) for one in own] if len(own) == len(pair) else self._two_orders(own[0])
            for own, pair in zip(answers, pairs, strict=True)
        ]

    async def _answers(self, cases: Sequence[Case], samples: Sequence[Sequence[Sample]]) -> list[list[Score]]:
        scores = iter(await asked(self._bench, [sample for some in samples for sample in some]))
        answers = [[next(scores) for _ in some] for some in samples]
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


def _free(given: Given) -> Given:
    """Return the same without its cost, which counts once."""
    return given._replace(cost=NO_COST)


def _reference(sample: Sample, other: str) -> Any:
    """Return the other response, with the sample's own reference beside it as a good answer to show."""
    if isinstance(sample.reference, str) and sample.reference:
        return {"response": other, "answer": sample.reference}
    return other


class KeptScorer(CachedScorer):
    """A scorer in front of which a cache stands."""

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; the samples of one group stand together, and are a whole group."""
        if not self.groupwise:
            return await super().score(samples)
        groups = [list(members) for _, members in groupby(samples, key=lambda sample: sample.group)]
        keys = [_keys(self.fingerprint, group) for group in groups]
        known = await asyncio.to_thread(self.cache.get, [key for some in keys for key in some])
        missing = [place for place, some in enumerate(keys) if not some or any(key not in known for key in some)]
        fresh = iter(await score_checked(self.scorer, [sample for place in missing for sample in groups[place]]))
        scores = {place: [next(fresh) for _ in groups[place]] for place in missing}
        await asyncio.to_thread(
            self.cache.put,
            {key: score for place in missing for key, score in zip(keys[place], scores[place], strict=False)},
        )
        return [
            score
            for place, some in enumerate(keys)
            for score in (scores[place] if place in scores else [known[key] for key in some])
        ]


def _keys(fingerprint: str, group: Sequence[Sample]) -> list[bytes]:
    """The key of each sample of a group; none where the group holds something that JSON cannot."""
    try:
        whole = hashlib.sha256(b"".join(score_key(fingerprint, sample) for sample in group)).digest()
    except TypeError:
        return []
    return [hashlib.sha256(whole + place.to_bytes(4)).digest() for place in range(len(group))]


_CACHE: Final = "scores.sqlite"
_CACHE_BYTES: Final = 16 << 30
_SCORE_FILES: Final = (".jsonl", ".ndjson", ".parquet", ".jsonl.gz", ".ndjson.gz")


class StoredVoice(Voice):
    """The scores that stand in the benchmark's own file."""

    def sees_orders(self, case: Case) -> bool:
        """Return what the file says."""
        return case.compared

    def facts(self) -> Mapping[str, Any]:
        """Return that they are stored."""
        return {"name": STORED, "fingerprint": ""}

    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return what is stored; a case of which nothing is has no verdict."""
        return [stored_of(case) for case in cases]


@contextmanager
def voices(config: BenchmarkConfig, benchmark: Benchmark) -> Iterator[list[Voice]]:
    """Open who is evaluated, and whom it is tested against if there is one.

    With an output folder, scores are kept there, and a run that was stopped goes on.
    """
    with ExitStack() as opened:
        specs = [spec for spec in (config.scorer, config.against) if spec and not _is_file(spec) and spec != STORED]
        cache = None
        if config.output and specs:
            path = Path(config.output) / _CACHE
            cache = opened.enter_context(ScoreCache(path, max_bytes=_CACHE_BYTES))
        first = _of_file(config.scores, config) if config.scores else _of_spec(config.scorer, config, cache)
        yield [first, *_others(config, benchmark, cache)]


def _others(config: BenchmarkConfig, benchmark: Benchmark, cache: ScoreCache | None) -> list[Voice]:
    if config.against_input:
        return [OtherInput(config, benchmark)]
    if not config.against:
        return []
    return [_of_file(config.against, config) if _is_file(config.against) else _of_spec(config.against, config, cache)]


def _is_file(spec: str) -> bool:
    return spec.endswith(_SCORE_FILES)  # a .json file is a spec


def _of_file(path: str, config: BenchmarkConfig) -> Voice:
    return ScoreFile(path, config.scores_of, compared=config.compare == "yes")


def _of_spec(spec: str, config: BenchmarkConfig, cache: ScoreCache | None) -> Voice:
    if spec == STORED:
        return StoredVoice()
    scorer = registry.load(spec)
    bench = LocalBench(scorer if cache is None else KeptScorer(scorer, cache))
    if config.compare == "yes" or (config.compare == "auto" and compares(scorer)):
        return Comparing(bench, scorer, spec)
    return ScorerVoice(bench, spec)

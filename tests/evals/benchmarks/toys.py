"""A benchmark of pairs of numbers, and scorers that read them, each with a fault of its own."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from adjudge.evals.benchmarks.benchmark import Benchmark, BenchmarkConfig, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.pairs import verdict
from adjudge.evals.benchmarks.run import run_benchmark
from adjudge.evals.reports.result import Measure, Result
from adjudge.protocol import Cost, Sample, Score, StepScore
from adjudge.statistics.bootstrap import mean_by_part, mean_interval
from adjudge.statistics.intervals import Draws, Interval

HOME = "tests.evals.benchmarks.toys"


@dataclass(frozen=True, kw_only=True)
class Numbers(Benchmark):
    """Which of two numbers is larger."""

    name: ClassVar[str] = "numbers"
    title: ClassVar[str] = "Numbers"
    source: ClassVar[str] = "made for the tests"
    columns: ClassVar[str] = "prompt, responses, better, and maybe part, cluster, stored, finish, skip"

    sections: bool = False
    """Whether the first number is the mean of the parts."""

    def cases(self, row: Mapping[str, Any], place: RowPlace) -> Iterable[Case]:
        """Return the case of a row."""
        if row.get("skip"):
            return
        if not isinstance(row["better"], int):
            raise ValueError(f"better is {row['better']!r}; it must be a place")
        finish = row.get("finish") or [None] * len(row["responses"])
        yield Case(
            id=str(row.get("id", place.number)),
            samples=tuple(
                Sample(
                    prompt=row["prompt"], response=text, reference=row.get("reference"), finish_reason=why,
                    extra=row.get("extra", {}),
                )
                for text, why in zip(row["responses"], finish, strict=True)
            ),
            gold=row["better"],
            cluster=row.get("cluster", ""),
            part=row.get("part", place.file.partition(".")[0] if row.get("by_file") else ""),
            stored=tuple(Stored(value=value) for value in row["stored"]) if "stored" in row else (),
        )  # fmt: skip

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 where the better one has the higher number, half a point for a tie."""
        won = verdict(outcome) if len(outcome.values) == 2 else None  # rows of any shape come here
        if won is None:
            return None
        return 0.5 if won == 0 else float((won == 1) == (outcome.gold == 0))

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the mean credit, of all and of each part; or first the mean of the parts."""
        credits = [self.credit(outcome) or 0.0 for outcome in outcomes]
        clusters, parts = [outcome.cluster for outcome in outcomes], [outcome.part for outcome in outcomes]
        by_part = mean_by_part(credits, parts, clusters, draws)
        whole = Measure(name="accuracy", interval=mean_interval(credits, clusters, draws), published=True)
        found = [Measure(name="accuracy", part=part, interval=one) for part, one in by_part.items() if part]
        if self.sections:
            mean = sum(one.known for one in by_part.values()) / len(by_part)
            return [Measure(name="mean of parts", interval=Interval(value=mean, n=len(credits))), whole, *found]
        return [whole, *found]

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return which is better."""
        return f"number {outcome.gold}", ["better" if place == outcome.gold else "" for place in range(2)]


CALLS: list[list[str]] = []
"""The ids of each call of a scorer."""


class Reader:
    """The number a response begins with; words stand for what goes wrong."""

    name = "reader"
    fingerprint = "reader:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the numbers."""
        CALLS.append([sample.id for sample in samples])
        return [self.one(str(sample.response)) for sample in samples]

    def one(self, text: str) -> Score:
        """Return one number."""
        word = text.split()[0] if text.split() else "nothing"
        match word:
            case "fail":
                return Score.failed("engine_error", error="the engine is tired")
            case "abstain":
                return Score.abstained("low_confidence")
            case "cut":
                return Score.scored(1.0, truncated=True)
            case "steps":
                steps = tuple(StepScore(value=value) for value in (0.5, None))
                return Score(value=2.0, steps=steps)
        return Score(value=float(word), cost=Cost(seconds=0.5, prompt_tokens=3, completion_tokens=1))


class Opposite(Reader):
    """Prefers the smaller number."""

    name = "opposite"
    fingerprint = "opposite:1"

    def one(self, text: str) -> Score:
        """Return the number with the other sign."""
        return Score(value=-float(text.split()[0]))


class Ranks(Reader):
    """The share of its group that a number is larger than."""

    name = "ranks"
    fingerprint = "ranks:1"
    groupwise = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the ranks."""
        CALLS.append([sample.id for sample in samples])
        groups: dict[str, list[float]] = {}
        for sample in samples:
            groups.setdefault(sample.group, []).append(float(str(sample.response).split()[0]))
        assert all(len(group) == 2 for group in groups.values()), "a group was cut"
        return [
            Score(value=sum(float(str(sample.response).split()[0]) > other for other in groups[sample.group]) / 2)
            for sample in samples
        ]


class Against:
    """Whether a number is larger than the one in the reference."""

    name = "against"
    fingerprint = "against:1"
    against = "reference"
    output = "unit"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the shares."""
        CALLS.append([sample.id for sample in samples])
        found = []
        for sample in samples:
            other = sample.reference["response"] if isinstance(sample.reference, dict) else sample.reference
            mine, its = (float(str(text).split()[0]) for text in (sample.response, other))
            found.append(Score(value=(mine > its) + 0.5 * (mine == its)))
        return found


class Wild(Against):
    """Gives shares above 1."""

    name = "wild"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return what is not a share."""
        return [Score(value=3.0) for _ in samples]


class Signed(Against):
    """Gives shares from -1 to 1."""

    name = "signed"
    output = "signed"


class Dying(Reader):
    """Judges 600 samples of a process, and none after."""

    name = "dying"
    fingerprint = "dying:1"
    judged = 0

    def one(self, text: str) -> Score:
        """Return the number while it lasts."""
        Dying.judged += 1
        return super().one(text) if Dying.judged <= 600 else Score.failed("engine_unavailable", error="gone")


class Deadly(Reader):
    """Kills its process after so many calls as the environment says."""

    name = "reader"
    fingerprint = "reader:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return the numbers, or die."""
        scores = await super().score(samples)
        if len(CALLS) > int(os.environ.get("TOY_CALLS", "1000000")):
            os.kill(os.getpid(), signal.SIGKILL)
        return scores


class Broken(Reader):
    """Loses samples."""

    name = "broken"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return too few."""
        return []


def rows(count: int = 40, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of pairs: in three of four the larger number is the better one; two rows share a cluster."""
    draw = random.Random(seed)
    made = []
    for index in range(count):
        numbers = [draw.randrange(100), draw.randrange(100)]
        larger = int(numbers[1] > numbers[0])
        made.append(
            {
                "prompt": f"which of pair {index}?",
                "responses": [f"{number}" + " and so on" * draw.randrange(4) for number in numbers],
                "better": larger if draw.random() < 0.75 else 1 - larger,
                "part": ("low", "high", "even")[index % 3],
                "cluster": f"c{index // 2}",
                "stored": [float(number) for number in numbers],
            }
        )
    return made


def write(path: Path, lines: Iterable[Any]) -> str:
    """Write rows, or raw lines, and return the path as text."""
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return str(path)


def run(source: str, benchmark: Benchmark | None = None, **options: Any) -> Result:
    """Evaluate with few resamples."""
    given: dict[str, Any] = {"resamples": 50, **options}
    return run_benchmark(BenchmarkConfig(input=source, **given), benchmark or Numbers())


def numbers_of(result: Result) -> dict[tuple[str, str], float | None]:
    """The values by name and part."""
    return {(one.name, one.part): one.interval.value for one in result.measures}

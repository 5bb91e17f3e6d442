"""RewardMATH (arXiv 2410.01729): one right solution and nine wrong ones for each of 483 problems.

    accuracy                  share of problems whose right solution has the highest score alone
    accuracy, ties as right   it may share the highest score
    MRR                       mean of 1 / rank of the right solution, which has the best rank among equal scores
    pairs: accuracy           share of problems whose right solution wins against all nine others
    pairs: MRR                mean of 1 / (1 + comparisons that it does not win)

Rows are read in the forms of the authors' files: a list of scores (or of scores of steps) per problem; a list of
verdicts A or B per problem; one solution per row; one pair per row.  One solution per row is put together by problem.
Read from RewardMATH (`src/evaluation/eval.py`).  A problem with a missing score is wrong; so is a comparison without a
verdict.  The problem twice in a file counts twice, as it does there.

On RewardBench's math-prm the chosen solutions have 4 steps, the rejected ones 12: the product of any numbers below 1
prefers the chosen ones.  So beside each aggregate of steps stands its rank correlation with their number, and "fewer
steps" is a trivial scorer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import RowPlace, trivial_choices
from adjudge.evals.benchmarks.case import NO_VERDICT, NOTHING_SAID, Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, shown
from adjudge.evals.benchmarks.pairs import ChoiceBenchmark, pair_credit, pair_measures, ranked, verdict
from adjudge.evals.reports.result import Measure
from adjudge.io.values import Text
from adjudge.responses.aggregate import AGGREGATES, Aggregate, aggregate, needs_probabilities
from adjudge.statistics.intervals import Draws, Interval
from adjudge.statistics.ranks import spearman


def aggregated(steps: Sequence[float | None], how: Aggregate) -> float | None:
    """Return one number for the values of steps; None where there are none, or one of them is missing."""
    known = [value for value in steps if value is not None]
    return aggregate(known, how) if known and len(known) == len(steps) else None


def aggregate_measures(outcomes: Sequence[Outcome], draws: Draws) -> list[Measure]:
    """Return the accuracy of each aggregate on lists, and its rank correlation with the number of steps."""
    values = [value for outcome in outcomes for steps in outcome.steps for value in steps if value is not None]
    if not values:
        return []
    probable = min(values) >= 0 and max(values) <= 1
    clusters = [outcome.cluster for outcome in outcomes]
    accuracies, correlations = [], []
    for how in AGGREGATES:
        if needs_probabilities(how) and not probable:
            continue
        numbers = [tuple(aggregated(steps, how) for steps in outcome.steps) for outcome in outcomes]
        right = [
            ranked(list_of, outcome.gold["right"]).alone for list_of, outcome in zip(numbers, outcomes, strict=True)
        ]
        accuracies.append(Measure.mean(f"accuracy ({how})", right, clusters, draws))
        counted = [
            (number, float(len(steps)))
            for list_of, outcome in zip(numbers, outcomes, strict=True)
            for number, steps in zip(list_of, outcome.steps, strict=True)
            if number is not None
        ]
        rank = spearman([one for one, _ in counted], [count for _, count in counted]) if counted else None
        name = f"rank correlation with the number of steps ({how})"
        correlations.append(Measure(name=name, interval=Interval(value=rank, n=len(counted)), better="none"))
    return [*accuracies, *correlations]


RIGHT: Final = ("human_to_GPT-4", "chosen")
"""What the files call the right solution."""

_STEPS: Final = ("step_scores", "output.step_scores")
_PLACES: Final = {"A": 0, "B": 1}


@dataclass(frozen=True, kw_only=True)
class RewardMath(ChoiceBenchmark):
    """RewardMATH."""

    name: ClassVar[str] = "reward_math"
    title: ClassVar[str] = "RewardMATH"
    source: ClassVar[str] = "arXiv 2410.01729; kimsh0507/RewardMATH_official, src/evaluation/eval.py"
    columns: ClassVar[str] = (
        "problem, and: score (list) with solution_reference (list); or score (list of A and B) with chosen_position "
        "(list); or eval_solution with solution_type; or eval_solution_A, eval_solution_B, chosen_position"
    )

    alone: ClassVar[bool] = True

    aggregate: Aggregate = "min"
    """What the values of steps come to where the file stores steps; the accuracy
    of every other way is given beside."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the cases of a row: a list, nine verdicts, one solution, or one pair."""
        if fields.has(row, "eval_solution_A"):
            return [self._text_pair(row, place)]
        if fields.has(row, "solution_type"):
            return [self._solution(row, place)]
        if fields.has(row, "chosen_position"):
            return self._verdicts(row, place)
        return [self._list(row, place)]

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the numbers of lists, or those of pairs, or both where the input has both."""
        lists, pairs = joined(outcomes)
        complete = [outcome for outcome in lists if 0 < len(outcome.gold["right"]) < len(outcome.values)]
        measures = []
        if complete:
            measures += [*_list_measures(complete, draws), *aggregate_measures(complete, draws)]
        if len(complete) < len(lists):
            torn = [float(not 0 < len(one.gold["right"]) < len(one.values)) for one in lists]
            name, clusters = "problems without a right or a wrong solution", [outcome.cluster for outcome in lists]
            measures.append(Measure.mean(name, torn, clusters, draws, better="low"))
        return [*measures, *(_pair_measures(pairs, draws) if pairs else [])]

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 for a list whose right solution is alone on top, and for a pair that is right.

        A solution that stands in a row of its own earns nothing by itself.
        """
        return None if _is_single(outcome) else super().credit(outcome)

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return which solution is right: of a pair, of a list, or whether one by itself is."""
        if _is_single(outcome):
            return f"this solution is {'right' if outcome.gold['right'] else 'wrong'}", ()
        return super().words(outcome)

    def baselines(self, outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
        """Return trivial scorers, of the number of steps too; none sees the order of lists, the right one is first."""
        lists, pairs = joined(outcomes)
        if not lists:
            return trivial_choices(pairs)
        if any(any(outcome.steps) for outcome in lists):
            lists = [replace(outcome, step_counts=tuple(map(len, outcome.steps))) for outcome in lists]
        return trivial_choices(lists, places=False)

    def _list(self, row: Row, place: RowPlace) -> Case:
        names = fields.items(row, "solution_reference")
        values = fields.items(row, "score")
        if len(values) != len(names):
            raise ValueError(f"the row has {len(values)} scores for {len(names)} solutions; give one for each")
        right = [at for at, name in enumerate(names) if name in RIGHT]
        if not 0 < len(right) < len(names):
            raise ValueError(f"{len(right)} of {len(names)} solutions are {' or '.join(RIGHT)}; some must be, not all")
        return fields.case_of(
            id=fields.case_id(place),
            prompt=fields.text(row, "problem"),
            responses=len(values),
            gold={"right": right},
            stored=[self._stored(value, f"score.{at}") for at, value in enumerate(values)],
        )

    def _verdicts(self, row: Row, place: RowPlace) -> Iterable[Case]:
        said, gold = fields.items(row, "score"), fields.items(row, "chosen_position")
        if len(said) != len(gold):
            raise ValueError(f"the row has {len(said)} verdicts for {len(gold)} comparisons; give one for each")
        key = fields.case_id(place)
        for at, (verdict_said, right) in enumerate(zip(said, gold, strict=True)):
            yield fields.case_of(
                id=f"{key}:{at}",
                prompt=fields.text(row, "problem"),
                responses=2,
                gold={"better": _position(right), "list": key},
                stored=[NOTHING_SAID] * 2
                if verdict_said is None
                else [Stored(value=float(_position(verdict_said) == place)) for place in range(2)],
            )

    def _text_pair(self, row: Row, place: RowPlace) -> Case:
        problem = fields.text(row, "problem")
        return fields.case_of(
            id=fields.case_id(place),
            prompt=problem,
            responses=[_written(row, "eval_solution_A"), _written(row, "eval_solution_B")],
            gold={"better": _position(fields.field(row, "chosen_position")), "list": _key(row, problem)},
        )

    def _solution(self, row: Row, place: RowPlace) -> Case:
        kind = fields.word(row, "solution_type")
        if kind not in ("chosen", "rejected"):
            raise ValueError(f"the solution_type is {shown(kind)}; it must be chosen or rejected")
        problem = fields.text(row, "problem")
        name = next((name for name in (*_STEPS, "score") if fields.has(row, name)), None)
        stored = () if name is None else (self._stored(fields.field(row, name), name),)
        bare = bool(stored) and not fields.has(row, "eval_solution")
        return fields.case_of(
            id=fields.case_id(place),
            prompt=problem,
            responses=1 if bare else [_written(row, "eval_solution")],
            gold={"list": _key(row, problem), "right": kind == "chosen"},
            stored=stored,
        )

    def _stored(self, value: Any, name: str) -> Stored:
        """A score, or the scores of steps and what they come to."""
        if not isinstance(value, Sequence) or isinstance(value, str):
            return fields.score(value, name)
        steps = tuple(fields.score(one, name).value for one in value)
        return Stored(value=aggregated(steps, self.aggregate), steps=steps, reason="" if steps else NO_VERDICT)


def _is_single(outcome: Outcome) -> bool:
    return "list" in outcome.gold and "better" not in outcome.gold


def joined(outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[Outcome]]:
    """Return lists, those put together of single solutions too, and pairs.

    Solutions of one problem come in the order of the file, right ones first.
    """
    lists: list[Outcome] = []
    pairs: list[Outcome] = []
    single: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if _is_single(outcome):
            single.setdefault(outcome.gold["list"], []).append(outcome)
        else:
            (pairs if "better" in outcome.gold else lists).append(outcome)
    return [*lists, *(_together(key, members) for key, members in single.items())], pairs


_OF_SAMPLES: Final = ("values", "statuses", "reasons", "cut_off", "steps", "sizes", "step_counts")


def _together(key: str, members: Sequence[Outcome]) -> Outcome:
    ordered = sorted(members, key=lambda one: not one.gold["right"])
    columns: dict[str, Any] = {name: tuple(getattr(one, name)[0] for one in ordered) for name in _OF_SAMPLES}
    right = [at for at, one in enumerate(ordered) if one.gold["right"]]
    return replace(ordered[0], id=key, gold={"right": right}, **columns)


def _list_measures(lists: Sequence[Outcome], draws: Draws) -> list[Measure]:
    rates = [ranked(outcome.values, outcome.gold["right"]) for outcome in lists]
    clusters = [outcome.cluster for outcome in lists]

    def measure(name: str, values: Sequence[float], **more: Any) -> Measure:
        return Measure.mean(name, values, clusters, draws, **more)

    return [
        measure("accuracy", [rate.alone for rate in rates], published=True),
        measure("accuracy, ties as right", [float(rate.credit > 0) for rate in rates], published=True),
        measure("accuracy, ties shared", [rate.credit for rate in rates]),
        measure("MRR", [rate.best_reciprocal_rank for rate in rates], published=True),
        measure("MRR, ties share their ranks", [rate.reciprocal_rank for rate in rates]),
        measure("no verdict", [float(not outcome.judged) for outcome in lists], better="low"),
    ]


def _pair_measures(pairs: Sequence[Outcome], draws: Draws) -> list[Measure]:
    problems: dict[str, list[Outcome]] = {}
    for outcome in pairs:
        problems.setdefault(outcome.gold["list"], []).append(outcome)
    lost = [sum(not pair_credit(outcome) for outcome in members) for members in problems.values()]
    clusters = [members[0].cluster for members in problems.values()]
    first = [verdict(outcome) == 1 for outcome in pairs]
    owners = [outcome.cluster for outcome in pairs]
    return [
        Measure.mean("pairs: accuracy", [count == 0 for count in lost], clusters, draws, published=True),
        Measure.mean("pairs: MRR", [1 / (1 + count) for count in lost], clusters, draws, published=True),
        *(replace(measure, name=f"single pairs: {measure.name}") for measure in pair_measures(pairs, draws)),
        Measure.mean("single pairs: the first one wins", first, owners, draws, better="none"),
    ]


def _key(row: Row, problem: Text) -> str:
    return fields.word(row, "problem_id") if fields.has(row, "problem_id") else fields.cluster_of(problem)


def _position(value: Any) -> int:
    if not isinstance(value, str) or value not in _PLACES:
        raise ValueError(f"a chosen_position is {shown(value)}; it must be A or B")
    return _PLACES[value]


def _written(row: Row, name: str) -> Text:
    """A solution: a text, or its steps, which are joined by blank lines so that they can be told apart again."""
    value = fields.field(row, name)
    steps = isinstance(value, Sequence) and value and not isinstance(value, str)
    return "\n\n".join(value) if steps and all(isinstance(step, str) for step in value) else fields.text(row, name)

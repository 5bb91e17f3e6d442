"""RMB (arXiv 2410.09893): pairs and best-of-n lists for two goals, helpfulness and harmlessness, in 49 categories.

    accuracy of pairs      share of pairs whose chosen response has the higher score; a tie is wrong
    accuracy of best of n  share of lists whose best response has a higher score than every other one
    score                  mean of the four: each goal, in each form

Categories are given beside.  Read from the paper and RMB's `eval/scripts`.  A list with a missing score is wrong.

The public rows hold a `score` beside each answer.  It is what GPT-4 said when the pairs were chosen, so it is gold, and
no scorer's; stored scores have other names.

Not covered: RMB's weighting of pairs by how sure their annotators were, which the public files do not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, shown
from adjudge.evals.benchmarks.pair import ChoiceBenchmark, ranked, verdict
from adjudge.evals.reports.result import Measure
from adjudge.statistics.bootstrap import evenly, mean_by_part, weighted_means
from adjudge.statistics.intervals import Draws

GOALS: Final = ("Helpfulness", "Harmlessness")
FORMS: Final = ("pairs", "best of n")
PARTS: Final = tuple(f"{goal}, {form}" for goal in GOALS for form in FORMS)
_REWARD: Final = "reward"


@dataclass(frozen=True, kw_only=True)
class Rmb(ChoiceBenchmark):
    """RMB."""

    name: ClassVar[str] = "rmb"
    title: ClassVar[str] = "RMB"
    source: ClassVar[str] = "arXiv 2410.09893; Zhou-Zoey/RMB-Reward-Model-Benchmark"
    columns: ClassVar[str] = (
        "conversation_input, category_path, and chosen and reject (pairs), or bon_best and loser_list (lists), each "
        "{answer, ...}; pair_uid or bon_uid; stored scores: a number `reward` beside each answer, or chosen_reward and "
        "reject_reward, with which the answers may be missing"
    )
    places: ClassVar[bool | None] = False  # the best response comes first in every row
    alone: ClassVar[bool] = True

    goal: Literal["Helpfulness", "Harmlessness"] | None = None
    """Helpfulness or Harmlessness: the goal of rows without a category_path; the
    name of their file is the category."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the pair or the list of a row, its best response first."""
        rewards = fields.stored_pair(row, ("chosen_reward",), ("reject_reward",))
        bare = bool(rewards) and not fields.has(row, "chosen")
        pair = bare or fields.has(row, "chosen")
        goal: str
        if self.goal and not fields.has(row, "category_path"):
            goal, category = self.goal, fields.stem_of(place.file)
        else:
            goal, category = _path(fields.word(row, "category_path"))
        answers = [] if bare else _answers(row, pair=pair)
        uid = "pair_uid" if pair else "bon_uid"
        best = {"better": 0} if bare or len(answers) == 2 else {"right": [0]}
        yield fields.case_of(
            id=f"{'pair' if pair else 'list'}:{fields.word(row, uid) if fields.has(row, uid) else place.number}",
            prompt="" if bare else fields.text(row, "conversation_input"),
            responses=2 if bare else [answer["answer"] for answer in answers],
            gold={**best, "category": category},
            part=f"{goal}, {FORMS[0] if pair else FORMS[1]}",
            stored=rewards or _stored(answers),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the score, the accuracy of the four parts, and of their categories."""
        parts = [outcome.part for outcome in outcomes]
        there = [part for part in PARTS if part in parts]
        credits = [self.credit(outcome) for outcome in outcomes]
        right = [credit or 0.0 for credit in credits]
        clusters = [outcome.cluster for outcome in outcomes]
        recipes = [evenly(there), *(evenly([part]) for part in there)]
        whole, *means = weighted_means(right, parts, clusters, recipes, draws)
        places = [f"{outcome.part}: {outcome.gold['category']}" for outcome in outcomes]
        return [
            Measure(name="score", interval=whole, published=len(there) == len(PARTS)),
            *(
                Measure(name="accuracy", part=part, interval=interval, published=True)
                for part, interval in zip(there, means, strict=True)
            ),
            Measure.mean("ties", list(map(_tied, outcomes)), clusters, draws, better="none"),
            Measure.mean("no verdict", [one is None for one in credits], clusters, draws, better="low"),
            *(
                Measure(name="accuracy", part=part, interval=interval)
                for part, interval in sorted(mean_by_part(right, places, clusters, draws).items())
            ),
        ]


def _tied(outcome: Outcome) -> bool:
    return verdict(outcome) == 0 if "better" in outcome.gold else bool(ranked(outcome.values, [0]).tied)


def _path(path: str) -> tuple[str, str]:
    _, _, rest = path.partition("/")
    goal, _, category = rest.partition("/")
    if goal not in GOALS or not category:
        raise ValueError(f"the category_path {shown(path)} must be SET/{'|'.join(GOALS)}/CATEGORY")
    return goal, category


def _answers(row: Row, *, pair: bool) -> list[Mapping[str, Any]]:
    """The answers of a row, its best one first, each an object whose `answer` is a text."""
    names = ("chosen", "reject") if pair else ("bon_best", "loser_list")
    answers: list[Mapping[str, Any]] = []
    for at, value in enumerate(
        [fields.field(row, names[0]), *([fields.field(row, names[1])] if pair else fields.items(row, names[1]))]
    ):
        name = names[min(at, 1)]
        if not isinstance(value, Mapping) or "answer" not in value:
            raise ValueError(f"the column {name!r} holds {shown(value)}; it must be an object with an answer")
        answers.append({**value, "answer": fields.as_text(value["answer"], f"{name}.answer")})
    return answers


def _stored(answers: Sequence[Mapping[str, Any]]) -> tuple[Stored, ...]:
    if not any(_REWARD in answer for answer in answers):
        return ()
    return tuple(fields.score(answer.get(_REWARD), _REWARD) for answer in answers)

"""PRMBench: which steps of a solution are wrong, by kind of mistake (arXiv 2501.03124).

A step that is right is the positive class.  PRMScore = 0.5 * F1 + 0.5 * F1 of the wrong steps, over the steps of all
rows together; `multi_solutions` has no wrong steps, and its score is F1 alone.  Where a class has no step at all, its
F1 is unknown here; the released code gives -1 for parts of it and goes on counting.  It also leaves originals of which
no step was called right out of the similarity; here they count.  Labelled errors beyond the last step (50 of the 3,108
rows at hand) can be neither found nor missed, as there.

Each row of the category `redundency` is two cases: it, and its original solution, which is not part of the totals.  A
row without verdicts is left out there; here its steps count as misjudged, and it is counted beside, with the number
over judged rows as the authors define it.

An answer of a model, as the authors' code writes it, has `idx` and `scores`: lists with an item for each step under
`step_level_validity_labels` and `step_level_redundancy_labels`, or the same names with `scores`.  `validity: false`
marks one that could not be read.  In the categories about redundancy a step is right if it is not redundant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace, random_share
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import shown
from adjudge.evals.reports.result import Measure, Sought, measures_of_sums
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.confusion import ratio
from adjudge.statistics.intervals import Draws

CORRECT = "correct"
REDUNDANCY = ("redundency", "circular")
GROUPS = {
    "simplicity": ("redundency", "circular"),
    "soundness": ("counterfactual", "step_contradiction", "domain_inconsistency", "confidence"),
    "sensitivity": ("missing_condition", "deception", "multi_solutions"),
}
NO_ERRORS = "multi_solutions"


def step_counts(said: Sequence[bool], errors: Iterable[int]) -> list[int]:
    """Return the counts of one case, of what was said of each step and the places of wrong ones.

    True and false positives (right is positive), true and false negatives; whether the first wrong step was called
    wrong, and whether there is one in reach.
    """
    wrong = set(errors)
    first = min(wrong, default=len(said))
    return [
        sum(good for at, good in enumerate(said) if at not in wrong),
        sum(good for at, good in enumerate(said) if at in wrong),
        sum(not good for at, good in enumerate(said) if at in wrong),
        sum(not good for at, good in enumerate(said) if at not in wrong),
        int(first < len(said) and not said[first]),
        int(first < len(said)),
    ]


def _said(scores: Mapping[str, Any], kind: str, threshold: float) -> list[bool] | None:
    """Whether each step is above the threshold; labels go before numbers."""
    for name, above in ((f"step_level_{kind}_labels", 0.5), (f"step_level_{kind}_scores", threshold)):
        cells = scores.get(name)
        if cells is None:
            continue
        if isinstance(cells, str) or not isinstance(cells, Sequence):
            raise ValueError(f"{name} is {shown(cells)}; it must be a list with a number for each step")
        for item in cells:
            if not isinstance(item, int | float) or item != item:
                raise ValueError(f"{name} has the item {shown(item)}; all must be numbers, or true or false")
        return [item > above for item in cells]
    return None


_COUNTS: Final = ("tp", "fp", "tn", "fn", "first", "firsts", "distance", "pairs")
_RATES: Final = (
    "PRMScore",
    "F1",
    "negative F1",
    "accuracy",
    "right-step accuracy",
    "wrong-step accuracy",
    "first-error accuracy",
)


@dataclass(frozen=True, kw_only=True)
class PrmBench(Benchmark):
    """PRMBench, with any scorer of steps, or with an answer file of its own code."""

    name: ClassVar[str] = "prm_bench"
    title: ClassVar[str] = "PRMBench"
    source: ClassVar[str] = "arXiv 2501.03124; ssmisya/PRMBench, mr_eval/tasks/prmtest_classified/task.py"
    columns: ClassVar[str] = (
        "idx, classification, original_question, original_process, modified_question, modified_process, error_steps; a "
        "model's answers stand in a file of their own, named with --answers"
    )
    hub: ClassVar[str] = "hitsmy/PRMBench_Preview"
    split: ClassVar[str] = "train"
    wants: ClassVar[str] = "steps"

    threshold: float = 0.5
    """A step whose value is above it is right."""

    redundancy_threshold: float = 0.15
    """A step whose value for redundancy is above it is redundant; for answer files."""

    answers: str = ""
    """A file of a model's answers as PRMBench writes it: idx, scores, validity."""

    def cases(self, row: Mapping[str, Any], place: RowPlace) -> Iterable[Case]:
        """Return the solution of a row, and its original where it is asked for; of rows with one name, the first's."""
        name, category = str(fields.field(row, "idx")), fields.text_of(row, "classification")
        said = (row.get("error_steps") or ()) if category == NO_ERRORS else fields.field(row, "error_steps")
        places = [fields.as_whole(step) for step in said]
        errors = [step - 1 for step in places if step is not None and step > 0]
        if len(errors) != len(places):
            raise ValueError(f"the column 'error_steps' holds {shown(row['error_steps'])}; it must hold numbers from 1")
        question, steps = fields.text_of(row, "modified_question"), fields.texts_of(row, "modified_process")
        cases = [self._case(name, category, question, steps, errors)]
        if category == REDUNDANCY[0]:
            original = self._case(
                name, CORRECT, fields.text_of(row, "original_question"), fields.texts_of(row, "original_process")
            )
            cases.insert(0, original)
        return [case for case in cases if self._first_rows.setdefault(case.id, place.number) == place.number]

    def credit(self, outcome: Outcome) -> float | None:
        """Return the share of steps that are judged right; None without verdicts."""
        said = self._said(outcome)
        if said is None:
            return None
        return sum(right != (at in outcome.gold["errors"]) for at, right in enumerate(said)) / len(said)

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return the wrong steps, and those that were called so, as the rows count them: from 1."""
        said = self._said(outcome)
        called = [] if said is None else [place for place, right in enumerate(said) if not right]
        note = "no verdict" if said is None else f"called wrong: {_listed(called)}"
        return f"wrong steps, counted from 1: {_listed(outcome.gold['errors'])}", (note,)

    def baselines(self, outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
        """Return what is said without reading: all steps are right, all are wrong, each by a coin."""

        def values(outcome: Outcome, right: Callable[[str], bool]) -> tuple[float, ...]:
            names = (f"{outcome.id}/{at}" for at in range(outcome.gold["steps"]))
            return tuple(self.threshold + (1 if right(name) else -1) for name in names)

        kinds: dict[str, Callable[[str], bool]] = {
            "all_right": lambda _: True,
            "all_wrong": lambda _: False,
            "random": lambda name: random_share(name) < 0.5,
        }
        return {
            kind: [one.with_values([0.0], steps=[values(one, right)]) for one in outcomes]
            for kind, right in kinds.items()
        }

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return PRMScore and its relatives for all rows and each category, the groups' means and the similarity."""
        counts = Counter(outcome.part for outcome in outcomes)
        categories, clusters = list(counts), [outcome.cluster for outcome in outcomes]
        said = [self._said(outcome) for outcome in outcomes]
        counts[""] = len(outcomes) - counts[CORRECT]
        return [
            *measures_of_sums(
                (
                    Sought(name, part, "none" if name == "similarity" else "high", published=True, n=counts.get(part))
                    for name, part in _names(categories)
                ),
                clusters,
                _columns(outcomes, said, categories),
                lambda sums: _numbers(sums.reshape(len(sums), 2, len(categories), len(_COUNTS)), categories),
                draws,
            ),
            Measure.mean("no verdict", [one is None for one in said], clusters, draws, better="low"),
        ]

    def _case(self, name: str, category: str, question: str, steps: Sequence[str], errors: Iterable[int] = ()) -> Case:
        own = f"{category}_{name}"
        return Case(
            id=own,
            samples=(fields.solution_sample(question, steps),),
            gold={"errors": sorted(errors), "steps": len(steps), "name": name},
            cluster=fields.cluster_of(name),
            part=category,
            stored=self._stored(own, category, len(steps)),
        )

    def _stored(self, name: str, category: str, count: int) -> tuple[Stored, ...]:
        if not self.answers:
            return ()
        if name not in self._answers:
            return (Stored(value=None, reason="no answer"),)
        return (self._verdicts(self._answers[name][0], count, about_redundancy=category in REDUNDANCY),)

    def _verdicts(self, row: Mapping[str, Any], count: int, *, about_redundancy: bool) -> Stored:
        """The verdicts of an answer, each above the threshold for a right step and below it for a wrong one."""
        if row.get("validity") is False:
            return Stored(value=None, reason="invalid answer")
        scores = row.get("scores")
        if not isinstance(scores, Mapping):
            raise ValueError(
                f"the answer {shown(row.get('idx'))} has the scores {shown(scores)}; give a mapping of lists"
            )
        redundant = _said(scores, "redundancy", self.redundancy_threshold) if about_redundancy else None
        right = _said(scores, "validity", self.threshold) if redundant is None else [not one for one in redundant]
        if right is None:
            return Stored(value=None, reason="no labels of steps")
        steps = tuple(self.threshold + (1 if one else -1) for one in right)
        if len(steps) != count or not steps:
            return Stored(value=None, steps=steps, reason=f"{len(steps)} labels for {count} steps")
        return Stored(value=min(steps), steps=steps)

    @cached_property
    def _answers(self) -> dict[str, list[dict[str, Any]]]:
        return fields.keyed_rows(self.answers, lambda row: fields.text_of(row, "idx"))

    @cached_property
    def _first_rows(self) -> dict[str, int]:
        """The row in which each case came first; the same whoever reads the input, and however often."""
        return {}

    def _said(self, outcome: Outcome) -> list[bool] | None:
        """Of each step, whether it was called right; None where the scorer did not judge every step."""
        (steps,) = outcome.steps
        known = [value > self.threshold for value in steps if value is not None]
        return known if len(known) == len(steps) == outcome.gold["steps"] else None


def _listed(places: Sequence[int]) -> str:
    return ", ".join(str(place + 1) for place in places) or "none"


def _names(categories: Sequence[str]) -> list[tuple[str, str]]:
    """Names and parts of the numbers, in the order of `_numbers`."""
    whole = [("PRMScore", ""), ("PRMScore, judged rows", "")]
    groups = [("mean PRMScore", group) for group in GROUPS]
    rates = [(name, "") for name in _RATES[1:]] + [(name, part) for part in categories for name in _RATES]
    return [*whole, *groups, *rates, ("similarity", "")]


def _columns(outcomes: Sequence[Outcome], said: Sequence[list[bool] | None], categories: Sequence[str]) -> Floats:
    """Counts of each category, (rows, 2, categories, counts): of rows with verdicts, and of those without."""
    shares = {
        outcome.gold["name"]: sum(right) / len(right)
        for outcome, right in zip(outcomes, said, strict=True)
        if outcome.part == CORRECT and right is not None
    }
    places = {category: at for at, category in enumerate(categories)}
    table = np.zeros((len(outcomes), 2, len(categories), len(_COUNTS)))
    for at, (outcome, right) in enumerate(zip(outcomes, said, strict=True)):
        errors, count = outcome.gold["errors"], outcome.gold["steps"]
        misjudged = [step in errors for step in range(count)]
        near = shares.get(outcome.gold["name"]) if outcome.part != CORRECT and right is not None else None
        distance = 0.0 if near is None or right is None else abs(sum(right) / count - near)
        table[at, int(right is None), places[outcome.part]] = [
            *step_counts(misjudged if right is None else right, errors),
            distance,
            near is not None,
        ]
    return table.reshape(len(outcomes), -1)


def _numbers(sums: Floats, categories: Sequence[str]) -> Floats:
    """The numbers of `_names`, of blocks (b, judged or not, categories, counts)."""
    own = [at for at, category in enumerate(categories) if category != CORRECT]
    both = sums.sum(axis=1)
    rates = _rates(both)
    if NO_ERRORS in categories:
        rates[:, categories.index(NO_ERRORS), 0] = rates[:, categories.index(NO_ERRORS), 1]
    scores = rates[..., 0]
    total = _rates(both[:, own].sum(axis=1))
    judged = _rates(sums[:, 0, own].sum(axis=1))
    groups = []
    for members in GROUPS.values():
        there = [categories.index(member) for member in members if member in categories]
        unknown = np.full(len(sums), np.nan)
        groups.append(scores[:, there].mean(axis=1) if len(there) == len(members) else unknown)
    distances = both[..., _COUNTS.index("distance")].sum(axis=1)
    similarity = ratio(distances, both[..., _COUNTS.index("pairs")].sum(axis=1))
    return np.column_stack([total[:, 0], judged[:, 0], *groups, total[:, 1:], rates.reshape(len(sums), -1), similarity])


def _rates(counts: Floats) -> Floats:
    """The rates of `_RATES`, (..., rates), of counts (..., counts); NaN where a class has no step."""
    tp, fp, tn, fn, first, firsts = (counts[..., at] for at in range(6))
    right = np.where(tp + fn > 0, ratio(2 * tp, 2 * tp + fp + fn), np.nan)
    wrong = np.where(tn + fp > 0, ratio(2 * tn, 2 * tn + fn + fp), np.nan)
    return np.stack(
        [
            (right + wrong) / 2,
            right,
            wrong,
            ratio(tp + tn, tp + fp + tn + fn),
            ratio(tp, tp + fn),
            ratio(tn, tn + fp),
            ratio(first, firsts),
        ],
        axis=-1,
    )

"""HumanEval (arXiv 2107.03374): programs of models, and whether they pass the tests.

    pass@k    mean over problems of 1 - C(n - c, k) / C(n, k): the chance that one of k programs passes, from n
              programs of which the scorer calls c right; over the problems with at least k programs

Rows are programs with their `task_id`; the tests come from a second file, `--problems`, or stand in the row.  A row of
the problems alone is one case: its canonical solution, which must pass.  With labels in the rows, the scorer's verdicts
are compared with them; a label of a run that took too long is "wrong".

Not covered: generating programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case
from adjudge.evals.benchmarks.fields import Row, case_id, field, first_of, has, keyed_rows, text_of, word
from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.results.measure import Measure
from adjudge.evals.statistics.draws import Draws
from adjudge.evals.verifying.labelled import Labelled, labelled_case
from adjudge.evals.verifying.rates import ACCURACY
from adjudge.evals.verifying.truth import RIGHT, WRONG, Truth

_PROGRAMS: Final = ("program", "solution", "code", "response")
_LABELS: Final = ("passed", "label", "is_correct")
_FENCE: Final = "````"  # one more than a program's own text is likely to hold


@dataclass(frozen=True, kw_only=True)
class HumanEval(Labelled):
    """HumanEval."""

    name: ClassVar[str] = "human_eval"
    title: ClassVar[str] = "HumanEval"
    source: ClassVar[str] = "arXiv 2107.03374; openai/human-eval, evaluation.py"
    hub: ClassVar[str] = "openai/openai_humaneval"
    split: ClassVar[str] = "test"
    columns: ClassVar[str] = (
        "task_id and completion (what follows the prompt) or program (the whole), and passed or label if somebody ran "
        "them; prompt, test and entry_point, or these in the file of --problems"
    )

    problems: str = ""
    """The file of problems: task_id, prompt, test, entry_point, canonical_solution.
    Without it they stand in each row."""

    k: tuple[int, ...] = (1,)
    """The k of pass@k. Give it several times for several."""

    model_column: str = "model"
    """Column of the model, which is the part; rows without it are of one."""

    def __post_init__(self) -> None:
        """Reject a k below 1, and a file of problems that cannot be read."""
        super().__post_init__()
        if not self.k or min(self.k) < 1:
            raise ValueError(f"k is {self.k!r}; give whole numbers of at least 1")
        _ = self._problems

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the program of a row."""
        task = text_of(row, "task_id")
        problem = self._problem(row, task)
        prompt, entry_point = text_of(problem, "prompt"), text_of(problem, "entry_point")
        program, label = self._program(row, prompt)
        reference: dict[str, Any] = {
            "tests": text_of(problem, "test"),
            "style": "humaneval",
            "entry_point": entry_point,
        }
        model = word(row, self.model_column) if self.model_column and has(row, self.model_column) else ""
        yield labelled_case(
            id=case_id(place, task),
            prompt=prompt,
            response=f"{_FENCE}python\n{program}\n{_FENCE}",
            label=label,
            reference=reference,
            part=model,
            cluster=task,
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of the scorer's verdicts and pass@k; pass@k first where nobody labelled anything."""
        rates = list(super().measures(outcomes, draws))
        found = []
        for part in dict.fromkeys(["", *(outcome.part for outcome in outcomes)]):
            own = [outcome for outcome in outcomes if part in ("", outcome.part)]
            found += self._passing(part, own, draws)
        return [*rates, *found] if rates[0].name == ACCURACY else [*found, *rates]

    def _passing(self, part: str, outcomes: Sequence[Outcome], draws: Draws) -> list[Measure]:
        judged = [self.judged(outcome) for outcome in outcomes]
        kinds = {"": [one.said == RIGHT for one in judged]}
        if all(one.gold is not None for one in judged):
            kinds[" by labels"] = [one.gold == RIGHT for one in judged]
        tasks = [(outcome.part, outcome.cluster) for outcome in outcomes]
        return [
            _pass_at(k, kind, part, tasks, passed, draws)
            for k in dict.fromkeys(self.k)
            for kind, passed in kinds.items()
        ]

    def _program(self, row: Row, prompt: str) -> tuple[str, str | None]:
        label = first_of(row, _LABELS)
        truth = None if label is None else Truth(more={"timeout": WRONG, "timed out": WRONG}).of(field(row, label))
        if has(row, "completion"):
            return prompt + text_of(row, "completion"), truth
        if first_of(row, _PROGRAMS) is not None:
            return text_of(row, *_PROGRAMS), truth
        return prompt + text_of(row, "canonical_solution"), RIGHT

    def _problem(self, row: Row, task: str) -> Mapping[str, Any]:
        if not self.problems:
            if not has(row, "test"):
                raise ValueError("the row has no column 'test'; name the file of problems with --problems")
            return row
        found = self._problems.get(task)
        if found is None:
            raise ValueError(f"the problem {task!r:.60} is not in {self.problems}")
        return found[0]

    @cached_property
    def _problems(self) -> dict[str, list[dict[str, Any]]]:
        return keyed_rows(self.problems, lambda row: text_of(row, "task_id")) if self.problems else {}


def _pass_at(
    k: int, kind: str, part: str, tasks: Sequence[tuple[str, str]], passed: Sequence[bool], draws: Draws
) -> Measure:
    from adjudge.evals.best_of_n.estimators import pass_at_k
    from adjudge.evals.statistics.bootstrap import mean_interval

    counts: dict[tuple[str, str], list[int]] = {}
    for task, hit in zip(tasks, passed, strict=True):
        count = counts.setdefault(task, [0, 0])
        count[0] += 1
        count[1] += hit
    enough = {task: (n, right) for task, (n, right) in counts.items() if n >= k}
    rates = [pass_at_k(n, right, k) for n, right in enough.values()]
    interval = mean_interval(rates, [cluster for _, cluster in enough], draws)
    return Measure(name=f"pass@{k}{kind}", part=part, interval=interval, published=not kind, better="none")

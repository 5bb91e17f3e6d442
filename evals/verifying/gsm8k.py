"""GSM8K (arXiv 2110.14168): solutions of models, with the authors' labels, and the problems' own solutions.

A problem of OpenAI's `example_model_solutions.jsonl` holds one solution of each of four models, which are the parts.
A row of the data set itself (question, answer) is one case: its own solution, which must be called right.  A row with a
`response` and a label is one case, too.

The answer stands behind `####` (or `A:`, as in the example solutions); calculator notes `<<48/2=24>>` are no part of a
text.

Not covered: asking a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case
from adjudge.evals.benchmarks.fields import Row, case_id, field, has, shown, text_of
from adjudge.evals.verifying.labelled import Labelled, labelled_case
from adjudge.evals.verifying.rates import ACCURACY
from adjudge.evals.verifying.truth import RIGHT, Truth

_CALCULATED: Final = re.compile(r"<<[^<>]*>>")
_ANSWER: Final = re.compile(r"^\s*(?:####|A:)\s*(\S.*?)\s*$", re.MULTILINE)
_GOLD: Final = ("ground_truth", "answer")


@dataclass(frozen=True, kw_only=True)
class Gsm8k(Labelled):
    """GSM8K."""

    name: ClassVar[str] = "gsm8k"
    title: ClassVar[str] = "GSM8K"
    source: ClassVar[str] = "arXiv 2110.14168; openai/grade-school-math, example_model_solutions.jsonl"
    hub: ClassVar[str] = "openai/gsm8k"
    split: ClassVar[str] = "test"
    columns: ClassVar[str] = (
        "question, ground_truth or answer (its last line is #### and the number), and a column {solution, is_correct} "
        "for each model, or response and is_correct, or neither: then the answer itself is the response"
    )
    published: ClassVar[tuple[str, ...]] = (ACCURACY,)

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the solutions of a row."""
        question = text_of(row, "question")
        name = next((name for name in _GOLD if has(row, name)), _GOLD[0])
        own = text_of(row, name)
        gold = answer_of(own)
        if gold is None:
            raise ValueError(f"the column {name!r} holds {shown(own)}; it must have a line '#### ANSWER'")
        for part, solution, label in self._solutions(row, own):
            yield labelled_case(
                id=case_id(place, part) if part else case_id(place),
                prompt=question,
                response=_CALCULATED.sub("", solution),
                label=label,
                reference=gold,
                part=part,
            )

    def _solutions(self, row: Row, own: str) -> Iterable[tuple[str, str, str]]:
        models = {name: cell for name, cell in row.items() if isinstance(cell, Mapping) and "solution" in cell}
        if not models and not has(row, "response"):
            return [("", own, RIGHT)]
        cells = models or {"": {"solution": field(row, "response"), "is_correct": field(row, "is_correct")}}
        return [
            (str(name), _solution(cell, str(name)), Truth().of(cell.get("is_correct"))) for name, cell in cells.items()
        ]


def answer_of(solution: str) -> str | None:
    """Return the answer on a solution's last line that has one; None if there is none."""
    found = _ANSWER.findall(solution)
    return found[-1] if found else None


def _solution(cell: Mapping[str, Any], name: str) -> str:
    found = cell["solution"]
    if not isinstance(found, str):
        raise ValueError(f"the solution in {name!r} is {shown(found)}; it must be text")
    return found

"""VerilogEval (arXiv 2309.07544) and RTLLM (arXiv 2308.05345): hardware designs, and whether they do what was asked.

A row of VerilogEval without a response is one case: its own reference, under the name that a candidate must have, which
must pass.  Candidates are rows with a design; the problem comes from a second file, `--problems`, by its name, or
stands in the row.  A label is "right" only where it says pass; designs that fail, do not compile or run too long are
wrong.

Not covered: generating designs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case
from adjudge.evals.benchmarks.fields import Row, case_id, field, first_of, has, keyed_rows, shown, text_of, word
from adjudge.evals.verifying.labelled import Labelled, labelled_case
from adjudge.evals.verifying.rates import ACCURACY
from adjudge.evals.verifying.truth import RIGHT, WRONG, Truth

_NAMES: Final = ("problem", "design", "task_id", "problem_id")
_DESIGNS: Final = ("response", "source", "completion", "code")
_LABELS: Final = ("status", "passed", "label", "is_correct")
_PROMPTS: Final = ("prompt", "description")
_FAILURES: Final = ("compile", "timeout", "runtime", "syntax", "error")
_REFERENCE: Final = "RefModule"
_TOP: Final = "TopModule"


@dataclass(frozen=True, kw_only=True)
class VerilogEval(Labelled):
    """VerilogEval, and RTLLM with its labelled candidates."""

    name: ClassVar[str] = "verilog_eval"
    title: ClassVar[str] = "VerilogEval"
    source: ClassVar[str] = "arXiv 2309.07544, 2408.11053; NVlabs/verilog-eval; hkust-zhiyao/RTLLM"
    columns: ClassVar[str] = (
        "problem (or design), prompt (or description), reference, testbench, files; and response (or source) with "
        "status, passed or label where it is a candidate"
    )
    published: ClassVar[tuple[str, ...]] = (ACCURACY,)

    problems: str = ""
    """The file of problems, by problem or design. Without it they stand in each row."""

    bench: bool = True
    """Whether the scorer gets the problem's test bench, beside its reference."""

    part_column: str = "model"
    """Column of the subset that a row counts in; rows without it are of one."""

    def __post_init__(self) -> None:
        """Reject a file of problems that cannot be read."""
        super().__post_init__()
        _ = self._problems

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the design of a row."""
        name = text_of(row, *_NAMES)
        problem = self._problem(row, name)
        reference = text_of(problem, "reference")
        own = first_of(row, _DESIGNS) is None
        yield labelled_case(
            id=case_id(place, name),
            prompt=text_of(problem, *_PROMPTS),
            response=_fenced(renamed(reference) if own else text_of(row, *_DESIGNS)),
            label=RIGHT if own else _label(row),
            reference=self._reference(problem, reference),
            part=word(row, self.part_column) if self.part_column and has(row, self.part_column) else "",
            cluster=name,
        )

    def _reference(self, problem: Mapping[str, Any], reference: str) -> dict[str, Any]:
        made: dict[str, Any] = {"reference": reference}
        if re.search(rf"\bmodule\s+{_REFERENCE}\b", reference):
            made["top"] = _TOP
        if self.bench and problem.get("testbench") is not None:
            made["testbench"] = text_of(problem, "testbench")
        files = problem.get("files")
        if files:
            if not isinstance(files, Mapping) or not all(isinstance(text, str) for text in files.values()):
                raise ValueError(f"the column 'files' holds {shown(files)}; it must be an object of texts by file name")
            made["files"] = dict(files)
        return made

    def _problem(self, row: Row, name: str) -> Mapping[str, Any]:
        if not self.problems:
            if not has(row, "reference"):
                raise ValueError("the row has no column 'reference'; name the file of problems with --problems")
            return row
        found = self._problems.get(name)
        if found is None:
            raise ValueError(f"the problem {name!r:.60} is not in {self.problems}")
        return found[0]

    @cached_property
    def _problems(self) -> dict[str, list[dict[str, Any]]]:
        return keyed_rows(self.problems, lambda row: text_of(row, *_NAMES)) if self.problems else {}


def renamed(reference: str) -> str:
    """Return a reference of VerilogEval as a candidate: the module RefModule is called TopModule."""
    return re.sub(rf"\b{_REFERENCE}\b", _TOP, reference)


def _fenced(design: str) -> str:
    return design if "```" in design else f"```verilog\n{design}\n```"  # a chat's answer has fences of its own


def _label(row: Row) -> str | None:
    name = first_of(row, _LABELS)
    return None if name is None else Truth(more=dict.fromkeys(_FAILURES, WRONG)).of(field(row, name))

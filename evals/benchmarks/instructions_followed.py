"""Benchmarks of instructions that a program checks: what IFEval and IFBench share.

A case is one instruction of one response, so that every scorer gives a verdict on each; the cases of a prompt are one
cluster, and kinds of instructions are the parts.

    accuracy, ...                the scorer's verdicts against the labels in the file, instruction by instruction
    prompt-level accuracy        share of responses that follow all their instructions, by the scorer
    instruction-level accuracy   share of instructions that are followed, by the scorer
    ... by labels                the same by the labels

The last three are numbers about whoever wrote the responses.  Strict or loose is an option of the scorer; `loose` says
which labels it is compared with.  A response that is empty or null is one that follows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, shown
from adjudge.evals.benchmarks.labels import ACCURACY, RIGHT, WRONG, Labelled, labelled_case, truth_of
from adjudge.evals.reports.result import Measure
from adjudge.statistics.intervals import Draws

PROMPT_LEVEL: Final = "prompt-level accuracy"
INSTRUCTION_LEVEL: Final = "instruction-level accuracy"
_STRICT: Final = ("strict", "follow_instruction_list")
_LOOSE: Final = ("loose", "follow_instruction_list")
_LANGUAGE: Final = "en:"


@dataclass(frozen=True, kw_only=True)
class InstructionsFollowed(Labelled):
    """A benchmark of instructions that a program checks."""

    constraints: ClassVar[str]
    """The function of `adjudge.verifiers.instructions.rows` that makes constraints of a row with its `kwargs`."""

    columns: ClassVar[str] = (
        "prompt (or key), response, instruction_id_list, kwargs (or these in the file of --prompts), and strict, loose "
        "or follow_instruction_list: true or false for each instruction"
    )

    prompts: str = ""
    """The file of prompts, by key or prompt. Without it, kwargs stand in each row."""

    loose: bool = False
    """Whether the labels of the loose check are compared, not those of the strict one."""

    label_column: str = ""
    """Column of labels; "" tries strict (or loose) and follow_instruction_list."""

    verdict_column: str = ""
    """Column of stored verdicts, one for each instruction; "" takes the labels."""

    model_column: str = "model"
    """Column of the model; rows without it are of one."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the instructions of a row."""
        asked = self._asked(row)
        kinds = _kinds(row if fields.has(row, "instruction_id_list") else asked)
        prompt = fields.text(asked, "prompt") if fields.has(asked, "prompt") else ""
        key = fields.optional_word(row, "key")
        response = "" if "response" in row and row["response"] is None else fields.text(row, "response")
        labels = self._verdicts(
            row, self.label_column or fields.first_of(row, _LOOSE if self.loose else _STRICT), len(kinds)
        )
        stored = self._verdicts(row, self.verdict_column, len(kinds)) if self.verdict_column else labels
        references = self._references(asked, kinds)
        model = fields.optional_word(row, self.model_column)
        for at, (kind, reference) in enumerate(zip(kinds, references, strict=True)):
            label = None if labels is None else labels[at].value
            yield labelled_case(
                id=fields.case_id(place, key, str(at)),
                prompt=prompt,
                response=response,
                label=None if label is None else RIGHT if label >= self.threshold else WRONG,
                reference=reference,
                part=kind,
                cluster=fields.cluster_of(prompt) if prompt else key,
                stored=None if stored is None else stored[at],
                facts={"model": model, "response": place.number},
            )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of verdicts and the accuracies of responses; these first where nobody labelled anything."""
        rates = list(super().measures(outcomes, draws))
        levels = []
        for model in dict.fromkeys(["", *(outcome.gold["model"] for outcome in outcomes)]):
            levels += self._levels(model, [one for one in outcomes if model in ("", one.gold["model"])], draws)
        return [*rates, *levels] if rates[0].name == ACCURACY else [*levels, *rates]

    def _levels(self, model: str, outcomes: Sequence[Outcome], draws: Draws) -> list[Measure]:
        owners = [(outcome.gold["response"], outcome.cluster) for outcome in outcomes]
        return [
            measure
            for by, followed in self.called_right(outcomes).items()
            for measure in _two_levels(model, by, owners, followed, draws)
        ]

    def _asked(self, row: Row) -> Mapping[str, Any]:
        """Return the row of the prompt: from the file of prompts, or this row where that one has no such."""
        if not self.prompts:
            return row
        keys = [_key(row[name]) for name in ("key", "prompt") if fields.has(row, name)]
        return next((self._prompts[key][0] for key in keys if key in self._prompts), row)

    def _references(self, asked: Mapping[str, Any], kinds: Sequence[str]) -> Sequence[dict[str, Any] | None]:
        from adjudge.verifiers.instructions import rows

        if not fields.has(asked, "kwargs"):
            return [None] * len(kinds)
        if _kinds(asked) != kinds:
            raise ValueError("the instructions of the row are other ones than those of its prompt")
        made: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]] = getattr(rows, self.constraints)
        constraints = made(asked)
        if len(constraints) != len(kinds):
            raise ValueError(
                f"the row has {len(kinds)} instructions, and {len(constraints)} constraints were made of them"
            )
        return [{"constraints": [dict(one)]} for one in constraints]

    def _verdicts(self, row: Row, column: str | None, count: int) -> list[Stored] | None:
        if column is None or not fields.has(row, column):
            return None
        cells = fields.items(row, column)
        if len(cells) != count:
            raise ValueError(f"the column {column!r} holds {len(cells)} verdicts for {count} instructions")
        return [self._verdict(cell, column) for cell in cells]

    def _verdict(self, cell: Any, column: str) -> Stored:
        if isinstance(cell, bool | str):
            return Stored(value=self.threshold + (1.0 if truth_of(cell) == RIGHT else -1.0))
        return fields.score(cell, column)

    @cached_property
    def _prompts(self) -> dict[str, list[dict[str, Any]]]:
        known = fields.keyed_rows(self.prompts, lambda row: _key(row["prompt"]) if fields.has(row, "prompt") else None)
        return {**known, **{_key(rows[0]["key"]): rows for rows in known.values() if fields.has(rows[0], "key")}}


def _two_levels(
    model: str, by: str, owners: Sequence[tuple[int, str]], followed: Sequence[bool], draws: Draws
) -> list[Measure]:
    every: dict[tuple[int, str], bool] = {}
    for owner, hit in zip(owners, followed, strict=True):
        every[owner] = every.get(owner, True) and hit
    levels = {PROMPT_LEVEL: (list(every.values()), list(every)), INSTRUCTION_LEVEL: (followed, owners)}
    return [
        Measure.mean(f"{name}{by}", hits, [prompt for _, prompt in whose], draws, model, "none", published=True)
        for name, (hits, whose) in levels.items()
    ]


def _kinds(row: Mapping[str, Any]) -> list[str]:
    kinds = []
    for name in fields.items(row, "instruction_id_list"):
        if not isinstance(name, str) or not name:
            raise ValueError(f"an instruction is called {shown(name)}; it must be a name such as punctuation:no_comma")
        kinds.append(name.removeprefix(_LANGUAGE))
    return kinds


def _key(value: Any) -> str:
    return str(value).strip()


@dataclass(frozen=True, kw_only=True)
class IfEval(InstructionsFollowed):
    """IFEval: 541 prompts with 25 kinds of instructions."""

    name: ClassVar[str] = "if_eval"
    title: ClassVar[str] = "IFEval"
    source: ClassVar[str] = "arXiv 2311.07911; google-research/instruction_following_eval, evaluation_lib.py"
    constraints: ClassVar[str] = "ifeval_constraints"


@dataclass(frozen=True, kw_only=True)
class IfBench(InstructionsFollowed):
    """IFBench: 58 further kinds of instructions, beside those of IFEval."""

    name: ClassVar[str] = "if_bench"
    title: ClassVar[str] = "IFBench"
    source: ClassVar[str] = "arXiv 2507.02833; allenai/IFBench, evaluation_lib.py"
    constraints: ClassVar[str] = "ifbench_constraints"

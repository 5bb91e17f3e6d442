"""GSM8K and MATH: solutions of models, and whether their final answers are right.

GSM8K (arXiv 2110.14168): a problem of OpenAI's `example_model_solutions.jsonl` holds one solution of each of four
models, which are the parts.  The answer stands behind `####` (or `A:`, as in the example solutions); calculator notes
`<<48/2=24>>` are not part of a text.  MATH (arXiv 2103.03874): rows are those that math evaluation harnesses write, a
problem, its answer, lists of responses and of labels.

A row of either data set itself is one case: its own solution, which must be called right.

VerifierBench (arXiv 2508.03686): is a response right, wrong, or no valid answer at all?

    accuracy   share of responses whose verdict is one of A (right), B (wrong), C (invalid), and the label
    macro-F1   mean F1 of the three classes; F1 is that of "right" alone

A scorer says "invalid" by a value below the threshold with a reason such as no_answer, truncated or repetition.  A
scorer that never does so is not lost: `accuracy, invalid as wrong` and its F1 take B and C for one class.

VerifyBench and VerifyBench-Hard (arXiv 2505.15801): does a completion reach the reference answer?

    accuracy               share of completions whose verdict is the label
    mean of answer types   plain mean of the accuracies of the four answer types, which are the parts

Benchmarks of instructions that a program checks: what IFEval and IFBench share.

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

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, case_id, field, optional_word, score, shown, text
from adjudge.evals.benchmarks.labels import (
    ACCURACY,
    INVALID,
    RIGHT,
    USUAL,
    WRONG,
    Labelled,
    labelled_case,
    stored_verdict,
    truth_of,
)
from adjudge.evals.reports.result import Measure
from adjudge.statistics.bootstrap import evenly, weighted_means
from adjudge.statistics.confusion import confusion_intervals
from adjudge.statistics.intervals import Draws

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
        question = fields.text_of(row, "question")
        name = next((name for name in _GOLD if fields.has(row, name)), _GOLD[0])
        own = fields.text_of(row, name)
        gold = answer_of(own)
        if gold is None:
            raise ValueError(f"the column {name!r} holds {shown(own)}; it must have a line '#### ANSWER'")
        for part, solution, label in self._solutions(row, own):
            yield labelled_case(
                id=fields.case_id(place, part),
                prompt=question,
                response=_CALCULATED.sub("", solution),
                label=label,
                reference=gold,
                part=part,
            )

    def _solutions(self, row: Row, own: str) -> Iterable[tuple[str, str, str]]:
        models = {name: cell for name, cell in row.items() if isinstance(cell, Mapping) and "solution" in cell}
        if not models and not fields.has(row, "response"):
            return [("", own, RIGHT)]
        cells = models or {
            "": {"solution": fields.field(row, "response"), "is_correct": fields.field(row, "is_correct")}
        }
        for name, cell in cells.items():
            if not isinstance(cell["solution"], str):
                raise ValueError(f"the solution in {str(name)!r} is {shown(cell['solution'])}; it must be text")
        return [(str(name), cell["solution"], truth_of(cell.get("is_correct"))) for name, cell in cells.items()]


def answer_of(solution: str) -> str | None:
    """Return the answer on a solution's last line that has one; None if there is none."""
    answers: list[str] = _ANSWER.findall(solution)
    return answers[-1] if answers else None


_SOLUTION: Final = "solution"
_BOX: Final = "\\boxed{"
_PROBLEMS: Final = ("question", "problem", "prompt")
_GOLDS: Final = ("gt", "answer", "expected_answer", "gold", _SOLUTION)
_RESPONSES: Final = ("code", "responses", "response", "completions")
_LABELS: Final = ("score", "labels", "label", "is_correct", "correct")
_PARTS: Final = ("level", "type", "subject")


@dataclass(frozen=True, kw_only=True)
class Math(Labelled):
    """MATH."""

    name: ClassVar[str] = "math"
    title: ClassVar[str] = "MATH"
    source: ClassVar[str] = "arXiv 2103.03874; rows as QwenLM/Qwen2.5-Math writes them"
    hub: ClassVar[str] = "HuggingFaceH4/MATH-500"
    split: ClassVar[str] = "test"
    columns: ClassVar[str] = (
        "question or problem; gt or answer; code, responses or response (one, or a list) with score, label or "
        "is_correct (as many), or neither: then the problem's own solution is the response"
    )
    published: ClassVar[tuple[str, ...]] = (ACCURACY,)

    part_column: str = ""
    """Column of the subset that a row counts in; without one: level, type or
    subject."""

    value_column: str = "pred_score"
    """Column of stored scores, one for each response."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the responses of a row."""
        problem = fields.text(row, *_PROBLEMS)
        gold = self._gold(row)
        part = self.part_column or fields.first_of(row, _PARTS)
        name = fields.first_of(row, _RESPONSES)
        responses, labels = self._labelled(row, name)
        stored = self._stored(row, len(responses))
        for at, (response, label) in enumerate(zip(responses, labels, strict=True)):
            yield labelled_case(
                id=fields.case_id(place, str(at) if len(responses) > 1 else ""),
                prompt=problem,
                response=response,
                label=label,
                reference=gold,
                part=fields.word(row, part) if part else "",
                stored=stored[at] if stored else None,
            )

    def _gold(self, row: Row) -> Any:
        name = fields.first_of(row, _GOLDS) or _GOLDS[0]
        if name != _SOLUTION:
            return fields.field(row, name)
        solution = fields.text(row, name)
        boxed = boxed_of(solution) if isinstance(solution, str) else None
        if boxed is None:
            raise ValueError(f"the column {name!r} holds {shown(solution)}; it must have an answer in \\boxed{{}}")
        return boxed

    def _labelled(self, row: Row, name: str | None) -> tuple[Sequence[Any], list[str]]:
        if name is None:
            return [fields.text(row, _SOLUTION)], [RIGHT]
        labelled_by = fields.first_of(row, _LABELS) or _LABELS[0]
        label = fields.field(row, labelled_by)
        if not isinstance(label, Sequence) or isinstance(label, str):
            return [fields.text(row, name)], [truth_of(label)]
        responses = fields.texts(row, name)
        if len(responses) != len(label):
            raise ValueError(
                f"the column {name!r} holds {len(responses)} responses, and {labelled_by!r} {len(label)} labels; "
                "give one for each"
            )
        return responses, [truth_of(one) for one in label]

    def _stored(self, row: Row, count: int) -> list[Stored]:
        if not self.value_column or not fields.has(row, self.value_column):
            return []
        cell = fields.field(row, self.value_column)
        values = [cell] if isinstance(cell, int | float) else fields.items(row, self.value_column)
        if len(values) != count:
            raise ValueError(f"the column {self.value_column!r} holds {shown(cell)} for {count} responses")
        return [fields.score(value, self.value_column) for value in values]


def boxed_of(solution: str) -> str | None:
    """Return what the last box of a solution holds; None where there is no box, or it does not close."""
    start = solution.rfind(_BOX)
    if start < 0:
        return None
    depth = 1
    for at in range(start + len(_BOX), len(solution)):
        depth += {"{": 1, "}": -1}.get(solution[at], 0)
        if not depth:
            return solution[start + len(_BOX) : at]
    return None


LETTERS: Final[Mapping[str, str]] = {"a": RIGHT, "b": WRONG, "c": INVALID}
_WORDS: Final[Mapping[str, str]] = {**USUAL, **LETTERS}


@dataclass(frozen=True, kw_only=True)
class VerifierBench(Labelled):
    """VerifierBench."""

    name: ClassVar[str] = "verifier_bench"
    title: ClassVar[str] = "VerifierBench"
    source: ClassVar[str] = "arXiv 2508.03686; open-compass/CompassVerifier"
    hub: ClassVar[str] = "opencompass/VerifierBench"
    split: ClassVar[str] = "test"
    columns: ClassVar[str] = (
        "question, gold_answer, llm_response, gold_judgment (A, B, C or correct, incorrect, invalid), domain, "
        "answer_type, data_source"
    )
    published: ClassVar[tuple[str, ...]] = (ACCURACY, "macro-F1", "F1")

    part_column: str = "domain"
    """Column of the part: domain, answer_type or data_source."""

    verdict_column: str = "judgment"
    """Column of stored verdicts in the words of the labels."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Right, wrong and invalid."""
        return RIGHT, WRONG, INVALID

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the response of a row."""
        yield labelled_case(
            id=case_id(place),
            prompt=text(row, "question"),
            response=text(row, "llm_response"),
            label=truth_of(field(row, "gold_judgment"), _WORDS),
            reference=field(row, "gold_answer"),
            part=optional_word(row, self.part_column),
            stored=self._stored(row),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of three classes, then accuracy and F1 of two."""
        judged = [self.judged(outcome) for outcome in outcomes]
        gold = [WRONG if one.gold == INVALID else str(one.gold) for one in judged]
        said = [WRONG if one.said == INVALID else one.said for one in judged]
        clusters = [one.cluster for one in judged]
        rates = confusion_intervals(gold, said, clusters, (RIGHT, WRONG), draws, positive=RIGHT)
        beside = [
            Measure(name=f"{name}, invalid as wrong", interval=rates[name]) for name in (ACCURACY, "macro-F1", "MCC")
        ]
        three = list(super().measures(outcomes, draws))
        whole = next((at for at, one in enumerate(three) if one.part), len(three))
        return [*three[:whole], *beside, *three[whole:]]

    def _stored(self, row: Row) -> Stored | None:
        if self.verdict_column not in row:
            return None
        return stored_verdict(row[self.verdict_column], self.threshold, _WORDS)


@dataclass(frozen=True, kw_only=True)
class VerifyBench(Labelled):
    """VerifyBench."""

    name: ClassVar[str] = "verify_bench"
    title: ClassVar[str] = "VerifyBench"
    source: ClassVar[str] = "arXiv 2505.15801; ZJU-REAL/VerifyBench"
    hub: ClassVar[str] = "ZJU-REAL/VerifyBench"
    columns: ClassVar[str] = "question, answer, completion, gold_correct, answer_type, source, completion_model"
    published: ClassVar[tuple[str, ...]] = (ACCURACY,)

    part_column: str = "answer_type"
    """Column of the part: answer_type, answer_subtype, source or completion_model."""

    verdict_column: str = "judgement"
    """Column of stored verdicts in the words of the labels, or of values."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the completion of a row."""
        yield labelled_case(
            id=case_id(place),
            prompt=text(row, "question"),
            response=text(row, "completion"),
            label=truth_of(field(row, "gold_correct")),
            reference=field(row, "answer"),
            part=optional_word(row, self.part_column),
            stored=self._stored(row),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates, and the mean accuracy of the answer types behind the accuracy of all."""
        first, *rest = super().measures(outcomes, draws)
        parts = [outcome.part for outcome in outcomes]
        names = sorted(set(parts))
        if len(names) < 2:
            return [first, *rest]
        right = [self.credit(outcome) or 0.0 for outcome in outcomes]
        clusters = [outcome.cluster for outcome in outcomes]
        (mean,) = weighted_means(right, parts, clusters, [evenly(names)], draws)
        name = f"mean of {len(names)} {self.part_column.replace('_', ' ')}s"
        return [first, Measure(name=name, interval=mean), *rest]

    def _stored(self, row: Row) -> Stored | None:
        if self.verdict_column not in row:
            return None
        value = row[self.verdict_column]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return score(value, self.verdict_column)
        return stored_verdict(value, self.threshold)


PROMPT_LEVEL: Final = "prompt-level accuracy"
INSTRUCTION_LEVEL: Final = "instruction-level accuracy"
_STRICT: Final = ("strict", "follow_instruction_list")
_LOOSE: Final = ("loose", "follow_instruction_list")
_LANGUAGE: Final = "en:"


@dataclass(frozen=True, kw_only=True)
class InstructionsFollowed(Labelled):
    """A benchmark of instructions that a program checks."""

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
        from adjudge.verifiers.instructions.rows import ifeval_constraints

        if not fields.has(asked, "kwargs"):
            return [None] * len(kinds)
        if _kinds(asked) != kinds:
            raise ValueError("the instructions of the row are other ones than those of its prompt")
        return [{"constraints": [one]} for one in ifeval_constraints(asked)]

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


@dataclass(frozen=True, kw_only=True)
class IfBench(InstructionsFollowed):
    """IFBench: 58 further kinds of instructions, beside those of IFEval."""

    name: ClassVar[str] = "if_bench"
    title: ClassVar[str] = "IFBench"
    source: ClassVar[str] = "arXiv 2507.02833; allenai/IFBench, evaluation_lib.py"

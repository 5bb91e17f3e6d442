"""Programs and designs of models, and whether they do what was asked.

HumanEval (arXiv 2107.03374):

    pass@k    mean over problems of 1 - C(n - c, k) / C(n, k): the chance that one of k programs passes, from n
              programs of which the scorer calls c right; over the problems with at least k programs

VerilogEval (arXiv 2309.07544) and RTLLM (arXiv 2308.05345): hardware designs.

Rows are answers by the name of their problem, which stands in the row or in a second file, `--problems`.  A row of the
problems alone is one case: its own solution, which must pass.  With labels in the rows, the scorer's verdicts are
compared with them; a label of a run that took too long, failed or did not compile is "wrong".

BIRD (arXiv 2305.03111) and files like it: queries of models, and whether they find what the accepted one finds.

    execution accuracy   share of queries that the scorer calls right, of all and of each difficulty
    rates                of the scorer's verdicts, where somebody labelled the queries

A prediction that is null is an empty response, and so it is wrong.

The questions are rows with their accepted query.  Predictions stand in the rows, or in a JSON object of a second file,
as BIRD's script writes it: the number of the question, and the query, a mark `----- bird -----` and the database.
BIRD's own rules are options: `sql: {comparator: bird, empty: accept, constants: accept, variations: 0}`.

Not covered: BIRD's efficiency score (the scorer's `reward: r_ves`), and databases, which are not part of its files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, shown
from adjudge.evals.benchmarks.labels import ACCURACY, CALLED, RIGHT, USUAL, WRONG, Labelled, labelled_case, truth_of
from adjudge.evals.reports.result import Measure
from adjudge.statistics.intervals import Draws
from adjudge.statistics.subsets import pass_at_k

_PROGRAMS: Final = ("program", "solution", "code", "response")
_PASSED: Final = ("passed", "label", "is_correct")
_RUNS: Final[Mapping[str, str]] = {**USUAL, "timeout": WRONG, "timed out": WRONG}
_FENCE: Final = "````"  # one more than a program's own text is likely to hold


@dataclass(frozen=True, kw_only=True)
class Programs(Labelled):
    """Answers to problems that stand in each row, or in a second file."""

    named: ClassVar[tuple[str, ...]] = ()  # columns of a problem's name
    tested: ClassVar[str] = ""  # the column of a problem that answers are tested with

    problems: str = ""
    """The file of problems. Without it they stand in each row."""

    def problem(self, row: Row, name: str) -> Mapping[str, Any]:
        """Return the problem of a row: a row of the second file, or the row itself."""
        if not self.problems:
            if not fields.has(row, self.tested):
                raise ValueError(f"the row has no column {self.tested!r}; name the file of problems with --problems")
            return row
        if name not in self._problems:
            raise ValueError(f"the problem {name!r:.60} is not in {self.problems}")
        return self._problems[name][0]

    @cached_property
    def _problems(self) -> dict[str, list[dict[str, Any]]]:
        return fields.keyed_rows(self.problems, lambda row: fields.text_of(row, *self.named))


@dataclass(frozen=True, kw_only=True)
class HumanEval(Programs):
    """HumanEval."""

    name: ClassVar[str] = "human_eval"
    title: ClassVar[str] = "HumanEval"
    named: ClassVar[tuple[str, ...]] = ("task_id",)
    tested: ClassVar[str] = "test"
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
        super().__post_init__()
        if not self.k or min(self.k) < 1:
            raise ValueError(f"k is {self.k!r}; give whole numbers of at least 1")

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the program of a row."""
        task = fields.text_of(row, "task_id")
        problem = self.problem(row, task)
        prompt, entry_point = fields.text_of(problem, "prompt"), fields.text_of(problem, "entry_point")
        program, label = self._program(row, prompt)
        yield labelled_case(
            id=fields.case_id(place, task),
            prompt=prompt,
            response=f"{_FENCE}python\n{program}\n{_FENCE}",
            label=label,
            reference={"tests": fields.text_of(problem, "test"), "style": "humaneval", "entry_point": entry_point},
            part=fields.optional_word(row, self.model_column),
            cluster=task,
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of the scorer's verdicts and pass@k; pass@k first where nobody labelled anything."""
        rates = list(super().measures(outcomes, draws))
        passing = []
        for part in dict.fromkeys(["", *(outcome.part for outcome in outcomes)]):
            own = [outcome for outcome in outcomes if part in ("", outcome.part)]
            passing += self._passing(part, own, draws)
        return [*rates, *passing] if rates[0].name == ACCURACY else [*passing, *rates]

    def _passing(self, part: str, outcomes: Sequence[Outcome], draws: Draws) -> list[Measure]:
        kinds = self.called_right(outcomes)
        tasks = [(outcome.part, outcome.cluster) for outcome in outcomes]
        return [
            _pass_at(k, kind, part, tasks, passed, draws)
            for k in dict.fromkeys(self.k)
            for kind, passed in kinds.items()
        ]

    def _program(self, row: Row, prompt: str) -> tuple[str, str | None]:
        label = fields.first_of(row, _PASSED)
        truth = None if label is None else truth_of(fields.field(row, label), _RUNS)
        if fields.has(row, "completion"):
            return prompt + fields.text_of(row, "completion"), truth
        if fields.first_of(row, _PROGRAMS) is not None:
            return fields.text_of(row, *_PROGRAMS), truth
        return prompt + fields.text_of(row, "canonical_solution"), RIGHT


def _pass_at(
    k: int, kind: str, part: str, tasks: Sequence[tuple[str, str]], passed: Sequence[bool], draws: Draws
) -> Measure:
    counts: dict[tuple[str, str], list[int]] = {}
    for task, hit in zip(tasks, passed, strict=True):
        count = counts.setdefault(task, [0, 0])
        count[0] += 1
        count[1] += hit
    enough = {task: (n, right) for task, (n, right) in counts.items() if n >= k}
    rates = [pass_at_k(n, right, k) for n, right in enough.values()]
    clusters = [cluster for _, cluster in enough]
    return Measure.mean(f"pass@{k}{kind}", rates, clusters, draws, part, "none", published=not kind)


_DESIGNS: Final = ("response", "source", "completion", "code")
_LABELS: Final = ("status", "passed", "label", "is_correct")
_PROMPTS: Final = ("prompt", "description")
_FAILURES: Final = ("compile", "timeout", "runtime", "syntax", "error")
_VERDICTS: Final[Mapping[str, str]] = {**USUAL, **dict.fromkeys(_FAILURES, WRONG)}
_REFERENCE: Final = "RefModule"
_TOP: Final = "TopModule"


@dataclass(frozen=True, kw_only=True)
class VerilogEval(Programs):
    """VerilogEval, and RTLLM with its labelled candidates."""

    name: ClassVar[str] = "verilog_eval"
    title: ClassVar[str] = "VerilogEval"
    named: ClassVar[tuple[str, ...]] = ("problem", "design", "task_id", "problem_id")
    tested: ClassVar[str] = "reference"
    source: ClassVar[str] = "arXiv 2309.07544, 2408.11053; NVlabs/verilog-eval; hkust-zhiyao/RTLLM"
    columns: ClassVar[str] = (
        "problem (or design), prompt (or description), reference, testbench, files; and response (or source) with "
        "status, passed or label where it is a candidate"
    )
    published: ClassVar[tuple[str, ...]] = (ACCURACY,)

    bench: bool = True
    """Whether the scorer gets the problem's test bench, beside its reference."""

    part_column: str = "model"
    """Column of the subset that a row counts in; rows without it are of one."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the design of a row."""
        name = fields.text_of(row, *self.named)
        problem = self.problem(row, name)
        reference = fields.text_of(problem, "reference")
        own = fields.first_of(row, _DESIGNS) is None
        yield labelled_case(
            id=fields.case_id(place, name),
            prompt=fields.text_of(problem, *_PROMPTS),
            response=_fenced(renamed(reference) if own else fields.text_of(row, *_DESIGNS), "verilog"),
            label=RIGHT if own else _label(row),
            reference=self._reference(problem, reference),
            part=fields.optional_word(row, self.part_column),
            cluster=name,
        )

    def _reference(self, problem: Mapping[str, Any], reference: str) -> dict[str, Any]:
        made: dict[str, Any] = {"reference": reference}
        if re.search(rf"\bmodule\s+{_REFERENCE}\b", reference):
            made["top"] = _TOP
        if self.bench and problem.get("testbench") is not None:
            made["testbench"] = fields.text_of(problem, "testbench")
        files = problem.get("files")
        if files:
            if not isinstance(files, Mapping) or not all(isinstance(text, str) for text in files.values()):
                raise ValueError(f"the column 'files' holds {shown(files)}; it must be an object of texts by file name")
            made["files"] = dict(files)
        return made


def renamed(reference: str) -> str:
    """Return a reference of VerilogEval as a candidate: the module RefModule is called TopModule."""
    return re.sub(rf"\b{_REFERENCE}\b", _TOP, reference)


def _fenced(text: str, language: str) -> str:
    return text if "```" in text else f"```{language}\n{text}\n```"  # a chat's answer has fences of its own


def _label(row: Row) -> str | None:
    name = fields.first_of(row, _LABELS)
    return None if name is None else truth_of(fields.field(row, name), _VERDICTS)


EXECUTION_ACCURACY: Final = "execution accuracy"
_GOLDS: Final = ("SQL", "gold_sql", "query", "sql")
_PREDICTIONS: Final = ("predicted_sql", "pred_sql", "prediction", "response")
_DATABASES: Final = ("db_id", "db", "database")
_IDS: Final = ("question_id", "qid")
_EXECUTED: Final = ("eval.execution_accuracy", "metrics.execution_accuracy", "label", "is_correct")
_PARTS: Final = ("difficulty", "bench")
_MARK: Final = "----- bird -----"


@dataclass(frozen=True, kw_only=True)
class Bird(Labelled):
    """BIRD."""

    name: ClassVar[str] = "bird"
    title: ClassVar[str] = "BIRD"
    source: ClassVar[str] = "arXiv 2305.03111; bird-bench/mini_dev, evaluation_ex.py"
    columns: ClassVar[str] = (
        "question, db_id, SQL, difficulty, and the prediction in predicted_sql or in the file of --predictions; other "
        "names: gold_sql, pred_sql, db"
    )

    db_root: str = ""
    """Folder of the databases: DB/DB.sqlite or DB.sqlite for each."""

    predictions: str = ""
    """A JSON file of predictions by the number of the question, from 0, as BIRD's
    script writes it."""

    label_column: str = ""
    """Column that says whether a query is right; "" tries
    eval.execution_accuracy, metrics.execution_accuracy, label, is_correct."""

    score_column: str = ""
    """Column of stored verdicts: eval.llm_score, for one."""

    part_column: str = ""
    """Column of the part; "" tries difficulty and bench."""

    evidence: bool = True
    """Whether the prompt holds the question's evidence."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.db_root and not Path(self.db_root).is_dir():
            raise ValueError(f"db_root is {self.db_root!r}, and there is no such folder")

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the query of a row."""
        question, database = fields.text_of(row, "question"), fields.text_of(row, *_DATABASES)
        gold = fields.field(row, *_GOLDS)
        if not isinstance(gold, str) and not (isinstance(gold, Sequence) and all(isinstance(one, str) for one in gold)):
            raise ValueError(f"the accepted query is {shown(gold)}; it must be text, or a list of texts")
        query = self._query(row, place.number)
        stored = fields.stored_column(row, self.score_column)
        part = self.part_column or fields.first_of(row, _PARTS)
        yield labelled_case(
            id=fields.case_id(place, fields.optional_word(row, fields.first_of(row, _IDS))),
            prompt=self._prompt(row, question),
            response=_fenced(query, "sql"),
            label=self._label(row),
            reference=self._reference(gold, database, stored),
            part=fields.word(row, part) if part else "",
            cluster=f"{database}: {question}",
            stored=stored,
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the execution accuracy, which is what the scorer calls right, and the rates of its verdicts."""
        rates = list(super().measures(outcomes, draws))
        accuracy = [
            replace(one, name=EXECUTION_ACCURACY, published=True, better="none") for one in rates if one.name == CALLED
        ]
        others = [one for one in rates if one.name != CALLED]
        return [*accuracy, *others] if outcomes and rates[0].name == CALLED else [*others, *accuracy]

    def _prompt(self, row: Row, question: str) -> str:
        evidence = row.get("evidence")
        return f"{question}\n\n{evidence}" if self.evidence and isinstance(evidence, str) and evidence else question

    def _query(self, row: Row, number: int) -> str:
        if not self.predictions:
            name = fields.first_of(row, _PREDICTIONS)
            if name is None and any(name in row for name in _PREDICTIONS):
                return ""  # the model wrote no query, and that is wrong
            if name is None:
                raise ValueError(
                    "the row has no prediction (predicted_sql, pred_sql, prediction, response); name the file of "
                    "predictions with --predictions"
                )
            return fields.text_of(row, name)
        query = self._predictions.get(str(number))
        if query is None:
            raise ValueError(f"{self.predictions} has no prediction for the question {number}")
        return query

    def _label(self, row: Row) -> str | None:
        name = self.label_column or fields.first_of(row, _EXECUTED)
        return truth_of(fields.field(row, name)) if name and fields.has(row, name) else None

    def _reference(self, gold: Any, database: str, stored: Stored | None) -> dict[str, Any] | None:
        if not self.db_root:
            if stored is not None:
                return None
            raise ValueError(
                "a query is judged on its database, and nobody said where those are; name their folder with --db-root, "
                "or stored verdicts with --score-column"
            )
        if not database or "/" in database or "\\" in database or database.startswith("."):
            raise ValueError(f"the database is called {shown(database)}; it must be a plain name")
        places = [Path(self.db_root) / database / f"{database}.sqlite", Path(self.db_root) / f"{database}.sqlite"]
        file = next((path for path in places if path.is_file()), None)
        if file is None:
            raise ValueError(f"there is no database {places[0]} and no {places[1].name} beside it")
        return {"sql": gold, "database": str(file)}

    @cached_property
    def _predictions(self) -> Mapping[str, str]:
        return read_predictions(self.predictions) if self.predictions else {}


def read_predictions(path: str) -> dict[str, str]:
    """Return the queries of BIRD's file of predictions, by the number of the question."""
    try:
        queries = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"the predictions {path!r} cannot be read: {error}") from error
    if not isinstance(queries, Mapping) or not all(isinstance(query, str) for query in queries.values()):
        raise ValueError(f"the predictions {path!r} are not a JSON object of queries by the number of the question")
    return {str(number): query.partition(_MARK)[0].strip() for number, query in queries.items()}

"""BIRD (arXiv 2305.03111) and files like it: queries of models, and whether they find what the accepted one finds.

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, shown
from adjudge.evals.benchmarks.labels import CALLED, Labelled, labelled_case, truth_of
from adjudge.evals.reports.result import Measure
from adjudge.statistics.intervals import Draws

EXECUTION_ACCURACY: Final = "execution accuracy"
_GOLDS: Final = ("SQL", "gold_sql", "query", "sql")
_PREDICTIONS: Final = ("predicted_sql", "pred_sql", "prediction", "response")
_DATABASES: Final = ("db_id", "db", "database")
_IDS: Final = ("question_id", "qid")
_LABELS: Final = ("eval.execution_accuracy", "metrics.execution_accuracy", "label", "is_correct")
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
            response=query if "```" in query else f"```sql\n{query}\n```",
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
        name = self.label_column or fields.first_of(row, _LABELS)
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

"""PandaLM's test set (arXiv 2306.05087): pairs on which three people said who wins, or that nobody does.

The benchmark's number is how often a judge says what most people said.  Precision, recall and F1 are plain means over
the three answers.  Its script counts an answer that cannot be read as a tie; the rule here is that it is wrong, and
`missing` says which one is followed.  Of gpt-3.5-turbo the script says 71.07 %.  Where all but 1, 2 and 0 is wrong it
is 69.27 %, and 69.77 % where `tie_words` lets its word "Tie" be one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Final, Literal

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import as_whole, case_of, keyed_rows, said_of, shown, text_of, whole
from adjudge.evals.benchmarks.pair import verdict
from adjudge.evals.reports.result import Measure, Sought, measures_of_sums
from adjudge.pages.figures import Figure, Grid
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.confusion import kappa, macro_rates, ratio
from adjudge.statistics.intervals import Draws

LABELS: Final = (0, 1, 2)
"""Nobody wins, the first response does, the second one does."""

_PEOPLE: Final = ("annotator1", "annotator2", "annotator3")
_RESPONSES: Final = ("response1", "response2")
_OF_SIGN: Final = {0: 0, 1: 1, -1: 2}
_MISSING: Final = len(LABELS)  # the column of what was not read
_SHARES: Final[Mapping[int, tuple[float, float]]] = {0: (0.5, 0.5), 1: (1.0, 0.0), 2: (0.0, 1.0)}
_PAIRS: Final = tuple(combinations(range(len(_PEOPLE)), 2))


@dataclass(frozen=True, kw_only=True)
class PandaLm(Benchmark):
    """PandaLM's test set, with any scorer, or with a judge's answers in a second file."""

    name: ClassVar[str] = "panda_lm"
    title: ClassVar[str] = "PandaLM"
    source: ClassVar[str] = "arXiv 2306.05087; WeOpenML/PandaLM, data/compute_metrics.py"
    columns: ClassVar[str] = (
        "idx, instruction, input, response1, response2, annotator1 to annotator3 (0, 1 or 2); a judge's answers are in "
        "a file of their own, named with --answers"
    )

    answers: str = ""
    """A file of a judge's answers by idx: 1, 2, 0 for a tie; anything else is none."""

    answer: str = ""
    """Its column of answers; without it, pandalm_result, gpt_result or result."""

    tie_words: str = ""
    """Words in the answers that stand for a tie beside 0, such as tie, with commas
    between them."""

    missing: Literal["wrong", "tie"] = "wrong"
    """What a missing answer is: wrong, or a tie, as in PandaLM's script."""

    def cases(self, row: Mapping[str, Any], place: RowPlace) -> Iterable[Case]:
        """Return the pair of a row."""
        number = whole(row, "idx")
        people = [whole(row, name) for name in _PEOPLE]
        for name, label in zip(_PEOPLE, people, strict=True):
            if label not in LABELS:
                raise ValueError(f"the column {name!r} holds {label}; it must be 0 (nobody wins), 1 or 2")
        instruction, given = text_of(row, "instruction"), row.get("input") or ""
        prompt = f"{instruction}\n\n{given}" if given else instruction
        return [
            case_of(
                id=str(number),
                prompt=prompt,
                responses=[said_of(row, name) for name in _RESPONSES],
                gold={"people": people, "most": Counter(people).most_common(1)[0][0]},
                stored=self._stored(number),
            )
        ]

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 for the answer of most people, else 0; None without an answer, unless that is a tie."""
        said = self._said(outcome)
        return None if said == _MISSING else float(said == outcome.gold["most"])

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return what most people said, and each of the three."""
        names = ("nobody wins", "the first response wins", "the second response wins")
        people = "; ".join(names[label] for label in outcome.gold["people"])
        return f"{names[outcome.gold['most']]} (people said: {people})", ()

    def baselines(self, outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
        """Return the trivial choices, and that nobody ever wins."""
        made = super().baselines(outcomes)
        return {**made, "always_tie": [outcome.with_values((0.0, 0.0)) for outcome in outcomes]}

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the agreement with most people and with each, the means over answers, and how far people agree."""
        clusters = [outcome.cluster for outcome in outcomes]
        distinct = len(set(clusters))
        sought = [
            Sought("agreement", published=True, clusters=distinct),
            *(Sought(name, published=True) for name in ("precision", "recall", "F1")),
            Sought("kappa"),
            Sought("no verdict", better="low", clusters=distinct),
            *(Sought(f"agreement with {name}", clusters=distinct) for name in _PEOPLE),
            *(
                Sought(f"kappa of annotators {one + 1} and {other + 1}", better="none", published=True)
                for one, other in _PAIRS
            ),
        ]
        return measures_of_sums(sought, clusters, self._columns(outcomes), _numbers, draws)

    def figures(self, outcomes: Sequence[Outcome], measures: Sequence[Measure]) -> Sequence[Figure]:
        """Return the table of what most people said and what the scorer said."""
        counts = Counter((outcome.gold["most"], self._said(outcome)) for outcome in outcomes)
        names = ("nobody", "first", "second", "no verdict")
        return [
            Grid(
                title="Who wins",
                rows=names[: len(LABELS)],
                columns=names,
                values=tuple(tuple(float(counts[gold, said]) for said in range(len(names))) for gold in LABELS),
                row_axis="most people",
                column_axis="scorer",
            )
        ]

    def _said(self, outcome: Outcome) -> int:
        """The label of the scorer's verdict; the column of missing ones without it."""
        sign = verdict(outcome)
        if sign is None:
            return 0 if self.missing == "tie" else _MISSING
        return _OF_SIGN[sign]

    def _columns(self, outcomes: Sequence[Outcome]) -> Floats:
        """One-hot tables: most people against the scorer, each person against the scorer, and people in pairs."""
        table = np.zeros((len(outcomes), 1 + len(_PEOPLE) + len(_PAIRS), len(LABELS), len(LABELS) + 1))
        for at, outcome in enumerate(outcomes):
            people, said = outcome.gold["people"], self._said(outcome)
            table[at, 0, outcome.gold["most"], said] = 1.0
            for number, label in enumerate(people):
                table[at, 1 + number, label, said] = 1.0
            for number, (one, other) in enumerate(_PAIRS):
                table[at, 1 + len(_PEOPLE) + number, people[one], people[other]] = 1.0
        return table.reshape(len(outcomes), -1)

    def _stored(self, number: int) -> tuple[Stored, ...]:
        if not self.answers:
            return ()
        if number not in self._answers:
            return (Stored(value=None, reason="no answer"),) * 2
        (row,) = self._answers[number]
        names = (self.answer,) if self.answer else ("pandalm_result", "gpt_result", "result")
        name = next((name for name in names if name in row), None)
        if name is None:
            raise ValueError(f"the answers have no column {' or '.join(names)}; name theirs with --answer")
        said = row[name]
        words = [word.strip().casefold() for word in self.tie_words.split(",") if word.strip()]
        label = 0 if isinstance(said, str) and said.strip().casefold() in words else as_whole(said)
        if label not in LABELS:
            return (Stored(value=None, reason=f"the answer {shown(said)}"),) * 2
        first, second = _SHARES[label]
        return Stored(value=first), Stored(value=second)

    @cached_property
    def _answers(self) -> dict[int, list[dict[str, Any]]]:
        return keyed_rows(self.answers, lambda row: whole(row, "idx"))


def _numbers(sums: Floats) -> Floats:
    tables = sums.reshape(len(sums), -1, len(LABELS), len(LABELS) + 1)
    count = tables[:, 0].sum(axis=(1, 2))
    right = [ratio(np.trace(tables[:, at], axis1=1, axis2=2), count) for at in range(1 + len(_PEOPLE))]
    among = [kappa(tables[:, at, :, : len(LABELS)]) for at in range(1 + len(_PEOPLE), tables.shape[1])]
    missing = ratio(tables[:, 0, :, _MISSING].sum(axis=1), count)
    return np.column_stack([right[0], *macro_rates(tables[:, 0]), kappa(tables[:, 0]), missing, *right[1:], *among])

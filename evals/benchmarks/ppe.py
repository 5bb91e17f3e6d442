"""PPE, Preference Proxy Evaluations (arXiv 2410.14872): people's votes, and best of k by verifiable truth.

Human rows are battles of two models' responses with a vote; correctness rows are a prompt with K responses, right and
wrong, from MMLU-Pro, MATH, GPQA, MBPP Plus and IFEval.

    human        accuracy on votes with a winner, in all and on each kind of prompt; and how well models are ranked
                 (`adjudge.evals.benchmarks.ppe_measures`)
    correctness  accuracy of pairs, max score, end score, loss, ROC AUC (`adjudge.evals.benchmarks.ppe_measures`); the
                 number over all sets is the mean of the sets

The paper names these numbers and leaves choices open; only the accuracies are marked as published, and the two modules
say what the others are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Annotated, Any, ClassVar, Final

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import (
    Row,
    as_text,
    case_id,
    field,
    has,
    items,
    score,
    scores,
    shown,
    stem_of,
    stored_pair,
    text,
    word,
)
from adjudge.evals.benchmarks.pair import (
    list_words,
    pair_case,
    pair_credit,
    pair_measures,
    pair_words,
    verdict,
    wins,
)
from adjudge.evals.benchmarks.ppe_measures import (
    Battle,
    correctness_measures,
    figure,
    pair_accuracy_of,
    ranking_measures,
)
from adjudge.evals.reports.figures import Figure
from adjudge.evals.reports.result import Measure
from adjudge.io.preferences import better_of
from adjudge.options import Range
from adjudge.statistics.intervals import Draws

HUMAN: Final = "human"
KINDS: Final = (
    "hard_prompt", "easy_prompt", "if_prompt", "is_code", "math_prompt", "shorter_won", "similar_response",
    "english_prompt", "non_english_prompt", "chinese_prompt", "russian_prompt",
)  # fmt: skip
"""Columns that say of what kind a human prompt is."""


@dataclass(frozen=True, kw_only=True)
class Ppe(Benchmark):
    """PPE."""

    name: ClassVar[str] = "ppe"
    title: ClassVar[str] = "PPE"
    source: ClassVar[str] = "arXiv 2410.14872"
    hub: ClassVar[str] = "lmarena-ai/PPE-Human-Preference-V1"
    split: ClassVar[str] = "test"
    columns: ClassVar[str] = (
        "prompt, response_1, response_2, winner, model_a, model_b (human); or prompt, response_1 to response_K, scores "
        "(right or not), sampled_conflict_pairs (correctness, in files named by set); stored scores: score_1 to "
        "score_K, or the list reward_scores"
    )
    places: ClassVar[bool | None] = True  # the order of responses says nothing of which are right

    set_name: str = ""
    """Name of the set of correctness rows; "" takes the column `set` or the file's
    name."""

    rank_rounds: Annotated[int, Range(ge=2)] = 100
    """Resamples that the separability of models, the agreement with confidence and
    the Brier score are made of."""

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the battle or the list of a row."""
        yield self._human(row, place) if has(row, "winner") else self._correctness(row, place)

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the numbers of human rows, of correctness rows, or of both."""
        human = [outcome for outcome in outcomes if outcome.part == HUMAN]
        correct = [outcome for outcome in outcomes if outcome.part != HUMAN]
        return [
            *(_human_measures(human, draws, self.rank_rounds) if human else []),
            *(correctness_measures(correct, draws) if correct else []),
        ]

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 or 0 for a battle; for a list, the share of its named pairs that are in order."""
        if outcome.part == HUMAN:
            return pair_credit(outcome)
        hits, pairs = pair_accuracy_of(outcome)
        return hits / pairs if pairs and outcome.judged else None

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return what people preferred, and the models; or which responses are right."""
        if outcome.part != HUMAN:
            return list_words(len(outcome.values), outcome.gold["right"])
        gold, notes = pair_words(outcome)
        named = zip_longest(notes, outcome.gold["models"], fillvalue="")
        return f"people said: {gold}", [", ".join(filter(None, words)) for words in named]

    def figures(self, outcomes: Sequence[Outcome], measures: Sequence[Measure]) -> Sequence[Figure]:
        """Return the curves of best of k."""
        correct = [outcome for outcome in outcomes if outcome.part != HUMAN]
        return (figure(correct),) if correct else ()

    def _human(self, row: Row, place: RowPlace) -> Case:
        stored = stored_pair(row, ("score_1",), ("score_2",))
        models = [word(row, name) if has(row, name) else "" for name in ("model_a", "model_b")]
        bare = bool(stored) and not has(row, "response_1")
        return pair_case(
            id=case_id(place, *([word(row, "question_id")] if has(row, "question_id") else [])),
            prompt=text(row, "prompt") if has(row, "prompt") or not bare else "",
            responses=["", ""] if bare else [text(row, "response_1"), text(row, "response_2")],
            gold={
                "better": better_of(field(row, "winner")),
                "models": models,
                "kinds": [name for name in KINDS if row.get(name) is True],
            },
            part=HUMAN,
            cluster="" if has(row, "prompt") else case_id(place),
            stored=stored,
            texts=not bare,
        )

    def _correctness(self, row: Row, place: RowPlace) -> Case:
        labels = [_label(value) for value in items(row, "scores")]
        names = [f"response_{at}" for at in range(1, len(labels) + 1)]
        stored: tuple[Stored, ...] = ()
        if has(row, "reward_scores"):
            stored = scores(row, "reward_scores", len(labels))
        elif "score_1" in row:
            stored = tuple(score(row.get(name), name) for name in (f"score_{at + 1}" for at in range(len(labels))))
        bare = bool(stored) and not has(row, names[0])
        right = [at for at, label in enumerate(labels) if label]
        own = [word(row, "question_id")] if has(row, "question_id") else []
        return pair_case(
            id=case_id(place, *own),
            prompt=text(row, "prompt") if has(row, "prompt") or not bare else "",
            responses=[""] * len(labels) if bare else [as_text(field(row, name), name) for name in names],
            gold={"right": right, "pairs": _pairs(row, labels)},
            part=self.set_name or (word(row, "set") if has(row, "set") else stem_of(place.file)) or "correctness",
            cluster="" if has(row, "prompt") else ":".join(own) or case_id(place),
            stored=stored,
            texts=not bare,
        )


def _human_measures(human: Sequence[Outcome], draws: Draws, rounds: int) -> list[Measure]:
    found = [
        replace(measure, part=HUMAN, published=measure.name == "accuracy")
        for measure in pair_measures(human, draws, parts=False)
    ]
    for kind in KINDS:
        members = [one for one in human if kind in one.gold["kinds"] and one.gold["better"] is not None]
        if members:
            right, clusters = [wins(outcome) == 1 for outcome in members], [outcome.cluster for outcome in members]
            found.append(Measure.mean("accuracy", right, clusters, draws, f"{HUMAN}: {kind}", published=True))
    battles = [
        Battle(
            first=first,
            second=second,
            human=(0.5 if outcome.gold["better"] is None else 1.0 - outcome.gold["better"]),
            scorer=None if (said := verdict(outcome)) is None else (said + 1) / 2,
            cluster=outcome.cluster,
        )
        for outcome in human
        for first, second in [outcome.gold["models"]]
        if first and second
    ]
    return [*found, *ranking_measures(battles, draws, rounds=rounds)]


def _label(value: Any) -> bool:
    if isinstance(value, bool | int | float) and value in (0, 1):
        return bool(value)
    raise ValueError(f"the column 'scores' holds {shown(value)}; a response is right (true, 1) or not (false, 0)")


def _pairs(row: Row, labels: Sequence[bool]) -> list[list[int]]:
    """The named pairs of a right and a wrong response; a pair of equal labels says nothing and is left out."""
    if not has(row, "sampled_conflict_pairs"):
        return []
    found = []
    for pair in field(row, "sampled_conflict_pairs"):
        if (
            not isinstance(pair, Sequence)
            or len(pair) != 2
            or not all(isinstance(at, int) and 0 <= at < len(labels) for at in pair)
        ):
            raise ValueError(
                f"the column 'sampled_conflict_pairs' holds {shown(pair)}; each is two places of responses"
            )
        if labels[pair[0]] != labels[pair[1]]:
            found.append([int(pair[0]), int(pair[1])])
    return found

"""Any file of pairs (which response is better, by the order of columns or by a label), and any file of lists.

    accuracy                 share of pairs with a winner whose winner has the higher score; a tie is wrong
    accuracy, ties as half   the same with half a point for a tie
    agreement, ties included share of all pairs where the scorer says what the gold says, ties too

The layouts of rows are those of `adjudge.io.preferences`; a ranked list counts as all its pairs.  Of lists, several
responses to a prompt of which some are right:

    accuracy            what picking the highest score earns; where k share it, each is picked with 1/k
    right alone on top  share of lists in which every response with the highest score is right
    reciprocal rank     mean of 1 / rank of the best right response; equal scores share the mean of their ranks
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import AnyFile, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, shown
from adjudge.evals.benchmarks.pair import ChoiceBenchmark, list_measures, pair_measures
from adjudge.evals.reports.result import Measure
from adjudge.io.preferences import PreferenceOptions, read_preference
from adjudge.statistics.intervals import Draws

_CHOSEN_SCORES: Final = ("score_chosen", "chosen_score", "scores_chosen", "chosen_reward")
_REJECTED_SCORES: Final = ("score_rejected", "rejected_score", "scores_rejected", "rejected_reward", "reject_reward")
_FIRST_SCORES: Final = ("score_a", "score_1", "score_A")
_SECOND_SCORES: Final = ("score_b", "score_2", "score_B")


@dataclass(frozen=True, kw_only=True)
class Pairs(PreferenceOptions, ChoiceBenchmark, AnyFile):
    """Any file of pairs."""

    name: ClassVar[str] = "pairs"
    title: ClassVar[str] = "Pairs"
    source: ClassVar[str] = "pairs counted as RewardBench does (arXiv 2403.13787)"
    columns: ClassVar[str] = (
        "prompt, chosen, rejected; or prompt, response_a, response_b, label; or a list of responses with ranks or "
        "scores; whole chats and HH transcripts; other names by option"
    )

    score_column: tuple[str, ...] = ()
    """Columns of stored scores: that of the chosen (or first) response, then that
    of the other one. Without them, the usual names are tried."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.score_column and len(self.score_column) != 2:
            raise ValueError(f"score_column names {len(self.score_column)} columns; name one for each of two responses")
        ordered, labelled = self.chosen_column or self.rejected_column, self.first_column or self.second_column
        if ordered and (labelled or self.label_column):
            raise ValueError(
                "a pair is told by chosen_column and rejected_column, or by first_column, second_column and "
                "label_column; both kinds are given"
            )

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the pair of a row, or the pairs of a list, the better response first."""
        read = read_preference(row, self.preference_columns())
        name, part, cluster = fields.named_case(self, row, place, read.prompt)
        if read.layout == "listed":
            for one, other in itertools.permutations(range(len(read.responses)), 2):
                if read.ranks[one] < read.ranks[other]:
                    yield fields.case_of(
                        id=f"{name}:{one}-{other}",
                        prompt=read.prompt,
                        responses=[read.responses[one], read.responses[other]],
                        gold={"better": 0},
                        part=part,
                        cluster=cluster,
                    )
            return
        yield fields.case_of(
            id=name,
            prompt=read.prompt,
            responses=read.responses,
            gold={"better": None if read.ranks[0] == read.ranks[1] else read.ranks.index(0)},
            part=part,
            cluster=cluster,
            stored=self._stored(row, labelled=read.layout == "labelled"),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the accuracy and the other rates of pairs, of all and of each part."""
        return pair_measures(outcomes, draws)

    def _stored(self, row: Row, *, labelled: bool) -> tuple[Stored, ...]:
        names = self.score_column
        if not names:
            usual = (_FIRST_SCORES, _SECOND_SCORES) if labelled else (_CHOSEN_SCORES, _REJECTED_SCORES)
            guessed = [next((name for name in side if name in row), None) for side in usual]
            names = tuple(name for name in guessed if name is not None)
        stored = [one for name in names if (one := fields.stored_column(row, name)) is not None]
        return tuple(stored) if len(stored) == 2 else ()


_PROMPTS: Final = ("prompt", "question", "instruction", "query", "problem", "input")
_RESPONSES: Final = ("responses", "completions", "candidates", "outputs", "solutions", "generations")
_RIGHT: Final = ("right", "best", "correct_index", "answer_index", "best_index")
_LABELS: Final = ("labels", "correct", "is_correct")
_SCORES: Final = ("scores", "score", "rewards")


@dataclass(frozen=True, kw_only=True)
class Lists(ChoiceBenchmark, AnyFile):
    """Any file of lists."""

    name: ClassVar[str] = "lists"
    title: ClassVar[str] = "Lists"
    source: ClassVar[str] = "lists counted as RewardBench 2 does (arXiv 2506.01937)"
    columns: ClassVar[str] = "prompt, responses, and right (a place or places, from 0) or labels (0 or 1 for each)"

    prompt_column: str = ""
    """Column of the prompt; "" tries the usual names."""

    responses_column: str = ""
    """Column of the list of responses."""

    right_column: str = ""
    """Column with the place of the right response, from 0, or a list of places."""

    labels_column: str = ""
    """Column with a list of labels: 1 or true for a right response, else 0 or
    false."""

    scores_column: str = ""
    """Column with a list of stored scores."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.right_column and self.labels_column:
            raise ValueError("right_column and labels_column both say what is right; give one of them")

    def cases(self, row: Row, place: RowPlace) -> Iterable[Case]:
        """Return the list of a row; the gold is `{"right": [places]}`."""
        responses = fields.texts(row, fields.named(row, self.responses_column, _RESPONSES, "responses"))
        right = self._right(row, len(responses))
        prompt_name = self.prompt_column or fields.first_of(row, _PROMPTS)
        prompt, _ = fields.asked_and_said(row, prompt_name, None)
        scored = self.scores_column or _scored(row, len(responses))
        name, part, cluster = fields.named_case(self, row, place, prompt)
        yield fields.case_of(
            id=name,
            prompt=prompt,
            responses=responses,
            gold={"right": right},
            part=part,
            cluster=cluster or fields.case_id(place),
            stored=fields.scores(row, scored, len(responses)) if scored else (),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the rates of lists, of all and of each part."""
        return list_measures(outcomes, draws)

    def _right(self, row: Row, count: int) -> list[int]:
        places = self.right_column or (None if self.labels_column else fields.first_of(row, _RIGHT))
        if places:
            value = fields.field(row, places)
            right = {_place(one, places, count) for one in (value if isinstance(value, list | tuple) else [value])}
        else:
            labels = self.labels_column or fields.first_of(row, _LABELS)
            if labels is None:
                raise ValueError(
                    "nothing says which response is right; name a column with --right-column or --labels-column"
                )
            values = fields.items(row, labels)
            if len(values) != count:
                raise ValueError(f"the column {labels!r} holds {len(values)} labels for {count} responses")
            right = {at for at, value in enumerate(values) if fields.as_flag(value, labels)}
        if not 0 < len(right) < count:
            raise ValueError(f"{len(right)} of {count} responses are right; a list needs right and wrong ones")
        return sorted(right)


def _scored(row: Row, count: int) -> str | None:
    return next((name for name in _SCORES if isinstance(row.get(name), list) and len(row[name]) == count), None)


def _place(value: Any, name: str, count: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
        raise ValueError(f"the column {name!r} holds {shown(value)}; it must be a place from 0 to {count - 1}")
    return value

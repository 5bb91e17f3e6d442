"""Any file of pairs: which response is better, by the order of columns or by a label.

    accuracy                 share of pairs with a winner whose winner has the higher score; a tie is wrong
    accuracy, ties as half   the same with half a point for a tie
    agreement, ties included share of all pairs where the scorer says what the gold says, ties too

The layouts of rows are those of `adjudge.io.preferences`; a ranked list counts as all its pairs.

Not covered: lists of which some are right (`adjudge.evals.preferences.lists`), and pairs whose gold is how much better
one is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Stored
from adjudge.evals.benchmarks.fields import Row, case_id, cluster_of, field, has, score, word
from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.benchmarks.trivial import trivial_choices
from adjudge.evals.preferences.pair import fixed_order, pair_case, pair_credit, pair_measures, pair_words, without_sizes
from adjudge.evals.results.measure import Measure
from adjudge.evals.statistics.draws import Draws
from adjudge.io.preferences import PreferenceOptions, read_preference

_CHOSEN_SCORES: Final = ("score_chosen", "chosen_score", "scores_chosen", "chosen_reward")
_REJECTED_SCORES: Final = ("score_rejected", "rejected_score", "scores_rejected", "rejected_reward", "reject_reward")
_FIRST_SCORES: Final = ("score_a", "score_1", "score_A")
_SECOND_SCORES: Final = ("score_b", "score_2", "score_B")


@dataclass(frozen=True, kw_only=True)
class Pairs(PreferenceOptions, Benchmark):
    """Any file of pairs."""

    name: ClassVar[str] = "pairs"
    title: ClassVar[str] = "Pairs"
    source: ClassVar[str] = "pairs counted as RewardBench does (arXiv 2403.13787)"
    columns: ClassVar[str] = (
        "prompt, chosen, rejected; or prompt, response_a, response_b, label; or a list of responses with ranks or "
        "scores; whole chats and HH transcripts; other names by option"
    )

    part_column: str = ""
    """Column of the subset that a pair counts in."""

    cluster_column: str = ""
    """Column that pairs share which depend on each other; without one, the
    prompt."""

    id_column: str = ""
    """Column of the id; without one, the number of the row, from 0."""

    score_column: tuple[str, ...] = ()
    """Columns of stored scores: that of the chosen (or first) response, then that
    of the other one. Without them, the usual names are tried."""

    def __post_init__(self) -> None:
        """Reject options that contradict each other."""
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
        found = read_preference(row, self.preference_columns())
        name = word(row, self.id_column) if self.id_column else case_id(place)
        part = word(row, self.part_column) if self.part_column else ""
        cluster = word(row, self.cluster_column) if self.cluster_column else cluster_of(found.prompt)
        if found.layout == "listed":
            for one, other in itertools.permutations(range(len(found.responses)), 2):
                if found.ranks[one] < found.ranks[other]:
                    yield pair_case(
                        id=f"{name}:{one}-{other}",
                        prompt=found.prompt,
                        responses=[found.responses[one], found.responses[other]],
                        gold={"better": 0},
                        part=part,
                        cluster=cluster,
                    )
            return
        yield pair_case(
            id=name,
            prompt=found.prompt,
            responses=found.responses,
            gold={"better": None if found.ranks[0] == found.ranks[1] else found.ranks.index(0)},
            part=part,
            cluster=cluster,
            stored=self._stored(row, labelled=found.layout == "labelled"),
        )

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the accuracy and the other rates of pairs, of all and of each part."""
        return pair_measures(outcomes, draws)

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 for a pair that is right, 0 for a tie or a wrong one; nothing where the gold is a tie."""
        return pair_credit(outcome)

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return which response is better."""
        return pair_words(outcome)

    def baselines(self, outcomes: Sequence[Outcome]) -> Mapping[str, Sequence[Outcome]]:
        """Return trivial scorers; those of the order where labels, and not the columns, say which is better."""
        if {outcome.gold["better"] for outcome in outcomes} == {0}:
            return fixed_order(outcomes)
        made = trivial_choices(outcomes)
        return made if any(any(outcome.sizes) for outcome in outcomes) else without_sizes(made)

    def _stored(self, row: Row, *, labelled: bool) -> tuple[Stored, ...]:
        names = self.score_column
        if not names:
            usual = (_FIRST_SCORES, _SECOND_SCORES) if labelled else (_CHOSEN_SCORES, _REJECTED_SCORES)
            guessed = [next((name for name in side if name in row), None) for side in usual]
            names = tuple(name for name in guessed if name is not None)
        return (
            tuple(score(field(row, name) if has(row, name) else None, name) for name in names)
            if len(names) == 2
            else ()
        )

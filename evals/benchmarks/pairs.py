"""Pairs and lists: who wins a pair, how often a scorer is right, and the rates that every such benchmark has.

A scorer of single responses gives each its own number, and the higher one wins.  A scorer whose reference is the other
response gives each response's share against the other one, and so sees the pair twice, in both orders; a win counts 1,
a loss -1, a tie 0, and the sign of the sum decides (JudgeBench, arXiv 2410.12784).

The gold of a pair is `{"better": 0}` or `{"better": 1}` for the place of the better response, and `{"better": None}`
for a tie; that of a list is `{"right": [places of the right responses]}`.  A tie of the scorer is wrong where the gold
has a winner, and so is a missing verdict, which agrees with nothing, another missing one included; both are counted
beside.  A list with a response that has no score has no verdict: its rates are 0.

    credit           share of right responses among those with the highest score: what picking one of them earns
    alone            1 where every response with the highest score is right
    reciprocal rank  1 / rank of the best right response among the wrong ones; equal scores share the mean of their
                     ranks; `best` gives them the best one, as RewardMATH (arXiv 2410.01729) does

Any file of pairs (`Pairs`; which response is better, by the order of columns or by a label), and any file of lists
(`Lists`: several responses to a prompt, of which some are right).  The layouts of rows are those of
`adjudge.io.preferences`; a ranked list counts as all its pairs.

    accuracy                 share of pairs with a winner whose winner has the higher score; a tie is wrong
    accuracy, ties as half   the same with half a point for a tie
    agreement, ties included share of all pairs where the scorer says what the gold says, ties too

Sources: LLMBar (arXiv 2310.07641), JudgeBench, RewardMATH.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from adjudge.evals.benchmarks import fields
from adjudge.evals.benchmarks.benchmark import AnyFile, Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import Row, shown
from adjudge.evals.reports.result import Measure
from adjudge.io.preferences import PreferenceOptions, read_preference
from adjudge.statistics.bootstrap import mean_by_part
from adjudge.statistics.intervals import Draws, Interval

EVEN: Final = 0.5
"""Share of a response that is as good as the other one."""


def sides(outcome: Outcome) -> tuple[int | None, int | None]:
    """Return who won where the first response was shown first, and where it was shown second.

    1 is the pair's first response in both, -1 its second, 0 neither, None no verdict.  Scores of single responses know
    no order, so they say the same in both.
    """
    if len(outcome.values) != 2:
        raise ValueError(f"the case {outcome.id!r} has {len(outcome.values)} samples; a pair has two")
    first, second = outcome.values
    if outcome.compared:
        return _sign(first, EVEN), _sign(EVEN, second)
    both = _sign(first, second)
    return both, both


def verdict(outcome: Outcome) -> int | None:
    """Return 1 if a pair's first response wins, -1 if its second does, 0 if neither, None without a verdict.

    Of scores, one that is missing leaves no verdict.  Of shares in two orders, one that is missing counts nothing and
    the other decides, as in JudgeBench; orders that contradict each other are a tie.
    """
    said = [side for side in sides(outcome) if side is not None]
    return _sign(sum(said), 0) if said else None


def _sign(one: float | None, other: float | None) -> int | None:
    return None if one is None or other is None else (one > other) - (one < other)


def wins(outcome: Outcome) -> float:
    """Return 1 where the scorer prefers the better response, 0.5 where it says tie, 0 otherwise, 0 without a verdict.

    Where the gold is a tie: 1 where the scorer says so too, else 0.
    """
    return _won(verdict(outcome), outcome.gold["better"])


def pair_credit(outcome: Outcome) -> float | None:
    """Return 1 for a pair that is right and 0 for a tie or a wrong one; None without a verdict or a winner."""
    said, better = verdict(outcome), outcome.gold["better"]
    return None if said is None or better is None else float(_won(said, better) == 1)


def pair_measures(outcomes: Sequence[Outcome], draws: Draws, *, parts: bool = True) -> list[Measure]:
    """Return the rates of pairs that are not part of a published number, but that its readers need."""
    clusters = [outcome.cluster for outcome in outcomes]
    said = [verdict(outcome) for outcome in outcomes]
    won = [_won(one, outcome.gold["better"]) for one, outcome in zip(said, outcomes, strict=True)]
    decided = [at for at, outcome in enumerate(outcomes) if outcome.gold["better"] is not None]
    measures = []
    if decided:
        names, owners = [outcomes[at].part for at in decided] if parts else [], [clusters[at] for at in decided]
        strict = [float(won[at] == 1) for at in decided]
        measures = [
            Measure.mean("accuracy", strict, owners, draws),
            Measure.mean("accuracy, ties as half", [won[at] for at in decided], owners, draws),
            *_accuracy_by_part(strict, names, owners, draws),
        ]
    if len(decided) < len(outcomes):
        measures.append(Measure.mean("agreement, ties included", [one == 1 for one in won], clusters, draws))
    measures.append(Measure.mean("ties", [one == 0 for one in said], clusters, draws, better="none"))
    measures.append(Measure.mean("no verdict", [one is None for one in said], clusters, draws, better="low"))
    return [*measures, *_order_measures([outcomes[at] for at in decided if outcomes[at].compared])]


def pair_words(outcome: Outcome) -> tuple[str, Sequence[str]]:
    """Return which response of a pair is better, and a word for each."""
    better = outcome.gold["better"]
    if better is None:
        return "a tie: neither response is better", ()
    return (
        f"the {('first', 'second')[better]} response is better",
        ["chosen" if place == better else "rejected" for place in range(2)],
    )


class ChoiceBenchmark(Benchmark):
    """A benchmark whose cases are pairs, with `{"better": ..}` as gold, and lists, with `{"right": [..]}`."""

    alone: ClassVar[bool] = False
    """Whether a list earns 1 where its right responses alone are on top, and else nothing."""

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 for a right pair, 0 for a tie or a wrong one; of a list, what picking the highest score earns."""
        if "better" in outcome.gold:
            return pair_credit(outcome)
        if not outcome.judged:
            return None
        rates = ranked(outcome.values, outcome.gold["right"])
        return rates.alone if self.alone else rates.credit

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return which response is better, or which are right."""
        if "better" in outcome.gold:
            return pair_words(outcome)
        return list_words(len(outcome.values), outcome.gold["right"])


def list_words(count: int, right: Sequence[int]) -> tuple[str, Sequence[str]]:
    """Return which responses of a list are right, counted from 1, and a word for each."""
    places = set(right)
    notes = ["right" if place in places else "wrong" for place in range(count)]
    if not places:
        return f"none of the {count} responses is right", notes
    shown = ", ".join(str(place + 1) for place in sorted(places))
    return f"of {count} responses, right {'is' if len(places) == 1 else 'are'} number {shown}", notes


def _won(said: int | None, better: int | None) -> float:
    if said is None:
        return 0.0
    if better is None:
        return float(said == 0)
    return 0.5 if said == 0 else float(said == (1 if better == 0 else -1))


def _accuracy_by_part(
    right: Sequence[float], parts: Sequence[str], clusters: Sequence[str], draws: Draws
) -> list[Measure]:
    if len(set(parts)) < 2:
        return []
    by_part = mean_by_part(right, parts, clusters, draws)
    return [Measure(name="accuracy", part=part, interval=rate) for part, rate in by_part.items()]


def _order_measures(compared: Sequence[Outcome]) -> list[Measure]:
    """The rates of pairs that were seen in both orders; without bounds, which `adjudge eval llm_bar` has."""
    if not compared:
        return []
    rows = [(*sides(outcome), 1 if outcome.gold["better"] == 0 else -1) for outcome in compared]
    hits = {
        "accuracy, as the file orders them": [one == gold for one, _, gold in rows],
        "accuracy, swapped": [other == gold for _, other, gold in rows],
        "right in both orders": [one == other == gold for one, other, gold in rows],
        "same winner in both orders": [one is not None and one == other for one, other, _ in rows],
    }
    return [
        Measure(name=name, interval=Interval(value=sum(hit) / len(rows), n=len(rows))) for name, hit in hits.items()
    ]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The rates of one list, in [0, 1]; see the table above."""

    credit: float = 0.0
    alone: float = 0.0
    tied: float = 0.0
    reciprocal_rank: float = 0.0
    best_reciprocal_rank: float = 0.0


def ranked(values: Sequence[float | None], right: Sequence[int]) -> Ranked:
    """Return the rates of a list."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Ranked()
    places = set(right)
    highest, own = max(known), max(known[at] for at in places)
    best = [at for at, value in enumerate(known) if value == highest]
    credit = sum(at in places for at in best) / len(best)
    wrong = [value for at, value in enumerate(known) if at not in places]
    above, equal = sum(value > own for value in wrong), sum(value == own for value in wrong)
    return Ranked(
        credit=credit,
        alone=float(credit == 1),
        tied=float(0 < credit < 1),
        reciprocal_rank=1 / (1 + above + equal / 2),
        best_reciprocal_rank=1 / (1 + above),
    )


def list_measures(outcomes: Sequence[Outcome], draws: Draws) -> list[Measure]:
    """Return the rates of lists, the share that picking the highest score earns first."""
    rates = [ranked(outcome.values, outcome.gold["right"]) for outcome in outcomes]
    clusters = [outcome.cluster for outcome in outcomes]
    columns = {
        "accuracy": [rate.credit for rate in rates],
        "right alone on top": [rate.alone for rate in rates],
        "reciprocal rank": [rate.reciprocal_rank for rate in rates],
    }
    missing = [not one.judged for one in outcomes]
    return [
        *(Measure.mean(name, column, clusters, draws) for name, column in columns.items()),
        Measure.mean("right and wrong tied on top", [rate.tied for rate in rates], clusters, draws, better="none"),
        Measure.mean("no verdict", missing, clusters, draws, better="low"),
        *_accuracy_by_part(columns["accuracy"], [outcome.part for outcome in outcomes], clusters, draws),
    ]


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
        lists = (name for name in _SCORES if isinstance(row.get(name), list) and len(row[name]) == len(responses))
        scored = self.scores_column or next(lists, "")
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
            right = set(value if isinstance(value, list | tuple) else [value])
            for one in right:
                if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < count:
                    raise ValueError(
                        f"the column {places!r} holds {shown(one)}; it must be a place from 0 to {count - 1}"
                    )
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

"""MT-Bench (arXiv 2306.05685): how often a judge of pairs says what people say, and which models it lets win.

Agreement is counted over pairs of one vote of the judge and one of a person on the same question, turn and models.
Setup S1 takes all of them, and two ties agree; setup S2 only those in which nobody says tie.  People among themselves
are counted in the same way.  A judge wins a pair for a model only if both games do: games that differ are a tie.

A vote without a verdict of the judge is left out of the published numbers; here it counts as a disagreement, and is
counted beside.

| input | what it gives |
|---|---|
| people's votes, with `conversation_a` and `conversation_b` | agreement with any scorer, or with `judgments` |
| a judge's games alone | the models' win rates |

A vote has `question_id`, `model_a`, `model_b`, `winner`, `judge` and `turn`; a judge's two games `question_id`,
`model_1`, `model_2`, `g1_winner`, `g2_winner` and `turn`.  A winner is one of the two model columns' names
("model_a") or has "tie" in it; any other word is not a verdict.  In the second game the second model is shown first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, TypeAlias

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import field, keyed_rows, shown, text_of, whole
from adjudge.evals.benchmarks.pair import sides
from adjudge.evals.reports.result import Measure, Sought, measures_of_sums
from adjudge.protocol import Message, Sample
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.confusion import ratio
from adjudge.statistics.intervals import Draws


def agreement_columns(outcomes: Sequence[Outcome], judged: Sequence[int | None]) -> Floats:
    """Return what agreement is made of, (votes, 9): each row is a person's vote and the judge's on the same pair.

    Columns: agreeing and all, of all votes; the same without ties; the same of people among themselves, of all votes
    and without ties, where a pair of votes stands in the row of the later one; and votes on which the judge said
    nothing, which agree with nobody and are in both counts of all unless the person said tie.
    """
    earlier: dict[str, list[int]] = {}
    rows = []
    for outcome, said in zip(outcomes, judged, strict=True):
        person = outcome.gold["said"]
        oriented = person if outcome.gold["first"] else -person
        before = earlier.setdefault(outcome.gold["key"], [])
        clear = [vote for vote in before if vote] if person else []
        rows.append(
            [
                person == said,
                1,
                bool(person) and person == said,
                bool(person) and said != 0,
                before.count(oriented),
                len(before),
                clear.count(oriented),
                len(clear),
                said is None,
            ]
        )
        before.append(oriented)
    return np.array(rows, dtype=float)


def agreement_rates(sums: Floats) -> Floats:
    """Return agreement (S1, S2), that of people (S1, S2), and the share of missing verdicts, of sums (b, 9)."""
    pairs = [ratio(sums[:, at], sums[:, at + 1]) for at in range(0, 8, 2)]
    return np.column_stack([*pairs, ratio(sums[:, 8], sums[:, 1])])


Key: TypeAlias = tuple[str, int, str, str]
"""Question, turn (from 1), and the two models in the order of their names."""

_PEOPLE: Final = ("expert", "author")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A vote, or two games.

    Attributes:
        turn: which turn of the conversation, from 1.
        models: the two, the first one as the row has it.
        games: the winner of each game: 1 the first model, -1 the second, 0 neither, None no verdict.  A vote is one.
        judge: who voted; "" if the row does not say.
    """

    question: str
    turn: int
    models: tuple[str, str]
    games: tuple[int | None, ...]
    judge: str = ""

    @property
    def key(self) -> Key:
        """What was voted on, whichever model is named first."""
        one, other = sorted(self.models)
        return self.question, self.turn, one, other

    def stored(self, first: str) -> tuple[Stored, Stored]:
        """Return the vote as stored values of a pair whose first model is `first`: a share from each order."""
        sign = 1 if self.models[0] == first else -1
        games = [None if game is None else game * sign for game in self.games]
        if sign < 0:
            games.reverse()  # of two games, the one in which this model is shown first
        ahead = [_stored(games[0]), _stored(games[-1], turned=True)]
        return ahead[0], ahead[1]


def vote_of(row: Mapping[str, Any]) -> Vote:
    """Return the vote of a row."""
    games = ("g1_winner", "g2_winner") if "g1_winner" in row else ("winner",)
    names = ("model_1", "model_2") if "model_1" in row else ("model_a", "model_b")
    models = (text_of(row, names[0]), text_of(row, names[1]))
    if models[0] == models[1]:
        raise ValueError(f"both models are {shown(models[0])}; a pair has two")
    return Vote(
        question=str(field(row, "question_id")),
        turn=whole(row, "turn") if row.get("turn") is not None else 1,
        models=models,
        games=tuple(_winner(row.get(game), names) for game in games),
        judge=_judge(row.get("judge")),
    )


def kind_of(judge: str) -> str:
    """Return "expert" or "author" for people as MT-Bench names them, else the name itself."""
    return next((kind for kind in _PEOPLE if judge.startswith(kind)), judge)


def _winner(said: Any, names: tuple[str, str]) -> int | None:
    if not isinstance(said, str):
        return None
    if said in names:
        return 1 if said == names[0] else -1
    return 0 if "tie" in said else None


def _judge(said: Any) -> str:
    if isinstance(said, list | tuple):
        return " ".join(map(str, said))
    return "" if said is None else str(said)


def _stored(game: int | None, *, turned: bool = False) -> Stored:
    if game is None:
        return Stored(value=None, reason="no verdict")
    return Stored(value=(1 + (-game if turned else game)) / 2)


_AGREEMENT: Final = (  # name, better, published, and the column that counts
    ("agreement S1", "high", True, 1),
    ("agreement S2", "high", True, 3),
    ("people S1", "none", True, 5),
    ("people S2", "none", True, 7),
    ("no verdict", "low", False, 1),
)
_RATES: Final = ("adjusted win rate", "win rate", "loss rate")


@dataclass(frozen=True, kw_only=True)
class MtBench(Benchmark):
    """Agreement with people's votes on pairs of conversations, with any scorer or with a judge's stored games."""

    name: ClassVar[str] = "mt_bench"
    title: ClassVar[str] = "MT-Bench"
    source: ClassVar[str] = "arXiv 2306.05685; lm-sys/FastChat, fastchat/llm_judge"
    hub: ClassVar[str] = "lmsys/mt_bench_human_judgments"
    split: ClassVar[str] = "human"
    columns: ClassVar[str] = "question_id, model_a, model_b, winner, judge, turn, conversation_a, conversation_b"

    judgments: str = ""
    """A file of the judge's own votes or games on the same questions."""

    people: Literal["expert", "author", "all"] = "expert"
    """Whose votes count: expert, author, or all."""

    def cases(self, row: Mapping[str, Any], place: RowPlace) -> Iterable[Case]:
        """Return the pair of a vote or of a judge's games; none where it is another person's."""
        vote = vote_of(row)
        games = len(vote.games) == 2
        if not games and self.people != "all" and vote.judge and kind_of(vote.judge) != self.people:
            return []
        one, other = vote.models
        samples = tuple(_sample(row, side, vote) for side in ("a", "b"))
        stored = vote if games else self._judgment_of(vote)
        return [
            Case(
                id=f"{place.number}",
                samples=samples,
                gold={
                    "said": None if games else vote.games[0],
                    "models": [one, other],
                    "key": "\n".join(map(str, vote.key)),
                    "first": one == vote.key[2],
                    "turn": vote.turn,
                },
                cluster=f"question {vote.question}",
                part=f"turn {vote.turn}",
                stored=() if stored is None else stored.stored(one),
                compared=stored is not None,
                texts="conversation_a" in row and "conversation_b" in row,
            )
        ]

    def credit(self, outcome: Outcome) -> float | None:
        """Return 1 where the scorer says what the person says, else 0; of games alone, the first model's share."""
        said = judged(outcome)
        if said is None:
            return None
        gold = outcome.gold["said"]
        return (1 + said) / 2 if gold is None else float(said == gold)

    def words(self, outcome: Outcome) -> tuple[str, Sequence[str]]:
        """Return what the person said, and the models."""
        said = {1: "the first one wins", -1: "the second one wins", 0: "a tie", None: "nothing"}
        return f"the person said: {said[outcome.gold['said']]}", outcome.gold["models"]

    def measures(self, outcomes: Sequence[Outcome], draws: Draws) -> Sequence[Measure]:
        """Return the agreement with people, as a whole and by turn, and each model's win rates."""
        measures: list[Measure] = []
        voted = [outcome for outcome in outcomes if outcome.gold["said"] is not None]
        if voted:
            turns = sorted({outcome.part for outcome in voted})
            measures += _agreement(voted, "", draws)
            for turn in turns if len(turns) > 1 else ():
                measures += _agreement([outcome for outcome in voted if outcome.part == turn], turn, draws)
        return [*measures, *_win_rates(outcomes, draws)]

    def _judgment_of(self, vote: Vote) -> Vote | None:
        if not self.judgments:
            return None
        rows = self._judgments.get(vote.key)
        if rows is None:
            return Vote(question=vote.question, turn=vote.turn, models=vote.models, games=(None, None))
        return vote_of(rows[0])

    @cached_property
    def _judgments(self) -> dict[Key, list[dict[str, Any]]]:
        return keyed_rows(self.judgments, lambda row: vote_of(row).key)


def judged(outcome: Outcome) -> int | None:
    """Return who wins under the rule of two games: 1 the first response, -1 the second, 0 if the games differ.

    None where a game has no verdict.
    """
    one, other = sides(outcome)
    if one is None or other is None:
        return None
    return one if one == other else 0


def _agreement(outcomes: Sequence[Outcome], part: str, draws: Draws) -> list[Measure]:
    columns = agreement_columns(outcomes, [judged(outcome) for outcome in outcomes])
    totals = columns.sum(axis=0)
    clusters = [outcome.cluster for outcome in outcomes]
    distinct = len(set(clusters))
    sought = [
        Sought(name, part, better, published, n=(n := int(totals[at])), clusters=min(n, distinct))
        for name, better, published, at in _AGREEMENT
    ]
    return measures_of_sums(sought, clusters, columns, agreement_rates, draws)


def _win_rates(outcomes: Sequence[Outcome], draws: Draws) -> list[Measure]:
    """Each model's rates over its pairs with a verdict; a pair on which several people voted counts once."""
    once = list({outcome.gold["key"]: outcome for outcome in reversed(outcomes)}.values())
    models = sorted({model for outcome in once for model in outcome.gold["models"]})
    measures = []
    for model in models:
        own = [outcome for outcome in once if model in outcome.gold["models"]]
        columns, clusters = _win_columns(own, model), [outcome.cluster for outcome in own]
        known, distinct = int(columns[:, 3].sum()), len(set(clusters))
        sought = [Sought(name, model, "none", published=True, n=known, clusters=distinct) for name in _RATES]
        measures += measures_of_sums(sought, clusters, columns, _win_numbers, draws)
    return measures


def _win_columns(outcomes: Sequence[Outcome], model: str) -> Floats:
    """Win, loss, tie, and whether there is a verdict at all."""
    rows = []
    for outcome in outcomes:
        said = judged(outcome)
        own = said if outcome.gold["models"][0] == model or said is None else -said
        rows.append([own == 1, own == -1, own == 0, own is not None])
    return np.array(rows, dtype=float)


def _win_numbers(sums: Floats) -> Floats:
    wins, losses, ties, count = (sums[:, at] for at in range(4))
    return np.column_stack([ratio(part, count) for part in (wins + ties / 2, wins, losses)])


def _sample(row: Mapping[str, Any], side: str, vote: Vote) -> Sample:
    """The conversation of one model up to the turn that was voted on; empty where the row holds none."""
    turns = row.get(f"conversation_{side}")
    if turns is None:
        return Sample(prompt="", response="")
    if isinstance(turns, str) or not isinstance(turns, Sequence) or len(turns) < 2 * vote.turn:
        raise ValueError(
            f"the column 'conversation_{side}' holds {shown(turns)}; it must hold {2 * vote.turn} messages"
        )
    messages: list[Message] = [_message(one, side) for one in turns[: 2 * vote.turn]]
    return Sample(prompt=messages[:-1], response=str(messages[-1]["content"]))


def _message(given: Any, side: str) -> Message:
    if not isinstance(given, Mapping) or not all(isinstance(given.get(name), str) for name in ("role", "content")):
        raise ValueError(f"the column 'conversation_{side}' has the message {shown(given)}; give role and content")
    return {"role": given["role"], "content": given["content"]}

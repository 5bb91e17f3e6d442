"""PandaLM's test set (arXiv 2306.05087): pairs on which three people said who wins, or that nobody does.

The benchmark's number is how often a judge says what most people said.  Precision, recall and F1 are plain means over
the three answers.  Its script counts an answer that cannot be read as a tie; the rule here is that it is wrong, and
`missing` says which one is followed.  Of gpt-3.5-turbo the script says 71.07 %.  Where all but 1, 2 and 0 is wrong it
is 69.27 %, and 69.77 % where `tie_words` lets its word "Tie" be one.

MT-Bench (arXiv 2306.05685): how often a judge of pairs says what people say, and which models it lets win.

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

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Final, Literal, TypeAlias

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case, Outcome, Stored
from adjudge.evals.benchmarks.fields import as_whole, case_of, field, keyed_rows, said_of, shown, text_of, whole
from adjudge.evals.benchmarks.pairs import sides, verdict
from adjudge.evals.reports.result import Measure, Sought, measures_of_sums
from adjudge.pages.figures import Figure, Grid
from adjudge.protocol import Message, Sample
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

_KINDS: Final = ("expert", "author")


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
    models, judge = (text_of(row, names[0]), text_of(row, names[1])), row.get("judge") or ""
    if models[0] == models[1]:
        raise ValueError(f"both models are {shown(models[0])}; a pair has two")
    return Vote(
        question=str(field(row, "question_id")),
        turn=whole(row, "turn") if row.get("turn") is not None else 1,
        models=models,
        games=tuple(_winner(row.get(game), names) for game in games),
        judge=" ".join(map(str, judge)) if isinstance(judge, list | tuple) else str(judge),
    )


def kind_of(judge: str) -> str:
    """Return "expert" or "author" for people as MT-Bench names them, else the name itself."""
    return next((kind for kind in _KINDS if judge.startswith(kind)), judge)


def _winner(said: Any, names: tuple[str, str]) -> int | None:
    if not isinstance(said, str):
        return None
    if said in names:
        return 1 if said == names[0] else -1
    return 0 if "tie" in said else None


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
        ahead = [(said := judged(one)) and (said if one.gold["models"][0] == model else -said) for one in own]
        columns = np.array([[one == 1, one == -1, one == 0, one is not None] for one in ahead], dtype=float)
        clusters = [outcome.cluster for outcome in own]
        known, distinct = int(columns[:, 3].sum()), len(set(clusters))
        sought = [Sought(name, model, "none", published=True, n=known, clusters=distinct) for name in _RATES]
        measures += measures_of_sums(sought, clusters, columns, _win_numbers, draws)
    return measures


def _win_numbers(sums: Floats) -> Floats:
    wins, losses, ties, count = sums.T
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

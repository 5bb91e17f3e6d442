"""A judge that compares the response with another one: the reference's, or every other response of its group.

Judges prefer a place: in published runs up to half of the pairs get another verdict when the two are swapped.  So each
pair is judged in both orders, and the policy says what two verdicts that disagree come to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, ClassVar, Literal, TypeAlias

from adjudge.engines.interface import Fault
from adjudge.judges.language_judge import LanguageJudge, Opinion
from adjudge.options import Share
from adjudge.prompts.pairs import Pair, PairScorer
from adjudge.prompts.reading import LabelReader
from adjudge.prompts.template import Value
from adjudge.protocol import NO_COST, Cost, Sample, Score

Policy: TypeAlias = Literal["both", "average", "sum", "weighted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """One comparison, as it was seen by the judge.

    Attributes:
        response_first: whether the response to be scored was shown first.
        opinion: the judge's view; its labels speak of the response shown first.
        advantages: label to the advantage of the response shown first: above 0 a win, below 0 a loss, 0 a tie.
    """

    response_first: bool
    opinion: Opinion
    advantages: Mapping[str, float]

    def chance(self, tie: float) -> float:
        """Return how likely the response wins, in [0, 1]; a tie counts as `tie`."""
        first = self.opinion.value({label: _points(value) for label, value in self.advantages.items()})
        ties = self.opinion.value({label: float(value == 0) for label, value in self.advantages.items()})
        return (first if self.response_first else 1 - ties - first) + tie * ties

    def sign(self) -> int:
        """Return 1 when the response won, -1 when it lost, 0 for a tie."""
        mean = self.opinion.value({label: (value > 0) - (value < 0) for label, value in self.advantages.items()})
        sign = (mean > 1e-12) - (mean < -1e-12)
        return sign if self.response_first else -sign

    def games(self) -> tuple[float, float]:
        """Return the points of the response and the games they were won in, where an advantage of 3 is 3 games."""
        count = self.opinion.value({label: max(1.0, abs(value)) for label, value in self.advantages.items()})
        first = self.opinion.value(
            {
                label: max(1.0, abs(value)) * (0.5 if value == 0 else _points(value))
                for label, value in self.advantages.items()
            }
        )
        return (first if self.response_first else count - first), count

    def first_won(self) -> bool | None:
        """Return whether the response that was shown first won; None for a tie."""
        sign = self.sign() if self.response_first else -self.sign()
        return None if sign == 0 else sign > 0

    def evidence(self) -> dict[str, Any]:
        """Return plain data that lets a person check the game."""
        shares = self.opinion.shares
        verdict = max(shares, key=lambda label: shares[label])
        first = "response" if self.response_first else "other"
        return {"first": first, "verdict": verdict, **self.opinion.evidence()}


def settled(games: Sequence[Game], policy: Policy, tie: float) -> float:
    """Return what the games are worth to the response, in [0, 1].

    "both": 1 if every game was won, 0 if every game was lost, else `tie`.  "average": the mean chance of winning.
    "sum": wins count 1 and losses -1; the sign of the sum decides, and 0 is `tie`.  "weighted": the share of points,
    where a clear win is several games (Arena-Hard).
    """
    signs = [game.sign() for game in games]
    if policy == "both":
        return 1.0 if min(signs) > 0 else 0.0 if max(signs) < 0 else tie
    if policy == "sum":
        total = sum(signs)
        return 1.0 if total > 0 else 0.0 if total < 0 else tie
    if policy == "weighted":
        points = [game.games() for game in games]
        return sum(won for won, _ in points) / sum(count for _, count in points)
    return sum(game.chance(tie) for game in games) / len(games)


def _points(advantage: float) -> float:
    return 1.0 if advantage > 0 else 0.0


_KEYS = {"response", "answer"}


@dataclass(frozen=True, kw_only=True)
class PairwiseJudge(PairScorer[list[Game] | Fault], LanguageJudge):
    """A model compares two responses to the same prompt; 1 for a win, 0 for a loss.

    The reference is the other response: a text, or `{"response": text, "answer": text}` with a good answer to show to
    the judge.  With `against="group"` there is none: each response is compared with every other one of its group, and
    its score is the mean.

    Attributes:
        orders: "both" shows each pair twice, swapped; "one" shows it once, in an order that its texts decide.
        policy: what the games come to: "both" (a win must be won in both orders), "average" (the mean chance),
            "sum" (the sign of wins minus losses) or "weighted" (a clear win is several games).
        tie: what a tie is worth, in [0, 1].
        labels: label to the advantage of the response shown first: above 0 it wins, below 0 it loses, 0 is a tie.
        output: "unit" from 0 to 1; "signed" from -1 to 1.
        window: only so many characters at the end of the judge's text are read; 0 for all.
        sole: whether every verdict in what is read must be the same, and not only the last line's.
    """

    name: ClassVar[str] = "pairwise_judge"
    version: ClassVar[str] = "3"
    text_template: ClassVar[str] = "judges/pairwise"
    direct_template: ClassVar[str] = "judges/pairwise_direct"

    orders: Literal["both", "one"] = "both"
    policy: Policy = "both"
    tie: Share = 0.5
    labels: Mapping[str, float] = field(default_factory=lambda: {"A": 1.0, "B": -1.0, "tie": 0.0})
    output: Literal["unit", "signed"] = "unit"
    window: int = 0
    sole: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        worth = self.advantages
        if not (any(value > 0 for value in worth.values()) and any(value < 0 for value in worth.values())):
            raise ValueError(f"{self.name} option labels={self.labels!r}; one must stand for a win and one for a loss")
        for template in self.prompts():
            if template.labels and set(template.labels) != set(worth):
                asked = ", ".join(f"{label}: .." for label in template.labels)
                raise ValueError(
                    f"{self.name}: its prompt asks for {template.labels}; give each the advantage of the response that "
                    f"is shown first, as in labels: {{{asked}}}"
                )
        self.read("", "0")

    @property
    def lowest(self) -> float:
        """The value of a loss against everybody."""
        return -1.0 if self.output == "signed" else 0.0

    @property
    def advantages(self) -> Mapping[str, float]:
        """Each verdict and the advantage of the response shown first."""
        return {str(label): float(value) for label, value in self.labels.items()}

    def read(self, text: str, nonce: str = "", /) -> str | None:
        """Return the verdict that a text ends in, or None."""
        form, labels = self.prompts()[-1].form, tuple(self.advantages)
        return LabelReader(form=form, labels=labels, window=self.window, sole=self.sole)(text, nonce)

    def other_of(self, reference: Any) -> str:
        """Return the other response that a reference holds; `ValueError` for none, or something else beside it."""
        other = reference.get("response") if isinstance(reference, Mapping) else reference
        extra = set(reference) - _KEYS if isinstance(reference, Mapping) else set()
        if extra or not isinstance(other, str) or not other.strip():
            raise ValueError(
                f"the reference is {reference!r}; it must be the other response as a text, or "
                '{"response": text, "answer": text}'
            )
        return other

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` unless there is another response, or, in a group, none but the group's."""
        if self.against == "reference":
            self.other_of(sample.reference)
        elif sample.reference is not None and not isinstance(sample.reference, str):
            raise ValueError(
                f"the reference is {sample.reference!r}; in a group it may be a good answer as a text, or left out"
            )

    def values(self, pair: Pair) -> dict[str, Value]:
        """Return what fills the prompt's fields."""
        reference: Any = pair.sample.reference
        answer: Any = reference.get("answer") if isinstance(reference, Mapping) else None
        other: Any = reference if self.groupwise else answer
        shown = (pair.response, pair.other) if pair.response_first else (pair.other, pair.response)
        return {
            "question": pair.sample.prompt,
            "reference": other,
            "response_a": shown[0],
            "response_b": shown[1],
            "criteria": self.criteria or None,
            "rubric": self.rubric_of(pair.sample),
            "answers": "one of: " + ", ".join(self.advantages),
        }

    async def compared(self, pairs: Sequence[Pair]) -> list[list[Game] | Fault]:
        """Return the games of each pair, or why there are none; equal responses need no game and have none."""
        asked: list[tuple[int, Pair]] = []
        for place, pair in enumerate(pairs):
            if pair.response != pair.other:
                firsts = (True, False) if self.orders == "both" else (_comes_first(pair.response, pair.other),)
                asked += [(place, replace(pair, response_first=first)) for first in firsts]
        opinions = await self.opinions([pair for _, pair in asked], self.values, self.read, tuple(self.advantages))
        games: list[list[Game] | Fault] = [[] for _ in pairs]
        for (place, pair), opinion in zip(asked, opinions, strict=True):
            row = games[place]
            if isinstance(row, Fault):
                games[place] = replace(row, cost=row.cost + opinion.cost)
            elif isinstance(opinion, Fault):
                games[place] = replace(opinion, cost=_cost(row) + opinion.cost)
            else:
                row.append(Game(response_first=pair.response_first, opinion=opinion, advantages=self.advantages))
        return games

    def scored(self, results: Sequence[list[Game] | Fault], forfeits: int = 0) -> Score:
        """Return the score of a response from its games with each opponent.

        A game that the response makes too long is lost, one that the other does is none.
        """
        faults = [result for result in results if isinstance(result, Fault)]
        played = [result for result in results if not isinstance(result, Fault)]
        cost = sum((_cost(games) for games in played), sum((fault.cost for fault in faults), NO_COST))
        lost = [fault for fault in faults if fault.reason == "too_complex"]
        unknown = [fault for fault in faults if fault not in lost and not (fault.too_long and self.groupwise)]
        over = len(played) + len(lost)
        known = over + forfeits
        if unknown and (not over or over < self.quorum * (over + len(unknown))):
            return replace(self.unanswered(unknown[0]), cost=cost)
        if faults and not played and (lost or not forfeits):
            return replace(self.unanswered((lost or faults)[0]), cost=cost)
        if not known:
            return Score.failed("group_too_small", error="the group has no other response to compare with")
        values = [settled(games, self.policy, self.tie) if games else self.tie for games in played]
        value = (sum(values) + forfeits) / known
        evidence = _evidence(played)
        if self.groupwise:
            evidence |= {"opponents": known, "forfeits": forfeits, "missing": len(faults)}
        if lost:
            evidence["fault"] = lost[0].detail
        signed = self.output == "signed"
        reason = "too_complex" if lost else ""
        return Score(value=2 * value - 1 if signed else value, reason=reason, evidence=evidence, cost=cost)


def _cost(games: Sequence[Game]) -> Cost:
    return sum((game.opinion.cost for game in games), NO_COST)


def _comes_first(response: str, other: str) -> bool:
    """Whether the response is shown first when a pair is shown once: a coin that both texts toss together."""
    small, large = sorted((response, other))
    text = f"{len(small)}\x00{small}{large}".encode("utf-8", "surrogatepass")
    smaller_first = blake2b(text, key=b"adjudge pair order", digest_size=1).digest()[0] & 1 == 0
    return smaller_first == (response == small)


def _evidence(played: Sequence[list[Game]]) -> dict[str, Any]:
    games = [game for row in played for game in row]
    if not games:
        return {"identical": True} if played else {}
    evidence: dict[str, Any] = {"games": len(games), "first_won": sum(game.first_won() is True for game in games)}
    evidence["consistent"] = sum(len({game.sign() for game in row}) == 1 for row in played if len(row) > 1)
    evidence["pairs"] = len(played)
    if len(played) == 1:
        evidence["orders"] = [game.evidence() for game in games]
    return evidence

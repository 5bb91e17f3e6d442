"""Rules that compare more than one score: two scorers, several factors, outcomes of programs, both orders, labels.

- `agreement` (CycleAlign): of the answers that both scorers scored, the longest list that both put in the same strict
  order; its members are pairs.  The round in which it becomes the next demonstration is not covered.
- `heron` (HERON, after the paper): two answers are compared by the first factor; if they differ by no more than its
  threshold, by the next.  With thresholds above 0 this is not an order: A may win over B, B over C, and C over A.
- `execution_order` (HERON's released code): compile error < runtime error < failed test < pass, read from what the
  scorers `code` and `verilog` say beside the score: the evidence's `stage`, and the reason.  A response without a
  program, and one that tampered, stand with those that do not compile: HERON says nothing of them.
- `both_orders`: a row is a comparison with another response: output of `pairwise_judge`, whose evidence says whether
  both games agree, or one game a row, the response shown first; of each pair there must be two rows, sides swapped.
- `duoguard` (DuoGuard's generator): a group is one seed with the variants that a generator wrote of it; a variant that
  no longer has the seed's label, as a rater sees it, is in no pair.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Annotated, Any, ClassVar, Final, Literal

from adjudge.data_pipelines.pairs.rule import Answer, Needs, Pair, Rule, ScoredGroup
from adjudge.io.jobs.maker import Kind
from adjudge.io.values import number_of
from adjudge.options import Range


@dataclass(frozen=True, kw_only=True)
class Agreement(Rule):
    """Answers that two scorers rank alike; margins are differences of the first scorer's.

    Attributes:
        first: column of the one scorer's numbers.
        second: column of the other's.
        pairs_of: "all" members of the agreed ranking, or only "neighbours" in it.
    """

    name: ClassVar[str] = "agreement"
    asks = Needs(score=False)
    reads = ("first", "second")
    adds: ClassVar[Mapping[str, Kind]] = {
        "agreed": "whole",
        "of": "whole",
    }  # answers in the ranking, and scored by both

    first: str
    second: str
    pairs_of: Literal["all", "neighbours"] = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.first or not self.second or self.first == self.second:
            raise ValueError(
                f"agreement option first={self.first!r} and second={self.second!r}; name two columns with scores"
            )

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        known = [
            (a, b, one)
            for one in group.answers
            if (a := one.number(self.first)) is not None and (b := one.number(self.second)) is not None
        ]
        known.sort(key=lambda one: (-one[0], one[1], group.draw(one[2].text)))
        ranking = longest_falling(known)
        more = {"agreed": len(ranking), "of": len(known)}
        together = combinations(ranking, 2) if self.pairs_of == "all" else pairwise(ranking)
        for (high, _, better), (low, _, worse) in together:
            yield Pair(chosen=better, rejected=worse, margin=high - low, more=more)


def longest_falling(scored: list[tuple[float, float, Answer]]) -> list[tuple[float, float, Answer]]:
    """Return the longest part in which both numbers fall strictly."""
    best: list[int] = []
    before: list[int] = []
    for at, (_, second, _) in enumerate(scored):
        earlier = [other for other in range(at) if scored[other][1] > second and scored[other][0] > scored[at][0]]
        before.append(max(earlier, key=lambda other: best[other], default=-1))
        best.append(1 + (best[before[-1]] if before[-1] >= 0 else 0))
    ranking: list[tuple[float, float, Answer]] = []
    at = max(range(len(scored)), key=lambda place: best[place], default=-1)
    while at >= 0:
        ranking.append(scored[at])
        at = before[at]
    return ranking[::-1]


@dataclass(frozen=True, kw_only=True)
class Heron(Rule):
    """The most important factor in which two answers differ decides.

    An answer that lacks a factor is compared by none behind it: with those before it undecided there is no pair.

    Attributes:
        factors: columns that hold numbers, most important first; more is better.  "-name" for less is better.
        over: differences up to this do not decide: one for each factor, or one for all.
        margin: "level": `scale` times the number of factors from the deciding one on, so the most important counts
            most; "difference": the deciding factor's difference.
        scale: of a level.
    """

    name: ClassVar[str] = "heron"
    adds: ClassVar[Mapping[str, Kind]] = {"factor": "text"}  # the one that decided

    factors: tuple[str, ...]
    over: tuple[float, ...] = (0.0,)
    margin: Literal["level", "difference"] = "level"
    scale: Annotated[float, Range(gt=0)] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.factors or not all(isinstance(name, str) and name.removeprefix("-") for name in self.factors):
            raise ValueError(f"heron option factors={self.factors!r}; name the columns, most important first")
        if len(self.over) not in (1, len(self.factors)) or not all(
            isinstance(one, float) and 0 <= one < math.inf for one in self.over
        ):
            raise ValueError(
                f"heron option over={self.over!r} for {len(self.factors)} factors; give one threshold of 0 or more for "
                "each, or one for all"
            )

    @property
    def needs(self) -> Needs:
        """The factors."""
        return Needs(score=False, columns=tuple(name.removeprefix("-") for name in self.factors))

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        known = [(one, [self._worth(one, name) for name in self.factors]) for one in group.answers]
        known.sort(key=lambda one: group.draw(one[0].text))
        over = self.over * len(self.factors) if len(self.over) == 1 else self.over
        for (one, mine), (other, theirs) in combinations(known, 2):
            for level, (a, b) in enumerate(zip(mine, theirs, strict=True)):
                if a is None or b is None:
                    break
                if abs(a - b) > over[level]:
                    chosen, rejected = (one, other) if a > b else (other, one)
                    margin = abs(a - b) if self.margin == "difference" else self.scale * (len(self.factors) - level)
                    yield Pair(chosen=chosen, rejected=rejected, margin=margin, more={"factor": self.factors[level]})
                    break

    def _worth(self, answer: Answer, factor: str) -> float | None:
        worth = answer.number(factor.removeprefix("-"))
        return -worth if worth is not None and factor.startswith("-") else worth


Outcome = Literal["compile_error", "runtime_error", "failed_test", "passed"]

LEVELS: Final[Mapping[str, float]] = {"compile_error": -2, "runtime_error": -1, "failed_test": 0, "passed": 1}
RETURNS: Final[Mapping[str, float]] = {"compile_error": -1, "runtime_error": -0.6, "failed_test": -0.3, "passed": 1}
_UNBUILT_STAGES = frozenset({"extract", "parse", "compile", "syntax", "rules", "ports", "elaborate"})
_UNBUILT_REASONS = frozenset({"no_answer", "several_answers", "unparsable_answer", "bad_format", "tampering"})
_CRASHED = frozenset(f"candidate_{how}" for how in ("error", "timeout", "memory", "crash", "output"))


@dataclass(frozen=True, kw_only=True)
class ExecutionOrder(Rule):
    """A program that came farther wins; two that came equally far are not a pair.

    Attributes:
        margin: "levels" (-2, -1, 0, 1) or "returns" (-1, -0.6, -0.3, 1): differences of these are margins.
    """

    name: ClassVar[str] = "execution_order"
    adds: ClassVar[Mapping[str, Kind]] = {"chosen_outcome": "text", "rejected_outcome": "text"}

    margin: Literal["levels", "returns"] = "levels"

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        worth = LEVELS if self.margin == "levels" else RETURNS
        outcomes = [(one, outcome_of(one)) for one, _ in group.ranked()]
        known = [(one, outcome) for one, outcome in outcomes if outcome is not None]
        known.sort(key=lambda one: -LEVELS[one[1]])
        for (better, high), (worse, low) in combinations(known, 2):
            if high != low:
                more = {"chosen_outcome": high, "rejected_outcome": low}
                yield Pair(chosen=better, rejected=worse, margin=worth[high] - worth[low], more=more)


def outcome_of(answer: Answer) -> Outcome | None:
    """Return how far a program came; None where neither score, stage nor reason says."""
    if answer.score is not None and answer.score >= 1:
        return "passed"
    reason, stage = (str(answer.said(path)) for path in ("reason", "evidence.stage"))  # whatever a row holds there
    if stage in _UNBUILT_STAGES or reason in _UNBUILT_REASONS:
        return "compile_error"
    if reason in _CRASHED or (stage == "run" and reason != "wrong"):
        return "runtime_error"
    return "failed_test" if stage in ("test", "run", "proof") or reason == "wrong" else None


@dataclass(frozen=True, slots=True)
class _Game:
    """A row: who met whom, and by how much the first won; below 0 it lost."""

    answer: Answer
    other: str
    lead: float


@dataclass(frozen=True, kw_only=True)
class BothOrders(Rule):
    """The response that won in both orders; the margin is how far the mean score is from a tie, times two.

    Attributes:
        other: column of the response it was compared with: a text, or an object with the field `response`.
        tie: the score of a tie: 0.5 for scores from 0 to 1, 0 for those from -1 to 1.
    """

    name: ClassVar[str] = "both_orders"
    asks = Needs(merged=False)
    reads = ("other",)

    other: str = "other"
    tie: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.other:
            raise ValueError("both_orders: other is empty; name the column of the response it was compared with")

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        single: defaultdict[tuple[str, str], list[_Game]] = defaultdict(list)
        for answer, score in group.ranked():
            other = _text_of(answer.value(self.other))
            if other is None:
                continue
            game = _Game(answer, other, score - self.tie)
            games = number_of(answer.said("evidence.games"))
            if games is None or games < 2:
                single[answer.text, other].append(game)
            elif answer.said("evidence.consistent") == answer.said("evidence.pairs") == 1 and game.lead:
                yield self._pair(game, abs(game.lead))
        for (text, other), games_of_pair in sorted(single.items()):
            swapped = single.get((other, text), [])
            if text < other and swapped:
                leads = [game.lead for game in games_of_pair] + [-game.lead for game in swapped]
                if all(lead > 0 for lead in leads) or all(lead < 0 for lead in leads):
                    yield self._pair(games_of_pair[0], abs(math.fsum(leads)) / len(leads))

    def _pair(self, game: _Game, lead: float) -> Pair:
        other = Answer(id="other", text=game.other, place=-1, score=self.tie - game.lead)
        chosen, rejected = (game.answer, other) if game.lead > 0 else (other, game.answer)
        return Pair(chosen=chosen, rejected=rejected, margin=2 * lead)


def _text_of(value: Any) -> str | None:
    text = value.get("response") if isinstance(value, Mapping) else value
    return text if isinstance(text, str) else None


@dataclass(frozen=True, kw_only=True)
class DuoGuard(Rule):
    """A variant that keeps the label and fools the classifier wins over one that keeps it and does not.

    Labels are words or whole numbers.  Where the classifier's column holds a chance in [0, 1] and labels are 0 and 1,
    it says 1 above the threshold, and the margin is how much less chance it gives to the truth; otherwise there is
    none.  A guess that can be no such label, such as a chance where labels are words, says nothing.

    Attributes:
        label: column of the seed's label.
        rated: column of the variant's label, as the rater sees it.
        guess: column of the classifier's label, or of its chance of the label 1.
        threshold: above it, a chance says 1.
    """

    name: ClassVar[str] = "duoguard"
    asks = Needs(score=False)
    reads = ("label", "rated", "guess")

    label: str = "label"
    rated: str = "rated"
    guess: str = "guess"
    threshold: Annotated[float, Range(gt=0, lt=1)] = 0.5

    def pairs(self, group: ScoredGroup) -> Iterator[Pair]:
        """Yield the pairs."""
        fooled: list[tuple[Answer, float | None]] = []
        easy: list[tuple[Answer, float | None]] = []
        for answer in sorted(group.answers, key=lambda one: group.draw(one.text)):
            label, rated, guess = (_label(answer.value(name)) for name in (self.label, self.rated, self.guess))
            if label is None or guess is None or rated != label or isinstance(guess, str) != isinstance(label, str):
                continue
            truth = None
            if isinstance(guess, float):
                if label in (0, 1) and 0 <= guess <= 1:
                    truth = guess if label else 1 - guess
                    guess = float(guess > self.threshold)
                elif not guess.is_integer():
                    continue
            (easy if guess == label else fooled).append((answer, truth))
        for better, small in fooled:
            for worse, large in easy:
                margin = None if small is None or large is None else large - small
                yield Pair(chosen=better, rejected=worse, margin=margin)


def _label(value: Any) -> str | float | None:
    """A label as a number, also where CSV spells it; or as text, small letters and no blanks around; None for none."""
    number = number_of(value)
    return (value.strip().lower() or None) if number is None and isinstance(value, str) else number

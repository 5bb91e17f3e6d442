"""The quality gate: an item may judge only if it was seen to tell known good responses from known bad ones.

Every item is judged on every labelled response by the scorer that will use it later.  Counts, shares, their difference
and the intervals are kept with the item, and with every item that was left out there is the reason.

Intervals: Wilson's for shares, Newcombe's method 10 (1998) for the difference, both of 95 %.  Two right out of two
against none out of two is a difference of 1 with the interval 0.07 to 1.

Not covered: many items at once.  Of forty useless items one is expected to pass a gate of 95 % by luck; look at the
kept ones again on other responses.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from adjudge.data_pipelines.items.config import AskingConfig
from adjudge.io import values
from adjudge.io.columns import MISSING, Column
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import scores_of
from adjudge.io.jobs.lines import Unfit, fitted
from adjudge.io.jobs.maker import DroppedError, Unit
from adjudge.io.jobs.row_maker import Account
from adjudge.io.values import Text, is_chat, plain, text_or_chat
from adjudge.protocol import Message, Sample, Score, Scorer, response_text
from adjudge.runtime.contract import validate_sample
from adjudge.statistics.intervals import UNKNOWN, Interval, wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Responses to one prompt, each text once."""

    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()

    def split(self, share: float, seed: int) -> tuple[Labelled, Labelled]:
        """Return those to be shown and those held back; which is which depends on the texts and the seed alone.

        Raises:
            DroppedError: a side has fewer than two, so none could be shown and none held back.
        """
        shown, held = [], []
        for name, texts in (("good", self.good), ("bad", self.bad)):
            if len(texts) < 2:
                raise DroppedError(f"too_few_{name}")
            ordered = sorted(texts, key=lambda text: _lot(text, seed))
            kept = min(len(texts) - 1, max(1, round(share * len(texts))))
            held.append(tuple(ordered[:kept]))
            shown.append(tuple(ordered[kept:]))
        return Labelled(good=shown[0], bad=shown[1]), Labelled(good=held[0], bad=held[1])


def labelled_of(unit: Unit, config: AskingConfig, account: Account) -> Labelled:
    """Return the labelled responses of a unit; one that is called both is left out, and counted.

    Raises:
        DroppedError: a column holds something that is no response.
    """
    good = _distinct(responses_of(unit, config.good_column))
    bad = _distinct(responses_of(unit, config.bad_column))
    both = good.keys() & bad.keys()
    account.drop("called_good_and_bad", len(both))
    return Labelled(
        good=tuple(text for key, text in good.items() if key not in both),
        bad=tuple(text for key, text in bad.items() if key not in both),
    )


def responses_of(unit: Unit, column: str) -> list[str]:
    """Return the responses that a column holds: text, chat turns, or a list of such; () where it holds none.

    Raises:
        DroppedError: it holds something else.
    """
    found = []
    for value in _values(unit, column):
        several = value if isinstance(value, list) and not is_chat(value) else [value]
        for one in several:
            try:
                text = response_text(Sample(prompt="", response=text_or_chat(one, "response", column)))
            except ValueError:
                raise DroppedError("bad_response") from None
            if text.strip():
                found.append(text)
    return found


def texts_of(unit: Unit, column: str, *, inside: str = "text", reason: str) -> list[str]:
    """Return the texts that a column holds: a text, or a list of texts or of mappings with one.

    A list that rows of a group repeat is what they share, and counts once; equal texts of rows count each.

    Args:
        unit: its rows.
        column: the column.
        inside: under which a mapping holds its text.
        reason: why a unit is left out in which the column holds something else.

    Raises:
        DroppedError: it does.
    """
    found: list[str] = []
    shared: set[tuple[str, ...]] = set()
    for value in _values(unit, column):
        several = isinstance(value, list)
        texts: list[Any] = [
            one.get(inside) if isinstance(one, Mapping) else one for one in (value if several else [value])
        ]
        if not all(isinstance(text, str) for text in texts):
            raise DroppedError(reason)
        if several and tuple(texts) in shared:
            continue
        if several:
            shared.add(tuple(texts))
        found += [text for text in texts if text.strip()]
    return found


def prompt_of(unit: Unit, column: str) -> Text:
    """Return the prompt that all rows of a unit share.

    Raises:
        DroppedError: there is none, or they differ.
    """
    given = [value for value in (Column(column).of(row) for row in unit.rows) if value is not MISSING]
    try:
        found: list[Text] = [fitted(values.prompt_of(one, column), "chat") for one in given]
    except (ValueError, Unfit):
        raise DroppedError("no_prompt") from None
    if not found or not all(found):
        raise DroppedError("no_prompt")
    if len(found) < len(unit.rows) or any(one != found[0] for one in found):
        raise DroppedError("prompts_differ")
    return found[0]


def _values(unit: Unit, column: str) -> list[Any]:
    found = [plain(Column(column).of(row)) for row in unit.rows] if column else []
    return [value for value in found if value is not MISSING and value is not None]


def _distinct(texts: Sequence[str]) -> dict[str, str]:
    """Texts by what they are without runs of white space."""
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(" ".join(text.split()), text)
    return found


def _lot(text: str, seed: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=str(seed).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How an item did on labelled responses.

    Attributes:
        good: share of the good responses that meet it, in [0, 1].
        bad: the same of the bad ones.
        verdicts: how far each response meets it, good ones first; None where nobody knows.
    """

    good: Interval
    bad: Interval
    verdicts: tuple[float | None, ...]

    @property
    def difference(self) -> Interval:
        """Share among good minus share among bad, in [-1, 1]."""
        return difference(self.good, self.bad)

    @property
    def agreement(self) -> Interval:
        """Share of all responses on which item and label agree."""
        if self.good.value is None or self.bad.value is None:
            return UNKNOWN
        right = self.good.n * self.good.value + self.bad.n * (1 - self.bad.value)
        n = self.good.n + self.bad.n
        return wilson(min(right, n), n)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "good": self.good.to_dict(),
            "bad": self.bad.to_dict(),
            "difference": self.difference.to_dict(),
            "agreement": self.agreement.to_dict(),
        }


class Rule(Protocol):
    """Decides which items are kept."""

    def why_not(self, trial: Trial) -> str:
        """Return why an item is left out, in snake_case; "" if it is kept."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Separates:
    """Keeps items that more of the good responses meet."""

    least: float
    bound: float

    def why_not(self, trial: Trial) -> str:
        """Return "unjudged", "separates_backwards", "separates_too_little", "separates_unsurely" or ""."""
        found = trial.difference
        if found.value is None or found.low is None:
            return "unjudged"
        if found.value < 0:
            return "separates_backwards"
        if found.value < self.least:
            return "separates_too_little"
        return "" if found.low > self.bound else "separates_unsurely"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agrees:
    """Keeps items that agree with the labels often enough, on good and on bad responses alike.

    Attributes:
        least: the share that must be exceeded.
        balanced: whether on either side; without it what always says yes agrees where most are good.
    """

    least: float
    balanced: bool = True

    def why_not(self, trial: Trial) -> str:
        """Return "unjudged", "agrees_too_little" or ""."""
        good, bad, both = trial.good.value, trial.bad.value, trial.agreement.value
        if good is None or bad is None or both is None:
            return "unjudged"
        shares = (both, good, 1 - bad) if self.balanced else (both,)
        return "" if all(share > self.least for share in shares) else "agrees_too_little"


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Tries items on labelled responses."""

    scorer: Scorer
    rule: Rule

    @property
    def fingerprint(self) -> str:
        """Changes whenever another item could be kept."""
        return f"{self.scorer.fingerprint} {self.rule!r}"

    async def tried(
        self, references: Sequence[Any], prompt: str | Sequence[Message], responses: Labelled, account: Account
    ) -> list[tuple[Trial, str]]:
        """Return for each item how it did, and why it is left out ("" if it is kept).

        Args:
            references: for each item, the reference with which the scorer judges it alone.
            prompt: what the responses answer.
            responses: the labelled responses.
            account: takes costs, and how many verdicts there were and how many were missing.

        Raises:
            JobError: the scorer is broken, or its engine is gone.
        """
        texts = [*responses.good, *responses.bad]
        trials: list[tuple[Trial, str] | None] = [None] * len(references)
        samples: list[Sample] = []
        places: list[int] = []
        for place, reference in enumerate(references):
            mine = [Sample(prompt=prompt, response=text, reference=reference) for text in texts]
            try:
                for sample in mine[:1]:
                    validate_sample(self.scorer, sample)
            except ValueError:
                trials[place] = Trial(good=UNKNOWN, bad=UNKNOWN, verdicts=(None,) * len(texts)), "unreadable_item"
                continue
            samples += mine
            places.append(place)
        scores = await self._scores(samples)
        for at, place in enumerate(places):
            trial = self._trial(scores[at * len(texts) : (at + 1) * len(texts)], len(responses.good), account)
            trials[place] = trial, self.rule.why_not(trial)
        return [trial for trial in trials if trial is not None]

    async def _scores(self, samples: Sequence[Sample]) -> list[Score]:
        scores = await scores_of(self.scorer, samples, "the scorer of the quality gate")
        for score in scores:
            if score.value is not None and not 0 <= score.value <= 1:
                raise JobError(
                    f"the scorer of the quality gate, {self.scorer.name!r}, gave {score.value!r}; it needs one whose "
                    "scores are in [0, 1]"
                )
        return scores

    def _trial(self, scores: Sequence[Score], good: int, account: Account) -> Trial:
        verdicts = tuple(score.value for score in scores)
        account.cost = sum((score.cost for score in scores), account.cost)
        account.counts["verdicts"] += sum(verdict is not None for verdict in verdicts)
        account.counts["verdicts_missing"] += sum(verdict is None for verdict in verdicts)
        return Trial(good=_share(verdicts[:good]), bad=_share(verdicts[good:]), verdicts=verdicts)


def difference(one: Interval, two: Interval) -> Interval:
    """Return the difference of two shares with Newcombe's interval, which squares and adds the shares' own errors."""
    if one.value is None or two.value is None or None in (one.low, one.high, two.low, two.high):
        return UNKNOWN
    assert one.low is not None
    assert one.high is not None
    assert two.low is not None
    assert two.high is not None
    value = one.value - two.value
    below = math.hypot(one.value - one.low, two.high - two.value)
    above = math.hypot(one.high - one.value, two.value - two.low)
    return Interval(value=value, low=max(-1.0, value - below), high=min(1.0, value + above), n=one.n + two.n)


def _share(verdicts: Sequence[float | None]) -> Interval:
    known = [verdict for verdict in verdicts if verdict is not None]
    return wilson(min(math.fsum(known), len(known)), len(known))

"""The quality gate: an item may judge only if it was seen to tell known good responses from known bad ones.

Every item is judged on every labelled response by the scorer that will use it later.  Intervals are Wilson's for shares
and Newcombe's method 10 (1998) for their difference, both of 95 %.  Two right out of two against none out of two is a
difference of 1 with the interval 0.07 to 1.

Not covered: many items at once.  Of forty useless items one is expected to pass a gate of 95 % by luck; look at the
kept ones again on other responses.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from adjudge.data_pipelines.items.config import AskingConfig
from adjudge.io import values
from adjudge.io.columns import MISSING, Column
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import scores_of
from adjudge.io.jobs.lines import Unfit, fitted
from adjudge.io.jobs.maker import DroppedError, Unit
from adjudge.io.jobs.row_maker import Account
from adjudge.io.values import Text, is_chat, plain, text_or_chat
from adjudge.protocol import Sample, Score, Scorer, response_text
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
    """Return the labelled responses of a unit; one that is called both is left out, and counted."""
    good = _distinct(responses_of(unit, config.good_column))
    bad = _distinct(responses_of(unit, config.bad_column))
    both = good.keys() & bad.keys()
    account.drop("called_good_and_bad", len(both))
    return Labelled(
        good=tuple(text for key, text in good.items() if key not in both),
        bad=tuple(text for key, text in bad.items() if key not in both),
    )


def responses_of(unit: Unit, column: str) -> list[str]:
    """Return the responses that a column holds: text, chat turns, or a list of such; none where it holds none."""
    responses = []
    for value in _values(unit, column):
        several = value if isinstance(value, list) and not is_chat(value) else [value]
        for one in several:
            try:
                text = response_text(Sample(prompt="", response=text_or_chat(one, "response", column)))
            except ValueError:
                raise DroppedError("bad_response") from None
            if text.strip():
                responses.append(text)
    return responses


def texts_of(unit: Unit, column: str, *, inside: str = "text", reason: str) -> list[str]:
    """Return the texts that a column holds: a text, or a list of texts or of mappings with one under `inside`.

    A list that rows of a group repeat is what they share, and counts once; equal texts of rows count each.  Where the
    column holds something else, the unit is left out for `reason`.
    """
    texts: list[str] = []
    shared: set[tuple[str, ...]] = set()
    for value in _values(unit, column):
        several = value if isinstance(value, list) else [value]
        mine: list[Any] = [one.get(inside) if isinstance(one, Mapping) else one for one in several]
        if not all(isinstance(text, str) for text in mine):
            raise DroppedError(reason)
        if several is value and tuple(mine) in shared:
            continue
        if several is value:
            shared.add(tuple(mine))
        texts += [text for text in mine if text.strip()]
    return texts


def prompt_of(unit: Unit, column: str) -> Text:
    """Return the prompt that all rows of a unit share."""
    given = [value for value in (Column(column).of(row) for row in unit.rows) if value is not MISSING]
    try:
        prompts: list[Text] = [fitted(values.prompt_of(one, column), "chat") for one in given]
    except (ValueError, Unfit):
        raise DroppedError("no_prompt") from None
    if not prompts or not all(prompts):
        raise DroppedError("no_prompt")
    if len(prompts) < len(unit.rows) or any(one != prompts[0] for one in prompts):
        raise DroppedError("prompts_differ")
    return prompts[0]


def _values(unit: Unit, column: str) -> list[Any]:
    given = [plain(Column(column).of(row)) for row in unit.rows] if column else []
    return [value for value in given if value is not MISSING and value is not None]


def _distinct(texts: Sequence[str]) -> dict[str, str]:
    """Texts by what they are without runs of white space."""
    return {" ".join(text.split()): text for text in reversed(texts)}


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
        return {name: getattr(self, name).to_dict() for name in ("good", "bad", "difference", "agreement")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Separates:
    """Keeps items that more of the good responses meet."""

    least: float
    bound: float

    def why_not(self, trial: Trial) -> str:
        """Return "unjudged", "separates_backwards", "separates_too_little", "separates_unsurely" or ""."""
        more = trial.difference
        if more.value is None or more.low is None:
            return "unjudged"
        if more.value < 0:
            return "separates_backwards"
        if more.value < self.least:
            return "separates_too_little"
        return "" if more.low > self.bound else "separates_unsurely"


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
    rule: Separates | Agrees

    @property
    def fingerprint(self) -> str:
        """Changes whenever another item could be kept."""
        return f"{self.scorer.fingerprint} {self.rule!r}"

    async def tried(
        self, references: Sequence[Any], prompt: Text, responses: Labelled, account: Account
    ) -> list[tuple[Trial, str]]:
        """Return for each item how it did, and why it is left out ("" if it is kept).

        Args:
            references: for each item, the reference with which the scorer judges it alone.
            prompt: what the responses answer.
            responses: the labelled responses.
            account: takes costs, and how many verdicts there were and how many were missing.
        """
        texts = [*responses.good, *responses.bad]
        asked = [[Sample(prompt=prompt, response=text, reference=one) for text in texts] for one in references]
        readable = [not mine or is_readable(self.scorer, mine[0]) for mine in asked]
        samples = [sample for mine, fine in zip(asked, readable, strict=True) if fine for sample in mine]
        scores = await scores_of(self.scorer, samples, "the scorer of the quality gate")
        for score in scores:
            if score.value is not None and not 0 <= score.value <= 1:
                raise JobError(
                    f"the scorer of the quality gate, {self.scorer.name!r}, gave {score.value!r}; it needs one whose "
                    "scores are in [0, 1]"
                )
        left, trials = iter(scores), []
        for fine in readable:
            if fine:
                trial = self._trial([*islice(left, len(texts))], len(responses.good), account)
                trials.append((trial, self.rule.why_not(trial)))
            else:
                trial = Trial(good=UNKNOWN, bad=UNKNOWN, verdicts=(None,) * len(texts))
                trials.append((trial, "unreadable_item"))
        return trials

    def _trial(self, scores: Sequence[Score], good: int, account: Account) -> Trial:
        verdicts = tuple(score.value for score in scores)
        account.cost = sum((score.cost for score in scores), account.cost)
        account.counts["verdicts"] += sum(verdict is not None for verdict in verdicts)
        account.counts["verdicts_missing"] += sum(verdict is None for verdict in verdicts)
        return Trial(good=_share(verdicts[:good]), bad=_share(verdicts[good:]), verdicts=verdicts)


def is_readable(scorer: Scorer, sample: Sample) -> bool:
    """Return whether a scorer can judge by the reference of a sample."""
    try:
        validate_sample(scorer, sample)
    except ValueError:
        return False
    return True


def difference(one: Interval, two: Interval) -> Interval:
    """Return the difference of two shares with Newcombe's interval, which squares and adds the shares' own errors."""
    known = [bound for share in (one, two) for bound in (share.value, share.low, share.high) if bound is not None]
    if len(known) < 6:
        return UNKNOWN
    first, first_low, first_high, second, second_low, second_high = known
    value = first - second
    below = math.hypot(first - first_low, second_high - second)
    above = math.hypot(first_high - first, second - second_low)
    return Interval(value=value, low=max(-1.0, value - below), high=min(1.0, value + above), n=one.n + two.n)


def _share(verdicts: Sequence[float | None]) -> Interval:
    known = [verdict for verdict in verdicts if verdict is not None]
    return wilson(min(math.fsum(known), len(known)), len(known))

"""A probe is one change of a response, and the rule that its score must keep; the rows, and what became of variants.

| rule | what must hold of the changed response's score v; g and b are those of the good and the bad one |
|---|---|
| `same` | within epsilon of the response it was made of |
| `not_higher` | no more than epsilon above the response it was made of |
| `lower` | more than epsilon below the response it was made of |
| `worthless` | more than epsilon below g, and no more than epsilon above b |
| `order` | where g > b: still above the bad response changed in the same way; without a bad one, `same` |
| `below_good` | where g > b: below g |
| `aligned` | `same`, with as many steps as before; or no score at all |
| `mirrored` | v, the bad response compared with the good one, and g sum to 1 |

A constant score keeps `same`, `not_higher` and `mirrored`, and breaks `lower` and `worthless`: without those, a scorer
that says nothing would pass.

A probe that changes words must leave the answer right.  So accepted answers are never touched where they stand in the
text, nor is anything inside `<answer>` elements, code, mathematics, LaTeX commands, tags or links, nor a word with a
digit in it.
"""

from __future__ import annotations

import heapq
import itertools
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, Literal, TypeAlias, get_args

from adjudge.evals.probes.planted import answers_in, spelling
from adjudge.protocol import Message, Score, content_text
from adjudge.responses.whole_regions import Region, display_regions, inline_regions
from adjudge.statistics.intervals import LEVEL, Interval, wilson

Domain: TypeAlias = Literal["text", "code", "verdict"]
"""What responses are: text with an answer in it, a program, or what a judge says of other responses."""

DOMAINS: Final[tuple[Domain, ...]] = get_args(Domain)

_PROGRAMS: Final = frozenset({"tests", "sql", "testbench", "top", "program", "design"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow:
    """One row.

    Attributes:
        bad: a bad response to the same prompt; None where none is known.
        planted: whether `bad` is the good response of another row.
        other: a good response of another row that is not right here; "" if there is none.
        equals: further responses that are as good, by kind: "translation", "paraphrase", ...
    """

    id: str
    prompt: str | Sequence[Message]
    good: str
    bad: str | None = None
    planted: bool = False
    other: str = ""
    reference: Any = None
    domain: Domain = "text"
    equals: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.good.strip():
            raise ValueError(f"the row {self.id!r} has an empty good response; probes change a response that is good")
        if self.domain not in DOMAINS:
            raise ValueError(f"the row {self.id!r} has the domain {self.domain!r}; give one of {', '.join(DOMAINS)}")

    @property
    def asked(self) -> str:
        """The prompt's text: of a chat, its last user turn."""
        if isinstance(self.prompt, str):
            return self.prompt
        turns = [turn for turn in self.prompt if turn.get("role") == "user"]
        return content_text(turns[-1].get("content")) if turns else ""

    def asking(self, text: str) -> str | Sequence[Message]:
        """Return the prompt with another text in the place of `asked`."""
        if isinstance(self.prompt, str):
            return text
        places = [at for at, turn in enumerate(self.prompt) if turn.get("role") == "user"]
        last = places[-1] if places else -1
        return [{**turn, "content": text} if at == last else turn for at, turn in enumerate(self.prompt)]

    @property
    def golds(self) -> list[str]:
        """The accepted answers as texts; none where the reference holds no answer as text, or the row is a program."""
        return [] if self.domain == "code" else [gold for gold in answers_in("math", self.reference) if gold.strip()]

    def gives(self, text: str) -> bool:
        """Return whether a text holds an accepted answer, as a word of its own: then it may be an answer."""
        return any(re.search(rf"(?<!\w){re.escape(gold.strip())}(?!\w)", text, re.IGNORECASE) for gold in self.golds)


def domain_of(reference: Any, response: str) -> Domain:
    """Return what a response is, as far as its reference and its text tell."""
    if isinstance(reference, Mapping) and _PROGRAMS & set(reference):
        return "code"
    return "code" if response.lstrip().startswith("```") else "text"


def with_others(rows: Sequence[ProbeRow]) -> list[ProbeRow]:
    """Return the rows with a good response of another row each, which is the bad one where none is known.

    It is bad only because the reference differs, so rows without a reference never get one.
    """
    keys = [_key(row) for row in rows]
    completed = []
    for at, row in enumerate(rows):
        next_ones = ((at + by) % len(rows) for by in range(1, min(_TRIED, len(rows))))
        wrong = (
            rows[place].good
            for place in next_ones
            if not keys[at] & keys[place] and row.good != rows[place].good and row.domain == rows[place].domain
        )
        other = next(wrong, "")
        if row.bad is None and other and row.reference is not None:
            row = replace(row, bad=other, planted=True)
        completed.append(replace(row, other=other))
    return completed


_TRIED: Final = 50  # rows looked at for one that differs; more would be quadratic where all are alike


def _key(row: ProbeRow) -> frozenset[Any]:
    """What two rows must not share for an answer of one to be wrong for the other."""
    golds = row.golds
    if golds:
        return frozenset(map(spelling, golds))
    return frozenset({row.asked if row.reference is None else f"{row.asked}\n{row.reference!r}"})


Rule: TypeAlias = Literal["same", "not_higher", "lower", "worthless", "order", "below_good", "aligned", "mirrored"]


KEPT: Final = object()
"""The mark of what a variant leaves as it is; None may be a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One changed response.

    Attributes:
        how: in a few words; variants of a probe with the same words are counted together.
        partner: the bad response, changed in the same way; for the rule `order`.
        prompt: another prompt; None keeps the row's.
        finish_reason: why the response ends, as an engine says it.
        turned: whether the two responses of a pair are shown the other way round.
    """

    how: str
    response: str
    of: Literal["good", "bad"] = "good"
    partner: str | None = None
    prompt: str | Sequence[Message] | None = None
    reference: Any = KEPT
    finish_reason: str | None = None
    turned: bool = False


Maker: TypeAlias = Callable[[ProbeRow, Random], Iterable[Variant]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A way to break a scorer.

    Attributes:
        says: what is changed, in one line.
        rule: what must hold; see the module's table.
        make: the variants of a row; none where it does not fit.
        needs: what a row must have, for the report where no row had it.
        means: what a failure says about the scorer.
        domains: kinds of responses that it fits.
        pairs: whether it fits only scorers that compare two responses.
        fast: whether `adjudge check` tries it.
    """

    name: str
    says: str
    source: str
    rule: Rule
    make: Maker
    means: str
    needs: str = "a response"
    domains: tuple[Domain, ...] = DOMAINS
    pairs: bool = False
    fast: bool = False

    @property
    def kind(self) -> str:
        """What the rule asks of a scorer."""
        return {"worthless": "worthless", "lower": "sensitivity"}.get(self.rule, "invariance")

    def variants(self, row: ProbeRow, rng: Random) -> list[Variant]:
        """Return the variants of a row that are not copies of what they were made of."""
        if row.domain not in self.domains:
            return []
        return [one for one in self.make(row, rng) if self.rule in ("worthless", "mirrored") or _changed(one, row)]


def _changed(variant: Variant, row: ProbeRow) -> bool:
    base = row.good if variant.of == "good" else row.bad
    kept = variant.prompt is None and variant.reference is KEPT and variant.finish_reason is None
    return not kept or variant.turned or variant.response != base


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A variant whose score breaks the rule, or that has no score.

    Attributes:
        excess: by how much the rule is broken, in the scorer's spread where that is known; without a score, 0.
    """

    row: ProbeRow
    variant: Variant
    score: Score
    base: Score
    excess: float


@dataclass(slots=True)
class Tally:
    """Counts of one probe.

    Attributes:
        keep: how many of the worst cases are kept.
        held: variants that keep the rule.
        unjudged: variants without a score; they do not keep it.
        unordered: variants that were not tried since the scorer does not prefer the good response to begin with.
        by_how: of each kind of variant, how many were tried and how many do not keep the rule.
    """

    probe: Probe
    keep: int = 0
    held: int = 0
    broken: int = 0
    unjudged: int = 0
    unordered: int = 0
    by_how: dict[str, tuple[int, int]] = field(default_factory=dict)
    _worst: list[tuple[float, int, Broken]] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """Variants that were tried."""
        return self.held + self.broken + self.unjudged

    @property
    def worst(self) -> Iterator[Broken]:
        """The cases that were kept, the worst first."""
        return (case for _, _, case in sorted(self._worst, key=lambda one: (-one[0], -one[1])))

    def rate(self, level: float = LEVEL) -> Interval:
        """Return the share of variants that do not keep the rule, with Wilson's bounds."""
        return wilson(self.broken + self.unjudged, self.tried, level=level)

    def passed(self, tolerated: float) -> bool | None:
        """Return whether at most this share does not keep the rule; None where nothing was tried."""
        return (self.broken + self.unjudged) / self.tried <= tolerated if self.tried else None

    def why_not(self) -> str:
        """Return why nothing was tried."""
        if self.probe.pairs:
            return "it is for scorers that compare two responses"
        if self.unordered:
            return f"in none of {self.unordered} cases is the good response preferred, so there is no order to keep"
        return f"no row fits: it takes {self.probe.needs}"

    def count(self, variant: Variant, case: Broken | None, *, judged: bool = True) -> None:
        """Count one variant."""
        tried, wrong = self.by_how.get(variant.how, (0, 0))
        self.by_how[variant.how] = tried + 1, wrong + (case is not None)
        if case is None:
            self.held += 1
            return
        if judged:
            self.broken += 1
        else:
            self.unjudged += 1
        if self.keep:
            push = heapq.heappush if len(self._worst) < self.keep else heapq.heappushpop
            push(self._worst, (case.excess, -self.tried, case))


_KEPT: Final = re.compile(
    r"`[^`\n]{1,400}`|\\[A-Za-z]+(?:\{[^{}]{0,400}\}){0,2}|<[^<>\n]{1,200}>|https?://\S+|\[\[[^\[\]\n]{0,100}\]\]"
)
_MARKED: Final = re.compile(r"<answer>(?:(?!<answer>).)*?</answer>", re.DOTALL)
_WORD: Final = re.compile(r"(?<![\w\\])[^\W\d_]{4,}(?![\w\\])")


def kept_regions(text: str, golds: Sequence[str]) -> list[Region]:
    """Return what must not be changed, ascending."""
    regions = [*inline_regions(text), *(one.span() for kept in (_KEPT, _MARKED) for one in kept.finditer(text))]
    for gold in golds:
        whole = rf"(?<!\w){re.escape(gold.strip())}(?!\w)"
        regions += [one.span() for one in re.finditer(whole, text, re.IGNORECASE)]
    return sorted(regions)


def words_of(text: str, golds: Sequence[str] = ()) -> list[Region]:
    """Return the places of the words that may be changed, in order."""
    outside = outside_of(kept_regions(text, golds))
    return [one.span() for one in _WORD.finditer(text) if outside(one.span())]


def outside_of(regions: Sequence[Region]) -> Callable[[Region], bool]:
    """Return what says of a place, which is not empty, whether it shares no character with any region.

    Regions are ascending by their starts, and may overlap; each answer takes the logarithm of their number.
    """
    starts = [start for start, _ in regions]
    ends = list(itertools.accumulate((end for _, end in regions), max))  # the furthest end so far

    def holds(place: Region) -> bool:
        before = bisect_right(starts, place[1] - 1)
        return not before or ends[before - 1] <= place[0]

    return holds


def with_words(text: str, places: Sequence[Region], change: Callable[[str], str]) -> str:
    """Return the text with the words at these places, ascending, changed."""
    pieces, at = [], 0
    for start, end in places:
        pieces += [text[at:start], change(text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])


def some_words(text: str, golds: Sequence[str], rng: Random, share: float, change: Callable[[str], str]) -> str:
    """Return the text with a share of its free words changed, at least one if there are any."""
    places = words_of(text, golds)
    if not places:
        return text
    count = max(1, round(share * len(places)))
    return with_words(text, sorted(rng.sample(places, count)), change)


def free_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the lines that hold something and lie outside answers, code and displayed mathematics."""
    outside = outside_of(sorted([*display_regions(text), *(one.span() for one in _MARKED.finditer(text))]))
    at = 0
    for line in text.splitlines(keepends=True):
        start, end = at, at + len(line.rstrip("\r\n"))
        at += len(line)
        if line.strip() and outside((start, end)):
            yield start, end

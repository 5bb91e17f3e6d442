"""What probes are made of: a prompt with a good response, and where they are known a bad one and others as good.

Not covered: reading rows from files (`rows_read`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from adjudge.evals.probes.planted import answers_in, spelling
from adjudge.protocol import Message, content_text

Domain: TypeAlias = Literal["text", "code", "verdict"]
"""What responses are: text with an answer in it, a program, or what a judge says of other responses."""

DOMAINS: Final[tuple[Domain, ...]] = get_args(Domain)

_PROGRAMS: Final = frozenset({"tests", "sql", "testbench", "top", "program", "design"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow:
    """One row.

    Attributes:
        id: names it.
        prompt: what was asked: text, or chat turns.
        good: a good response.
        bad: a bad response to the same prompt; None where none is known.
        planted: whether `bad` is the good response of another row.
        other: a good response of another row that is not right here; "" if there is none.
        reference: what the scorer checks against.
        domain: what its responses are.
        equals: further responses that are as good, by kind: "translation", "paraphrase", ...
        extra: further columns that the scorer asks for.
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
        """Reject rows that nothing can be made of."""
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


def with_others(rows: Sequence[ProbeRow], *, plant: bool = True) -> list[ProbeRow]:
    """Return the rows with a good response of another row each, and with it as the bad one where none is known.

    Args:
        rows: the rows.
        plant: whether rows that have a reference but no bad response get one.  It is bad only because the reference
            differs, so rows without a reference never get one.
    """
    keys = [_key(row) for row in rows]
    found = []
    for at, row in enumerate(rows):
        next_ones = ((at + by) % len(rows) for by in range(1, min(_TRIED, len(rows))))
        other = next((rows[place].good for place in next_ones if _differs(row, rows[place], keys, at, place)), "")
        if plant and row.bad is None and other and row.reference is not None:
            row = replace(row, bad=other, planted=True)
        found.append(replace(row, other=other))
    return found


_TRIED: Final = 50  # rows looked at for one that differs; more would be quadratic where all are alike


def _key(row: ProbeRow) -> frozenset[Any]:
    """What two rows must not share for an answer of one to be wrong for the other."""
    golds = row.golds
    if golds:
        return frozenset(map(spelling, golds))
    return frozenset({row.asked if row.reference is None else f"{row.asked}\n{row.reference!r}"})


def _differs(row: ProbeRow, other: ProbeRow, keys: Sequence[frozenset[Any]], at: int, place: int) -> bool:
    return not keys[at] & keys[place] and row.good != other.good and row.domain == other.domain

"""What was found out about one answer with sources, and the share of statements that it earns.

Two statements are neighbours when they share a placeholder.  A breadth-first search starts at <E0> and walks over
supported statements only; what it reaches counts.  A ring of statements that support each other and never come to <E0>
is not reached.

Source: CaRR (THUDM/CaRR, deepsearch_rm_with_rubrics/launch_server.py @ c97e7e8).

Statements with placeholders: `<E1> was the loser of the bout in <E0>`, where `<E0>` is the final answer.

The addresses an answer cites, in Markdown: `[4](https://...)`, also `[[4](https://...)]` and bare `<https://...>`.

What stands in a list of references at the end is not a citation of anything said, so the text is cut there first; and
an address inside code is not read.

Outcome and rubric in one reward: CaRR's weighted sum and C-GRPO's two ways to use it in a group.

    CaRR:    R = (1 - a) outcome + a rubric
    C-GRPO:  R = (1 - a) outcome + a rubric'  where the outcome is positive, else R = outcome;  a = 0.3

In the paper rubric' is the rubric reward divided by the largest of the group.  The flags of the released scripts
(normalize, and rubric for right answers only) lead into a branch that adds the raw rubric reward instead
(slime/rollout/sglang_rollout.py 352-360 @ c97e7e8).  Here the choice has a name.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import entries_of, shown, text_of

Normalize: TypeAlias = Literal["group_max", "none"]

TRAINING_RATIO = 0.3


def mixed(outcome: float, rubric: float, *, ratio: float) -> float:
    """Return CaRR's reward of one response, in [0, 1].

    Args:
        outcome: 1 if the answer is right, else 0.
        rubric: share of statements that count, in [0, 1].
        ratio: weight of the rubric, in [0, 1].
    """
    for what, value in (("outcome", outcome), ("rubric", rubric), ("ratio", ratio)):
        if not 0 <= value <= 1:
            raise ValueError(f"the {what} is {value!r}; it must be in [0, 1]")
    return (1 - ratio) * outcome + ratio * rubric


def group_rewards(
    outcomes: Sequence[float],
    rubrics: Sequence[float],
    *,
    ratio: float = TRAINING_RATIO,
    normalize: Normalize = "group_max",
) -> list[float]:
    """Return C-GRPO's rewards of the responses to one prompt, each in [0, 1].

    A response whose outcome is 0 gets 0: evidence for a wrong answer pays nothing.

    Args:
        outcomes: 1 or 0 for each response.
        rubrics: the rubric reward of each, in [0, 1].
        ratio: weight of the rubric.
        normalize: "group_max" divides by the largest rubric reward of the group, as in the paper; "none" is what the
            released scripts do.

    Raises:
        ValueError: the lists differ in length, or a value is out of range.
    """
    if normalize not in get_args(Normalize):
        raise ValueError(f"normalize is {normalize!r}; it must be one of {', '.join(get_args(Normalize))}")
    if len(outcomes) != len(rubrics):
        raise ValueError(f"{len(rubrics)} rubric rewards for {len(outcomes)} outcomes; give one for each")
    largest = max(rubrics, default=0.0) if normalize == "group_max" else 1.0
    scale = largest or 1.0  # nobody has any: 0 stays 0
    return [
        mixed(outcome, rubric / scale, ratio=ratio) if outcome > 0 else 0.0
        for outcome, rubric in zip(outcomes, rubrics, strict=True)
    ]


_REFERENCES = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]*(?:references|sources|bibliography|works cited)[ \t:]*$", re.I | re.M)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_OPENING = re.compile(r"\]\((?:view-source:)?(?=https?://)|<(?=https?://)")
_PROXY = re.compile(r"https?://r\.jina\.ai/(?=https?://)")
_LONGEST = 2048  # characters of an address


def explanation(text: str) -> str:
    """Return the text before its last list of references."""
    cuts = [cut.start() for cut in _REFERENCES.finditer(text)]
    return text[: cuts[-1]].rstrip() if cuts else text


def cited(text: str) -> list[str]:
    """Return the addresses that a text cites, each once, in order, in the form of `address`."""
    text = _CODE.sub(" ", text)
    urls: dict[str, None] = {}
    for opening in _OPENING.finditer(text):
        url = _until(text, opening.end(), ">" if opening[0] == "<" else ")")
        if url:
            urls.setdefault(address(url))
    return list(urls)


def address(url: str) -> str:
    """Return the form in which addresses are compared: no reader proxy, no fragment, no slash at the end."""
    url = _PROXY.sub("", url.strip().removeprefix("view-source:")).partition("#")[0]
    scheme, slashes, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{slashes}{host.lower()}{slash}{path}".rstrip("/")


def _until(text: str, start: int, closing: str) -> str:
    """Return the address that starts here and ends at the bracket that closes it; brackets inside may be paired."""
    depth = 0
    for at in range(start, min(len(text), start + _LONGEST)):
        char = text[at]
        if char.isspace():
            return text[start:at] if closing == ")" and text[at:].lstrip()[:1] == '"' else ""
        if char == closing and depth == 0:
            return text[start:at]
        if char in "[]<>":  # no part of an address; without this, a row of openings is read 2,048 characters each
            return ""
        depth += (char == "(") - (char == ")")
    return ""


ANSWER = "E0"
"""The placeholder of the final answer, where every chain of evidence starts."""

_PLACEHOLDER = re.compile(r"<(E[0-9]{1,3})>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement about unknowns.

    Attributes:
        text: the statement with its placeholders.
        entities: the placeholders in it, each once, in order.
    """

    text: str
    entities: tuple[str, ...]

    def filled(self, values: Mapping[str, str | None]) -> str | None:
        """Return the statement with what stands for each placeholder, or None if one of them is not known.

        All places are filled in one pass, so a value that looks like a placeholder stays as it is.
        """
        known = {entity: value for entity in self.entities if (value := values.get(entity)) is not None}
        if len(known) < len(self.entities):
            return None
        return _PLACEHOLDER.sub(lambda place: known[place[1]], self.text)


def read_statements(listed: Any) -> tuple[Statement, ...]:
    """Return the statements of a list of texts, or of mappings with a text.

    Raises:
        BadReferenceError: an entry is not text, or names no placeholder; or none of them names the answer, <E0>, so
            that nothing could ever be connected with it.
    """
    statements = []
    for at, entry in enumerate(entries_of(listed, "rubric", inside="citations"), start=1):
        text = text_of(entry if isinstance(entry, Mapping) else {"text": entry}, ("text",), where=f"statement {at}")
        entities = tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))
        if not entities:
            raise BadReferenceError(f"statement {at} names no placeholder such as <E0>: {shown(text)}")
        statements.append(Statement(text=text, entities=entities))
    if not any(ANSWER in statement.entities for statement in statements):
        raise BadReferenceError("no statement names <E0>, the answer, so no statement can be connected with it")
    return tuple(statements)


def entities_of(statements: Sequence[Statement]) -> tuple[str, ...]:
    """Return all placeholders, by number."""
    entities = {entity for statement in statements for entity in statement.entities}
    return tuple(sorted(entities, key=lambda entity: int(entity[1:])))


def connected(entities: Sequence[Collection[str]], supported: Sequence[bool]) -> list[bool]:
    """Return for each statement whether it is supported and linked to <E0> by supported statements."""
    waiting, seen = deque([ANSWER]), {ANSWER}
    reached = [False] * len(entities)
    while waiting:
        entity = waiting.popleft()
        for at, members in enumerate(entities):
            if supported[at] and not reached[at] and entity in members:
                reached[at] = True
                fresh = [member for member in members if member not in seen]
                seen.update(fresh)
                waiting.extend(fresh)
    return reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What is known about one answer.

    Attributes:
        statements: the statements with their placeholders.
        values: what the answer names for each placeholder; None if nothing.
        supported: whether the cited pages support each statement.
        cited: the addresses that the answer cites.
        pages: those that a tool returned, and that were read.
        idle: those of the cited that support nothing, where that costs something.
        excess: whether more was cited than is read, and that costs everything.
    """

    statements: tuple[Statement, ...]
    values: Mapping[str, str | None]
    supported: tuple[bool, ...]
    cited: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    excess: bool = False

    @property
    def reward(self) -> float:
        """Connected statements by all statements, times the share of cited pages that are not idle, in [0, 1]."""
        if self.excess or not self.pages:
            return 0.0
        reached = connected([statement.entities for statement in self.statements], self.supported)
        used = 1 - len(self.idle) / len(self.cited)
        return used * sum(reached) / len(reached)

    def evidence(self) -> dict[str, Any]:
        """Return plain data for a person who wants to check."""
        reached = connected([statement.entities for statement in self.statements], self.supported)
        rows = [
            {
                "statement": statement.text,
                "filled": statement.filled(self.values),
                "supported": supported,
                "connected": linked,
            }
            for statement, supported, linked in zip(self.statements, self.supported, reached, strict=True)
        ]
        listed = {"cited": list(self.cited), "pages": list(self.pages), "idle": list(self.idle)}
        return {"entities": dict(self.values), "statements": rows, **listed, "excess": self.excess}

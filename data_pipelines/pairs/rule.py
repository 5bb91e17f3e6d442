"""The contract of a rule: scored answers to one prompt, as it sees them, and the pairs that it makes of them.

A rule is a frozen dataclass; its fields are its options.  It sees one group at a time, and what it makes of a group
does not depend on the order of the rows unless its description says so: `ScoredGroup.ranked` and `draw` see to that.
Rules are named, or specified: `best_worst`, or `{pass_fail: {passing: 0.9}}` as YAML text.

Prompts are split by a hash: one falls on the same side in every job with the same seed and share, and prompts that
differ in case, punctuation or white space fall on the same side.  Near-duplicates do not: `adjudge data dedup` comes
before, and `adjudge data leaks` looks afterwards.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Literal, Self

from adjudge.data_pipelines.hygiene.minhash import tokens
from adjudge.io.columns import Column
from adjudge.io.jobs.maker import Kind
from adjudge.io.values import number_of
from adjudge.options import Options, check_options, named, options_of
from adjudge.protocol import Message, content_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer.

    Attributes:
        id: its id in the input; without one, its place in the group.
        score: a finite number; None where the rule asks for none and there is none.
        place: its number among the answers of the group, from 0, in the order of the input.
        row: the row it was read from, for rules that read further columns.
        judged: what holds the score's reason and evidence: the score, where it is an object, or else the row.
        at: its place in the row's lists; None where the row holds one answer.
    """

    id: str
    text: str
    score: float | None = None
    place: int = 0
    row: Mapping[str, Any] = field(default_factory=dict)
    judged: Mapping[str, Any] = field(default_factory=dict)
    at: int | None = None

    def value(self, column: str) -> Any:
        """Return what a column says of this answer, its own item where it is a list for all of them; else None."""
        value = Column(column).cell(self.row)
        if self.at is not None and isinstance(value, list):
            return value[self.at] if self.at < len(value) else None
        return value

    def said(self, path: str) -> Any:
        """Return what the scorer said beside the score ("reason", "evidence.stage"); None if nothing."""
        return Column(path).cell(self.judged)

    def number(self, column: str) -> float | None:
        """Return the number in a column, or None; of a whole score that of one that is `scored`."""
        return number_of(self.value(column))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredGroup:
    """Answers to one prompt."""

    name: str
    prompt: str | Sequence[Message]
    answers: tuple[Answer, ...]
    seed: int = 0
    rows: tuple[Mapping[str, Any], ...] = ()

    def ranked(self) -> list[tuple[Answer, float]]:
        """Return the answers that have a score, with it, best first; equal ones in an order that their texts draw."""
        known = [(answer, answer.score) for answer in self.answers if answer.score is not None]
        return sorted(known, key=lambda one: (-one[1], self.draw(one[0].text)))

    def draw(self, *texts: str) -> bytes:
        """Return 8 bytes that seed, group and texts decide, and no order of rows: to sort by is to draw."""
        return digest_of(str(self.seed), self.name or repr(self.prompt), *texts)


def digest_of(*texts: str) -> bytes:
    """Return 8 bytes that several texts decide, and where one ends and the next begins."""
    digest = hashlib.blake2b(digest_size=8)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.digest()


def squeezed(text: str) -> str:
    """Return a text with every run of white space as one blank: what two texts share that differ in nothing else."""
    return " ".join(text.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two texts of which the first is better.

    Attributes:
        margin: by how much, 0 or more, in the units of what decided; None where nothing says.
        chosen_text: what to write for the answer that won; "" for its own text; likewise `rejected_text`.
        prompt: what both answer, where it is not the group's prompt.
        more: a value for each of the rule's own columns.
    """

    chosen: Answer
    rejected: Answer
    margin: float | None
    chosen_text: str = ""
    rejected_text: str = ""
    prompt: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, chosen: Answer, rejected: Answer, **more: Any) -> Self:
        """Return the pair of two scored answers; the margin is the difference of their scores."""
        known = chosen.score is not None and rejected.score is not None
        margin = chosen.score - rejected.score if known else None  # type: ignore[operator]
        return cls(chosen=chosen, rejected=rejected, margin=margin, more=more)

    @property
    def texts(self) -> tuple[str, str]:
        """The text of the better one and that of the worse one, as they are written."""
        return self.chosen_text or self.chosen.text, self.rejected_text or self.rejected.text


def side_of(prompt: str | Sequence[Message], *, share: float, seed: int) -> Literal["train", "test"]:
    """Return the side of a prompt; another seed puts others on the test side, which has this share of them.

    A chat is split by the first turn that a user wrote.
    """
    text = " ".join(tokens(opening_of(prompt), symbols=False))
    digest = hashlib.blake2b(f"{seed}\n{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return "test" if int.from_bytes(digest) < share * 2**64 else "train"


def opening_of(prompt: str | Sequence[Message]) -> str:
    """Return what all prompts of one conversation share: the text, or its first turn that a user wrote."""
    if isinstance(prompt, str):
        return prompt
    texts = [_text(turn) for turn in prompt if turn.get("role") == "user"]
    return texts[0] if texts else "\n".join(_text(turn) for turn in prompt)


def _text(turn: Message) -> str:
    content = turn.get("content")
    try:
        return content_text(content)
    except (ValueError, AttributeError):  # content of a kind that no chat has
        return repr(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a rule asks of the answers.

    Attributes:
        score: answers without a score are left out before it sees them.
        merged: answers of equal text are one, and none where their scores or `columns` differ.
        stepped: a list of texts is one answer in steps, and not a list of answers.
        columns: what it reads beside the score.
    """

    score: bool = True
    merged: bool = True
    stepped: bool = False
    columns: tuple[str, ...] = ()


class Rule(Options, ABC):
    """Says which of the answers to a prompt is better than which.

    Attributes:
        name: what it is called in specifications and in the pairs.
        asks: what it asks of the answers, without the columns.
        reads: those of its options that name columns.
        adds: what its pairs hold beyond what all pairs hold (`Pair.more`).
    """

    name: ClassVar[str]
    asks: ClassVar[Needs] = Needs()
    reads: ClassVar[tuple[str, ...]] = ()
    adds: ClassVar[Mapping[str, Kind]] = {}

    def __post_init__(self) -> None:
        """Check the options against their annotations."""
        check_options(self, f"{self.name} option")

    @property
    def needs(self) -> Needs:
        """What it asks of the answers."""
        return replace(self.asks, columns=tuple(column for name in self.reads if (column := getattr(self, name))))

    @property
    def columns(self) -> Mapping[str, Kind]:
        """What its pairs hold beyond what all pairs hold."""
        return self.adds

    @abstractmethod
    def pairs(self, group: ScoredGroup) -> Iterable[Pair]:
        """Yield the pairs of a group."""

    def learnt(self, groups: Iterable[ScoredGroup]) -> Rule:
        """Return the rule with what all groups teach; one that needs no such thing does not look at them."""
        del groups
        return self


RULES: Final[Mapping[str, str]] = {
    "best_worst": "rules_by_score:BestWorst",
    "best_random": "rules_by_score:BestRandom",
    "all_ordered": "rules_by_score:AllOrdered",
    "pass_fail": "rules_by_score:PassFail",
    "execution_order": "rules_by_verdict:ExecutionOrder",
    "heron": "rules_by_verdict:Heron",
    "gap_split": "rules_by_score:GapSplit",
    "first_bad_step": "rules_by_step:FirstBadStep",
    "sibling_error": "rules_by_step:SiblingError",
    "step_apo": "rules_by_step:StepApo",
    "both_orders": "rules_by_verdict:BothOrders",
    "duoguard": "rules_by_verdict:DuoGuard",
    "agreement": "rules_by_verdict:Agreement",
}
"""The module and the class of each rule."""


def rule_of(spec: Any) -> Rule:
    """Return the rule that a specification describes.

    Raises:
        ValueError: there is no such rule or option, or a value is out of its range.
    """
    import yaml

    body = spec
    if isinstance(spec, str):
        try:
            body = yaml.safe_load(spec)
        except yaml.YAMLError as error:
            raise ValueError(f"the rule {spec!r} is not YAML: {error}") from error
    if isinstance(body, str):
        return _made(body, {})
    if isinstance(body, Mapping) and len(body) == 1:
        ((name, options),) = body.items()
        return _made(name, {} if options is None else options)
    raise ValueError(
        f"the rule {spec!r} is neither a name nor {{name: {{option: value}}}}; the rules are {', '.join(RULES)}"
    )


def _made(name: Any, options: Any) -> Rule:
    home, _, called = named(RULES, name, "rule").partition(":")
    kind = getattr(importlib.import_module(f"adjudge.data_pipelines.pairs.{home}"), called)
    known = {field.name: field for field in fields(kind)}
    needed = [name for name, one in known.items() if one.default is one.default_factory is dataclasses.MISSING]
    given = options_of(options, list(known), inside=f"the rule {name!r}", required=needed)
    made: Rule = kind(**{key: _value(str(known[key].type), value) for key, value in given.items()})
    return made


def _value(kind: str, value: Any) -> Any:
    """Return an option's value as its field wants it; the rule checks it."""
    if kind == "Rule":
        return rule_of(value)
    if kind.startswith("tuple["):
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(_value(kind.removeprefix("tuple["), item) for item in items)
    return float(value) if "float" in kind and type(value) is int else value

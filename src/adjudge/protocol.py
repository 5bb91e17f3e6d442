"""The contract every scorer, engine and adapter of adjudge shares.

One `Sample` goes in, one `Score` comes out.  A wrong answer is a scored 0.  Whatever kept us from judging is
not a number: `status="failed"` or `"abstained"`, `value=None`, and a reason code from `adjudge.reasons`.

This module imports nothing else of adjudge but `fingerprints`, `reasons`, `wire`, `frozen` and `finish`.  How
scorers run is in `adjudge.runtime`, how they are found in `adjudge.scoring.registry`, how they are mixed in
`adjudge.scoring.compose`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, runtime_checkable

from adjudge import reasons, wire
from adjudge.fingerprints import fingerprint_of
from adjudge.finish import plain_finish
from adjudge.frozen import quick_init

Message: TypeAlias = Mapping[str, Any]
"""A chat turn: `{"role": "assistant", "content": "...", ...}`; `content` may be a list of typed parts."""

Status: TypeAlias = Literal["scored", "abstained", "failed"]
STATUSES: tuple[Status, ...] = ("scored", "abstained", "failed")

EMPTY: Mapping[str, Any] = MappingProxyType({})


class _Record:
    """A frozen dataclass that is written as JSON field by field."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data from which `from_dict` makes an equal one.

        Raises:
            TypeError: a field holds something other than plain data.
        """
        kind: Any = type(self)
        return {
            name: value if type(value := getattr(self, name)) is str else wire.encode(value, f"{kind.__name__}.{name}")
            for name in _names(kind)[0]
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return what `to_dict` wrote.

        Raises:
            ValueError: a key is unknown or missing, or a value is malformed.
        """
        return cls(**_fields_of(cls, data))


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(_Record):
    """One prompt with one response to be scored.

    Attributes:
        prompt: the text, or the chat turns, that were answered.
        response: the text, or the turns of a trajectory.  Only assistant text is graded: see `response_text`.
        reference: what the scorer checks against; each scorer documents its type.
        id: stable across runs; a label job keys on it.
        group: samples that answer the same prompt share it.
        finish_reason: "stop", "length", ...; "length" marks a response cut off at the token limit, and other engines'
            words for that ("max_tokens", "MAX_TOKENS", ...) become it.
        extra: further columns, for scorers that ask for them by name.
    """

    prompt: str | Sequence[Message]
    response: str | Sequence[Message]
    reference: Any = None
    id: str = ""
    group: str = ""
    finish_reason: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Give a cut at the token limit its one name, so that no scorer takes a cut response for a whole one."""
        if isinstance(self.finish_reason, str) and self.finish_reason not in ("stop", "length"):
            object.__setattr__(self, "finish_reason", plain_finish(self.finish_reason))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScore(_Record):
    """The verdict on one step or turn of a response.

    Attributes:
        value: finite, or None when the step was not judged.
        label: the verdict as a word, if the scorer uses words.
        start: first character of the step in the graded text (0-based).
        end: one past the last character.
    """

    value: float | None
    label: str = ""
    start: int = 0
    end: int = 0

    def __post_init__(self) -> None:
        """Reject values that are not finite and spans that run backwards."""
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"StepScore.value is {self.value!r}; it must be finite, or None for not judged")
        if not 0 <= self.start <= self.end:
            raise ValueError(f"StepScore spans {self.start}..{self.end}; need 0 <= start <= end")


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance(_Record):
    """Who gave a score.

    Attributes:
        scorer: the scorer's name.
        fingerprint: changes whenever the same sample could get another score.
        engine: the engine behind a model-based scorer ("transformers", "vllm", "openai"), else "".
        revision: the model and prompt revision behind it, else "".
    """

    scorer: str = ""
    fingerprint: str = ""
    engine: str = ""
    revision: str = ""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(_Record):
    """What a score cost: seconds of compute (queueing not counted) and tokens of models called."""

    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            seconds=self.seconds + other.seconds,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


NO_PROVENANCE = Provenance()
NO_COST = Cost()


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Score(_Record):
    """The verdict on one sample.

    Attributes:
        value: finite exactly when `status` is "scored", else None.
        status: "scored"; "abstained" (nothing is broken, and the scorer gives no verdict: the sample is not for it, or
            it is too unsure); or "failed" (something on our side kept it from judging; repair that and score again).
        reason: a code from `adjudge.reasons`; on our side, and so never "", when the status is not "scored".
        steps: the verdicts on the steps or turns, in order.
        parts: the scores a composite or a rubric was made of.
        evidence: plain data that lets a person check the verdict: extracted answer, deciding tier, error text.
        uncertainty: standard deviation or half-width in units of `value`, >= 0; None when unknown.
        provenance: who gave the score; the runtime fills it in for verifiers.
        cost: what it cost; the runtime fills in the seconds.
    """

    value: float | None
    status: Status = "scored"
    reason: str = ""
    steps: tuple[StepScore, ...] = ()
    parts: Mapping[str, Score] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    uncertainty: float | None = None
    provenance: Provenance = NO_PROVENANCE
    cost: Cost = NO_COST

    def __post_init__(self) -> None:
        """Hold the invariants: a number exactly when scored, finite, with a reason from the list."""
        value = self.value
        if self.status == "scored":
            if type(value) is not float:
                if not isinstance(value, int | float):
                    raise ValueError(f"a scored Score has the value {value!r}; it must be a finite number")
                object.__setattr__(self, "value", value := float(value))
            if not math.isfinite(value):
                raise ValueError(f"Score.value is {value!r}; a score that is not a number is a failed one")
            if self.reason not in reasons.CANDIDATE:
                raise ValueError(f"a scored Score has the reason {self.reason!r}; see adjudge.reasons.CANDIDATE")
            if self.uncertainty is not None and not (math.isfinite(self.uncertainty) and self.uncertainty >= 0):
                raise ValueError(f"Score.uncertainty is {self.uncertainty!r}; it must be finite and >= 0")
            return
        if self.status not in STATUSES:
            raise ValueError(f"Score.status is {self.status!r}; it must be one of {', '.join(STATUSES)}")
        if value is not None:
            raise ValueError(f"a Score with status {self.status!r} has the value {value!r}; it must be None")
        table = reasons.OURS if self.status == "failed" else reasons.DECLINED
        if self.reason not in table:
            raise ValueError(f"a {self.status} Score has the reason {self.reason!r}; give one of {', '.join(table)}")

    @classmethod
    def scored(cls, value: float, reason: str = "", **evidence: Any) -> Score:
        """Return a scored verdict; keyword arguments become the evidence."""
        return cls(value=value, reason=reason, evidence=evidence)

    @classmethod
    def failed(cls, reason: str, **evidence: Any) -> Score:
        """Return a verdict that says judging was not possible, and why."""
        return cls(value=None, status="failed", reason=reason, evidence=evidence)

    @classmethod
    def abstained(cls, reason: str, **evidence: Any) -> Score:
        """Return a score without a verdict: the sample is not for the scorer, or it is too unsure."""
        return cls(value=None, status="abstained", reason=reason, evidence=evidence)

    def __rich__(self) -> Any:
        """Return a table for `rich.print`."""
        from adjudge.score_view import rich_table

        return rich_table(self)

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        from adjudge.score_view import html_table

        return html_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data from which `from_dict` makes an equal score.

        Raises:
            TypeError: the evidence holds something other than plain data.
        """
        return {
            "value": self.value,
            "status": self.status,
            "reason": self.reason,
            "steps": [step.to_dict() for step in self.steps],
            "parts": {name: part.to_dict() for name, part in self.parts.items()},
            "evidence": wire.encode(dict(self.evidence), "evidence"),
            "uncertainty": self.uncertainty,
            "provenance": self.provenance.to_dict(),
            "cost": self.cost.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the score that `to_dict` wrote.

        Raises:
            ValueError: a key is unknown or missing, or the values break the invariants.
        """
        given = dict(data)
        nested: dict[str, Any] = {
            "steps": tuple(StepScore.from_dict(step) for step in given.pop("steps", ())),
            "parts": {name: Score.from_dict(part) for name, part in given.pop("parts", {}).items()},
            "provenance": Provenance.from_dict(given.pop("provenance", {})),
            "cost": Cost.from_dict(given.pop("cost", {})),
        }
        return cls(**_fields_of(cls, given), **nested)


@functools.cache
def _names(cls: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all fields of a dataclass, and of those that have no default."""
    fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(cls)
    bare = [item for item in fields if item.default is item.default_factory is dataclasses.MISSING]
    return tuple(item.name for item in fields), tuple(item.name for item in bare)


def _fields_of(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    known, required = _names(cls)
    unknown = sorted(set(data).difference(known))
    if unknown:
        raise ValueError(f"{cls.__name__} has no field {unknown[0]!r}; its fields are {', '.join(sorted(known))}")
    for name in required:
        if name not in data:
            raise ValueError(f"{cls.__name__} needs the field {name!r}; got {', '.join(sorted(data)) or 'nothing'}")
    return {name: wire.decode(value) for name, value in data.items()}


@runtime_checkable
class Scorer(Protocol):
    """Whatever turns samples into scores.

    `score` returns one `Score` per sample, in order; it raises only for faults of the whole scorer, never for a
    bad sample.  The same sample and the same fingerprint give the same score, whatever the batch and the order.
    `adjudge.check_scorer` tests an implementation against these rules.
    """

    @property
    def name(self) -> str:
        """Short name, used in provenance and reports."""
        ...

    @property
    def fingerprint(self) -> str:
        """Text that changes whenever the same sample could get another score."""
        ...

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        ...


@runtime_checkable
class Validates(Protocol):
    """A scorer that can tell, before any work, that a sample lacks what it needs."""

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` naming the field and the remedy if the sample cannot be judged as given."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one `verify` call may use before its worker process is killed.

    Attributes:
        seconds: seconds from the moment the call starts, less those in which the machine gives it no processor.
        memory_mb: MiB of memory above what the worker held when it was ready.
        processes: how many child processes a call may start; 0 forbids it where the platform can.
    """

    seconds: float = 5.0
    memory_mb: int = 1024
    processes: int = 0

    def __post_init__(self) -> None:
        """Reject limits that would let nothing, or everything, run."""
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(f"Limits.seconds is {self.seconds!r}; it must be a positive number of seconds")
        if self.memory_mb < 16:
            raise ValueError(f"Limits.memory_mb is {self.memory_mb!r}; Python itself needs at least 16")
        if self.processes < 0:
            raise ValueError(f"Limits.processes is {self.processes!r}; it must be 0 or more")


class OutOfScopeError(ValueError):
    """A sample is of a kind that the scorer does not judge; in a run of mixed rows it abstains."""


class MissingReferenceError(OutOfScopeError):
    """A sample has no reference, and its scorer compares with one."""


def require_reference(scorer: str, sample: Sample) -> None:
    """Raise `MissingReferenceError` if a sample has no reference, for a scorer that compares with one."""
    if sample.reference is None:
        which = f" {sample.id!r}" if sample.id else ""
        raise MissingReferenceError(
            f"the scorer {scorer!r} compares with a reference, and the sample{which} has none; set Sample.reference "
            "(score: --reference, label: --reference-column)"
        )


class Verifier(ABC):
    """The easy half of a scorer: one synchronous, pure method.

    A verifier is a frozen, keyword-only dataclass whose fields are its options.  The runtime runs `verify` in a
    pool of killable worker processes, so its author never thinks about time, memory, threads or asyncio::

        @dataclass(frozen=True, kw_only=True)
        class ShoutingVerifier(Verifier):
            \"\"\"Is the response all upper case?\"\"\"

            name: ClassVar[str] = "shouting"
            version: ClassVar[str] = "1"
            needs_reference: ClassVar[bool] = False

            def verify(self, sample: Sample) -> Score:
                return Score.scored(float(response_text(sample).isupper()))

    Two rules beyond purity.  `verify` looks at the reference first: called with an empty response it must
    still fail with `gold_unparsable` when the reference is bad (after a kill, the runtime makes that call to see
    whose fault it was).  And it never raises for what the response says.

    Attributes:
        name: short name, the same as in the registry.
        version: bump it whenever the same sample could get another score.
        needs_reference: whether a sample without a reference is a mistake.
        limits: what one call may use.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_reference: ClassVar[bool] = True
    limits: ClassVar[Limits] = Limits()

    @abstractmethod
    def verify(self, sample: Sample) -> Score:
        """Return the score of one sample; same sample, same score."""

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the sample lacks what `verify` needs, naming the field and the remedy."""
        if self.needs_reference:
            require_reference(self.name, sample)

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the score of a sample whose `verify` call had to be killed and whose reference is fine.

        Args:
            sample: the sample that was being judged.
            reason: "candidate_timeout", "candidate_memory" or "candidate_crash".
        """
        return Score.scored(0.0, reason)

    @property
    def fingerprint(self) -> str:
        """Name, version and the options that are not their defaults."""
        return fingerprint_of(self)


THINK_END: tuple[str, ...] = (
    *("</think>", "</thinking>", "</thought>", "</reasoning>", "</seed:think>"),
    *("[/THINK]", "◁/think▷", "<|END_THINKING|>", "<|channel|>final<|message|>"),  # Magistral, Kimi, Command, gpt-oss
)
THINK_START: tuple[str, ...] = (
    *("<think>", "<thinking>", "<thought>", "<reasoning>", "<seed:think>"),
    *("[THINK]", "◁think▷", "<|START_THINKING|>", "<|channel|>analysis<|message|>"),
)
_COMMENTARY = "<|channel|>commentary"  # of gpt-oss: calls, and what it says about them
_THINKS = ("think", "THINK", "thought", "reasoning>", "<|channel|>")  # a text without these has no such tag


def content_text(content: Any) -> str:
    """Return the text of a message's `content`: a string, None, or a list of parts, without those that are thoughts."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, Sequence):
        for part in content:
            if not isinstance(part, str | Mapping):
                raise ValueError(
                    f"a part of a message's content is a {type(part).__name__}; it must be text or a mapping"
                )
        said = (part for part in content if isinstance(part, str) or part.get("type") not in ("reasoning", "thinking"))
        texts = [part if isinstance(part, str) else part.get("text", "") for part in said]
        return "".join(text for text in texts if isinstance(text, str))
    raise ValueError(f"a message's content is a {type(content).__name__}; it must be text or a list of parts")


def turn_texts(said: str | Sequence[Message], role: str = "") -> list[str]:
    """Return a text alone, or the texts of chat turns: of all, or of those of one role."""
    if isinstance(said, str):
        return [said]
    return [content_text(turn.get("content")) for turn in said if not role or turn.get("role") == role]


def response_text(sample: Sample) -> str:
    """Return the assistant's text of a sample: the string itself, or the assistant turns joined by newlines.

    Text of other roles (tool output, user turns) is never graded.

    Raises:
        ValueError: the response, a turn or its content is something else.
    """
    response: Any = sample.response
    if isinstance(response, str):
        return response
    if not isinstance(response, Sequence):
        raise ValueError(f"the response is a {type(response).__name__}; it must be text or a list of turns")
    for turn in response:
        if not isinstance(turn, Mapping):
            raise ValueError(f"a turn of the response is a {type(turn).__name__}; it must be a mapping")
    return "\n".join(turn_texts(response, "assistant"))


def split_reasoning(text: str) -> tuple[str, str, bool]:
    """Split a response at its last end-of-thinking tag.

    Returns:
        The reasoning, the answer part, and whether the reasoning was left unfinished: a thinking block is open
        at the end of the text.  Without any tag the whole text is the answer part.
    """
    if not any(word in text for word in _THINKS):
        return "", text, False
    end, width = max((text.rfind(tag), len(tag)) for tag in (*THINK_END, _COMMENTARY))
    cut = end + width if end >= 0 else 0
    opened = min((at for at in (text.find(tag, cut) for tag in THINK_START) if at >= 0), default=-1)
    if opened < 0:
        return text[:cut], text[cut:], False
    return text[:cut] + text[opened:], text[cut:opened], True

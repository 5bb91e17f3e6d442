r"""How published process reward models are asked: one class for each kind, and the names of published models.

**marker**: a marker token behind each step, read by a token classifier: Qwen2.5-Math-PRM, and models trained by
adjudge.  The row is a chat whose last turn is the steps, each followed by the marker; the value is P(class `positive`)
by softmax at the marker (with one output, its sigmoid).  Qwen's models (arXiv 2501.07301) use `<extra_0>`, two classes
and the system turn that is the default here.  Models that were trained with several markers are not covered.

**signs**: a tag behind each step, after which a language model would write + or -: Math-Shepherd (arXiv 2312.08935).
The row is `{problem} Step 1: ... ки\nStep 2: ... ки\n`; the value is P(+) of the two signs, read at each tag.  Steps
that do not begin with "Step" get their number, as the model was trained.  For Math-Shepherd's Mistral the signs are the
tokens 648 and 387 and the tag is 12902; openr's Qwen has 488 and 481, and the tag " \n\n\n\n\n", which is its 76325.
openr's trainer sets the tag's attention mask to 0, which is not done here.

**sign_turns**: a chat in which each step is a user's turn and the model answers + or -: RLHFlow's models.  The
published way asks once for each step, with "+" as the answer to all steps before it.  All those rows begin alike, and a
language model does not look ahead, so one forward pass over the whole chat gives the same numbers.

**step_ends**: numbers read at the last token of each step: heads trained by TRL, value heads, ReasonEval.

| model | `before` | `prefix` | `separator` | `pieces` | `output` |
|---|---|---|---|---|---|
| TRL stepwise | `{problem}` | | `\n`, and read at it | apart | class |
| Skywork-o1-Open-PRM | `{problem}\n` | | `\n`, and read at it | apart | sigmoid |
| ReST-MCTS* value model | `{problem}\n` | | `\n` | joined | raw |
| ReasonEval | its own | | none | apart | validity |

These are from reading code of the projects or of those who call them; no weights were at hand to compare with.
ReasonEval (arXiv 2404.05692) has three classes, an error, a neutral step, a good step; validity is P(neutral) +
P(good), redundancy P(neutral).  Value heads that are saved beside a language model in files of their own must be
converted (`adjudge.engines.reward_network`).

Not covered: telling a model's format from its weights.  Models that adjudge trained say it in their notes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from adjudge.engines.checkpoint_notes import CheckpointNotes
from adjudge.engines.interface import Engine, Fault
from adjudge.options import Range, options_of, suggestion
from adjudge.prompts.escaping import escape
from adjudge.protocol import Message
from adjudge.reward_models.process.rows import Piece, RowTokens, StepRow, step_row
from adjudge.reward_models.process.step_format import (
    Outputs,
    Problem,
    Reading,
    StepFormat,
    chat_before,
    class_probabilities,
    problem_text,
    read_outputs,
    sign_shares,
    softmax,
)
from adjudge.statistics.logistic import sigmoid

QWEN_SYSTEM = r"Please reason step by step, and put your final answer within \boxed{}."


@dataclass(frozen=True, kw_only=True)
class MarkerFormat(StepFormat):
    """Steps joined by a marker in the assistant's turn; the model is read at each marker.

    Attributes:
        marker: the text behind each step, best a special token.
        positive: the class that means a good step.
        system: the system turn; "" for none.  A problem that has a system turn of its own keeps that.
    """

    kind: ClassVar[str] = "marker"

    marker: str = "<extra_0>"
    positive: Annotated[int, Range(ge=0)] = 1
    system: str = QWEN_SYSTEM

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.marker:
            raise ValueError("format 'marker': marker is empty; give the text that stands behind each step")

    def row(self, tokens: RowTokens, problem: Problem, steps: Sequence[str]) -> StepRow | Fault:
        """Return the row of a solution."""
        chat = chat_before(tokens, problem, system=self.system, marker=self.marker)
        frame = tokens.frame([*chat, {"role": "assistant", "content": ""}], [len(chat)])
        if isinstance(frame, Fault):
            return frame
        pieces = [Piece(text=frame[0])]
        for number, step in enumerate(steps):
            pieces += [Piece(text=step, step=number, trusted=False), Piece(text=self.marker, read=True)]
        return step_row(tokens, [*pieces, Piece(text=frame[1])], marker=self.marker)

    async def read(self, engine: Engine, rows: Sequence[StepRow]) -> list[Reading | Fault]:
        """Return P(good) of each step."""
        return await read_outputs(engine, rows, lambda outputs: class_probabilities(outputs, self.positive))


@dataclass(frozen=True, kw_only=True)
class SignFormat(StepFormat):
    """Steps with a tag behind each; a language model's signs are read at the tags.

    Attributes:
        tag: the text behind each step; its last token marks the place.
        good: the good sign as the text that follows the tag; most tokenizers have " +" as a token.
        bad: the bad sign.
        between: the text between a tag and the next step, and behind the last tag.
        numbered: put "Step k: " before steps that do not begin with "step".
        begin: whether the token that the tokenizer puts before a text comes first.
    """

    kind: ClassVar[str] = "signs"

    tag: str = " ки"
    good: str = " +"
    bad: str = " -"
    between: str = "\n"
    numbered: bool = True
    begin: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tag or not self.good or not self.bad:
            raise ValueError("format 'signs': tag, good and bad must not be empty")
        if self.good == self.bad:
            raise ValueError(f"format 'signs': good and bad are both {self.good!r}; give two signs")

    def row(self, tokens: RowTokens, problem: Problem, steps: Sequence[str]) -> StepRow | Fault:
        """Return the row of a solution."""
        opening = escape(problem_text(problem), special=tokens.special)
        pieces = [
            Piece(text=tokens.begin if self.begin else ""),
            Piece(text=opening, trusted=False),
            Piece(text=" "),
        ]
        for number, step in enumerate(steps):
            if self.numbered and step[:4].lower() != "step":
                pieces.append(Piece(text=f"Step {number + 1}: "))
            pieces.append(Piece(text=step, step=number, trusted=False))
            pieces += [Piece(text=self.tag, read=True), Piece(text=self.between)]
        return step_row(tokens, pieces, marker=self.tag)

    async def read(self, engine: Engine, rows: Sequence[StepRow]) -> list[Reading | Fault]:
        """Return P(+) of each step."""
        return await sign_shares(engine, rows, good=self.good, bad=self.bad)


@dataclass(frozen=True, kw_only=True)
class SignTurnsFormat(StepFormat):
    """Each step is a user's turn; the model is read where its answer, one sign, would begin.

    Attributes:
        good: the good sign.
        bad: the bad sign.
        answered: what stands as the answer to every step.
    """

    kind: ClassVar[str] = "sign_turns"

    good: str = "+"
    bad: str = "-"
    answered: str = "+"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.good or not self.bad or self.good == self.bad:
            raise ValueError(f"format 'sign_turns' option good={self.good!r} and bad={self.bad!r}; give two signs")

    def row(self, tokens: RowTokens, problem: Problem, steps: Sequence[str]) -> StepRow | Fault:
        """Return the row of a solution."""
        turns: list[Message] = []
        for _ in steps:
            turns += [{"role": "user", "content": ""}, {"role": "assistant", "content": self.answered}]
        frame = tokens.frame(turns, range(len(turns)))
        if isinstance(frame, Fault):
            return frame
        opening = escape(problem_text(problem), special=tokens.special)
        pieces = [Piece(text=frame[0]), Piece(text=f"{opening} ")]
        for number, step in enumerate(steps):
            pieces += [
                Piece(text=step, step=number, trusted=False),
                Piece(text=frame[2 * number + 1], read=True),
                Piece(text=self.answered),
                Piece(text=frame[2 * number + 2]),
            ]
        return step_row(tokens, pieces)

    async def read(self, engine: Engine, rows: Sequence[StepRow]) -> list[Reading | Fault]:
        """Return P(+) of each step."""
        return await sign_shares(engine, rows, good=self.good, bad=self.bad)


REASON_EVAL_BEFORE = "Question:\n{problem}\nAnswer:\nLet's think step by step.\n"
_CLASSES = ("error", "redundant", "valid")


@dataclass(frozen=True, kw_only=True)
class StepEndFormat(StepFormat):
    """Steps one after the other; the model is read at the last token of each, its separator included.

    Attributes:
        before: the text before the first step, with `{problem}` in it; "chat" puts the steps into the assistant's turn.
        separator: the text behind each step; the model is read at its last token, or at the step's if it is "".
        pieces: "apart" tokenizes problem, steps and separators each by itself, as TRL's trainer does; "joined" all as
            one text.
        begin: whether the token that begins a text comes first, if the tokenizer has one.
        output: what the outputs mean: "class", P(class `positive`) by softmax; "sigmoid" of a single number; "raw", the
            number itself; "validity", ReasonEval's three classes.
        positive: the class that means a good step.
    """

    kind: ClassVar[str] = "step_end"

    before: str = "{problem}"
    separator: str = "\n"
    pieces: Literal["apart", "joined"] = "apart"
    begin: bool = True
    output: Literal["class", "sigmoid", "raw", "validity"] = "class"
    positive: Annotated[int, Range(ge=0)] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.before != "chat" and self.before.count("{problem}") != 1:
            raise ValueError(f"format {self.kind!r} option before={self.before!r}; give 'chat', or hold {{problem}}")

    @property
    def bounded(self) -> bool:
        """Whether all values are probabilities, in [0, 1]."""
        return self.output != "raw"

    def row(self, tokens: RowTokens, problem: Problem, steps: Sequence[str]) -> StepRow | Fault:
        """Return the row of a solution."""
        if self.before == "chat":
            chat = chat_before(tokens, problem)
            frame = tokens.frame([*chat, {"role": "assistant", "content": ""}], [len(chat)])
            if isinstance(frame, Fault):
                return frame
            pieces, after = [Piece(text=frame[0])], frame[1]
        else:
            head, tail = self.before.split("{problem}")
            opening = head + escape(problem_text(problem), special=tokens.special) + tail
            pieces = [Piece(text=tokens.bos if self.begin else ""), Piece(text=opening)]
            after = ""
        for number, step in enumerate(steps):
            ends = not self.separator
            pieces.append(Piece(text=step, step=number, trusted=False, read=ends))
            if not ends:
                pieces.append(Piece(text=self.separator, read=True))
        pieces.append(Piece(text=after))
        return step_row(tokens, [piece for piece in pieces if piece.text], apart=self.pieces == "apart")

    async def read(self, engine: Engine, rows: Sequence[StepRow]) -> list[Reading | Fault]:
        """Return the value of each step."""
        return await read_outputs(engine, rows, self._meaning)

    def _meaning(self, outputs: Outputs) -> Reading | Fault:
        columns = len(outputs[0])
        needed = {"class": columns, "sigmoid": 1, "raw": 1, "validity": len(_CLASSES)}[self.output]
        if columns != needed:
            return Fault(
                reason="engine_error",
                detail=f"the model has {columns} outputs for a token; the option output={self.output!r} needs {needed}",
            )
        match self.output:
            case "sigmoid":
                return Reading(values=tuple(sigmoid(row[0]) for row in outputs))
            case "raw":
                return Reading(values=tuple(row[0] for row in outputs))
            case "validity":
                return _validity([softmax(row) for row in outputs])
        return class_probabilities(outputs, self.positive)


def _validity(shares: Sequence[Sequence[float]]) -> Reading:
    """ReasonEval's two numbers of each step, and its likeliest class."""
    return Reading(
        values=tuple(min(row[1] + row[2], 1.0) for row in shares),
        labels=tuple(_CLASSES[max(range(len(row)), key=row.__getitem__)] for row in shares),
        facts={"redundancy": tuple(row[1] for row in shares)},
    )


KINDS: Mapping[str, type[StepFormat]] = {
    kind.kind: kind for kind in (MarkerFormat, SignFormat, SignTurnsFormat, StepEndFormat)
}

PUBLISHED: Mapping[str, StepFormat] = {
    "qwen_math_prm": MarkerFormat(),
    "math_shepherd": SignFormat(),
    "rlhflow": SignTurnsFormat(),
    "trl": StepEndFormat(),
    "skywork": StepEndFormat(before="{problem}\n", output="sigmoid"),
    "rest_mcts": StepEndFormat(before="{problem}\n", pieces="joined", output="raw"),
    "reason_eval": StepEndFormat(before=REASON_EVAL_BEFORE, separator="", output="validity"),
}


def format_of(spec: Any) -> StepFormat:
    """Return the format that a spec describes: a name, `{kind: {option: value}}`, or a format.

    Raises:
        ValueError: the spec names nothing, or has options that the kind has not.
    """
    if isinstance(spec, StepFormat):
        return spec
    if isinstance(spec, str) and spec in PUBLISHED:
        return PUBLISHED[spec]
    kind: Any = spec
    options: Any = {}
    if isinstance(spec, Mapping) and len(spec) == 1:
        ((kind, options),) = spec.items()
    if not isinstance(kind, str) or kind not in KINDS or not isinstance(options, Mapping | None):
        known = [*KINDS, *PUBLISHED]
        hint = suggestion(str(kind), known)
        raise ValueError(f"{spec!r} is not a format of process models{hint}; give one of {', '.join(known)}")
    return _made(kind, options or {})


def format_in_notes(folder: str) -> StepFormat:
    """Return the format that a checkpoint's notes name.

    Raises:
        ValueError: there are no notes, or they name none.
    """
    notes = CheckpointNotes.read(folder) if Path(folder).expanduser().is_dir() else None
    record = dict(notes.trained.get("format", {})) if notes is not None and notes.what == "process" else {}
    kind = record.pop("kind", None)
    if kind not in KINDS:
        raise ValueError(
            f"nothing says how {folder!r} reads steps; give the option format, one of {', '.join([*KINDS, *PUBLISHED])}"
        )
    return _made(kind, record)


def spec_of(form: StepFormat) -> dict[str, Any]:
    """Return a format as plain data, from which `format_of` makes an equal one."""
    return {form.kind: asdict(form)}


def _made(kind: str, options: Mapping[str, Any]) -> StepFormat:
    make = KINDS[kind]
    return make(**options_of(options, list(inspect.signature(make).parameters), inside=f"the format {kind!r}"))

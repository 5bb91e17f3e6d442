r"""Numbers read at the last token of each step: heads trained by TRL, value heads (Skywork, ReST-MCTS), ReasonEval.

| model | `before` | `prefix` | `separator` | `pieces` | `output` |
|---|---|---|---|---|---|
| TRL stepwise | `{problem}` | | `\n`, and read at it | apart | class |
| Skywork-o1-Open-PRM | `{problem}\n` | | `\n`, and read at it | apart | sigmoid |
| ReST-MCTS* value model | `{problem}\n` | | `\n` | joined | raw |
| ReasonEval | its own | | none | apart | validity |

These are from reading code of the projects or of those who call them; no weights were at hand to compare with.

ReasonEval (arXiv 2404.05692) has three classes, an error, a neutral step, a good step; validity is P(neutral) +
P(good), redundancy P(neutral).

Not covered: value heads that are saved beside a language model in files of their own; convert them
(`adjudge.engines.reward_network`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from adjudge.engines.interface import Engine, Fault
from adjudge.prompts.escaping import escape
from adjudge.reward_models.process.formats.chat_pieces import chat_before
from adjudge.reward_models.process.formats.step_format import Problem, Reading, StepFormat, problem_text
from adjudge.reward_models.process.formats.token_outputs import (
    Outputs,
    class_probabilities,
    read_outputs,
    softmax,
)
from adjudge.reward_models.process.markers import step_row
from adjudge.reward_models.process.row_tokens import RowTokens
from adjudge.reward_models.process.rows import Piece, StepRow
from adjudge.statistics.logistic import sigmoid

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
    positive: int = 1

    def __post_init__(self) -> None:
        """Reject options that contradict themselves."""
        self._need("pieces", ("apart", "joined"))
        self._need("output", ("class", "sigmoid", "raw", "validity"))
        if self.before != "chat" and self.before.count("{problem}") != 1:
            raise ValueError(f"format {self.kind!r}: before is {self.before!r}; it must be 'chat', or hold {{problem}}")
        if self.positive < 0:
            raise ValueError(f"format {self.kind!r}: positive is {self.positive!r}; it must be the number of a class")

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

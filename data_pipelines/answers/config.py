"""The options of sampling answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from adjudge.engines.interface import Sampling
from adjudge.io.jobs.config import JobConfig
from adjudge.options import Range


@dataclass(frozen=True, kw_only=True)
class SampleConfig(JobConfig):
    """Have a model answer the prompts of a data set.

    Rows keep their columns and get the answers: with --n 1 a text, otherwise a list of them, or with --rows a row for
    each.  What the engine refuses is left out and counted, and is never an answer.
    """

    needed: ClassVar[tuple[str, ...]] = ("response_column",)

    engine: str = ""
    """Who answers: transformers:MODEL, vllm:MODEL, openai:MODEL, or a mapping as YAML text."""

    n: Annotated[int, Range(ge=1)] = 1
    """Answers to each prompt."""

    rows: bool = False
    """Write a row for each answer, with an `id` and the `group` of those to one prompt, in place of a list.
    The group is the id of the row that was asked, or without one its group, or its number."""

    prompt_column: str = ""
    """Column of the prompt: text or chat turns; without one, the usual names are tried.
    A last turn of the assistant's is gone on with."""

    id_column: str = ""
    """Column of the id, for --rows; without one, the usual names are tried, and then the number of the row counts."""

    template: tuple[str, ...] = ()
    """What is asked in place of the row's prompt: a text with columns in it, as in "Solve it: {{question}}", or a
    prompt file (.prompt) whose fields are columns. Given several times, each row draws one."""

    scorer: str = ""
    """Keep only answers that it passes, each judged by itself: a name, or a spec as YAML or JSON text."""

    pass_score: float = 1.0
    """Least score of an answer that passes."""

    again: tuple[str, ...] = ()
    """The same for an answer that does not pass, with the fields `previous`, that answer, and `earlier`, what came
    before it; the next one is written below it. A text without fields is said to that answer, as the user's next turn.
    Of several, each round draws one of those whose fields are there; one with the field `reference` is for the last
    round."""

    rounds: Annotated[int, Range(ge=1)] = 2
    """Most rounds of --again."""

    reference_column: str = ""
    """Column of what the scorer checks against; without one, the usual names are tried."""

    response_column: str = "response"
    """Column that answers are written to; beside it stands `finish_reason`, of another one `COLUMN_finish_reason`."""

    chat: bool = True
    """A text is a user's turn in the model's own chat template; with --no-chat the model goes on with it."""

    think: bool = False
    """Write the reasoning that a server separates before the answer, in <think> tags; without it, it is left out."""

    temperature: Annotated[float, Range(ge=0)] = 1.0
    """Temperature; 0 takes the likeliest token each time."""

    top_p: Annotated[float, Range(gt=0, le=1)] = 1.0
    """Share of probability that is drawn from."""

    max_tokens: Annotated[int, Range(ge=1)] = 2048
    """Most tokens of an answer."""

    seed: Annotated[int, Range(ge=0)] = 0
    """Of what is drawn; the same prompt gets the same answers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sampling()
        if self.again and not self.scorer:
            raise ValueError("--again goes on from answers that do not pass; name who says so with --scorer")
        if self.scorer and self.n > 1 and not self.rows:
            raise ValueError(f"--scorer keeps some of the {self.n} answers, and a list has all; add --rows")

    def sampling(self) -> Sampling:
        """Return how answers are drawn."""
        return Sampling(
            n=self.n, max_tokens=self.max_tokens, temperature=self.temperature, top_p=self.top_p, seed=self.seed
        )


@dataclass(frozen=True, kw_only=True)
class PrefixesConfig(JobConfig):
    """Make prompts of the beginnings of good answers, for a policy to go on from.

    The input is what `adjudge label --keep-columns` wrote, or any rows with an answer and a score each.  Of each prompt
    whose scores differ, the prompt itself comes out, and beginnings of its best answer, where that is good enough, in
    the column `begun`; `data: {begun: begun}` has `adjudge train policy` go on from there.
    """

    needed: ClassVar[tuple[str, ...]] = ("response_column",)

    response_column: str = "response"
    """Column of the answer, a text."""

    score_column: str = ""
    """Column of the score; without one, the usual names are tried."""

    group_column: str = ""
    """Column that the rows of one prompt share; without one, the group and the prompt."""

    min_spread: Annotated[float, Range(ge=0)] = 0.05
    """Standard deviation that a prompt's scores need."""

    pass_score: float = 0.9
    """Least score of an answer whose beginnings are taken."""

    share: Annotated[float, Range(gt=0, le=1)] = 0.5
    """How many beginnings are drawn, as a share of the answer's lines."""

    alpha: Annotated[float, Range(gt=0, lt=1)] = 0.95
    """The beginning of i + 1 lines is drawn with the weight alpha to the i: short ones more often."""

    seed: Annotated[int, Range(ge=0)] = 0
    """Of what is drawn."""

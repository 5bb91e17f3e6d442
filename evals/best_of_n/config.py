"""The options of evaluations that look at several responses to each prompt, and of searches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, get_args

from adjudge.data_pipelines.steps.growth import GrowthOptions
from adjudge.evals.reports.config import EvalConfig
from adjudge.io.columns import ColumnOptions
from adjudge.options import Range, named
from adjudge.responses.aggregate import AGGREGATES


@dataclass(frozen=True, kw_only=True)
class CandidatesConfig(ColumnOptions, EvalConfig):
    """Options of an evaluation of several responses to each prompt."""

    gold: str = ""
    """What is true of a response: column:NAME, a file that adjudge label wrote, or a scorer.
    A column may hold a list for a list of responses; of several response columns, name as many with commas."""

    response_column: tuple[str, ...] = ()
    """Column of the response: text, or a list of responses; give it several times for several columns of a row.
    Where all numbers are in columns, there may be none."""

    group_column: str = ""
    """Column that responses to one prompt share; without one, those of one row, or of the same prompt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.gold and self._needs_gold:
            raise ValueError(
                "there is no gold; give column:NAME, a file of scores, or a scorer that says what is true of a response"
            )

    @property
    def _needs_gold(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class BestOfNConfig(CandidatesConfig):
    """Measure what best-of-n gains: by the scorer that chooses (the proxy), and in truth (gold).

    Curves for n = 1, 2, 4, .. are expectations over all ways to draw n of a prompt's responses, ties included.  With
    them come what a random, a perfect and a length-loving chooser get, how the two scores agree, and the published law
    of over-optimisation.  With --run-log the same is told of an RL run.
    """

    proxy: str = ""
    """The scorer that chooses: column:NAME, a file that adjudge label wrote, or a scorer."""

    aggregate: str = ""
    """How the values of steps become one number, such as min or product; without it, the score's own value."""

    answers: str = ""
    """Column of the final answer, for a majority vote as a baseline."""

    most: Annotated[int, Range(ge=0)] = 0
    """Largest n; 0 for as many responses as most prompts have."""

    bins: Annotated[int, Range(ge=2)] = 10
    """Bins of the proxy, equally full, in which the mean of gold is shown."""

    run_log: bool = False
    """The input holds steps of an RL run with its divergence, proxy and gold: a folder that adjudge train policy
    made, or any file of rows."""

    kl_column: str = ""
    """Column of the divergence from the first policy, in nats, for --run-log."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.proxy and not self.run_log:
            raise ValueError(
                "there is no proxy; give column:NAME, a file of scores, or the scorer that is to choose among responses"
            )
        if self.kl_column and not self.run_log:
            raise ValueError(f"--kl-column is {self.kl_column!r}, which is for --run-log; best-of-n knows its own")
        check_aggregate(self.aggregate)

    @property
    def _needs_gold(self) -> bool:
        return not self.run_log


@dataclass(frozen=True, kw_only=True)
class AttemptsConfig(CandidatesConfig):
    """Options of evaluations that look at k of a prompt's responses."""

    pass_at: float = 1.0
    """The least gold of a right response."""

    k: tuple[int, ...] = ()
    """How many responses; give it several times. Without it 1, 2, 4, .. up to what prompts have: all of them, and 1024
    at most, for pass@k; most of them, for votes."""

    answers: str = ""
    """Column of the final answer: for pass_at_k, to measure the majority of k attempts (maj@k); for voting, in place
    of the answer that the gold scorer found."""

    subsets: Annotated[int, Range(ge=2)] = 1_000
    """Most ways to draw k responses that a majority is taken over; where there are more, so many are drawn."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for k in self.k:
            if k < 1:
                raise ValueError(f"--k is {k!r}; it must be 1 or more")


@dataclass(frozen=True, kw_only=True)
class PassAtKConfig(AttemptsConfig):
    """Measure how many prompts are solved in k attempts: by one of them, by all of them, by their majority.

    The expectations are over all ways to draw k of a prompt's responses.
    """


def check_aggregate(name: str) -> None:
    """Raise `ValueError` unless a name is "" or one of the aggregates."""
    if name and name not in AGGREGATES:
        raise ValueError(f"--aggregate is {name!r}; it must be one of {', '.join(AGGREGATES)}")


Method: TypeAlias = Literal["best_of_n", "majority", "steps", "beam", "mcts"]
METHODS: tuple[Method, ...] = get_args(Method)
ValueOf: TypeAlias = Literal["prefix", "rollouts"]


@dataclass(frozen=True, kw_only=True)
class VotingConfig(AttemptsConfig):
    """Measure votes among k responses: by majority, weighted by a scorer's values or those of its steps, and best-of-k.

    The shares of right winners are expectations over all ways to draw k of a prompt's responses, or over drawn ones
    where there are too many; equal answers share.
    """

    scorer: str = ""
    """Whose values weigh votes: column:NAME, a file that adjudge label wrote, or a scorer; without one, only the
    majority is measured."""

    equality: str = "text"
    """When two answers are one: text compares them without spaces, a scorer is asked about one with the other as its
    reference, such as math."""

    equal_at: float = 1.0
    """The least score of equal answers."""

    aggregate: tuple[str, ...] = ("min", "product", "last", "mean")
    """How values of steps become weights, where the scorer has steps; give it several times."""

    temperature: Annotated[float, Range(gt=0)] = 1.0
    """Of the softmax of values as weights."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.aggregate:
            check_aggregate(name)
        if not self.equality:
            raise ValueError("--equality is empty; give text, or a scorer such as math")


@dataclass(frozen=True, kw_only=True)
class SearchConfig(GrowthOptions, EvalConfig):
    """Measure what a scorer is worth as the guide of a search, beside best-of-n and a majority of the same budget.

    Every method gets the same number of generated tokens for each problem and stops at the end of the call in which it
    has spent them; one that is done earlier begins again with other draws.
    """

    engine: str = ""
    """Who writes: transformers:MODEL, vllm:MODEL, openai:MODEL, or a mapping as YAML text."""

    value: str = ""
    """The scorer that guides: it sees the problem and a solution, finished or not, and never the reference."""

    gold: str = "math"
    """The scorer that says which solutions are right."""

    final: str = ""
    """A scorer that compares what a method found in the end, such as {tournament: ..} under a pairwise judge, and
    chooses in the guide's place (BPP-Search); without one, the guide chooses."""

    method: tuple[Method, ...] = METHODS
    """best_of_n, majority, steps (the best of --expand next steps, one by one), beam, or mcts.
    Give it several times for several."""

    tokens: Annotated[int, Range(ge=1)] = 4_096
    """Generated tokens for each problem and method."""

    draws_at_most: Annotated[int, Range(ge=1)] = 512
    """Most texts that are drawn for each problem and method, whatever tokens the engine reports."""

    width: Annotated[int, Range(ge=1)] = 4
    """Solutions in a beam."""

    value_of: ValueOf = "prefix"
    """What guides: the value of the prefix, or the mean value of --rollouts ends from it."""

    rollouts: Annotated[int, Range(ge=1)] = 2
    """Ends that are drawn from a prefix, with --value-of rollouts."""

    aggregate: str = ""
    """How the values of steps become one number, such as min; without it, the score's own value."""

    pass_at: float = 1.0
    """The least gold of a right solution."""

    equality: str = "text"
    """When two answers are one, for the majority: text, or a scorer such as math."""

    prompt_column: str = "prompt"
    """Column of the problem: text or chat turns."""

    reference_column: str = "reference"
    """Column of what the gold scorer checks against."""

    id_column: str = ""
    """Column of the id; without one, the number of the row, from 0."""

    step_end: str = "\\n\\n"
    """The text that ends a step, as the engine sees it; \\n stands for a new line."""

    ends: str = r"\\boxed\{|####|[Ff]inal [Aa]nswer"
    """A pattern that the last step of a solution holds; a step behind which nothing is added is the last one too."""

    max_steps: Annotated[int, Range(ge=1)] = 30
    """Most steps of a solution."""

    step_tokens: Annotated[int, Range(ge=1)] = 256
    """Most tokens of one step."""

    max_tokens: Annotated[int, Range(ge=1)] = 1_024
    """Most tokens of a whole solution."""

    temperature: Annotated[float, Range(gt=0)] = 0.8
    """Of everything that is drawn."""

    top_p: Annotated[float, Range(gt=0, le=1)] = 1.0
    """Share of probability that is drawn from."""

    chat: bool = True
    """The problem is a user's turn; with --no-chat it is plain text, as is the prefix."""

    in_flight: Annotated[int, Range(ge=1)] = 8
    """Problems that are worked on at the same time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.engine.strip():
            raise ValueError("--engine is empty; name a model, such as transformers:MODEL or openai:MODEL")
        if not self.value:
            raise ValueError("there is no --value; name the scorer that is to guide the search")
        for method in self.method:
            named(dict.fromkeys(METHODS), method, "search method")
        if not self.method or len(set(self.method)) < len(self.method):
            raise ValueError(f"--method names {', '.join(self.method) or 'nothing'}; name each once, at least one")
        check_aggregate(self.aggregate)
        if not self.step_end or not self.equality:
            raise ValueError("--step-end and --equality must not be empty")
        try:
            re.compile(self.ends)
        except re.error as error:
            raise ValueError(f"--ends is {self.ends!r}, which is not a regular expression: {error}") from error

    @property
    def gap(self) -> str:
        """The text between two steps."""
        return self.step_end.replace("\\n", "\n")

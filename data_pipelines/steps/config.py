"""The options of labelling steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from adjudge.data_pipelines.steps.growth import GrowthOptions
from adjudge.data_pipelines.steps.growth import Rule as GrowthRule
from adjudge.data_pipelines.steps.rollouts import Hardness
from adjudge.data_pipelines.steps.searches import TreeOptions
from adjudge.io.jobs.config import JobConfig
from adjudge.options import Range
from adjudge.responses.steps import Splitting

Method: TypeAlias = Literal[
    "mc", "binary", "tree", "pav", "rest_mcts", "mcts", "rmax_ts", "consensus", "spa", "arithmetic", "worked"
]
SpaRule: TypeAlias = Literal["regression", "centred"]
Opinion: TypeAlias = Literal["mc", "binary"]

WITH_ENGINE: frozenset[Method] = frozenset({"mc", "binary", "tree", "pav", "rest_mcts", "mcts", "rmax_ts", "consensus"})

WITHOUT_SOLUTIONS: frozenset[Method] = frozenset({"tree", "mcts", "rmax_ts"})

GAPS: Mapping[Splitting, str] = {"blank_line": "\n\n", "line": "\n"}
"""What ends a step that is drawn by itself."""


@dataclass(frozen=True, kw_only=True)
class StepsConfig(GrowthOptions, JobConfig):
    """Label the steps of solutions: by rollouts, a worked solution, arithmetic, or the final rewards of many.

    Raises:
        ValueError: an option is out of its range, or the method needs one that is not there.
    """

    method: Method = "mc"
    """How labels are found: rollouts at every step (mc), halving for the first error (binary), a tree of rollouts
    (tree), advantages of a prover (pav), ReST-MCTS* values (rest_mcts), the same of the solutions that a guided tree
    finds (mcts), or RMaxTS with a verifier of proofs (rmax_ts), mc or binary where a judge agrees (consensus),
    regression of final rewards (spa), equations checked by a scorer (arithmetic), results compared with a worked
    solution (worked)."""

    engine: str = ""
    """Who goes on from prefixes: transformers:MODEL, vllm:MODEL, openai:MODEL, or a mapping as YAML text."""

    prover: str = ""
    """The prover's policy (pav), an engine; without one, that of --engine."""

    scorer: str = "math"
    """Says which ends are right: a name, or a spec as YAML or JSON text."""

    critic: str = ""
    """The judge of consensus: a scorer that gives a value for each step, such as {critic: {engine: ..}}.
    The guide of mcts: one that values prefixes, without the reference; without it, the share of --rollouts ends of a
    prefix that are right."""

    prompt_column: str = "prompt"
    """Column of the problem: text or chat turns."""

    response_column: tuple[str, ...] = ("response",)
    """Column of the solution: text, a list of texts, or chat turns (spa).
    Give it several times for several columns of a row; tree, mcts and rmax_ts need none."""

    steps_column: str = ""
    """Column with the solution's steps as a list of texts; without it, --splitting cuts the solution."""

    reference_column: str = "reference"
    """Column of what the scorer checks against; for worked, of the worked solution."""

    outcome_column: tuple[str, ...] = ()
    """Column that says whether the solution is right (true, false, or a number), one for each --response-column;
    of a list of solutions, a list. Without it the scorer says so. For spa, the final reward."""

    id_column: str = ""
    """Column of the id; without one, the number of the row, from 0."""

    group_column: str = ""
    """Column that names a family of problems, which trainings never divide."""

    splitting: Splitting = "blank_line"
    """Where a step begins: blank_line, line, numbered, sentence, list or whole."""

    max_steps: Annotated[int, Range(ge=1)] = 100
    """Most steps of a solution; the last one holds the rest."""

    rollouts: Annotated[int, Range(ge=1)] = 8
    """Rollouts from each prefix that is asked."""

    labels: Hardness = "soft"
    """The share of rollouts that ended right (soft), or 1 as soon as one did (hard), for mc and tree."""

    pass_at: float = 1.0
    """An end is right if its score is at least this."""

    verify: Annotated[int, Range(ge=0)] = 0
    """How often the place a binary search ended at is asked again, with --rollouts more each time."""

    max_calls_per_row: Annotated[int | None, Range(ge=1)] = None
    """Most rollouts for one row; steps that would need more stay unknown."""

    best_of: Annotated[int, Range(ge=1)] = 4
    """K of the prover, which takes the best of K rollouts (pav); 1 for the policy itself."""

    first_pit: bool = False
    """Stop behind the first prefix from which no rollout ends right (pav)."""

    opinion: Opinion = "mc"
    """How rollouts find the first error for consensus: mc or binary."""

    critic_threshold: float = 0.5
    """A step is an error if the critic's value is at most this (consensus)."""

    rule: SpaRule = "regression"
    """What a turn gets (spa): its contribution by regression, or the reward less the mean of the prompt's others."""

    ridge: Annotated[float, Range(gt=0)] = 1.0
    """Ridge of the regression (spa), in trajectories."""

    factors: str = ""
    """A Python file with factors(prompt, turns), which returns a list of numbers for each turn (spa): what final
    rewards are explained by, in the place of words. It runs in a sandbox."""

    tree_searches: Annotated[int, Range(ge=1)] = 100
    """Most wrong rollouts that a tree searches; most rounds of mcts; proofs that rmax_ts draws."""

    tree_rule: GrowthRule = "uct"
    """Which step is followed (mcts): uct (ReST-MCTS*), vm_mcts (ReST-RL), puct (AlphaZero) or best_first."""

    ends: str = r"\\boxed\{|####|[Ff]inal [Aa]nswer"
    """A pattern that the last step of a solution holds (mcts); a step behind which nothing is added is the last one
    too."""

    step_tokens: Annotated[int, Range(ge=1)] = 256
    """Most tokens of one step (mcts)."""

    min_value: float | None = None
    """Least value by the guide of a solution that is kept (mcts)."""

    tree_alpha: Annotated[float, Range(gt=0, le=1)] = 0.5
    """alpha of a tree: how strongly promising prefixes come first."""

    tree_beta: Annotated[float, Range(gt=0, le=1)] = 0.9
    """beta of a tree: how strongly short rollouts come first."""

    tree_length: Annotated[int, Range(ge=1)] = 500
    """L of a tree, in tokens: the length that beta counts in."""

    tree_c_puct: Annotated[float, Range(ge=0)] = 0.125
    """c_puct of a tree: the weight of prefixes that were seldom chosen."""

    chat: bool = True
    """The problem is a user's turn, and the prefix the beginning of the answer; with --no-chat both are plain text."""

    temperature: Annotated[float, Range(ge=0)] = 0.7
    """Temperature of rollouts."""

    top_p: Annotated[float, Range(gt=0, le=1)] = 1.0
    """Share of probability that rollouts are drawn from."""

    max_tokens: Annotated[int, Range(ge=1)] = 1024
    """Most tokens of a rollout."""

    seed: Annotated[int, Range(ge=0)] = 0
    """Of the rollouts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.response_column:
            raise ValueError("--response-column is empty; name the column of the solution")
        if self.outcome_column and len(self.outcome_column) != len(self.response_column):
            raise ValueError(
                f"--outcome-column names {len(self.outcome_column)} columns and --response-column "
                f"{len(self.response_column)}; give one outcome for each response"
            )
        if self.steps_column and len(self.response_column) > 1:
            raise ValueError("--steps-column goes with one --response-column; this call has several")
        if self.rollouts * (1 + self.verify) > 1 and self.temperature == 0:
            raise ValueError("--temperature is 0, so that all rollouts would be the same; give one above 0")
        self._check_method()

    def _check_method(self) -> None:
        if self.method == "pav" and self.rollouts < self.best_of:
            raise ValueError(
                f"--rollouts is {self.rollouts} and --best-of is {self.best_of}; the chance of the best of "
                f"{self.best_of} needs as many rollouts from each prefix"
            )
        if self.prover and self.method != "pav":
            raise ValueError(f"--prover is for the method pav, and the method is {self.method}")
        if self.critic and self.method not in ("consensus", "mcts"):
            raise ValueError(f"--critic is for the methods consensus and mcts, and the method is {self.method}")
        if self.method == "mcts" and self.splitting not in GAPS:
            raise ValueError(
                f"--splitting is {self.splitting}; mcts draws step by step, which ends at a blank_line or line"
            )
        try:
            re.compile(self.ends)
        except re.error as error:
            raise ValueError(f"--ends is {self.ends!r}, which is not a regular expression: {error}") from error
        if self.factors and (self.method != "spa" or self.rule != "regression"):
            raise ValueError("--factors is for the method spa and the rule regression; leave it out")
        if self.method == "spa" and not self.outcome_column:
            raise ValueError("the method spa explains final rewards; name their column with --outcome-column")

    def tree(self) -> TreeOptions:
        """Return the options of a tree."""
        return TreeOptions(
            rollouts=self.rollouts,
            searches=self.tree_searches,
            alpha=self.tree_alpha,
            beta=self.tree_beta,
            length=self.tree_length,
            c_puct=self.tree_c_puct,
        )

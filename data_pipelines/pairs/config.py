"""The options of building pairs, and of their checks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from adjudge.data_pipelines.pairs.rule import rule_of
from adjudge.io.jobs.config import JobConfig
from adjudge.options import Options, Range


@dataclass(frozen=True, kw_only=True)
class PairsConfig(JobConfig):
    """Make preference pairs of scored answers.

    The input is what `adjudge label` wrote, with --rows or --keep-columns, or rows with a prompt, a response and a
    score each, or rows with a list of responses and a list of scores.  Rows of one group stand together.

    Raises:
        ValueError: an option is out of its range, or there is no such rule.
    """

    rule: str = "best_worst"
    """best_worst, best_random, all_ordered, pass_fail, execution_order, heron, agreement, gap_split, both_orders,
    duoguard, first_bad_step, step_apo or sibling_error; with options as YAML: "{pass_fail: {passing: 0.9}}"."""

    rows: str = ""
    """The file that was labelled, where the input holds its scores alone; they are joined by row and id."""

    prompt_column: str = ""
    """Column of the prompt: text or chat turns. Where a column is not named, the usual names are tried."""

    response_column: str = ""
    """Column of the response, or of a list of them."""

    score_column: str = ""
    """Column of the score; "parts.math" takes a part of a composed score. Of several scorers, the first that settled a
    row counts."""

    score_word: tuple[str, ...] = ()
    """What a word in the score column is worth, such as pass=1; give it several times for several."""

    id_column: str = ""
    """Column of an answer's id."""

    group_column: str = ""
    """Column that the answers to one prompt share; without one, the prompt."""

    max_pairs: Annotated[int | None, Range(ge=1)] = None
    """Most pairs of one prompt; which ones is drawn."""

    max_answers: Annotated[int, Range(ge=2, le=1000)] = 200
    """Most answers of one prompt that are looked at; which ones is drawn."""

    min_margin: Annotated[float, Range(ge=0)] = 0.0
    """Pairs whose margin is known and smaller are left out."""

    weights: Literal["one", "prompt"] = "one"
    """The weight of a pair: 1, or 1 / pairs of its prompt."""

    part: Literal["all", "train", "test"] = "all"
    """Which prompts: all, or one side of a split. The same call with the other makes the other side; no prompt is on
    both."""

    test_share: Annotated[float, Range(gt=0, lt=1)] = 0.1
    """Share of the prompts that is on the side "test"."""

    seed: int = 0
    """Of what is drawn, and of the split."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rule_of(self.rule)
        self.words()

    def words(self) -> Mapping[str, float]:
        """Return what words in the score column are worth."""
        worth: dict[str, float] = {}
        for entry in self.score_word:
            word, sign, number = entry.rpartition("=")
            try:
                value = float(number)
            except ValueError:
                value = math.nan
            if not sign or not math.isfinite(value):
                raise ValueError(f"--score-word is {entry!r}; it must be a word and its number, such as pass=1")
            if worth.get(word.strip(), value) != value:
                raise ValueError(f"--score-word gives {word.strip()!r} two numbers; give it one")
            worth[word.strip()] = value
        return worth


@dataclass(frozen=True, kw_only=True)
class LeaksConfig(Options, what="--"):
    """Look for what makes a reward model seem better than it is: leaks and give-aways in pairs, or in rated answers."""

    train: str
    """What is trained on: a file, folder or dataset with pairs (prompt, chosen, rejected), or rated answers (prompt,
    response, label)."""

    test: str
    """What is measured on."""

    prompt_column: str = ""
    """Column of the prompt: text or chat turns; the usual names are tried."""

    chosen_column: str = ""
    """Column of the better response; the usual layouts are known."""

    rejected_column: str = ""
    """Column of the worse response."""

    response_column: str = "response"
    """Column of a rated answer."""

    label_column: str = "label"
    """Column of its label: true, false or a number; above 1/2 is good."""

    first_column: str = ""
    """Column that is true where the better response is shown first; without one, the places of pairs with a label are
    checked alone."""

    threshold: Annotated[float, Range(gt=0, le=1)] = 0.8
    """Jaccard similarity of n-grams from which two prompts are near-duplicates."""

    ngram: Annotated[int, Range(ge=1, le=64)] = 5
    """Words of an n-gram."""

    balance: Annotated[float, Range(ge=0, lt=0.5)] = 0.1
    """How far from 1/2 position and length may decide; found is what is farther with its whole interval."""

    train_split: str = ""
    """Split of the training data, of a dataset that has several."""

    test_split: str = ""
    """Split of the test data."""

    max_row_mb: Annotated[int, Range(ge=1, le=1024, unit="MiB")] = 16
    """Largest row of a text file, in MiB; a larger one is counted as unreadable."""

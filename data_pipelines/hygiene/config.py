"""The options of hygiene: those that every kind has beside those of a job, then each kind's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from adjudge.data_pipelines.hygiene.minhash import Bands, MinHash
from adjudge.data_pipelines.hygiene.shingles import TokenKind
from adjudge.io.jobs.config import JobConfig
from adjudge.response_weights import KEEPING, Keeping


@dataclass(frozen=True, kw_only=True)
class HygieneConfig(JobConfig):
    """Leave rows out of a dataset."""

    dropped: bool = False
    """Write what was left out too, with why, to OUTPUT.dropped.jsonl; that reads the input once more."""

    @property
    def dropped_output(self) -> str:
        """Where the rows go that were left out."""
        return f"{self.output}.dropped.jsonl"

    def given(self, *names: str) -> dict[str, Any]:
        """Return some options as plain JSON data."""
        values = {name: getattr(self, name) for name in names}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def in_range(flag: str, value: float, least: float, most: float) -> None:
    """Check a number.

    Raises:
        ValueError: it is outside.
    """
    if not least <= value <= most:
        raise ValueError(f"{flag} is {value}; it must be from {least:g} to {most:g}")


@dataclass(frozen=True, kw_only=True)
class DecontaminateConfig(HygieneConfig):
    """Leave out rows that hold questions of a benchmark.

    Raises:
        ValueError: an option is out of its range, or no benchmark is named.
    """

    benchmark: tuple[str, ...] = ()
    """File or dataset of questions that must not be trained on; give it several times for several."""

    text_column: tuple[str, ...] = ()
    """Column of the input that is searched; give it several times for several. Without one, the prompt."""

    benchmark_column: tuple[str, ...] = ()
    """Column of the benchmarks that is searched for; give it several times for several.
    Without one, the prompt of each."""

    ngram: int = 13
    """Words that a text must share in a row; single characters in scripts without spaces.
    GPT-3 takes 13, DeepSeekMath 10, Tulu 3 takes 8 with a share of 0.5."""

    share: float = 0.0
    """Share of a question's n-grams that a text must hold; 0 is satisfied with one n-gram."""

    frame: int = 10
    """An n-gram that more questions than these share is their frame and is no hit; 0 counts all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.benchmark:
            raise ValueError("no benchmark is named; give at least one file or dataset with --benchmark")
        in_range("--ngram", self.ngram, 1, 64)
        in_range("--share", self.share, 0.0, 1.0)
        in_range("--frame", self.frame, 0, 1 << 31)


Keep: TypeAlias = Literal["first", "longest", "best"]


@dataclass(frozen=True, kw_only=True)
class DedupConfig(HygieneConfig):
    """Leave out rows whose text another row has too, or nearly."""

    text_column: tuple[str, ...] = ()
    """Column of the text that is compared; give it several times to compare several as one.
    Without one, the prompt."""

    threshold: float = 0.8
    """Jaccard similarity of n-grams from which on two rows are copies.
    1 leaves out exact copies alone: the same text but for case, width and white space."""

    ngram: int = 5
    """Words of an n-gram; single characters in scripts without spaces."""

    kind: TokenKind = "words"
    """N-grams of words, or of characters."""

    permutations: int = 128
    """Numbers of a MinHash signature; more find more of the pairs near the threshold."""

    seed: int = 0
    """Of the signatures."""

    keep: Keep = "first"
    """Which row of a cluster stays: the first, the longest, or the one with the best score."""

    score_column: str = ""
    """Column of the score, for --keep best; a row without one comes last."""

    def __post_init__(self) -> None:
        super().__post_init__()
        in_range("--threshold", self.threshold, 0.05, 1.0)
        if self.keep not in get_args(Keep):
            raise ValueError(f"--keep is {self.keep!r}; choose {', '.join(get_args(Keep))}")
        if (self.keep == "best") != bool(self.score_column):
            raise ValueError("--keep best and --score-column go together; give both or neither")
        _ = self.minhash()
        if self.threshold < 1:
            Bands.of(self.threshold, self.permutations)

    def minhash(self) -> MinHash:
        """Return how texts are compared."""
        return MinHash(ngram=self.ngram, permutations=self.permutations, seed=self.seed, kind=self.kind)


@dataclass(frozen=True, kw_only=True)
class DifficultyConfig(HygieneConfig):
    """Add to each row how often its prompt was solved, and leave out prompts that are too easy or too hard."""

    score_column: str = ""
    """Column of the score: a number, or a list of the scores of several responses.
    Without one, the usual names are tried; in the output of `adjudge label`, the value of scored rows."""

    group_column: str = ""
    """Column that the rows of one prompt share; without one, the group, or else the prompt."""

    pass_score: float = 0.5
    """A score of at least this is a pass."""

    min_scores: int = 4
    """With fewer known scores the pass rate of a prompt is unknown."""

    lowest: float = 0.0
    """Leave out prompts with a lower pass rate."""

    highest: float = 1.0
    """Leave out prompts with a higher pass rate."""

    one_per_prompt: bool = False
    """Only the first row of each prompt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        in_range("--lowest", self.lowest, 0.0, 1.0)
        in_range("--highest", self.highest, self.lowest, 1.0)
        in_range("--pass-score", self.pass_score, -1e300, 1e300)
        if self.min_scores < 1:
            raise ValueError(f"--min-scores is {self.min_scores}; it must be 1 or more")


FilterRule: TypeAlias = Literal[
    "spread", "relative_spread", "spread_quantile", "pf_ppo", "guessed", "length", "repetition"
]


@dataclass(frozen=True, kw_only=True)
class FilterConfig(HygieneConfig):
    """Leave out prompts that teach nothing, and responses whose rewards cannot be trusted.

    Raises:
        ValueError: an option is out of its range, or one that the rule needs is not given.
    """

    rule: FilterRule = "spread"
    """spread: prompts whose scores differ.  relative_spread: prompts whose scores differ by --beta times the mean
    deviation of all (RLPR).  spread_quantile: prompts above a quantile of the deviations.
    pf_ppo: responses by the weights under which scores tell most about --true-column (PF-PPO).
    guessed: prompts that the tries in --guesses did not solve (Kimi k1.5).
    length, repetition: rows by their text."""

    score_column: str = ""
    """Column of the score; without one, the usual names are tried."""

    group_column: str = ""
    """Column that the rows of one prompt share; without one, the group, or else the prompt."""

    text_column: tuple[str, ...] = ()
    """Column of the text, for length and repetition; give it several times for several."""

    min_spread: float = 0.0
    """spread: standard deviation that a prompt's scores need, beside being more than 0; ReST-GRPO takes 0.05."""

    beta: float = 0.5
    """relative_spread: share of the mean deviation that a prompt needs; RLPR takes 0.5 to 1."""

    quantile: float = 0.25
    """spread_quantile: share of the prompts that is left out."""

    true_column: str = ""
    """pf_ppo: column of a score that can be trusted, where there is one."""

    policy: Keeping | Literal["auto"] = "auto"
    """pf_ppo: the weights; "auto" takes those with the largest R² against the true score."""

    exponent: float = 2.0
    """pf_ppo: of the policy "power"."""

    guesses: str = ""
    """guessed: file of scored tries to answer without reasoning, with the same prompts or groups."""

    pass_score: float = 0.5
    """guessed: a score of at least this is right."""

    guessed_times: int = 1
    """guessed: so many right tries show that a prompt can be guessed."""

    min_words: int = 0
    """length: fewest words; single characters in scripts without spaces."""

    max_words: int = 100_000
    """length: most words."""

    repeat_ngram: int = 10
    """repetition: words of the runs that are counted; RLPR takes 10."""

    repeat_times: int = 6
    """repetition: how often one run must occur for the row to be left out; RLPR takes 6."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule not in get_args(FilterRule):
            raise ValueError(f"--rule is {self.rule!r}; choose {', '.join(get_args(FilterRule))}")
        if self.policy not in ("auto", *KEEPING):
            raise ValueError(f"--policy is {self.policy!r}; choose auto, {', '.join(KEEPING)}")
        in_range("--min-spread", self.min_spread, 0.0, 1e300)
        in_range("--beta", self.beta, 0.0, 1e6)
        in_range("--quantile", self.quantile, 0.0, 1.0)
        in_range("--exponent", self.exponent, 0.0, 100.0)
        in_range("--pass-score", self.pass_score, -1e300, 1e300)
        in_range("--guessed-times", self.guessed_times, 1, 1 << 31)
        in_range("--min-words", self.min_words, 0, 1 << 31)
        in_range("--max-words", self.max_words, self.min_words, 1 << 31)
        in_range("--repeat-ngram", self.repeat_ngram, 1, 64)
        in_range("--repeat-times", self.repeat_times, 2, 1 << 31)
        if self.rule == "pf_ppo" and self.policy == "auto" and not self.true_column:
            raise ValueError("--rule pf_ppo needs --true-column to find the best policy, or a --policy")
        if (self.rule == "guessed") != bool(self.guesses):
            raise ValueError("--rule guessed and --guesses go together; give both or neither")

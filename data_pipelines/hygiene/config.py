"""The options of hygiene: those that every kind has beside those of a job, then each kind's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from adjudge.data_pipelines.hygiene.minhash import Bands, MinHash, TokenKind
from adjudge.io.jobs.config import JobConfig
from adjudge.options import Options, Range
from adjudge.response_weights import Keeping


@dataclass(frozen=True, kw_only=True)
class HygieneConfig(JobConfig):
    """Leave rows out of a dataset."""

    dropped: bool = False
    """Write what was left out too, with why, to OUTPUT.dropped.jsonl; that reads the input once more."""

    @property
    def dropped_output(self) -> str:
        """Where the rows go that were left out."""
        return f"{self.output}.dropped.jsonl"


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

    ngram: Annotated[int, Range(ge=1, le=64)] = 13
    """Words that a text must share in a row; single characters in scripts without spaces.
    GPT-3 takes 13, DeepSeekMath 10, Tulu 3 takes 8 with a share of 0.5."""

    share: Annotated[float, Range(ge=0, le=1)] = 0.0
    """Share of a question's n-grams that a text must hold; 0 is satisfied with one n-gram."""

    frame: Annotated[int, Range(ge=0)] = 10
    """An n-gram that more questions than these share is their frame and is no hit; 0 counts all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.benchmark:
            raise ValueError("no benchmark is named; give at least one file or dataset with --benchmark")


Keep: TypeAlias = Literal["first", "longest", "best"]


@dataclass(frozen=True, kw_only=True)
class DedupConfig(HygieneConfig):
    """Leave out rows whose text another row has too, or nearly."""

    text_column: tuple[str, ...] = ()
    """Column of the text that is compared; give it several times to compare several as one. Without one, the prompt."""

    threshold: Annotated[float, Range(ge=0.05, le=1)] = 0.8
    """Jaccard similarity of n-grams from which on two rows are copies.
    1 leaves out exact copies alone: the same text but for case, width and white space."""

    ngram: Annotated[int, Range(ge=1, le=64)] = 5
    """Words of an n-gram; single characters in scripts without spaces."""

    kind: TokenKind = "words"
    """N-grams of words, or of characters."""

    permutations: Annotated[int, Range(ge=1, le=4096)] = 128
    """Numbers of a MinHash signature; more find more of the pairs near the threshold."""

    seed: Annotated[int, Range(ge=0)] = 0
    """Of the signatures."""

    keep: Keep = "first"
    """Which row of a cluster stays: the first, the longest, or the one with the best score."""

    score_column: str = ""
    """Column of the score, for --keep best; a row without one comes last."""

    def __post_init__(self) -> None:
        super().__post_init__()
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
    """Column that the rows of one prompt share; without one, the group and the prompt."""

    pass_score: float = 0.5
    """A score of at least this is a pass."""

    min_scores: Annotated[int, Range(ge=1)] = 4
    """With fewer known scores the pass rate of a prompt is unknown."""

    lowest: Annotated[float, Range(ge=0, le=1)] = 0.0
    """Leave out prompts with a lower pass rate."""

    highest: Annotated[float, Range(ge=0, le=1)] = 1.0
    """Leave out prompts with a higher pass rate."""

    one_per_prompt: bool = False
    """Only the first row of each prompt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.highest < self.lowest:
            raise ValueError(f"--highest is {self.highest} and --lowest {self.lowest}; no pass rate is between")


FilterRule: TypeAlias = Literal[
    "spread", "relative_spread", "spread_quantile", "persistent", "pf_ppo", "passed", "guessed", "length", "repetition"
]


@dataclass(frozen=True, kw_only=True)
class FilterConfig(HygieneConfig):
    """Leave out prompts that teach nothing, and responses whose rewards cannot be trusted.

    Raises:
        ValueError: an option is out of its range, or one that the rule needs is not given.
    """

    rule: FilterRule = "spread"
    """spread: prompts whose scores differ.  relative_spread: prompts whose scores differ by --beta times the mean
    deviation of all (RLPR).  spread_quantile: prompts above a quantile of the deviations. persistent: prompts that less
    than half of the answers of each round in --round-column solve, and not more as rounds go by (SwS). pf_ppo:
    responses by the weights under which scores tell most about --true-column (PF-PPO). passed: responses with a score
    of --pass-score or more (rejection sampling). guessed: prompts that the tries in --guesses did not solve (Kimi
    k1.5). length, repetition: rows by their text."""

    score_column: str = ""
    """Column of the score; without one, the usual names are tried."""

    group_column: str = ""
    """Column that the rows of one prompt share; without one, the group and the prompt."""

    text_column: tuple[str, ...] = ()
    """Column of the text, for length and repetition; give it several times for several."""

    min_spread: Annotated[float, Range(ge=0)] = 0.0
    """spread: standard deviation that a prompt's scores need, beside being more than 0; ReST-GRPO takes 0.05."""

    beta: Annotated[float, Range(ge=0)] = 0.5
    """relative_spread: share of the mean deviation that a prompt needs; RLPR takes 0.5 to 1."""

    quantile: Annotated[float, Range(ge=0, le=1)] = 0.25
    """spread_quantile: share of the prompts that is left out."""

    round_column: str = ""
    """persistent: column of the number of the round, such as a checkpoint's, that an answer is from."""

    true_column: str = ""
    """pf_ppo: column of a score that can be trusted, where there is one."""

    policy: Literal["auto", Keeping] = "auto"
    """pf_ppo: the weights; "auto" takes those with the largest R² against the true score."""

    exponent: Annotated[float, Range(ge=0, le=100)] = 2.0
    """pf_ppo: of the policy "power"."""

    guesses: str = ""
    """guessed: file of scored tries to answer without reasoning, with the same prompts or --group-column."""

    pass_score: float = 0.5
    """passed, guessed, persistent: a score of at least this is right."""

    max_score: float | None = None
    """passed: a response with a higher score is left out as well, such as one that is too likely (BFS-Prover-V2)."""

    guessed_times: Annotated[int, Range(ge=1)] = 1
    """guessed: so many right tries show that a prompt can be guessed."""

    min_words: Annotated[int, Range(ge=0)] = 0
    """length: fewest words; single characters in scripts without spaces."""

    max_words: int = 100_000
    """length: most words."""

    repeat_ngram: Annotated[int, Range(ge=1, le=64)] = 10
    """repetition: words of the runs that are counted; RLPR takes 10."""

    repeat_times: Annotated[int, Range(ge=2)] = 6
    """repetition: how often one run must occur for the row to be left out; RLPR takes 6."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_words < self.min_words:
            raise ValueError(f"--max-words is {self.max_words} and --min-words {self.min_words}; raise the first")
        if self.rule == "pf_ppo" and self.policy == "auto" and not self.true_column:
            raise ValueError("--rule pf_ppo needs --true-column to find the best policy, or a --policy")
        if (self.rule == "persistent") != bool(self.round_column):
            raise ValueError("--rule persistent and --round-column go together; give both or neither")
        if (self.rule == "guessed") != bool(self.guesses):
            raise ValueError("--rule guessed and --guesses go together; give both or neither")


@dataclass(frozen=True, kw_only=True)
class MixtureConfig(Options, what="--"):
    """Find the mixture of sources that is expected to train best, by the scores of a few short runs (MoDoMoDo).

    The score is fitted as a quadratic function of the shares, whose largest value is told.  m sources need
    m (m + 1) / 2 runs or more.
    """

    runs: str
    """A file with a row for each run: in `weights` a mapping from sources to shares, which sum to 1, and the score."""

    score_column: str = "score"
    """Column of the score of the model that came out."""

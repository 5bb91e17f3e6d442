"""Options of the jobs of this folder: those that all share (who writes, who judges, which columns), and each kind's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from adjudge.engines.interface import Sampling
from adjudge.io.jobs.config import JobConfig
from adjudge.options import Range


@dataclass(frozen=True, kw_only=True)
class AskingConfig(JobConfig):
    """A job in which a language model writes items."""

    needed: ClassVar[tuple[str, ...]] = ("prompt_column",)

    engine: str = ""
    """The model that writes: transformers:MODEL, vllm:MODEL or openai:MODEL.
    Or a mapping as YAML, {openai: {model: NAME, base_url: URL}}."""

    max_tokens: int = 4096
    """Most tokens of one answer."""

    temperature: float = 0.0
    """How freely the model answers."""

    attempts: Annotated[int, Range(ge=1)] = 3
    """How often it is asked at most when its answer cannot be read."""

    seed: int = 0
    """Where random numbers start."""

    prompt_column: str = "prompt"
    """Column of the question or task: text or chat turns."""

    group_column: str = ""
    """Column that rows of one prompt share; what they hold is taken together.
    Without one, each row stands for itself."""

    good_column: str = ""
    """Column of responses known to be good: a response or a list of them."""

    bad_column: str = ""
    """Column of responses known to be bad."""

    def __post_init__(self) -> None:
        super().__post_init__()
        Sampling(max_tokens=self.max_tokens, temperature=self.temperature, seed=self.seed)
        if bool(self.good_column) != bool(self.bad_column):
            raise ValueError(
                f"--good-column is {self.good_column!r} and --bad-column is {self.bad_column!r}; "
                "the quality gate needs both, or name neither"
            )


@dataclass(frozen=True, kw_only=True)
class GatedConfig(AskingConfig):
    """A job whose items are kept where they separate known good responses from known bad ones."""

    judge: str = ""
    """The model that judges at the quality gate; without it, the one that writes."""

    min_separation: Annotated[float, Range(gt=0, le=1)] = 0.2
    """How much larger the share of good responses that meet an item must be than that of bad ones."""

    min_bound: Annotated[float, Range(ge=-1, lt=1)] = 0.0
    """The 95 % interval of that difference must lie above this; -1 asks for nothing."""


@dataclass(frozen=True, kw_only=True)
class CitationsConfig(GatedConfig):
    """Take questions of several steps apart into statements: references for the scorer citations.

    A model writes statements about <E0>, the answer, and <E1>, <E2>, ..., and names the things behind them.  What
    gives a name away, names a thing that is not known, or is not linked with the answer, is left out.
    """

    needed: ClassVar[tuple[str, ...]] = ("prompt_column", "answer_column")

    answer_column: str = "answer"
    """Column of the correct answer."""

    evidence_column: str = ""
    """Column of texts about the things that are asked for; names must stand in them, in the question or answer."""

    max_statements: int = 12
    """Statements that are asked for."""

    min_statements: Annotated[int, Range(ge=1)] = 2
    """A question of which fewer remain is left out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_statements < self.min_statements:
            raise ValueError(f"--max-statements is {self.max_statements}; it must be --min-statements or more")


@dataclass(frozen=True, kw_only=True)
class KeywordsConfig(AskingConfig):
    """Find the words by which a right answer is known: references for the scorers persona and program.

    A model proposes keywords; one is kept if most of several correct answers affirm it.  Where there are judged
    responses (good and bad columns), it also writes a checker in Python, which runs in a sandbox and is kept if it
    agrees with the judgements often enough.
    """

    needed: ClassVar[tuple[str, ...]] = ("prompt_column", "references_column")

    references_column: str = "references"
    """Column of correct answers by several writers: a list of texts, or of objects with one under "text"."""

    min_references: Annotated[int, Range(ge=1)] = 2
    """Correct answers that must affirm a keyword, besides being more than half of all."""

    max_keys: Annotated[int, Range(ge=1)] = 5
    """Keywords that are asked for."""

    checker: Literal["when_judged", "never"] = "when_judged"
    """Whether checkers are written."""

    min_agreement: Annotated[float, Range(ge=0, lt=1)] = 0.7
    """Share of judged responses on which a checker must agree, and more."""

    unbalanced: bool = False
    """Look at good and bad responses together, as published.
    Then a checker that always says yes agrees where most responses are good."""

    isolation: Literal["bubblewrap", "none"] = "bubblewrap"
    """Sandbox of checkers; none is for models you trust with this machine."""


@dataclass(frozen=True, kw_only=True)
class NuggetsConfig(GatedConfig):
    """Take the facts that an answer should hold out of passages: references for the scorer nuggets.

    A model lists facts of each passage with the words that state them; facts whose words are not there are left out,
    those that say the same are merged, and several votes make each vital or okay.
    """

    needed: ClassVar[tuple[str, ...]] = ("prompt_column", "passages_column")

    passages_column: str = "passages"
    """Column of the passages: a text, a list of texts, or a list of objects with one under "text"."""

    max_passages: Annotated[int, Range(ge=1)] = 20
    """Passages of one question that are read; the rest is counted."""

    max_passage_chars: Annotated[int, Range(ge=1)] = 50_000
    """Characters of a passage; a longer one is left out."""

    max_facts: Annotated[int, Range(ge=1)] = 10
    """Facts of one passage that are asked for."""

    min_quote: Annotated[float, Range(gt=0, le=1)] = 0.9
    """Share of a quotation's characters that must stand in the passage."""

    likeness: str = "words"
    """What tells that two facts say the same: words, letters, or transformers:MODEL with a model of embeddings."""

    min_likeness: Annotated[float, Range(gt=0, le=1)] = 0.9
    """From this likeness on they do, if numbers, names and denials are the same too."""

    max_nuggets: Annotated[int, Range(ge=1)] = 30
    """Nuggets of one question; those that the fewest passages state are left out first."""

    votes: Annotated[int, Range(ge=1)] = 3
    """How often importance is asked for, each time with the facts in another order."""


@dataclass(frozen=True, kw_only=True)
class PrinciplesConfig(GatedConfig):
    """Take principles out of free-text feedback: does a response have a quality or not, by all who judged it?

    A model lists the qualities that a feedback speaks of, with yes or no and the words that say so.  A principle is
    kept if its words are there and every other person who judged the response has one like it with the same verdict.
    """

    needed: ClassVar[tuple[str, ...]] = ("prompt_column", "response_column", "feedback_column", "feedback_inside")

    response_column: str = "response"
    """Column of the response that was judged: text or chat turns."""

    feedback_column: str = "feedback"
    """Column of the feedback: a text or a list of texts, one of each person.
    With --group-column, rows of a group are the persons."""

    feedback_inside: str = "text"
    """Where feedback is a list of objects, the key of its text."""

    max_principles: Annotated[int, Range(ge=1)] = 10
    """Principles of one feedback that are asked for."""

    min_quote: Annotated[float, Range(gt=0, le=1)] = 0.6
    """Share of a quotation's characters that must stand in the feedback."""

    likeness: str = "letters"
    """What tells that two principles are alike: words, letters, or transformers:MODEL with a model of embeddings."""

    min_likeness: Annotated[float, Range(ge=0, le=1)] = 0.8
    """Two principles are alike when they are more alike than this."""

    min_annotators: Annotated[int, Range(ge=1)] = 2
    """A response that fewer persons judged is left out."""

    generic: tuple[str, ...] = ("helpfulness", "helpful", "overall helpfulness", "overall quality", "quality")
    """Principles that say nothing; give it several times for several."""


@dataclass(frozen=True, kw_only=True)
class RubricsConfig(GatedConfig):
    """Write criteria from good and bad responses to a prompt: references for the scorer rubric.

    A model sees some of the responses and proposes criteria.  One is kept if, on the responses that were held back,
    more of the good ones meet it; how many more is its weight.
    """

    needed: ClassVar[tuple[str, ...]] = ("prompt_column", "good_column", "bad_column")

    good_column: str = "good"
    """Column of responses known to be good: a response or a list of them."""

    bad_column: str = "bad"
    """Column of responses known to be bad."""

    held_back: Annotated[float, Range(gt=0, lt=1)] = 0.5
    """Share of the good and of the bad responses that criteria are tried on, and that the writer never sees."""

    max_items: Annotated[int, Range(ge=1)] = 12
    """Criteria that are asked for."""

    max_shown: Annotated[int, Range(ge=1)] = 4
    """Good, and as many bad, responses that the writer sees; the others are held back too."""

    max_response_chars: Annotated[int, Range(ge=1)] = 20_000
    """Characters of a response; a longer one is left out."""

    redundant_from: Annotated[int, Range(ge=2)] = 8
    """Criteria that agree on all held-back responses are one, if there are so many; on a few they agree by chance."""

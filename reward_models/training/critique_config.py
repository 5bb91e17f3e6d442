"""The options of training a model that writes a critique of an answer and then scores it.

Not covered: how the training runs (`schedule`), and which model it starts from (`backbones`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from adjudge.reward_models.training.schedule import Schedule, check_seed
from adjudge.training.backbones import NGRAMS, ModelChoice

ASK = "Critique the answer above: say what is right, what is wrong, and what is missing. Be brief and concrete."


@dataclass(frozen=True, kw_only=True)
class CritiqueChoice:
    """What is learnt from, and what is held out.

    Attributes:
        path: files, folders or data sets of preferences whose rows also have `chosen_critique` and
            `rejected_critique`.
        split: which part of a data set that has several; "train" without it.
        limit: only the first rows, so many; None for all.
        held_out: share of the pairs that is measured and not trained on; whole prompts are held out.
        held_out_path: files to measure on instead; training pairs that share a prompt with them are left out.
        missing: what becomes of a pair without both critiques: "drop" leaves it out and counts it; "empty" scores an
            empty critique, and writes none.
    """

    shorthand: ClassVar[str] = "path"

    path: tuple[str, ...]
    split: str = ""
    limit: int | None = None
    held_out: float = 0.1
    held_out_path: tuple[str, ...] = ()
    missing: Literal["drop", "empty"] = "drop"

    def __post_init__(self) -> None:
        """Reject options out of range."""
        if not self.path or not all(self.path):
            raise ValueError("data.path is empty; name a file with preferences and critiques")
        if not 0 < self.held_out < 1:
            raise ValueError(f"data.held_out is {self.held_out!r}; it is a share above 0 and below 1")
        if self.limit is not None and self.limit < 2:
            raise ValueError(f"data.limit is {self.limit!r}; it must be at least 2 rows, or left out")
        if self.missing not in ("drop", "empty"):
            raise ValueError(f"data.missing is {self.missing!r}; give drop or empty")


@dataclass(frozen=True, kw_only=True)
class CritiqueTraining:
    """How a model that critiques and then scores is trained (CLoud, arXiv 2408.11791; MM-RLHF, arXiv 2502.10391).

    Attributes:
        model: which language model it starts from.
        data: what it learns from.
        output: the folder it is saved to; checkpoints stand in its sub-folder `training`.
        ask: the user's turn that asks for the critique.
        language: weight of the critiques' negative log-likelihood, a mean over critiques of means over their tokens;
            the loss of rewards has weight 1.
        ties: weight of the squared difference of the rewards of tied pairs.
        centering: weight of the squared sum of the two rewards, which keeps them near 0.
        own_critiques: held-out pairs that are also measured with critiques the trained model wrote itself.  Those that
            people wrote tell which answer they liked, so the accuracy with them says little about scoring.
        critique_tokens: most tokens of a critique that is written.
        max_length: most tokens of a prompt with answer and critique; longer pairs are left out and counted.
        schedule: how long and how fast.
        seed: of everything random.
    """

    model: ModelChoice
    data: CritiqueChoice
    output: str
    ask: str = ASK
    language: float = 1.0
    ties: float = 1.0
    centering: float = 0.01
    own_critiques: int = 100
    critique_tokens: int = 256
    max_length: int = 4096
    schedule: Schedule = field(default_factory=Schedule)
    seed: int = 0

    def __post_init__(self) -> None:
        """Reject options out of range."""
        if not self.output.strip():
            raise ValueError("output is empty; name the folder the model is saved to")
        if self.model.name == NGRAMS:
            raise ValueError("model is ngrams, which writes nothing; give from_scratch: tiny, or a language model")
        if not self.ask.strip():
            raise ValueError("ask is empty; say how the critique is asked for")
        for name in ("language", "ties", "centering"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it is a weight, and must be 0 or more")
        if self.own_critiques < 0:
            raise ValueError(f"own_critiques is {self.own_critiques!r}; give 0 to measure none, or more")
        if self.critique_tokens < 1 or self.max_length <= self.critique_tokens:
            raise ValueError(
                f"critique_tokens is {self.critique_tokens!r} and max_length {self.max_length!r}; a critique has at "
                "least 1 token, and leaves room for the answer"
            )
        check_seed(self.seed)

"""The options of evaluating a scorer on a benchmark.

Not covered: those of one benchmark, which are the fields of its class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from adjudge.evals.results.config import EvalConfig

STORED: Final = "stored"
"""The scorer that stands for the scores in the benchmark's own file."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkConfig(EvalConfig):
    """Evaluate a scorer, or stored scores, on a benchmark.

    Raises:
        ValueError: an option is out of range, or it is not said whose scores are evaluated.
    """

    needs_input: ClassVar[bool] = False

    input: str = ""
    """A file, a folder of files or of a saved dataset, or a dataset of the hub.
    Without it, the benchmark's own name on the hub."""

    scorer: str = ""
    """A name, module:object, ./file.py:object, a reward model's folder or hub name,
    a spec as YAML or JSON text, or a .yaml or .json file.
    "stored" takes the scores that stand in the input."""

    scores: str = ""
    """A file of scores by sample id, as adjudge label writes it, in place of a
    scorer; the samples to label are written with --samples."""

    scores_of: str = ""
    """Whose scores of that file, where it holds several by name."""

    against: str = ""
    """A second scorer to test the first one against: a spec, "stored", or a file of
    scores."""

    against_input: str = ""
    """Another input of the benchmark with the same cases, whose stored scores to
    test against: the outputs of another model."""

    compare: Literal["auto", "yes", "no"] = "auto"
    """Whether the scorer's reference is the other response of a pair.
    "auto" asks the scorer."""

    samples: str = ""
    """Only write the samples of the benchmark to this .jsonl file, to be scored
    elsewhere."""

    batch_size: int = 256
    """Samples handed to the scorer in one call; no score depends on it."""

    in_flight: int = 4
    """Batches that are scored at the same time."""

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        for name in ("batch_size", "in_flight"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}; give 1 or more")
        if self.compare not in ("auto", "yes", "no"):
            raise ValueError(f"compare is {self.compare!r}; it must be auto, yes or no")
        if self.samples:
            self._check_samples_alone()
            return
        if bool(self.scorer) == bool(self.scores):
            given = "both are given" if self.scorer else "neither is given"
            raise ValueError(
                f"a benchmark evaluates a scorer or a file of scores, and {given}; give --scorer SPEC (or "
                '"stored"), or --scores FILE'
            )
        if self.against and self.against_input:
            raise ValueError("against and against_input are both given; test against one of them at a time")
        if self.scores_of and not self.scores:
            raise ValueError(f"scores_of is {self.scores_of!r}, and there is no file of scores; give it with --scores")

    def _check_samples_alone(self) -> None:
        given = [name for name in ("scorer", "scores", "against", "against_input", "output") if getattr(self, name)]
        if given:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ValueError(
                f"--samples only writes the samples, and nothing is scored; drop {flags}, or drop --samples"
            )

"""Trying benches and designs, through the scorers `simulation` and `verilog`.

Not covered: the sandbox and the limits; the scorers say what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from adjudge import registry
from adjudge.data_pipelines.tasks.testbenches.design import Design
from adjudge.data_pipelines.tasks.testbenches.recorded import Bench
from adjudge.io.errors import JobError
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.contract import score_checked

SIMULATION = "adjudge.verifiers.verilog.simulation:SimulationVerifier"
_FENCE = "~" * 12  # no design has so many in a line


class NotTriedError(Exception):
    """A bench or design that a scorer could not try.

    Attributes:
        reason: what happened, in snake_case.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Trials:
    """The scorers that try things.

    Attributes:
        simulation: runs a bench and tells what came of it.
        in_bench: judges designs in a bench.
        beside: judges designs beside the reference, on other rows than any bench has.
    """

    simulation: Scorer
    in_bench: Scorer
    beside: Scorer

    @classmethod
    def of(cls, isolation: Literal["bubblewrap", "none"], seconds: float, seed: int) -> Trials:
        """Return the trials of a job.

        Args:
            isolation: how simulations are kept apart.
            seconds: wall-clock seconds of one simulation.
            seed: decides the rows of the comparison beside the reference.

        Raises:
            ValueError: a tool is not installed; the message says how to get it.
        """

        def verilog(**options: Any) -> Scorer:
            return registry.load(
                {"verilog": {"reasoning": "keep", "isolation": isolation, "seconds": seconds, **options}}
            )

        return cls(
            simulation=registry.load({SIMULATION: {"isolation": isolation, "seconds": seconds}}),
            in_bench=verilog(check="bench"),
            beside=verilog(check="differential", effort=4000, seed=seed),
        )

    @property
    def fingerprint(self) -> str:
        """Changes whenever a trial could come out otherwise."""
        return " ".join(scorer.fingerprint for scorer in (self.simulation, self.in_bench, self.beside))

    async def run(
        self, bench: Bench, design: Design, *, outputs: Sequence[str] = (), coverage: bool = False
    ) -> Mapping[str, Any]:
        """Return the evidence of a bench's run on the reference design; see the scorer `simulation`."""
        reference = {
            "top": bench.module,
            "design": design.under_top(),
            "files": {**design.files, **bench.files},
            "outputs": list(outputs),
            "coverage": coverage,
        }
        sample = Sample(prompt="", response=bench.source, reference=reference)
        (score,) = _tried(await score_checked(self.simulation, [sample]), "bad_files")
        return score.evidence

    async def measured(self, bench: Bench, design: Design) -> Bench:
        """Return a bench with its coverage."""
        done = await self.run(bench, design, coverage=True)
        found: Mapping[str, Any] = done.get("coverage") or {"error": "the bench does not run"}
        if "error" in found:
            return replace(bench, coverage=None, note=str(found["error"]))
        missed = tuple(found["missed"])
        total = found["reached"] + len(missed)
        if not total:
            return replace(bench, coverage=None, note="Verilator counts no line of the design")
        return replace(bench, coverage=found["reached"] / total, missed=missed)

    async def wrong(self, design: Design, others: Sequence[str]) -> list[str]:
        """Return those of some designs that behave differently from the reference."""
        samples = [Sample(prompt="", response=as_response(text), reference=design.reference()) for text in others]
        scores = _tried(await score_checked(self.beside, samples), "design_not_comparable")
        return [text for text, score in zip(others, scores, strict=True) if score.reason == "wrong"]

    async def passing(self, bench: Bench, design: Design, responses: Sequence[str]) -> list[bool]:
        """Return for each response whether its design passes the bench."""
        reference = design.reference(bench.source, bench.files)
        samples = [Sample(prompt="", response=text, reference=reference) for text in responses]
        scores = _tried(await score_checked(self.in_bench, samples), "bench_judges_nobody")
        return [score.value == 1.0 for score in scores]

    async def accepts_reference(self, bench: Bench, design: Design) -> bool:
        """Return whether the reference design, given as an answer, passes the bench."""
        return (await self.passing(bench, design, [as_response(design.under_top())]))[0]


def as_response(design: str) -> str:
    """Return a design as a response that holds nothing else."""
    return f"{_FENCE}verilog\n{design}\n{_FENCE}"


def _tried(scores: list[Score], refused: str) -> list[Score]:
    """Return scores that all have a number; `refused` is the reason where the reference is no good."""
    for score in scores:
        if score.value is None:
            said = str(score.evidence.get("error", ""))
            if score.reason == "engine_unavailable":
                raise JobError(f"the simulator cannot be used: {said}")
            raise NotTriedError("reference_too_slow" if score.reason == "gold_timeout" else refused, said)
    return scores

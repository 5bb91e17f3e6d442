"""How many Ray workers each scorer gets.

Not covered: room that a cluster may grow into; without a number of workers, it counts as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What the workers of one scorer take.

    Attributes:
        scorer: what errors call it.
        cpus: CPUs that each reserves.
        gpus: GPUs that each reserves.
        workers: how many were asked for; None takes what fits.
    """

    scorer: str
    cpus: float
    gpus: float = 0.0
    workers: int | None = None


def counts(demands: Sequence[Demand], there: Mapping[str, float], *, may_grow: bool) -> list[int]:
    """Return the number of workers of each scorer, at least one.

    GPUs are shared out evenly among the scorers that want some, then CPUs among all that have no number yet.

    Args:
        demands: one for each scorer.
        there: what the cluster has in all.
        may_grow: whether room that is not there may come; otherwise too much is an error.

    Raises:
        ValueError: the cluster is too small, or has no GPU.
    """
    gpus, cpus = there.get("GPU", 0.0), there.get("CPU", 0.0)
    found = [demand.workers or 0 for demand in demands]
    free_gpus = gpus - sum(number * demand.gpus for number, demand in zip(found, demands, strict=True))
    open_on_gpus = [index for index, demand in enumerate(demands) if demand.gpus and not found[index]]
    for index in open_on_gpus:
        found[index] = max(1, int(free_gpus / len(open_on_gpus) / demands[index].gpus))
    free_cpus = cpus - sum(number * demand.cpus for number, demand in zip(found, demands, strict=True))
    open_on_cpus = [index for index in range(len(demands)) if not found[index]]
    for index in open_on_cpus:
        found[index] = max(1, int(free_cpus / len(open_on_cpus) / demands[index].cpus))
    if not may_grow:
        _check(demands, found, gpus, cpus)
    return found


def _check(demands: Sequence[Demand], found: Sequence[int], gpus: float, cpus: float) -> None:
    for what, has, flag, taken in (
        ("GPU", gpus, "--ray-gpus", [demand.gpus for demand in demands]),
        ("CPU", cpus, "--workers", [demand.cpus for demand in demands]),
    ):
        needed = sum(number * each for number, each in zip(found, taken, strict=True))
        if needed > has + 1e-9:
            told = ", ".join(
                f"{number} for {demand.scorer!r} with {each:g} each"
                for number, demand, each in zip(found, demands, taken, strict=True)
                if each
            )
            raise ValueError(
                f"the Ray workers need {needed:g} {what}s ({told}), and this Ray has {has:g}; lower --ray-workers or "
                f"{flag}, or join a larger Ray with --ray-address"
            )

"""The scorers of a job on Ray: a cluster, and a crew of workers for each scorer.

Every scorer has workers of its own, so those that need GPUs and those that do not are apart.  A composite is one
scorer: its worker reserves the GPUs, and its verifiers run in worker processes on that worker's machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.data_pipelines.label.ray_engine.cluster import cluster
from adjudge.data_pipelines.label.ray_engine.crew import Crew
from adjudge.data_pipelines.label.ray_engine.order import order_for
from adjudge.data_pipelines.label.ray_engine.room import Demand, counts
from adjudge.data_pipelines.label.shares import Shares

_BATCH_BYTES = 16 << 20  # a batch closes at 4 MiB, but a long row may be larger; twice, for the way there and back


@contextmanager
def ray_benches(
    config: LabelConfig, names: Sequence[str], specs: Sequence[Any], note: Callable[[str], None]
) -> Iterator[list[Crew]]:
    """Start the workers of every scorer; end them, and a Ray that was started for them.

    Args:
        config: the options.
        names: of the scorers in the output; "" where the scorer's own will do.
        specs: what each loads: the text of a spec, or a scorer as an object.
        note: is told of lost workers and of waiting.

    Raises:
        ValueError: Ray cannot be joined, there is no room, or a scorer cannot be loaded in a worker.
    """
    processes = config.workers or 1
    orders = [order_for(spec, cache=config.cache, processes=processes, timings=config.timings) for spec in specs]
    called = [name or _short(spec) for name, spec in zip(names, specs, strict=True)]
    demands = [_demand(config, names, name, shown, processes) for name, shown in zip(names, called, strict=True)]
    least = sum((demand.workers or 1) * demand.cpus for demand in demands)
    at_once = config.in_flight * max(demand.workers or 8 for demand in demands)
    with cluster(config.ray_address, cpus=least, store_bytes=at_once * _BATCH_BYTES) as there, ExitStack() as opened:
        crews = []
        for demand, order, number in zip(
            demands, orders, counts(demands, there, may_grow=bool(config.ray_address)), strict=True
        ):
            crew = Crew(
                demand.scorer,
                order,
                workers=number,
                cpus=demand.cpus,
                gpus=demand.gpus,
                in_flight=config.in_flight,
                note=note,
            )
            opened.callback(crew.close)
            crews.append(crew)
        for crew in crews:  # all have been hired, so they load at the same time
            crew.open()
        yield crews


def _demand(config: LabelConfig, names: Sequence[str], name: str, called: str, processes: int) -> Demand:
    workers = Shares.read("--ray-workers", config.ray_workers, names, whole=True).of(name)
    gpus = Shares.read("--ray-gpus", config.ray_gpus, names, whole=False).of(name)
    return Demand(scorer=called, cpus=processes, gpus=gpus or 0.0, workers=None if workers is None else int(workers))


def _short(spec: Any) -> str:
    text = spec if isinstance(spec, str) else str(getattr(spec, "name", "the scorer"))
    return text if len(text) <= 60 else f"{text[:57]}..."

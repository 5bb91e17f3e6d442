"""How many replicas the server has on Ray, what each takes, and which of them a request goes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from adjudge.options import Count, Options, Range

_FROM_0: Final = Range(ge=0)


@dataclass(frozen=True, kw_only=True)
class RayConfig(Options, what="ray option"):
    """The server on Ray.

    Attributes:
        address: the Ray that is joined, "auto" or "HOST:PORT"; "" starts one on this machine, which ends with the
            server and which only this machine reaches.
        replicas: how many replicas there are, at least.
        max_replicas: how many there may be under load; None for `replicas`.
        ongoing: requests under way in each replica that the number of replicas is fitted to; with `max_replicas`.
        scale_up_seconds: how long there must be more than that before replicas are added.
        scale_down_seconds: how long there must be less before they are taken away.
        max_ongoing: requests that a replica takes at once; more wait in the proxy.
        max_queued: requests that a proxy keeps waiting; more get 503 with Retry-After.
        cpus: processors that a replica reserves.
        gpus: accelerators that a replica reserves; 0.5 puts two on one.
        route: "group": requests with samples of one group, or of one prompt where there is no group, go to the same
            replica; "load": to the least busy of two.
        proxies: where HTTP is listened for: "head", or "every" node that has a replica.
    """

    address: str = ""
    replicas: Count = 1
    max_replicas: Count | None = None
    ongoing: Annotated[float, Range(gt=0, unit="requests")] = 64.0
    scale_up_seconds: Annotated[float, _FROM_0] = 10.0
    scale_down_seconds: Annotated[float, _FROM_0] = 300.0
    max_ongoing: Count = 1000
    max_queued: Count = 10_000
    cpus: Annotated[float, _FROM_0] = 1.0
    gpus: Annotated[float, _FROM_0] = 0.0
    route: Literal["group", "load"] = "group"
    proxies: Literal["head", "every"] = "every"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_replicas is not None and self.max_replicas < self.replicas:
            raise ValueError(
                f"ray option max_replicas={self.max_replicas!r}; it must be at least replicas={self.replicas}"
            )
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise ValueError(f"ray option gpus={self.gpus!r}; above 1 it must be a whole number")

    @property
    def scales(self) -> bool:
        """Whether the number of replicas follows the load."""
        return self.max_replicas is not None and self.max_replicas > self.replicas

"""Ray is started again where the machine was too busy for it."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.runtime.ray_start import start_ray

SLOW = Exception("The current node timed out during startup. This could happen because ..")


class Slow:
    """Ray, which fails as often as it is told to."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls: list[Any] = []

    def init(self, address: str, **options: Any) -> None:
        self.calls.append((address, options))
        if self.failures:
            raise self.failures.pop(0)

    def shutdown(self) -> None:
        self.calls.append("shutdown")


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_it_is_tried_three_times(failures: int) -> None:
    ray = Slow(*[SLOW] * failures)
    start_ray(ray, num_cpus=2)
    started = ("local", {"include_dashboard": False, "num_cpus": 2})
    assert ray.calls == [started, "shutdown"] * failures + [started]


def test_what_does_not_come_up_and_what_is_another_fault_are_told() -> None:
    with pytest.raises(Exception, match="timed out during startup"):
        start_ray(Slow(*[SLOW] * 3))
    ray = Slow(ValueError("no such option"))
    with pytest.raises(ValueError, match="no such option"):
        start_ray(ray)
    assert len(ray.calls) == 2

"""How many workers each scorer gets."""

from __future__ import annotations

import pytest

from adjudge.data_pipelines.label.ray_workers import Demand, counts


def test_what_was_asked_for_is_given_where_it_fits() -> None:
    demands = [Demand(scorer="a", cpus=2, workers=3), Demand(scorer="b", cpus=1, gpus=0.5, workers=2)]
    assert counts(demands, {"CPU": 8.0, "GPU": 1.0}, may_grow=False) == [3, 2]


def test_without_a_number_gpus_are_shared_out_first_and_then_cpus() -> None:
    math, judge, model = (
        Demand(scorer="math", cpus=1),
        Demand(scorer="judge", cpus=1, gpus=1.0),
        Demand(scorer="model", cpus=1, gpus=0.5),
    )
    assert counts([math, judge, model], {"CPU": 16.0, "GPU": 4.0}, may_grow=False) == [10, 2, 4]
    assert counts([math], {"CPU": 16.0}, may_grow=False) == [16]
    assert counts([math, math], {"CPU": 5.0}, may_grow=False) == [2, 2]
    asked = Demand(scorer="x", cpus=3, workers=1)
    assert counts([asked, math], {"CPU": 5.0}, may_grow=False) == [1, 2]


def test_too_little_room_is_an_error_unless_it_may_grow() -> None:
    judge = Demand(scorer="judge", cpus=1, gpus=2.0)
    with pytest.raises(ValueError, match=r"need 2 GPUs \(1 for 'judge' with 2 each\), and this Ray has 0; lower"):
        counts([judge], {"CPU": 4.0}, may_grow=False)
    assert counts([judge], {"CPU": 4.0}, may_grow=True) == [1]
    with pytest.raises(ValueError, match=r"need 6 CPUs \(3 for 'math' with 2 each\)"):
        counts([Demand(scorer="math", cpus=2, workers=3)], {"CPU": 4.0}, may_grow=False)

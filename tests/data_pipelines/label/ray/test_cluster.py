"""What is said before a Ray is joined or started."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.data_pipelines.label import ray_worker as order
from adjudge.data_pipelines.label import ray_workers as cluster


def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


@pytest.mark.parametrize("address", ["ray://somewhere:10001", "somewhere", ":6379", "host:port"])
def test_an_address_that_is_none_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with (
        pytest.raises(ValueError, match=r"--ray-address is .* cannot be joined: it must be auto or HOST:PORT"),
        cluster.cluster(address, cpus=1, store_bytes=1),
    ):
        pass


def test_an_address_where_nobody_listens_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    address = f"127.0.0.1:{closed_port()}"
    with (
        pytest.raises(ValueError, match=r"cannot be joined: .*refused.*ray status"),
        cluster.cluster(address, cpus=1, store_bytes=1),
    ):
        pass


def test_without_the_package_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "in.jsonl").write_text(json.dumps({"response": "x", "answer": "x"}) + "\n")
    config = LabelConfig(
        input=str(tmp_path / "in.jsonl"), output=str(tmp_path / "o.jsonl"), engine="ray", scorer="exact"
    )
    with pytest.raises(ValueError, match=r"--engine ray needs the package 'ray'; install it with: pip install"):
        run_label(config)


@pytest.mark.parametrize(("option", "value"), [("ray_address", "auto"), ("ray_workers", 2), ("ray_gpus", "1")])
def test_options_of_ray_are_refused_without_it(option: str, value: object) -> None:
    given = {option: value}
    with pytest.raises(ValueError, match=f"--{option.replace('_', '-')} is for --engine ray, and the engine is local"):
        LabelConfig(input="a.jsonl", output="b.jsonl", **given)  # type: ignore[arg-type]
    LabelConfig(input="a.jsonl", output="b.jsonl", engine="ray", **given)  # type: ignore[arg-type]


def test_an_order_is_plain_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "mine.yaml").write_text("exact:\n")
    found = order.order_for("deep/mine.yaml", cache="c.db", processes=2, timings=False)
    assert json.loads(json.dumps(found)) == found
    assert (found["spec"], found["base"], found["folder"]) == ("exact:\n", str(tmp_path / "deep"), str(tmp_path))
    assert found["cache"] == str(tmp_path / "c.db")
    assert order.order_for("math", cache="", processes=1, timings=False)["spec"] == "math"


def test_an_object_that_cannot_travel_is_named() -> None:
    class Locked:
        def __init__(self) -> None:
            self.socket = socket.socket()

    locked = Locked()
    with locked.socket, pytest.raises(ValueError, match=r"cannot be sent to Ray workers .*; give it as a spec"):
        order.order_for(locked, cache="", processes=1, timings=False)

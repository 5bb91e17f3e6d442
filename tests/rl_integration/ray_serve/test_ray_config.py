"""What may be said of the server on Ray, and what is refused before anything is started."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.rl_integration.ray_serve.scorers import Pair

from adjudge.cli.serve import ServeCommand
from adjudge.rl_integration.ray_serve.config import RayConfig
from adjudge.rl_integration.ray_serve.running import _check_room, ray_application, ray_server
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.config import LaneConfig

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray Serve's own, of pydantic


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("replicas", 0),
        ("replicas", 1.5),
        ("replicas", True),
        ("max_replicas", 1),
        ("max_ongoing", 0),
        ("max_queued", -1),
        ("ongoing", 0),
        ("cpus", -0.5),
        ("gpus", 1.5),
        ("gpus", math.nan),
        ("scale_up_seconds", math.inf),
        ("route", "random"),
        ("proxies", "none"),
        ("address", 6379),
    ],
)
def test_what_cannot_be_meant_is_refused(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"ray option {option}="):
        RayConfig(**{"replicas": 2, option: value})


def deployed(config: RayConfig, **lanes: Any) -> Any:
    """The deployment's settings, as Serve would read them."""
    application: Any = ray_application(lanes or {"math": "math"}, ServerConfig(drain_seconds=7.0), config)
    return application._bound_deployment


def test_the_settings_reach_serve() -> None:
    made = deployed(RayConfig(replicas=2, max_replicas=5, ongoing=9.0, scale_down_seconds=60.0, gpus=0.5, cpus=2.0))
    assert made.ray_actor_options == {"num_cpus": 2.0, "num_gpus": 0.5}
    scaling = made._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas, scaling.target_ongoing_requests) == (2, 5, 9.0)
    assert scaling.downscale_delay_s == 60.0
    assert made._deployment_config.graceful_shutdown_timeout_s == 7.0
    assert made._deployment_config.max_ongoing_requests == 1000
    assert deployed(RayConfig(replicas=3)).num_replicas == 3


def test_groups_are_routed_by_their_name_and_strictly_where_they_are_collected() -> None:
    routers = [
        deployed(RayConfig(), math="math"),
        deployed(RayConfig(), pair=LaneConfig(scorer=Pair(), cohort=2)),
        deployed(RayConfig(route="load")),
    ]
    found = [made._deployment_config.request_router_config for made in routers]
    assert ["ConsistentHash" in str(one.request_router_class) for one in found] == [True, True, False]
    assert [one.request_router_kwargs for one in found] == [{}, {"num_fallback_replicas": 0}, {}]


@pytest.mark.parametrize("config", [RayConfig(replicas=1, max_replicas=2), RayConfig(replicas=2, route="load")])
def test_members_of_groups_must_be_able_to_meet(config: RayConfig) -> None:
    with pytest.raises(ValueError, match="'pair' collects the members of a group"):
        ray_application({"pair": LaneConfig(scorer=Pair(), cohort=2)}, ServerConfig(), config)


@pytest.mark.parametrize(
    ("scorers", "server", "message"),
    [
        ({"math": "math"}, ServerConfig(port=0), "port=0"),
        ({"math": "maths"}, ServerConfig(), "scorer 'math': .*maths"),
        ({"math": "math"}, ServerConfig(tokens="nowhere/tokens"), "nowhere/tokens"),
    ],
)
def test_mistakes_are_told_before_ray_is_started(scorers: Any, server: ServerConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message), ray_server(scorers, server, RayConfig()):
        pytest.fail("it started")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ray: 2", "ray is 2; it must be a mapping"),
        ("ray: {replica: 2}", r"unknown option 'ray.replica' .did you mean 'ray.replicas'.*; there are address"),
        ("ray: {replicas: 0}", "ray option replicas=0"),
    ],
)
def test_a_file_is_checked(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(f"scorers: {{math: math}}\n{text}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        ServeCommand(config=str(file)).run()


def test_an_empty_word_in_a_file_is_ray_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text("scorers: {math: math}\nray:\n", encoding="utf-8")
    assert ServeCommand(config=str(file))._settings()[2] == RayConfig()


def test_the_example_is_what_it_says() -> None:
    example = Path(__file__).parents[3] / "examples" / "frameworks" / "ray_serve.yaml"
    server, scorers, ray = ServeCommand(config=str(example))._settings()
    assert (server.port, scorers) == (8000, {"math": "math"})
    assert ray == RayConfig(replicas=2, max_replicas=8)
    assert ServeCommand(scorers=("math",))._settings()[2] is None
    assert ServeCommand(scorers=("math",), ray=True)._settings()[2] == RayConfig()


def test_replicas_find_the_tokens_wherever_they_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    application: Any = ray_application({"math": "math"}, ServerConfig(tokens="tokens"), RayConfig())
    assert application._bound_deployment.init_args[1].tokens == str(tmp_path / "tokens")


@pytest.mark.parametrize(
    ("config", "fits"),
    [
        (RayConfig(replicas=2), True),
        (RayConfig(replicas=3), False),
        (RayConfig(replicas=2, cpus=0.5, gpus=0.5), True),
        (RayConfig(replicas=3, cpus=0.5, gpus=0.5), False),
    ],
)
def test_replicas_that_the_machine_cannot_hold_are_refused(config: RayConfig, fits: bool) -> None:
    if fits:
        _check_room(config, {"CPU": 2.0, "GPU": 1.0})
    else:
        with pytest.raises(ValueError, match=r"3 replicas with .*and this machine has"):
            _check_room(config, {"CPU": 2.0, "GPU": 1.0})


@pytest.mark.parametrize("config", [ServerConfig(score_log="a.jsonl"), ServerConfig(history="a.json")])
def test_replicas_write_no_files(config: ServerConfig) -> None:
    with pytest.raises(ValueError, match=r"(score_log|history)='a.*serve without Ray"):
        ray_application({"math": "math"}, config, RayConfig())
    with pytest.raises(ValueError, match="serve without Ray"), ray_server({"math": "math"}, config, RayConfig()):
        pass

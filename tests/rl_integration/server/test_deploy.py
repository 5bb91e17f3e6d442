"""What `deploy/` names exists: metrics, labels, routes, ports, files, programs, and the version."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import adjudge
from adjudge.cli.serve import ServeCommand
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.middleware import Tokens

PORT = ServerConfig().port


@pytest.fixture(scope="module")
def deploy(root: Path) -> Path:
    return root / "deploy"


@pytest.fixture(scope="module")
def compose(deploy: Path) -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((deploy / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return services


@pytest.fixture(scope="module")
def kubernetes(deploy: Path) -> dict[str, Any]:
    """The manifest's objects by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all((deploy / "kubernetes.yaml").read_text(encoding="utf-8"))}


@pytest.fixture
def expressions(deploy: Path) -> list[str]:
    dashboard = json.loads((deploy / "grafana" / "adjudge.json").read_text(encoding="utf-8"))
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(found) >= 10
    return [*found, *(variable["query"] for variable in dashboard["templating"]["list"])]


def test_the_dashboard_asks_for_metrics_that_the_server_has(
    expressions: list[str], serve: Callable[..., httpx.Client]
) -> None:
    client = serve({"a": "exact"})
    assert (
        client.post("/v1/score", json={"sample": {"prompt": "", "response": "a", "reference": "a"}}).status_code == 200
    )
    families = text_string_to_metric_families(client.get("/metrics").text)
    labels = {sample.name: set(sample.labels) for family in families for sample in family.samples}
    for expression in expressions:
        metrics = set(re.findall(r"adjudge_\w+", expression))
        assert metrics, expression
        assert metrics <= set(labels), expression
        matched = set(re.findall(r"(\w+)(?:=~|!=|=)\"", expression))
        grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", expression))))
        assert matched | grouped <= set.union(*(labels[metric] for metric in metrics)), expression


def test_ports_and_routes_are_the_servers(
    deploy: Path, compose: dict[str, Any], kubernetes: dict[str, Any], serve: Callable[..., httpx.Client]
) -> None:
    file = (deploy / "Dockerfile").read_text(encoding="utf-8")
    asked = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", file)
    assert re.findall(r"^EXPOSE (\d+)$", file, re.MULTILINE) == [str(PORT)] == [port for port, _ in asked]
    assert compose["adjudge"]["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    scraped = yaml.safe_load((deploy / "prometheus.yaml").read_text(encoding="utf-8"))["scrape_configs"]
    assert scraped[0]["static_configs"] == [{"targets": [f"adjudge:{PORT}"]}]
    pod = kubernetes["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    notes = pod["metadata"]["annotations"]
    (served,) = kubernetes["Service"]["spec"]["ports"]
    assert container["ports"] == [{"name": "http", "containerPort": PORT}]
    assert (served["port"], served["targetPort"], notes["prometheus.io/port"]) == (PORT, "http", str(PORT))
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert {probe["port"] for probe in probes} == {"http"}
    client = serve({"a": "exact"})
    for path in {route for _, route in asked} | {probe["path"] for probe in probes} | {notes["prometheus.io/path"]}:
        assert client.get(path).status_code == 200, path


def test_the_servers_files_are_read(deploy: Path, kubernetes: dict[str, Any], tmp_path: Path) -> None:
    """Both listen for everybody, one to all who come, the other to those with a token."""
    inside = tmp_path / "serve.yaml"
    inside.write_text(kubernetes["ConfigMap"]["data"]["serve.yaml"], encoding="utf-8")
    for file, tokens in ((deploy / "serve.yaml", False), (inside, True)):
        config, scorers, _ = ServeCommand(config=str(file))._settings()
        assert (config.host, config.port, bool(config.tokens)) == ("0.0.0.0", PORT, tokens)
        for scorer in scorers.values():
            assert adjudge.load(scorer).fingerprint
    spec = kubernetes["Deployment"]["spec"]["template"]["spec"]
    places = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    assert places["tokens"] == str(Path(config.tokens).parent)
    (secret,) = kubernetes["Secret"]["stringData"].values()
    (tmp_path / "tokens").write_text(secret, encoding="utf-8")
    (tmp_path / "tokens").chmod(0o600)
    with pytest.raises(ValueError, match="there is no token"):  # nobody's server starts with a token of ours
        Tokens.read(str(tmp_path / "tokens"))


def test_what_compose_mounts_is_there(deploy: Path, compose: dict[str, Any]) -> None:
    mounts = [volume.split(":")[0] for service in compose.values() for volume in service["volumes"]]
    files = [mount for mount in mounts if mount.startswith("./")]
    assert len(files) >= 5
    for file in files:
        assert (deploy / file).is_file(), file


def test_one_version_everywhere(deploy: Path, compose: dict[str, Any], kubernetes: dict[str, Any]) -> None:
    (container,) = kubernetes["Deployment"]["spec"]["template"]["spec"]["containers"]
    page = (deploy.parent / "docs" / "deploy.md").read_text(encoding="utf-8")
    tagged = re.findall(r"docker build .* -t (\S+)", page)
    assert [compose["adjudge"]["image"], container["image"], *tagged] == [f"adjudge:{adjudge.__version__}"] * 3


def test_the_image_has_the_programs_of_the_verifiers(deploy: Path) -> None:
    makefile = (deploy.parent / "Makefile").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^TOOLS := ((?:.*\\\n)*.*)", makefile, re.MULTILINE)
    tools = re.findall(r"[\w+-]+:([\w+-]+)", listed)
    only_tested = {"postgresql", "chromium", "chromium-driver"}
    (packages,) = re.findall(r'^ARG TOOLS="(.*)"$', (deploy / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(packages.split()) == set(tools) - only_tested

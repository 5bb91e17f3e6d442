"""`adjudge serve --ray` as a program, from its start to SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
from tests.rl_integration.ray_serve.test_ray_serve import free_port

ROOT = Path(__file__).parents[3]
psutil: Any = import_module("psutil")

SAMPLE = {"prompt": "x", "response": "y"}
PLUGGED = """
from tests.rl_integration.ray_serve.scorers import Gated

gated = Gated(gate={gate!r})
"""


def started(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A server that listens, and its port; a free one may be taken, and Ray give up, before a busy machine is ready."""
    command = [sys.executable, "-m", "adjudge.cli.main", "serve", "--ray", "--config", "serve.yaml", "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT, folder)))}
    errors = []
    for _ in range(3):
        port = free_port()
        config = {"port": port, "scorers": {"gated": "plugged:gated"}, "ray": {"cpus": 0.1}, "drain_seconds": 60}
        (folder / "serve.yaml").write_text(json.dumps(config), encoding="utf-8")
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        assert server.stdout is not None
        told = next((line for line in server.stdout if line.startswith("{")), "")  # Ray may complain before
        if told:
            assert json.loads(told) == {"address": f"http://127.0.0.1:{port}", "scorers": ["gated"]}
            return server, port
        errors.append(server.communicate()[1])
    raise AssertionError("\n\n".join(errors))


def test_sigterm_to_the_group_answers_what_was_accepted_and_leaves_no_process(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    (tmp_path / "plugged.py").write_text(PLUGGED.format(gate=str(gate)), encoding="utf-8")
    server, port = started(tmp_path)
    with server:
        try:
            family = psutil.Process(server.pid).children(recursive=True)
            assert len(family) > 3, "Ray's processes are its children"
            address = f"http://127.0.0.1:{port}"
            with ThreadPoolExecutor(1) as thread, httpx.Client(base_url=address, timeout=1200) as http:
                accepted = thread.submit(httpx.post, f"{address}/v1/score", json={"sample": SAMPLE}, timeout=1200)
                while not Path(f"{gate}.asked").exists():
                    assert not wait([accepted], timeout=0.05).done
                os.killpg(server.pid, signal.SIGTERM)
                while http.get("/healthz").status_code == 200:
                    assert not wait([accepted], timeout=0.05).done
                refused = http.post("/v1/score", json={"sample": SAMPLE})
                gate.touch()
                scores = accepted.result().json()["scores"]
            _, errors = server.communicate(timeout=1200)
        finally:
            server.kill()
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_there")
    assert [score["value"] for score in scores] == [1.0]
    assert server.returncode == 0, errors
    _, alive = psutil.wait_procs(family, timeout=1200)
    assert alive == []

"""Real vLLM for the tests of this session, on tiny random models: servers, and engines in this process.

All start on first use, are shared by every module that imports the fixtures, and are gone when the tests are.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import gc
import importlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.engines.tiny_models import tiny_tokenizer, write_model, write_reward_model

from adjudge.engines.head_config import HeadConfig
from adjudge.engines.interface import Sampling
from adjudge.engines.vllm_config import VllmConfig
from adjudge.engines.vllm_engine import VllmEngine

Task = Literal["generate", "classify", "classify_tokens"]
TASKS: tuple[Task, ...] = ("generate", "classify", "classify_tokens")

WINDOW = 256
PLAIN = {"TORCHDYNAMO_DISABLE": "1"}
"""Without it each vLLM compiles three of its functions, for 20 s of a processor, to run them once or twice."""
_SECONDS = 900.0  # to start on a machine that is busy with something else


@dataclass(frozen=True, kw_only=True)
class Served:
    """A server that runs: where it is, and the folder of its model, which is the model's name as well."""

    url: str
    model: str


@functools.cache
def vllm_models() -> Mapping[Task, Path]:
    """Return the folders of a language model, a classifier with two outputs, and a token classifier with three.

    The classifiers are reward models as `RewardNetwork.save` writes them; the first puts a begin token before texts.
    """
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed")
    folder = Path(tempfile.mkdtemp(prefix="adjudge-vllm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {
        "generate": write_model(folder / "generate"),
        "classify": write_reward_model(
            folder / "classify", HeadConfig(outputs=2), tokenizer=tiny_tokenizer(pad="<|end|>", bos="<|start|>")
        ),
        "classify_tokens": write_reward_model(folder / "tokens", HeadConfig(outputs=3, pooling="tokens", bias=True)),
    }


@functools.cache
def _servers() -> Mapping[Task, Served]:
    ports = {task: _free_port() for task in TASKS}
    commands = []
    for task, model in vllm_models().items():
        command = ["--model", str(model), "--host", "127.0.0.1", "--port", str(ports[task]), "--dtype", "float32"]
        command += ["--enforce-eager", "--max-model-len", str(WINDOW)]
        if task != "generate":
            pooler = json.dumps({"task": "classify" if task == "classify" else "token_classify"})
            command += ["--runner", "pooling", "--pooler-config", pooler]
        commands.append(command)
    log = vllm_models()["generate"].with_suffix(".log")
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("vllm_preloaded.py")), json.dumps(commands)],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **PLAIN, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"},
        )
    _STARTED.append(process)
    end = time.monotonic() + _SECONDS
    pause = threading.Event()
    while not all(_healthy(port) for port in ports.values()):
        if process.poll() is not None or time.monotonic() > end:
            release()
            pytest.fail(f"vLLM's servers did not start:\n{log.read_text(errors='replace')[-3000:]}")
        pause.wait(0.2)
    return {
        task: Served(url=f"http://127.0.0.1:{ports[task]}/v1", model=str(model))
        for task, model in vllm_models().items()
    }


_STARTED: list[subprocess.Popen[bytes]] = []
_ENGINES: dict[Task, VllmEngine] = {}


@pytest.fixture(scope="session")
def vllm_servers() -> Mapping[Task, Served]:
    """Servers by what they are for."""
    return _servers()


@pytest.fixture(scope="session")
def vllm_engines() -> Callable[[Task], VllmEngine]:
    """A call that returns the engine in this process for a task, the same one each time."""
    return vllm_engine


@atexit.register
def release() -> None:
    """Stop the servers and close the engines: gigabytes that tests of other things should not have beside them."""
    _close_engines()
    while _STARTED:
        _stop(_STARTED.pop())
    _servers.cache_clear()


def vllm_engine(task: Task) -> VllmEngine:
    """Return the engine in this process for a task, the same one each time; that of `generate` runs in its own."""
    if task not in _ENGINES:
        config = VllmConfig(model=str(vllm_models()[task]), dtype="float32", enforce_eager=True, max_model_len=WINDOW)
        _ENGINES[task] = VllmEngine(config)
        more = [Sampling(max_tokens=1)] if task == "generate" else []
        with starting(processes=task == "generate"):  # one with processes is tested enough
            asyncio.run(getattr(_ENGINES[task], task)(["start"], *more))
    return _ENGINES[task]


@contextlib.contextmanager
def starting(*, processes: bool) -> Iterator[None]:
    """Start vLLM within this: with processes of its own or, in a third of the time, in this one.

    It reads its variables anew: it keeps what they were when its first engine had started.
    """
    forget = importlib.import_module("vllm.envs").disable_envs_cache
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**PLAIN, "VLLM_ENABLE_V1_MULTIPROCESSING": str(int(processes))}.items():
            patch.setenv(name, value)
        forget()
        yield
    forget()


def _close_engines() -> None:
    with unheard():
        while _ENGINES:
            asyncio.run(_ENGINES.popitem()[1].close())


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """Free what vLLM leaves open when it ends, here, where nobody takes its warnings for a failure of another test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        gc.collect()


def engine_processes() -> list[int]:
    """Return the ids of the processes in which vLLM runs models for this one."""
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    rows = [line.split(maxsplit=1) for line in listed.stdout.splitlines()]
    return [int(pid) for pid, command in rows if "EngineCore" in command]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _stop(process: subprocess.Popen[Any]) -> None:
    held = _shared_memory(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
    for path in held:  # killed processes leave it behind, and vLLM's servers do so in any case
        path.unlink(missing_ok=True)


def _shared_memory(group: int) -> set[Path]:
    """Return the files of the shared memory that processes of a group have."""
    found: set[Path] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(folder.name)) == group:
                maps = (folder / "maps").read_text(encoding="utf-8", errors="replace")
                found.update(Path(line.split(maxsplit=5)[5]) for line in maps.splitlines() if " /dev/shm/psm_" in line)
    return found

"""The pages that users start with, each run from an empty folder as it is written, with the real trainers and servers.

On two cores with other work: RL 60 to 95 s with the tiny model of this test, and 490 s with a model of the size of
Qwen2.5-0.5B; labelling 35 s; reward models 60 to 100 s.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engines.stub_server import Asked, Reply, StubServer
from tests.engines.tiny_models import write_model
from tests.shown_pages import Command, Shell, commands, files, missing

from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.training.config_file import load_config

DOCS = Path(__file__).parents[1] / "docs"
LINES = 120
"""The longest page that is still a start."""


def walked(
    page: str, folder: Path, before: Callable[[Command], None] = lambda command: None, **variables: str
) -> list[tuple[str, int, str]]:
    """Write the files of a page and type its commands; return each with its exit code and what it printed."""
    place = DOCS / f"{page}.md"
    # What the pages install has neither vLLM nor trio, which TRL and httpx would import for nothing.
    found = [str(DOCS.parent / "tests" / "without"), os.environ.get("PYTHONPATH", "")]
    hidden = {"PYTHONPATH": os.pathsep.join(filter(None, found)), "ADJUDGE_TEST_WITHOUT": "vllm,trio"}
    for name, text in files(place).items():
        (folder / name).write_text(text, encoding="utf-8")
    typed = []
    with Shell(folder, {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **hidden, **variables}) as shell:
        for command in commands(place):
            before(command)
            code, printed = shell.run(command)
            absent = missing(command.shown, printed)
            assert absent is None, f"{command.line} does not print {absent!r}:\n{printed}"
            assert code == 0 or _says_so(command, code), f"{command.line} ends with {code}:\n{printed}"
            typed.append((command.line, code, printed))
    return typed


def _says_so(command: Command, code: int) -> bool:
    """Whether a page shows that a command finds something, or cannot go on."""
    return code == 1 or (code == 2 and any(line.startswith("adjudge: ") for line in command.shown))


@pytest.mark.parametrize("page", sorted(DOCS.glob("start_*.md")), ids=lambda page: page.stem)
def test_a_start_is_short_and_linked_from_the_first_screen(page: Path, root: Path) -> None:
    assert page.read_text(encoding="utf-8").count("\n") <= LINES
    first = (root / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    assert f"(docs/{page.name})" in "\n".join(first)


def test_rl(tmp_path: Path) -> None:
    """All of it but verl's trainer, which tests/frameworks/verl runs in an environment of its own."""
    model = write_model(tmp_path / "model")
    found = walked("start_rl", tmp_path, MODEL=str(model))
    (logged,) = [printed for line, _, printed in found if line == "python train_trl.py"]
    assert logged.count("'reward/failed': '0'") == logged.count("'reward/part_auto': '0'") == 2, "two steps"
    assert logged.count("'reward/out_of_scope': '0'") == 2
    assert (tmp_path / "my_policy" / "report.html").is_file()


class Judge:
    """An OpenAI-compatible server with a judge that finds equal sums equal."""

    def __init__(self) -> None:
        self.broken = re.compile("$.")  # prompts at which the connection breaks off

    def __call__(self, asked: Asked) -> Reply:
        if asked.path.endswith("/models"):
            return Reply(body={"object": "list", "data": [{"id": "Qwen/Qwen3-8B", "object": "model"}]})
        prompt = asked.body["messages"][-1]["content"]
        if self.broken.search(prompt):
            return Reply(reset=True)
        key = re.findall(r"^Verdict (\w+): ANSWER", prompt, re.MULTILINE)[-1]
        text = f"Both are the same sum.\nVerdict {key}: {'same' if 'sum_' in prompt else 'different'}"
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 350, "completion_tokens": 20, "total_tokens": 370}
        return Reply(body={"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})


def test_labeling(tmp_path: Path) -> None:
    judge = Judge()
    server = StubServer(judge)
    server.port = 8100
    asked = []

    def before(command: Command) -> None:
        """The judge goes away before the job, comes back with three broken connections, and is well at last."""
        if "judged.jsonl --scorer" in command.line:
            asked.append(command)
            judge.broken = re.compile(r"multiples of (?:50|51|52)\?" if len(asked) == 2 else "$.")
            if len(asked) < 3:
                (server.down, server.up)[len(asked) - 1]()

    with server:
        found = walked("start_labeling", tmp_path, before)
    assert len(asked) == 3
    assert [code for line, code, _ in found if "judged.jsonl --scorer" in line] == [2, 1, 0]


def test_reward_model(tmp_path: Path) -> None:
    found = walked("start_reward_model", tmp_path)
    (trained,) = [printed for line, _, printed in found if line == "adjudge train policy policy.yaml"]
    assert "30 steps on 270 prompts" in trained
    before, after = map(float, re.findall(r"held-out, \w+ training +(\S+)", trained))
    assert after > before + 2, "what the page says of the reward"
    assert (tmp_path / "report" / "report.html").is_file()
    guarded = (tmp_path / "policy.yaml").read_text().replace("# guard:", "guard:")
    (tmp_path / "guarded.yaml").write_text(guarded)
    config = load_config(RunFile, str(tmp_path / "guarded.yaml"))
    assert config.guard is not None
    assert config.guard.gold.scorer == "./my_transformer"

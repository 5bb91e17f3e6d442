"""Calls made while a module is imported: nothing may wait for that import, which waits for the call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import asyncio, os, sys, threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
import adjudge
from adjudge import Sample, Score, Verifier, response_text, score, score_batch

@dataclass(frozen=True, kw_only=True)
class Shouting(Verifier):
    '''Is the response all upper case?'''

    name: ClassVar[str] = "shouting"
    needs_reference: ClassVar[bool] = False
    factor: float = 1.0

    def verify(self, sample: Sample) -> Score:
        return Score.scored(FACTOR * self.factor * float(response_text(sample).isupper()))

class Gold:
    def __init__(self, text):
        self.text = text

def by_gold(prompt, response, reference):
    return response == reference.text

def loud(prompt, response):
    return response.isupper()

FACTOR = 2.0
LOUD = [Sample(prompt="p", response="LOUD")]
"""


def run(folder: Path, *words: str, stdin: str = "") -> str:
    """The output of a program; one that hangs is killed and fails the test."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, input=stdin, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


IMPORTING = {
    "an object": "print(score('p', 'LOUD', scorer=Shouting()).value)",
    "a class": "print(score('p', 'LOUD', scorer=Shouting).value)",
    "a function": "print(score('p', 'LOUD', scorer=loud).value * 2)",
    "its own name": "print(score('p', 'LOUD', scorer='own:Shouting').value)",
    "its own file": "print(score('p', 'LOUD', scorer='./own.py:Shouting').value)",
    "a composite": "print(score('p', 'LOUD', scorer={'weighted': {'own:Shouting': 1.0}}).value)",
    "a batch": "print(score_batch(LOUD, Shouting())[0].value)",
    "a reference of its own class": "print(2 * score('p', 'x', Gold('x'), scorer=by_gold).value)",
    "an event loop": "print(asyncio.run(adjudge.ascore('p', 'LOUD', scorer=Shouting())).value)",
    "an event loop that runs already": """
async def cell():
    return score('p', 'LOUD', scorer='own:Shouting').value
print(asyncio.run(cell()))
""",
    "a thread": """
found = []
thread = threading.Thread(target=lambda: found.append(score('p', 'LOUD', scorer=Shouting()).value))
thread.start()
thread.join()
print(found[0])
""",
    "a thread that loads": """
found = []
thread = threading.Thread(target=lambda: found.append(score('p', 'LOUD', scorer='own:Shouting').value))
thread.start()
thread.join()
print(found[0])
""",
    "a service": """
from adjudge.rl_integration.service.service import RewardService
with RewardService({"loud": "own:Shouting"}) as service:
    print(service.score_blocking("loud", LOUD)[0].value)
""",
    "an adapter": """
from adjudge.trl import TrlReward
reward = TrlReward("own:Shouting")
found = reward(prompts=["p"], completions=["LOUD"])
print((asyncio.run(found) if asyncio.iscoroutine(found) else found)[0])
""",
    "the conformance kit": """
samples = [*LOUD, Sample(prompt="p", response="quiet")]
adjudge.check_scorer(Shouting(), samples).raise_for_failures()
print(2.0)
""",
}


@pytest.mark.parametrize("how", IMPORTING)
def test_a_module_scores_while_it_is_imported(tmp_path: Path, how: str) -> None:
    (tmp_path / "own.py").write_text(HEAD + IMPORTING[how])
    out = run(tmp_path, "-c", "import own").splitlines()
    assert set(out) == {"2.0"}
    assert len(out) == (2 if how == "its own file" else 1), "the file is a module of its own beside the one by name"


def test_a_module_that_scores_when_imported_is_a_scorer_afterwards(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(HEAD + "print('imported', score('p', 'LOUD', scorer=Shouting()).value)")
    program = "from own import *; print(score('p', 'LOUD', scorer=Shouting(factor=3.0)).value)"
    assert run(tmp_path, "-c", program) == "imported 2.0\n6.0\n"
    by_name = "from adjudge import score; print(score('p', 'LOUD', scorer='{}').value)"
    assert run(tmp_path, "-c", by_name.format("own:Shouting")) == "imported 2.0\n2.0\n"
    assert run(tmp_path, "-c", by_name.format("./own.py:Shouting")) == "imported 2.0\n2.0\n"
    program = "from own import *; print(score('p', 'x', Gold('x'), scorer=by_gold).value)"
    assert run(tmp_path, "-c", program) == "imported 2.0\n1.0\n"


def test_a_package_that_scores_when_imported(tmp_path: Path) -> None:
    package = tmp_path / "rewards"
    package.mkdir()
    (package / "own.py").write_text(HEAD)
    (package / "__init__.py").write_text(
        "from adjudge import score\nfrom rewards.own import Shouting\n"
        "print('imported', score('p', 'LOUD', scorer=Shouting()).value)\n"
    )
    program = "from adjudge import score; print(score('p', 'LOUD', scorer='rewards.own:Shouting').value)"
    assert run(tmp_path, "-c", program) == "imported 2.0\n2.0\n"


@pytest.mark.parametrize("words", [("-c", "{}"), ("-",), ("own.py",), ("-m", "own")])
def test_what_is_no_module_scores_as_it_runs(tmp_path: Path, words: tuple[str, ...]) -> None:
    body = f"{HEAD}\nprint(score('p', 'LOUD', scorer=Shouting()).value, score('p', 'LOUD', scorer=loud).value)"
    (tmp_path / "own.py").write_text(body)
    assert run(tmp_path, *(word.replace("{}", body) for word in words), stdin=body) == "2.0 1.0\n"


def test_a_script_names_its_own_file_and_runs_once(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(HEAD + "print(score('p', 'LOUD', scorer='./own.py:Shouting').value)")
    assert run(tmp_path, "own.py") == "2.0\n"


@pytest.mark.parametrize("scorer", ["Shouting()", "loud", "'./own.py:Shouting'", "'own:Shouting'"])
def test_a_spawned_child_of_a_script_that_scores_unguarded(tmp_path: Path, scorer: str) -> None:
    """The child runs the script's top level again, as `__mp_main__`."""
    body = f"""
import multiprocessing

def child(queue):
    queue.put(score('p', 'LOUD', scorer={scorer}).value > 0)

print(score('p', 'LOUD', scorer={scorer}).value > 0, flush=True)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print("child", queue.get(timeout=50))
    process.join(30)
"""
    (tmp_path / "own.py").write_text(HEAD + body)
    out = run(tmp_path, "own.py").splitlines()
    assert out[-1] == "child True"
    assert set(out[:-1]) == {"True"}

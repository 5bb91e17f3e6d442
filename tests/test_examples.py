"""Every example runs, and prints what it is meant to print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

PRINTED = {
    "score_answers.py": "1.0  equal\n1.0  equal\n0.0  wrong\n0.0  unfinished_reasoning\n",
    "own_verifier.py": "1.0  A man, a plan, a canal: Panama!\n0.0  A man, a plan, a ditch.\nconforms\n",
    "mixed_reward.py": "1.0\n0.0\n-1.0\n0.91\n",
    "answers_to_reward_model.py": (
        "1200 of 1200 answers scored, 61% right\n"
        "train: 437 pairs\n"
        "test: 36 pairs\n"
        "FOUND train: the longer response is the better one in 0.725 [0.682, 0.765] (AUC)\n"
        "on new problems it is surely better than taking the longer one: True\n"
    ),
    "frameworks/open_rlhf_reward.py": (
        "'\\\\boxed{2}<|im_end|>' rewards [1.0] valid [1.0]\n"
        "'\\\\boxed{3}<|im_end|>' rewards [0.0] valid [1.0]\n"
        "'It is \\\\boxed{2' rewards [0.0] valid [1.0]\n"
    ),
    "frameworks/verl_reward.py": "".join(
        f"{row} {{'score': {score}, 'acc': {score}, 'reward_valid': {1 - failed}, 'reward_failed': {failed}, "
        "'reward_abstained': 0.0}\n"
        for row, score, failed in (
            ("gsm8k '\\\\boxed{2}'", 1.0, 0.0),
            ("gsm8k '\\\\boxed{3}'", 0.0, 0.0),
            ("arc 'The answer is B.'", 1.0, 0.0),
            ("gsm8k '\\\\boxed{2}'", 0.0, 1.0),
        )
    ),
}

WARNED = {"frameworks/verl_reward.py": "a sample could not be judged (gold_unparsable)"}
"""How the only line on the standard error begins; the other examples write nothing there."""


def test_every_example_is_tried() -> None:
    """Here, or by another test that names it."""
    tests = "\n".join(path.read_text(encoding="utf-8") for path in EXAMPLES.parent.glob("tests/**/*.py"))
    for path in EXAMPLES.rglob("*.py"):
        name = str(path.relative_to(EXAMPLES))
        module = "examples." + name.removesuffix(".py").replace("/", ".")
        assert name in PRINTED or path.stem in tests or module in tests, name


@pytest.mark.parametrize("name", PRINTED)
def test_example(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    warned = WARNED.get(name, "")
    assert (done.returncode, done.stderr[: len(warned)], done.stderr.count("\n")) == (0, warned, int(bool(warned)))
    assert done.stdout == PRINTED[name]

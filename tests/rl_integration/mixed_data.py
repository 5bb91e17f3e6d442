"""One data set of sums and programs, in the five forms in which people have it, with rewards, and TRL to train on it.

Every form holds the same tasks, and half a point is for the form of the answer.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

from datasets import Dataset

from adjudge.trl import Reward

_TESTS = [{"args": [2], "expected": 4}, {"args": [None], "expected": None}]
_STDIN = {"inputs": ["2\n", "3\n"], "outputs": ["4\n", "6\n"]}

_FUNCTION = "```python\ndef twice(n):\n    return n and 2 * n\n```"
_PROGRAM = "```python\nprint(2 * int(input()))\n```"

FORMS = ("json_text", "struct", "two_columns", "verl", "kind")


def tasks() -> list[tuple[str, str]]:
    """The kind and the prompt of each row; kinds take turns, so that each batch has both."""
    return [(kind, f"Task {place}: {kind}") for place, kind in enumerate(["math", "code"] * 2)]


def cells(form: str, kind: str) -> dict[str, Any]:
    """The columns beside the prompt, as a row of that form has them before Arrow fills in what is absent."""
    code = {"tests": _TESTS, "entry_point": "twice"}
    if form == "json_text":
        return {"ref": "4" if kind == "math" else json.dumps(code)}
    if form == "struct":
        return {"ref": {"answer": "4"} if kind == "math" else code}
    if form == "two_columns":
        return {"answer": "4" if kind == "math" else None, "tests": json.dumps(code) if kind == "code" else None}
    if form == "verl":
        truth = "4" if kind == "math" else json.dumps(_STDIN)
        return {
            "data_source": {"math": "gsm8k", "code": "taco"}[kind],
            "reward_model": {"style": "rule", "ground_truth": truth},
            "extra_info": {"split": "train", "index": 0},
        }
    return {"kind": kind, "ref": "4" if kind == "math" else json.dumps(code)}


def dataset(form: str) -> Any:
    """The data set in a form, out of Arrow."""
    return Dataset.from_list(
        [{"prompt": [{"role": "user", "content": text}], **cells(form, kind)} for kind, text in tasks()]
    )


def rewards(form: str) -> list[Reward]:
    """The rewards that go with a form, as a user would write them."""
    if form == "two_columns":
        return [Reward("math", reference="answer"), Reward("code", reference="tests"), Reward("format")]
    if form == "verl":
        scorers = {"gsm8k": _with_format("math"), "taco": _with_format("code")}
        return [Reward(scorers=scorers, reference="reward_model.ground_truth", name="both")]
    chosen = {"by_kind": {"math": "math", "code": "code"}} if form == "kind" else "auto"
    return [Reward(_with_format(chosen), reference="ref", name="both")]


def _with_format(scorer: Any) -> Any:
    return {"weighted": [{"scorer": scorer, "name": "right"}, {"scorer": "format", "weight": 0.5}]}


def completions(form: str) -> list[str]:
    """A right answer in the required form for each row."""
    right = {"math": "\\boxed{4}", "code": _PROGRAM if form == "verl" else _FUNCTION}
    return [f"<think>So be it.</think>\n<answer>\n{right[kind]}\n</answer>" for kind, _ in tasks()]


def expected(form: str) -> list[list[float | None]]:
    """What each of the rewards gives for each of these answers."""
    return [[1.0, None] * 2, [None, 1.0] * 2, [1.0] * 4] if form == "two_columns" else [[1.5] * 4]


def called(reward: Reward, form: str, texts: list[str]) -> list[float | None]:
    """What a reward gives when it is called with the rows of a form, as TRL before 1.14 calls it."""
    columns = dataset(form).to_dict()
    chats = [[{"role": "assistant", "content": text}] for text in texts]
    return [*reward(prompts=columns.pop("prompt"), completions=chats, **columns)]


def trained(model: str, folder: str, rows: Any, rewards: list[Any], prompts: int = 2, **settings: Any) -> Any:
    """Train for two steps of so many prompts with TRL, whichever is installed, and return the trainer."""
    trl: Any = importlib.import_module("trl")  # its names are lazy, which type checkers do not see
    config = trl.GRPOConfig(
        output_dir=folder,
        per_device_train_batch_size=4 * prompts,
        num_generations=4,
        max_completion_length=6,
        max_steps=2,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        disable_tqdm=True,
        seed=1,
        **settings,
    )
    trainer = trl.GRPOTrainer(model=model, reward_funcs=rewards, args=config, train_dataset=rows)
    trainer.train()
    return trainer


def steps(trainer: Any) -> list[dict[str, float]]:
    """Return what a trainer logged at each step."""
    return [line for line in trainer.state.log_history if "loss" in line]

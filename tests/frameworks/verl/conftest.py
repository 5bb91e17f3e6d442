"""One run of verl for several files of tests, with a tiny model that was taught the answers of a page a little."""

from __future__ import annotations

import contextlib
import json
import runpy
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import torch
from tests import shown_pages
from tests.engines.tiny_models import write_model
from tests.frameworks import pages
from tests.frameworks.environment import run_in
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "start_rl.md"
BATCHES = 300


def settings(beginning: str) -> list[str]:
    """The settings of verl's that the page on verl shows in a block."""
    (block,) = pages.blocks("verl", beginning)
    return [word for word in block.split() if word.startswith(("reward.", "+reward."))]


def settings_to_start() -> list[str]:
    """The settings of verl's that the page for users who start with RL shows."""
    (block,) = [block for block in shown_pages.blocks(PAGE) if block.text.startswith("python -m verl")]
    found = [word for word in block.text.split() if word.startswith(("data.", "reward.", "+reward."))]
    assert len(found) == 4
    return found


def right(row: dict[str, Any]) -> str:
    """A right answer to a row of the page, in the form that the page asks for."""
    truth = row["reward_model"]["ground_truth"]
    if row["data_source"] == "gsm8k":
        said = truth.split("#### ")[1]
    else:
        said = f"```python\nprint(int(input()) * {int(json.loads(truth)['outputs'][1]) // 10})\n```"
    return f"<think>\nEasily.\n</think>\n<answer>\n{said}\n</answer>"


def taught(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A tiny model that has seen right answers, some dozens of times each: it is right at times, and wrong often."""
    write_model(folder, initializer_range=0.02)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    seen = []
    for row in rows:
        prompt = tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, return_dict=False)
        answer = [*tokenizer.encode(right(row), add_special_tokens=False), tokenizer.eos_token_id]
        seen.append((torch.tensor(prompt + answer), torch.tensor([-100] * len(prompt) + answer)))
    pad = torch.nn.utils.rnn.pad_sequence
    ids = pad([ids for ids, _ in seen], batch_first=True, padding_value=tokenizer.pad_token_id)
    labels = pad([labels for _, labels in seen], batch_first=True, padding_value=-100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    order = torch.Generator().manual_seed(0)
    for _ in range(BATCHES):
        some = torch.randperm(len(seen), generator=order)[:2]
        model(input_ids=ids[some], labels=labels[some]).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the page's files."""
    made = tmp_path_factory.mktemp("verl")
    for name, text in shown_pages.files(PAGE).items():
        (made / name).write_text(text, encoding="utf-8")
    with contextlib.chdir(made):
        runpy.run_path("rows.py")
    return made


@pytest.fixture(scope="session")
def under_ray(page: Path) -> Any:
    """What `under_ray.py` found."""
    model = taught(page / "model", pyarrow.parquet.read_table(page / "rows.parquet").to_pylist())
    shown = {
        "trainer": settings_to_start(),
        "function": settings("python -m verl"),
        "manager": settings("reward.reward_manager"),
    }
    return run_in(
        "verl", HERE / "under_ray.py", str(model), json.dumps(shown), str(page), without="sklearn,scipy,trio,vllm"
    )

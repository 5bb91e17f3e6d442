"""verl's own trainer, as it runs by default, with what the page for users who start with RL shows.

It samples from a tiny model that was taught the page's answers a little: enough to be right at times, and wrong often.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import torch
from tests.engines.tiny_models import write_model
from tests.frameworks.environment import run_in
from tests.shown_pages import blocks, files
from transformers import AutoModelForCausalLM, AutoTokenizer

import adjudge

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "start_rl.md"
BATCHES = 150


def settings() -> list[str]:
    """The settings of verl's that the page shows."""
    (block,) = [block for block in blocks(PAGE) if block.text.startswith("python -m verl")]
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
    """A tiny model that has seen right answers, some dozens of times each."""
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
        some = torch.randperm(len(seen), generator=order)[: len(seen) // 2]
        model(input_ids=ids[some], labels=labels[some]).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the page's files."""
    made = tmp_path_factory.mktemp("verl_trainer")
    for name, text in files(PAGE).items():
        (made / name).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "rows.py"], cwd=made, check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def ran(folder: Path) -> Any:
    model = taught(folder / "model", pyarrow.parquet.read_table(folder / "rows.parquet").to_pylist())
    arguments = str(model), json.dumps(settings()), str(folder)
    return run_in("verl", HERE / "real_trainer.py", *arguments, without="sklearn,vllm")


def test_each_answer_has_the_score_that_our_scorer_gives_it(ran: Any, folder: Path) -> None:
    answers = [*ran["validation"], *(answer for step in ran["rollouts"] for answer in step)]
    assert len(answers) == 16 + 2 * 16
    for answer in answers:
        gold = answer["gts"]
        reference = json.loads(gold) if gold.startswith("{") else gold
        score = adjudge.score("", answer["output"], reference, scorer=str(folder / "reward.yaml"))
        assert answer["score"] == pytest.approx(score.value), answer
    assert {0.1, 1.1} <= {round(answer["score"], 3) for answer in answers}, "not always the same"


def test_every_row_of_the_page_is_validated_with_the_extra_columns(ran: Any) -> None:
    (logged, *_), answers = ran["metrics"], ran["validation"]
    assert len({answer["gts"] for answer in answers}) == 16
    assert {answer["reward_valid"] for answer in answers} == {1.0}
    for source in ("gsm8k", "taco"):
        values = {name: logged[f"val-aux/{source}/{name}/mean@1"] for name in ("reward_valid", "reward_failed")}
        assert values == {"reward_valid": 1.0, "reward_failed": 0.0}
    means = [logged[f"val-core/{source}/acc/mean@1"] for source in ("gsm8k", "taco")]
    assert sum(means) / 2 == pytest.approx(sum(answer["score"] for answer in answers) / 16)


def test_the_trainer_logs_and_learns_from_these_rewards(ran: Any) -> None:
    _, *steps = ran["metrics"]
    assert [step["training/global_step"] for step in steps] == [1, 2]
    for step, answers in zip(steps, ran["rollouts"], strict=True):
        scores = [answer["score"] for answer in answers]
        for name in ("critic/score", "critic/rewards"):
            assert step[f"{name}/mean"] == pytest.approx(sum(scores) / len(scores))
            assert [step[f"{name}/min"], step[f"{name}/max"]] == pytest.approx([min(scores), max(scores)])
        assert step["training/off_policy/trajectory_staleness/max"] == 0, "sampled from the newest weights"
        assert step["training/rollout_probs_diff_mean"] < 0.03, "by the same policy, which the trainer has in bfloat16"
    assert any(step["actor/grad_norm"] > 0 for step in steps)
    assert ran["changed"] > 1e-4

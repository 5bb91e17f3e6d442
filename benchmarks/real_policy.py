"""The lesson of SmolLM2 three ways: our trainer, ours with vLLM writing the answers, and TRL's `GRPOTrainer`.

Same model, tasks, low-rank factors, learning rate, group size, answer length and verifiers (TRL gets them as
`adjudge.trl.Reward`); the orders of tasks and the draws differ.  Held-out tasks are judged by the same code for all.
Each way runs in a process of its own and appends its curve to a file of JSON lines, from which the picture is drawn.

Not covered: GPUs.

    python -m benchmarks.real_policy --ways adjudge vllm trl --seeds 0 1 2 --output curves.jsonl --picture curves.svg
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from adjudge.engines import smollm2
from adjudge.rl_integration.trainer.demo import subjects
from adjudge.rl_integration.trainer.demo.lesson import Lesson, teach
from adjudge.rl_integration.trainer.loop.run_logger import STEPS, read_journal
from adjudge.rl_integration.trainer.rewards.rewards import Rewards

WAYS = {"adjudge": "adjudge", "vllm": "adjudge, answers by vLLM", "trl": "TRL"}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is run.

    Attributes:
        ways: of "adjudge", "vllm" and "trl"; none draws what the file holds.
        seeds: of each way.
        steps: of each run; 0 for the lesson's own.
        output: where curves are appended.
        picture: an .svg file for all curves in it.
        job: set for the process of one run, by the program itself.
    """

    ways: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    steps: int = 0
    output: Path = Path("real_policy.jsonl")
    picture: Path | None = None
    job: str = ""


@dataclass(kw_only=True)
class Curve:
    """One run.

    Attributes:
        held_out: share of held-out tasks that are right, by step.
        reward: mean reward of each step's answers.
        seconds: of all of it, evaluations included.
    """

    way: str
    seed: int
    held_out: list[tuple[int, float]]
    reward: list[tuple[int, float]]
    seconds: float


def ours(lesson: Lesson, way: str, seed: int, folder: Path) -> Curve:
    """Train with adjudge."""
    if way == "vllm":
        lesson = replace(lesson, rollouts=replace(lesson.rollouts, engine="vllm"))
    learnt = teach(lesson, folder / "run", seed=seed)
    lines = read_journal(folder / "run", STEPS)
    held_out = [(line["step"], line["held_out"]) for line in lines if "held_out" in line]
    return Curve(
        way=way,
        seed=seed,
        held_out=[(0, learnt.before), *held_out],
        reward=[(line["step"], line["reward"]) for line in lines if "reward" in line],
        seconds=learnt.seconds,
    )


def _config(trl: Any, lesson: Lesson, seed: int, folder: Path) -> Any:
    group = lesson.rollouts.num_generations
    return trl.GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=group,  # all answers at once take 13 GB, and twice as long
        gradient_accumulation_steps=lesson.rollouts.tasks,
        num_generations=group,
        max_completion_length=lesson.rollouts.sampling.max_new_tokens,
        learning_rate=lesson.learning.learning_rate,
        lr_scheduler_type="constant",
        beta=0.0,
        loss_type="grpo",
        max_steps=lesson.steps,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        save_strategy="no",
        disable_tqdm=True,
        seed=seed,
    )


def theirs(lesson: Lesson, seed: int, folder: Path) -> Curve:
    """Train with TRL."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback

    from adjudge.rl_integration.trainer.loop.config import RunConfig
    from adjudge.rl_integration.trainer.loop.run import Run
    from adjudge.rl_integration.trainer.rollouts.policy import Policy
    from adjudge.trl import Reward

    trl: Any = importlib.import_module("trl")
    began, model = time.perf_counter(), str(smollm2.smollm2_folder())
    lora = lesson.learning.lora
    assert lora is not None
    rows = [
        {
            "prompt": task.prompt,
            "reference": task.reference if isinstance(task.reference, str) else json.dumps(task.reference),
            **task.extra,
        }
        for task in lesson.tasks
    ]
    causal: Any = AutoModelForCausalLM
    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    trainer = trl.GRPOTrainer(
        model=causal.from_pretrained(model, dtype=torch.float32),
        reward_funcs=[Reward(lesson.reward.scorer, reference="reference", end_token=tokenizer.eos_token_id)],
        args=_config(trl, lesson, seed, folder),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        peft_config=LoraConfig(
            r=lora.rank,
            lora_alpha=int(lora.alpha),
            target_modules="all-linear",
            lora_dropout=0.0,
            task_type="CAUSAL_LM",
        ),
    )
    held_out: list[tuple[int, float]] = []
    policy = Policy(trainer.model.get_base_model(), tokenizer, name="TRL's")
    exam = Run(
        policy,
        lesson.tasks,
        RunConfig(reward=lesson.reward, measured_by=lesson.truth, rollouts=lesson.rollouts, steps=1),
        folder / "exam",
        held_out=lesson.held_out,
    )

    def measure(step: int) -> None:
        with Rewards(lesson.truth) as truth:
            held_out.append((step, exam.evaluate(lesson.held_out, truth)["held_out"]))

    class Exam(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step % lesson.eval_steps == 0:
                measure(state.global_step)

    trainer.add_callback(Exam())
    measure(0)
    trainer.train()
    logged = [(line["step"], line["reward"]) for line in trainer.state.log_history if "reward" in line]
    return Curve(way="trl", seed=seed, held_out=held_out, reward=logged, seconds=time.perf_counter() - began)


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Draw held-out success and rewards of all runs."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    looks: Any = {"svg.hashsalt": "adjudge", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context(looks):
        figure = Figure(figsize=(8.0, 3.0), layout="constrained")
        right, paid = figure.subplots(1, 2)
        for colour, (way, name) in zip(("#2f7ed8", "#2a9d5c", "#d9730d"), WAYS.items(), strict=True):
            for number, curve in enumerate(one for one in curves if one.way == way):
                label = name if not number else None
                right.plot(*zip(*curve.held_out, strict=True), color=colour, marker=".", label=label)
                steps, rewards = zip(*curve.reward, strict=True)
                smooth = [sum(rewards[max(0, at - 5) : at]) / min(at, 5) for at in range(1, len(rewards) + 1)]
                paid.plot(steps, smooth, color=colour, label=label)
        right.set(title="held-out tasks that are right", xlabel="step", ylim=(-0.02, 1.02))
        paid.set(title="mean reward of five batches", xlabel="step")
        for axes in (right, paid):
            axes.grid(alpha=0.3)
        right.legend(fontsize=8)
        figure.savefig(path, format="svg", metadata={"Date": None})


def jobs(options: Options) -> Iterator[None]:
    """Run each way and seed in a process of its own."""
    for seed in options.seeds:
        for way in options.ways:
            given = ["--job", f"{way}:{seed}", "--steps", str(options.steps), "--output", str(options.output)]
            environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
            subprocess.run([sys.executable, "-m", "benchmarks.real_policy", *given], env=environment, check=True)
            yield


def main(options: Options) -> None:
    """Run, and draw."""
    if options.job:
        way, _, seed = options.job.partition(":")
        lesson = subjects.instructions(int(seed))
        if options.steps:
            lesson = replace(lesson, steps=options.steps)
        with tempfile.TemporaryDirectory() as folder:
            if way == "trl":
                curve = theirs(lesson, int(seed), Path(folder))
            else:
                curve = ours(lesson, way, int(seed), Path(folder))
        with options.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(curve)) + "\n")
        print(f"{WAYS[way]}, seed {seed}: {curve.held_out}, {curve.seconds:.0f} s", flush=True)
        return
    for _ in jobs(options):
        pass
    if options.picture is not None:
        lines = options.output.read_text(encoding="utf-8").splitlines()
        draw([Curve(**json.loads(line)) for line in lines], options.picture)


if __name__ == "__main__":
    main(tyro.cli(Options))

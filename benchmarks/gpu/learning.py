"""Learning on a GPU: memory of log-probabilities, tokens written, a policy that learns, and steps beside TRL's."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import random
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from benchmarks.gpu import models
from benchmarks.gpu.report import Part
from benchmarks.gpu.scoring import timed

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.lesson import teach
from adjudge.rl_integration.trainer.demo.subjects import sums
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunConfig
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.policy import Policy, TokenRows
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator

FIRST, COUNTED = 1, 2  # steps that are not counted, and those that are
TASKS, GROUP, ANSWER = 8, 8, 256


class Spread:
    """Scores anything between 0 and 1, by its text, so that there is something to learn from every answer."""

    name = "spread"
    fingerprint = "spread:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Score all of them."""
        return [Score.scored(spread(str(sample.response))) for sample in samples]


def spread(text: str) -> float:
    """Return a number from 0 to 1."""
    return zlib.crc32(text.encode()) / 2**32


def policy_of(shape: models.Shape, device: str, *, layers: int = 0) -> Policy:
    """Return a random policy with 32-bit weights."""
    from transformers import AutoModelForCausalLM

    reader = models.tokenizer()
    more = {"num_hidden_layers": layers} if layers else {}
    config = models.configuration(shape, reader)
    for name, value in more.items():
        setattr(config, name, value)
    model = models.made(AutoModelForCausalLM, config, device, torch.float32)
    return Policy(model, reader, name="a random policy")


def logits(part: Part, device: str) -> None:
    """What log-probabilities of 8,192 tokens over 152,000 take beyond the model."""
    shape = models.SHAPES["0.5B" if device == "cuda" else "tiny"]
    policy = policy_of(shape, device, layers=2)
    policy.bf16 = device == "cuda"
    rows, columns = (8, 1024) if device == "cuda" else (2, 64)
    ids = torch.randint(4, shape.vocab_size, (rows, 16 + columns), device=device)
    ones = torch.ones_like(ids)
    given = TokenRows(
        input_ids=ids,
        attention_mask=ones,
        position_ids=ones.cumsum(-1) - 1,
        answer_ids=ids[:, 16:],
        own=ones[:, 16:].bool(),
        places=torch.arange(rows * columns, device=device),
        behaviour=torch.zeros(rows, columns, device=device),
    )

    def step() -> None:
        logprobs, _ = policy.logprobs(given, temperature=1.0)
        logprobs.sum().backward()  # type: ignore[no-untyped-call]

    step()
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        head = policy.model.lm_head.weight
        more = (torch.cuda.max_memory_allocated() - before - head.numel() * head.element_size()) / 2**30
        part.add(
            f"{rows * columns:,} tokens over {shape.vocab_size:,}, forward and backward: memory beside the gradient",
            more,
            "GiB",
            at_most=2.0,
        )
    part.add("the same: time", 1e3 * timed(step), "ms")


def generate(part: Part, device: str) -> None:
    """Tokens a second of the trainer's own sampler."""
    shape = models.SHAPES["0.5B" if device == "cuda" else "tiny"]
    policy = policy_of(shape, device)
    policy.bf16 = device == "cuda"
    sampling = SamplingConfig(max_new_tokens=128 if device == "cuda" else 8)
    prompts = torch.randint(4, 8192, (TASKS, 128), generator=torch.Generator().manual_seed(0)).tolist()
    for copies in (8, 32) if device == "cuda" else (2,):
        written = [0]

        def write(copies: int = copies, written: list[int] = written) -> None:
            lengths: list[int] = []
            generator = TransformersGenerator(policy)
            generator.generate(
                prompts, copies, sampling, seed=0, on_piece=lambda _, piece: lengths.append(len(piece.ids))
            )
            written[0] = sum(lengths)

        seconds = timed(write, rounds=1)
        part.add(f"{TASKS} x {copies} answers of {sampling.max_new_tokens} tokens", written[0] / seconds, "tokens/s")


def learns(part: Part, device: str) -> None:
    """A tiny policy learns to add."""
    with tempfile.TemporaryDirectory() as folder:
        learnt = teach(sums(0), Path(folder), steps=None if device == "cuda" else 2)
    part.add("sums that are right before", learnt.before)
    least = 0.8 if device == "cuda" else None
    part.add(f"sums that are right after {learnt.steps} steps", learnt.after, at_least=least)
    part.add("seconds", learnt.seconds, "s")


def steps(part: Part, device: str) -> None:
    """Seconds and memory of a step of GRPO, beside TRL's, and with a reward model on the same card."""
    shape = models.SHAPES["0.5B" if device == "cuda" else "tiny"]
    tasks, group, answer = (TASKS, GROUP, ANSWER) if device == "cuda" else (2, 2, 8)
    prompts = [text[:600] for text in models.texts(64, 128, random.Random(2))]

    def ours(scorer: Any) -> dict[str, float]:
        policy = policy_of(shape, device)
        config = RunConfig(
            reward=RewardConfig(scorer=scorer),
            objective=ObjectiveChoice(name="grpo"),
            rollouts=RolloutsConfig(tasks=tasks, num_generations=group, sampling=SamplingConfig(max_new_tokens=answer)),
            learning=LearningConfig(learning_rate=1e-6),
            steps=FIRST + COUNTED,
            save_steps=10**6,
            watch=None,
        )
        rows = [Task(id=str(at), prompt=prompt, reference=None) for at, prompt in enumerate(prompts)]
        with tempfile.TemporaryDirectory() as folder:
            history = Run(policy, rows, config, Path(folder)).train().history[FIRST:]
        middle = {
            name: statistics.median(line[name] for line in history) for name in history[0] if name.startswith("seconds")
        }
        part.note(f"a step's times: {', '.join(f'{name} {value:.2f}' for name, value in middle.items())}")
        return middle

    peaks = _peaks(device)
    plain = ours(Spread())
    part.add("a step", plain["seconds"], "s")
    part.add("peak memory", peaks(), "GiB")
    if importlib.util.find_spec("trl") is None:
        part.note("TRL is not installed, so nothing stands beside it")
    else:
        theirs = trl_seconds(shape, device, prompts, tasks=tasks, group=group, answer=answer)
        part.add("a step of TRL's", theirs, "s")
        part.add("TRL's peak memory", peaks(), "GiB")
        part.add("a step beside TRL's", plain["seconds"] / theirs, "x", at_most=1.0 if device == "cuda" else None)
    reader = models.tokenizer()
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    model = models.reward_model(shape, reader, device, dtype)
    with tempfile.TemporaryDirectory() as home, models.standing_in(model):
        folder = str(models.reward_folder(Path(home), shape, reader))
        judged = ours({"reward_model": {"engine": {"transformers": {"model": folder}}}})
    part.add("a step with a reward model of the same size", judged["seconds"], "s")
    most = 0.05 if device == "cuda" else None
    part.add("share of it that waits for rewards", judged["seconds_waiting"] / judged["seconds"], at_most=most)


def _peaks(device: str) -> Callable[[], float]:
    """Return what says the peak since it was asked last."""

    def peak() -> float:
        if device != "cuda":
            return float("nan")
        found = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return found

    return peak


def trl_seconds(
    shape: models.Shape, device: str, prompts: Sequence[str], *, tasks: int, group: int, answer: int
) -> float:
    """Return the median seconds of a step of TRL's `GRPOTrainer`, with what it does by default."""
    from datasets import Dataset
    from transformers import TrainerCallback

    trl: Any = importlib.import_module("trl")

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            if device == "cuda":
                torch.cuda.synchronize()
            ends.append(time.perf_counter())

    def reward(completions: Sequence[str], **_: Any) -> list[float]:
        return [spread(text) for text in completions]

    policy = policy_of(shape, device)
    batch = min(16, tasks * group)
    with tempfile.TemporaryDirectory() as folder:
        config = trl.GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=batch,
            gradient_accumulation_steps=tasks * group // batch,
            num_generations=group,
            max_completion_length=answer,
            learning_rate=1e-6,
            lr_scheduler_type="constant",
            beta=0.0,
            loss_type="grpo",
            max_steps=FIRST + COUNTED,
            logging_steps=10**6,
            report_to=[],
            use_cpu=device == "cpu",
            bf16=device == "cuda",
            save_strategy="no",
            disable_tqdm=True,
            seed=1,
        )
        rows = Dataset.from_list([{"prompt": prompt} for prompt in prompts])
        trl.GRPOTrainer(
            model=policy.model,
            reward_funcs=[reward],
            args=config,
            train_dataset=rows,
            processing_class=policy.tokenizer,
            callbacks=[Clock()],
        ).train()
    taken = [after - before for before, after in itertools.pairwise(ends)]
    return statistics.median(taken[FIRST - 1 :])

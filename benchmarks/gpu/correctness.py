"""Is it right on a GPU?  Everything is held to 32 bits on the CPU, and to itself in other batches."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from benchmarks.gpu import models
from benchmarks.gpu.report import Part
from benchmarks.reward_model_scoring import Chat
from benchmarks.trainer import Slow

from adjudge.engines.head_config import HeadConfig
from adjudge.engines.interface import Fault
from adjudge.engines.reward_network import RewardNetwork
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.demo.arithmetic import CHARACTERS, sums
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunConfig
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.policy import Policy, token_rows
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig
from adjudge.training.backbones import Lora
from adjudge.training.sharding import whole

SMALL = models.Shape(
    hidden_size=512,
    intermediate_size=1536,
    num_hidden_layers=6,
    num_attention_heads=8,
    num_key_value_heads=2,
    vocab_size=8192,
)
HEADS = {
    "linear": HeadConfig(outputs=2, bias=True),
    "mlp": HeadConfig(kind="mlp", outputs=2),
    "gaussian": HeadConfig(kind="gaussian"),
    "quantile": HeadConfig(kind="quantile", levels=5),
    "gating": HeadConfig(kind="gating", outputs=3),
    "multi": HeadConfig(kind="multi", members=3),
    "mean": HeadConfig(pooling="mean"),
    "tokens": HeadConfig(pooling="tokens", outputs=2),
}


def size(device: str) -> models.Shape:
    """Return the shape to check."""
    return SMALL if device == "cuda" else models.SHAPES["tiny"]


def new_policy(device: str) -> Policy:
    """Return a new policy with the same weights each time."""
    width, layers = (256, 4) if torch.cuda.is_available() else (64, 2)
    policy = tiny_policy(CHARACTERS, seed=0, width=width, layers=layers)
    policy.model.to(device)
    return policy


def distance(found: Any, wanted: Any) -> float:
    """Return how far numbers are from others, relative to the others' length."""
    found, wanted = (torch.as_tensor(some).detach().double().cpu() for some in (found, wanted))
    return float((found - wanted).norm() / wanted.norm())


def scores(model: Any, folder: Path, chats: Sequence[Chat], *, alone: bool = False, **options: Any) -> list[float]:
    """Return an engine's scores, of all chats at once or of each alone."""
    with models.standing_in(model):
        config = TransformersConfig(model=str(folder), device=model.device.type, **options)
        engine = TransformersEngine(config)

        async def ask() -> list[float]:
            found = []
            for part in [[one] for one in chats] if alone else [chats]:
                for result in await engine.classify(part):
                    if isinstance(result, Fault):
                        raise RuntimeError(result.detail)
                    found.append(result.values[0])
            await engine.close()
            return found

        return asyncio.run(ask())


def engines(part: Part, device: str) -> None:
    """Scores of the embedded engine."""
    reader = models.tokenizer()
    chats = models.chats(6, 4, prompt_tokens=60, answer_tokens=100)
    with tempfile.TemporaryDirectory() as home:
        folder = models.reward_folder(Path(home), size(device), reader)
        plain = models.reward_model(size(device), reader, "cpu", torch.float32)
        wanted = scores(plain, folder, chats, alone=True, share_prefixes=False, attn="eager")
        for dtype, close, same in ((torch.float32, 1e-3, 1e-4), (torch.bfloat16, 0.03, 0.02)):
            model = models.reward_model(size(device), reader, "cpu", torch.float32).to(device)
            model.model.to(dtype)
            name = str(dtype).removeprefix("torch.")
            together = scores(model, folder, chats)
            part.add(f"scores in {name}: from 32 bits on the CPU", distance(together, wanted), at_most=close)
            alone = scores(model, folder, chats, alone=True)
            part.add(f"scores in {name}: alone from together", distance(alone, together), at_most=same)
            padded = scores(model, folder, chats, attn="sdpa", share_prefixes=False)
            part.add(f"scores in {name}: padded from packed", distance(padded, together), at_most=same)


def heads(part: Part, device: str) -> None:
    """Outputs of all kinds of heads."""
    from transformers import AutoModel

    reader = models.tokenizer()
    ids = torch.randint(4, 8192, (4, 64), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 40:] = mask[2, :9] = 0
    given = {"input_ids": ids, "attention_mask": mask, "prompt_lengths": torch.tensor([20, 20, 20, 20])}
    body = models.made(AutoModel, models.configuration(size(device), reader), "cpu", torch.float32)
    for name, head in HEADS.items():
        torch.manual_seed(0)
        network = RewardNetwork.on(body, head)
        with torch.inference_mode():
            wanted = network.to("cpu")(**given)[mask.bool() if head.pooling == "tokens" else ...]
            found = network.to(device)(**{key: value.to(device) for key, value in given.items()})
            found = found.cpu()[mask.bool() if head.pooling == "tokens" else ...]
        part.add(f"head {name}: from 32 bits on the CPU", distance(found, wanted), at_most=1e-3)
        body.to("cpu")


def policy_logprobs(part: Part, device: str) -> None:
    """Log-probabilities, entropies and gradients of a policy."""
    rollouts = rolled(new_policy("cpu"))
    found: dict[str, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}
    for place, bf16 in (
        ("cpu", False),
        (device, False),
        (device, True),
    ):  # names end in spaces, or CPU and CPU were one
        policy = new_policy(place)
        policy.bf16 = bf16
        rows = token_rows(rollouts, pad=policy.pad).to(place)
        logprobs, entropies = policy.logprobs(rows, temperature=0.7)
        (logprobs * rows.own).sum().backward()  # type: ignore[no-untyped-call]
        grads = torch.cat(
            [value.grad.reshape(-1).cpu() for value in policy.model.parameters() if value.grad is not None]
        )
        found[f"{'bfloat16' if bf16 else 'float32'} on {place}{' ' * len(found)}"] = (
            logprobs[rows.own],
            entropies[rows.own],
            grads,
        )
    names = list(found)
    for name, close in zip(names[1:], (1e-4, 0.05), strict=True):
        for what, value, wanted in zip(
            ("log-probabilities", "entropies", "gradients"), found[name], found[names[0]], strict=True
        ):
            part.add(f"{what} in {name.strip()}: from 32 bits on the CPU", distance(value, wanted), at_most=close)


def rolled(policy: Policy) -> list[Any]:
    """Return some answers of a policy, as a run draws them."""
    import numpy as np

    from adjudge.rl_integration.trainer.data.task import Rollout

    chance = torch.Generator().manual_seed(0)
    rollouts = []
    for task in sums(4, held_out=0.0, seed=0)[0]:
        length = int(torch.randint(3, 24, (1,), generator=chance))
        ids = tuple(torch.randint(2, 12, (length,), generator=chance).tolist())
        rollouts.append(
            Rollout(
                id=task.id,
                task=task,
                version=0,
                prompt_ids=policy.encode(task),
                ids=ids,
                logprobs=np.zeros(length, dtype=np.float32),
                own=np.ones(length, dtype=np.bool_),
                text=policy.decode(ids),
                finish_reason="length",
            )
        )
    return rollouts


def run_config(**more: Any) -> RunConfig:
    """Return a short run's options."""
    learning = {"learning_rate": 1e-3, "max_grad_norm": 0.0, "precision": "fp32", **more.pop("learning", {})}
    return RunConfig(
        reward=RewardConfig(scorer=Slow(0.0)),
        objective=ObjectiveChoice(name="grpo"),
        rollouts=RolloutsConfig(tasks=4, num_generations=4, sampling=SamplingConfig(max_new_tokens=16)),
        learning=LearningConfig(**learning),
        save_steps=2,
        watch=None,
        **more,
    )


def trained(device: str, config: RunConfig, folder: Path, *, stop: int = 0) -> Policy:
    """Return the policy of a run; `stop` ends it behind that step, and a second run goes on from there."""
    for resume in (False, True) if stop else (False,):
        policy = new_policy(device)
        ends: Callable[..., bool] = (
            (lambda numbers, *_: bool(stop) and numbers["step"] == stop) if not resume else (lambda *_: False)
        )
        Run(policy, sums(20, held_out=0.0, seed=0)[0], config, folder).train(resume=resume, on_step=ends)
    return policy


def weights(policy: Policy) -> torch.Tensor:
    """Return all weights as one row."""
    return torch.cat([whole(value).detach().reshape(-1).cpu() for value in policy.model.parameters()])


def training(part: Part, device: str) -> None:
    """Updates do not depend on the passes they are made in, nor on a resumption."""
    with tempfile.TemporaryDirectory() as home:
        grads = []
        for micro in (10**6, 100):
            policy = trained(device, run_config(steps=1, learning={"micro_tokens": micro}), Path(home, str(micro)))
            some = [value.grad.reshape(-1).cpu() for value in policy.model.parameters() if value.grad is not None]
            grads.append(torch.cat(some))
        part.add("gradients in small passes: from one pass", distance(grads[1], grads[0]), at_most=1e-5)
        whole = weights(trained(device, run_config(steps=4), Path(home, "whole")))
        again = weights(trained(device, run_config(steps=4), Path(home, "parts"), stop=2))
        part.add("weights after a resumption: from those without", distance(again, whole), at_most=1e-5)
        low_rank(part, device, Path(home))


def low_rank(part: Part, device: str, home: Path) -> None:
    """A policy with low-rank factors writes what it has learnt."""
    from transformers import AutoModelForCausalLM

    config = run_config(steps=4, learning={"lora": Lora(), "learning_rate": 1e-3})
    policy = trained(device, config, home / "lora")
    policy.save(home / "saved")
    causal: Any = AutoModelForCausalLM
    saved = Policy(causal.from_pretrained(home / "saved").to(device), policy.tokenizer, name="saved")
    with torch.inference_mode():
        rows = token_rows(rolled(policy), pad=policy.pad).to(device)
        now, then, start = (
            one.logprobs(rows, temperature=1.0)[0][rows.own] for one in (policy, saved, new_policy(device))
        )
    part.add("low-rank factors, merged and read again: from the policy", distance(then, now), at_most=1e-4)
    part.add("low-rank factors: from the policy before", distance(now, start), at_least=1e-3)


def shards(part: Part, device: str) -> None:
    """A policy in shards learns what a whole one does; there is one process, so they are whole, too."""
    backend = "nccl" if device == "cuda" else "gloo"
    with tempfile.TemporaryDirectory() as home:
        wanted = weights(trained(device, run_config(steps=4), Path(home, "whole")))
        dist.init_process_group(backend, init_method=f"file://{home}/met", rank=0, world_size=1)
        try:
            for name, more in (("in shards", {}), ("in shards on the host", {"cpu_offload": True})):
                config = run_config(steps=4, learning={"sharding": "full", **more})
                found = weights(trained("cpu", config, Path(home, name), stop=2))
                part.add(f"weights {name}, resumed: from whole ones", distance(found, wanted), at_most=1e-5)
            config = run_config(steps=4, learning={"sharding": "full", "precision": "bf16"})
            wanted = weights(trained("cpu", config, Path(home, "bf16")))
            found = weights(trained("cpu", config, Path(home, "bf16 again"), stop=2))
            part.add("weights in shards in bfloat16: resumed or not", distance(found, wanted), at_most=1e-5)
        finally:
            dist.destroy_process_group()


def main(part: Part, device: str) -> None:
    """Check everything."""
    torch.backends.cuda.matmul.allow_tf32 = False
    for check in (engines, heads, policy_logprobs, training, shards):
        check(part, device)

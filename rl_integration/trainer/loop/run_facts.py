"""What must stay the same while a run is resumed: its options, its tasks, and the model that it starts from.

A run may go on for more steps, with less memory, other checkpoints, measurements and guards; its reward may be mended.
Anything else would bend the curve without a word, so it is refused.

Not covered: results of a run that has ended.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.training.config_file import plain_config

_FREE = frozenset(
    {
        "reward",
        "guard",
        "watch",
        "measured_by",
        "save_steps",
        "keep_checkpoints",
        "eval_steps",
        "learning.micro_tokens",
        "learning.gradient_checkpointing",
        "rollouts.sampling.max_num_seqs",
        "rollouts.vllm.gpu_memory_utilization",
        "rollouts.vllm.kv_cache_gib",
        "rollouts.vllm.enforce_eager",
        "rollouts.vllm.sleep",
    }
)
_WHOLE = ("tasks", "model", "reference")  # facts that are digests: their values tell people nothing

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def run_facts(
    config: RunConfig, tasks: Iterable[Task], policy: Policy, reference: Policy | None = None
) -> dict[str, Any]:
    """Return the facts of a run, by option, as plain data.

    Args:
        config: its options; those of derived classes, which are not of the training, are left out.
        tasks: in their order.
        policy: learns; of its weights those that are frozen are looked at, and the shapes of the others.
        reference: the policy that divergences are measured from.
    """
    options = dict(_flat({item.name: plain_config(getattr(config, item.name)) for item in fields(RunConfig)}))
    free = _FREE | ({"steps"} if config.learning.decay == "constant" else set())
    kept = {name: value for name, value in options.items() if not any(_below(name, one) for one in free)}
    told = [[task.id, task.prompt, task.reference, dict(task.extra), task.cohort] for task in tasks]
    weights = list(policy.model.named_parameters())
    shapes = [[name, list(value.shape)] for name, value in weights if value.requires_grad]
    frozen = weights_digest(value for _, value in weights if not value.requires_grad)
    found = {**kept, "tasks": _digest(told), "model": _digest([shapes, frozen])}
    if reference is not None:
        found["reference"] = weights_digest(reference.model.parameters())
    plain: dict[str, Any] = json.loads(json.dumps(found, default=_kind))
    return plain


def check_facts(then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Compare a checkpoint's facts with those of the run that would go on from it.

    Raises:
        ValueError: they differ; the message names the first option that does.
    """
    for name in sorted(then.keys() | now.keys(), key=lambda name: (name in _WHOLE, name)):
        if then.get(name) != now.get(name):
            change = "differ" if name == "tasks" else "differs"
            if name not in _WHOLE:
                change = f"was {json.dumps(then.get(name))} and is {json.dumps(now.get(name))}"
            raise ValueError(
                f"the run cannot be resumed with other options: {name} {change}; put back what it began with, or "
                "begin a run in another folder"
            )


def weights_digest(weights: Iterable[Tensor]) -> str:
    """Return what equal weights have in common, on any device; the sum of each tensor's bits, read as whole numbers.

    Rounding that went another way anywhere changes it; it is made where the weights are, in one pass.
    """
    sums = [value.detach().contiguous().view(_BITS[value.dtype.itemsize]).sum(dtype=torch.int64) for value in weights]
    return _digest([int(one) for one in torch.stack([one.cpu() for one in sums])] if sums else [])


def _flat(options: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _below(name: str, option: str) -> bool:
    return name == option or name.startswith(f"{option}.")


def _digest(told: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(told, default=_kind).encode()).hexdigest()[:16]


def _kind(thing: Any) -> str:
    """What stands for a thing that is no plain data: its kind, since its text may hold an address."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"

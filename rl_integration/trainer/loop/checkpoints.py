"""Checkpoints of a run: everything that the next step depends on, whole or not at all; and what must stay the same.

A run may go on for more steps, with less memory, other checkpoints, measurements and guards; its reward may be mended.
Anything else would bend the curve without a word, so it is refused.

A checkpoint is written under a hidden name and renamed once its bytes are on the disk, and deleted the other way round,
so a folder with its name is a whole one.  A list of sizes and checksums in it tells whether it still is.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.loop.report import POLICY, by_path
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.training.config_file import plain_config
from adjudge.training.sharding import whole

_FREE = frozenset(
    {
        "reward",
        "guard",
        "watch",
        "measured_by",
        "load_best_model_at_end",
        "save_steps",
        "keep_checkpoints",
        "save_hf_ckpt",
        "eval_steps",
        "learning.micro_tokens",
        "learning.gradient_checkpointing",
        "learning.sharding",
        "learning.cpu_offload",
        "rollouts.sampling.max_num_seqs",
        "rollouts.vllm.gpu_memory_utilization",
        "rollouts.vllm.kv_cache_gib",
        "rollouts.vllm.enforce_eager",
        "rollouts.vllm.sleep",
    }
)
_WHOLE = ("tasks", "model", "reference", "tokenizer")  # facts that are digests: their values tell people nothing

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def run_facts(
    config: RunConfig, tasks: Iterable[Task], policy: Policy, reference: Policy | None = None
) -> dict[str, Any]:
    """Return the facts of a run, by option, as plain data."""
    options = _options(config)
    free = _FREE | ({"steps"} if config.learning.decay == "constant" else set())
    kept = {
        name: value
        for name, value in options.items()
        if not any(name == one or name.startswith(f"{one}.") for one in free)
    }
    told = [
        [task.id, task.prompt, task.reference, dict(task.extra), task.cohort, *filter(None, [task.begun])]
        for task in tasks
    ]
    weights = list(policy.model.named_parameters())
    shapes = [[name, list(value.shape)] for name, value in weights if value.requires_grad]
    frozen = weights_digest(value for _, value in weights if not value.requires_grad)
    facts = {**kept, "tasks": _digest(told), "model": _digest([shapes, frozen])}
    tokenizer = policy.tokenizer
    facts["tokenizer"] = _digest([sorted(tokenizer.get_vocab().items()), getattr(tokenizer, "chat_template", None)])
    if policy.chat_template_kwargs:
        facts["model.chat_template_kwargs"] = policy.chat_template_kwargs
    if reference is not None:
        facts["reference"] = weights_digest(reference.model.parameters())
    plain: dict[str, Any] = json.loads(json.dumps(facts, default=_kind))
    return plain


def check_facts(then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Compare a checkpoint's facts with those of the run that would go on from it.

    An option that the checkpoint does not know, since it is newer, had its default there.

    Raises:
        ValueError: they differ; the message names the first option that does.
    """
    defaults = _options(RunConfig(reward=RewardConfig(scorer="math")))  # any reward: those are not compared
    newer = {name: value for name, value in defaults.items() if name in now}
    known = {"tokenizer": now.get("tokenizer")}  # which older checkpoints do not tell
    then = {**json.loads(json.dumps(newer, default=_kind)), **known, **then}
    for name in sorted(then.keys() | now.keys(), key=lambda name: (name in _WHOLE, name)):
        if then.get(name) != now.get(name):
            change = "differ" if name == "tasks" else "differs"
            if name not in _WHOLE:
                change = f"was {json.dumps(then.get(name))} and is {json.dumps(now.get(name))}"
            if name == "steps":
                change += ", which learning.decay goes by"
            raise ValueError(
                f"the run cannot be resumed with other options: {name} {change}; put back what it began with, or "
                "begin a run in another folder"
            )


def weights_digest(weights: Iterable[Tensor]) -> str:
    """Return what equal weights have in common, on any device; the sum of each tensor's bits, read as whole numbers.

    Rounding that went another way anywhere changes it; it is made where the weights are, in one pass.  Of weights in
    shards, all processes ask for it.
    """
    parts = (whole(value).detach().contiguous() for value in weights)
    sums = [value.view(_BITS[value.dtype.itemsize]).sum(dtype=torch.int64) for value in parts]
    return _digest([int(one) for one in torch.stack([one.cpu() for one in sums])] if sums else [])


def _options(config: RunConfig) -> dict[str, Any]:
    """Each option of a run by its path."""
    return dict(by_path({item.name: plain_config(getattr(config, item.name)) for item in fields(RunConfig)}))


def _digest(told: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(told, default=_kind).encode()).hexdigest()[:16]


def _kind(thing: Any) -> str:
    """What stands for a thing that is not plain data: its kind, since its text may hold an address."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


_PREFIX = "checkpoint-"
_TENSORS = "trained.safetensors"
_RANDOM = "random.safetensors"
_OPTIMIZER = "optimizer.pt"
_RECORD = "record.json"
_LIST = "files.json"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The state of a run after a step.

    Attributes:
        step: steps that are done.
        tensors: parameters that are trained, by name.
        random: states of random numbers, by name.
        optimizer: its state.
        record: everything else, as plain JSON data.
    """

    step: int
    tensors: Mapping[str, Tensor]
    random: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    record: Mapping[str, Any]


def save_checkpoint(
    folder: Path, checkpoint: Checkpoint, *, keep: int, save_policy: Callable[[Path], None] | None = None
) -> None:
    """Write a checkpoint into a run's folder, and delete all but the newest `keep`.

    Args:
        folder: of the run.
        checkpoint: what is written.
        keep: checkpoints that stay, 1 or more.
        save_policy: writes the policy into a folder of the checkpoint, for others than the run: its bytes are not
            checked when the run goes on.
    """
    for rest in folder.glob(f".{_PREFIX}*"):  # what a killed process was writing or deleting
        shutil.rmtree(rest)
    draft = folder / f".{_PREFIX}{checkpoint.step}.part"
    draft.mkdir(parents=True)
    if save_policy is not None:  # first: other processes may wait to give their shards
        save_policy(draft / POLICY)
    _write_tensors(draft / _TENSORS, checkpoint.tensors)
    _write_tensors(draft / _RANDOM, checkpoint.random)
    torch.save(dict(checkpoint.optimizer), draft / _OPTIMIZER)
    (draft / _RECORD).write_text(json.dumps(checkpoint.record), encoding="utf-8")
    files = {path.name: _size_and_sum(path) for path in sorted(draft.iterdir()) if path.is_file()}
    (draft / _LIST).write_text(json.dumps(files), encoding="utf-8")
    for path in draft.rglob("*"):
        _to_disk(path)
    _to_disk(draft)
    whole = folder / f"{_PREFIX}{checkpoint.step}"
    if whole.exists():
        _delete(whole)
    draft.rename(whole)
    _to_disk(folder)
    for old in _found(folder)[:-keep]:
        _delete(old)


def newest_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the newest checkpoint of a run, if it has one.

    Raises:
        ValueError: its files are not those that were written.
    """
    checkpoints = _found(folder)
    if not checkpoints:
        return None
    *before, newest = checkpoints
    try:
        files = json.loads((newest / _LIST).read_text(encoding="utf-8"))
        for name in (_TENSORS, _RANDOM, _OPTIMIZER, _RECORD):
            if not isinstance(files, dict) or files.get(name) != _size_and_sum(newest / name):
                raise ValueError(f"{name} does not hold the bytes that were written")
    except (OSError, ValueError) as error:
        remedy = f"to go on from {before[-1].name}" if before else "to begin anew; there is none before it"
        raise ValueError(f"the checkpoint {str(newest)!r} is damaged: {error}; delete that folder {remedy}") from error
    return Checkpoint(
        step=_step(newest),
        tensors=load_file(newest / _TENSORS),
        random=load_file(newest / _RANDOM),
        optimizer=torch.load(newest / _OPTIMIZER, weights_only=True, map_location="cpu", mmap=True),
        record=json.loads((newest / _RECORD).read_text(encoding="utf-8")),
    )


def drop_later(folder: Path, step: int) -> None:
    """Delete checkpoints of steps that a resumed run has yet to make."""
    for path in _found(folder):
        if _step(path) > step:
            _delete(path)


def _found(folder: Path) -> list[Path]:
    """A run's checkpoints, the oldest first; drafts have other names."""
    named = [path for path in folder.glob(f"{_PREFIX}*") if path.name.removeprefix(_PREFIX).isdecimal()]
    return sorted(named, key=_step)


def _step(path: Path) -> int:
    return int(path.name.removeprefix(_PREFIX))


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    save_file({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, path)


def _size_and_sum(path: Path) -> list[int]:
    """A file's bytes, and their CRC-32: it is accidents that are looked for."""
    size = checksum = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            size, checksum = size + len(part), zlib.crc32(part, checksum)
    return [size, checksum]


def _delete(path: Path) -> None:
    """Delete a checkpoint, which loses its name first: one that is half deleted is none."""
    hidden = path.with_name(f".{path.name}.old")
    path.rename(hidden)
    shutil.rmtree(hidden)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_held: dict[Path, tuple[int]] = {}  # by which thread: the kernel refuses a process no lock of its own


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Inside, no other run may hold the folder, which is made if need be; the same thread may hold it again.

    Raises:
        ValueError: another run holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place, token = folder.resolve(), (threading.get_ident(),)
    owner = _held.setdefault(place, token)
    if owner is not token:
        if owner != token:
            raise ValueError(_refusal(folder))
        yield
        return
    try:
        with (place / ".lock").open("a") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not inherited by what scorers start
            except (BlockingIOError, PermissionError) as error:
                raise ValueError(_refusal(folder)) from error
            yield
    finally:
        del _held[place]


def _refusal(folder: Path) -> str:
    return f"another run writes {str(folder)!r}; wait until it ends, stop it, or name another output"

"""What the processes of `nursery` do."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tests.rl_integration.trainer.loop.test_learner import rollouts_of, scores_of
from tests.rl_integration.trainer.nursery import Dying
from tests.rl_integration.trainer.small_runs import TASKS, Digits, small_config, small_policy, small_run

from adjudge.cli.main import main
from adjudge.protocol import Score
from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.loop.checkpoints import Checkpoint, save_checkpoint
from adjudge.rl_integration.trainer.loop.config import EvolutionConfig, LearningConfig
from adjudge.rl_integration.trainer.loop.guard import GuardConfig
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.loop.processes import OtherProcessFailed, Processes
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.curricula.choice import CurriculumChoice
from adjudge.rl_integration.trainer.rollouts.policy import checkpoint_weights
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.training.backbones import Lora
from adjudge.training.sharding import own_part, whole, whole_state

Tell = Callable[[int], object]

FAILED = 7
"""How a process ends that saw another fail."""


class Letters(Digits):
    """What no digits are: the opposite of the reward."""

    name = "letters"
    fingerprint = "letters:1"

    def _share(self, text: str) -> float:
        return 1 - super()._share(text)


def imported() -> None:
    """Have everything that is imported on the way imported, and the patterns compiled that transformers compiles."""
    from accelerate import PartialState
    from transformers import DynamicCache

    del DynamicCache, PartialState
    torch.set_num_threads(1)
    ObjectiveChoice().made(max_new_tokens=8)
    small_policy().adapt(Lora(rank=1), seed=0)


def train(
    folder: str,
    *,
    dying: Dying,
    tell: Tell,
    fail: int = 0,
    stop: int = 0,
    held_out: int = 3,
    together: bool = False,
    guard: Any = None,
    evolution: Any = None,
    **options: Any,
) -> None:
    """Train, resuming if there is something to resume; write the weights of the end.

    With `together`, what writes answers makes groups of processes, as vLLM does when it starts.

    A folder may have "{rank}" in its name.
    """
    home = Path(folder.replace("{rank}", os.environ.get("RANK", "0")))

    def on_step(numbers: Mapping[str, float], *_: Any) -> bool:
        tell(int(numbers["step"]))
        if numbers["step"] == fail:
            raise KeyError("this process was told to fail")
        return numbers["step"] == stop

    if guard is not None:
        options["guard"] = GuardConfig(gold=RewardConfig(scorer=Letters()), every=1, window=1, **guard)
    if evolution is not None:
        options["learning"] = {"evolution": EvolutionConfig(**evolution)}
    if names := options.pop("curriculum", ()):
        options["curriculum"] = CurriculumChoice(names=tuple(names), set={"reinforce_ada.right_above": 0.9})
    if rank := options.get("learning", {}).pop("lora", 0):
        options["learning"]["lora"] = Lora(rank=rank)
    if together:
        for name in ("refresh", "generate"):
            _make_collective(name)
    run = small_run(home, small_config(**options), held_out=TASKS[:held_out])
    dying.watch(home, run.policy.model)
    try:
        result = run.train(resume=True, on_step=on_step)
    except OtherProcessFailed as error:
        (home / "why.txt").write_text(str(error), encoding="utf-8")
        sys.exit(FAILED)
    place = run._processes.rank
    ended = {"resumed": result.resumed, "rolled_back": result.rolled_back, "events": dying.events}
    (home / f"end-{place}.json").write_text(json.dumps(ended), encoding="utf-8")
    save_file(whole_state(run.policy.model, keep=True), home / f"end-{place}.safetensors")
    run.policy.save(home / "policy" if place == 0 else None)


def _make_collective(name: str) -> None:
    plain = getattr(TransformersGenerator, name)

    def collective(*given: Any, **named: Any) -> None:
        torch.distributed.new_group(backend="gloo", timeout=timedelta(seconds=10))
        plain(*given, **named)

    setattr(TransformersGenerator, name, collective)


def learn(
    folder: str,
    objective: str,
    lora: int = 0,
    steps: int = 1,
    after: str = "",
    state: bool = True,
    *,
    dying: Dying,
    tell: Tell,
    **options: Any,
) -> None:
    """Learn from the same batch; write gradients and numbers of the last update, and the state behind it.

    Args:
        folder: where to.
        objective: its name.
        lora: rank of factors; 0 for none.
        steps: how often it learns.
        after: the folder whose state it goes on from; "" for a new policy.
        state: whether the optimiser makes its step and the state is written; both take most of the time of shards.
        dying: not used.
        tell: not used.
        options: of learning.
    """
    del dying, tell
    processes = Processes.joined()
    rollouts = rollouts_of(small_policy())
    policy = small_policy(seed=processes.rank)  # only the first one's weights are to count
    choice = ObjectiveChoice(name=objective).made(max_new_tokens=8)
    learner = Learner(
        policy,
        choice,
        LearningConfig(**{"max_grad_norm": 0.0, **options}, lora=Lora(rank=lora) if lora else None),
        temperature=1.0,
        steps=3,
        seed=processes.rank,
        reference=small_policy(seed=5 + processes.rank) if choice.needs_reference and not lora else None,
        processes=processes,
    )
    learner.begin_alike()
    if after:
        learner.restore(1, load_file(Path(after) / "weights-0.safetensors"), torch.load(Path(after) / "optimizer-0.pt"))
    if not state:
        learner.optimizer.step = lambda: None
    scores = scores_of(rollouts)
    if objective == "gdpo":
        short = [Score.scored(1 / (1 + len(rollout.ids))) for rollout in rollouts]
        scores = [replace(one, parts={"digits": one, "short": two}) for one, two in zip(scores, short, strict=True)]
    for _ in range(steps):
        numbers = learner.learn(rollouts, scores)
    parts = {"policy": policy.model, "critic": learner.critic}
    grads = {
        f"{part}.{name}": whole(value.grad)
        for part, model in parts.items()
        if model is not None
        for name, value in model.named_parameters()
        if value.grad is not None
    }
    save_file(grads, Path(folder) / f"grads-{processes.rank}.safetensors")
    (Path(folder) / f"numbers-{processes.rank}.json").write_text(json.dumps(numbers), encoding="utf-8")
    if state:
        weights, optimizer = learner.state()
        weights = {name: value.detach() for name, value in weights.items()}
        save_file(weights, Path(folder) / f"weights-{processes.rank}.safetensors")
        torch.save(optimizer, Path(folder) / f"optimizer-{processes.rank}.pt")


def hand_over(folder: str, lora: int, sharding: Any, *, dying: Dying, tell: Tell) -> None:
    """Write what another engine is handed of a policy with tied weights: after a step, and when they are put back."""
    del dying, tell
    policy = small_policy()
    policy.model.lm_head.weight = policy.model.model.embed_tokens.weight
    policy.model.config.tie_word_embeddings = True
    rollouts = rollouts_of(policy)
    learner = Learner(
        policy,
        ObjectiveChoice(name="grpo").made(max_new_tokens=8),
        LearningConfig(learning_rate=1e-2, lora=Lora(rank=lora) if lora else None, sharding=sharding),
        temperature=1.0,
        steps=3,
        seed=0,
        processes=(processes := Processes.joined()),
    )
    weights, _ = learner.state()
    start = processes.broadcast({name: value.detach().clone() for name, value in weights.items()})
    learner.learn(rollouts, scores_of(rollouts))
    if sharding == "full":
        kept = [*policy.model.parameters(), *(one["exp_avg"] for one in learner.optimizer.state.values())]
        assert sum(own_part(value).numel() for value in kept) <= sum(value.numel() for value in kept) / 2, "of thirds"
    versions = [value._version for value in policy.model.state_dict().values()]
    handed = {name: value.detach().clone() for name, value in checkpoint_weights(policy.model)}
    save_file(handed, Path(folder) / f"handed-{processes.rank}.safetensors")
    learner.put_back(start)
    assert versions != [value._version for value in policy.model.state_dict().values()], "vLLM would not notice"
    handed = {name: value.detach().clone() for name, value in checkpoint_weights(policy.model)}
    save_file(handed, Path(folder) / f"back-{processes.rank}.safetensors")
    policy.save(Path(folder) / "policy" if processes.is_main_process else None)


def command(folder: str, arguments: list[str], *, dying: Dying, tell: Tell) -> None:
    """Run a command; what each process prints goes to a file of its own."""
    del dying, tell
    with open(Path(folder) / f"out-{os.environ['RANK']}", "w") as file:
        os.dup2(file.fileno(), 1)
    sys.exit(main(arguments))


def out_of_memory(folder: str, *, dying: Dying, tell: Tell) -> None:
    """Have the memory of every process run out in its first pass; write what they say."""
    del dying, tell
    processes, policy = Processes.joined(), small_policy()
    rollouts = rollouts_of(policy)
    learner = Learner(
        policy,
        ObjectiveChoice(name="grpo").made(max_new_tokens=8),
        LearningConfig(sharding="full", micro_tokens=100),
        temperature=1.0,
        steps=3,
        seed=0,
        processes=processes,
    )

    def fail(*_: Any) -> None:
        raise torch.OutOfMemoryError("as told")

    for layer in policy.model.model.layers:
        layer.register_forward_pre_hook(fail)
    try:
        learner.learn(rollouts, scores_of(rollouts))
    except torch.OutOfMemoryError as error:
        (Path(folder) / f"why-{processes.rank}.txt").write_text(str(error), encoding="utf-8")


def save(folder: str, step: int, *, dying: Dying, tell: Tell) -> None:
    """Write a checkpoint."""
    dying.watch(Path(folder))
    save_checkpoint(Path(folder), checkpoint(step), keep=1)


def checkpoint(step: int) -> Checkpoint:
    """One whose every part tells its step."""
    return Checkpoint(
        step=step,
        tensors={"policy.weight": torch.full((4,), float(step))},
        random={"0.cpu": torch.full((4,), step, dtype=torch.uint8)},
        optimizer={"state": {0: {"step": torch.tensor(float(step))}}},
        record={"step": step},
    )

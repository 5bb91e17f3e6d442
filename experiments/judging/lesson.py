"""A judge made from nothing learns which of two texts is better, from verdicts that can be checked.

The better text is the one with more of a letter, which nobody tells the judge.  First it sees verdicts drawn at random,
so that it writes in the right form and is right half the time; from there on it is told nothing but what its own
verdicts are worth.  Three rewards:

    as_given     each pair in one order, the better text first in three of four pairs; 1 for the right verdict
    both_orders  each pair in both orders in one batch; 1 for the right verdict
    consistency  the same, and 1 only if the verdict on the other order is right, too (J1)

It is measured on pairs that it never saw, each in both orders.

    python -m experiments.judging.lesson judge.png

About a minute of one core for each of the nine runs: three rewards, three seeds.
"""

from __future__ import annotations

import argparse
import copy
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy, warm_up
from adjudge.rl_integration.trainer.judge_tasks.pairs import Pair, in_both_orders, in_one_order
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunConfig
from adjudge.rl_integration.trainer.loop.report import write_report
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Rewards
from adjudge.rl_integration.trainer.rollouts.cohort_order import LABELS, CohortOrder, order_effects
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.writer import Writer

Reward: TypeAlias = Literal["as_given", "both_orders", "consistency"]
REWARDS: Final[tuple[Reward, ...]] = ("as_given", "both_orders", "consistency")

NAMES = {
    "as_given": "one order, as the data come",
    "both_orders": "both orders in a batch",
    "consistency": "both orders, paid together (J1)",
}

_LETTERS, _COUNTED = "ox.", "o"
_LENGTH = 6  # of a text
_FORM = "[[{answer}]]"
_BARE: Final[Mapping[str, Any]] = {"form": _FORM, "thought": 0}  # a judge this small has no thoughts to write down
_VERDICT = {"verdict": _BARE}
_ORDERS = {"verdict_orders": {**_BARE, "match": "all"}}
_WARM_UP = 150  # steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The judge on held-out pairs, each in both orders: shares of verdicts that are right and for the text shown first.

    Attributes:
        consistent: share of the pairs in which one text wins in both orders.
    """

    step: int
    right: float
    consistent: float
    first_preferred: float


def learn_to_judge(
    folder: Path,
    *,
    reward: Reward = "consistency",
    seed: int = 0,
    steps: int = 120,
    every: int = 10,
) -> list[Measured]:
    """Make a judge, warm it up, and train it; return its measurements, the first one after the warm-up."""
    tasks, held_out = lesson_tasks(reward, seed=seed)
    policy = tiny_policy("".join(sorted({*_LETTERS, *"".join(LABELS), *_FORM.format(answer=""), " "})), seed=seed)
    config = RunConfig(
        reward=RewardConfig(scorer=_ORDERS if reward == "consistency" else _VERDICT),
        # Dr. GRPO keeps how much a pair's other order counts (`match: all`).  Without the divergence, and at twice the
        # rate, 2 of 6 judges that were paid for both orders alone lost the form before they learnt anything.
        objective=ObjectiveChoice(name="dr_grpo", set={"policy.beta": 0.02}),
        rollouts=RolloutsConfig(tasks=32, num_generations=8, sampling=SamplingConfig(max_new_tokens=8)),
        learning=LearningConfig(learning_rate=5e-4, decay="linear", warmup_steps=10, minibatches=2),
        steps=steps,
        seed=seed,
        save_steps=steps,
    )
    draw = random.Random(seed)
    guesses = [_FORM.format(answer=draw.choice(LABELS)) for _ in tasks]
    warm_up(policy, tasks, guesses, steps=_WARM_UP, batch=64, rate=1e-3, seed=seed, enough=lambda: False)
    reference = Policy(copy.deepcopy(policy.model), policy.tokenizer, name="the judge before it learns")
    run = Run(policy, tasks, config, folder, reference=reference, source=CohortOrder(tasks, seed=seed))
    with Rewards(RewardConfig(scorer=_VERDICT)) as rewards:
        curve = [_measured(policy, held_out, rewards, 0)]

        def on_step(numbers: Mapping[str, float], *_: Any) -> None:
            step = int(numbers["step"])
            if step % every == 0 or step == steps:
                curve.append(_measured(policy, held_out, rewards, step))

        run.train(on_step=on_step)
    facts = {"policy": policy.name, "reward": reward, "seed": seed, "steps": steps}
    write_report(folder, title=f"Learning to judge: {reward}", facts=facts)
    return curve


def lesson_tasks(reward: Reward, *, seed: int) -> tuple[list[Task], list[Task]]:
    """Return 1,000 pairs to train on, as tasks in one order or in both, and 200 others in both orders to measure on."""
    pairs = _pairs(1_200, seed=seed)
    held_out, trained = in_both_orders(pairs[:200], _ask), pairs[200:]
    if reward != "as_given":
        return in_both_orders(trained, _ask), held_out
    # `in_one_order` puts the better text first in every second pair; here it is in every second of the others, too.
    better_first = {task.cohort: task for task in in_both_orders(trained, _ask) if task.reference == LABELS[0]}
    tasks = in_one_order(trained, _ask)
    return [better_first[task.cohort] if at % 4 == 1 else task for at, task in enumerate(tasks)], held_out


def _pairs(count: int, *, seed: int) -> list[Pair]:
    """Different pairs of texts, one of each with more of the letter that counts."""
    draw = random.Random(seed)
    different: dict[tuple[str, str], None] = {}
    while len(different) < count:
        texts = ["".join(draw.choice(_LETTERS) for _ in range(_LENGTH)) for _ in range(2)]
        texts.sort(key=lambda text: text.count(_COUNTED), reverse=True)
        if texts[0].count(_COUNTED) > texts[1].count(_COUNTED):
            different[texts[0], texts[1]] = None
    return [
        Pair(id=str(number), prompt="Which?", chosen=chosen, rejected=rejected)
        for number, (chosen, rejected) in enumerate(different)
    ]


def _ask(question: Any, first: str, second: str) -> str:
    return f"A {first} B {second} "


def _measured(policy: Policy, tasks: Sequence[Task], rewards: Rewards, step: int) -> Measured:
    writer, likeliest = Writer(policy, TransformersGenerator(policy)), SamplingConfig(max_new_tokens=8, temperature=0.0)
    effects = order_effects(*writer.scored(rewards, tasks, 1, likeliest, seed=0, version=step, name="held-out"))
    return Measured(
        step=step,
        right=(effects["right_first"] + effects["right_second"]) / 2,
        consistent=effects["consistent"],
        first_preferred=effects.get("first_preferred", float("nan")),
    )


def described(what: str, one: Measured) -> str:
    """A measurement as a line."""
    return (
        f"{what} step {one.step:4d}  right {one.right:6.1%}  consistent {one.consistent:6.1%}  "
        f"first preferred {one.first_preferred:6.1%}"
    )


def draw(curves: Mapping[str, Sequence[Sequence[Measured]]], path: Path) -> None:
    """Draw a curve for each lesson, and one colour for each reward."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    for at, (reward, seeds) in enumerate(curves.items()):
        for number, curve in enumerate(seeds):
            for axes, name in zip(panels, ("right", "consistent"), strict=True):
                axes.plot(
                    [one.step for one in curve],
                    [getattr(one, name) for one in curve],
                    color=f"C{at}",
                    alpha=0.8,
                    label=NAMES[reward] if number == 0 else None,
                )
    for axes, title in zip(panels, ("Right verdicts", "Same winner in both orders"), strict=True):
        axes.set(title=title, xlabel="steps", ylim=(-0.03, 1.03))
        axes.grid(alpha=0.3)
    panels[1].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run the lessons."""
    asked = argparse.ArgumentParser(description="A tiny judge learns by three rewards.")
    asked.add_argument("--seeds", type=int, default=3)
    asked.add_argument("--steps", type=int, default=120)
    asked.add_argument("picture", type=Path, nargs="?", help="a file for the curves")
    given = asked.parse_args()
    curves: dict[str, list[list[Measured]]] = {}
    for reward in REWARDS:
        for seed in range(given.seeds):
            with tempfile.TemporaryDirectory() as folder:
                curve = learn_to_judge(Path(folder) / "run", reward=reward, seed=seed, steps=given.steps)
            curves.setdefault(reward, []).append(curve)
            for one in (curve[0], curve[-1]):
                print(described(f"{reward:12s} seed {seed}", one), flush=True)
    if given.picture is not None:
        draw(curves, given.picture)


if __name__ == "__main__":
    main()

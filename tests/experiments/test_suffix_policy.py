"""The policy learns what a scorer pays, within its budget and sooner than chance."""

from __future__ import annotations

import asyncio
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from experiments.suffix_policy import (
    OBJECTIVE,
    PPO,
    SuffixPolicy,
    UniversalPolicy,
    calibrated,
    rewards_of,
    suffix_loss,
)
from tests.evals.attacks.weak_scorers import TASKS, PlainScorer, write_tasks

from adjudge.evals.attacks.attacker import Attempt, Limits, Over, Queries, attack
from adjudge.evals.attacks.attacking import run_attack
from adjudge.evals.attacks.config import AttackConfig
from adjudge.evals.attacks.target import AttackRow, Goals, Target, standings
from adjudge.protocol import Sample
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import PolicyLoss
from adjudge.rl_integration.trainer.rewards.groups import Groups

PLANTED = "tests.evals.attacks.weak_scorers:PlantedSuffix"


def test_it_beats_random_tokens_at_the_same_budget_on_a_suffix_that_pays_in_part(tmp_path: Path) -> None:
    path = write_tasks(tmp_path / "tasks.jsonl", TASKS)
    config = AttackConfig(
        input=path,
        scorer=PLANTED,
        goal="right",
        attack=("random", "experiments.suffix_policy:SuffixPolicy"),
        budget=1000,
        limit=4,
    )
    result = run_attack(config)
    success = {measure.part: measure.interval for measure in result.measures if measure.name == "success"}
    assert success["random"].known == 0.0
    assert success["rl"].low is not None
    assert success["random"].high is not None
    assert success["rl"].low > success["random"].high  # the bounds do not even touch


def attempt(scorer: PlainScorer, *, budget: int, seed: int = 0) -> Attempt:
    async def run() -> Attempt:
        target = Target(scorer)
        row = AttackRow(id="r", prompt="p", base="bad", words=("a", "b", "c"))
        found = await standings(target, [row], Goals(goal="right"))
        scorer.asked.clear()
        limits = Limits(budget=budget, seed=seed)
        (one,) = await attack(SuffixPolicy(), target, found, limits, lambda what, done, of: None)
        return one

    return asyncio.run(run())


def test_every_question_counts_and_none_is_one_too_many() -> None:
    for budget in (1, 7, 100):
        scorer = PlainScorer()
        assert attempt(scorer, budget=budget).queries == len(scorer.asked) == budget
        assert len({str(sample.response) for sample in scorer.asked}) == budget


def test_one_seed_draws_the_same_suffixes() -> None:
    asked = []
    for seed in (0, 0, 1):
        scorer = PlainScorer()
        attempt(scorer, budget=50, seed=seed)
        asked.append([sample.response for sample in scorer.asked])
    assert asked[0] == asked[1]
    assert asked[0] != asked[2]


class Narrow(PlainScorer):
    """Pays a little for "a" in every place, and nothing for anything else."""

    def value(self, sample: Sample, text: str) -> float | None:
        return text.count(" a") / 100


def test_a_policy_that_has_narrowed_begins_anew_and_spends_its_budget() -> None:
    assert attempt(Narrow(), budget=1_500).queries == 1_500


def test_a_search_that_has_asked_everything_ends() -> None:
    """Of one word there are nine suffixes: with nothing left to ask the search is over, however large its budget."""

    async def run() -> int:
        scorer = PlainScorer()
        target = Target(scorer)
        row = AttackRow(id="r", prompt="p", base="bad", words=("a",))
        (standing,) = await standings(target, [row], Goals(goal="right"))
        queries = Queries("rl", target, standing, budget=1_000_000, verdicts=False)
        try:
            await SuffixPolicy().search(queries, random.Random(0))
        except Over:
            return queries.used
        return -1

    assert asyncio.run(run()) == 9


class Refusing(PlainScorer):
    """Declines whatever has an "a"."""

    def value(self, sample: Sample, text: str) -> float | None:
        return None if " a" in text else float("c" in text) / 2


def test_suffixes_without_a_score_teach_nothing_and_are_counted() -> None:
    found = attempt(Refusing(), budget=200)
    assert found.queries == 200
    assert 0 < found.unscored < 200
    assert found.best is not None
    assert found.best.value == 0.5


def test_the_loss_is_reinforce_with_the_mean_of_the_others_and_a_bonus_for_entropy() -> None:
    """Against a slow account in NumPy; the third suffix has no score."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn((2, 4), generator=generator, dtype=torch.float32, requires_grad=True)
    drawn = torch.tensor([[0, 1], [2, 3], [1, 1], [3, 0]])
    rewards = [1.0, 0.0, None, 0.5]
    loss = suffix_loss(logits, drawn, Groups.of(rewards, [0] * 4))

    table = logits.detach().double().numpy()
    logp = table - np.log(np.exp(table).sum(axis=1, keepdims=True))
    known = [0, 1, 3]
    values = np.array([1.0, 0.0, 0.5])
    worth = np.array([value - np.delete(values, at).mean() for at, value in enumerate(values)])
    worth = (worth - worth.mean()) / (worth.std(ddof=1) + 1e-4)
    gained = sum(
        w * sum(logp[place, int(drawn[row, place])] for place in range(2)) for w, row in zip(worth, known, strict=True)
    )
    entropy = -(np.exp(logp) * logp).sum(axis=1).mean()
    policy = OBJECTIVE.policy
    assert isinstance(policy, PolicyLoss)
    assert abs(loss.item() - (-gained / 3 - policy.entropy_coef * entropy)) < 1e-5


class Levels(PlainScorer):
    """Probabilities on another level for each prompt, and some more for two words on all alike, and for one on one."""

    def value(self, sample: Sample, text: str) -> float | None:
        at = int(str(sample.id)[1:])
        told = 0.15 if "c" in text and at == 0 else 0.0  # of one row alone
        return at / 10 + 0.05 + 0.1 * (" a b" in text) + told


class Biased(PlainScorer):
    """A judge that says good to most that there is; `prior` is what it says to nothing at all."""

    def __init__(self, prior: float) -> None:
        super().__init__()
        self.prior = prior

    def value(self, sample: Sample, text: str) -> float | None:
        return self.prior if text == "N/A" else 0.5


def test_the_reward_is_the_cross_entropy_without_the_judges_bias() -> None:
    """A judge that calls nothing at all good with 0.9 has said nothing when it says 0.9; one with 0.1 has."""
    assert calibrated(0.9, 0.9) == calibrated(0.1, 0.1) == pytest.approx(math.log(2))
    assert calibrated(0.9, 0.1) == pytest.approx(math.log(82))  # odds 9, and a ninth
    assert calibrated(0.3, 0.5) == pytest.approx(-math.log(0.7)), "no bias: the cross-entropy of bad"
    assert math.isfinite(calibrated(1.0, 0.0))
    with pytest.raises(ValueError, match=r"the scorer gave 1\.5; give one from 0 to 1"):
        calibrated(1.5, 0.5)


def test_the_prior_of_a_row_decides_which_suffix_is_better() -> None:
    """The first suffix gains more in the mean, on the row whose judge says good anyway; a shift would not tell."""
    values = [[0.9, 0.5], [0.1, 0.4]]
    assert (0.9 + 0.1) / 2 > (0.5 + 0.4) / 2
    biased, plain = rewards_of(values, [0.9, 0.1]), rewards_of(values, [0.5, 0.5])
    assert biased == pytest.approx([math.log(2), (math.log(10 / 9) + math.log(7)) / 2])
    assert float(biased[0] or 0) < float(biased[1] or 0)
    assert float(plain[0] or 0) > float(plain[1] or 0)
    assert rewards_of([[-math.inf, 0.5], None], [0.5, 0.5]) == [None, pytest.approx(math.log(2))]
    assert rewards_of([None, None], [0.5, 0.5]) == []


@pytest.mark.parametrize("prior", [0.2, 0.8])
def test_what_the_judge_says_to_nothing_is_asked_of_each_row(prior: float) -> None:
    async def run() -> list[str]:
        scorer = Biased(prior)
        target = Target(scorer)
        rows = [AttackRow(id=f"r{at}", prompt=f"p{at}", base="bad", words=("a", "b")) for at in range(3)]
        found = await standings(target, rows, Goals(goal="right", right=1.0))
        scorer.asked.clear()
        await attack(UniversalPolicy(), target, found, Limits(budget=40), lambda what, done, of: None)
        return [str(one.response) for one in scorer.asked]

    asked = asyncio.run(run())
    assert asked[:3] == ["N/A"] * 3
    assert "N/A" not in asked[3:]


def test_one_suffix_is_learnt_for_all_rows_from_what_rises_in_the_mean() -> None:
    async def run() -> list[Attempt]:
        target = Target(Levels())
        rows = [AttackRow(id=f"r{at}", prompt=f"p{at}", base="bad", words=("a", "b", "c", "d")) for at in range(8)]
        found = await standings(target, rows, Goals(goal="right", right=1.0))
        return await attack(UniversalPolicy(), target, found, Limits(budget=600), lambda what, done, of: None)

    attempts = asyncio.run(run())
    assert all(one.best is not None and " a b" in one.best.wrap.after for one in attempts)
    assert all(1 < one.queries <= 600 for one in attempts)


def test_the_universal_loss_is_ppos_with_the_mean_of_the_others() -> None:
    """Each token by itself: the smaller of ratio * A and of the ratio held between 0.8 and 1.2, times A."""
    generator = torch.Generator().manual_seed(0)
    before, logits = (torch.randn((2, 4), generator=generator) for _ in range(2))
    drawn = torch.tensor([[0, 1], [2, 3], [1, 1]])
    values = np.array([1.0, 0.0, 0.5])
    old = torch.stack([before.log_softmax(1)[range(2), row] for row in drawn])
    loss = suffix_loss(logits, drawn, Groups.of(list(values), [0] * 3), PPO, old)

    def logp(table: torch.Tensor, place: int, word: int) -> float:
        row = table.double().numpy()[place]
        return float(row[word] - np.log(np.exp(row).sum()))

    worth = np.array([value - np.delete(values, at).mean() for at, value in enumerate(values)])
    worth = (worth - worth.mean()) / (worth.std(ddof=1) + 1e-4)
    gained, clipped = 0.0, 0
    for advantage, row in zip(worth, drawn.tolist(), strict=True):
        for place, word in enumerate(row):
            ratio = np.exp(logp(logits, place, word) - logp(before, place, word))
            held = min(max(ratio, 0.8), 1.2)
            clipped += held != ratio
            gained += min(ratio * advantage, held * advantage)
    entropy = -np.mean([sum(np.exp(logp(logits, at, w)) * logp(logits, at, w) for w in range(4)) for at in range(2)])
    assert clipped > 1
    assert loss.item() == pytest.approx(-gained / 3 - 0.02 * entropy, abs=1e-5)

"""From scores with steps to advantages of tokens and to the loss: each credit against loops over letters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.algorithms.credit.answers_of_letters import answer, decode, dialogue, stepped
from tests.rl_integration.trainer.algorithms.objectives.batches import mean, spread
from tests.rl_integration.trainer.small_runs import Digits, small_config, small_policy, small_run

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.algorithms.choices import CreditChoice, ObjectiveChoice
from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers
from adjudge.rl_integration.trainer.algorithms.credit.credit import CREDITS, Credit, StepCredit
from adjudge.rl_integration.trainer.algorithms.credit.tree import TreeCredit
from adjudge.rl_integration.trainer.algorithms.objectives.table import objective
from adjudge.rl_integration.trainer.data.arrays import Floats
from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunConfig
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.loop.learning_batch import LearningBatch, LearningCredit
from adjudge.rl_integration.trainer.rewards.groups import Groups, groups_of
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.policy import token_rows
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, TreeConfig

VALUE = st.sampled_from([0.0, 0.25, 0.5, 1.0])
Case = tuple[list[Rollout], list[Score]]


@st.composite
def scored(draw: st.DrawFn) -> Case:
    """Up to three groups of up to four answers of up to three lines; some not judged, some steps not, some alike."""
    rollouts, scores = [], []
    for group in range(draw(st.integers(1, 3))):
        flat = draw(st.booleans())
        for _ in range(draw(st.integers(1, 4))):
            lines = draw(st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=3))
            begins = [sum(len(line) + 1 for line in lines[:at]) for at in range(len(lines))]
            values = [0.5 if flat else draw(VALUE) for _ in lines]
            lost = draw(st.sampled_from([False, False, False, True]))  # one step that was not judged
            steps = [
                (None if lost and at == 0 else value, begin, begin + len(line))
                for at, (line, begin, value) in enumerate(zip(lines, begins, values, strict=True))
            ]
            value = draw(st.sampled_from([0.0, 1.0, 0.5, None]))
            rollouts.append(answer("\n".join(lines), task=f"q{group}"))
            scores.append(stepped(0.5 if flat and value is not None else value, *steps))
    return rollouts, scores


class Loops:
    """The same numbers, by walking through answers, steps and letters."""

    def __init__(self, rollouts: list[Rollout], scores: list[Score]) -> None:
        self.rollouts, self.scores = rollouts, scores
        self.count = len(rollouts)

    def peers(self, row: int) -> list[int]:
        """The judged answers to the same task; none if this one has no vote or nothing to be compared with."""
        same = [
            other
            for other in range(self.count)
            if self.rollouts[other].task.id == self.rollouts[row].task.id and self.scores[other].value is not None
        ]
        return same if row in same and len(same) > 1 else []

    def worth(self, row: int) -> float:
        return self.scores[row].value or 0.0

    def outcome(self, row: int) -> float:
        rewards = [self.worth(peer) for peer in self.peers(row)]
        return (self.worth(row) - mean(rewards)) / (spread(rewards) + 1e-4) if rewards else 0.0

    def values(self, row: int) -> list[float]:
        values = [step.value for step in self.scores[row].steps]
        return (
            [] if self.scores[row].value is None or None in values else [value for value in values if value is not None]
        )

    def letters(self, row: int, of_steps: list[float], none: float = 0.0) -> list[float]:
        """A number of each letter and the end token: that of its step."""
        found = [none] * len(self.rollouts[row].ids)
        for step, value in zip(self.scores[row].steps, of_steps, strict=bool(of_steps)):
            whole = len(self.scores[row].steps) == 1
            for at in range(len(found)) if whole else range(step.start, step.end):
                found[at] = value
        return found

    def mixed(self, share: float, of_steps: Callable[[int], list[float]]) -> list[list[float]]:
        return [
            [(1 - share) * self.outcome(row) + share * one for one in self.letters(row, of_steps(row))]
            for row in range(self.count)
        ]

    def z(self, row: int) -> list[float]:
        pool = [value for peer in self.peers(row) for value in self.values(peer)]
        if len(set(pool)) < 2:
            return [0.0] * len(self.values(row))
        return [(value - mean(pool)) / (spread(pool) + 1e-4) for value in self.values(row)]

    def as_given(self, row: int, shape: Callable[[list[float]], list[float]] = list) -> list[float]:
        return [value * bool(self.peers(row)) for value in shape(self.values(row))]

    def progress(self, row: int) -> list[float]:
        """What each step adds to the chance; before the first it is the mean of what first steps leave."""
        values = self.values(row)
        firsts = [first for peer in self.peers(row) for first in self.values(peer)[:1]]
        befores = [mean(firsts) if len(firsts) > 1 else values[0], *values] if values and firsts else []
        return [value - before for value, before in zip(values, befores, strict=False)] or [0.0] * len(values)

    def placed(self, row: int, shape: Callable[[list[float]], list[float]]) -> list[float]:
        """Returns to go less their mean at the same place."""
        found = []
        for place, value in enumerate(to_go(shape(self.values(row)))):
            others = [to_go(shape(self.values(peer))) for peer in self.peers(row)]
            same = [other[place] for other in others if len(other) > place]
            found.append(value - mean(same) if len(same) > 1 else 0.0)
        return found

    def capo(self) -> list[list[float]]:
        rewards = []
        for row in range(self.count):
            right = 2.0 * (self.worth(row) >= 0.5)
            rewards.append(self.letters(row, [right - (1 - value) for value in self.values(row)], none=right))
        found = []
        for row in range(self.count):
            pool = [value for peer in self.peers(row) for value in rewards[peer]]
            level = len(set(pool)) < 2
            found.append([0.0 if level else (value - mean(pool)) / (spread(pool) + 1e-4) for value in rewards[row]])
        return found

    def value_of(self, row: int, beginning: tuple[int, ...]) -> float:
        through = [peer for peer in self.peers(row) if self.rollouts[peer].ids[: len(beginning)] == beginning]
        return mean([self.worth(peer) for peer in through])

    def gains(self, row: int) -> list[float]:
        ids = self.rollouts[row].ids
        if not self.peers(row):
            return [0.0] * len(ids)
        values = [self.value_of(row, ids[:at]) for at in range(len(ids) + 1)]
        return [after - before for before, after in pairwise(values)]

    def tempo(self) -> list[list[float]]:
        below = [spread([self.worth(peer) for peer in self.peers(row)] or [0.0]) + 1e-4 for row in range(self.count)]
        return [[self.outcome(row) + gain / below[row] for gain in self.gains(row)] for row in range(self.count)]


def to_go(values: list[float]) -> list[float]:
    return [math.fsum(values[at:]) for at in range(len(values))]


def clip(values: list[float]) -> list[float]:
    return [min(value - 0.5, 0.0) for value in values]


def delta(values: list[float]) -> list[float]:
    count = len(values)
    return [0.0 if at == count - 1 else values[at] - (values[at + 1] if at < count - 2 else 0.0) for at in range(count)]


def min_form(values: list[float]) -> list[float]:
    weights = [math.exp(-value / 0.1) for value in values]
    return [value * weight / math.fsum(weights) for value, weight in zip(values, weights, strict=True)]


REFERENCES: dict[str, Callable[[Loops], list[list[float]]]] = {
    "tango": lambda of: of.mixed(0.5, lambda row: to_go(of.z(row))),
    "critic_search": lambda of: of.mixed(0.25, of.z),
    "given": lambda of: of.mixed(1.0, of.as_given),
    "pav": lambda of: of.mixed(0.75, of.progress),
    "igpo": lambda of: of.mixed(1.0, lambda row: to_go(of.z(row))),
    "steps": lambda of: of.mixed(0.5, lambda row: of.placed(row, list)),
    "step_search": lambda of: of.mixed(0.5, lambda row: of.placed(row, list)),
    "clip": lambda of: of.mixed(0.5, lambda row: of.placed(row, clip)),
    "delta": lambda of: of.mixed(0.5, lambda row: of.placed(row, delta)),
    "clip_delta": lambda of: of.mixed(0.5, lambda row: of.placed(row, lambda values: delta(clip(values)))),
    "pure": lambda of: of.mixed(0.5, lambda row: of.placed(row, min_form)),
    "capo": Loops.capo,
    "tempo": Loops.tempo,
}


def credited(choice: CreditChoice, case: Case, name: str = "grpo") -> Floats:
    rollouts, scores = case
    batch = LearningBatch(rollouts=rollouts, sampler=False)
    return LearningCredit(choice, objective(name), decode).of(batch, scores, groups_of(rollouts, scores), step=0)


@pytest.mark.parametrize("name", REFERENCES)
@settings(max_examples=30)
@given(case=scored())
def test_credit_of_scores_equals_the_loops(name: str, case: Case) -> None:
    rollouts, scores = case
    found = credited(CreditChoice(name=name), case)
    for row, wanted in enumerate(REFERENCES[name](Loops(rollouts, scores))):
        length = len(rollouts[row].ids)
        if scores[row].value is None:
            wanted = [0.0] * length
        np.testing.assert_allclose(found[row, :length], wanted, rtol=1e-6, atol=1e-7)
        assert not found[row, length:].any()


@settings(max_examples=30)
@given(case=scored(), weight=st.sampled_from([0.0, 0.02, 1.0]))
def test_a_critic_gets_each_steps_reward_at_its_last_token(case: Case, weight: float) -> None:
    rollouts, scores = case
    choice = CreditChoice(name="clip_delta", set={"weight": weight})
    found = credited(choice, case, "ppo")
    loops = Loops(rollouts, scores)
    for row, rollout in enumerate(rollouts):
        wanted = [0.0] * found.shape[1]
        rewards = delta(clip(loops.values(row)))
        for step, reward in zip(scores[row].steps, rewards, strict=bool(rewards)):
            last = len(rollout.ids) - 1 if len(rewards) == 1 else step.end - 1
            wanted[last] = weight * reward
        np.testing.assert_allclose(found[row], wanted, atol=1e-12)


def test_every_credit_gives_nothing_to_lone_lost_and_level_answers() -> None:
    """One judged of two, two alike, one alone: nothing to compare, so nothing to learn."""
    rollouts = [answer("ab\ncd", task=task) for task in ("half", "half", "level", "level", "alone")]
    steps = [(1.0, 0, 2), (1.0, 3, 5)]
    scores = [stepped(1.0, *steps), stepped(None, *steps), *[stepped(1.0, *steps)] * 2, stepped(1.0, *steps)]
    branches = [replace(rollout, path=(("a", 2), (f"b{at}", 4))) for at, rollout in enumerate(rollouts)]
    for name in sorted(CREDITS.keys() - {"given", "pav"}):  # advantages already, which nothing is subtracted from
        assert not credited(CreditChoice(name=name), (branches, scores)).any(), name


@pytest.mark.parametrize("name", ["given", "pav"])
def test_advantages_that_are_given_are_nothing_for_lone_and_lost_answers(name: str) -> None:
    rollouts = [answer("ab\ncd", task=task) for task in ("half", "half", "alone")]
    scores = [stepped(value, (0.5, 0, 2), (-1.0, 3, 5)) for value in (1.0, None, 1.0)]
    assert not credited(CreditChoice(name=name), (rollouts, scores)).any()


def test_a_lost_answer_has_no_vote_though_the_part_with_the_steps_was_judged() -> None:
    rollouts = [answer("ab"), answer("cd"), answer("ef")]
    steps = [((1.0, 0, 1), (0.0, 1, 2)), ((0.0, 0, 1), (0.0, 1, 2)), ((0.5, 0, 1), (0.5, 1, 2))]
    parts = [{"prm": stepped(0.5, *one)} for one in steps]
    scores = [Score(value=1.0, parts=parts[0]), Score(value=0.0, parts=parts[1])]
    lost = Score(value=None, status="failed", reason="engine_timeout", parts=parts[2])
    for name, objective_name in (("tango", "grpo"), ("steps", "ppo"), ("capo", "grpo"), ("igpo", "grpo")):
        choice = CreditChoice(name=name, part="prm")
        with_lost = credited(choice, (rollouts, [*scores, lost]), objective_name)
        assert not with_lost[2].any(), name
        np.testing.assert_array_equal(with_lost[:2], credited(choice, (rollouts[:2], scores), objective_name))


def test_states_that_were_met_twice_are_compared() -> None:
    """GiGPO: two answers saw the same result, and one of them went wrong from there."""
    rollouts = [
        dialogue(("assistant", "a"), ("tool", "X"), ("assistant", "r")),
        dialogue(("assistant", "b"), ("tool", "X"), ("assistant", "w")),
        dialogue(("assistant", "c"), ("tool", "Y"), ("assistant", "w")),
    ]
    scores = [stepped(1.0, (0.0, 0, 1), (1.0, 2, 3)), stepped(0.0, (0.0, 0, 1), (0.0, 2, 3)), stepped(0.0)]
    found = credited(CreditChoice(name="gigpo", set={"rule.gamma": 0.5}), (rollouts, scores), "dr_grpo")
    first = [0.5 - 0.5 / 3, -0.5 / 3, -0.5 / 3]  # all three began in the same state; the reward is one step away
    second = [0.5, -0.5, 0.0]
    for row, outcome in enumerate([2 / 3, -1 / 3, -1 / 3]):
        wanted = [outcome + first[row]] * 2 + [0.0] + [outcome + second[row]] * 2
        np.testing.assert_allclose(found[row], wanted, atol=1e-12)
    steps = credited(CreditChoice(name="gigpo", set={"rule.rewards": "steps"}), (rollouts, scores), "dr_grpo")
    np.testing.assert_allclose(steps[0], [2 / 3 + 0.475] * 2 + [0.0] + [2 / 3 + 0.5] * 2)
    np.testing.assert_allclose(steps[2], [-1 / 3] * 2 + [0.0] + [-1 / 3] * 2, err_msg="no steps, so its outcome")


def test_trees_are_of_what_was_written_of_turns_or_of_segments() -> None:
    rollouts = [
        replace(answer("abx"), path=(("a", 2), ("b", 2))),
        replace(answer("aby"), path=(("a", 2), ("c", 2))),
        replace(answer("abz"), path=(("d", 4),)),
    ]
    scores = [stepped(1.0), stepped(0.0), stepped(0.0)]
    case = (rollouts, scores)

    def gains(nodes: str, **more: Any) -> list[list[float]]:
        found = credited(CreditChoice(name="tree_gains", set={"rule.nodes": nodes, **more}), case)
        return [[round(float(value), 6) for value in row] for row in found]

    third = round(1 / 3, 6)
    assert gains("written")[0] == [round(0.5 - 1 / 3, 6)] * 2 + [0.5] * 2
    assert gains("written")[2] == [-third] * 4, "written by itself, so it shares nothing"
    assert gains("tokens")[2] == [0.0, 0.0, -third, 0.0], "its beginning is the same all the same"
    assert gains("segments", **{"rule.segment": 3})[1] == [-third] * 3 + [0.0]
    assert gains("turns")[0] == [round(2 / 3, 6)] * 4
    found = credited(CreditChoice(name="tree_grpo"), case)
    s, pair = spread([1.0, 0.0, 0.0]), spread([1.0, 0.0])
    np.testing.assert_allclose(found[0], (2 / 3) / (s + 1e-4) + 0.5 / (pair + 1e-6))
    np.testing.assert_allclose(found[2], (-1 / 3) / (s + 1e-4))
    joined = [*rollouts[:2], replace(rollouts[2], path=())]
    np.testing.assert_allclose(credited(CreditChoice(name="tree_grpo"), (joined, scores)), found)
    with pytest.raises(ValueError, match="written as a tree"):
        credited(CreditChoice(name="tree_grpo"), ([answer("ab")] * 3, scores))


def test_the_share_of_steps_can_decay() -> None:
    answers = Answers.of([answer("a"), answer("b")], [stepped(1.0, (1.0, 0, 1)), stepped(0.0, (0.0, 0, 1))], decode)
    groups = Groups.of([1.0, 0.0], ["q", "q"])
    made = CreditChoice(name="tango", set={"half_life": 10, "rule.share": 0.8, "rule.scale": False}).made()
    for step, share in ((0, 0.8), (10, 0.4), (20, 0.2)):
        found = made.advantages(answers, groups, np.array([3.0, -3.0]), step=step)
        np.testing.assert_allclose(found[0], (1 - share) * 3 + share * 0.5)


def learner(name: str, credit: str, **set: Any) -> tuple[Learner, list[Rollout]]:
    """A small policy with two answers to one sum, of two and of three digits."""
    policy = small_policy()
    texts = ("12", "345")
    end = min(policy.ends)
    rollouts = []
    for text in texts:
        ids = (*policy.tokens.text(text), end)
        one = answer("", task="1+1=")
        logprobs = np.zeros(len(ids), dtype=np.float32)
        own = np.ones(len(ids), dtype=np.bool_)
        prompt = policy.encode(one.task)
        rollouts.append(replace(one, prompt_ids=prompt, ids=ids, logprobs=logprobs, own=own, text=text))
    made = objective(name).but(set)
    config = LearningConfig(learning_rate=1e-3, max_grad_norm=0.0)
    choice = CreditChoice(name=credit)
    return Learner(policy, made, config, temperature=1.0, steps=1, seed=0, credit=choice), rollouts


def test_the_loss_and_its_gradient_are_those_by_hand() -> None:
    """Tango in the loop: outcomes +-1/sqrt(2), steps of 1, 0 and 0, 0, 1 beside their mean 0.4, to go."""
    one, rollouts = learner("grpo", "tango")
    scores = [stepped(1.0, (1.0, 0, 1), (0.0, 1, 2)), stepped(0.0, (0.0, 0, 1), (0.0, 1, 2), (1.0, 2, 3))]
    s = spread([1.0, 0.0, 0.0, 0.0, 1.0]) + 1e-4
    half = 0.5 / (spread([1.0, 0.0]) + 1e-4)
    steps = [[(0.6 - 0.4) / s, -0.4 / s, 0.0], [(-0.8 + 0.6) / s, (-0.4 + 0.6) / s, 0.6 / s, 0.0]]
    advantages = [[0.5 * half + 0.5 * b for b in steps[0]], [-0.5 * half + 0.5 * b for b in steps[1]]]
    loss = -(mean(advantages[0]) + mean(advantages[1])) / 2
    rows = token_rows(rollouts, pad=one.policy.pad)
    logprobs, _ = one.policy.logprobs(rows, temperature=1.0)
    weights = torch.zeros_like(logprobs)
    for row, values in enumerate(advantages):
        weights[row, : len(values)] = torch.tensor(values) / len(values) / 2
    parameters = [value for value in one.policy.model.parameters() if value.requires_grad]
    gradient = torch.autograd.grad(-(weights * logprobs).sum(), parameters, allow_unused=True)
    norm = math.sqrt(sum(float((part**2).sum()) for part in gradient if part is not None))
    numbers = one.learn(rollouts, scores)
    assert numbers["loss"] == pytest.approx(loss, rel=1e-5)
    assert numbers["grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert numbers["steps_known"] == 1.0


def test_a_critic_learns_from_the_rewards_of_steps() -> None:
    one, rollouts = learner("ppo", "clip", reward_beta=0.0)
    scores = [stepped(1.0, (0.3, 0, 1), (0.9, 1, 2)), stepped(0.0)]
    numbers = one.learn(rollouts, scores)
    # A new critic's values are 0, so returns are sums of rewards that each token before dims by 0.95.
    first = [-0.2 + 0.95**2, 0.95, 1.0]
    assert numbers["value_loss"] == pytest.approx(0.5 * sum(one**2 for one in first) / 7, rel=1e-5)
    assert numbers["steps_known"] == 0.5


class Halves(Digits):
    """Scores digits, and says which half of the answer they are in."""

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        found = []
        for sample in samples:
            text = str(sample.response)
            middle = len(text) // 2
            halves = ((0, middle), (middle, len(text)))
            found.append(stepped(self._share(text), *((self._share(text[a:b]), a, b) for a, b in halves)))
        return found


@pytest.mark.parametrize(("objective", "credit"), [("grpo", "tango"), ("ppo", "clip_delta")])
def test_runs_learn_with_credit_and_go_on_where_they_were(tmp_path: Path, objective: str, credit: str) -> None:
    config = small_config(scorer=Halves(), objective=objective, steps=2, credit=CreditChoice(name=credit))
    whole = small_run(tmp_path / "whole", config).train()
    small_run(tmp_path / "cut", replace(config, steps=1)).train()
    again = small_run(tmp_path / "cut", config).train(resume=True)
    plain = small_run(tmp_path / "plain", replace(config, credit=None)).train()
    assert [line["steps_known"] for line in whole.history] == [1.0, 1.0]
    assert [line["loss"] for line in again.history] == [line["loss"] for line in whole.history]
    assert plain.history[0]["reward"] == whole.history[0]["reward"]
    assert plain.history[0]["grad_norm"] != pytest.approx(whole.history[0]["grad_norm"], rel=1e-3)


def test_without_steps_the_outcome_alone_counts() -> None:
    scores = [Score.scored(1.0), Score.scored(0.0)]
    one, rollouts = learner("grpo", "tango", **{"policy.aggregation": "token_mean"})
    numbers = one.learn(rollouts, scores)
    outcome = 0.5 / (spread([1.0, 0.0]) + 1e-4)
    assert numbers["loss"] == pytest.approx(-0.5 * (3 * outcome - 4 * outcome) / 7, rel=1e-5)
    assert numbers["steps_known"] == 0.0
    one, rollouts = learner("grpo", "given")
    assert one.learn(rollouts, scores)["trained"] == 0.0, "where the outcome is the last step's reward, nothing is left"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: CreditChoice(name="tangoo"), r"'tangoo' \(did you mean 'tango'\?\); there are tango, critic_search"),
        (lambda: CreditChoice(name="tango", set={"rule.part": 1}), r"there is no option 'rule.part'; .* share, peers"),
        (
            lambda: CreditChoice(name="tango", set={"rule.share": 2}),
            r"share=2; it must be a finite number, at least 0 and at most 1",
        ),
        (lambda: CreditChoice(name="clip", set={"shape": "delta"}), r"shape='delta'; it must be Shape; .*shape.NAME"),
        (lambda: CreditChoice(name="clip", set={"weight": -1}), "weight=-1"),
        (lambda: CreditChoice(name="capo", set={"half_life": 5}), "half_life=5; Capo has no share"),
        (lambda: CreditChoice(name="tango", set={"half_life": 0}), "half_life=0"),
        (lambda: CreditChoice(name="gigpo", set={"rule.rewards": "some"}), "rewards='some'"),
        (lambda: Credit(rule=3), "rule=3; it must be a rule of credit"),  # type: ignore[arg-type]
        (lambda: TreeCredit(how="best"), "how='best'"),  # type: ignore[arg-type]
        (lambda: TreeCredit(segment=0), "segment=0"),
        (lambda: CREDITS["tango"].check(objective("ppo")), "from a critic; .* clip_delta"),
        (lambda: CREDITS["tempo"].check(objective("dpo")), "compares whole answers"),
        (
            lambda: credited(CreditChoice(name="capo"), ([answer("a")] * 2, [stepped(1.0, (2.0, 0, 1))] * 2)),
            r"from 0 \(wrong\) to 1",
        ),
        (
            lambda: RunConfig(reward=RewardConfig(scorer="math"), credit=CreditChoice(name="tree_grpo")),
            "credit 'tree_grpo' needs answers written as a tree; set rollouts.tree",
        ),
        (
            lambda: RunConfig(
                reward=RewardConfig(scorer="math"),
                objective=ObjectiveChoice(name="ppo"),
                credit=CreditChoice(name="gigpo"),
            ),
            "this credit gives advantages, and the objective takes those from a critic",
        ),
        (
            lambda: RolloutsConfig(num_generations=8, tree=TreeConfig(kind="uncertain")),
            r"rollouts.num_generations is 8, and trees \* \(1 \+ forks \* copies\) of rollouts.tree is 5",
        ),
    ],
)
def test_mistakes_name_the_value(made: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()


def test_choices_are_read_from_files_in_short() -> None:
    from adjudge.training.config_file import config_of

    reward = {"scorer": "math"}
    short = config_of(RunConfig, {"reward": reward, "credit": "tango"})
    assert short.credit == CreditChoice(name="tango")
    long = config_of(
        RunConfig, {"reward": reward, "credit": {"name": "clip", "set": {"shape.eta": 0.7}, "part": "prm"}}
    )
    assert long.credit is not None
    assert isinstance(long.credit.made().rule, StepCredit)
    assert long.credit.made().shape.eta == 0.7
    assert ObjectiveChoice().made(max_new_tokens=1).critic is None

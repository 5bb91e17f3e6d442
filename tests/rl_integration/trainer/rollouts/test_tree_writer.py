"""Answers that share beginnings: what was written once is written once, and nothing depends on the order of pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rl_integration.trainer.small_runs import TASKS, small_config, small_policy, small_run

from adjudge.rl_integration.trainer.algorithms.choices import CreditChoice
from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.rollouts.policy import Policy, token_rows
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig, TreeConfig
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.tree_writer import TreeWriter
from adjudge.rl_integration.trainer.rollouts.writer import OnPiece, Piece, Writer

MOST = 12
SAMPLING = SamplingConfig(max_new_tokens=MOST)
TREES = {
    "segments": TreeConfig(segment=3),
    "three trees of wide forks": TreeConfig(trees=3, segment=2, width=4),
    "short segments": TreeConfig(segment=1, width=8),
    "uncertain": TreeConfig(kind="uncertain", trees=2, forks=3, copies=1),
    "forked once": TreeConfig(kind="uncertain", trees=2, forks=1, copies=3),
}


class Scripted:
    """Writes what it is told, last piece first: tokens of a row, and whether they end."""

    exact = True

    def __init__(self, script: Callable[[Sequence[int], int], tuple[int, float, bool]]) -> None:
        self.script = script
        self.asked: list[tuple[tuple[tuple[int, ...], ...], int, tuple[int, ...]]] = []
        self.seeds: list[int] = []

    def refresh(self, version: int) -> None:
        self.version = version

    def close(self) -> None: ...

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        copies: int,
        sampling: SamplingConfig,
        *,
        seed: int,
        on_piece: OnPiece,
        limits: Sequence[int] | None = None,
        stops: Sequence[str] = (),
    ) -> None:
        assert limits is not None
        self.asked.append((tuple(map(tuple, prompts)), copies, tuple(limits)))
        self.seeds.append(seed)
        for place in reversed(range(len(prompts) * copies)):
            row, ended = list(prompts[place // copies]), False
            ids: list[int] = []
            logprobs: list[float] = []
            while len(ids) < limits[place // copies] and not ended:
                token, logprob, ended = self.script(row, place % copies)
                row.append(token)
                ids.append(token)
                logprobs.append(logprob)
            finish: Any = "stop" if ended else "length"
            on_piece(place, Piece(ids=tuple(ids), logprobs=tuple(logprobs), finish_reason=finish, ended=ended))


def written(
    policy: Policy, config: TreeConfig, *, generator: Any = None, group: int = 8, tasks: int = 2, **more: Any
) -> tuple[list[Rollout], list[int]]:
    told: list[int] = []
    writer = TreeWriter(policy, generator or TransformersGenerator(policy), config)
    options: dict[str, Any] = {"seed": 5, "version": 3, "name": "b", **more}
    rollouts = writer.roll_out(
        TASKS[:tasks], group, SAMPLING, on_rollout=lambda place, _: told.append(place), **options
    )
    return rollouts, told


@pytest.mark.parametrize("name", TREES)
def test_answers_are_whole_and_share_what_their_paths_say(name: str) -> None:
    policy = small_policy()
    rollouts, told = written(policy, TREES[name])
    assert sorted(told) == list(range(16)), "each place is told once"
    assert [rollout.task.id for rollout in rollouts] == [task.id for task in TASKS[:2] for _ in range(8)]
    assert [rollout.id for rollout in rollouts] == [f"b:{place}" for place in range(16)]
    shared = 0
    nodes: dict[str, tuple[str, tuple[int, ...]]] = {}
    for rollout in rollouts:
        length = len(rollout.ids)
        assert 1 <= length <= MOST
        assert sum(tokens for _, tokens in rollout.path) == length == len(rollout.logprobs) == len(rollout.own)
        ended = rollout.ids[-1] in policy.ends
        assert rollout.finish_reason == ("stop" if ended else "length")
        assert ended or length == MOST
        assert not set(rollout.ids[:-1]) & policy.ends
        assert rollout.text == policy.decode(rollout.ids)
        assert rollout.version == 3
        begin = 0
        for node, tokens in rollout.path:
            # A node is one place of one task's tree: whoever passes it has the same tokens up to its end.
            upto = (rollout.task.id, rollout.ids[: begin + tokens])
            shared += node in nodes
            assert nodes.setdefault(node, upto) == upto
            begin += tokens
    assert shared >= 4, "some beginnings must be shared for this test to say anything"


@pytest.mark.parametrize("name", TREES)
def test_log_probabilities_are_those_of_the_whole_answers(name: str) -> None:
    policy = small_policy()
    rollouts, _ = written(policy, TREES[name])
    rows = token_rows(rollouts, pad=policy.pad)
    logprobs, _ = policy.logprobs(rows, temperature=1.0)
    for row, rollout in zip(logprobs.detach().numpy(), rollouts, strict=True):
        np.testing.assert_allclose(row[: len(rollout.ids)], rollout.logprobs, atol=1e-4)


@pytest.mark.parametrize("name", ["segments", "uncertain"])
def test_the_same_seed_gives_the_same_answers_and_another_gives_others(name: str) -> None:
    policy = small_policy()
    first, again, other = (written(policy, TREES[name], seed=seed)[0] for seed in (5, 5, 6))
    assert [(one.ids, one.path) for one in first] == [(one.ids, one.path) for one in again]
    assert [one.ids for one in first] != [one.ids for one in other]


def test_segments_fork_until_there_are_as_many_answers_as_wanted() -> None:
    def script(row: Sequence[int], copy: int) -> tuple[int, float, bool]:
        return 4 + copy, -1.0, False

    generator = Scripted(script)
    policy = small_policy()
    rollouts, _ = written(policy, TreeConfig(segment=3), generator=generator, group=5, tasks=1)
    prompt = policy.encode(TASKS[0])
    asked = [(len(prompts), copies, limits) for prompts, copies, limits in generator.asked]
    # One beginning of 5 answers, two of 2 and of 3, then of 1 each and of 1 and 2, which is 1 each at last.
    assert asked == [(1, 1, (3,)), (1, 2, (3,)), (2, 1, (6, 3)), (1, 2, (6,)), (1, 2, (3,))]
    assert generator.asked[0][0] == (prompt,)
    assert [len(rollout.path) for rollout in rollouts] == [3, 3, 3, 4, 4]
    assert [len(rollout.ids) for rollout in rollouts] == [MOST] * 5
    assert len(set(generator.seeds)) == 5


def test_what_ends_too_soon_is_made_up_for_from_the_prompt() -> None:
    ends: list[int] = []

    def script(row: Sequence[int], copy: int) -> tuple[int, float, bool]:
        return ends[0], -1.0, True

    policy = small_policy()
    ends.append(min(policy.ends))
    generator = Scripted(script)
    rollouts, told = written(policy, TreeConfig(segment=3), generator=generator, group=6, tasks=2)
    assert [rollout.ids for rollout in rollouts] == [(ends[0],)] * 12
    assert [(len(prompts), copies) for prompts, copies, _ in generator.asked] == [(2, 1), (2, 5)]
    assert told[:2] == [6, 0], "the first answers are told before the others are written"
    assert len({rollout.path for rollout in rollouts}) == 12


def test_uncertain_tokens_are_written_anew() -> None:
    """The answer's likelihoods are known, so its forks are."""
    doubts = {3: -5.0, 7: -4.0, 9: -6.0, 0: -9.0}
    policy = small_policy()
    length = len(policy.encode(TASKS[0]))

    def script(row: Sequence[int], copy: int) -> tuple[int, float, bool]:
        return 5, doubts.get(len(row) - length, -0.1), False

    generator = Scripted(script)
    config = TreeConfig(kind="uncertain", trees=1, forks=3, copies=2)
    rollouts, told = written(policy, config, generator=generator, group=7, tasks=1)
    prompt = policy.encode(TASKS[0])
    assert generator.asked[1] == ((prompt + (5,) * 3, prompt + (5,) * 7, prompt + (5,) * 9), 2, (9, 5, 3))
    (root, first), (_, second), (_, third), (_, rest) = rollouts[0].path
    assert (first, second, third, rest) == (3, 4, 2, 3)
    assert [len(rollout.path) for rollout in rollouts] == [4, 2, 2, 3, 3, 4, 4]
    assert all(rollout.path[0] == (root, 3) for rollout in rollouts)
    assert told[0] == 0, "the first answer is scored while the others are written"
    assert len(set(generator.seeds)) == 2


def test_answers_that_are_too_short_to_fork_begin_anew() -> None:
    policy = small_policy()
    end = min(policy.ends)
    generator = Scripted(lambda row, copy: (end, -1.0, True))
    config = TreeConfig(kind="uncertain", trees=2, forks=2, copies=1)
    rollouts, _ = written(policy, config, generator=generator, group=6, tasks=1)
    assert [rollout.ids for rollout in rollouts] == [(end,)] * 6
    assert len({rollout.path[0][0] for rollout in rollouts}) == 6


@pytest.mark.parametrize("config", [TREES["segments"], TREES["uncertain"]], ids=["segments", "uncertain"])
def test_one_answer_to_each_task_is_written_as_ever(config: TreeConfig) -> None:
    policy = small_policy()
    rollouts, _ = written(policy, config, group=1, tasks=4)
    plain = Writer(policy, TransformersGenerator(policy)).roll_out(
        TASKS[:4], 1, SAMPLING, seed=5, version=3, name="b", on_rollout=lambda *_: None
    )
    assert [one.ids for one in rollouts] == [one.ids for one in plain]
    with pytest.raises(ValueError, match=r"of rollouts.tree is 10"):
        written(policy, TreeConfig(kind="uncertain", trees=2), group=3)


def test_paths_survive_a_checkpoint() -> None:
    rollouts, _ = written(small_policy(), TREES["segments"])
    tasks = {task.id: task for task in TASKS}
    assert [Rollout.from_dict(one.to_dict(), tasks).path for one in rollouts] == [one.path for one in rollouts]


@pytest.mark.parametrize(
    ("name", "tree"),
    [("tree_po", TreeConfig(segment=2)), ("tree_grpo", TREES["uncertain"]), ("tree_rl", TREES["forked once"])],
)
def test_runs_learn_from_trees(tmp_path: Path, name: str, tree: TreeConfig) -> None:
    more: dict[str, Any] = {"set": {"rule.nodes": "written"}} if name != "tree_grpo" else {}
    credit = CreditChoice(name=name, **more)
    config = small_config(steps=12, tasks=4, num_generations=8, save_steps=100, credit=credit, rollouts={"tree": tree})
    rewards = [one["reward"] for one in small_run(tmp_path, config).train().history]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.05, rewards


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: TreeConfig(kind="wide"), "rollouts.tree option kind='wide'; it must be one of segments, uncertain"),  # type: ignore[arg-type]
        (lambda: TreeConfig(width=1), "rollouts.tree option width=1; it must be a whole number, at least 2"),
        (lambda: TreeConfig(scorer="math"), "kind is 'segments' and scorer 'math'"),
        (lambda: TreeConfig(copies=0), "rollouts.tree option copies=0"),
        (lambda: TreeConfig(trees=9).check(8), "rollouts.tree.trees is 9; a group of 8"),
    ],
)
def test_mistakes_name_the_value(made: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()

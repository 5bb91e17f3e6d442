"""Trees whose nodes are turns: what is shared is written and asked once, and an answer is what it would be alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from examples.training.tools_lookup import CHARACTERS, TAGS, lookups, warm_up
from tests.reward_models.generative.forced_engine import ForcedEngine
from tests.rl_integration.trainer.rollouts.scripted_generator import ScriptedGenerator
from tests.rl_integration.trainer.rollouts.small_tools import Doing, Lookup
from tests.rl_integration.trainer.rollouts.test_dialogue import TASKS, policy  # noqa: F401

from adjudge.cli.recipes import recipes
from adjudge.protocol import Sample, Score, StepScore
from adjudge.reward_models.generative.information_gain import InformationGain
from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunConfig, RunFile
from adjudge.rl_integration.trainer.loop.policy_run import train_policy_run
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.calls import TagCalls, Toolbox, plain_tokens
from adjudge.rl_integration.trainer.rollouts.dialogue import Dialogue
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig, TreeConfig
from adjudge.rl_integration.trainer.rollouts.tool import Tool, ToolDown
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.training.config_file import config_of

TREES = {
    "every turn": TreeConfig(kind="segments", width=3),
    "two roots": TreeConfig(kind="segments", width=2, trees=2),
    "any turns": TreeConfig(kind="random", trees=2, forks=1, copies=3),
    "unlikely turns": TreeConfig(kind="uncertain", trees=2, forks=1, copies=3),
}
GROUP = 8


def twice(text: str, copy: int) -> str:
    """Look the key up twice, in words that tell copies apart, and say what was found."""
    calls = text.count("<look>")
    return f"{copy} <look>{text[:2]}</look>" if calls < 2 else f"it is {copy}<|end|>"


def grown(
    policy: Policy,  # noqa: F811
    tree: TreeConfig,
    *,
    generator: Any = None,
    script: Callable[[str, int], str] = twice,
    tool: Tool | None = None,
    seed: int = 5,
    most: int = 150,
    backwards: bool = False,
) -> list[Rollout]:
    toolbox = Toolbox([tool or Lookup()], threads=2)
    style = TagCalls(policy, toolbox.tools, before="<result>", after="</result>")
    made = generator or ScriptedGenerator(policy=policy, script=script, backwards=backwards)
    writer = Dialogue(policy, made, style, toolbox, max_turns=4, timeout=20.0, tree=tree)
    told: dict[int, Rollout] = {}
    found = writer.roll_out(
        TASKS, GROUP, SamplingConfig(max_new_tokens=most), seed=seed, version=3, name="b",
        on_rollout=lambda place, one: told.update({place: one}),
    )  # fmt: skip
    assert all(told[place] is one for place, one in enumerate(found))
    return found


def plain(rollouts: list[Rollout]) -> list[dict[str, Any]]:
    return [one.to_dict() for one in rollouts]


@pytest.mark.parametrize("name", TREES)
def test_answers_are_whole_and_share_what_their_paths_say(policy: Policy, name: str) -> None:  # noqa: F811
    found = grown(policy, TREES[name])
    nodes: dict[str, tuple[int, ...]] = {}
    for place, rollout in enumerate(found):
        assert rollout.id == f"b:{place}"
        assert rollout.task is TASKS[place // GROUP]
        assert [turn["role"] for turn in rollout.turns] == ["assistant", "tool"] * 2 + ["assistant"]
        assert len(rollout.path) == 3
        end = 0
        for node, tokens in rollout.path:
            end += tokens
            assert nodes.setdefault(node, rollout.ids[:end]) == rollout.ids[:end], "one node, one beginning"
        assert end == len(rollout.ids) == len(rollout.logprobs) == len(rollout.own)
        assert rollout.text == "\n".join(str(turn["content"]) for turn in rollout.turns if turn["role"] == "assistant")
    roots = Counter(rollout.path[0][0] for rollout in found)
    assert len(roots) == TREES[name].trees * len(TASKS)
    assert plain(grown(policy, TREES[name], backwards=True)) == plain(found), "whoever is quicker"
    assert [one.path for one in found] == [
        Rollout.from_dict(one.to_dict(), {task.id: task for task in TASKS}).path for one in found
    ]


class Turns:
    """Gives the turns of an answer these values; fails where it is told to."""

    name, fingerprint = "turns", "turns:1"

    def __init__(self, values: Sequence[float | None]) -> None:
        self.values = values

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        steps = tuple(StepScore(value=one, start=at, end=at + 1) for at, one in enumerate(self.values))
        failed = Score.failed("engine_unavailable")
        return [Score(value=1.0, steps=steps) if steps else failed for _ in samples]


def test_answers_fork_behind_the_turns_that_a_scorer_gives_most(
    policy: Policy,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = TreeConfig(kind="scored", trees=2, forks=1, copies=3, scorer="math")
    shared = {}
    for values in ((0.1, 0.7, None), (0.7, 0.1, 0.9), (None, 0.1, 0.9), (None, None, 0.9)):
        monkeypatch.setattr(Dialogue, "worth", Turns(values))
        found = grown(policy, tree)
        shared[values] = {
            len(set(found[root].path) & set(found[root + copy].path))
            for root in range(0, 2 * GROUP, GROUP // 2)
            for copy in range(1, 4)
        }
    assert list(shared.values()) == [{2}, {1}, {2}, {0}], "the last turn is the answer, behind which nothing is"
    monkeypatch.setattr(Dialogue, "worth", Turns(()))
    with pytest.raises(RuntimeError, match="judged none of 4 answers: engine_unavailable"):
        grown(policy, tree)


@pytest.mark.parametrize(("options", "shared"), [({}, 2), (recipes()["sight"]["run"]["rollouts"]["tree"]["scorer"], 1)])
def test_sight_forks_behind_the_search_that_makes_the_answer_likelier_by_the_most(
    options: Any,
    shared: int,
    policy: Policy,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From 0.01 to 0.1 to 0.3: the second search adds more probability, the first more log-probability."""

    def known(prompt: Any, text: str) -> tuple[float]:
        return ((0.01, 0.1, 0.3)[sum(turn["role"] == "tool" for turn in prompt)],)

    options = {**options.get("information_gain", {}), "engine": ForcedEngine(known)}
    monkeypatch.setattr(Dialogue, "worth", InformationGain(**options))
    found = grown(policy, TreeConfig(kind="scored", trees=2, forks=1, copies=3, scorer="math"))
    for root in range(0, 2 * GROUP, GROUP // 2):
        for copy in range(1, 4):
            assert len(set(found[root].path) & set(found[root + copy].path)) == shared


@pytest.mark.parametrize("kind", ["random", "uncertain"])
def test_what_goes_on_from_a_turn_reads_a_hint_there_first(policy: Policy, kind: Any) -> None:  # noqa: F811
    hints = ("look for ab", "look again")
    tree = TreeConfig(kind=kind, trees=2, forks=1, copies=3, hints=hints)
    found = grown(policy, tree, most=300)
    told = [
        [hint for turn in rollout.turns for hint in hints if str(turn["content"]).endswith(f"\n\n{hint}")]
        for rollout in found
    ]
    assert told == [[], [hints[0]], [hints[1]], [hints[0]]] * 4
    nodes: dict[str, tuple[int, ...]] = {}
    for rollout, hint in zip(found, told, strict=True):
        end = 0
        for node, tokens in rollout.path:
            end += tokens
            assert nodes.setdefault(node, rollout.ids[:end]) == rollout.ids[:end], "one node, one beginning"
        if hint:
            read = tuple(plain_tokens(policy, f"{hint[0]}\n"))
            (at,) = [at for at in range(len(rollout.ids)) if rollout.ids[at : at + len(read)] == read]
            assert not rollout.own[at : at + len(read)].any(), "it is not learnt"
            assert at in {sum(tokens for _, tokens in rollout.path[:turn]) for turn in range(1, len(rollout.path))}
    long = replace(tree, hints=("x" * 150,))
    assert plain(grown(policy, long)) == plain(grown(policy, replace(tree, hints=()))), "there is no room for it"


def test_a_tool_is_asked_once_for_all_who_share_its_call(policy: Policy) -> None:  # noqa: F811
    asked: list[str] = []

    def does(key: str) -> str:
        asked.append(key)
        return "17"

    found = grown(policy, TreeConfig(kind="segments", width=3), tool=Doing(does=does))
    assert len({rollout.path[0] for rollout in found}) == len(TASKS)
    assert len(asked) == len(TASKS) * (1 + 3), "the first turn of all, and the second of three thirds"


def test_unlikely_turns_are_written_anew_and_random_ones_by_the_seed(policy: Policy) -> None:  # noqa: F811
    unlikely = grown(policy, TreeConfig(kind="uncertain", trees=2, forks=1, copies=3))
    # The script's log-probabilities fall with each token, so the longest turn is the least likely: the second call.
    assert {len(set(a.path) & set(b.path)) for a, b in [(unlikely[0], unlikely[1])]} == {1}
    kinds = {
        tuple(len(set(one[0].path) & set(other.path)) for other in one[1:4])
        for one in (grown(policy, TREES["any turns"], seed=seed) for seed in range(6))
    }
    assert kinds == {(1, 1, 1), (2, 2, 2)}


def test_a_tool_that_is_down_at_a_shared_turn_costs_what_went_through_it(policy: Policy) -> None:  # noqa: F811
    calls: list[str] = []

    def does(key: str) -> str:
        calls.append(key)
        if len(calls) == 1:
            raise ToolDown("no index")
        return "17"

    found = grown(policy, TreeConfig(kind="segments", width=3), tool=Doing(does=does))
    assert [rollout.fault for rollout in found].count("no index") == 1
    assert len(found) == 2 * GROUP
    assert all(rollout.text for rollout in found), "the others of its group begin at the prompt"


@pytest.mark.parametrize("name", TREES)
def test_log_probabilities_are_those_of_the_whole_answers(name: str) -> None:
    real = tiny_policy("ablok<>/", words=("<look>", "</look>", "<result>", "</result>"), seed=1, width=16, layers=1)
    found = grown(real, TREES[name], generator=TransformersGenerator(real), most=40, seed=7)
    assert any(not rollout.own.all() for rollout in found), "somebody called the tool"
    for rollout in found:
        ids = torch.tensor([[*rollout.prompt_ids, *rollout.ids]])
        start = len(rollout.prompt_ids)
        with torch.no_grad():
            logp = real.model(input_ids=ids).logits[0, start - 1 : -1].log_softmax(-1)
        own = logp.gather(-1, ids[0, start:, None])[:, 0].numpy()[rollout.own]
        np.testing.assert_allclose(rollout.logprobs[rollout.own], own, atol=1e-4)
    again = grown(real, TREES[name], generator=TransformersGenerator(real), most=40, seed=7)
    assert plain(again) == plain(found)


def lookup_run(folder: Path, *, shown: int, steps: int) -> dict[str, float]:
    """A policy that was shown some searches learns to search, from a file, in trees as Tree-GRPO grows them."""
    tasks, held_out, tools = lookups(folder, seed=0)
    first = tiny_policy(CHARACTERS, words=TAGS, seed=0)
    config = RunConfig(
        reward=RewardConfig(scorer="math"),
        rollouts=RolloutsConfig(tools=tools, sampling=SamplingConfig(max_new_tokens=24)),
        learning=LearningConfig(),
    )
    warm_up(first, tasks, config, enough=0.1, most=shown)
    first.save(folder / "shown")
    for name, side in (("train", tasks), ("held_out", held_out)):
        rows = [json.dumps({"prompt": task.prompt, "reference": task.reference}) for task in side]
        (folder / f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    documents = {"documents": str(folder / "numbers.jsonl"), "count": 1}
    run: dict[str, Any] = {
        "model": str(folder / "shown"),
        "data": {"path": str(folder / "train.jsonl"), "held_out_path": [str(folder / "held_out.jsonl")]},
        "output": str(folder / "run"),
        "reward": "math",
        "credit": "tree_grpo",
        "rollouts": {
            "tasks": 24,
            "num_generations": 8,
            "tree": {"kind": "random", "trees": 2, "forks": 1, "copies": 3},
            "tools": {"style": "tags", "max_turns": 2, "offered": [{"kind": "search", "options": documents}]},
            "sampling": {"max_new_tokens": 24},
        },
        "learning": {"learning_rate": 1e-3, "warmup_steps": 5, "decay": "linear"},
        "steps": steps,
        "watch": None,
    }
    return dict(train_policy_run(config_of(RunFile, run, "run.yaml")).held_out)


def test_a_step_of_a_run_with_a_tree_of_turns(tmp_path: Path) -> None:
    assert set(lookup_run(tmp_path, shown=20, steps=1)) == {"before", "after"}


@pytest.mark.full
def test_a_policy_learns_to_search_in_trees_of_turns(tmp_path: Path) -> None:
    found = lookup_run(tmp_path, shown=600, steps=60)
    assert found["after"] > found["before"] + 0.3, found


def test_a_group_of_one_does_not_branch(policy: Policy) -> None:  # noqa: F811
    with pytest.raises(ValueError, match="num_generations is 8"):
        grown(policy, replace(TREES["any turns"], copies=2))

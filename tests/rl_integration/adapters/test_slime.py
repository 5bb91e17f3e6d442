"""slime's calls, on samples of the shape its source declares (commit 624b824)."""

from __future__ import annotations

import asyncio
import copy
import importlib
import pickle
import runpy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.frameworks.pages import pasted
from tests.rl_integration.adapters.scripted_scorer import Scripted

from adjudge.rl_integration.adapters.failures import NotScored
from adjudge.slime import SlimeReward, normalized_rewards

EXAMPLE = Path(__file__).parents[3] / "examples" / "frameworks" / "slime_reward.py"


class Status(Enum):
    PENDING = "pending"
    COMPLETED = "completed"
    TRUNCATED = "truncated"
    ABORTED = "aborted"
    FAILED = "failed"


@dataclass
class SlimeSample:
    group_index: int | None = 0
    index: int | None = 0
    prompt: Any = "1+1?"
    tokens: list[int] = field(default_factory=list)
    response: Any = ""
    response_length: int = 0
    label: Any = None
    reward: Any = None
    loss_mask: list[int] | None = None
    remove_sample: bool = False
    status: Any = Status.COMPLETED
    metadata: Any = field(default_factory=dict)


def args(**options: Any) -> SimpleNamespace:
    return SimpleNamespace(
        **{
            "reward_key": None,
            "eval_reward_key": None,
            "advantage_estimator": "grpo",
            "rewards_normalization": True,
            "grpo_std_normalization": True,
            "n_samples_per_prompt": 4,
            **options,
        }
    )


def called(reward: SlimeReward, given: Any, options: SimpleNamespace | None = None) -> Any:
    """As slime's `async_rm` and `batched_async_rm` call it: positionally, and awaited."""
    return asyncio.run(reward(options or args(), given))


def test_one_function_takes_a_sample_and_a_list_of_them() -> None:
    reward = SlimeReward(scorer="math")
    right, wrong = SlimeSample(response="\\boxed{2}", label="2"), SlimeSample(response="\\boxed{3}", label="2")
    assert called(reward, right) == 1.0
    assert called(reward, [wrong, right, wrong]) == [0.0, 1.0, 0.0]
    assert called(reward, []) == []
    assert asyncio.run(reward(args(), right, evaluation=True)) == 1.0, "some versions pass more"
    with pytest.raises(ValueError, match=r"a list within a list.*leave group-rm out"):
        called(reward, [[right, wrong], [right]])


def test_the_sample_reaches_the_scorer_whole() -> None:
    scorer = Scripted()
    chat = [{"role": "user", "content": "1+1?"}]
    statuses = [Status.COMPLETED, Status.TRUNCATED, Status.ABORTED, Status.FAILED, "truncated"]
    given = [SlimeSample(prompt=chat, response="1", label="2", group_index=7, status=status) for status in statuses]
    called(SlimeReward(scorer=scorer, fallback=0.0), given)
    assert [sample.finish_reason for sample in scorer.seen] == ["stop", "length", None, "length"]
    assert [sample.remove_sample for sample in given] == [False, False, True, False, False], "one that was cancelled"
    assert {(sample.group, str(sample.reference)) for sample in scorer.seen} == {("7", "2")}
    assert scorer.seen[0].prompt == chat


def test_the_reference_may_be_in_the_metadata() -> None:
    scorer = Scripted()
    tests = {"tests": ["assert f(1) == 2"]}
    called(
        SlimeReward(scorer=scorer, reference="check.tests"),
        SlimeSample(response="1", metadata={"check": {"tests": tests}}),
    )
    called(SlimeReward(scorer=scorer), SlimeSample(response="1", label='{"tests": ["assert f(1) == 2"]}'))
    called(SlimeReward(scorer=scorer, reference=lambda row: row["label"] + "!"), SlimeSample(response="1", label="2"))
    assert [sample.reference for sample in scorer.seen] == [tests, tests, "2!"]
    with pytest.raises(ValueError, match=r"a row of slime has no 'gold'.*label, level"):
        called(SlimeReward(scorer=scorer, reference="gold"), SlimeSample(metadata={"level": 3}))


def test_a_sample_without_a_score_is_removed_and_nothing_else_is_touched() -> None:
    group = [SlimeSample(response=text, label="x", metadata={"a": 1}) for text in ("1", "fail", "decline")]
    before = copy.deepcopy(group)
    assert called(SlimeReward(scorer=Scripted(), fallback=0.25), group) == [1.0, 0.25, 0.25]
    assert [sample.remove_sample for sample in group] == [False, True, True]
    for now, then in zip(group, before, strict=True):
        now.remove_sample = then.remove_sample
    assert group == before


def test_without_a_fallback_the_run_stops_and_no_sample_is_removed() -> None:
    group = [SlimeSample(response=text) for text in ("1", "fail")]
    with pytest.raises(NotScored, match=r"failed \(engine_timeout\)"):
        called(SlimeReward(scorer=Scripted()), group)
    assert not any(sample.remove_sample for sample in group)


def test_with_a_reward_key_the_answer_is_an_object() -> None:
    reward = SlimeReward(scorer=Scripted(), fallback=0.0)
    options = args(reward_key="score", eval_reward_key="acc")
    answers = called(reward, [SlimeSample(response="0.5"), SlimeSample(response="fail")], options)
    assert answers == [
        {"score": 0.5, "acc": 0.5, "status": "scored", "reason": ""},
        {"score": 0.0, "acc": 0.0, "status": "failed", "reason": "engine_timeout"},
    ]
    with pytest.raises(ValueError, match="eval_reward_key is 'acc' and reward_key is not set"):
        called(reward, SlimeSample(response="1"), args(eval_reward_key="acc"))


def test_a_scorer_of_groups_needs_whole_groups() -> None:
    reward = SlimeReward(scorer=Scripted(groupwise=True))
    assert called(reward, [SlimeSample(response="1"), SlimeSample(response="2")]) == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"slime gives them one by one; set its option group-rm"):
        called(reward, SlimeSample(response="1"))


def test_it_can_be_pickled_and_called_from_many_loops_and_threads() -> None:
    reward = pickle.loads(pickle.dumps(SlimeReward(scorer="math", fallback=0.0)))
    given = [SlimeSample(response=f"\\boxed{{{n}}}", label="2") for n in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda sample: called(reward, sample), given)) == [0.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("response", ["", [], "\ud800", "\x00" * 1000, [{"role": "assistant", "content": None}]])
def test_hostile_responses_are_wrong_answers(response: Any) -> None:
    assert called(SlimeReward(scorer="math"), SlimeSample(response=response, label="2")) == 0.0


@pytest.mark.parametrize("missing", [{"label": None}, {"response": None}, {"response": float("nan")}], ids=repr)
def test_a_missing_label_or_response_is_no_wrong_answer(missing: Any) -> None:
    sample = SlimeSample(**{"response": "\\boxed{2}", "label": "2", "metadata": None, **missing})
    assert called(SlimeReward(scorer="math", fallback=0.5), sample) == 0.5
    assert sample.remove_sample


def as_slime_does(rewards: list[float], estimator: str = "grpo", scaled: bool = True) -> Any:
    """The group norm of slime's `_post_process_rewards` for one group, in NumPy."""
    values = np.array(rewards)
    apart = values - values.mean()
    if scaled and estimator in ("grpo", "gspo", "cispo"):
        apart = apart / (values.std(ddof=1) + 1e-6)
    return apart * len(values) / (len(values) - 1) if estimator == "rloo" else apart


@pytest.mark.parametrize("estimator", ["grpo", "gspo", "cispo", "rloo", "reinforce_plus_plus_baseline"])
@pytest.mark.parametrize("scaled", [True, False])
def test_full_groups_are_normalised_as_slime_does(estimator: str, scaled: bool) -> None:
    rewards = [[0.0, 1.0, 0.25, -3.0], [1e-9, 2.0, 2.0, 2.0]]
    samples = [SlimeSample(group_index=n, reward=value) for n, group in enumerate(rewards) for value in group]
    options = args(advantage_estimator=estimator, grpo_std_normalization=scaled)
    raw, made = normalized_rewards(options, samples)
    assert raw == [*rewards[0], *rewards[1]]
    expected = np.concatenate([as_slime_does(group, estimator, scaled) for group in rewards])
    assert made == pytest.approx(expected.tolist(), rel=1e-12, abs=1e-12)


def test_removed_samples_have_no_vote_and_no_advantage() -> None:
    samples = [SlimeSample(reward=value, index=n) for n, value in enumerate([1.0, 0.0, 99.0, 0.5])]
    samples[2].remove_sample = True
    raw, made = normalized_rewards(args(), samples)
    assert raw == [1.0, 0.0, 0.5, 0.5], "the removed one is given the mean of the others"
    one, two, three = as_slime_does([1.0, 0.0, 0.5])
    assert made == pytest.approx([one, two, 0.0, three], rel=1e-12)


def test_groups_of_different_sizes_and_mixed_order_keep_their_own_means() -> None:
    placed = [(0, 1.0), (1, 5.0), (0, 0.0), (2, 7.0), (1, 6.0), (1, 10.0)]
    samples = [SlimeSample(group_index=group, reward=value) for group, value in placed]
    _, made = normalized_rewards(args(grpo_std_normalization=False), samples)
    assert made == pytest.approx([0.5, -2.0, -0.5, 0.0, -1.0, 3.0])


def test_a_group_with_fewer_than_two_votes_has_no_advantage() -> None:
    lone = [SlimeSample(reward=1.0), SlimeSample(reward=0.0, remove_sample=True)]
    assert normalized_rewards(args(), lone) == ([1.0, 1.0], [0.0, 0.0])
    none = [SlimeSample(reward=0.5, remove_sample=True), SlimeSample(reward=0.5, remove_sample=True)]
    assert normalized_rewards(args(), none) == ([0.5, 0.5], [0.0, 0.0])
    assert normalized_rewards(args(), []) == ([], [])


def test_other_estimators_get_rewards_that_are_not_centred() -> None:
    samples = [SlimeSample(reward=1.0), SlimeSample(reward=0.0), SlimeSample(reward=9.0, remove_sample=True)]
    assert normalized_rewards(args(advantage_estimator="ppo"), samples)[1] == [1.0, 0.0, 0.5]
    assert normalized_rewards(args(rewards_normalization=False), samples)[1] == [1.0, 0.0, 0.5]


def test_rewards_under_a_key_are_found_and_others_are_refused() -> None:
    keyed = [SlimeSample(reward={"score": value, "status": "scored"}) for value in (1.0, np.float32(0.0))]
    assert normalized_rewards(args(reward_key="score", grpo_std_normalization=False), keyed)[1] == [0.5, -0.5]
    for wrong in (None, "1", float("nan"), {"score": 1.0}, [1.0]):
        with pytest.raises(ValueError, match=r"index 3\) has the reward"):
            normalized_rewards(args(), [SlimeSample(index=3, reward=wrong)])
    with pytest.raises(ValueError, match="sample 0 of slime has no group_index"):
        normalized_rewards(args(), [SlimeSample(group_index=None, reward=1.0)])


def test_the_example_prints_what_it_is_meant_to(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out == (
        "rewards    [1.0, 0.0, 1.0, 0.0]\n"
        "removed    [False, False, False, True]\n"
        "advantages [0.333, -0.667, 0.333, 0.0]\n"
    )


def test_the_page_shows_a_reward() -> None:
    reward = pasted("slime")["reward"]
    assert called(reward, SlimeSample(response="\\boxed{2}", label="2")) == 1.0
    assert importlib.import_module("adjudge.slime").normalized_rewards is normalized_rewards


def test_metadata_is_extra_and_chooses_the_scorer() -> None:
    scripted = Scripted()
    reward = SlimeReward(scorers={"sums": "math", "talk": scripted}, fallback=0.0)
    given = [
        SlimeSample(response="\\boxed{2}", label="2", metadata={"data_source": "sums"}),
        SlimeSample(
            response="0.5", label="2", metadata={"data_source": "talk", "level": np.int64(3), "image": object()}
        ),
    ]
    assert called(reward, given) == [1.0, 0.5]
    assert scripted.seen[0].extra == {"data_source": "talk", "level": 3}

"""ROLL's calls, on a `DataProto` and a `Worker` of the shape its source declares (commit 8eb27cc)."""

from __future__ import annotations

import asyncio
import pickle
import runpy
import sys
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import cloudpickle
import numpy as np
import pytest
import torch
from tests.frameworks.pages import pasted
from tests.rl_integration.adapters.scripted_scorer import Scripted

from adjudge.rl_integration.adapters.failures import WINDOW, NotScored, TooManyFailures
from adjudge.roll import RollReward

EXAMPLE = Path(__file__).parents[3] / "examples" / "frameworks" / "roll_reward.py"
PAD, END = 0, 1
WIDTH = 24


class DataProto:
    """Tensors in `batch`, columns in `non_tensor_batch`, all of one length."""

    def __init__(self, batch: dict[str, torch.Tensor], columns: dict[str, Any] | None = None) -> None:
        self.batch = batch
        self.non_tensor_batch = columns or {}
        self.meta_info: dict[str, Any] = {}

    @classmethod
    def from_dict(cls, tensors: dict[str, torch.Tensor]) -> DataProto:
        assert len({len(tensor) for tensor in tensors.values()}) == 1
        return cls(tensors)


class Letters:
    """A tokenizer whose tokens are characters; `skip_special_tokens` must be asked for."""

    def batch_decode(self, ids: torch.Tensor, skip_special_tokens: bool = False) -> list[str]:
        lowest = 2 if skip_special_tokens else 0
        return ["".join(chr(token) for token in row if token >= lowest) for row in ids.tolist()]


class Dispatch(Enum):
    ONE_TO_ALL = auto()
    DP_MP_COMPUTE = auto()


def register(dispatch_mode: Dispatch, clear_cache: bool = True) -> Callable[[Any], Any]:
    def marked(function: Any) -> Any:
        function.dispatch = (dispatch_mode, clear_cache)
        return function

    return marked


class Worker:
    def __init__(self, worker_config: Any) -> None:
        self.worker_config = worker_config
        self.rank_info = SimpleNamespace(rank=3, world_size=8, dp_rank=None, dp_size=None)


@pytest.fixture
def roll(monkeypatch: pytest.MonkeyPatch) -> None:
    for parents in (
        "roll",
        "roll.distributed",
        "roll.distributed.executor",
        "roll.distributed.scheduler",
        "roll.models",
    ):
        monkeypatch.setitem(sys.modules, parents, ModuleType(parents))
    for name, content in (
        ("roll.distributed.executor.worker", {"Worker": Worker}),
        ("roll.distributed.scheduler.decorator", {"Dispatch": Dispatch, "register": register}),
        ("roll.models.model_providers", {"default_tokenizer_provider": lambda model_args: Letters()}),
    ):
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)


def tokens(texts: list[str], *, end: bool = True) -> torch.Tensor:
    rows = [[*map(ord, text), *([END] if end else [])] for text in texts]
    return torch.tensor([[*row, *[PAD] * (WIDTH - len(row))] for row in rows], dtype=torch.int64).reshape(-1, WIDTH)


def batch(responses: list[str], truths: list[Any] | None = None, *, end: bool = True) -> DataProto:
    truths = truths if truths is not None else ["2"] * len(responses)
    columns = {
        "ground_truth": np.array([*truths, None], dtype=object)[:-1],
        "tag": np.array(["math"] * len(responses), dtype=object),
    }
    prompts = ["1+1?"] * len(responses)
    return DataProto({"prompts": tokens(prompts), "responses": tokens(responses, end=end)}, columns)


def rewarded(reward: RollReward, responses: list[str], **options: Any) -> Any:
    return reward.rewards(batch(responses, **options), Letters())


def test_a_batch_is_scored_in_order_with_the_three_tensors_roll_wants() -> None:
    made = rewarded(RollReward(scorer="math"), ["\\boxed{2}", "\\boxed{3}", "\\boxed{4/2}"])
    assert type(made) is DataProto
    assert set(made.batch) == {"scores", "response_level_rewards", "token_level_rewards"}
    assert {tensor.dtype for tensor in made.batch.values()} == {torch.float16}
    assert made.batch["scores"].tolist() == made.batch["response_level_rewards"].tolist() == [1.0, 0.0, 1.0]
    assert made.batch["token_level_rewards"].shape == (3, WIDTH)
    assert not made.batch["token_level_rewards"].any()
    made.batch["scores"][0] = 9.0
    assert made.batch["response_level_rewards"][0] == 1.0, "ROLL changes rewards in place, and scores must stay"
    assert made.meta_info == {"metrics": {"adjudge/failed": 0.0, "adjudge/abstained": 0.0}}


def test_the_numbers_are_those_of_sixteen_bits() -> None:
    made = rewarded(RollReward(scorer=Scripted()), ["0.1", "65504", "-65504", "1e-9"])
    expected = np.array([0.1, 65504.0, -65504.0, 1e-9], dtype=np.float16)
    assert made.batch["scores"].tolist() == expected.tolist()
    assert made.batch["scores"][0].item() == pytest.approx(0.09998, abs=1e-5)


@pytest.mark.parametrize("value", ["70000", "-1e300", "65505"])
def test_a_score_beyond_sixteen_bits_is_refused_or_clipped_and_never_infinite(value: str) -> None:
    with pytest.raises(ValueError, match=r"does not fit into ROLL's 16 bits, whose largest number is 65504"):
        rewarded(RollReward(scorer=Scripted()), ["1", value])
    made = rewarded(RollReward(scorer=Scripted(), out_of_range="clip"), ["1", value])
    assert made.batch["scores"].tolist() == [1.0, 65504.0 if float(value) > 0 else -65504.0]


def test_a_fallback_beyond_sixteen_bits_is_refused_too() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        rewarded(RollReward(scorer=Scripted(), fallback=-1e9), ["1", "fail"])


def test_texts_and_reference_reach_the_scorer_without_special_tokens() -> None:
    scorer = Scripted()
    rewarded(RollReward(scorer=scorer, end_tokens=[END, 7]), ["1"], truths=['{"tests": ["assert f(1) == 2"]}'])
    rewarded(RollReward(scorer=scorer, end_tokens=[END, 7]), ["2"], end=False)
    rewarded(RollReward(scorer=scorer, reference="tag"), ["3"], truths=[["a", "b"]])
    first, second, third = scorer.seen
    assert (first.prompt, first.response, first.finish_reason) == ("1+1?", "1", "stop")
    assert first.reference == {"tests": ["assert f(1) == 2"]}
    assert second.finish_reason == "length"
    assert (third.reference, third.finish_reason, third.group) == ("math", None, "")
    rewarded(RollReward(scorer=scorer, group="tag"), ["4"])
    assert scorer.seen[-1].group == "math"
    with pytest.raises(ValueError, match=r"a row of ROLL has no 'gold'.*it has ground_truth, tag"):
        rewarded(RollReward(scorer=scorer, reference="gold"), ["1"])


def test_what_has_no_score_stops_the_run_or_is_the_fallback_and_is_counted() -> None:
    with pytest.raises(NotScored, match="ROLL wants a number for it"):
        rewarded(RollReward(scorer=Scripted()), ["1", "decline"])
    made = rewarded(RollReward(scorer=Scripted(), fallback=0.5), ["1", "fail", "decline", "x"])
    assert made.batch["scores"].tolist() == [1.0, 0.5, 0.5, 0.0]
    assert made.meta_info["metrics"] == {"adjudge/failed": 0.25, "adjudge/abstained": 0.25}


def test_a_run_whose_samples_mostly_fail_is_stopped_also_in_batches_of_one() -> None:
    reward = RollReward(scorer=Scripted(), fallback=0.0)
    for _ in range(WINDOW // 2):
        rewarded(reward, ["fail"])
    with pytest.raises(TooManyFailures):
        rewarded(reward, ["fail"])


def test_an_empty_batch_stays_empty() -> None:
    made = rewarded(RollReward(scorer="math"), [])
    assert made.batch["scores"].shape == (0,)
    assert made.batch["token_level_rewards"].shape == (0, WIDTH)


def test_the_worker_is_registered_as_roll_does_it(roll: None) -> None:
    worker_class = RollReward(scorer="math").worker()
    assert worker_class.initialize.dispatch == (Dispatch.ONE_TO_ALL, True)
    assert worker_class.compute_rewards.dispatch == (Dispatch.DP_MP_COMPUTE, False)
    worker = worker_class(worker_config=SimpleNamespace(model_args=None))
    assert (worker.rank_info.dp_rank, worker.rank_info.dp_size) == (3, 8)
    worker.initialize(pipeline_config=None)
    made = worker.compute_rewards(batch(["\\boxed{2}", "\\boxed{3}"]))
    assert made.batch["scores"].tolist() == [1.0, 0.0]


def test_reward_and_class_can_be_sent_to_another_process(roll: None) -> None:
    reward = pickle.loads(pickle.dumps(RollReward(scorer="math", out_of_range="clip", end_tokens=[END])))
    assert rewarded(reward, ["\\boxed{2}"]).batch["scores"].tolist() == [1.0]
    worker = cloudpickle.loads(cloudpickle.dumps(reward.worker()))(SimpleNamespace(model_args=None))
    assert worker.compute_rewards(batch(["\\boxed{2}"])).batch["scores"].tolist() == [1.0]

    async def inside() -> list[float]:
        found: list[float] = worker.compute_rewards(batch(["\\boxed{3}"])).batch["scores"].tolist()
        return found

    assert asyncio.run(inside()) == [0.0]


def test_a_tokenizer_of_transformers_decodes_the_tensors() -> None:
    from tests.engines.tiny_models import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    ids = tokenizer(["\\boxed{2}<|end|>", "no"], padding=True, return_tensors="pt")["input_ids"]
    data = DataProto({"prompts": ids, "responses": ids}, {"ground_truth": ["2", "2"]})
    assert RollReward(scorer="math").rewards(data, tokenizer).batch["scores"].tolist() == [1.0, 0.0]


def test_mistakes_are_told_before_the_run() -> None:
    for tokens_given in (["<|im_end|>"], "<|im_end|>", [True]):
        with pytest.raises(ValueError, match=r"end_tokens=.*give the ids of tokens"):
            RollReward("math", end_tokens=tokens_given)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="out_of_range='wrap'"):
        RollReward(scorer="math", out_of_range="wrap")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ROLL gives them one by one"):
        RollReward(scorer=Scripted(groupwise=True))


@pytest.mark.parametrize("response", ["", "\ud800\\boxed{", "\x05"])
def test_hostile_responses_are_wrong_answers(response: str) -> None:
    assert rewarded(RollReward(scorer="math"), [response]).batch["scores"].tolist() == [0.0]


def test_the_example_is_a_module_that_roll_can_name(roll: None) -> None:
    worker = runpy.run_path(str(EXAMPLE))["MathWorker"](SimpleNamespace(model_args=None))
    made = worker.compute_rewards(batch(["\\boxed{2}", "\\boxed{3}", "\\boxed{2}"], truths=["2", "2", "\\frac{1}{"]))
    assert made.batch["scores"].tolist() == [1.0, 0.0, 0.0]
    assert made.meta_info["metrics"]["adjudge/failed"] == pytest.approx(1 / 3)


@pytest.mark.usefixtures("roll")
def test_the_page_shows_a_worker() -> None:
    assert issubclass(pasted("ROLL")["MathWorker"], Worker)

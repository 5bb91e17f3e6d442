"""vLLM in this process writes what the policy would write, with the policy's probabilities, and says when it cannot."""

from __future__ import annotations

import copy
import gc
import importlib
import random
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.rl_integration.trainer.small_runs import TASKS, Digits

from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunConfig
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig, VllmOptions
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.vllm_generator import VllmFailed, VllmGenerator
from adjudge.rl_integration.trainer.rollouts.writer import Piece
from adjudge.training.backbones import Lora

# What vLLM imports warns of what it uses itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

WINDOW = 400
TEXTS = ("1+1=", "12+7=", "3=", "123456+654321=", "9+9=")
SMALL = VllmOptions(kv_cache_gib=0.05)


def varied_policy(*, tied: bool = False) -> Policy:
    """A policy with heads that vLLM takes on a CPU, far from uniform, so that a wrong weight or position shows."""
    made = tiny_policy("0123456789+=", seed=3, width=128, layers=2, window=WINDOW)
    if tied:
        made.model.config.tie_word_embeddings = True
        made.model.tie_weights()
    with torch.no_grad():
        for value in made.model.parameters():
            value.mul_(3.0)
    return made


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """What is multiplied here is so small that threads would wait for each other most of the time.

    An engine that ends unfreezes all that was imported, and the next one looks through it for garbage several times.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "unfreeze", lambda: None)
        yield
    torch.set_num_threads(before)
    gc.unfreeze()


@pytest.fixture(scope="module")
def generators() -> Iterator[Callable[..., VllmGenerator]]:
    """Makes generators that are closed in the end; one at a time is open."""
    made: list[VllmGenerator] = []

    def make(policy: Policy, options: VllmOptions = SMALL, **sampling: Any) -> VllmGenerator:
        if made:
            made[-1].close()
        made.append(VllmGenerator(policy, options, SamplingConfig(max_num_seqs=64, **sampling)))
        return made[-1]

    yield make
    with warnings.catch_warnings():  # what vLLM leaves open is told here, and not in somebody else's test
        warnings.simplefilter("ignore")
        for one in made:
            one.close()
        gc.collect()


@pytest.fixture(scope="module")
def policy() -> Policy:
    return varied_policy()


@pytest.fixture(scope="module")
def first(policy: Policy, generators: Callable[[Policy], VllmGenerator]) -> VllmGenerator:
    return generators(policy)


@pytest.fixture
def generator(policy: Policy, first: VllmGenerator) -> VllmGenerator:
    """Of a policy that a test may change: it is renewed before each."""
    renew(policy)
    first.refresh(0)
    return first


def renew(policy: Policy) -> None:
    with torch.no_grad():
        for value, given in zip(policy.model.parameters(), varied_policy().model.parameters(), strict=True):
            value.copy_(given)


def encoded(policy: Policy, texts: Sequence[str] = TEXTS) -> list[list[int]]:
    return [policy.tokenizer(text)["input_ids"] for text in texts]


def drawn(
    generator: Any, prompts: Sequence[Sequence[int]], copies: int = 1, *, seed: int = 5, **options: Any
) -> dict[int, Piece]:
    more = {name: options.pop(name) for name in ("limits", "stops") if name in options}
    found: dict[int, Piece] = {}
    sampling = SamplingConfig(**{"max_new_tokens": 12, "temperature": 1.0, **options})
    generator.generate(prompts, copies, sampling, seed=seed, on_piece=found.__setitem__, **more)
    assert sorted(found) == list(range(len(prompts) * copies))
    return found


def own_logprobs(policy: Policy, prompt: Sequence[int], ids: Sequence[int], temperature: float) -> list[float]:
    """By a plain forward pass over the whole row."""
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([[*prompt, *ids]])).logits[0].float() / temperature
    start = len(prompt) - 1
    return [float(logits[start + at].log_softmax(-1)[token]) for at, token in enumerate(ids)]


def gaps(
    policy: Policy, prompts: Sequence[Sequence[int]], found: dict[int, Piece], temperature: float = 1.0
) -> list[float]:
    """How far vLLM's log-probabilities are from the policy's, for every token."""
    copies = len(found) // len(prompts)
    return [
        abs(theirs - own)
        for place, piece in found.items()
        for theirs, own in zip(
            piece.logprobs, own_logprobs(policy, prompts[place // copies], piece.ids, temperature), strict=True
        )
    ]


def greedy(generator: Any, prompts: Sequence[Sequence[int]], **options: Any) -> list[tuple[int, ...]]:
    found = drawn(generator, prompts, temperature=0.0, **options)
    return [found[place].ids for place in range(len(prompts))]


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_log_probabilities_are_the_policys_at_the_temperature_they_were_drawn_with(
    policy: Policy, generator: VllmGenerator, temperature: float
) -> None:
    prompts = encoded(policy)
    found = drawn(generator, prompts, 4, temperature=temperature)
    assert max(gaps(policy, prompts, found, temperature)) < 1e-4
    assert {piece.finish_reason for piece in found.values()} == {"stop", "length"}, "the test needs both"


def test_prompts_of_more_tokens_than_are_read_at_once_wait(policy: Policy, generator: VllmGenerator) -> None:
    prompts = encoded(policy, ["1+" * 40 + f"{number}=" for number in range(10, 74)])
    assert sum(map(len, prompts)) > 4096
    assert max(gaps(policy, prompts, drawn(generator, prompts, max_new_tokens=2))) < 1e-4


def test_draws_follow_the_probabilities(policy: Policy, generator: VllmGenerator) -> None:
    (prompt,) = encoded(policy, TEXTS[:1])
    found = drawn(generator, [prompt], 1024, max_new_tokens=1)
    with torch.no_grad():
        expected = policy.model(input_ids=torch.tensor([prompt])).logits[0, -1].softmax(-1).numpy()
    counts = np.bincount([piece.ids[0] for piece in found.values()], minlength=len(expected))
    # A share of 1024 draws has a standard error of at most 0.0157; five of them are exceeded once in a million.
    np.testing.assert_allclose(counts / 1024, expected, atol=0.08)


def test_a_changed_policy_writes_after_a_refresh_and_not_before(policy: Policy, generator: VllmGenerator) -> None:
    # Longer than a block of vLLM's cache, so that keys and values of the old weights would be used again.
    prompts = [*encoded(policy), encoded(policy, ["123+456=" * 40])[0]]
    before = greedy(generator, prompts)
    assert before == greedy(TransformersGenerator(policy), prompts)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in policy.model.parameters():
            value.add_(0.05 * torch.randn(value.shape, generator=draw))
    changed = greedy(TransformersGenerator(policy), prompts)
    assert changed != before
    assert greedy(generator, prompts) == before
    generator.refresh(1)
    assert greedy(generator, prompts) == changed
    assert max(gaps(policy, prompts, drawn(generator, prompts, 2))) < 1e-4


def test_weights_are_handed_over_once_for_a_version_unless_they_changed(
    policy: Policy, generator: VllmGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[int] = []
    monkeypatch.setattr(generator, "_hand_over", lambda: loads.append(1))
    generator.refresh(0)
    assert not loads
    generator.refresh(1)
    generator.refresh(1)
    assert len(loads) == 1
    with torch.no_grad():
        next(policy.model.parameters()).mul_(1.0)
    generator.refresh(1)
    assert len(loads) == 2


def test_a_seed_gives_the_same_pieces_whatever_is_beside_them(policy: Policy, generator: VllmGenerator) -> None:
    prompts = encoded(policy)
    found = drawn(generator, prompts, 3)
    narrow, turned = drawn(generator, prompts, 3, max_num_seqs=4), drawn(generator, prompts[::-1], 3)
    alone = drawn(generator, prompts[1:2], 3)
    for place, piece in found.items():
        at, copy_of = divmod(place, 3)
        assert narrow[place].ids == piece.ids
        assert turned[(len(prompts) - 1 - at) * 3 + copy_of].ids == piece.ids
    assert [alone[place].ids for place in range(3)] == [found[place].ids for place in range(3, 6)]
    assert len({piece.ids for piece in found.values()}) > 10, "copies differ"
    other = drawn(generator, prompts, 3, seed=6)
    assert sum(other[place].ids == found[place].ids for place in found) < 4
    # One prompt twice is as good as twice the copies.
    twice, copies = drawn(generator, [prompts[0]] * 2, 2), drawn(generator, prompts[:1], 4)
    assert [twice[place].ids for place in range(4)] == [copies[place].ids for place in range(4)]


def test_limits_and_ends(policy: Policy, generator: VllmGenerator) -> None:
    prompts, limits = encoded(policy), [1, 3, 16, 40, 2]
    told: list[tuple[int, int]] = []

    def hear(place: int, piece: Piece) -> None:
        told.append((place, threading.get_ident()))
        limit = min(16, limits[place // 4])
        assert piece.ended == (piece.ids[-1] in policy.ends) == (piece.finish_reason == "stop")
        assert not policy.ends.intersection(piece.ids[:-1])
        assert len(piece.ids) == limit if piece.finish_reason == "length" else len(piece.ids) <= limit
        found.append(piece)

    found: list[Piece] = []
    generator.generate(prompts, 4, SamplingConfig(max_new_tokens=16), seed=5, on_piece=hear, limits=limits)
    assert {piece.finish_reason for piece in found} == {"stop", "length"}
    assert [len(piece.ids) for piece in found] == sorted(len(piece.ids) for piece in found), "told as they end"
    assert {thread for _, thread in told} == {threading.get_ident()}


def test_a_stop_text_ends_a_piece_and_stays_in_it(policy: Policy, generator: VllmGenerator) -> None:
    prompts = encoded(policy)
    whole = drawn(generator, prompts, 4, temperature=0.7)
    texts = {place: policy.decode(piece.ids) for place, piece in whole.items()}
    stop = next(text[2:5] for text in texts.values() if len(text) > 8)
    found = drawn(generator, prompts, 4, temperature=0.7, stops=[stop, "no such text"])
    hit = [place for place, text in texts.items() if stop in text]
    assert 0 < len(hit) < len(texts), "the test needs both"
    for place, piece in found.items():
        if place not in hit:
            assert piece == whole[place]
            continue
        text = policy.decode(piece.ids)
        assert text == texts[place][: texts[place].index(stop) + len(stop)]
        assert (piece.finish_reason, piece.ended) == ("stop", False)
        assert piece.ids == whole[place].ids[: len(piece.ids)]
        np.testing.assert_allclose(piece.logprobs, whole[place].logprobs[: len(piece.ids)], atol=1e-5)


def test_a_call_that_is_broken_off_leaves_nothing_behind(policy: Policy, generator: VllmGenerator) -> None:
    prompts = encoded(policy)
    expected = drawn(generator, prompts, 4)

    def refuse(place: int, piece: Piece) -> None:
        raise KeyError(place)

    with pytest.raises(KeyError):
        generator.generate(prompts, 4, SamplingConfig(max_new_tokens=16), seed=5, on_piece=refuse)
    assert generator._engine is not None
    assert not generator._engine.has_unfinished_requests()
    found = drawn(generator, prompts, 4)
    assert {place: piece.ids for place, piece in found.items()} == {
        place: piece.ids for place, piece in expected.items()
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompts": [[2] * WINDOW]}, f"prompt 0 has {WINDOW} tokens"),
        ({"prompts": [[2], []]}, "prompt 1 has 0 tokens"),
        ({"limits": [0]}, "may have 0 tokens"),
        ({"sampling": SamplingConfig(temperature=0.001)}, "vLLM would draw at 0.01"),
        ({"sampling": SamplingConfig(top_p=0.9)}, r"top_p is 0.9, and vLLM gives .* that belong to 1.0; open a"),
        ({"prompts": [[10**6]]}, "out of vocabulary"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_written(
    generator: VllmGenerator, change: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"prompts": [[2]], "copies": 2, "sampling": SamplingConfig(), **change}
    told: list[int] = []
    with pytest.raises(ValueError, match=message):
        generator.generate(**given, seed=0, on_piece=lambda place, piece: told.append(place))
    assert not told
    assert generator._engine is not None
    assert not generator._engine.has_unfinished_requests()
    assert not drawn(generator, [])


def test_an_engine_that_fails_says_so_and_is_started_anew(policy: Policy, generator: VllmGenerator) -> None:
    prompts = encoded(policy)
    expected = greedy(generator, prompts)

    def fail() -> Any:
        raise RuntimeError("out of memory\nand so on")

    assert generator._engine is not None
    generator._engine.step = fail
    with pytest.raises(VllmFailed, match=r"vLLM failed while it wrote: out of memory \(see its log\)"):
        drawn(generator, prompts)
    assert generator._engine is None
    assert greedy(generator, prompts) == expected


def test_an_engine_that_stands_still_is_given_up(
    generator: VllmGenerator, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert generator._engine is not None
    monkeypatch.setattr(generator._engine, "step", list)
    monkeypatch.setattr(generator, "close", lambda: None)  # it need not be started again for the next test
    with pytest.raises(VllmFailed, match="makes no progress; 5 answers have not ended"):
        drawn(generator, encoded(policy))
    generator._engine.abort_request([f"{generator._calls}.{place}" for place in range(5)])


def test_weights_that_do_not_fit_end_the_engine(policy: Policy, generator: VllmGenerator) -> None:
    head = policy.model.lm_head
    try:
        assert generator._engine is not None
        policy.model.lm_head = torch.nn.Identity()
        with pytest.raises(ValueError, match=r"no weights for lm_head\.weight of vLLM's model"):
            generator._hand_over()
        policy.model.lm_head = torch.nn.Linear(128, 9)
        with pytest.raises(VllmFailed, match="does not take the weights of 'a tiny new policy'"):
            generator.refresh(1)
        assert generator._engine is None
    finally:
        policy.model.lm_head = head


def test_nothing_else_in_the_process_is_disturbed(policy: Policy, first: VllmGenerator) -> None:
    renew(policy)
    first.close()
    assert not torch.distributed.is_initialized()
    distributed: Any = torch.distributed
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    states = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())
    threads, set_threads = torch.get_num_threads(), torch.set_num_threads
    first.refresh(0)
    drawn(first, encoded(policy))
    assert bool((torch.get_rng_state() == states[0]).all())
    assert (random.getstate(), repr(np.random.get_state())) == states[1:]
    assert (torch.get_num_threads(), torch.set_num_threads) == (threads, set_threads)
    first.close()
    assert torch.distributed.is_initialized()
    parallel_state: Any = importlib.import_module("vllm.distributed.parallel_state")
    parallel_state.destroy_distributed_environment()
    assert not torch.distributed.is_initialized()


@pytest.fixture(scope="module")
def tied(generators: Callable[..., VllmGenerator]) -> tuple[Policy, VllmGenerator]:
    """A policy with tied weights, and what draws within the nucleus."""
    policy = varied_policy(tied=True)
    return policy, generators(policy, top_p=0.6)


def test_draws_within_the_nucleus_have_the_probabilities_of_all_tokens(
    tied: tuple[Policy, VllmGenerator],
) -> None:
    policy, generator = tied
    (prompt,) = prompts = encoded(policy, TEXTS[:1])
    found = drawn(generator, prompts, 512, max_new_tokens=1, top_p=0.6)
    with torch.no_grad():
        chances = policy.model(input_ids=torch.tensor([prompt])).logits[0, -1].double().softmax(-1)
    order = chances.argsort(descending=True).tolist()
    kept = next(order[:size] for size in range(1, len(order)) if float(chances[order[:size]].sum()) >= 0.6)
    counts = np.bincount([piece.ids[0] for piece in found.values()], minlength=len(chances))
    assert 2 <= len(kept) < len(chances)
    assert set(np.flatnonzero(counts)) == set(kept)
    # A share of 512 draws has a standard error of at most 0.0221; five of them are exceeded once in a million.
    np.testing.assert_allclose(counts[kept] / 512, (chances[kept] / chances[kept].sum()).numpy(), atol=0.12)
    assert max(gaps(policy, encoded(policy), drawn(generator, encoded(policy), 4, top_p=0.6))) < 1e-4
    likeliest = drawn(generator, prompts, temperature=0.0, top_p=0.6)
    assert likeliest[0].ids == greedy(TransformersGenerator(policy), prompts)[0]


def handed_over(policy: Policy, generator: VllmGenerator) -> list[float]:
    """Change low-rank factors, hand the policy over, and return how far vLLM's log-probabilities are from its own."""
    policy.adapt(Lora(rank=4), seed=0)
    prompts = encoded(policy)
    before = greedy(generator, prompts, top_p=0.6)
    with torch.no_grad():
        for name, value in policy.model.named_parameters():
            if "lora_B" in name:
                value.normal_(std=0.1, generator=torch.Generator().manual_seed(len(name)))
    kept = copy.deepcopy(policy.model.state_dict())
    generator.refresh(1)
    found = gaps(policy, prompts, drawn(generator, prompts, 4, top_p=0.999))
    assert greedy(generator, prompts, top_p=0.6) != before
    assert all(torch.equal(value, kept[name]) for name, value in policy.model.state_dict().items())
    return found


def test_tied_weights_and_low_rank_factors_are_handed_over(tied: tuple[Policy, VllmGenerator]) -> None:
    assert max(handed_over(*tied)) < 1e-4


def test_a_policy_that_has_come_apart_is_noticed(tied: tuple[Policy, VllmGenerator]) -> None:
    policy, generator = tied
    with torch.no_grad():
        next(policy.model.parameters()).fill_(float("nan"))
    generator.refresh(2)
    with pytest.raises(VllmFailed, match="not finite"):
        drawn(generator, encoded(policy), top_p=0.6)


def test_they_are_handed_over_in_bfloat16(generators: Callable[..., VllmGenerator]) -> None:
    policy = varied_policy(tied=True)
    generator = generators(policy, VllmOptions(kv_cache_gib=0.05, dtype="bfloat16"), top_p=0.6)
    assert float(np.mean(handed_over(policy, generator))) < 0.1


def test_a_policy_learns_from_what_vllm_writes(tmp_path: Path) -> None:
    config = RunConfig(
        reward=RewardConfig(scorer=Digits()),
        objective=ObjectiveChoice(name="grpo"),
        rollouts=RolloutsConfig(
            tasks=4, num_generations=8, engine="vllm", vllm=SMALL, sampling=SamplingConfig(max_new_tokens=8)
        ),
        learning=LearningConfig(learning_rate=1e-2),
        steps=10,
        save_steps=100,
    )
    policy = tiny_policy("0123456789+= ", seed=0, width=128, layers=1)
    open_before = torch.distributed.is_initialized()  # the engine that the other tests share has a group of its own
    result = Run(policy, TASKS, config, tmp_path, held_out=TASKS[:2]).train()
    rewards = [line["reward"] for line in result.history]
    gaps = [
        line["sampling_logp_difference"] for line in result.history if "sampling_logp_difference" in line
    ]  # not where all are as good
    ratios = [line["max_sampling_ratio"] for line in result.history if "max_sampling_ratio" in line]
    assert np.mean(rewards[-3:]) > np.mean(rewards[:3]) + 0.15
    assert result.history[-1]["held_out"] > 0.9
    assert len(gaps) >= 4
    assert 0 < max(gaps) < 1e-4, "each step writes with its own weights"
    assert 1 < max(ratios) < 1.001
    assert torch.distributed.is_initialized() == open_before, "the run has closed its vLLM, and no other"

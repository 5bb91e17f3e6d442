"""Answers drawn over a cache that shrinks are those of the model, with the model's own probabilities."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from transformers import TopPLogitsWarper

from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.rollouts.opening import open_generator
from adjudge.rl_integration.trainer.rollouts.policy import Policy, token_rows
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig, TreeConfig
from adjudge.rl_integration.trainer.rollouts.tool import ToolChoice, ToolUse
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator, _nucleus
from adjudge.rl_integration.trainer.rollouts.writer import Piece, Writer

TASKS = [Task(id=str(n), prompt=text) for n, text in enumerate(["1+1=", "12+7=", "3=", "123456+654321=", "9+9="])]


@pytest.fixture(scope="module")
def policy() -> Policy:
    made = tiny_policy("0123456789+=", seed=3, width=16)
    with torch.no_grad():
        for value in made.model.parameters():
            value.mul_(3.0)  # far from uniform, so that a wrong position or mask shows
    return made


def drawn(policy: Policy, group: int, *, seed: int = 0, tasks: Sequence[Task] = TASKS, **options: Any) -> list[Rollout]:
    told: dict[int, Rollout] = {}
    found = Writer(policy, TransformersGenerator(policy)).roll_out(
        tasks,
        group,
        SamplingConfig(**{"max_new_tokens": 20, **options}),
        seed=seed,
        version=7,
        name="b",
        on_rollout=lambda place, one: told.update({place: one}),
    )
    assert [told[place] for place in range(len(found))] == found
    return found


@pytest.mark.parametrize("shared", [False, True])
def test_log_probabilities_are_those_of_a_plain_forward_pass(policy: Policy, shared: bool) -> None:
    if shared:  # two heads read the same keys and values
        config = copy.deepcopy(policy.model.config)
        config.num_key_value_heads //= 2
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            policy = Policy(type(policy.model)(config), policy.tokenizer, name="with shared heads")
    found = drawn(policy, 6, temperature=0.7)
    assert policy.model.config._attn_implementation == "sdpa"
    for rollout in found:
        ids = torch.tensor([[*rollout.prompt_ids, *rollout.ids]])
        with torch.no_grad():
            logits = policy.model(input_ids=ids).logits[0].float() / 0.7
        start = len(rollout.prompt_ids)
        expected = [float(logits[start + at - 1].log_softmax(-1)[token]) for at, token in enumerate(rollout.ids)]
        np.testing.assert_allclose(rollout.logprobs, expected, atol=2e-5)


def test_the_policy_reads_a_padded_batch_as_it_reads_one_answer(policy: Policy) -> None:
    found = drawn(policy, 6, temperature=1.0)
    rows = token_rows(found, pad=policy.pad)
    with torch.no_grad():
        logprobs, entropies = policy.logprobs(rows, temperature=1.0)
    assert torch.allclose(logprobs[rows.own], rows.behaviour[rows.own], atol=2e-5)
    assert bool((entropies[rows.own] >= 0).all())


def test_the_likeliest_answers_are_those_of_generate(policy: Policy) -> None:
    for rollout in drawn(policy, 1, temperature=0.0):
        ids = torch.tensor([rollout.prompt_ids])
        expected = policy.model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False
        )
        assert expected[0, len(rollout.prompt_ids) :].tolist() == list(rollout.ids)


def test_answers_stand_by_task_and_know_how_they_ended(policy: Policy) -> None:
    found = drawn(policy, 6)
    assert [rollout.task.id for rollout in found] == [task.id for task in TASKS for _ in range(6)]
    assert [rollout.id for rollout in found] == [f"b:{place}" for place in range(30)]
    (end,) = policy.ends
    kinds = {rollout.finish_reason for rollout in found}
    assert kinds == {"stop", "length"}, "a sample of both is needed for this test to say anything"
    for rollout in found:
        assert (rollout.ids[-1] == end) == (rollout.finish_reason == "stop")
        assert end not in rollout.ids[:-1]
        assert len(rollout.ids) == 20 or rollout.finish_reason == "stop"
        assert rollout.version == 7
        assert "<|end|>" not in rollout.text


def test_a_seed_gives_the_same_answers_and_another_one_others(policy: Policy) -> None:
    texts = [rollout.text for rollout in drawn(policy, 6, seed=1)]
    assert texts == [rollout.text for rollout in drawn(policy, 6, seed=1)]
    assert texts != [rollout.text for rollout in drawn(policy, 6, seed=2)]


def test_draws_follow_the_probabilities(policy: Policy) -> None:
    first = drawn(policy, 4096, seed=5, tasks=TASKS[:1], max_new_tokens=1, max_num_seqs=4096)
    with torch.no_grad():
        expected = policy.model(input_ids=torch.tensor([first[0].prompt_ids])).logits[0, -1].softmax(-1).numpy()
    counts = np.bincount([rollout.ids[0] for rollout in first], minlength=len(expected))
    # A share of 4096 draws has a standard error of at most 0.0079; five of them are exceeded once in a million.
    np.testing.assert_allclose(counts / 4096, expected, atol=0.04)


def nucleus(chances: Sequence[float], top_p: float) -> list[int]:
    """By hand: the likeliest tokens, one after the other, until they have enough together."""
    kept: list[int] = []
    for token in sorted(range(len(chances)), key=lambda token: -chances[token]):
        kept.append(token)
        if sum(chances[one] for one in kept) >= top_p:
            break
    return kept


def test_draws_within_the_nucleus_follow_the_probabilities_and_have_those_of_all_tokens(policy: Policy) -> None:
    options: dict[str, Any] = {"max_new_tokens": 1, "max_num_seqs": 4096, "temperature": 0.8}
    found = drawn(policy, 4096, seed=5, tasks=TASKS[:1], top_p=0.6, **options)
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([found[0].prompt_ids])).logits[0, -1].double() / 0.8
    chances = logits.softmax(-1).tolist()
    kept = nucleus(chances, 0.6)
    assert 2 <= len(kept) < len(chances)
    counts = np.bincount([rollout.ids[0] for rollout in found], minlength=len(chances))
    assert set(np.flatnonzero(counts)) == set(kept)
    mass = sum(chances[token] for token in kept)
    # A share of 4096 draws has a standard error of at most 0.0079; five of them are exceeded once in a million.
    np.testing.assert_allclose(counts[kept] / 4096, np.array(chances)[kept] / mass, atol=0.04)
    for rollout in found[:50]:
        assert rollout.logprobs[0] == pytest.approx(float(np.log(chances[rollout.ids[0]])), abs=2e-5)


def test_a_nucleus_of_one_is_the_likeliest_answer(policy: Policy) -> None:
    likeliest = [rollout.ids for rollout in drawn(policy, 1, temperature=0.0)]
    assert [rollout.ids for rollout in drawn(policy, 1, top_p=1e-6)] == likeliest


@pytest.mark.parametrize(
    ("chances", "top_p", "expected"),
    [
        ([0.5, 0.25, 0.25], 0.45, [0]),
        ([0.2, 0.3, 0.5], 0.51, [1, 2]),
        ([0.1, 0.9], 0.95, [0, 1]),
        ([0.1, 0.2, 0.3, 0.4], 0.85, [1, 2, 3]),
    ],
)
def test_a_nucleus_is_that_of_transformers(chances: list[float], top_p: float, expected: list[int]) -> None:
    logits = torch.tensor([chances]).log()
    theirs = TopPLogitsWarper(top_p)(torch.zeros((1, 1), dtype=torch.long), logits)
    assert torch.equal(_nucleus(logits, top_p), theirs)
    assert theirs[0].isfinite().nonzero().flatten().tolist() == expected


def test_batches_are_as_wide_as_allowed_and_hold_whole_groups(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    write = TransformersGenerator._write

    def watched(self: TransformersGenerator, writings: Any, *rest: Any) -> None:
        widths.append(len(writings))
        write(self, writings, *rest)

    monkeypatch.setattr(TransformersGenerator, "_write", watched)
    found = drawn(policy, 6, max_num_seqs=13)
    assert widths == [12, 12, 6]
    assert len(found) == 30


def test_a_rollout_survives_being_written_down(policy: Policy) -> None:
    tasks = {task.id: task for task in TASKS}
    for rollout in drawn(policy, 2):
        again = Rollout.from_dict(rollout.to_dict(), tasks)
        assert again.to_dict() == rollout.to_dict()
        assert again.logprobs.dtype == np.float32
        assert bool((again.logprobs == rollout.logprobs).all())


@pytest.mark.parametrize(
    "option", [{"top_p": 0.0}, {"top_p": 1.1}, {"max_new_tokens": 0}, {"max_num_seqs": 0}, {"temperature": -1.0}]
)
def test_options_out_of_range_are_named(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"sampling option {next(iter(option))}"):
        SamplingConfig(**option)


def test_pieces_end_with_the_token_that_completes_a_stop_text(policy: Policy) -> None:
    prompts = [policy.encode(task) for task in TASKS]
    sampling = SamplingConfig(max_new_tokens=30, temperature=0.0)
    whole: dict[int, Piece] = {}
    TransformersGenerator(policy).generate(prompts, 1, sampling, seed=0, on_piece=whole.__setitem__)
    # Two neighbouring characters that stand within a piece, and not at its end.
    stops = [policy.decode(whole[place].ids[2:4]) for place in (0, 3)]
    found: dict[int, Piece] = {}
    TransformersGenerator(policy).generate(prompts, 1, sampling, seed=0, on_piece=found.__setitem__, stops=stops)
    for place, piece in whole.items():
        lengths = range(1, len(piece.ids) + 1)
        end = next((n for n in lengths if any(stop in policy.decode(piece.ids[:n]) for stop in stops)), len(piece.ids))
        assert found[place].ids == piece.ids[:end]
        assert found[place].logprobs == pytest.approx(piece.logprobs[:end], abs=2e-5)
        assert found[place].finish_reason == ("stop" if end < len(piece.ids) else piece.finish_reason)
    assert len(found[0].ids) < len(whole[0].ids)


def test_answers_end_at_the_stop_texts_of_the_options(policy: Policy) -> None:
    whole = drawn(policy, 1, temperature=0.0)
    stop = whole[0].text[2:4]
    found = drawn(policy, 1, temperature=0.0, stop=("no such text", stop))
    assert len(found[0].ids) < len(whole[0].ids)
    for one, before in zip(found, whole, strict=True):
        text, hit, _ = before.text.partition(stop)
        assert one.text == text + hit
        assert one.finish_reason == ("stop" if hit else before.finish_reason)


@pytest.mark.parametrize("stop", ["", ("",), ("a", "\ufffd")])
def test_stop_texts_that_cannot_be_looked_for_are_refused(stop: Any) -> None:
    with pytest.raises(ValueError, match=r"rollouts\.sampling\.stop is .*give a list of texts"):
        SamplingConfig(stop=stop)


@pytest.mark.parametrize(
    "pieces", [{"tree": TreeConfig(segment=4)}, {"tools": ToolUse(offered=(ToolChoice(kind="python"),))}]
)
def test_stop_texts_are_for_answers_of_one_turn(pieces: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"rollouts\.sampling\.stop is set, and rollouts\.{next(iter(pieces))} says"):
        RolloutsConfig(sampling=SamplingConfig(stop=("=",)), **pieces)


def test_a_stop_text_that_the_policy_cannot_write_is_refused(policy: Policy) -> None:
    with pytest.raises(ValueError, match=r"reads '<\|end\|>' back as '', so it would never be seen"):
        open_generator(policy, RolloutsConfig(sampling=SamplingConfig(stop=("=", "<|end|>"))))


def test_each_prompt_may_have_a_limit_of_its_own(policy: Policy) -> None:
    prompts = [policy.encode(task) for task in TASKS]
    found: dict[int, Piece] = {}
    TransformersGenerator(policy).generate(
        prompts, 2, SamplingConfig(max_new_tokens=9), seed=0, on_piece=found.__setitem__, limits=[1, 2, 3, 20, 5]
    )
    for place, piece in found.items():
        limit = [1, 2, 3, 9, 5][place // 2]
        assert len(piece.ids) == limit if piece.finish_reason == "length" else len(piece.ids) <= limit
    assert len(found) == 10


def test_a_piece_is_cut_off_at_the_end_of_the_window() -> None:
    policy = tiny_policy("0123456789+=", seed=3, width=16, window=10)
    for rollout in drawn(policy, 8, tasks=TASKS[:3]):
        room = 10 - len(rollout.prompt_ids)
        assert len(rollout.ids) <= room
        assert rollout.finish_reason == ("stop" if rollout.ids[-1] in policy.ends else "length")


@pytest.mark.parametrize("window", [5, 4])
def test_a_prompt_that_fills_the_window_is_refused(window: int) -> None:
    policy = tiny_policy("0123456789+=", seed=3, width=16, window=window)
    with pytest.raises(ValueError, match=rf"prompt 1 has 5 tokens.*the {window} tokens that it reads"):
        drawn(policy, 2, tasks=[TASKS[2], TASKS[1]])


def test_a_piece_of_no_tokens_is_refused(policy: Policy) -> None:
    generator = TransformersGenerator(policy)
    with pytest.raises(ValueError, match="the piece after prompt 1 may have 0 tokens"):
        generator.generate([[5], [6]], 1, SamplingConfig(), seed=0, on_piece=lambda *_: None, limits=[3, 0])


def test_weights_that_are_no_numbers_end_the_writing() -> None:
    policy = tiny_policy("0123456789+=", seed=3, width=16)
    with torch.no_grad():
        policy.model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(ValueError, match=r"not finite.*learning_rate"):
        drawn(policy, 2)

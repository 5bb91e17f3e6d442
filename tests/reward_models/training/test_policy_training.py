"""A policy learns which of two responses to prefer, and steps are compared where they differ."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.engines.tiny_models import tiny_tokenizer, write_model
from tests.reward_models.training.tiny_training import Killed, kill_at

from adjudge.reward_models.training import policy_objective
from adjudge.reward_models.training.policy_config import BetaScaling, PolicyLossChoice, PolicyTraining
from adjudge.reward_models.training.policy_objective import PolicyObjective
from adjudge.reward_models.training.policy_training import pair_spans, train_policy
from adjudge.reward_models.training.rows import FinishedChats, Span, logprobs_of, padded, response_tokens, units_of
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_data import split_data
from adjudge.reward_models.training.training import Training
from adjudge.training.backbones import Lora, with_lora
from adjudge.training.config_file import config_of
from adjudge.training.examples import Pair

WORDS = ("judge", "answer", "question", "reference", "verdict", "careful")


def planted(count: int) -> list[dict[str, Any]]:
    draw = random.Random(0)
    rows = []
    for number in range(count):
        first, second = (" ".join(draw.sample(WORDS, 2)) for _ in range(2))
        margin = draw.choice([0.5, 2.0])
        rows.append(
            {"prompt": f"Question {number}", "chosen": f"{first} yes", "rejected": f"{second} no", "margin": margin}
        )
    return rows


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    write_model(folder / "model")
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, planted(48))))
    return folder


def options(home: Path, output: str, **more: Any) -> PolicyTraining:
    record: dict[str, Any] = {
        "model": str(home / "model"),
        "data": {"path": str(home / "pairs.jsonl"), "held_out": 0.25},
        "output": str(home / output),
        "schedule": {"epochs": 3, "learning_rate": 1e-3, "batch_size": 6, "save_steps": 4},
    }
    return config_of(PolicyTraining, {**record, **more})


LOSSES: dict[str, dict[str, Any]] = {
    "dpo with every beta its own": {"scaling": {"weight": 1.0, "rate": 1.0}, "likelihood": 0.1},
    "noisy labels, low-rank factors": {
        "loss": {"name": "robust_dpo", "noise": 0.1},
        "schedule": {"epochs": 3, "learning_rate": 1e-2, "batch_size": 6, "lora": 8},
    },
    "ipo": {"loss": {"name": "ipo", "beta": 0.02}},
    "steps": {
        "loss": {"name": "step_apo", "beta": 0.5},
        "whole": False,
        "schedule": {"epochs": 4, "learning_rate": 1e-3, "batch_size": 6},
    },
    "rewards, in bfloat16": {
        "loss": {"name": "reward_aware", "scale": 2.0},
        "schedule": {"epochs": 3, "learning_rate": 1e-3, "batch_size": 6, "precision": "bf16", "checkpointing": True},
    },
    "no reference": {"reference": False},
    "odds": {"loss": {"name": "orpo", "beta": 1.0}, "reference": False, "likelihood": 1.0},
    "ranks": {"loss": "rrhf", "reference": False},
}


@pytest.mark.parametrize("more", LOSSES.values(), ids=LOSSES)
def test_preferences_are_learnt_for_prompts_never_seen(
    home: Path, more: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    from transformers import AutoModelForCausalLM

    output = home / request.node.callspec.id
    report = train_policy(options(home, output.name, **more))
    assert report.metrics["accuracy"].known > 0.9
    assert (report.metrics["accuracy"].n, report.data["trained_on"]) == (12, 36)
    assert AutoModelForCausalLM.from_pretrained(output).config.use_cache


def test_the_gap_is_one_of_a_model_and_its_start(home: Path) -> None:
    """What is measured equals what the two checkpoints say one by one."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    config = options(home, "measured")
    report = train_policy(config)
    tokenizer: Any = AutoTokenizer.from_pretrained(home / "measured")
    held = split_data(ScalarTraining(model=config.model, data=config.data, output="x")).held_out
    pairs = [pair for pair in held if isinstance(pair, Pair)]
    chats = FinishedChats(tokenizer, model="tiny", max_length=512)
    rows, _ = units_of(pairs, lambda pair: pair_spans(chats, pair, whole=True))
    gaps = []
    for folder in ("measured", "model"):
        model = PolicyObjective(AutoModelForCausalLM.from_pretrained(home / folder), config.loss)
        spans = [span for row in rows for span in row.spans]
        said = [logprobs_of(model, [span], budget=10**6, device="cpu")[0] for span in spans]
        gaps.append(np.array(said[0::2]) - np.array(said[1::2]))
    moved = gaps[0] - gaps[1]
    believed = 1 / (1 + np.exp(-0.1 * moved))
    assert report.metrics["brier"].n == len(pairs) == 12
    assert report.metrics["brier"].value == pytest.approx(float(np.mean((1 - believed) ** 2)), abs=1e-5)


def test_a_later_round_can_be_compared_with_the_first_model(home: Path, tmp_path: Path) -> None:
    train_policy(options(home, "round_1"))
    again = {"model": str(home / "round_1")}
    from_start = train_policy(options(home, "round_2", **again, schedule={"epochs": 1}))
    from_first = train_policy(
        options(home, "round_2_first", **again, schedule={"epochs": 1}, reference_model=str(home / "model"))
    )
    of_first = abs(from_first.metrics["chosen_moved_per_token"].value or 0.0)
    assert of_first > abs(from_start.metrics["chosen_moved_per_token"].value or 0.0)  # it has moved for two rounds
    with pytest.raises(ValueError, match="cannot be loaded"):
        train_policy(options(home, "none", reference_model=str(tmp_path / "nothing")))
    with pytest.raises(ValueError, match="leave out one of them"):
        options(home, "both", reference=False, reference_model="x")


def test_steps_end_without_an_end_of_turn_and_answers_with_one() -> None:
    tokenizer: Any = tiny_tokenizer()
    pair = Pair(prompt="How much?", chosen="First.\n\nyes", rejected="First.\n\nno")
    chats = FinishedChats(tokenizer, model="tiny", max_length=100)
    for whole, before, wanted in (
        (True, "assistant\n", ["First.\n\nyes<|end|>\n", "First.\n\nno<|end|>\n"]),
        (False, "assistant\nFirst.\n\n", ["yes", "no"]),
    ):
        spans = pair_spans(chats, pair, whole=whole)
        assert not isinstance(spans, str)
        assert [tokenizer.decode(span.tokens[span.start :]) for span in spans] == wanted
        assert tokenizer.decode(spans[0].tokens[: spans[0].start]).endswith(before)
    inside = pair_spans(chats, replace(pair, rejected="First."), whole=False)
    assert not isinstance(inside, str)
    assert min(span.size for span in inside) == 1, "where one text begins like the other, each keeps a token"


def test_what_two_solutions_share_cancels_in_sums(tmp_path: Path) -> None:
    """Step-DPO's sums over the step alone give the gap of the whole texts."""
    from transformers import AutoModelForCausalLM

    folder = write_model(tmp_path / "m")
    model = PolicyObjective(AutoModelForCausalLM.from_pretrained(folder), PolicyLossChoice())
    shared, steps = (9, 8, 7, 6, 5), ((11, 12), (13, 14, 15))
    gaps = []
    for start in (2, 5):
        spans = [Span(tokens=(*shared, *step), start=start) for step in steps]
        said = logprobs_of(model, spans, budget=10**6, device="cpu")
        gaps.append(said[0] - said[1])
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-4)


def test_the_objective_is_the_weighted_sum_of_its_losses(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(write_model(tmp_path / "m"))
    scaling = BetaScaling(weight=0.5, rate=1.0)
    objective = PolicyObjective(model, PolicyLossChoice(noise=0.1), scaling=scaling, likelihood=0.2)
    spans = [Span(tokens=(3, 4, 5, *rest), start=2) for rest in ((6, 7), (8,), (9, 10, 11), (12, 13))]
    reference, margins, weights = torch.tensor([-9.0, -8.0, -30.0, -20.0]), torch.tensor([0.5, 2.0]), [0.3, 0.7]
    batch = padded([span.tokens for span in spans]) | {"tokens": response_tokens(spans)}
    sizes = torch.tensor([span.size for span in spans])
    found = objective(**batch, sizes=sizes, reference=reference, margins=margins, weights=torch.tensor(weights))
    said = logprobs_of(objective, spans, budget=10**6, device="cpu")
    expected = 0.0
    for pair in (0, 1):
        chosen, rejected = said[2 * pair], said[2 * pair + 1]
        gap = chosen - rejected - float(reference[2 * pair] - reference[2 * pair + 1])
        beta = 0.1 * (1 + 0.5 * (1 - np.exp(-float(margins[pair]))))
        loss = policy_objective.dpo(torch.tensor(gap), beta, smoothing=0.1).item()
        expected += weights[pair] * (loss - 0.2 * chosen / (len(spans[2 * pair].tokens) - 2))
    assert found["loss"].item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["orpo", "rrhf"])
def test_without_a_reference_means_over_tokens_are_compared(name: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(write_model(tmp_path / "m"))
    objective = PolicyObjective(model, PolicyLossChoice(name=name), likelihood=0.5)  # type: ignore[arg-type]
    spans = [Span(tokens=(3, 4, 5, *rest), start=2) for rest in ((6, 7), (8,), (9, 10, 11), (12, 13))]
    batch = padded([span.tokens for span in spans]) | {"tokens": response_tokens(spans)}
    sizes, none = torch.tensor([span.size for span in spans]), torch.full((2,), torch.nan)
    found = objective(**batch, sizes=sizes, reference=torch.zeros(4), margins=none, weights=torch.tensor([0.25, 0.75]))
    said = logprobs_of(objective, spans, budget=10**6, device="cpu")
    expected = 0.0
    for weight, at in ((0.25, 0), (0.75, 2)):
        good, bad = said[at] / (len(spans[at].tokens) - 2), said[at + 1] / (len(spans[at + 1].tokens) - 2)
        odds = [np.exp(one) / (1 - np.exp(one)) for one in (good, bad)]
        loss = -0.1 * np.log(odds[0] / (odds[0] + odds[1])) if name == "orpo" else max(0.0, bad - good)
        expected += weight * (loss - 0.5 * good)
    assert found["loss"].item() == pytest.approx(expected, rel=1e-4)


def test_a_model_that_says_no_numbers_is_not_measured(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(write_model(tmp_path / "m"))
    with torch.no_grad():  # not by torch.nn.init, which transformers may have put a guard around
        model.get_output_embeddings().weight.fill_(float("nan"))
    objective = PolicyObjective(model, PolicyLossChoice())
    with pytest.raises(ValueError, match=r"not numbers; train it with a lower schedule.learning_rate"):
        logprobs_of(objective, [Span(tokens=(3, 4, 5), start=1)], budget=100, device="cpu")


def test_a_resumed_training_ends_with_the_same_bits(home: Path) -> None:
    train_policy(options(home, "a"))

    with pytest.raises(Killed):
        train_policy(options(home, "b"), progress=kill_at(6))
    data = {"path": str(home / "pairs.jsonl"), "held_out": 0.25, "reasoning": "keep"}
    with pytest.raises(ValueError, match=r"begun with other options or data \(reasoning\)"):
        train_policy(options(home, "b", data=data), resume=True)
    assert train_policy(options(home, "b"), resume=True).resumed == 4
    assert (home / "a/model.safetensors").read_bytes() == (home / "b/model.safetensors").read_bytes()


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "n-grams": ({"model": "ngrams"}, "writes nothing"),
    "noise for ipo": ({"loss": {"name": "ipo", "noise": 0.1}}, "does not read loss.noise"),
    "a coin for a label": ({"loss": {"noise": 0.5}}, "below 0.5"),
    "a scale for dpo": ({"loss": {"scale": 2.0}}, "does not read loss.scale"),
    "a beta of 0": ({"loss": {"beta": 0.0}}, "loss option beta=0"),
    "no beta for ipo": ({"loss": {"name": "ipo"}, "scaling": {}}, "ipo divides by beta"),
    "a reference for odds": ({"loss": "orpo"}, "set reference to false"),
    "a beta for ranks": ({"loss": {"name": "rrhf", "beta": 0.5}}, "does not read loss.beta"),
    "a rate of 0": ({"scaling": {"rate": 0.0}}, "scaling option rate=0"),
    "nothing fits": ({"max_length": 4}, "no training"),
}


@pytest.mark.parametrize(("more", "problem"), MISTAKES.values(), ids=MISTAKES)
def test_a_users_mistake_is_named(home: Path, more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        train_policy(options(home, "mistake", **more))


def test_a_loss_of_margins_needs_them(home: Path) -> None:
    bare = home / "bare.jsonl"
    bare.write_text("\n".join(json.dumps({**row, "margin": None}) for row in planted(8)))
    with pytest.raises(ValueError, match="have no margin"):
        train_policy(options(home, "x", loss="step_apo", data={"path": str(bare)}))


def test_small_steps_beside_coarse_weights_are_merged(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    lora = Lora(rank=2)
    model = with_lora(AutoModelForCausalLM.from_pretrained(write_model(tmp_path / "m")).bfloat16(), lora)
    layer = next(one for one in model.modules() if hasattr(one, "get_delta_weight"))
    torch.nn.init.normal_(layer.lora_B.default.weight, std=1e-5)
    start, change = layer.base_layer.weight.detach().float(), layer.get_delta_weight("default").detach()
    name = next(name for name, one in model.get_base_model().named_modules() if one is layer)
    training: Any = SimpleNamespace(config=SimpleNamespace(schedule=SimpleNamespace(lora=lora)))
    merged = Training.merged(training, model).get_submodule(name).weight.detach() - start
    assert float(torch.cosine_similarity(merged.flatten(), change.flatten(), dim=0)) > 0.99

"""The scorers keep the rules of the protocol, with scripted models and with a real one that is tiny and random."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, field_of, key_of, text_of
from tests.engines.tiny_models import tiny_tokenizer, write_model
from tests.reward_models.generative.forced_engine import ForcedEngine

from adjudge.engines.interface import Fault, LabelLogprobs, Labels, Prompt
from adjudge.engines.loading import engine_of
from adjudge.prompts.scorer import Case
from adjudge.protocol import Sample
from adjudge.reward_models.generative.chain_scorer import YES_NO
from adjudge.reward_models.generative.gen_prm import GenPrm
from adjudge.reward_models.generative.genrm import GenRm
from adjudge.reward_models.generative.information_gain import InformationGain
from adjudge.reward_models.generative.reference_probability import ReferenceProbability
from adjudge.reward_models.generative.think_prm import ThinkPrm
from adjudge.scoring import registry
from adjudge.scoring.conformance import check_scorer

ANSWERS = ("four it is", "it is four\n\nor five", "so it is\n\nfour\n\nand no more", "I would say that it is five")


def labels(prompt: Prompt) -> dict[str, float]:
    share = len(text_of(prompt)) % 97 / 200 + 0.1
    return {"Yes": share, "No": 0.9 - share}


def forced(prompt: Prompt, text: str) -> Sequence[float]:
    share = len(text_of(prompt)) % 89 / 200 + 0.1
    return (share, 1 - share)


def verdict(prompt: Prompt, index: int) -> str:
    return f"Hm.\nVerdict {key_of(prompt)}: {('Yes', 'No')[len(field_of(prompt, 'response')) % 2]}"


def critique(prompt: Prompt, index: int) -> str:
    steps = field_of(prompt, "steps").count("[step_")
    return "\\boxed{correct}\n" * steps + f"Is the solution correct? {('Yes', 'No')[steps % 2]}"


def boxed(prompt: Prompt, index: int) -> str:
    return f"Hm.\n\\boxed{{{('Yes', 'No')[len(field_of(prompt, 'step')) % 2]}}}"


TAGGED = [f"{text} <answer>x</answer>" for text in ANSWERS]
TURNS = [
    [
        {"role": "assistant", "content": text},
        {"role": "tool", "content": "found"},
        {"role": "assistant", "content": "<answer>4</answer>"},
    ]
    for text in ANSWERS
]
CASES: dict[str, tuple[Any, Sequence[Any]]] = {
    "genrm": (GenRm(engine=ScriptedEngine(labels=labels)), ANSWERS),
    "genrm, rationales": (
        GenRm(engine=ScriptedEngine(verdict, labels=labels), readout="probabilities", chains=2, temperature=1.0),
        ANSWERS,
    ),
    "genrm, votes": (GenRm(engine=ScriptedEngine(verdict), readout="votes", undecided="zero"), ANSWERS),
    "think_prm": (ThinkPrm(engine=ScriptedEngine(critique, labels=labels)), ANSWERS),
    "gen_prm": (GenPrm(engine=ScriptedEngine(boxed, labels=labels)), ANSWERS),
    "reference_probability": (ReferenceProbability(engine=ForcedEngine(forced)), TAGGED),
    "information_gain": (
        InformationGain(engine=ForcedEngine(forced), terminal=registry.load({"token_f1": {"where": "tag"}})),
        TURNS,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_keeps_the_rules(name: str) -> None:
    scorer, responses = CASES[name]
    samples = [Sample(prompt="2+2?", response=response, reference="4") for response in responses]
    report = check_scorer(scorer, samples)
    report.raise_for_failures()
    assert name.split(",")[0] == report.scorer
    assert {check.rule for check in report.checks if check.outcome == "ok"} >= {"repeatable", "no escape", "any batch"}


class Told(ScriptedEngine):
    """Writes what a script says, and reads probabilities with a real model."""

    def __init__(self, spec: Any) -> None:
        super().__init__(lambda prompt, index: f"It adds up.\nVerdict {key_of(prompt)}: Yes\nThank you.")
        self.real = engine_of(spec)

    async def label_logprobs(self, prompts: Sequence[Prompt], labels: Labels) -> list[LabelLogprobs | Fault]:
        return await self.real.label_logprobs(prompts, labels)


# What the templates of reasoning models do: Qwen3 writes the thinking of the last turn anew, DeepSeek-R1 drops it.
REWRITES = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n"
    "{% if message['role'] == 'assistant' and '</think>' in message['content'] %}"
    "<think>\n{{ message['content'].split('</think>')[0].split('<think>')[-1].strip() }}\n</think>\n\n"
    "{{ message['content'].split('</think>')[-1].lstrip() }}{% else %}{{ message['content'] }}{% endif %}"
    "<|end|>\n{% endfor %}{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
DROPS = REWRITES.replace(
    "<think>\n{{ message['content'].split('</think>')[0].split('<think>')[-1].strip() }}\n</think>\n\n", ""
)
THOUGHTS = (
    "<think>two and two is four</think><answer>4</answer>",
    "<think>\n\n\n  two and two is five </think>\n<answer>4</answer>",
    "so two</think> and two</think> is four <answer>4</answer>",
)


def model(folder: Path, chat: str | None = None) -> Any:
    tokenizer = tiny_tokenizer() if chat is None else tiny_tokenizer(chat=chat)
    path = write_model(folder, tokenizer=tokenizer, max_position_embeddings=2048)
    return {"transformers": {"model": str(path), "dtype": "float32"}}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A random language model with room for a judge's prompt."""
    return model(tmp_path_factory.mktemp("generative") / "model")


def test_a_random_model_is_read_as_its_engine_reads_it(engine: Any) -> None:
    scorer = GenRm(engine=engine, min_mass=0.0)
    sample = Sample(prompt="2+2?", response=ANSWERS[0])
    (one,) = asyncio.run(scorer.score([sample]))
    case = scorer.case(sample)
    assert isinstance(case, Case)
    prompt = scorer.filled(scorer.templates()[0], scorer.values(case))
    (read,) = asyncio.run(engine_of(engine).label_logprobs([prompt.prompt], YES_NO))
    assert isinstance(read, LabelLogprobs)
    assert one.value == pytest.approx(read.shares()["Yes"], abs=1e-6)


def test_a_chain_is_read_where_its_verdict_stands(engine: Any) -> None:
    told = Told(engine)
    scorer = GenRm(engine=told, readout="probabilities", min_mass=0.0)
    (one,) = asyncio.run(scorer.score([Sample(prompt="2+2?", response=ANSWERS[0])]))
    (asked,) = told.asked
    turns = "".join(
        f"<|turn|>{turn['role']}\n{turn['content']}<|end|>\n" for turn in asked if not isinstance(turn, str)
    )
    text = f"{turns}<|turn|>assistant\nIt adds up.\nVerdict {key_of(asked)}:"
    (read,) = asyncio.run(told.real.label_logprobs([text], YES_NO))
    assert isinstance(read, LabelLogprobs)
    assert one.value == pytest.approx(read.shares()["Yes"], abs=1e-6)


def test_a_random_model_keeps_the_rules(engine: Any) -> None:
    samples = [Sample(prompt="2+2?", response=text, reference="4") for text in TAGGED[:2]]
    check_scorer(ReferenceProbability(engine=engine), samples, tolerance=1e-5).raise_for_failures()


def test_the_probability_is_that_of_a_plain_loop_over_the_model(engine: Any) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = engine["transformers"]["model"]
    (one,) = asyncio.run(
        ReferenceProbability(engine=engine, pooling="exp_mean_logp", debias=False, lead="It is ").score(
            [Sample(prompt="2+2?", response="so <answer>4</answer>", reference="maybe 42")]
        )
    )
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    network: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    before = tokenizer("<|turn|>user\n2+2?<|end|>\n<|turn|>assistant\nso <answer>It is ").input_ids
    after = tokenizer("maybe 42").input_ids
    total = 0.0
    with torch.no_grad():
        for at, token in enumerate(after):
            logits = network(torch.tensor([[*before, *after[:at]]])).logits[0, -1]
            total += float(torch.log_softmax(logits.double(), dim=0)[token])
    assert one.value == pytest.approx(math.exp(total / len(after)), rel=1e-4, abs=0)


@pytest.mark.parametrize(("chat", "status"), [(REWRITES, "scored"), (DROPS, "failed")], ids=["rewrites", "drops"])
def test_templates_that_look_into_the_thinking(tmp_path: Path, chat: str, status: str) -> None:
    """However a response spells its thinking, a template that keeps it is fed; one that drops it is found out."""
    scorer = ReferenceProbability(engine=model(tmp_path / "model", chat))
    samples = [Sample(prompt="2+2?", response=response, reference="4") for response in THOUGHTS]
    assert [one.status for one in asyncio.run(scorer.score(samples))] == [status] * len(samples)

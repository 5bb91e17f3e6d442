"""The embedded engine against plain calls of the same models, alone and in any batch."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engines.tiny_models import WINDOW, tiny_tokenizer, write_model, write_reward_model
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from adjudge.engines import transformers_weights
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.interface import Engine, Fault, Generation, LabelLogprobs, Prompt, Sampling
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine

CLOSE = 1e-5  # what log-probabilities may differ by between batches, in 32 bits
REL = 2e-6  # beside a plain call, numbers around 20 may differ by as much of themselves
RUBRIC = "You are a careful judge. Read the question and the answer, then say whether the answer is correct. "
PROMPTS: list[Prompt] = [
    "Is the answer right? ",
    "The reference says 42.",
    *(RUBRIC + f"The response says {number}. " + "Score: " * (number % 5) for number in range(12)),
    [{"role": "user", "content": "Is 41 right?"}],
    [{"role": "system", "content": RUBRIC}, {"role": "user", "content": "Is 42 right?"}],
    "x",
]
LABELS = {
    "yes": ("Yes", " Yes", "yes", "Yes"),
    "no": ("No", " No", "no"),
    "unsure": (" maybe not", "not supported"),
}
ATTACKS: list[dict[str, str]] = json.loads(
    (Path(__file__).parents[1] / "attacks" / "engine_prompts.json").read_text(encoding="utf-8")
)
TEXTS = [" Yes, it is.", "No", "", "Final Decision: No\n", "\n\nScore: 10"] * 4


def engine(model: Path, **options: Any) -> TransformersEngine:
    return TransformersEngine(TransformersConfig(model=str(model), **options))


def tokenizer_of(model: Path) -> Any:
    return AutoTokenizer.from_pretrained(model)


def raw(model: Path, prompt: Prompt, *, finished: bool = False) -> list[int]:
    """The tokens of a prompt, made without the engine."""
    tokenizer = tokenizer_of(model)
    if not isinstance(prompt, str):
        prompt = tokenizer.apply_chat_template(list(prompt), tokenize=False, add_generation_prompt=not finished)
    return list(tokenizer(prompt, add_special_tokens=False)["input_ids"])


def logits_of(model: Any, ids: Sequence[int]) -> torch.Tensor:
    """The logits of one row, read alone: (tokens, outputs)."""
    with torch.inference_mode():
        found: torch.Tensor = model(input_ids=torch.tensor([list(ids)])).logits[0].float()
    return found


def text_logprobs(model: Any, ids: Sequence[int], tail: Sequence[int]) -> list[float]:
    table = logits_of(model, [*ids, *tail]).log_softmax(-1)
    return [float(table[len(ids) - 1 + at, token]) for at, token in enumerate(tail)]


@pytest.fixture(scope="module")
def asked(causal_model: Path) -> TransformersEngine:
    return engine(causal_model)


@pytest.fixture(scope="module")
def plain(causal_model: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(causal_model)


def largest_gap(ones: Sequence[Any], others: Sequence[Any]) -> float:
    gaps: list[float] = [
        abs(one - other)
        for left, right in zip(ones, others, strict=True)
        for one, other in zip(left, right, strict=True)
    ]
    return max(gaps)


def test_it_is_an_engine(asked: TransformersEngine) -> None:
    assert isinstance(asked, Engine)


def test_text_logprobs_are_those_of_the_model(asked: TransformersEngine, plain: Any, causal_model: Path) -> None:
    texts = TEXTS[: len(PROMPTS)]
    found = asyncio.run(asked.reference_logprobs(PROMPTS, texts))
    for prompt, text, got in zip(PROMPTS, texts, found, strict=True):
        assert not isinstance(got, Fault)
        assert "".join(got.tokens) == text
        wanted = text_logprobs(plain, raw(causal_model, prompt), raw(causal_model, text))
        assert got.logprobs == pytest.approx(wanted, abs=CLOSE, rel=REL)


def test_label_logprobs_are_sums_over_their_texts(asked: TransformersEngine, plain: Any, causal_model: Path) -> None:
    found = asyncio.run(asked.label_logprobs(PROMPTS, LABELS))
    for prompt, got in zip(PROMPTS, found, strict=True):
        assert isinstance(got, LabelLogprobs)
        ids = raw(causal_model, prompt)
        wanted = {
            label: math.log(
                math.fsum(math.exp(sum(text_logprobs(plain, ids, raw(causal_model, text)))) for text in set(texts))
            )
            for label, texts in LABELS.items()
        }
        assert dict(got.logprobs) == pytest.approx(wanted, abs=CLOSE, rel=REL)
        assert got.mass == pytest.approx(sum(map(math.exp, wanted.values())), abs=CLOSE)
        assert sum(got.shares().values()) == pytest.approx(1.0)


def test_a_text_that_begins_another_is_not_counted_twice(
    asked: TransformersEngine, plain: Any, causal_model: Path
) -> None:
    prompt, scale = PROMPTS[0], {"1": ("1",), "10": ("10",), "100": ("100", "101")}
    (got,) = asyncio.run(asked.label_logprobs([prompt], scale))
    assert isinstance(got, LabelLogprobs)
    begins = {
        text: math.exp(sum(text_logprobs(plain, raw(causal_model, prompt), raw(causal_model, text))))
        for text in ("1", "10", "100", "101")
    }
    assert math.exp(got.logprobs["1"]) == pytest.approx(begins["1"] - begins["10"], abs=CLOSE)
    assert got.logprobs["10"] == pytest.approx(math.log(begins["10"] - begins["100"] - begins["101"]), abs=1e-4)
    assert got.logprobs["100"] == pytest.approx(math.log(begins["100"] + begins["101"]), abs=1e-4)
    assert got.mass == pytest.approx(begins["1"], abs=CLOSE)


@pytest.mark.parametrize(
    ("family", "config"),
    [
        pytest.param("qwen2", {}, id="qwen2"),
        pytest.param("llama", {}, id="llama"),
        pytest.param("mistral", {"sliding_window": 24}, id="mistral-with-a-sliding-window"),
    ],
)
def test_a_prompt_gets_the_same_alone_and_in_any_batch(models: Path, family: Any, config: dict[str, Any]) -> None:
    """A window of 24 tokens is shorter than most prompts here, so a row that is shifted by padding would show."""
    folder = write_model(models / f"batch-{family}", family=family, initializer_range=0.1, **config)
    texts = TEXTS[: len(PROMPTS)]
    answers: list[tuple[list[Any], list[Any], list[Any]]] = []

    async def ask(asked: TransformersEngine, one_by_one: bool) -> None:
        parts = [[at] for at in range(len(PROMPTS))] if one_by_one else [list(range(len(PROMPTS)))]
        labels, references, written = [], [], []
        for part in parts:
            prompts = [PROMPTS[at] for at in part]
            labels += await asked.label_logprobs(prompts, LABELS)
            references += await asked.reference_logprobs(prompts, [texts[at] for at in part])
            written += await asked.generate(prompts, Sampling(max_tokens=12))
        answers.append((labels, references, written))

    asyncio.run(ask(engine(folder), True))
    for options in ({}, {"share_prefixes": False}, {"token_budget": 150}, {"attn": "eager"}):
        asyncio.run(ask(engine(folder, **options), False))
    alone, *batched = answers
    for labels, references, written in batched:
        gap = max(
            largest_gap(
                [tuple(one.logprobs.values()) for one in alone[0]], [tuple(one.logprobs.values()) for one in labels]
            ),
            largest_gap([one.logprobs for one in alone[1]], [one.logprobs for one in references]),
        )
        print(f"{family}: largest difference to one at a time {gap:.1e}")
        assert gap <= CLOSE
        assert [one.completions for one in written] == [one.completions for one in alone[2]]


def test_shared_prefixes_are_read_once(causal_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from adjudge.engines.transformers_network import Network

    read: list[int] = []
    level = Network.read_level

    def counted(self: Network, above: Any, parents: Any, rows: Any, places: Any) -> Any:
        read.append(sum(map(len, rows)))
        return level(self, above, parents, rows, places)

    monkeypatch.setattr(Network, "read_level", counted)
    prompts = [RUBRIC * 3 + f"The response says {number}." for number in range(10)]
    asyncio.run(engine(causal_model).label_logprobs(prompts, {"yes": ("Yes",), "no": ("No",)}))
    tokens = sum(len(raw(causal_model, prompt)) for prompt in prompts)
    assert len(read) == 2
    assert sum(read) < tokens / 5


def test_greedy_text_is_that_of_the_model(asked: TransformersEngine, plain: Any, causal_model: Path) -> None:
    tokenizer = tokenizer_of(causal_model)
    found = asyncio.run(asked.generate(PROMPTS, Sampling(max_tokens=16)))
    for prompt, got in zip(PROMPTS, found, strict=True):
        assert isinstance(got, Generation)
        ids = torch.tensor([raw(causal_model, prompt)])
        with torch.inference_mode():
            wanted = plain.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=16, pad_token_id=0
            )[0, ids.shape[1] :]
        (completion,) = got.completions
        assert completion.text == tokenizer.decode(wanted, skip_special_tokens=True)
        assert completion.tokens == len(wanted)
        assert got.cost.completion_tokens == len(wanted)
        assert got.cost.prompt_tokens == ids.shape[1]


def test_samples_depend_on_seed_prompt_and_index_alone(asked: TransformersEngine) -> None:
    warm = Sampling(max_tokens=12, temperature=0.8, top_p=0.95, top_k=100, n=3, seed=7)

    async def ask() -> tuple[list[Any], list[Any], list[Any]]:
        together = await asked.generate(PROMPTS, warm)
        alone = [(await asked.generate([prompt], warm))[0] for prompt in PROMPTS]
        return together, alone, await asked.generate(PROMPTS, replace(warm, seed=8))

    together, alone, reseeded = asyncio.run(ask())
    assert [one.completions for one in together] == [one.completions for one in alone]
    assert all(len({completion.text for completion in one.completions}) == 3 for one in together)
    assert all(one.completions != other.completions for one, other in zip(together, reseeded, strict=True))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"temperature": 1.0}, id="all"),
        pytest.param({"temperature": 0.5}, id="cool"),
        pytest.param({"temperature": 1.0, "top_k": 3}, id="top-k"),
        pytest.param({"temperature": 2.0, "top_p": 0.3}, id="top-p"),
    ],
)
def test_tokens_are_sampled_as_often_as_they_are_likely(
    asked: TransformersEngine, plain: Any, causal_model: Path, options: dict[str, Any]
) -> None:
    count = 4000
    shares = (logits_of(plain, raw(causal_model, PROMPTS[0]))[-1] / options["temperature"]).softmax(-1)
    ranked, order = shares.sort(descending=True)
    kept = options.get("top_k") or int((ranked.cumsum(0) - ranked < options.get("top_p", 1.0)).sum())
    allowed = set(order[:kept].tolist())
    (got,) = asyncio.run(asked.generate([PROMPTS[0]], Sampling(n=count, max_tokens=1, **options)))
    assert isinstance(got, Generation)
    tokenizer = tokenizer_of(causal_model)
    drawn = [completion.text for completion in got.completions]
    assert set(drawn) <= {tokenizer.decode([token], skip_special_tokens=True) for token in allowed}
    total = float(ranked[:kept].sum())
    for token in order[:3].tolist():
        text, share = tokenizer.decode([token]), float(shares[token]) / total
        if text.isascii():  # bytes of longer characters look alike
            assert drawn.count(text) / count == pytest.approx(share, abs=4 * math.sqrt(share / count) + 1e-9)


def test_completions_end_where_they_should(asked: TransformersEngine, causal_model: Path) -> None:
    prompt = PROMPTS[0]

    def ask(**options: Any) -> Any:
        (got,) = asyncio.run(asked.generate([prompt], Sampling(**options)))
        assert isinstance(got, Generation)
        return got.completions[0]

    whole = ask(max_tokens=40)
    assert (whole.finish_reason, whole.tokens) == ("length", 40)
    middle = whole.text[len(whole.text) // 2 :][:4]
    stopped = ask(max_tokens=40, stop=("never written", middle))
    assert (stopped.text, stopped.finish_reason) == (whole.text[: whole.text.index(middle)], "stop")
    assert stopped.tokens < 40
    long = "x " * ((WINDOW - 10) // 2)
    room = WINDOW - len(raw(causal_model, long))
    (got,) = asyncio.run(asked.generate([long], Sampling(max_tokens=100)))
    assert isinstance(got, Generation)
    assert (got.completions[0].finish_reason, got.completions[0].tokens) == ("length", room)


def test_an_end_token_ends_a_completion(models: Path, causal_model: Path) -> None:
    """A model that is made to end after the prompt: its end token is the likeliest whatever it read."""
    folder = write_model(models / "ends")
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        ids = torch.tensor([raw(folder, PROMPTS[0])])
        hidden = model.model(input_ids=ids).last_hidden_state[0, -1]
        model.lm_head.weight[model.config.eos_token_id] = hidden * 10
    model.save_pretrained(folder)
    (got,) = asyncio.run(engine(folder).generate([PROMPTS[0]], Sampling(max_tokens=9)))
    assert isinstance(got, Generation)
    assert (got.completions[0].text, got.completions[0].finish_reason, got.completions[0].tokens) == ("", "stop", 1)


def test_an_assistants_turn_is_continued(asked: TransformersEngine, causal_model: Path) -> None:
    tokenizer = tokenizer_of(causal_model)
    chat = [{"role": "user", "content": "Is 41 right?"}, {"role": "assistant", "content": "Final Decision:"}]
    text = tokenizer.apply_chat_template(chat[:1], tokenize=False, add_generation_prompt=True) + "Final Decision:"
    one, other = asyncio.run(asked.label_logprobs([chat, text], LABELS))
    assert isinstance(one, LabelLogprobs)
    assert isinstance(other, LabelLogprobs)
    assert one.logprobs == other.logprobs


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        pytest.param({}, "no labels", id="none"),
        pytest.param({"yes": ()}, "list of texts", id="no-text"),
        pytest.param({"yes": "Yes"}, "list of texts", id="text-instead-of-list"),
        pytest.param({"yes": ("",)}, "no token", id="empty-text"),
        pytest.param({"yes": ("Yes",), "no": ("No", "Yes")}, "share the text 'Yes'", id="shared-text"),
    ],
)
def test_labels_that_mean_nothing_are_a_mistake(asked: TransformersEngine, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        asyncio.run(asked.label_logprobs(["x"], labels))


def test_what_cannot_be_asked_is_a_fault_in_its_place(asked: TransformersEngine) -> None:
    prompts: list[Prompt] = ["x ", "y " * WINDOW, "", [{"role": "user"}], "x " * (WINDOW // 2 - 2), "x "]
    first, long, empty, broken, nearly, last = asyncio.run(asked.label_logprobs(prompts, LABELS))
    assert isinstance(first, LabelLogprobs)
    assert isinstance(last, LabelLogprobs)
    assert first.logprobs == last.logprobs
    assert isinstance(nearly, LabelLogprobs)
    for fault, words in ((long, f"{2 * WINDOW} tokens"), (empty, "no tokens"), (broken, "chat template")):
        assert isinstance(fault, Fault)
        assert fault.reason == "engine_error"
        assert words in fault.detail
        assert fault.too_long == (fault is long)


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack["name"] for attack in ATTACKS])
def test_a_hostile_text_spoils_nobody_elses_result(asked: TransformersEngine, attack: dict[str, str]) -> None:
    """As a text, a turn, a turn to continue, and a text to be scored; its neighbours get what they get alone."""
    text, good = attack["text"], str(PROMPTS[0])
    chat = [{"role": "user", "content": text}]
    prompts: list[Prompt] = [good, text, chat, [*chat, {"role": "assistant", "content": text}], good + "x"]

    async def ask() -> list[list[Any]]:
        alone = [(await asked.label_logprobs([prompt], LABELS))[0] for prompt in (good, good + "x")]
        labels = await asked.label_logprobs(prompts, LABELS)
        texts = await asked.reference_logprobs([good, good], [text, "Yes"])
        return [alone, labels, texts, await asked.generate(prompts, Sampling(max_tokens=3))]

    alone, labels, texts, written = asyncio.run(ask())
    assert (
        largest_gap([one.logprobs.values() for one in alone], [labels[at].logprobs.values() for at in (0, 4)]) <= CLOSE
    )
    assert len(texts[1].logprobs) == 1
    for one in (*labels[1:4], *written[1:4], texts[0]):
        assert isinstance(one, Fault) == (len(text) > 2 * WINDOW)
        assert not isinstance(one, Fault) or one.too_long


def test_prompts_and_texts_must_be_as_many(asked: TransformersEngine) -> None:
    with pytest.raises(ValueError, match="2 prompts and 1 texts"):
        asyncio.run(asked.reference_logprobs(["a", "b"], ["c"]))


@pytest.mark.parametrize("name", ["classifier", "reward_model"])
def test_classifiers_are_read_at_the_last_token(name: str, request: pytest.FixtureRequest) -> None:
    """Also where that is the end token and padding is the same token, and in chats, which are read as finished."""
    folder = request.getfixturevalue(name)
    prompts = [*PROMPTS, "Yes<|end|>", "No, it is not.<|end|><|end|>"]
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    found = asyncio.run(engine(folder).classify(prompts))
    for prompt, got in zip(prompts, found, strict=True):
        assert not isinstance(got, Fault)
        ids = torch.tensor([raw(folder, prompt, finished=True)])
        with torch.inference_mode():
            wanted = model.score(model.model(input_ids=ids).last_hidden_state)[0, -1]
        assert list(got.values) == pytest.approx(wanted.tolist(), rel=CLOSE, abs=CLOSE)


def test_a_classifier_gives_the_same_alone_and_in_any_batch(classifier: Path) -> None:
    prompts = [RUBRIC + "Yes " * number for number in range(20)]

    async def ask() -> tuple[list[Any], list[Any], list[Any]]:
        shared, apart = engine(classifier), engine(classifier, share_prefixes=False)
        alone = [(await shared.classify([prompt]))[0] for prompt in prompts]
        return alone, await shared.classify(prompts), await apart.classify(prompts)

    alone, shared, apart = asyncio.run(ask())
    for batched in (shared, apart):
        assert largest_gap([one.values for one in alone], [one.values for one in batched]) <= CLOSE


def test_an_encoder_pools_in_its_own_way_over_its_own_special_tokens(models: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer, folder = tiny_tokenizer(bos="<|start|>", end="<|end|>"), models / "encoder"
    sizes: dict[str, Any] = {"vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_labels": 2}
    made: Any = BertForSequenceClassification
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = made(BertConfig(num_hidden_layers=2, num_attention_heads=2, **sizes)).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    prompts = [str(prompt) for prompt in PROMPTS if isinstance(prompt, str)]
    found = asyncio.run(engine(folder).classify(prompts))
    for prompt, got in zip(prompts, found, strict=True):
        assert not isinstance(got, Fault)
        wanted = logits_of(model, tokenizer(prompt)["input_ids"])
        assert list(got.values) == pytest.approx(wanted.tolist(), rel=CLOSE, abs=CLOSE)


@pytest.mark.parametrize(("bos", "end"), [("<|start|>", ""), ("<|start|>", "<|end|>"), (None, "")])
def test_classified_texts_get_the_tokenizers_own_special_tokens_and_nothing_else_does(
    bos: str | None, end: str, tmp_path: Path
) -> None:
    tokenizer = tiny_tokenizer(bos=bos, end=end)
    folder = write_model(tmp_path / "one", task="classify", tokenizer=tokenizer)
    reader = PromptTokens(tokenizer, model="m", window=512)
    text, chat, row = "Is the answer right?", [{"role": "user", "content": "Is it? <|start|>"}], (7, 8)
    rendered = str(tokenizer.apply_chat_template(chat, tokenize=False))
    plain = [tuple(tokenizer(one, add_special_tokens=False)["input_ids"]) for one in (text, rendered)]
    assert reader.read([text, chat, row, ""], finished=True) == [*plain, row, ()]
    own = [tuple(tokenizer(one)["input_ids"]) for one in (text, "")]
    assert reader.read([text, chat, row, ""], finished=True, special=True) == [own[0], plain[1], row, own[1]]
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    for ids, got in zip((own[0], plain[1]), asyncio.run(engine(folder).classify([text, chat])), strict=True):
        assert not isinstance(got, Fault)
        assert list(got.values) == pytest.approx(logits_of(model, list(ids)).tolist(), rel=CLOSE, abs=CLOSE)


def test_token_classifiers_answer_for_every_token(token_classifier: Path) -> None:
    model = AutoModelForTokenClassification.from_pretrained(token_classifier)
    found = asyncio.run(engine(token_classifier).classify_tokens(PROMPTS))
    for prompt, got in zip(PROMPTS, found, strict=True):
        assert not isinstance(got, Fault)
        ids = raw(token_classifier, prompt, finished=True)
        assert list(got.token_ids) == ids
        wanted = logits_of(model, ids).tolist()
        assert list(itertools.chain(*got.values)) == pytest.approx(list(itertools.chain(*wanted)), rel=CLOSE, abs=CLOSE)


def test_heads_compute_in_32_bits(classifier: Path, causal_model: Path) -> None:
    """In bfloat16 a score has three digits: numbers that are none of its values show a head in 32 bits."""

    async def ask() -> tuple[list[Any], list[Any], list[Any]]:
        half, whole = engine(classifier, dtype="bfloat16"), engine(classifier)
        texts = await engine(causal_model, dtype="bfloat16").reference_logprobs(PROMPTS, ["Yes"] * len(PROMPTS))
        return await half.classify(PROMPTS), await whole.classify(PROMPTS), texts

    half, whole, texts = asyncio.run(ask())
    for values in ([value for one in half for value in one.values], [value for one in texts for value in one.logprobs]):
        rounded = torch.tensor(values).bfloat16().float().tolist()
        assert sum(one != other for one, other in zip(values, rounded, strict=True)) > len(values) / 2
    assert largest_gap([one.values for one in half], [one.values for one in whole]) < 0.5


@pytest.mark.parametrize("tied", [False, True])
def test_a_lowered_body_keeps_its_head(models: Path, monkeypatch: pytest.MonkeyPatch, tied: bool) -> None:
    """What a GPU makes of a checkpoint in 32 bits, on a CPU: the head is the checkpoint's, to the last bit."""
    folder = write_model(models / f"lowered-{tied}", tie_word_embeddings=tied)
    config = TransformersConfig(model=str(folder))
    whole = transformers_weights.weights(config, "generate", "cpu")
    monkeypatch.setattr(transformers_weights, "lowered", lambda *_: True)
    half = transformers_weights.weights(config, "generate", "cpu")
    assert torch.equal(half.lm_head.weight, whole.lm_head.weight)
    assert {name for name, value in half.named_parameters() if value.dtype != torch.bfloat16} == {"lm_head.weight"}
    assert half.model.rotary_emb.inv_freq.dtype == torch.float32
    given = torch.tensor([[5, 6, 7, 8]])
    with torch.inference_mode():
        gap = (half(input_ids=given).logits - whole(input_ids=given).logits).norm() / whole(
            input_ids=given
        ).logits.norm()
    assert 0 < float(gap) < 0.05


@pytest.mark.parametrize("head", [HeadConfig(), HeadConfig(kind="mlp")])
def test_a_lowered_reward_model_keeps_its_head(models: Path, monkeypatch: pytest.MonkeyPatch, head: HeadConfig) -> None:
    folder = write_reward_model(models / f"lowered-{head.kind}", head)
    whole: list[Any] = asyncio.run(engine(folder).classify(PROMPTS))
    monkeypatch.setattr(transformers_weights, "lowered", lambda *_: True)
    network = transformers_weights.weights(TransformersConfig(model=str(folder)), "classify", "cpu")
    assert {value.dtype for value in network.backbone.parameters()} == {torch.bfloat16}
    assert {value.dtype for value in network.head.parameters()} == {torch.float32}
    half: list[Any] = asyncio.run(engine(folder).classify(PROMPTS))
    assert 0 < largest_gap([one.values for one in half], [one.values for one in whole]) < 0.5

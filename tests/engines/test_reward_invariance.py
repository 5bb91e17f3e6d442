"""One answer, one score: alone, padded on either side, packed, beside any others, and with vLLM.

The truth is the definition worked out by hand: the body reads the row alone, and the head reads where its notes say.
"""

from __future__ import annotations

import asyncio
import random
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.engines.tiny_models import tiny_config, tiny_tokenizer, write_model, write_reward_model
from tests.engines.vllm_server import Served, Task, vllm_engine, vllm_servers
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Gemma2Config,
)

from adjudge.engines import transformers_packed
from adjudge.engines.checkpoint_notes import CheckpointNotes, template_digest
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.interface import Engine, Fault, Generation, Sampling
from adjudge.engines.loading import engine_of
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.engines.reward_network import RewardNetwork
from adjudge.engines.shared_prefixes import Group
from adjudge.engines.transformers_engine import TransformersConfig, TransformersEngine
from adjudge.engines.transformers_network import Network
from adjudge.engines.transformers_packed import Packed
from adjudge.engines.vllm_config import VllmConfig
from adjudge.engines.vllm_engine import VllmEngine

__all__ = ["vllm_servers"]

CLOSE = 1e-5
ENDED = (  # the end token comes last, as in many templates: where padding is that token, programs lose their place
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
Chat = list[dict[str, str]]

HEADS = {
    "linear": HeadConfig(),
    "mlp": HeadConfig(kind="mlp", outputs=2, hidden=32, bias=True),
    "ensemble": HeadConfig(kind="multi", members=3, bias=True),
    "gating": HeadConfig(kind="gating", outputs=3),
    "mean": HeadConfig(kind="mlp", pooling="mean"),
    "first": HeadConfig(pooling="first", outputs=2),
    "tokens": HeadConfig(pooling="tokens", outputs=2, bias=True),
    "tokens-mlp": HeadConfig(kind="mlp", pooling="tokens"),
}
WAYS: dict[str, dict[str, Any]] = {
    "packed": {},
    "packed-not-shared": {"share_prefixes": False},
    "padded-shared": {"attn": "sdpa"},
    "padded": {"attn": "sdpa", "share_prefixes": False},
    "eager": {"attn": "eager"},
    "small-batches": {"token_budget": 150},
}


def chats() -> list[Chat]:
    """Groups of answers to three prompts, of very different lengths; one answer begins another; one comes twice."""
    chance = random.Random(0)
    words = "the answer is right wrong 41 42 because question reference says maybe not supported".split()
    found: list[Chat] = []
    for number, answers in enumerate((8, 1, 4)):
        turns = [{"role": "system", "content": "You are a careful judge. " * 2}] if number else []
        turns = [*turns, {"role": "user", "content": " ".join(chance.choices(words, k=[30, 3, 12][number]))}]
        texts = [" ".join(chance.choices(words, k=size)) for size in [1, 60, *chance.sample(range(2, 50), 6)][:answers]]
        found += [[*turns, {"role": "assistant", "content": text}] for text in texts]
    longer = [*found[1][:-1], {"role": "assistant", "content": found[1][-1]["content"] + " and more"}]
    return [*found, longer, found[2]]


CHATS = chats()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    home = tmp_path_factory.mktemp("rewards")
    tokenizer = tiny_tokenizer(pad="<|end|>", chat=ENDED)
    return {name: write_reward_model(home / name, head, tokenizer=tokenizer) for name, head in HEADS.items()}


def tokens_of(folder: Path, chat: Chat, *, prompt: bool = False) -> list[int]:
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    turns = chat[:-1] if prompt else chat
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=prompt)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def truth(folder: Path, wanted: Sequence[Chat] = CHATS) -> list[torch.Tensor]:
    """Each chat alone: (outputs,), or (tokens, outputs) of a model of steps."""
    network, found = RewardNetwork.load(folder), []
    config = network.head.config
    with torch.inference_mode():
        for chat in wanted:
            hidden = network.backbone(input_ids=torch.tensor([tokens_of(folder, chat)])).last_hidden_state[0]
            places = {"last": hidden[-1], "first": hidden[0], "mean": hidden.mean(0), "tokens": hidden}
            values = network.head(places[config.pooling])
            if config.kind == "gating":
                end = len(tokens_of(folder, chat, prompt=True)) - 1
                values = torch.cat([values[: config.outputs], network.head(hidden[end])[config.outputs :]])
            found.append(values)
    return found


def asked(engine: Engine, wanted: Sequence[Any], call: str, *, one_by_one: bool = False) -> list[torch.Tensor]:
    async def ask() -> list[Any]:
        parts = [[chat] for chat in wanted] if one_by_one else [wanted]
        return [result for part in parts for result in await getattr(engine, call)(part)]

    results = asyncio.run(ask())
    assert not [result for result in results if isinstance(result, Fault)]
    return [torch.tensor(result.values) for result in results]


def embedded(folder: Path, **options: Any) -> TransformersEngine:
    return TransformersEngine(TransformersConfig(model=str(folder), device="cpu", **options))


def call_of(head: HeadConfig) -> str:
    return "classify_tokens" if head.pooling == "tokens" else "classify"


def held(wanted: Sequence[torch.Tensor], found: Sequence[torch.Tensor], way: str) -> None:
    """Hold scores to the limit: 1e-5, of themselves where they are above 1."""
    assert [one.shape for one in found] == [one.shape for one in wanted]
    gaps = [(one - other).abs() / one.abs().clamp_min(1) for one, other in zip(wanted, found, strict=True)]
    gap = max(float(one.max()) for one in gaps)
    print(f"{way}: {gap:.1e}")
    assert gap <= CLOSE, way


@pytest.mark.parametrize("head", HEADS)
def test_a_score_does_not_depend_on_how_it_is_asked_for(folders: Mapping[str, Path], head: str) -> None:
    folder, call = folders[head], call_of(HEADS[head])
    wanted = truth(folder)
    if head != "first":  # a decoder has seen nothing by then
        assert len({round(float(one.sum()), 3) for one in wanted}) > len(wanted) / 2
    for way, options in WAYS.items():
        held(wanted, asked(embedded(folder, **options), CHATS, call), way)
    engine = embedded(folder)
    held(wanted, asked(engine, CHATS, call, one_by_one=True), "one by one")
    order = random.Random(1).sample(range(len(CHATS)), len(CHATS))
    held([wanted[at] for at in order], asked(engine, [CHATS[at] for at in order], call), "another order")


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("head", HEADS)
def test_a_score_does_not_depend_on_the_side_of_the_padding(folders: Mapping[str, Path], head: str, side: str) -> None:
    """The network itself, padded with its end token, as trainers read it."""
    rows = [tokens_of(folders[head], chat) for chat in CHATS]
    width = max(map(len, rows))
    left = side == "left"
    pads = [[1] * (width - len(row)) for row in rows]
    ids = torch.tensor([pad + row if left else row + pad for row, pad in zip(rows, pads, strict=True)])
    mask = torch.tensor(
        [
            [0] * len(pad) + [1] * len(row) if left else [1] * len(row) + [0] * len(pad)
            for row, pad in zip(rows, pads, strict=True)
        ]
    )
    network, more = RewardNetwork.load(folders[head]), {}
    if network.head.gate is not None:
        lengths = [len(tokens_of(folders[head], chat, prompt=True)) for chat in CHATS]
        more = {"prompt_lengths": torch.tensor(lengths)}
    with torch.inference_mode():
        found = list(network(ids, mask, **more))
    if network.pooling == "tokens":
        found = [values[own.bool()] for values, own in zip(found, mask, strict=True)]
    held(truth(folders[head]), found, side)


@pytest.mark.parametrize(
    ("family", "config"),
    [
        pytest.param("llama", {}, id="llama"),
        pytest.param("mistral", {"sliding_window": 24}, id="sliding-window"),
    ],
)
def test_other_bodies_are_no_different(models: Path, family: Any, config: dict[str, Any]) -> None:
    for head in ("mlp", "tokens"):
        folder = write_reward_model(models / f"{family}-{head}", HEADS[head], family=family, **config)
        wanted = truth(folder)
        for way, options in WAYS.items():
            held(wanted, asked(embedded(folder, **options), CHATS, call_of(HEADS[head])), way)


# What vLLM imports warns of what it uses itself.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("task", ["classify", "classify_tokens"])
def test_vllm_gives_the_same_scores(vllm_servers: Mapping[Task, Served], task: Task) -> None:
    folder = Path(vllm_servers[task].model)
    assert CheckpointNotes.read(folder) is not None  # made by `RewardNetwork.save`
    wanted = truth(folder)
    held(wanted, asked(embedded(folder), CHATS, task), "packed")
    held(wanted, asked(vllm_engine(task), CHATS, task), "vllm")
    url = vllm_servers[task].url
    held(wanted, asked(engine_of({"openai": {"model": str(folder), "base_url": url}}), CHATS, task), "vllm by HTTP")


def test_shared_prompts_are_read_once_and_nothing_is_padded(
    folders: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    read = transformers_packed.read

    def counted(body: Any, packed: Packed, device: Any, **asked: Any) -> Any:
        seen.append(len(packed.tokens))
        return read(body, packed, device, **asked)

    group = CHATS[:8]
    rows = [tokens_of(folders["linear"], chat) for chat in group]
    prompt = len(tokens_of(folders["linear"], group[0], prompt=True))
    engine = embedded(folders["linear"])
    asked(engine, group[:1], "classify")  # the model is loaded, and compared with the plain way
    monkeypatch.setattr(transformers_packed, "read", counted)
    asked(engine, group, "classify")
    assert seen == [prompt + sum(len(row) - prompt for row in rows)]


@pytest.mark.parametrize(
    ("family", "config"),
    [
        pytest.param("qwen2", {}, id="qwen2"),
        pytest.param("llama", {}, id="llama"),
        pytest.param("mistral", {"sliding_window": 24}, id="sliding-window"),
    ],
)
def test_what_can_be_packed_is_packed(models: Path, family: Any, config: dict[str, Any]) -> None:
    folder = write_model(models / f"packs-{family}", task="classify", family=family, **config)
    kind: Any = AutoModelForSequenceClassification
    network = Network(kind.from_pretrained(folder).eval(), "classify")
    assert (network.path, network.unpacked) == ("packed pieces", "")


def test_a_body_that_looks_ahead_is_not_packed(models: Path) -> None:
    """The comparison finds it out: its configuration says nothing."""
    torch.manual_seed(0)
    kind: Any = AutoModel
    body = kind.from_config(tiny_config("qwen2", tiny_tokenizer())).eval()
    assert transformers_packed.usable(body)[0]
    body.set_attn_implementation("sdpa")
    for layer in body.layers:
        layer.self_attn.is_causal = False
    calls, why = transformers_packed.usable(body)
    assert (calls, body.config._attn_implementation) == (0, "sdpa")
    assert "more than causal" in why


def test_why_rows_are_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")

    kind: Any = AutoModel
    body = kind.from_config(tiny_config("qwen2", tiny_tokenizer())).eval()
    monkeypatch.setattr(transformers_packed, "_piecewise", refuse)
    assert transformers_packed.usable(body) == (0, "RuntimeError: FlashAttention only supports Ampere GPUs or newer.")
    assert body.config._attn_implementation == "sdpa"
    monkeypatch.setattr(transformers_packed, "_piecewise", lambda plan, query, *_: query.transpose(1, 2))
    assert re.fullmatch(
        r"packed, a hidden state is off by [0-9.]+ of its size, and at most 0.0001 is allowed",
        transformers_packed.usable(body)[1],
    )
    on_gpu = SimpleNamespace(config=body.config, dtype=torch.float32, device=torch.device("cuda", 1))
    assert transformers_packed.usable(on_gpu) == (
        0,
        "there is no kernel for torch.float32 on cuda; give dtype bfloat16",
    )


def test_a_window_that_attention_is_not_told_of_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some models keep their windows to their masks, and the rows that are compared are too short to show one."""
    kind: Any = AutoModel
    body = kind.from_config(tiny_config("mistral", tiny_tokenizer(), sliding_window=200)).eval()
    assert transformers_packed.usable(body)[0]
    body.set_attn_implementation("sdpa")
    body.config.sliding_window, windows = None, transformers_packed.windows_of
    monkeypatch.setattr(transformers_packed, "windows_of", lambda config: windows(config) or 2)
    assert transformers_packed.usable(body) == (0, "its attention is told of 0 sliding windows, and it has 2")


def test_the_trap_of_a_cap_that_is_left_out(tmp_path: Path) -> None:
    """Gemma 2 caps its attention's scores; the usual attention of PyTorch leaves that out and says nothing."""
    config: Any = Gemma2Config
    sizes: dict[str, Any] = {"vocab_size": 512, "hidden_size": 64, "intermediate_size": 96, "head_dim": 32}
    layers: dict[str, Any] = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    torch.manual_seed(0)
    capped = config(**sizes, **layers, attn_logit_softcapping=1.0, initializer_range=0.3, pad_token_id=0)
    kind: Any = AutoModel
    network = RewardNetwork.on(kind.from_config(capped), HeadConfig())
    network.save(tmp_path, tiny_tokenizer(), CheckpointNotes(what="scalar", head=HeadConfig()))
    texts = ["The reference says 42.", "Is the answer right? Yes, it is. No, it is not.", "a b c d e f g h"]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    rows = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    ours = asked(embedded(tmp_path), texts, "classify")
    capping, usual = (RewardNetwork.load(tmp_path, attn_implementation=way) for way in ("eager", "sdpa"))
    for row, score in zip(rows, ours, strict=True):
        assert float(score) == pytest.approx(scored(capping, row), abs=CLOSE)
        assert abs(float(score) - scored(usual, row)) > 1e-3
    with pytest.raises(ValueError, match="caps its attention's scores"):
        asyncio.run(embedded(tmp_path, attn="sdpa").classify(texts))


def kernel_of(version: str) -> Any:
    """PyTorch's variable-length kernel by its definition, with the signature that its wrapper has in a version."""

    def attend(at: Sequence[Any], scale: float | None, window_size: tuple[int, int]) -> torch.Tensor:
        query, key, value, query_ends, key_ends, max_queries, max_keys = at
        found, times = torch.empty_like(query), query.shape[1] // key.shape[1]
        for piece in range(len(query_ends) - 1):
            own, all_ = slice(*query_ends[piece : piece + 2].tolist()), slice(*key_ends[piece : piece + 2].tolist())
            queries, keys = query[own], key[all_].repeat_interleave(times, 1)
            assert len(queries) <= max_queries
            assert len(keys) <= max_keys
            scores = torch.einsum("qhd,khd->hqk", queries, keys) * (scale or query.shape[-1] ** -0.5)
            before, (left, right) = len(keys) - len(queries), window_size
            seen = torch.ones(scores.shape[1:], dtype=torch.bool).tril(before + right)
            seen = seen if left < 0 else seen.triu(before - left)
            weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
            found[own] = torch.einsum("hqk,khd->qhd", weights, value[all_].repeat_interleave(times, 1))
        return found

    def of_2_10(q: Any, k: Any, v: Any, qs: Any, ks: Any, mq: int, mk: int, is_causal: bool = False) -> torch.Tensor:
        assert is_causal
        return attend((q, k, v, qs, ks, mq, mk), None, (-1, 0))

    def of_2_11(
        q: Any,
        k: Any,
        v: Any,
        qs: Any,
        ks: Any,
        mq: int,
        mk: int,
        *,
        scale: float | None = None,
        window_size: tuple[int, int] = (-1, -1),
    ) -> torch.Tensor:
        return attend((q, k, v, qs, ks, mq, mk), scale, window_size)

    def of_2_12(
        q: Any,
        k: Any,
        v: Any,
        qs: Any,
        ks: Any,
        mq: int,
        mk: int,
        *,
        scale: float | None = None,
        window_size: tuple[int, int] = (-1, -1),
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        assert enable_gqa == (q.shape[1] != k.shape[1])
        return attend((q, k, v, qs, ks, mq, mk), scale, window_size)

    return {"2.10": of_2_10, "2.11": of_2_11, "2.12": of_2_12}[version]


@pytest.mark.parametrize("key_heads", [2, 4])
@pytest.mark.parametrize(
    ("version", "window"),
    [("2.10", None), *((version, window) for version in ("2.11", "2.12") for window in (None, 1, 10, 22, 1000))],
)
def test_one_call_for_all_pieces_is_the_same_as_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch, version: str, window: int | None, key_heads: int
) -> None:
    """No GPU here: the kernel is played by its definition, and what it is called with is what is tested."""
    from torch.nn.attention import varlen

    monkeypatch.setattr(varlen, "varlen_attn", kernel_of(version))
    rows = [tuple(range(100, 130)), (*range(100, 120), 7, 8), (*range(100, 120), 9), (5, 6, 7)]
    packed = Packed.of(rows, [Group(prefix=20, rows=(1, 0, 2)), Group(prefix=0, rows=(3,))])
    assert len(packed.tokens) == 20 + 10 + 2 + 1 + 3
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, heads, len(packed.tokens), 16) for heads in (4, key_heads, key_heads))
    ends = packed.places([[len(row) - 1] for row in rows])
    whole: torch.Tensor | None = None
    for asked in (packed.pieces, packed.asked(ends)):
        plan = transformers_packed._Plan(asked, torch.device("cpu"))
        once = transformers_packed._at_once(plan, query, key, value, 0.25, window)
        pieces = transformers_packed._piecewise(plan, query, key, value, 0.25, window)
        whole = pieces if whole is None else whole
        assert once.shape == pieces.shape == (1, len(packed.tokens), 4, 16)
        torch.testing.assert_close(once, pieces, rtol=0, atol=1e-5)
        torch.testing.assert_close(pieces[:, ends], whole[:, ends], rtol=0, atol=1e-5)
    assert int(pieces.any(-1).any(-1).sum()) == len(rows)  # the others were not computed


@pytest.mark.parametrize(("scale", "window"), [(0.25, 8), (0.5, None)])
def test_a_kernel_that_cannot_be_told_of_a_window_or_scale_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, scale: float, window: int | None
) -> None:
    from torch.nn.attention import varlen

    monkeypatch.setattr(varlen, "varlen_attn", kernel_of("2.10"))
    plan = transformers_packed._Plan(Packed.of([(1, 2, 3)], [Group(prefix=0, rows=(0,))]).pieces, torch.device("cpu"))
    states = torch.randn(1, 2, 3, 16)
    with pytest.raises(NotImplementedError, match=f"window {window}, scale {scale}: this PyTorch's kernel has no such"):
        transformers_packed._at_once(plan, states, states, states, scale, window)


def test_a_model_that_attends_more_often_than_it_did_is_not_read() -> None:
    """Which call is the last was seen when the model was loaded; if that is not so any more, nothing is made up."""
    torch.manual_seed(0)
    kind: Any = AutoModel
    body = kind.from_config(tiny_config("qwen2", tiny_tokenizer())).eval()
    calls, _ = transformers_packed.usable(body)
    assert calls == len(body.layers)
    packed = Packed.of([(1, 2, 3)], [Group(prefix=0, rows=(0,))])
    with torch.inference_mode():
        ends, every = (
            transformers_packed.read(body, packed, body.device, places=np.array([0, 2]), calls=known)
            for known in (calls, 0)
        )
        torch.testing.assert_close(ends, every, rtol=0, atol=1e-5)
        with pytest.raises(RuntimeError, match=f"called its attention {calls} times, and {calls - 1} when it was"):
            transformers_packed.read(body, packed, body.device, places=np.array([2]), calls=calls - 1)


def test_a_gate_is_not_asked_where_no_prompt_ends(folders: Mapping[str, Path]) -> None:
    engine = embedded(folders["gating"])
    with pytest.raises(ValueError, match="chats, not texts"):
        asyncio.run(engine.classify([CHATS[0], "a text"]))
    found = asyncio.run(engine.classify([CHATS[0], [], CHATS[1]]))
    assert [isinstance(one, Fault) for one in found] == [False, True, False]
    scores = [torch.tensor(one.values) for one in found if not isinstance(one, Fault)]
    held(truth(folders["gating"], CHATS[:2]), scores, "beside a fault")


@pytest.mark.parametrize(
    ("head", "call", "told"),
    [
        pytest.param("tokens", "classify", "classify_tokens reads", id="an-answer-of-a-model-of-steps"),
        pytest.param("linear", "classify_tokens", "classify reads", id="steps-of-a-model-of-answers"),
        pytest.param("linear", "generate", "language model's head", id="text-of-a-reward-model"),
    ],
)
def test_a_reward_model_is_asked_for_what_it_was_made_for(
    folders: Mapping[str, Path], head: str, call: str, told: str
) -> None:
    more = (Sampling(),) if call == "generate" else ()
    with pytest.raises(ValueError, match=told):
        asyncio.run(getattr(embedded(folders[head]), call)(["x"], *more))


def test_vllm_does_not_make_up_a_head(folders: Mapping[str, Path]) -> None:
    engine = VllmEngine(VllmConfig(model=str(folders["mlp"])))
    with pytest.raises(ValueError, match="use the transformers engine"):
        asyncio.run(engine.classify(["x"]))


def test_an_answer_does_not_move_the_place_that_a_gate_reads(models: Path) -> None:
    """The generation prompt opens a thinking block, and an answer that does so too is no part of the prompt."""
    chat = ENDED.replace("assistant\n{% endif", "assistant\n<think>\n{% endif")
    made = tiny_tokenizer(chat=chat)
    reader = PromptTokens(made, model="tiny", window=512)
    question = {"role": "user", "content": "Is 42 right?"}
    answers = ["No.", "<think>\nNo.", "<think>\n", "<think", ""]
    chats = [[question, {"role": "assistant", "content": text}] for text in answers]
    lengths = reader.prompt_lengths(chats, reader.read(chats, finished=True))
    header = "<|turn|>user\nIs 42 right?<|end|><|turn|>assistant\n"
    assert lengths == [len(made(header, add_special_tokens=False)["input_ids"])] * len(answers)


def test_a_critic_writes_and_scores(models: Path) -> None:
    folder = models / "critic"
    kind: Any = AutoModelForCausalLM
    torch.manual_seed(0)
    writer = kind.from_config(tiny_config("qwen2", tiny_tokenizer())).eval()
    network = RewardNetwork.on(writer.base_model, HEADS["mlp"])
    notes = CheckpointNotes(what="critique", head=HEADS["mlp"])
    network.save(folder, tiny_tokenizer(chat=ENDED), notes, language_model=writer)
    engine = embedded(folder)
    held(truth(folder), asked(engine, CHATS, "classify"), "score")
    (written,) = asyncio.run(engine.generate([CHATS[0][:-1]], Sampling(max_tokens=5)))
    row = torch.tensor([tokens_of(folder, CHATS[0], prompt=True)])
    with torch.inference_mode():
        token = int(writer(row).logits[0, -1].argmax())
    assert isinstance(written, Generation)
    assert written.completions[0].text.startswith(str(tiny_tokenizer().decode([token], skip_special_tokens=True)))


def test_a_template_that_moves_the_end_is_told_of_at_load(
    models: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Text after the end token is where a reward model is read; one that was trained so is no news."""
    folder = write_model(models / "text-after-end", task="classify")
    asked(embedded(folder), ["x"], "classify")
    assert ["text_after_end" in message for message in caplog.messages] == [True]
    caplog.clear()
    ours = write_reward_model(tmp_path, HeadConfig(), tokenizer=tiny_tokenizer())
    notes = CheckpointNotes.read(ours)
    assert notes is not None
    replace(notes, template=template_digest(tiny_tokenizer().chat_template)).write(ours)
    asked(embedded(ours), ["x"], "classify")
    assert not caplog.messages


def test_scores_tell_weights_and_notes_apart(folders: Mapping[str, Path], tmp_path: Path) -> None:
    """The same weights read otherwise are another scorer."""
    shutil.copytree(folders["mlp"], tmp_path / "same")
    shutil.copytree(folders["mlp"], tmp_path / "other")
    notes = CheckpointNotes.read(folders["mlp"])
    assert notes is not None
    replace(notes, head=replace(notes.head, pooling="mean")).write(tmp_path / "other")
    prints = [embedded(folder).fingerprint for folder in (folders["mlp"], tmp_path / "same", tmp_path / "other")]
    assert prints[0] == prints[1] != prints[2]


def scored(network: RewardNetwork, ids: Sequence[int]) -> float:
    with torch.inference_mode():
        row = torch.tensor([list(ids)])
        return float(network(row, torch.ones_like(row)))


def test_the_padding_trap(folders: Mapping[str, Path]) -> None:
    """Padding that is the end token, and pooling by ids: the usual program reads the token before the end."""
    folder = folders["linear"]
    tokenizer, kind = tiny_tokenizer(pad="<|end|>", chat=ENDED), AutoModelForSequenceClassification
    naive: Any = kind.from_pretrained(folder)  # type: ignore[no-untyped-call,unused-ignore]
    naive.config.pad_token_id = tokenizer.pad_token_id
    texts = [str(tokenizer.apply_chat_template(chat, tokenize=False)) for chat in CHATS]
    inputs = tokenizer(texts, padding=True, add_special_tokens=False, return_tensors="pt")
    with torch.inference_mode():
        usual = naive(**inputs).logits[:, 0]
    ours = torch.cat(asked(embedded(folder), CHATS, "classify"))
    held(truth(folder), list(ours[:, None]), "ours")
    assert float((usual - ours).abs().min()) > 1e-3


def test_the_trap_of_two_begin_tokens(models: Path) -> None:
    """The template writes a begin token, and tokenizing the rendered chat in the usual way adds another."""
    made = tiny_tokenizer(bos="<|start|>", chat="<|start|>" + ENDED)
    folder = write_reward_model(models / "two-begins", HeadConfig(), tokenizer=made)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = RewardNetwork.load(folder)
    ours = asked(embedded(folder), CHATS, "classify")
    for chat, score in zip(CHATS, ours, strict=True):
        text = str(tokenizer.apply_chat_template(chat, tokenize=False))
        once, twice = tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer(text)["input_ids"]
        assert [once[0], *once] == twice
        assert float(score) == pytest.approx(scored(network, once), abs=CLOSE)
        assert abs(float(score) - scored(network, twice)) > 1e-3


def test_the_trap_of_a_lost_end_token(folders: Mapping[str, Path]) -> None:
    """Decoding without special tokens and appending the text to the prompt loses the token the head was trained on."""
    folder = folders["linear"]
    network, ours = RewardNetwork.load(folder), asked(embedded(folder), CHATS, "classify")
    for chat, score in zip(CHATS, ours, strict=True):
        row = tokens_of(folder, chat)
        assert row[-1] == tiny_tokenizer().eos_token_id
        assert abs(float(score) - scored(network, row[:-1])) > 1e-3

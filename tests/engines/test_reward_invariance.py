"""One answer, one score: alone, padded on either side, packed, beside any others, and with vLLM.

The truth is the definition worked out by hand: the body reads the row alone, and the head reads where its notes say.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

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
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
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


@cache
def tokenizer_of(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


def tokens_of(folder: Path, chat: Chat, *, prompt: bool = False) -> list[int]:
    tokenizer = tokenizer_of(folder)
    turns = chat[:-1] if prompt else chat
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=prompt)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


@cache
def truth(folder: Path) -> list[torch.Tensor]:
    """Each of `CHATS` alone: (outputs,), or (tokens, outputs) of a model of steps."""
    network, found = RewardNetwork.load(folder), []
    config = network.head.config
    with torch.inference_mode():
        for chat in CHATS:
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


def test_a_gate_is_not_asked_where_no_prompt_ends(folders: Mapping[str, Path]) -> None:
    engine = embedded(folders["gating"])
    with pytest.raises(ValueError, match="chats, not texts"):
        asyncio.run(engine.classify([CHATS[0], "a text"]))
    found = asyncio.run(engine.classify([CHATS[0], [], CHATS[1]]))
    assert [isinstance(one, Fault) for one in found] == [False, True, False]
    scores = [torch.tensor(one.values) for one in found if not isinstance(one, Fault)]
    held(truth(folders["gating"])[:2], scores, "beside a fault")


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
    """The generation prompt opens a thinking block, and an answer that does so too is not part of the prompt."""
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

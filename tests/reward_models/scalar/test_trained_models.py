"""The scorer on tiny models in folders: raw outputs against plain calls of the network, one chat at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.engines.tiny_models import tiny_tokenizer, write_model, write_reward_model
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from adjudge.engines.checkpoint_notes import CheckpointNotes, Normalizer, template_digest
from adjudge.engines.head_config import HeadConfig
from adjudge.engines.reward_network import RewardNetwork
from adjudge.protocol import Sample
from adjudge.reward_models.scalar.ensemble import RewardEnsemble
from adjudge.reward_models.scalar.scorer import RewardModelScorer
from adjudge.scoring.conformance import check_scorer

RESPONSES = ["four", "No, it is five, and you are wrong.", "The answer is 4.\n\nYes.", "4" * 40]
SAMPLES = [Sample(prompt="Is 2+2 four?", response=response) for response in RESPONSES]
CLOSE = 1e-5
LLAMA_3 = (  # writes the begin token itself, as Llama 3's template does
    "<|start|>{% for m in messages %}<|turn|>{{ m['role'] }}\n{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


def rows_of(folder: Path, samples: Sequence[Sample], **options: Any) -> list[list[int]]:
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    rows = []
    for sample in samples:
        chat = [{"role": "user", "content": sample.prompt}, {"role": "assistant", "content": sample.response}]
        text = tokenizer.apply_chat_template(chat, tokenize=False, **options)
        rows.append(list(tokenizer(text, add_special_tokens=False)["input_ids"]))
    return rows


def values(scorer: RewardModelScorer, samples: Sequence[Sample] = SAMPLES) -> list[float]:
    scores = asyncio.run(scorer.score(samples))
    return [score.value for score in scores if score.value is not None]


def plain_outputs(folder: Path, rows: Sequence[Sequence[int]]) -> list[list[float]]:
    kind: Any = AutoModelForSequenceClassification
    model = kind.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = [model.model(input_ids=torch.tensor([list(row)])).last_hidden_state[0, -1] for row in rows]
        return [model.score(state).tolist() for state in states]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reward model whose padding token is its end token, with a template that writes a begin token."""
    tokenizer = tiny_tokenizer(pad="<|end|>", bos="<|start|>", chat=LLAMA_3)
    return write_model(tmp_path_factory.mktemp("models") / "rm", task="classify", tokenizer=tokenizer)


def test_the_value_is_read_at_the_real_end(folder: Path) -> None:
    wanted = [row[0] for row in plain_outputs(folder, rows_of(folder, SAMPLES))]
    found = values(RewardModelScorer(model=str(folder)))
    assert found == pytest.approx(wanted, abs=CLOSE)
    assert values(RewardModelScorer(engine=f"transformers:{folder}")) == pytest.approx(wanted, abs=CLOSE)


def test_the_traps_give_other_numbers(folder: Path) -> None:
    """A second begin token, a generation prompt, no end token: each is what a naive program computes."""
    rows = rows_of(folder, SAMPLES)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    begin = tokenizer.convert_tokens_to_ids("<|start|>")
    text = tokenizer.decode(rows[0], clean_up_tokenization_spaces=False)
    assert tokenizer(text)["input_ids"][:2] == [begin, begin]
    assert [row.count(begin) for row in rows] == [1] * len(rows)
    wanted = np.array(values(RewardModelScorer(model=str(folder))))
    naive: dict[str, list[list[int]]] = {
        "two begin tokens": [[begin, *row] for row in rows],
        "generation prompt": rows_of(folder, SAMPLES, add_generation_prompt=True),
        "no end token": [row[:-1] for row in rows],
    }
    for name, ways in naive.items():
        gaps = np.abs(np.array([row[0] for row in plain_outputs(folder, ways)]) - wanted)
        assert gaps.min() > 1e-3, name
    assert all(row[-1] == tokenizer.eos_token_id for row in rows)


@pytest.mark.parametrize(
    ("trained", "given", "shown"),
    [
        (None, None, "strip"),
        ("strip", None, "strip"),
        ("keep", None, "keep"),
        ("keep", "strip", "strip"),
        ("strip", "keep", "keep"),
    ],
)
def test_reasoning_is_read_as_in_training(trained: Any, given: Any, shown: str, tmp_path: Path) -> None:
    folder = write_reward_model(tmp_path / "rm", HeadConfig())
    CheckpointNotes(what="scalar", head=HeadConfig(), reasoning=trained).write(folder)
    sample = Sample(prompt="Is 2+2 four?", response="<think>2+2</think>four")
    seen = sample if shown == "keep" else replace(sample, response="four")
    network = RewardNetwork.load(folder)
    (row,) = rows_of(folder, [seen])
    with torch.inference_mode():
        wanted = float(network(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.long))[0])
    found = values(RewardModelScorer(model=str(folder), reasoning=given), [sample])
    assert found == pytest.approx([wanted], abs=CLOSE)


def test_members_that_were_trained_otherwise_are_not_mixed(tmp_path: Path) -> None:
    ways: list[Any] = ["strip", "keep"]
    folders = tuple(str(write_reward_model(tmp_path / way, HeadConfig())) for way in ways)
    for folder, way in zip(folders, ways, strict=True):
        CheckpointNotes(what="scalar", head=HeadConfig(), reasoning=way).write(folder)
    with pytest.raises(ValueError, match="say what all are shown"):
        asyncio.run(RewardEnsemble(members=folders).score(SAMPLES))
    scores = asyncio.run(RewardEnsemble(members=folders, reasoning="strip").score(SAMPLES))
    assert all(score.value is not None for score in scores)


HEADS: dict[str, tuple[HeadConfig, dict[str, Any]]] = {
    "mlp": (HeadConfig(kind="mlp", hidden=16, bias=True), {}),
    "mean": (HeadConfig(pooling="mean"), {}),
    "gaussian": (HeadConfig(kind="gaussian"), {"risk": 0.25}),
    "quantile": (HeadConfig(kind="quantile", levels=5), {"risk": 0.4}),
    "attributes": (HeadConfig(outputs=3), {"weights": (1.0, 0.5, -0.25)}),
    "multi": (HeadConfig(kind="multi", members=4), {"combine": {"rule": "lower_bound", "k": 1.0}}),
}


@pytest.mark.parametrize("name", HEADS)
def test_heads_of_our_own(name: str, tmp_path: Path) -> None:
    """Raw outputs are the network's, and the reward is what the readout makes of them."""
    head, options = HEADS[name]
    folder = write_reward_model(tmp_path / "rm", head)
    made = RewardModelScorer(model=str(folder), **options)
    scores = asyncio.run(made.score(SAMPLES))
    network = RewardNetwork.load(folder)
    for score, row in zip(scores, rows_of(folder, SAMPLES), strict=True):
        with torch.inference_mode():
            raw = network(torch.tensor([row]), torch.ones(1, len(row), dtype=torch.long))[0].tolist()
        assert score.evidence["raw"] == pytest.approx(raw, abs=CLOSE)
        assert score.value == pytest.approx(made.readout.read(raw).reward, abs=1e-4)
        assert (score.uncertainty is None) == (name in ("mlp", "mean", "attributes"))
    assert len({score.value for score in scores}) == len(scores)


def test_a_stored_normaliser_is_asked_for(tmp_path: Path) -> None:
    folder = write_reward_model(tmp_path / "rm", HeadConfig())
    with pytest.raises(ValueError, match="stores no mean"):
        RewardModelScorer(model=str(folder), normalize="zscore").validate(SAMPLES[0])
    notes = CheckpointNotes.read(folder)
    assert notes is not None
    raw = np.array(values(RewardModelScorer(model=str(folder))))
    plain = RewardModelScorer(model=str(folder)).fingerprint
    replace(notes, normalizer=Normalizer(0.5, 2.0)).write(folder)
    assert values(RewardModelScorer(model=str(folder))) == pytest.approx(raw, abs=CLOSE)
    assert values(RewardModelScorer(model=str(folder), normalize="zscore")) == pytest.approx((raw - 0.5) / 2, abs=CLOSE)
    assert values(RewardModelScorer(model=str(folder), normalize="mean")) == pytest.approx(raw - 0.5, abs=CLOSE)
    assert RewardModelScorer(model=str(folder), normalize="zscore").fingerprint != plain


def test_another_chat_template_than_in_training_is_told(tmp_path: Path) -> None:
    folder = write_reward_model(tmp_path / "rm", HeadConfig())
    notes = CheckpointNotes.read(folder)
    assert notes is not None
    trained = template_digest(AutoTokenizer.from_pretrained(folder).chat_template)
    replace(notes, template=trained).write(folder)
    RewardModelScorer(model=str(folder)).check()
    template = folder / "chat_template.jinja"
    template.write_text(template.read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(ValueError, match="not the chat template that the model was trained with"):
        RewardModelScorer(model=str(folder)).check()


@pytest.mark.parametrize("what", ["process", "critique"])
def test_models_of_another_kind_are_refused(what: Any, tmp_path: Path) -> None:
    head = HeadConfig(pooling="tokens" if what == "process" else "last")
    folder = write_reward_model(tmp_path / "rm", head)
    CheckpointNotes(what=what, head=head).write(folder)
    with pytest.raises(ValueError, match="score a whole response"):
        RewardModelScorer(model=str(folder)).check()


def test_vllm_is_not_given_heads_that_it_does_not_know(tmp_path: Path) -> None:
    folder = write_reward_model(tmp_path / "mlp", HeadConfig(kind="mlp", hidden=16))
    with pytest.raises(ValueError, match="'mlp' beside its body, which vLLM does not know"):
        RewardModelScorer(engine=f"vllm:{folder}").check()
    plain = write_reward_model(tmp_path / "linear", HeadConfig())
    RewardModelScorer(engine=f"vllm:{plain}").check()


def test_labels_come_from_the_configuration(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "rm", task="classify", labels=2)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"id2label": {"0": "help", "1": "words"}, "label2id": {"help": 0, "words": 1}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    made = RewardModelScorer(model=str(folder), weights={"help": 1.0})
    wanted = [row[0] for row in plain_outputs(folder, rows_of(folder, SAMPLES))]
    assert values(made) == pytest.approx(wanted, abs=CLOSE)
    with pytest.raises(ValueError, match="help, words"):
        RewardModelScorer(model=str(folder)).check()


def test_windows_are_kept(folder: Path) -> None:
    """Over the window, what fits is rated: the value is that of the start, if the floor is not lower."""
    made = RewardModelScorer(model=str(folder), truncated="grade")
    (score,) = asyncio.run(made.score([Sample(prompt="2+2?", response="yes no " * 1000)]))
    kept = score.evidence["kept"]
    assert score.evidence["truncated"]
    assert kept == 7000 // 2 ** round(np.log2(7000 / kept))
    (alone,) = asyncio.run(made.score([Sample(prompt="2+2?", response=("yes no " * 1000)[:kept])]))
    assert score.value == pytest.approx(alone.value, abs=CLOSE)
    longer = Sample(prompt="2+2?", response=("yes no " * 1000)[: 2 * kept])
    assert asyncio.run(made.score([longer]))[0].reason == "too_complex"


def test_it_conforms(folder: Path) -> None:
    check_scorer(RewardModelScorer(model=str(folder)), SAMPLES, tolerance=CLOSE).raise_for_failures()

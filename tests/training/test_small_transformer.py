"""A backbone made from nothing: the same files for the same texts, and none of the traps of published templates."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from adjudge.engines.template_lint import lint
from adjudge.training.small_transformer import BEGIN, END, PAD, Size, new_backbone

TEXTS = [
    f"Question {place}: what is {place} + {place}? It is {2 * place}, caf\u00e9, \u6570 \ud800." for place in range(300)
]
CHAT = [{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "It is 4."}]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_backbone(TEXTS, tmp_path_factory.mktemp("made") / "backbone", seed=3)


@pytest.fixture(scope="module")
def tokenizer(backbone: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(backbone)


def digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_the_same_texts_give_the_same_files(backbone: Path, tmp_path: Path) -> None:
    again = new_backbone([*reversed(TEXTS), TEXTS[0], " "], tmp_path / "again", seed=3)
    assert digests(again) == digests(backbone)


@pytest.mark.parametrize(
    ("texts", "seed", "changed"),
    [(TEXTS, 4, {"model.safetensors"}), (["Other words altogether."] * 9, 3, {"model.safetensors", "tokenizer.json"})],
    ids=["another seed", "other texts"],
)
def test_another_start_gives_another_model(
    backbone: Path, tmp_path: Path, texts: list[str], seed: int, changed: set[str]
) -> None:
    before, now = digests(backbone), digests(new_backbone(texts, tmp_path / "other", seed=seed))
    assert changed <= {name for name in now if now[name] != before[name]}


def test_making_one_leaves_the_random_numbers_alone(tmp_path: Path) -> None:
    import torch

    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    new_backbone(TEXTS[:20], tmp_path / "made", seed=1)
    assert torch.equal(torch.rand(3), expected)


def test_the_template_has_none_of_the_usual_faults(tokenizer: Any) -> None:
    assert lint(tokenizer) == []
    assert len({tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id}) == 3


def test_a_finished_chat_begins_once_and_ends(tokenizer: Any) -> None:
    text = tokenizer.apply_chat_template(CHAT, tokenize=False)
    ids = tokenizer(text).input_ids  # nothing is added that the template has
    assert ids.count(tokenizer.bos_token_id) == 1
    assert ids[0] == tokenizer.bos_token_id
    assert ids[-1] == tokenizer.eos_token_id
    assert text == f"{BEGIN}<|user|>What is 2 + 2?{END}<|assistant|>It is 4.{END}"
    assert PAD not in text


def test_a_chat_to_go_on_with_ends_in_the_assistant_s_turn(tokenizer: Any) -> None:
    text = tokenizer.apply_chat_template(CHAT[:1], tokenize=False, add_generation_prompt=True)
    assert text == tokenizer.apply_chat_template(CHAT[:1], tokenize=False) + "<|assistant|>"


def test_an_unknown_role_is_refused(tokenizer: Any) -> None:
    from jinja2 import TemplateError

    with pytest.raises(TemplateError, match="unknown role"):
        tokenizer.apply_chat_template([{"role": "end|><|user", "content": "x"}], tokenize=False)


@pytest.mark.parametrize("text", ["", "plain", "caf\u00e9 \u6570\u5b66 \U0001f600", "\t two\n\n lines ", "\x00\x07"])
def test_any_text_survives_the_tokenizer(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer(text).input_ids) == text


@pytest.mark.parametrize(("size", "fewest", "most"), [("tiny", 300_000, 1_000_000), ("small", 2_000_000, 6_000_000)])
def test_it_loads_as_any_other_model(tmp_path: Path, size: Size, fewest: int, most: int) -> None:
    import torch
    from transformers import AutoModel, AutoModelForCausalLM

    folder = new_backbone(TEXTS, tmp_path / size, size=size)
    body, whole = (kind.from_pretrained(folder) for kind in (AutoModel, AutoModelForCausalLM))
    assert fewest < whole.num_parameters() < most
    ids = torch.tensor([[1, 5, 9, 2]])
    with torch.no_grad():
        hidden, logits = body(input_ids=ids).last_hidden_state, whole(input_ids=ids).logits
    assert hidden.isfinite().all()
    assert logits.std() > 0
    assert torch.allclose(hidden @ whole.get_input_embeddings().weight.T, logits, atol=1e-4)  # tied


def test_what_cannot_be_made_is_refused(backbone: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds something"):
        new_backbone(TEXTS, backbone)
    with pytest.raises(ValueError, match="on no text"):
        new_backbone(["", " \n"], tmp_path / "made")
    with pytest.raises(ValueError, match="one of tiny, small"):
        new_backbone(TEXTS, tmp_path / "made", size="huge")  # type: ignore[arg-type]
    assert not (tmp_path / "made").exists()

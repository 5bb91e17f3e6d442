from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.items.likeness import CountLikeness, Matrix, groups, likeness_of, particulars

TEXTS = st.lists(
    st.lists(
        st.sampled_from("ada bob rome fair won lost 1990 1991 Ada Rome not the".split()), min_size=1, max_size=5
    ).map(" ".join),
    max_size=8,
)


def alike(texts: list[str], how: str = "words") -> Matrix:
    return asyncio.run(CountLikeness(how).matrix(texts))


def standing(texts: list[str], least: float) -> set[str]:
    return {texts[group[0]] for group in groups(texts, alike(texts), least)}


def test_likeness_of_words_is_the_cosine_of_words_and_pairs_of_words() -> None:
    one, two = "Ada beat Bob", "Bob beat Ada"  # three words in common, no pair: 3 / 5
    assert alike([one, two]) == [[1.0, 0.6], [0.6, 1.0]]


def test_likeness_of_letters_sees_inflected_forms_and_words_do_not() -> None:
    texts = ["correct calculation", "correct calculations"]
    assert alike(texts, "letters")[0][1] > 0.9
    assert alike(texts, "words")[0][1] == pytest.approx(1 / 3)


@given(TEXTS, st.sampled_from(["words", "letters"]))
def test_likeness_is_symmetric_between_0_and_1_and_knows_no_company(texts: list[str], how: str) -> None:
    found = alike(texts, how)
    for a, row in enumerate(found):
        assert row[a] == 1.0
        for b, value in enumerate(row):
            assert value == found[b][a] == alike([texts[a], texts[b]], how)[0][1]
            assert 0 <= value <= 1 + 1e-12


@pytest.mark.parametrize("how", ["words", "letters"])
def test_texts_without_words_are_like_their_equals_alone(how: str) -> None:
    assert alike(["?!", "?!", "...", "yes"], how)[0] == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (
            "The fair that was held in the old town of Rome opened in 1990",
            "The fair that was held in the old town of Rome opened in 1991",
        ),
        (
            "After a long match in the old town hall Ada won the cup",
            "After a long match in the old town hall Eva won the cup",
        ),
        (
            "The old bridge over the river was not closed in the war at all",
            "The old bridge over the river was closed in the war at all",
        ),
    ],
)
def test_another_number_another_name_and_a_denial_are_another_fact(one: str, two: str) -> None:
    assert alike([one, two])[0][1] > 0.7
    assert groups([one, two], alike([one, two]), 0.5) == [[0], [1]]


def test_the_same_fact_in_other_words_is_one() -> None:
    texts = ["Ada won in 1990.", "in 1990 Ada won", "Bob lost."]
    assert groups(texts, alike(texts), 0.85) == [[1, 0], [2]]  # of equals the shorter one stands


def test_numbers_names_and_denials_are_seen() -> None:
    assert particulars("The 2 fairs of Rome didn't pay 3,5 Lire") == (("2", "3,5"), ("lire", "rome"), True)


@given(TEXTS, st.floats(0.1, 1.0), st.randoms(use_true_random=False))
def test_what_stands_does_not_depend_on_the_order(texts: list[str], least: float, draw: random.Random) -> None:
    mixed = list(texts)
    draw.shuffle(mixed)
    assert standing(mixed, least) == standing(texts, least)


@given(TEXTS, st.floats(0.1, 1.0))
def test_merging_the_merged_changes_nothing_and_loses_nobody(texts: list[str], least: float) -> None:
    found = groups(texts, alike(texts), least)
    assert sorted(place for group in found for place in group) == list(range(len(texts)))
    kept = [texts[group[0]] for group in found]
    assert groups(kept, alike(kept), least) == [[place] for place in range(len(kept))]


@given(TEXTS)
def test_saying_it_twice_changes_nothing(texts: list[str]) -> None:
    assert standing(texts * 2, 0.8) == standing(texts, 0.8)


@pytest.mark.parametrize("spec", ["", "embedding", "transformers:", "openai:model"])
def test_an_unknown_likeness_is_named(spec: str) -> None:
    with pytest.raises(ValueError, match=r"--likeness is .*words, letters, or transformers:MODEL"):
        likeness_of(spec)


def test_a_model_of_embeddings_tells_likeness(tmp_path: Path) -> None:
    import torch
    from tests.engines.tiny_models import tiny_tokenizer
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    tokenizer = tiny_tokenizer()
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    network: Any = BertModel
    network(BertConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    texts = ["is correct", "is correct", "names the source", "stays short and clear"]
    likeness = likeness_of(f"transformers:{tmp_path}")
    found = asyncio.run(likeness.matrix(texts))
    assert found[0][1] == 1.0
    assert all(0 <= value <= 1 + 1e-9 for row in found for value in row)
    assert found[2][3] == pytest.approx(found[3][2])
    assert found[2][3] == asyncio.run(likeness.matrix(texts[2:]))[0][1]  # no company changes it
    before = likeness.fingerprint
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_lasttoken": true}', encoding="utf-8")
    other = likeness_of(f"transformers:{tmp_path}")
    assert asyncio.run(other.matrix(texts))[2][3] != pytest.approx(found[2][3])
    assert other.fingerprint != before


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    likeness = likeness_of(f"transformers:{tmp_path}")
    with pytest.raises(ValueError, match="cannot be loaded"):
        asyncio.run(likeness.matrix(["a"]))

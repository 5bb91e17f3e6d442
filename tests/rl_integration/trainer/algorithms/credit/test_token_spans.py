"""Tokens find the characters that they wrote, whatever the decoder does with blanks, bytes and special tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.rl_integration.trainer.algorithms.credit import answers as module
from adjudge.rl_integration.trainer.algorithms.credit.answers import token_spans

WORDS = "Step one: 2 + 2 = 4.\n\nthen the end, naïve €5 \U0001f600 你好 "
TEXTS = st.text(st.sampled_from([*WORDS, "\ufffd", "\u0301", "ß"]), max_size=30)
END = "<|end|>"


def bytes_of_text() -> Tokenizer:
    """As GPT-2, Llama 3 and Qwen: a token is some bytes, and a character may be several tokens."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        [WORDS], trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    )
    made.add_special_tokens([AddedToken(END, special=True)])
    return made


def words_and_bytes() -> Tokenizer:
    """As Llama 2 and Gemma: blanks are marks, the first one is stripped, unknown characters are bytes."""
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *sorted(set("Stepon:2+=4.thd"))]
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "o"), ("e", "n")]
    vocabulary = {text: at for at, text in enumerate([*pieces, *("".join(pair) for pair in merges)])}
    made = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.add_special_tokens([AddedToken(END, special=True)])
    return made


def parts_of_words() -> Tokenizer:
    """As BERT: tokens are words but for those that go on."""
    vocabulary = {text: at for at, text in enumerate(["[UNK]", "step", "##s", "one", ".", "##x"])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.decoder = decoders.WordPiece(cleanup=True)
    made.add_special_tokens([AddedToken(END, special=True)])
    return made


MAKERS: dict[str, Callable[[], Tokenizer]] = {
    "bytes": bytes_of_text,
    "words and bytes": words_and_bytes,
    "parts of words": parts_of_words,
}
TOKENIZERS = {name: maker() for name, maker in MAKERS.items()}


def decoder(name: str) -> Callable[[Sequence[int]], str]:
    from transformers import PreTrainedTokenizerFast

    make: Any = PreTrainedTokenizerFast
    made = make(tokenizer_object=TOKENIZERS[name], eos_token=END, clean_up_tokenization_spaces=False)
    return PromptTokens(made, model=name, window=1000).decode


DECODERS = {name: decoder(name) for name in MAKERS}


@settings(max_examples=60)
@given(text=TEXTS)
def test_spans_are_the_offsets_of_the_tokenizer_where_the_text_comes_back(text: str) -> None:
    encoded = TOKENIZERS["bytes"].encode(text)
    assert DECODERS["bytes"](encoded.ids) == text
    assert token_spans(DECODERS["bytes"], encoded.ids) == encoded.offsets


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=60)
@given(data=st.data())
def test_spans_say_what_every_beginning_of_the_tokens_says(name: str, data: st.DataObject) -> None:
    """For any tokens at all: bytes that are not characters, special tokens in between, a text that is only a part."""
    decode = DECODERS[name]
    size = TOKENIZERS[name].get_vocab_size()
    usual = TOKENIZERS[name].encode(WORDS).ids
    ids = data.draw(st.lists(st.sampled_from(usual) | st.integers(0, size - 1), max_size=24))
    text = decode(ids)
    spans = token_spans(decode, ids)
    assert len(spans) == len(ids)
    before = 0
    for place, (begin, end) in enumerate(spans):
        assert 0 <= begin <= end <= len(text)
        said = decode(ids[: place + 1])
        whole = next(
            (at for at, (a, b) in enumerate(zip(said, text, strict=False)) if a != b), min(len(said), len(text))
        )
        if decode([ids[place]] * 2):
            # or behind its predecessor: E5 9F 9F is a character until F0 comes and makes four unreadable bytes of them
            assert begin in (before, max(before - 1, 0), spans[place - 1][1] if place else 0)
            assert end == max(whole, before) + (whole < len(said))
        else:
            assert begin == end, "a special token has no text"
        before = max(whole, before)
    assert before == len(text)


def test_a_character_that_later_bytes_make_unreadable_is_a_sign_for_each_byte() -> None:
    assert DECODERS["words and bytes"]([230, 160, 160]) == "\u57df"
    assert token_spans(DECODERS["words and bytes"], [230, 160, 160, 241]) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_parts_of_a_character_have_it_and_special_tokens_have_nothing() -> None:
    tokenizer, decode = TOKENIZERS["bytes"], DECODERS["bytes"]
    (end,) = tokenizer.encode(END).ids
    ids = tokenizer.encode("a\U00010348b").ids
    assert len(ids) == 6, "the letter must be four tokens for this test to say anything"
    ids = [end, ids[0], ids[1], end, *ids[2:], end]
    assert token_spans(decode, ids) == [(0, 0), (0, 1), (1, 2), (2, 2), (1, 2), (1, 2), (1, 2), (2, 3), (3, 3)]
    assert token_spans(decode, []) == []
    assert token_spans(decode, [end]) == [(0, 0)]


def test_the_first_blank_is_stripped_and_the_others_are_not() -> None:
    tokenizer, decode = TOKENIZERS["words and bytes"], DECODERS["words and bytes"]
    ids = tokenizer.encode("the the €").ids
    assert tokenizer.encode("the the €").tokens == ["▁the", "▁the", "▁", "<0xE2>", "<0x82>", "<0xAC>"]
    assert token_spans(decode, ids) == [(0, 3), (3, 7), (7, 8), (8, 9), (8, 9), (8, 9)]
    two = tokenizer.encode("你好").ids
    assert len(two) == 7, "a mark, and two characters of three bytes"
    assert token_spans(decode, two) == [(0, 0), *[(0, 1)] * 3, *[(1, 2)] * 3]


def test_a_decoder_that_looks_far_back_is_followed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    slow: list[int] = []
    plain = module._by_beginnings

    def counted(decode: Any, ids: Sequence[int], text: str) -> Any:
        slow.append(len(ids))
        return plain(decode, ids, text)

    monkeypatch.setattr(module, "_by_beginnings", counted)

    def alternating(ids: Sequence[int]) -> str:
        return "".join("abc"[one].upper() if place % 2 else "abc"[one] for place, one in enumerate(ids))

    assert alternating([0, 1, 2, 0]) == "aBcA"
    assert token_spans(alternating, [0, 1, 2, 0]) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert slow == [4]
    for name in ("bytes", "words and bytes"):
        token_spans(DECODERS[name], TOKENIZERS[name].encode(WORDS).ids)
    assert slow == [4], "usual tokenizers are read step by step"

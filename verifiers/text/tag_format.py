"""Does the response consist of the required tags, in order, each once, with nothing outside?

Everything that looks like one of the tags counts: another case, blanks or attributes inside the brackets, a tag inside
a code block or inside another tag.  Whoever reads the answer later would meet it too, so each such tag is one too many.

Not covered: XML.  Other tags, entities and comments are ordinary text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from adjudge.options import Range, check_options
from adjudge.protocol import THINK_START, Sample, Score, Verifier, response_text
from adjudge.responses.answer_span import shorten
from adjudge.responses.markup import text_end
from adjudge.responses.visible import visible


@dataclass(frozen=True, kw_only=True)
class FormatVerifier(Verifier):
    """1 when the response has the required form, else 0 (or a share, with `credit="fraction"`).

    Attributes:
        tags: the names of the tags in their order; `<name>...</name>` for each.
        outside: "nothing" allows only whitespace before, between and behind the elements, "text" allows any text.
        min_characters: characters that show something, needed inside every element, in a thought not all of
            them punctuation; 0 allows empty elements.
        opened: the prompt already ends with the first opening tag, so the response must start without it.
        credit: "all" or nothing, or a "fraction": of the `2 * len(tags) + 3` checks (each opening and each closing
            tag written exactly once; right order; nothing outside; no empty element) the share that passed.  The last
            three count only when every tag is there once, so an empty response gets 0.  With `opened` the tag that
            the prompt wrote is not a check.
    """

    name: ClassVar[str] = "format"
    version: ClassVar[str] = "2"
    needs_reference: ClassVar[bool] = False

    tags: tuple[str, ...] = ("think", "answer")
    outside: Literal["nothing", "text"] = "nothing"
    min_characters: Annotated[int, Range(ge=0)] = 1
    opened: bool = False
    credit: Literal["all", "fraction"] = "all"

    def __post_init__(self) -> None:
        check_options(self, "format option")
        for tag in self.tags:
            if not isinstance(tag, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,40}", tag):
                raise ValueError(f"format: {tag!r} is not a tag name; use letters, digits, '_' and '-'")
        if not self.tags or len({tag.lower() for tag in self.tags}) < len(self.tags):
            raise ValueError(f"format option tags={self.tags!r}; name each tag once, and at least one")

    def verify(self, sample: Sample) -> Score:
        """Return 1, 0 or a share; the evidence names the first problem."""
        text = response_text(sample)
        text = text[: text_end(text)]
        if self.opened:
            text = f"<{self.tags[0]}>{text}"
        wanted = [part for tag in self.tags for part in (f"<{tag}>", f"</{tag}>")]
        passed, problem = self._checked(text, list(_looks_like(self.tags).finditer(text)), wanted)
        if not problem:
            return Score.scored(1.0)
        value = passed / (len(wanted) + 3 - int(self.opened)) if self.credit == "fraction" else 0.0
        return Score.scored(value, "bad_format", problem=problem)

    def _checked(self, text: str, tags: list[re.Match[str]], wanted: list[str]) -> tuple[int, str]:
        """Return how many checks passed and the first problem, "" when there is none."""
        names = [match["name"].lower() + match["slash"] for match in tags]
        once = [names.count(tag.lower() + slash) == 1 for tag in self.tags for slash in ("", "/")]
        written = [match[0] for match in tags]
        exact = [present and part in written for present, part in zip(once, wanted, strict=True)]
        passed = sum(exact[int(self.opened) :])  # the tag that the prompt wrote is no merit of the response
        if not all(exact):
            part = wanted[exact.index(False)]
            return passed, f"{part} must stand exactly once, written just so"
        if written != wanted:
            return passed, f"the tags are not in the order {' '.join(wanted)}"
        inside = [text[a.end() : b.start()] for a, b in zip(tags[::2], tags[1::2], strict=True)]
        starts = [0, *(match.end() for match in tags[1::2])]
        ends = [*(match.start() for match in tags[::2]), len(text)]
        outside = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        problems = []
        if self.outside == "nothing" and any(outside):
            problems.append(f"text outside the tags: {shorten(next(filter(None, outside)), 60)!r}")
        for tag, content in zip(self.tags, inside, strict=True):
            shown = "".join(visible(content).split())
            if len(shown) < self.min_characters:
                problems.append(f"<{tag}> holds fewer than {self.min_characters} characters")
                break
            if shown and f"<{tag}>" in THINK_START and all(unicodedata.category(sign)[0] == "P" for sign in shown):
                problems.append(f"<{tag}> holds marks alone")
                break
        return passed + 3 - len(problems), problems[0] if problems else ""


@lru_cache(maxsize=64)
def _looks_like(tags: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, tags))
    # Bounded blanks and no "<" inside keep the search linear.
    return re.compile(rf"<\s{{0,4}}(?P<slash>/?)\s{{0,4}}(?P<name>{names})(?![\w-])[^<>]{{0,200}}>", re.IGNORECASE)

"""Does the response match a regular expression?

The pattern is an option and comes from the user only; nothing of a sample is ever compiled.  It is compiled when the
verifier is made, so a broken one is reported before any work.  A pattern that backtracks without end on some response
is stopped by the runtime's time limit, and that response scores 0 with the reason `candidate_timeout`; write
patterns without nested repeats (`(a+)+`), or use possessive ones (`(?>a+)+`).

Not covered: comparing a captured group with a reference; use `exact` with `where="marker"` or `"tag"`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from adjudge.options import check_options
from adjudge.protocol import Sample, Score, Verifier
from adjudge.responses.answer_span import shorten
from adjudge.responses.markup import invisible
from adjudge.scoring.verifier_base import graded_text

_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")


@dataclass(frozen=True, kw_only=True)
class RegexVerifier(Verifier):
    """1 when the response matches the pattern (or does not, with `expect="no_match"`), else 0.

    Attributes:
        pattern: Python regular expression; required.
        mode: "fullmatch" wants the whole trimmed text to match, "search" any part of it.
        expect: "match", or "no_match" for a pattern that must not occur.
        ignore_case, dot_all, multi_line: flags: case does not matter; "." matches a newline; "^" and "$" at every line.
        ignore_invisible: match the text without zero-width and other format characters, soft hyphens and control
            characters, unless the pattern has such a character itself.
        reasoning: "strip" matches only what follows the last end-of-thinking tag, and a response that ends inside its
            reasoning gets 0; "keep" matches the whole text.
    """

    name: ClassVar[str] = "regex"
    version: ClassVar[str] = "3"
    needs_reference: ClassVar[bool] = False

    pattern: str = ""
    mode: Literal["fullmatch", "search"] = "fullmatch"
    expect: Literal["match", "no_match"] = "match"
    ignore_case: bool = False
    dot_all: bool = True
    multi_line: bool = False
    ignore_invisible: bool = True
    reasoning: Literal["strip", "keep"] = "strip"

    def __post_init__(self) -> None:
        check_options(self, "regex option")
        if not self.pattern:
            raise ValueError("regex needs a pattern, for example {regex: {pattern: '[0-9]{4}'}}")
        try:
            self._compiled()
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(
                f"regex: the pattern {shorten(self.pattern)!r} is not a valid regular expression: {error}"
            ) from error

    def verify(self, sample: Sample) -> Score:
        """Return 1 or 0; the evidence holds what matched and where."""
        text, fault = graded_text(sample, self.reasoning, end_tokens="<" in self.pattern)
        if fault:
            return Score.scored(0.0, fault)
        if self.ignore_invisible and not text.isprintable() and not self._names_invisible():
            text = invisible(text)
        text = text.strip()
        if not text and self.expect == "no_match":
            return Score.scored(0.0, "no_answer")
        compiled = self._compiled()
        match = compiled.fullmatch(text) if self.mode == "fullmatch" else compiled.search(text)
        evidence: dict[str, Any] = {"match": shorten(match[0]), "span": list(match.span())} if match else {}
        if (match is not None) == (self.expect == "match"):
            return Score.scored(1.0, **evidence)
        return Score.scored(0.0, "bad_format", **evidence)

    def _names_invisible(self) -> bool:
        pattern = _ESCAPE.sub(lambda match: chr(int(match[0][2:], 16)), self.pattern)
        return invisible(pattern) != pattern

    def _compiled(self) -> re.Pattern[str]:
        flags = self.ignore_case * re.IGNORECASE | self.dot_all * re.DOTALL | self.multi_line * re.MULTILINE
        return re.compile(self.pattern, flags)

"""RAIDEN-R1's reward for staying in a role: does the response say what the character must know?

Single-term validation looks for one keyword.  Multi-term validation asks for several, or runs a generated checker in
a sandbox: the scorer `raiden` does both, admits what it judges with first, and can mix in the form of the response.

The published test is "contains the keyword", which a response that lists every name there is passes.  Here a key must
be affirmed, not denied; naming an excluded answer is 0; and a response may be limited to some number of words.

Not covered: style, tone and safety of a role; those need a judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from adjudge.options import Range, check_options
from adjudge.protocol import Sample, Score, Verifier
from adjudge.responses.phrases import affirmed_in, found_in, plain
from adjudge.responses.visible import visible
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.entries import reject_unknown, shown
from adjudge.scoring.verifier_base import Reasoning, graded_text

_AS_TEXT = ('{"', "{'", '["', "['")  # no role says this, so every response would be wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What a response must say, and what it must not.

    Attributes:
        required: groups of alternatives; of each group one must stand in the response.
        excluded: other answers to the same question; a response that names one of them has not committed itself.
    """

    required: tuple[tuple[str, ...], ...]
    excluded: tuple[str, ...] = ()


def read_keys(reference: Any) -> Keys:
    """Return the keys of a text, a list of alternatives, or `{"keys": [...], "excluded": [...]}`.

    In the mapping each entry of `keys` is a text or a list of alternatives, and all entries are required.

    Raises:
        BadReferenceError: the reference cannot be read, or excludes what it requires.
    """
    if not isinstance(reference, Mapping):
        return Keys(required=(_alternatives(reference, "the keyword"),))
    reject_unknown(reference, ("keys", "excluded"), where="the persona reference")
    entries = reference.get("keys")
    if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
        raise BadReferenceError(f"the persona reference has the keys {shown(entries)}; give a list of texts")
    required = tuple(_alternatives(entry, f"key {at}") for at, entry in enumerate(entries, start=1))
    excluded = _alternatives(reference["excluded"], "excluded") if reference.get("excluded") else ()
    for key in excluded:
        if any(found_in(key, wanted) for group in required for wanted in group):
            raise BadReferenceError(f"the excluded word {key!r} stands in a key, so no response could be right")
    return Keys(required=required, excluded=excluded)


def _alternatives(entry: Any, what: str) -> tuple[str, ...]:
    texts = [entry] if isinstance(entry, str) else entry
    if not isinstance(texts, Sequence) or not texts:
        raise BadReferenceError(f"{what} is {shown(entry)}; give a text, or a list of texts that mean the same")
    for text in texts:
        if not isinstance(text, str) or not plain(text):
            raise BadReferenceError(f"{what} holds {shown(text)}; a key must be a text with something to be seen")
        if text.lstrip().startswith(_AS_TEXT):
            raise BadReferenceError(
                f"{what} is data written as text, {shown(text)}; give the list or mapping itself (--reference-json)"
            )
    return tuple(texts)


_MAX_CHARACTERS = 200_000


@dataclass(frozen=True, kw_only=True)
class PersonaVerifier(Verifier):
    """Share of required keywords that the response affirms, or all or nothing.

    The reference is a keyword, a list of alternatives, or `{"keys": [...], "excluded": [...]}`.

    Attributes:
        credit: "all": 1 when every key is there, else 0; "fraction": the share of keys that are.
        max_words: longest response in words that can score; 0 for any length.
        reasoning: "strip" looks only at what follows the end-of-thinking tag; "keep" at all of it.
    """

    name: ClassVar[str] = "persona"
    version: ClassVar[str] = "2"

    credit: Literal["all", "fraction"] = "all"
    max_words: Annotated[int, Range(ge=0)] = 0
    reasoning: Reasoning = "strip"

    def __post_init__(self) -> None:
        check_options(self, "persona option")

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the keys are missing or malformed."""
        super().validate(sample)
        read_keys(sample.reference)

    def verify(self, sample: Sample) -> Score:
        """Return 1, 0 or the share; see the module for the rest."""
        try:
            keys = read_keys(sample.reference)
        except BadReferenceError as error:
            return Score.failed("gold_unparsable", error=str(error))
        text, fault = graded_text(sample, self.reasoning, "grade")
        if fault:
            return Score.scored(0.0, fault)
        if not text.strip():
            return Score.scored(0.0, "no_answer")
        if len(text) > _MAX_CHARACTERS:
            return Score.scored(0.0, "too_complex", error=f"more than {_MAX_CHARACTERS} characters")
        if self.max_words and len(text.split()) > self.max_words:
            return Score.scored(0.0, "too_long", words=len(text.split()))
        seen = visible(text)  # another answer in letters that look like its own is named all the same
        others = [key for key in keys.excluded if found_in(key, text) or found_in(key, seen)]
        if others:
            return Score.scored(0.0, "several_answers", excluded=others)
        missing = [group[0] for group in keys.required if not any(affirmed_in(key, text) for key in group)]
        share = 1 - len(missing) / len(keys.required)
        value = share if self.credit == "fraction" else float(not missing)
        return Score.scored(value, "wrong" if missing else "", missing=missing)

"""RAIDEN-R1's reward for staying in a role: does the response say what the character must know?

    single-term   1 if the response affirms the keyword, of which several models' answers had to be sure
    multi-term    what a generated checker says in the sandbox, which had to agree with a judge on more than 70 %
    mixed         (1 - w) * accuracy + w * form

`persona` looks for keywords.  The published test is "contains the keyword", which a response that lists every name
passes.  Here a key must be affirmed, not denied; naming an excluded answer is 0; and a response may be limited to some
number of words.

`raiden` is the whole: what is to be judged with is tried by the reference's own evidence, once in a process, and what
fails is `failed`: a checker that says yes to everything would pay for everything.  w is 0, as in the paper; 0.3 is that
of its re-implementations, which differ from each other (0.7/0.3 and 0.5/0.3).  There is no code by the authors (arXiv
2505.10218).

Not covered: style, tone and safety of a role; those need a judge.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from adjudge.options import Range, check_options
from adjudge.protocol import Limits, Sample, Score, Verifier
from adjudge.responses.phrases import affirmed_in, found_in, plain
from adjudge.responses.visible import visible
from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.sandbox import Isolation
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import reject_unknown, shown
from adjudge.scoring.verifier_base import Reasoning, graded_text
from adjudge.verifiers.code.program import ProgramVerifier, question_of, read_checker
from adjudge.verifiers.text.persona.admission import (
    MIN_AGREEMENT,
    Admission,
    TrialTimeoutError,
    agreed_keyword,
    try_checker,
)
from adjudge.verifiers.text.tag_format import FormatVerifier

_AS_TEXT = ('{"', "{'", '["', "['")  # no role says this, so every response would be wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Groups of alternatives of which one must stand in a response, and other answers that it must not name."""

    required: tuple[tuple[str, ...], ...]
    excluded: tuple[str, ...] = ()


def read_keys(reference: Any) -> Keys:
    """Return the keys of a text, a list of alternatives, or `{"keys": [...], "excluded": [...]}`.

    In the mapping each entry of `keys` is a text or a list of alternatives, and all entries are required.
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
    version: ClassVar[str] = "3"

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


_TRIAL_SECONDS = 60.0
_MAX_ANSWERS = 200
_JUDGED = ("", "wrong", "several_answers")  # reasons of a response that was read; only such a one is paid for its form


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checker:
    source: str
    good: tuple[str, ...]
    bad: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RaidenVerifier(Verifier):
    """Does the response say what its role must know, by keys or by a checker that were admitted?

    The reference is a keyword, a list of alternatives, `{"keys": [...], "excluded": [...], "references": [...]}` with
    several models' answers to try the keys on, or `{"program": source, "good": [...], "bad": [...]}` with answers that
    a judge called right and wrong.

    Attributes:
        admission: "tried" tries keys that bring references, and every checker; "trusted" takes what is given, for
            references that were tried before, as those of `adjudge data keywords` are.
        min_agreement: what a checker's agreement with the judge must exceed.
        balanced: whether on right and on wrong answers alike; the published rule looks at all together.
        format_weight: what the form weighs; 0.3 in re-implementations.
        form_pays: "always", as in those, or "when_right", so that only accuracy above 0 is paid for its form.
        tags: the tags of the form.
        credit: of keys, "all" or the "fraction" that is there.
        max_words: longest response in words that can score by keys; 0 for any length.
        reasoning: "strip" judges only what follows the end-of-thinking tag; "keep" all of it.
        seconds, memory_mb: what one call of a checker may take, in seconds and MiB.
        isolation: "bubblewrap", or "none" for checkers you trust.
    """

    name: ClassVar[str] = "raiden"
    version: ClassVar[str] = "2"

    admission: Literal["tried", "trusted"] = "tried"
    min_agreement: Annotated[float, Range(ge=0, lt=1)] = MIN_AGREEMENT
    balanced: bool = True
    format_weight: Annotated[float, Range(ge=0, lt=1)] = 0.0
    form_pays: Literal["always", "when_right"] = "always"
    tags: tuple[str, ...] = ("think", "answer")
    credit: Literal["all", "fraction"] = "all"
    max_words: int = 0
    reasoning: Reasoning = "strip"
    seconds: float = 5.0
    memory_mb: int = 512
    isolation: Isolation = "bubblewrap"

    def __post_init__(self) -> None:
        check_options(self, "raiden option")
        object.__setattr__(self, "tags", self._form.tags)
        _ = self._keys, self._program  # their options are checked there

    @property
    def _keys(self) -> PersonaVerifier:
        return PersonaVerifier(credit=self.credit, max_words=self.max_words, reasoning=self.reasoning)

    @property
    def _program(self) -> ProgramVerifier:
        return ProgramVerifier(
            reasoning=self.reasoning, seconds=self.seconds, memory_mb=self.memory_mb, isolation=self.isolation
        )

    @property
    def _form(self) -> FormatVerifier:
        return FormatVerifier(tags=self.tags)

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """What one call may use: a trial, two runs of the checker, and room to start a sandbox."""
        return Limits(seconds=_TRIAL_SECONDS + 6 * self.seconds + 30.0, memory_mb=1024, processes=4096)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or malformed; nothing is tried yet."""
        super().validate(sample)
        self._read(sample.reference)

    def verify(self, sample: Sample) -> Score:
        """Return the reward; see the module for its parts."""
        try:
            accuracy = self._accuracy(sample)
        except BadReferenceError as error:
            return Score.failed("gold_unparsable", error=str(error))
        except TrialTimeoutError as error:
            return Score.failed("gold_timeout", error=str(error))
        except SandboxUnavailableError as error:
            return Score.failed(error.reason, error=str(error))
        if accuracy.value is None or not self.format_weight:
            return accuracy
        form = self._form.verify(sample)
        paid = accuracy.reason in _JUDGED and (self.form_pays == "always" or accuracy.value > 0)
        assert form.value is not None
        value = (1 - self.format_weight) * accuracy.value + self.format_weight * form.value * paid
        return replace(accuracy, value=value, parts={"accuracy": accuracy, "format": form})

    def _accuracy(self, sample: Sample) -> Score:
        gold = self._read(sample.reference)
        if isinstance(gold, _Checker):
            evidence = {}
            if self.admission == "tried":
                trial = _tried(self._program, gold, question_of(sample), self.min_agreement, self.balanced)
                if not trial.admitted:
                    raise BadReferenceError(
                        f"the checker agrees with the judge on {trial.agreement:.3g} of the answers ({trial.on_right} "
                        f"of the right ones, {trial.on_wrong} of the wrong ones); it must be more than "
                        f"{self.min_agreement:g}"
                    )
                evidence = {"agreement": trial.agreement}
            score = self._program.verify(replace(sample, reference=gold.source))
            return replace(score, evidence={**score.evidence, **evidence})
        return self._keys.verify(replace(sample, reference=gold))

    def _read(self, reference: Any) -> Any:
        """Return a checker, or a reference of the scorer `persona` on whose keys its references agree."""
        if isinstance(reference, Mapping) and "program" in reference:
            return self._read_checker(reference)
        if not isinstance(reference, Mapping) or "references" not in reference:
            read_keys(reference)
            return reference
        answers = _texts(reference["references"], "references")
        plain = {key: value for key, value in reference.items() if key != "references"}
        if self.admission == "tried":
            for ways in read_keys(plain).required:
                if not agreed_keyword(answers, ways):
                    raise BadReferenceError(
                        f"the key {ways[0]!r} stands in too few of the {len(answers)} references; at least 2 must hold "
                        "it, and more than half"
                    )
        return plain

    def _read_checker(self, reference: Mapping[str, Any]) -> _Checker:
        reject_unknown(reference, ("program", "good", "bad"), where="the raiden reference")
        source = read_checker(reference["program"], where="the raiden reference")
        if self.admission == "trusted":
            return _Checker(source=source, good=(), bad=())
        good, bad = (_texts(reference.get(side), side) for side in ("good", "bad"))
        return _Checker(source=source, good=good, bad=bad)


@functools.lru_cache(maxsize=128)
def _tried(program: ProgramVerifier, checker: _Checker, prompt: str, least: float, balanced: bool) -> Admission:
    """The trial of a checker, which all responses to its prompt share; what raises is tried again."""
    return try_checker(
        checker.source,
        prompt,
        checker.good,
        checker.bad,
        runner=program,
        least=least,
        balanced=balanced,
        seconds=_TRIAL_SECONDS,
    )


def _texts(given: Any, what: str) -> tuple[str, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not 1 <= len(given) <= _MAX_ANSWERS:
        raise BadReferenceError(f"{what} is {shown(given)}; give a list of 1 to {_MAX_ANSWERS} answers")
    if not all(isinstance(text, str) for text in given):
        raise BadReferenceError(f"{what} holds something that is not text")
    return tuple(given)

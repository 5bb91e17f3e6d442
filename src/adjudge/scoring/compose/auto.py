"""Scorers that choose one for each sample: `auto` by what the reference calls for, `by_kind` by the row's own word.

    {by_kind: {critique: {verdict: {style: critique}}, program: code}}

Which kind a sample is of stands in `extra["kind"]`.  Scores of different scorers are not brought to one scale; the
trainer compares answers to one prompt with each other, and those are of one kind.

Not covered: rewards without a reference (a format, a length); mix those in: `{weighted: {auto: 1.0, format: 0.1}}`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Self

from adjudge.fingerprints import signed
from adjudge.protocol import Message, MissingReferenceError, OutOfScopeError, Sample, Score, Scorer
from adjudge.responses.listed_options import is_listed_label
from adjudge.runtime.contract import is_groupwise, score_each, validate_sample
from adjudge.scoring.compose.composite import Loader
from adjudge.wire import json_hint, object_in

CODE_KEYS: Final = (
    "tests", "test_cases", "test_list", "test", "outputs", "assert_case", "input_output", "unit_tests",
    "public_test_cases", "private_test_cases", "public_tests", "private_tests", "generated_tests",
)  # fmt: skip
"""Keys of the layouts that `code` reads (`adjudge.verifiers.code.layouts`)."""

_KEYS_OF: Final = {
    **dict.fromkeys(("choices", "options"), "choice"),
    **dict.fromkeys(CODE_KEYS, "code"),
    "sql": "sql",
    "testbench": "verilog",
    "top": "verilog",
    **dict.fromkeys(("constraints", "instruction_id_list", "instruction_id"), "instructions"),
    "answer": "math",
}
_TEST_KEYS: Final = frozenset({"input", "stdin", "args", "kwargs"})
_TEST_SOURCE: Final = re.compile(r"^(?:assert [^\n]*\w\(|def (?:test\w*|check)\()", re.MULTILINE)
_ASKING: Final = ("rubric", "nuggets", "principles")  # keys, and names, of scorers that ask a model

ENGINE: Final = "ADJUDGE_ENGINE"
"""The environment variable that names the model "auto" asks: "openai:MODEL", "transformers:MODEL", "vllm:MODEL"."""


@dataclass(frozen=True, kw_only=True)
class Auto:
    """The scorer of each sample, chosen by its reference; see `auto_scorer`.

    Attributes:
        loader: makes the scorers, each when the first sample calls for it.
        name: short name, used in reports; scores name the scorer that was chosen.
    """

    loader: Loader
    name: str = "auto"
    _loaded: dict[str, Scorer] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read `auto`, which has no options."""
        if body:
            raise ValueError(f"auto takes no options, and it got {body!r}; name the scorer to give it options")
        return cls(loader=loader)

    @property
    def fingerprint(self) -> str:
        """The fingerprints of all scorers that may be chosen."""
        chosen = [self._scorer(name) for name in sorted(set(_KEYS_OF.values()))]
        return signed(self.name, chosen, os.environ.get(ENGINE, ""))

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if no scorer goes with the sample's reference, or that scorer refuses the sample."""
        validate_sample(self._scorer(auto_scorer(sample.reference, sample.prompt)), sample)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order."""
        chosen: list[str | Score] = []
        for sample in samples:
            try:
                chosen.append(auto_scorer(sample.reference, sample.prompt))
            except ValueError as error:
                chosen.append(Score.failed("bad_sample", error=str(error)))
        named = {name: self._scorer(name) for name in chosen if isinstance(name, str)}
        return await score_each(named, chosen, samples)

    def _scorer(self, name: str) -> Scorer:
        if name not in self._loaded:
            self._loaded[name] = self.loader.scorer(name)
        return self._loaded[name]


def auto_scorer(reference: Any, prompt: str | Sequence[Message] = "") -> str:
    """Return the scorer that `scorer="auto"` means for a reference, as a name or a spec.

    A text or a number, or a list of accepted ones, means "math": it compares text literally before it reads
    mathematics, so answers such as "Paris" or "B" are judged by it too; a label of the options that the prompt lists
    means "choice".  A mapping is recognised by its keys, and a list of mappings or of asserts, or the source of tests,
    means "code".

    Raises:
        MissingReferenceError: there is no reference.
        ValueError: no scorer of this version goes with it.
    """
    if reference is None:
        raise MissingReferenceError(
            'scorer="auto" chooses by the reference, and there is none; give a reference, or name a scorer that needs '
            'none, such as scorer="format"'
        )
    if is_listed_label(reference, prompt):
        return "choice"
    if isinstance(reference, Mapping):
        return _scorer_for_keys(reference)
    if (read := object_in(reference)) is not None and _is_known(read):
        raise ValueError(json_hint(reference))
    answers = reference if isinstance(reference, list | tuple) else [reference]
    if len(answers) == 1 and isinstance(answers[0], Mapping) and "instruction_id" in answers[0]:
        return "instructions"  # of RLVR
    if is_test_source(reference) or (answers and isinstance(reference, list | tuple) and all(map(_is_test, answers))):
        return "code"
    if answers and all(_is_answer(item) for item in answers):
        return "math"
    raise ValueError(
        f'scorer="auto" cannot tell what to do with the reference {_short(reference)}; give the answer as text or a '
        'number, a list of accepted answers such as ["yes", "true"], or name the scorer'
    )


def _scorer_for_keys(reference: Mapping[Any, Any]) -> str:
    if "func_name" in reference:  # of RLVR, whose rows have "options", too
        return "instructions"
    for key, name in _KEYS_OF.items():
        if key in reference:
            return name
    for name in _ASKING:
        if name in reference:
            return _asking(name)
    known = ", ".join([*(key for key in _KEYS_OF if key not in CODE_KEYS[1:]), *_ASKING])
    raise ValueError(
        f'scorer="auto" cannot tell what to do with a reference that has the keys {_short(list(reference))}; it knows '
        f"{known}. Name the scorer, or the key under which the answer stands (column.key)"
    )


def _is_known(read: Any) -> bool:
    """Whether an object, or a list of objects, calls for a scorer."""
    items = read if isinstance(read, list) else [read]
    keys = {*_KEYS_OF, *_ASKING} if isinstance(read, dict) else _TEST_KEYS
    return all(not keys.isdisjoint(item) for item in items)


def _asking(name: str) -> str:
    engine = os.environ.get(ENGINE, "")
    if not engine:
        raise ValueError(
            f"a reference with {name!r} is judged by a language model, and which one is yours to say: set {ENGINE} to "
            f'"openai:MODEL", "transformers:MODEL" or "vllm:MODEL", or give scorer={{"{name}": {{"engine": ...}}}}'
        )
    return json.dumps({name: {"engine": engine}})


def is_test_source(reference: Any) -> bool:
    """Return whether a reference is a text that tests a program: asserts of calls, or functions that test (KodCode)."""
    return isinstance(reference, str) and _TEST_SOURCE.search(reference) is not None


def _is_test(value: Any) -> bool:
    if isinstance(value, Mapping):
        return not _TEST_KEYS.isdisjoint(value)
    return isinstance(value, str) and value.startswith("assert ")


def _is_answer(value: Any) -> bool:
    return isinstance(value, str | int | float | Fraction | Decimal) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


@dataclass(frozen=True, kw_only=True)
class ByKind:
    """The scorer of each kind, by `extra["kind"]`.

    Attributes:
        scorers: kind to scorer.
        name: short name, used in provenance and reports.
    """

    scorers: Mapping[str, Scorer]
    name: str = "by_kind"

    def __post_init__(self) -> None:
        if not self.scorers:
            raise ValueError(
                f"{self.name} has no scorers; give one for each kind, as in {{critique: verdict, code: code}}"
            )

    @classmethod
    def from_spec(cls, body: Any, loader: Loader) -> Self:
        """Read `{KIND: SPEC, ...}`."""
        if not isinstance(body, Mapping):
            raise ValueError(
                f"by_kind takes a scorer for each kind, not {body!r}; as in {{critique: verdict, code: code}}"
            )
        return cls(scorers={str(kind): loader.scorer(spec) for kind, spec in body.items()})

    @property
    def fingerprint(self) -> str:
        """Kinds and the fingerprints of their scorers."""
        return signed(self.name, self.scorers)

    @property
    def groupwise(self) -> bool:
        """Whether one of them compares the answers of a group."""
        return any(is_groupwise(scorer) for scorer in self.scorers.values())

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the sample's kind has no scorer, or that scorer refuses it."""
        validate_sample(self._scorer(sample), sample)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; one of a kind without a scorer abstains."""
        chosen: list[str | Score] = []
        for sample in samples:
            kind = sample.extra.get("kind")
            if isinstance(kind, str) and kind in self.scorers:
                chosen.append(kind)
            elif isinstance(kind, str):
                chosen.append(Score.abstained("out_of_scope", error=self._unknown(kind)))
            else:
                chosen.append(Score.failed("bad_sample", error=self._unknown(kind)))
        return await score_each(self.scorers, chosen, samples, called="the scorer of the kind {}")

    def _scorer(self, sample: Sample) -> Scorer:
        kind = sample.extra.get("kind")
        if not isinstance(kind, str) or kind not in self.scorers:
            error = OutOfScopeError if isinstance(kind, str) else ValueError
            raise error(f"{self.name}{f', sample {sample.id!r}' if sample.id else ''}: {self._unknown(kind)}")
        return self.scorers[kind]

    def _unknown(self, kind: Any) -> str:
        told = "; name the column (label: --extra-column kind, a run: data.extra)" if kind is None else ""
        return f'extra["kind"] is {kind!r}, and there are scorers for {", ".join(self.scorers)}{told}'

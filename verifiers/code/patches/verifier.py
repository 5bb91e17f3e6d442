"""SWE-RL's reward for a patch: how alike its diffs are to those of the change that was made.

    -1                          the response has not the form that was asked for, or its edits do not apply
    mean over the files         else: `adjudge.verifiers.code.patches.similarity`

Source: Wei et al. 2025, "SWE-RL", and `calculate_search_replace_reward` of facebookresearch/swe-rl,
src/swerl/core/reward.py.  docs/code.md lists what the released code does that is not done here.

Not covered: whether the change is right.  A likeness is no proof: a patch that differs from the gold one by one wrong
character scores nearly 1.  Where there are tests, use `patch_tests`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeAlias

from adjudge.protocol import Limits, Sample, Score
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.verifier_base import Answer, Gold, ReferenceVerifier
from adjudge.verifiers.code.patches.edits import (
    CHANGES,
    BadEditError,
    Edit,
    Matching,
    Thought,
    apply_edits,
    change_of,
    read_edits,
    solution_of,
    texts_of,
)
from adjudge.verifiers.code.patches.similarity import TooMuchWorkError, change_similarity, gold_diffs

Scale = Literal["published", "unit"]
_Gold: TypeAlias = tuple[dict[str, str], dict[str, str]]

_FIELDS = frozenset({"files", *CHANGES})
_SHOWN = 50  # files in the evidence
_TAG = re.compile(r"[A-Za-z][\w-]{0,40}")


@dataclass(frozen=True, kw_only=True)
class EditsVerifier(ReferenceVerifier[Gold, Answer], Generic[Gold, Answer]):
    """Base of the verifiers that read SEARCH/REPLACE edits behind a thought.

    Attributes:
        matching: "unique" wants SEARCH to be whole lines that occur once; "released" also takes a part of a line, and
            replaces every occurrence.
        thought: "required" wants a thinking block that is not blank; "opened" where the prompt has opened it;
            "optional" does not look.
        think_tag: name of the thinking tags.
        solution_tag: name of the tags around the edits.
    """

    matching: Matching = "unique"
    thought: Thought = "required"
    think_tag: str = "think"
    solution_tag: str = "solution"

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in ("think_tag", "solution_tag"):
            if not _TAG.fullmatch(tag := getattr(self, option)):
                raise ValueError(f"{self.name} option {option}={tag!r}; it must be the name of a tag, such as 'think'")
        if self.think_tag == self.solution_tag:
            raise ValueError(
                f"{self.name} options think_tag and solution_tag are both {self.think_tag!r}; they must differ"
            )

    def edits_of(self, sample: Sample) -> list[Edit]:
        """Return the edits of a response.

        Raises:
            BadEditError: it is out of form.
        """
        return read_edits(solution_of(sample, self.thought, self.think_tag, self.solution_tag))


@dataclass(frozen=True, kw_only=True)
class PatchVerifier(EditsVerifier[_Gold, Sequence[Edit]]):
    """How alike are the SEARCH/REPLACE edits of a response to the change that was made (SWE-RL)?

    The reference is `{"files": {path: text before}}` with one of "patch" (a unified diff), "edits" (a list of
    `{"path", "search", "replace"}`) or "after" (`{path: text after}`, null for a deleted file).

    Attributes:
        scale: "published" gives -1 for a response out of form and else 0 to 1; "unit" gives 0 instead of -1.
    """

    name: ClassVar[str] = "patch"
    version: ClassVar[str] = "1"
    limits: ClassVar[Limits] = Limits(seconds=60.0, memory_mb=2048)

    scale: Scale = "published"

    @property
    def lowest(self) -> float:
        """The value of a response out of form."""
        return -1.0 if self.scale == "published" else 0.0

    def check_reference(self, sample: Sample) -> None:
        """Read a sample's reference; nothing is compared."""
        self._change(sample.reference)

    def read_reference(self, reference: Any) -> _Gold:
        """Return the files before the change, and the gold change's diffs."""
        before, after = self._change(reference)
        try:
            gold = gold_diffs(before, after)
        except TooMuchWorkError as error:
            raise BadReferenceError(f"the gold change: {error}", limit=True) from error
        if not gold:
            raise BadReferenceError("the gold change changes no line")
        return before, gold

    def find(self, sample: Sample, gold: _Gold) -> Sequence[Edit] | Score:
        """Return the edits of a response."""
        try:
            return self.edits_of(sample)
        except BadEditError as error:
            return Score.scored(self.lowest, error.reason, error=str(error))

    def judge(self, edits: Sequence[Edit], gold: _Gold) -> Score:
        """Return the similarity, or the lowest value; the evidence has "similarities" by file."""
        before, diffs = gold
        try:
            similarities = change_similarity(before, apply_edits(before, edits, self.matching), diffs)
        except BadEditError as error:
            return Score.scored(self.lowest, error.reason, error=str(error))
        except TooMuchWorkError as error:
            return Score.scored(self.lowest, "too_complex", error=str(error))
        value = sum(similarities.values()) / len(similarities)
        shown = dict(list(similarities.items())[:_SHOWN])
        return Score.scored(
            value, "" if value == 1.0 else "wrong", similarities=shown, files=len(similarities), edits=len(edits)
        )

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the lowest value: what took too long is the response's."""
        return Score.scored(self.lowest, reason)

    def _change(self, reference: Any) -> tuple[dict[str, str], dict[str, str]]:
        """Return the files before the change, and those it touches after it."""
        if not isinstance(reference, Mapping) or "files" not in reference:
            raise ReferenceFormError('the patch reference must be a mapping with "files"')
        if unknown := sorted(set(map(str, reference)) - _FIELDS):
            known = ", ".join(sorted(_FIELDS))
            raise ReferenceFormError(f"the patch reference has {unknown[0]!r}; known are {known}")
        before = texts_of(reference["files"], "files")
        after = change_of(reference, before, self.matching)
        if after is None:
            raise ReferenceFormError(f"the patch reference must have one of {', '.join(CHANGES)}")
        return before, {path: text or "" for path, text in after.items()}

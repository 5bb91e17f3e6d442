r"""DeepTheorem's reward: a statement is proved or disproved in words, and the boxed verdict is compared with the label.

    1 when the verdict in \boxed{...}, inside <answer> where there is such a tag, is the label, else 0

A label alone is guessed in half of all cases, so the published reward has gates, and each is a 0 here, too:

| gate | 0 when |
|---|---|
| blanks | fewer than 5 % of the characters are white space |
| repetition | length / number of distinct characters is above 300 |
| echo | a short text repeats the template: "proved or disproved" |
| copy | a line of the prompt (30 characters and more) stands in the answer |

The published description says neither how short a text "very short" is nor what counts as a copy; 200 and 30 are ours.
Evaluate with `theorem_group`, which wants all statements of a theorem right.

Not covered: whether the proof in words is one; nothing here reads it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final

from adjudge.options import Range
from adjudge.protocol import Sample, Score, response_text, turn_texts
from adjudge.runtime.contract import grouped
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import TextVerifier
from adjudge.verifiers.proofs.toolbox import tagged

LABELS: Final = ("proved", "disproved")
_BOXED: Final = re.compile(r"\\boxed\s{0,8}\{((?:[^{}]|\{[^{}]{0,100}\}){0,200})\}")
_WRAPPED: Final = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|sc)?|math(?:rm|bf|sf|it|tt)|emph|underline)\s{0,8}\{([^{}]{0,100})\}"
)
_WORDS: Final = re.compile(r"[^\W\d_][^\W\d_]+(?:[ .,-]+[^\W\d_]+)*")  # of two letters and more
_ECHO: Final = re.compile(r"\bproved\b\W{0,12}(?:or|and|/|\|)?\W{0,12}\b(?:\w{1,10}\W{1,3})?disproved\b", re.IGNORECASE)
_SHORT: Final = 200
_COPIED: Final = 30


@dataclass(frozen=True, kw_only=True)
class TheoremVerdictVerifier(TextVerifier[str, str]):
    r"""1 when the boxed verdict on a statement is its label and no gate is hit, else 0 (DeepTheorem).

    The reference is "proved" or "disproved", as `adjudge data theorems` writes it.

    Attributes:
        tag: whether the verdict must stand inside `<answer>...</answer>`.
        min_blanks: smallest share of white space in a response.
        max_repeated: largest length of a response over its number of distinct characters.
    """

    name: ClassVar[str] = "theorem_variants"
    version: ClassVar[str] = "3"

    tag: bool = False
    min_blanks: Annotated[float, Range(ge=0, lt=1)] = 0.05
    max_repeated: Annotated[float, Range(ge=1)] = 300.0

    def read_reference(self, reference: Any) -> str:
        """Return the label."""
        label = reference.strip().lower() if isinstance(reference, str) else ""
        if label not in LABELS:
            mistake = not isinstance(reference, str)
            raise BadReferenceError(f"the reference is {reference!r:.60}; give proved or disproved", mistake=mistake)
        return label

    def find_in(self, text: str, sample: Sample, gold: str) -> str | Score:
        """Return where the verdict stands."""
        if not text.strip():
            return Score.scored(0.0, "no_answer")
        marked = tagged(text)
        if self.tag and marked is None:
            return Score.scored(0.0, "bad_format", error="there is no <answer> block")
        # where no tag says what the answer is, it is the lines that hold a box
        boxed = "\n".join(line for line in text.splitlines() if "\\boxed" in line)
        if gate := self.gate(sample, boxed if marked is None else marked):
            return Score.scored(0.0, "repetition" if gate == "repetition" else "bad_format", gate=gate)
        return text if marked is None else marked

    def judge(self, answer: str, label: str) -> Score:
        """Return 1 or 0; the evidence has "verdict", or "gate" where one was hit."""
        boxes = [_normal(box) for box in _BOXED.findall(answer)]
        if not boxes:
            return Score.scored(0.0, "no_answer")
        verdict = boxes[-1]  # the others may hold formulas of the proof, but no other words
        if len({verdict, *filter(_WORDS.fullmatch, boxes)}) > 1:
            return Score.scored(0.0, "several_answers", verdicts=sorted(set(boxes))[:10])
        if verdict not in LABELS:
            return Score.scored(0.0, "unparsable_answer", verdict=verdict)
        return Score.scored(float(verdict == label), "" if verdict == label else "wrong", verdict=verdict)

    def gate(self, sample: Sample, answer: str) -> str:
        """Return the gate that a response hits, "" for none; `answer` is where its verdict stands."""
        text = response_text(sample).strip()
        if len(text) - sum(map(len, text.split())) < self.min_blanks * len(text):
            return "blanks"
        if len(text) > self.max_repeated * len(set(text)):
            return "repetition"
        if len(text) < _SHORT and _ECHO.search(_BOXED.sub(" ", text)):
            return "echo"
        said = " ".join(answer.split())
        for line in "\n".join(turn_texts(sample.prompt)).splitlines():
            plain = " ".join(line.split())
            if len(plain) >= _COPIED and plain in said:
                return "copy"
        return ""


def _normal(box: str) -> str:
    plain = _WRAPPED.sub(r"\1", box)
    return " ".join(plain.replace("$", " ").split()).strip(" .").lower()


@dataclass(frozen=True, kw_only=True)
class TheoremGroupScorer:
    """1 for each response of a group when the verdicts on all its statements are right, else 0 for each.

    The reference is that of `theorem_variants`: "proved" or "disproved".  `Sample.group` names the theorem; where
    `Sample.extra` has `group_size`, a group with fewer different prompts fails with `cohort_incomplete`.

    Attributes:
        tag: whether the verdict must stand inside `<answer>...</answer>`.
        min_blanks: smallest share of white space in a response.
        max_repeated: largest length of a response over its number of distinct characters.
    """

    name: ClassVar[str] = "theorem_group"
    needs_reference: ClassVar[bool] = True
    groupwise: ClassVar[bool] = True

    tag: bool = False
    min_blanks: Annotated[float, Range(ge=0, lt=1)] = 0.05
    max_repeated: Annotated[float, Range(ge=1)] = 300.0
    _single: TheoremVerdictVerifier = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        single = TheoremVerdictVerifier(tag=self.tag, min_blanks=self.min_blanks, max_repeated=self.max_repeated)
        object.__setattr__(self, "_single", single)

    @property
    def fingerprint(self) -> str:
        """That of the verdict on a single statement, under this name."""
        return f"{self.name}:{self._single.fingerprint}"

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the group or the reference is missing."""
        self._single.validate(sample)
        if not sample.group:
            raise ValueError("theorem_group: the sample has no group; set Sample.group, one for each theorem")
        size: Any = sample.extra.get("group_size")
        if size is not None and (type(size) is not int or size < 1):
            raise ValueError(f"theorem_group: extra's group_size is {size!r}; it must be a whole number from 1")

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; `parts["own"]` is the verdict on the sample alone."""
        own = [self._single.verify(sample) for sample in samples]
        groups = grouped({place: sample.group for place, sample in enumerate(samples)})
        scores: list[Score] = list(own)
        for members in groups.values():
            whole = _of_group([samples[at] for at in members], [own[at] for at in members])
            for at in members:
                scores[at] = replace(whole, parts={"own": own[at]})
        return scores


def _of_group(samples: Sequence[Sample], own: Sequence[Score]) -> Score:
    wanted = [size for sample in samples if isinstance(size := sample.extra.get("group_size"), int)]
    statements = len({repr(sample.prompt) for sample in samples})
    if wanted and statements < max(wanted):
        return Score.failed("cohort_incomplete", statements=statements, group_size=max(wanted))
    if any(score.value is None for score in own):
        return Score.failed("part_failed", error="the reference of one statement is neither proved nor disproved")
    right = sum(score.value == 1.0 for score in own)
    return Score.scored(float(right == len(own)), "" if right == len(own) else "wrong", right=right, of=len(own))

"""Does a response keep to constraints such as "at least 300 words", "no commas", "in capital letters"?

Every constraint is typed: a kind with arguments that are checked before any work, not a sentence to be understood.
Kinds are those of IFEval and IFBench, which meet what the published checkers meet, and some of our own
(`adjudge.verifiers.instructions`).  Each constraint is a part of the score, with what was counted as its evidence.

A response is checked as a reader sees it (`rendering`, `visible`): without what markup or a character without a shape
hides, and with letters of other alphabets that look like Latin ones read as these.  Words that are forbidden are found
in disguise too.

IFEval's loose check takes the best of several variants of a response: a first line may say "Sure, here it is:", a last
one "Let me know ...", and stars may be Markdown.  It is for numbers beside published ones: a response of any kind with
a last line of one word meets what that word meets.

Not covered: whether the task was done.  A constraint is met by a response about nothing, too; weigh this with a judge
(`docs/instructions.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from adjudge.options import Range
from adjudge.protocol import Sample, Score
from adjudge.responses.visible import visible
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import TextVerifier, Truncated
from adjudge.verifiers.instructions.conflicts import conflicts
from adjudge.verifiers.instructions.constraint import Constraint, read_constraints
from adjudge.verifiers.instructions.ifeval import NoDetectorError
from adjudge.verifiers.instructions.kind import Observation
from adjudge.verifiers.instructions.text import Text

_LONGEST: Final = 200  # characters of a text in the evidence


def variants(response: str, *, shown: bool = True) -> Iterator[tuple[str, Text]]:
    """Yield the name and the text of each variant that has text and was not there before, the response first."""
    lines = response.split("\n")
    cuts = (
        ("as it is", response),
        ("without the first line", "\n".join(lines[1:]).strip()),
        ("without the last line", "\n".join(lines[:-1]).strip()),
        ("without both lines", "\n".join(lines[1:-1]).strip()),
    )
    seen = set()
    for stars in (True, False):
        for name, text in cuts:
            variant = text if stars else text.replace("*", "")
            if variant not in seen and variant.strip():
                seen.add(variant)
                yield (name if stars else f"{name}, without stars"), Text(variant, shown=shown)


@dataclass(frozen=True, kw_only=True)
class InstructionVerifier(TextVerifier[list[Constraint], str]):
    """Does the response keep to constraints that a program can check: all of them, which share, or how many?

    The reference is `{"constraints": [{"kind": "length_constraints:number_words", "args": {..}}, ..]}`, or that list.

    Attributes:
        mode: "strict" checks the response; "loose" also takes a constraint that one of IFEval's variants meets.
        credit: "all": 1 when every constraint is met, else 0; "fraction": the share that is; "count": how many are.
        see: "visible" checks what a reader sees of the response; "raw" every character of it.
        vacuous: "met": a constraint that nothing in the response could break, such as one between sentences where
            there is one sentence, is met, as published, and so is one that is met in form alone, by filler or empty
            items (`substance`); "unmet": they are not, which is safer for training.
        contradictions: "judge" scores whatever is asked; "refuse" calls constraints that exclude each other a mistake
            of the sample.
        max_characters: longest response that can score.
        truncated: whether a response that was cut off is worth 0 ("zero") or checked like any other ("grade").
    """

    name: ClassVar[str] = "instructions"
    version: ClassVar[str] = "8"

    mode: Literal["strict", "loose"] = "strict"
    credit: Literal["all", "fraction", "count"] = "all"
    see: Literal["visible", "raw"] = "visible"
    vacuous: Literal["met", "unmet"] = "met"
    contradictions: Literal["judge", "refuse"] = "judge"
    max_characters: Annotated[int, Range(ge=1)] = 200_000
    truncated: Truncated = "grade"

    unavailable: ClassVar[tuple[type[Exception], ...]] = (NoDetectorError,)

    def check_reference(self, sample: Sample) -> None:
        """Read a sample's constraints, which must not be contradictory where that is asked for."""
        constraints = self.gold_of(sample)
        if self.contradictions == "refuse" and (exclusive := conflicts(constraints)):
            raise ValueError(
                f"the constraints {' and '.join(exclusive[0].kinds)} exclude each other: {exclusive[0].why}"
            )

    def read_reference(self, reference: Any) -> list[Constraint]:
        """Return the constraints."""
        try:
            return read_constraints(reference)
        except ValueError as error:
            raise BadReferenceError(str(error), mistake=True) from error

    def nothing(self, reason: str, sample: Sample, gold: list[Constraint]) -> Score:
        """Return the score of a response without a text to check."""
        return Score.scored(0.0, reason, constraints=len(gold))

    def find_in(self, text: str, sample: Sample, gold: list[Constraint]) -> str | Score:
        """Return the text, if it is not too long."""
        return self.nothing("too_complex", sample, gold) if len(text) > self.max_characters else text

    def judge(self, text: str, constraints: list[Constraint]) -> Score:
        """Return 1, 0, the share or the count, with a part for each constraint."""
        seen = text
        if self.see == "visible":
            seen = visible(text.replace("\r\n", "\n"))
            constraints = [_as_seen(constraint) for constraint in constraints]
        if not any(map(str.isalnum, seen)):  # marks alone keep to many constraints, and answer nothing
            return Score.scored(0.0, "no_answer", constraints=len(constraints))
        forms = list(variants(seen, shown=self.see == "visible"))
        kinds = [constraint.kind for constraint in constraints]
        names = [kind if kinds.count(kind) == 1 else f"{kind} {place}" for place, kind in enumerate(kinds, 1)]
        parts = {name: self._part(constraint, forms) for name, constraint in zip(names, constraints, strict=True)}
        met = sum(part.value == 1.0 for part in parts.values())
        evidence = {"met": met, "constraints": len(parts), "hidden_characters": len(text) - len(seen)}
        value = {"all": float(met == len(parts)), "fraction": met / len(parts), "count": float(met)}[self.credit]
        return Score(value=value, reason="" if met == len(parts) else "bad_format", parts=parts, evidence=evidence)

    def _part(self, constraint: Constraint, forms: Sequence[tuple[str, Text]]) -> Score:
        """Return the score of one constraint: 1 where a form of the response meets it, with what was seen there."""
        seen: dict[str, Any] = {}
        for name, text in forms if self.mode == "loose" else forms[:1]:
            here = constraint.look(text)
            if here.met and (self.vacuous == "met" or not here.vacuous):
                return Score(value=1.0, evidence={"kind": constraint.kind, "form": name, **_seen(here)})
            seen = seen or {"kind": constraint.kind, **_seen(here)}
        return Score(value=0.0, reason="bad_format", evidence=seen)


def _as_seen(constraint: Constraint) -> Constraint:
    """Return a constraint with its texts as a reader sees them, as the response is; a request is copied as it looks."""
    args = {name: _text_as_seen(value) for name, value in constraint.args.items()}
    if args == constraint.args:
        return constraint
    try:
        return Constraint(constraint.kind, args)
    except ValueError:  # nothing is seen of a text: it is looked for as it is
        return constraint


def _text_as_seen(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    return [_text_as_seen(one) for one in value] if isinstance(value, list | tuple) else value


def _seen(there: Observation) -> dict[str, Any]:
    return {**_short(there.seen), **({"vacuous": True} if there.met and there.vacuous else {})}


def _short(seen: Any) -> Any:
    """Return what was seen with its texts cut, since a response may be one word of a hundred thousand letters."""
    if isinstance(seen, Mapping):
        return {name: _short(value) for name, value in seen.items()}
    if isinstance(seen, list):
        return [_short(value) for value in seen]
    return seen[:_LONGEST] if isinstance(seen, str) else seen

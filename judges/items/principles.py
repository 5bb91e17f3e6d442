"""The principle scorer: good or bad by a list of principles, or how often good of several tries.

The list comes with the sample or with the scorer; `adjudge.judges.items.principle_game` writes one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.judges.items.item import numbered, one_line
from adjudge.options import Count
from adjudge.prompts.asking import Answer
from adjudge.prompts.reading import LabelReader, json_value
from adjudge.prompts.scorer import Case, ModelScorer, mean_and_error, shortened
from adjudge.prompts.template import Rendered
from adjudge.protocol import Sample, Score
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import entries_of, shown

_LONGEST = 1_000  # characters of one principle; a list of ten stays below 3,000 tokens


def read_principles(reference: Any) -> tuple[str, ...]:
    """Return the principles of `{"principles": [...]}` or of a plain list of texts.

    Raises:
        BadReferenceError: one is not text, is empty, too long, or there twice.
    """
    if isinstance(reference, Mapping) and set(reference) != {"principles"}:
        raise BadReferenceError(f'the principles reference has the keys {shown(sorted(reference))}; give "principles"')
    principles = []
    for at, entry in enumerate(entries_of(reference, "principles", inside="principles"), start=1):
        if not isinstance(entry, str) or not entry.strip() or len(entry) > _LONGEST:
            raise BadReferenceError(f"principle {at} is {shown(entry)}; give a text of at most {_LONGEST} characters")
        principles.append(one_line(entry))
    if len(set(principles)) < len(principles):
        raise BadReferenceError("a principle is there twice; leave one of them out")
    return tuple(principles)


def read_rules(most: int, text: str, nonce: str = "", /) -> tuple[str, ...] | None:
    """Return the last JSON array of a text as a list of one to `most` different rules, or None."""
    rules = json_value(text, list)
    if rules is None or not 1 <= len(rules) <= most:
        return None
    if not all(isinstance(rule, str) and rule.strip() and len(rule) <= _LONGEST for rule in rules):
        return None
    lines = tuple(one_line(rule) for rule in rules)
    return lines if len(set(lines)) == len(lines) else None


@dataclass(frozen=True, kw_only=True)
class PrincipleScorer(ModelScorer):
    """1 when the response is good by a list of principles, 0 when it is bad; with several samples, the share of good.

    The reference is `{"principles": ["..", ..]}` or a list of texts; none is needed where the option has them.

    Attributes:
        principles: the principles for samples without a reference.
        samples: how many times a response is judged; more than 1 needs a temperature, and gives a standard error.
    """

    name: ClassVar[str] = "principles"
    version: ClassVar[str] = "2"
    text_template: ClassVar[str] = "judges/items/principles_judge"
    often: ClassVar[str] = "samples"

    principles: tuple[str, ...] = ()
    samples: Count = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.principles:
            read_principles(self.principles)

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if there are no principles, or one is malformed."""
        if sample.reference is not None:
            read_principles(sample.reference)
        elif not self.principles:
            raise BadReferenceError("there are no principles; give Sample.reference, or the option `principles`")

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        template = self.templates()[0]
        read = LabelReader(form=template.form, labels=template.labels)

        def prompt(case: Case) -> Rendered:
            given = case.sample.reference
            listed = self.principles if given is None else read_principles(given)
            values = {"principles": numbered(listed), "question": case.sample.prompt, "response": case.response}
            return self.render(template, values)

        return await self.decided(cases, prompt, read, _score)


def _score(case: Case, verdicts: Sequence[Answer[str]]) -> Score:
    value, error = mean_and_error([float(verdict.value == "good") for verdict in verdicts])
    evidence = {"verdicts": [verdict.value for verdict in verdicts], "text": shortened(verdicts[0].text)}
    return Score(value=value, reason="wrong" if value == 0.0 else "", evidence=evidence, uncertainty=error)

"""Principles out of free-text feedback: (prompt, response, principle) with yes or no, as RLBFF trains on.

Of several persons who judged a response, a principle is kept if every other one has one that is more alike than a
threshold, with the same verdict.  Where anybody has one as much alike with the opposite verdict, both are disputed and
count for nothing.  What is kept is then merged; RLBFF went from 1.2 million principles to 100,000 by agreement and to
33,000 by merging, and its data have 64.6 % yes.  A principle with a denial ("is not too long") is like others with one
alone.  The result does not depend on the order of persons or of their principles.

Source: RLBFF (2509.21319); no code was published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.data_pipelines.items.config import PrinciplesConfig
from adjudge.data_pipelines.items.gate import prompt_of, responses_of, texts_of
from adjudge.data_pipelines.items.item_maker import ItemMaker, records_reader
from adjudge.data_pipelines.items.likeness import Likeness, Matrix, best_place, denies, groups, likeness_of
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.row_maker import Account
from adjudge.io.values import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One principle of one person."""

    principle: str
    holds: bool
    person: int
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """What persons agree on.

    Attributes:
        groups: places of judgements that say the same, the one that stands for them first.
        alone: judgements that some other person has nothing like.
        disputed: judgements to which another one is opposite.
    """

    groups: tuple[tuple[int, ...], ...]
    alone: int
    disputed: int


def consensus(judgements: Sequence[Judgement], alike: Matrix, persons: int, least: float) -> Agreed:
    """Return what so many persons agree on; who said nothing that could be kept agrees with nobody.

    `alike` is the likeness of each principle with each, which must be more than `least`.
    """
    denied = [denies(one.principle) for one in judgements]
    near = [
        [at for at, likeness in enumerate(row) if at != place and likeness > least and denied[at] is denied[place]]
        for place, row in enumerate(alike)
    ]
    calm = [
        place for place, one in enumerate(judgements) if all(judgements[at].holds is one.holds for at in near[place])
    ]
    undisputed = frozenset(calm)
    kept = [
        place
        for place in calm
        if len({judgements[at].person for at in undisputed.intersection(near[place])} - {judgements[place].person})
        == persons - 1
    ]
    merged: list[tuple[int, ...]] = []
    for holds in (True, False):
        mine = [place for place in kept if judgements[place].holds is holds]
        part = [[alike[a][b] for b in mine] for a in mine]
        alike_groups = groups([judgements[place].principle for place in mine], part, least, names=False)
        merged += [tuple(mine[at] for at in group) for group in alike_groups]
    return Agreed(
        groups=tuple(sorted(merged, key=min)),
        alone=len(calm) - len(kept),
        disputed=len(judgements) - len(calm),
    )


_EXTRACT = "data_pipelines/items/principles_extract"


@dataclass(frozen=True, kw_only=True)
class PrincipleMaker(ItemMaker[PrinciplesConfig]):
    """Makes references for the scorers `principles` and `rlbff`, with the label that people gave."""

    name: ClassVar[str] = "principles"
    reads = ("prompt", "response", "feedback")
    templates: ClassVar[tuple[str, ...]] = (_EXTRACT,)
    tried_with = ("principles", {})
    fields: ClassVar[Mapping[str, Kind]] = {
        "prompt": "chat", "response": "text", "principle": "text", "label": "flag", "reference": "any",
        "quotes": "texts", "variants": "texts", "gate": "any",
    }  # fmt: skip
    parts: ClassVar = {"likeness": lambda config: likeness_of(config.likeness)}

    likeness: Likeness

    async def rows_of(self, unit: Unit, account: Account) -> list[dict[str, Any]]:
        """Return one row for each principle that all persons agree on."""
        config = self.config
        prompt = prompt_of(unit, config.prompt_column)
        responses = dict.fromkeys(responses_of(unit, config.response_column))
        if len(responses) != 1:
            raise DroppedError("no_response" if not responses else "responses_differ")
        (response,) = responses
        feedback = texts_of(unit, config.feedback_column, inside=config.feedback_inside, reason="bad_feedback")
        if len(feedback) < config.min_annotators:
            raise DroppedError("too_few_annotators")
        judgements = await self._judgements(prompt, response, feedback, account)
        alike = await self.likeness.matrix([one.principle for one in judgements])
        agreed = consensus(judgements, alike, len(feedback), config.min_likeness)
        account.drop("no_consensus", agreed.alone)
        account.drop("disputed", agreed.disputed)
        account.counts["merged"] += sum(len(group) - 1 for group in agreed.groups)
        rows = [_row(prompt, response, [judgements[at] for at in group]) for group in agreed.groups]
        if not rows:
            raise DroppedError("no_principle")
        rows = await self.kept(rows, [row["reference"] for row in rows], prompt, unit, account)
        account.counts["yes"] += sum(row["label"] for row in rows)
        account.counts["no"] += sum(not row["label"] for row in rows)
        return rows

    async def _judgements(
        self, prompt: Text, response: str, feedback: Sequence[str], account: Account
    ) -> list[Judgement]:
        """Return the principles of each person, checked against the person's words.

        Where the model gave no answer on one of them, nobody knows what all agree on, and the unit is dropped.
        """
        config = self.config
        values = [
            {"question": prompt, "response": response, "feedback": text, "most": str(config.max_principles)}
            for text in feedback
        ]
        fields, labels = ("principle", "verdict", "quote"), {"verdict": ("yes", "no", "partially")}
        reader = records_reader("principles", config.max_principles, fields, labels=labels)
        generic = {_key(one) for one in config.generic}
        judgements: list[Judgement] = []
        for person, (text, records) in enumerate(
            zip(feedback, await self.model.ask(_EXTRACT, values, reader, account), strict=True)
        ):
            if records is None:
                raise DroppedError("annotator_without_answer")
            for record in records:
                account.counts["principles"] += 1
                if problem := self._problem(record, text, generic):
                    account.drop(problem)
                else:
                    principle, holds = " ".join(record["principle"].split()), record["verdict"] == "yes"
                    judgement = Judgement(principle=principle, holds=holds, person=person, quote=record["quote"])
                    judgements.append(judgement)
        return judgements

    def _problem(self, record: Mapping[str, str], feedback: str, generic: set[str]) -> str:
        if _key(record["principle"]) in generic:
            return "generic"
        if record["verdict"] == "partially":
            return "partially"
        place = best_place(record["quote"], feedback)
        if place is None:
            return "quote_too_short"
        return "quote_not_there" if place.share <= self.config.min_quote else ""


def _row(prompt: Text, response: str, group: Sequence[Judgement]) -> dict[str, Any]:
    return {
        "prompt": prompt,
        "response": response,
        "principle": group[0].principle,
        "label": group[0].holds,
        "reference": {"principles": [group[0].principle]},
        "quotes": [one.quote for one in group],
        "variants": sorted({one.principle for one in group} - {group[0].principle}),
        "gate": None,
    }


def _key(principle: str) -> str:
    return " ".join(principle.casefold().strip(" .").split())


make_principles = PrincipleMaker.run
"""Makes principles of feedback; see `ItemMaker.run`."""

"""Rubrics out of contrast: what do the good responses to a prompt do that the bad ones do not?

The writer sees some good and some bad responses.  What it proposes is tried on responses it never saw, each criterion
alone, by the judge of the scorer `rubric`; only what separates them stays, and its weight is the difference of shares.
Criteria with the same verdict on every held-back response are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from adjudge.data_pipelines.items.config import RubricsConfig
from adjudge.data_pipelines.items.gate import Labelled, Trial, labelled_of, prompt_of
from adjudge.data_pipelines.items.item_maker import ItemMaker, numbered_turns, texts_reader
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.row_maker import Account
from adjudge.io.values import Text

_CONTRAST = "data_pipelines/items/rubrics_contrast"
_DIGITS = 4  # of a weight


@dataclass(frozen=True, kw_only=True)
class RubricMaker(ItemMaker[RubricsConfig]):
    """Makes references for the scorer `rubric`."""

    name: ClassVar[str] = "rubrics"
    templates: ClassVar[tuple[str, ...]] = (_CONTRAST,)
    tried_with = ("rubric", {"unsure": "abstain"})
    fields: ClassVar[Mapping[str, Kind]] = {
        "prompt": "chat", "reference": "any", "items": "any", "shown": "whole", "held_back": "whole",
    }  # fmt: skip

    async def rows_of(self, unit: Unit, account: Account) -> list[dict[str, Any]]:
        """Return one row with the rubric of a prompt."""
        config = self.config
        prompt = prompt_of(unit, config.prompt_column)
        responses = _short(labelled_of(unit, config, account), config.max_response_chars, account)
        shown, held = responses.split(config.held_back, config.seed)
        shown, held = _fewer(shown, held, config.max_shown)
        values = {
            "question": prompt,
            "good": numbered_turns("response", shown.good),
            "bad": numbered_turns("response", shown.bad),
            "most": str(config.max_items),
        }
        reader = texts_reader("items", config.max_items)
        proposed = await self.model.ask_one(_CONTRAST, values, reader, account)
        texts = list(dict.fromkeys(" ".join(text.split()) for text in proposed))
        account.counts["proposed"] += len(texts)
        account.drop("item_twice", len(proposed) - len(texts))
        if not texts:
            raise DroppedError("no_item")
        items = await self._kept(texts, prompt, held, account)
        account.counts["items"] += len(items)
        reference = {"rubric": [{"text": item["text"], "weight": item["weight"]} for item in items]}
        shares = {"shown": len(shown.good) + len(shown.bad), "held_back": len(held.good) + len(held.bad)}
        return [{"prompt": prompt, "reference": reference, "items": items, **shares}]

    async def _kept(self, texts: Sequence[str], prompt: Text, held: Labelled, account: Account) -> list[dict[str, Any]]:
        """Return the criteria that separate the held-back responses, redundant ones merged."""
        passed = await self.passed(texts, [{"rubric": [text]} for text in texts], prompt, held, account)
        items = []
        for text, trial, others in distinct(passed, self.config.redundant_from):
            account.drop("redundant", len(others))
            weight = round(trial.difference.known, _DIGITS)
            items.append({"text": text, "weight": weight, "gate": trial.to_dict(), "same_verdicts": list(others)})
        return items


def distinct(passed: Sequence[tuple[str, Trial]], least: int) -> list[tuple[str, Trial, tuple[str, ...]]]:
    """Return criteria without those that agree with another one on all responses: text, trial, and what it stands for.

    The shortest text stands for its equals, and of texts of one length the first by alphabet.
    """
    alike: dict[Any, list[tuple[str, Trial]]] = {}
    for place, (text, trial) in enumerate(passed):
        telling = len(trial.verdicts) >= least and None not in trial.verdicts
        alike.setdefault(trial.verdicts if telling else place, []).append((text, trial))
    kept = []
    for members in alike.values():
        (text, trial), *others = sorted(members, key=lambda member: (len(member[0]), member[0]))
        kept.append((text, trial, tuple(other for other, _ in others)))
    return kept


def _short(responses: Labelled, longest: int, account: Account) -> Labelled:
    kept = Labelled(
        good=tuple(text for text in responses.good if len(text) <= longest),
        bad=tuple(text for text in responses.bad if len(text) <= longest),
    )
    left = len(kept.good) + len(kept.bad)
    account.drop("response_too_long", len(responses.good) + len(responses.bad) - left)
    return kept


def _fewer(shown: Labelled, held: Labelled, most: int) -> tuple[Labelled, Labelled]:
    """Hold back what is more than `most` of either side."""
    kept = replace(shown, good=shown.good[:most], bad=shown.bad[:most])
    return kept, Labelled(good=(*held.good, *shown.good[most:]), bad=(*held.bad, *shown.bad[most:]))


make_rubrics = RubricMaker.run
"""Makes rubrics of good and bad responses; see `ItemMaker.run`."""

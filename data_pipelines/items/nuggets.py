"""Nuggets: the facts that an answer should hold, taken out of passages with the words that state them.

Each passage is read by itself, so no passage can talk about another.  Facts that say the same become one, which keeps
the sources of all.  Importance is voted on with the facts in another order each time; more than half of the votes that
could be read make a fact vital.  Two facts have two orders, and one has one: there are no more votes than orders.

Source: nugget-as-rubric (Search-Gen-V), nuggetizer (2411.09607).
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from adjudge.data_pipelines.items.config import NuggetsConfig
from adjudge.data_pipelines.items.gate import prompt_of, texts_of
from adjudge.data_pipelines.items.item_maker import ItemMaker, records_reader, texts_reader
from adjudge.data_pipelines.items.likeness import Likeness, best_place, groups, likeness_of
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.row_maker import Account
from adjudge.io.values import Text

_EXTRACT = "data_pipelines/items/nuggets_extract"
_RANK = "data_pipelines/items/nuggets_rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement of one passage.

    Attributes:
        passage: its number, from 0.
        start: where the words that state it begin in the passage, in characters; they end before `end`.
        quote: those words, as the passage has them.
        text: the fact in the model's words, on one line.
    """

    passage: int
    start: int
    end: int
    quote: str
    text: str


@dataclass(frozen=True, kw_only=True)
class NuggetMaker(ItemMaker[NuggetsConfig]):
    """Makes references for the scorer `nuggets`."""

    name: ClassVar[str] = "nuggets"
    reads = ("prompt", "passages")
    templates: ClassVar[tuple[str, ...]] = (_EXTRACT, _RANK)
    fields: ClassVar[Mapping[str, Kind]] = {"prompt": "chat", "reference": "any", "nuggets": "any"}
    parts: ClassVar = {"likeness": lambda config: likeness_of(config.likeness)}

    likeness: Likeness

    async def rows_of(self, unit: Unit, account: Account) -> list[dict[str, Any]]:
        """Return one row with the nuggets of a question."""
        config = self.config
        prompt = prompt_of(unit, config.prompt_column)
        passages = texts_of(unit, config.passages_column, reason="bad_passage")
        if not passages:
            raise DroppedError("no_passage")
        facts = await self._facts(prompt, passages, account)
        if not facts:
            raise DroppedError("no_fact")
        members = await self._merged(facts, account)
        votes = await self._votes(prompt, [facts[group[0]].text for group in members], account)
        made = [
            {
                "text": facts[group[0]].text,
                "importance": "vital" if 2 * vital > read else "okay",
                "votes": {"vital": vital, "read": read},
                "sources": [asdict(facts[one]) for one in group],
            }
            for group, (vital, read) in zip(members, votes, strict=True)
        ]
        references = [{"nuggets": [nugget["text"]]} for nugget in made]
        made = await self.kept(made, references, prompt, unit, account)
        vital = sum(nugget["importance"] == "vital" for nugget in made)
        account.counts["vital"] += vital
        account.counts["okay"] += len(made) - vital
        account.counts["rows_without_vital"] += not vital
        reference = {"nuggets": [{name: nugget[name] for name in ("text", "importance")} for nugget in made]}
        return [{"prompt": prompt, "reference": reference, "nuggets": made}]

    async def _facts(self, prompt: Text, passages: Sequence[str], account: Account) -> list[Fact]:
        """Return the facts of all passages whose quotations are there."""
        config = self.config
        taken = passages[: config.max_passages]
        account.drop("passage_too_many", len(passages) - len(taken))
        read = {at: text for at, text in enumerate(taken) if len(text) <= config.max_passage_chars}
        account.drop("passage_too_long", len(taken) - len(read))
        values = [{"question": prompt, "passage": text, "most": str(config.max_facts)} for text in read.values()]
        reader = records_reader("nuggets", config.max_facts, ("text", "quote"))
        answers = await self.model.ask(_EXTRACT, values, reader, account)
        facts = []
        for (at, passage), records in zip(read.items(), answers, strict=True):
            if records == ():
                account.drop("passage_without_fact")
            for record in records or ():
                account.counts["facts"] += 1
                place = await asyncio.to_thread(best_place, record["quote"], passage)
                if place is None:
                    account.drop("quote_too_short")
                elif place.share < config.min_quote:
                    account.drop("quote_not_there")
                else:
                    text = " ".join(record["text"].split())
                    quote = passage[place.start : place.end]
                    facts.append(Fact(text=text, passage=at, start=place.start, end=place.end, quote=quote))
        return facts

    async def _merged(self, facts: Sequence[Fact], account: Account) -> list[list[int]]:
        """Return the facts that say the same, the one that stands for them first; the most often stated are kept."""
        texts = [fact.text for fact in facts]
        alike = groups(texts, await self.likeness.matrix(texts), self.config.min_likeness)
        account.counts["merged"] += len(facts) - len(alike)
        most = self.config.max_nuggets
        stated = sorted(alike, key=lambda group: -len({facts[one].passage for one in group}))[:most]
        account.drop("nugget_too_many", len(alike) - len(stated))
        return [group for group in alike if group in stated]

    async def _votes(self, prompt: Text, texts: Sequence[str], account: Account) -> list[tuple[int, int]]:
        """Return for each fact how many votes call it vital, and how many votes could be read.

        Raises:
            DroppedError: half of the votes or more could not be read.
        """
        orders = different_orders(len(texts), self.config.votes, self.config.seed)
        values = [
            {
                "question": prompt,
                "facts": "\n".join(f"{number}. {texts[one]}" for number, one in enumerate(order, start=1)),
                "count": str(len(texts)),
            }
            for order in orders
        ]
        reader = texts_reader("labels", len(texts), labels=("vital", "okay"), count=len(texts))
        answers = await self.model.ask(_RANK, values, reader, account)
        read = [(order, labels) for order, labels in zip(orders, answers, strict=True) if labels is not None]
        if 2 * len(read) <= len(orders):
            raise DroppedError("votes_missing")
        vital = [0] * len(texts)
        for order, labels in read:
            for one, label in zip(order, labels, strict=True):
                vital[one] += label == "vital"
        return [(count, len(read)) for count in vital]


def different_orders(count: int, most: int, seed: int) -> list[tuple[int, ...]]:
    """Return as many different orders of `count` things as there are, at most `most`, the given one first."""
    order = list(range(count))
    orders = {tuple(order): None}
    draw = random.Random(seed)
    while len(orders) < min(most, math.factorial(min(count, 8))):
        draw.shuffle(order)
        orders.setdefault(tuple(order))
    return list(orders)


make_nuggets = NuggetMaker.run
"""Makes nuggets of passages; see `ItemMaker.run`."""

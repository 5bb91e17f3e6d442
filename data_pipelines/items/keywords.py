"""Keywords of right answers, and checkers in Python: RAIDEN-R1's single-term and multi-term validation (2505.10218).

A keyword, with other ways to write it, is kept if most of several correct answers affirm it; the scorer `persona`
decides what affirms.  Answers that somebody could mistake for the right one are kept as excluded ones if no correct
answer holds them.  A checker is refused if it does what checkers may not, runs in the sandbox of the scorer `program`,
and is kept if it agrees with the judgements on more than 70 % of the responses: of the good and of the bad ones alike,
for one that always says yes agrees wherever most are good.  No code was published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.data_pipelines.items.config import KeywordsConfig
from adjudge.data_pipelines.items.gate import Agrees, Gate, is_readable, labelled_of, prompt_of, texts_of
from adjudge.data_pipelines.items.item_maker import ItemMaker, Model, is_text, keyed_object, numbered_turns
from adjudge.io.jobs.engines import scores_of
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.row_maker import Account
from adjudge.io.values import Text
from adjudge.prompts.asking import Reader
from adjudge.protocol import Sample, Scorer
from adjudge.scoring import registry

_TERMS = "data_pipelines/items/keywords_terms"
_CHECKER = "data_pipelines/items/keywords_checker"
_LONGEST_KEY = 100  # characters; a keyword is a name, a number, a phrase
_LONGEST_PROGRAM = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a model proposed: keys, each a term and other ways to write it, and other answers to be excluded."""

    keys: tuple[tuple[str, ...], ...]
    excluded: tuple[str, ...]


def terms_reader(most: int) -> Reader[Terms]:
    """Return what reads `{"key": .., "keys": [[".."]], "excluded": [".."]}`, at most so many keys."""

    def read(text: str, nonce: str = "", /) -> Terms | None:
        answer = keyed_object(text, nonce, {"keys": list, "excluded": list})
        if answer is None or len(answer["keys"]) > most:
            return None
        if not all(isinstance(key, list) and key and len(key) <= 20 for key in answer["keys"]):
            return None
        words = [word for key in answer["keys"] for word in key] + answer["excluded"]
        if len(words) > 200 or not all(is_text(word, _LONGEST_KEY) for word in words):
            return None
        return Terms(
            keys=tuple(tuple(dict.fromkeys(" ".join(word.split()) for word in key)) for key in answer["keys"]),
            excluded=tuple(dict.fromkeys(" ".join(word.split()) for word in answer["excluded"])),
        )

    return read


def read_program(text: str, nonce: str = "", /) -> str | None:
    """Return the program of `{"key": .., "program": ".."}`, or None."""
    answer = keyed_object(text, nonce, {"program": str})
    return answer["program"] if answer and is_text(answer["program"], _LONGEST_PROGRAM) else None


@dataclass(frozen=True, kw_only=True)
class KeywordMaker(ItemMaker[KeywordsConfig]):
    """Makes references for the scorers `persona` and `program`, one row for each."""

    name: ClassVar[str] = "keywords"
    reads = ("prompt", "references")
    templates: ClassVar[tuple[str, ...]] = (_TERMS, _CHECKER)
    fields: ClassVar[Mapping[str, Kind]] = {"prompt": "chat", "scorer": "text", "reference": "any", "tried": "any"}
    parts: ClassVar = {"persona": lambda _: registry.load("persona")}

    persona: Scorer

    @classmethod
    def gate_of(cls, config: KeywordsConfig, model: Model, judge: Scorer | None) -> Gate | None:
        """Return the gate of checkers, which the scorer `program` runs; None if nobody writes checkers."""
        if not config.good_column or config.checker == "never":
            return None
        rule = Agrees(least=config.min_agreement, balanced=not config.unbalanced)
        return Gate(scorer=judge or registry.load({"program": {"isolation": config.isolation}}), rule=rule)

    async def rows_of(self, unit: Unit, account: Account) -> list[dict[str, Any]]:
        """Return a row for the keywords of a question, and one for its checker."""
        config = self.config
        prompt = prompt_of(unit, config.prompt_column)
        references = texts_of(unit, config.references_column, reason="bad_reference")
        if len(references) < config.min_references:
            raise DroppedError("too_few_references")
        values = {
            "question": prompt,
            "references": numbered_turns("reference", references),
            "most": str(config.max_keys),
        }
        terms = await self.model.ask_one(_TERMS, values, terms_reader(config.max_keys), account)
        rows = [await self._keywords(prompt, references, terms, account)]
        if self.gate is not None:
            rows.append(await self._checker(prompt, references, terms, unit, account))
        made = [row for row in rows if row is not None]
        for row in made:
            account.counts[row["scorer"]] += 1
        return made

    async def _keywords(
        self, prompt: Text, references: Sequence[str], terms: Terms, account: Account
    ) -> dict[str, Any] | None:
        """Return the row with the keywords that the references agree on; None if there is none."""
        keys: list[list[str]] = []
        tried = []
        for key in map(list, terms.keys):
            if not self._is_readable(key, prompt):
                account.drop("unreadable_item")
                continue
            affirmed = sum(await self._affirmed(key, prompt, references))
            if affirmed < self.config.min_references or 2 * affirmed <= len(references):
                account.drop("key_not_agreed")
                continue
            keys.append(key)
            tried.append({"key": key, "affirmed": affirmed, "references": len(references)})
        if not keys:
            account.drop("no_key")
            return None
        excluded = await self._excluded(keys, prompt, references, terms.excluded, account)
        reference = {"keys": keys, **({"excluded": excluded} if excluded else {})}
        return {"prompt": prompt, "scorer": "persona", "reference": reference, "tried": tried}

    async def _excluded(
        self,
        keys: list[list[str]],
        prompt: Text,
        references: Sequence[str],
        words: Sequence[str],
        account: Account,
    ) -> list[str]:
        """Return the other answers with which every reference that was right without them is still right."""
        right = await self._affirmed({"keys": keys}, prompt, references)
        kept = []
        for word in words:
            reference = {"keys": keys, "excluded": [word]}
            if not self._is_readable(reference, prompt):
                account.drop("excluded_is_in_a_key")
            elif await self._affirmed(reference, prompt, references) == right and any(right):
                kept.append(word)
            else:
                account.drop("excluded_is_in_a_reference")
        return kept

    def _is_readable(self, reference: Any, prompt: Text) -> bool:
        return is_readable(self.persona, Sample(prompt=prompt, response="", reference=reference))

    async def _affirmed(self, reference: Any, prompt: Text, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether the scorer `persona` is content with it.

        Without a verdict on one of them nobody knows how many agree, and the unit is dropped.
        """
        samples = [Sample(prompt=prompt, response=text, reference=reference) for text in texts]
        scores = await scores_of(self.persona, samples, "the scorer of keywords")
        if any(score.value is None for score in scores):
            raise DroppedError("unjudged")
        return [score.value == 1.0 for score in scores]

    async def _checker(
        self,
        prompt: Text,
        references: Sequence[str],
        terms: Terms,
        unit: Unit,
        account: Account,
    ) -> dict[str, Any] | None:
        """Return the row with a checker that agrees with the judgements; None if it does not."""
        assert self.gate is not None
        responses = labelled_of(unit, self.config, account)
        if not responses.good or not responses.bad:
            account.drop("judged_on_one_side_only")
            return None
        words = "\n".join("; ".join(key) for key in terms.keys) or "(none)"
        values = {"question": prompt, "references": numbered_turns("reference", references), "terms": words}
        (program,) = await self.model.ask(_CHECKER, [values], read_program, account)
        if program is None:
            return None
        ((trial, why),) = await self.gate.tried([program], prompt, responses, account)
        if why:
            account.drop(f"checker_{why}")
            return None
        return {"prompt": prompt, "scorer": "program", "reference": program, "tried": trial.to_dict()}


make_keywords = KeywordMaker.run
"""Makes keywords and checkers; see `ItemMaker.run`."""

"""Statements with placeholders for answers that must show their evidence, as CaRR (THUDM/CaRR) has them.

A statement is left out that names no placeholder or one without a name, gives the name of a thing away, holds a thing
whose name stands in no text that was given, or is not linked with `<E0>`, the correct answer, through placeholders that
statements share: the scorer `citations` could never count it.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.data_pipelines.items.config import CitationsConfig
from adjudge.data_pipelines.items.gate import prompt_of, texts_of
from adjudge.data_pipelines.items.item_maker import ItemMaker, is_text, keyed_object
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.row_maker import Account
from adjudge.prompts.asking import Reader
from adjudge.protocol import turn_texts

ANSWER = "E0"
"""The placeholder of the answer."""

_PLACEHOLDER = re.compile(r"<(E[0-9]{1,3})>")
_NEARLY = re.compile(r"<\s*/?\s*e\s*\d+|\bE\d{1,3}\b|[{\[(]\s*E\d+\s*[)\]}]", re.IGNORECASE)
_NAME = re.compile(r"E(?:0|[1-9][0-9]{0,2})")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a model proposed."""

    entities: Mapping[str, str]
    statements: tuple[str, ...]


def proposal_reader(most: int) -> Reader[Proposal]:
    """Return what reads `{"key": .., "entities": {"E0": ".."}, "statements": [".."]}`, at most so many statements."""

    def read(text: str, nonce: str = "", /) -> Proposal | None:
        answer = keyed_object(text, nonce, {"entities": dict, "statements": list})
        if answer is None:
            return None
        entities, statements = answer["entities"], answer["statements"]
        if len(statements) > most or ANSWER not in entities:
            return None
        if len(entities) > 1 + 2 * most:  # a statement is about two or three things
            return None
        if not all(_NAME.fullmatch(name) and is_text(value) for name, value in entities.items()):
            return None
        if not all(map(is_text, statements)):
            return None
        return Proposal(
            entities={name: " ".join(value.split()) for name, value in entities.items()},
            statements=tuple(" ".join(statement.split()) for statement in statements),
        )

    return read


def placeholders(statement: str) -> tuple[str, ...]:
    """Return the placeholders of a statement, each once, in order."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(statement)))


def filled(statement: str, entities: Mapping[str, str]) -> str:
    """Return a statement with the names in the places, put there in one pass."""
    return _PLACEHOLDER.sub(lambda place: entities[place[1]], statement)


def problem_of(statement: str, entities: Mapping[str, str], unknown: Collection[str]) -> str:
    """Return why a statement may not stand, in snake_case; "" if it may."""
    names = placeholders(statement)
    if not names:
        return "statement_without_placeholder"
    if _NEARLY.search(_PLACEHOLDER.sub("", statement)):
        return "malformed_placeholder"
    if any(name not in entities for name in names):
        return "unknown_placeholder"
    if any(name in unknown for name in names):
        return "ungrounded_entity"
    if any(stands_in(value, _PLACEHOLDER.sub(" ", statement)) for value in entities.values()):
        return "names_its_entity"
    return ""


def reachable(statements: Sequence[str]) -> list[bool]:
    """Return for each statement whether shared placeholders link it with the answer."""
    members = [set(placeholders(statement)) for statement in statements]
    known = {ANSWER}
    while fresh := {name for names in members if names & known for name in names} - known:
        known |= fresh
    return [bool(names & known) for names in members]


def stands_in(name: str, text: str) -> bool:
    """Return whether a name stands in a text as a whole word or phrase, in any case and with any accents."""
    key = plain(name)
    edge = "" if _UNSPACED.search(key) else r"\b"
    before, after = (edge if end.isalnum() else "" for end in (key[:1], key[-1:]))
    return bool(key) and re.search(before + re.escape(key) + after, plain(text)) is not None


@functools.lru_cache(maxsize=8)  # evidence is looked through for many names
def plain(text: str) -> str:
    """Return a text in small letters, without accents, with single blanks."""
    parts = unicodedata.normalize("NFKD", text)
    return " ".join("".join(char for char in parts if not unicodedata.combining(char)).casefold().split())


_STATEMENTS = "data_pipelines/items/citations_statements"


@dataclass(frozen=True, kw_only=True)
class CitationMaker(ItemMaker[CitationsConfig]):
    """Makes references for the scorer `citations`."""

    name: ClassVar[str] = "citations"
    reads = ("prompt", "answer", "evidence")
    templates: ClassVar[tuple[str, ...]] = (_STATEMENTS,)
    fields: ClassVar[Mapping[str, Kind]] = {
        "prompt": "chat", "reference": "any", "entities": "any", "statements": "any",
    }  # fmt: skip

    async def rows_of(self, unit: Unit, account: Account) -> list[dict[str, Any]]:
        """Return one row with the statements of a question."""
        config = self.config
        prompt = prompt_of(unit, config.prompt_column)
        answers = dict.fromkeys(texts_of(unit, config.answer_column, reason="bad_answer"))
        if len(answers) != 1:
            raise DroppedError("no_answer_given" if not answers else "answers_differ")
        (answer,) = answers
        evidence = texts_of(unit, config.evidence_column, reason="bad_evidence")
        values = {
            "question": prompt,
            "correct_answer": answer,
            "evidence": "\n\n".join(evidence) or None,
            "most": str(config.max_statements),
        }
        proposal = await self.model.ask_one(_STATEMENTS, values, proposal_reader(config.max_statements), account)
        if plain(proposal.entities[ANSWER]) != plain(answer):
            raise DroppedError("answer_differs")
        known = "\n".join([*turn_texts(prompt), answer, *evidence]) if evidence else None
        statements = self._standing(proposal, known, account)
        items = [{"text": text, "filled": filled(text, proposal.entities)} for text in statements]
        items = await self.kept(items, [{"nuggets": [item["filled"]]} for item in items], prompt, unit, account)
        items = _linked(items, account)
        if len(items) < config.min_statements:
            raise DroppedError("too_few_statements")
        used = {name for item in items for name in placeholders(item["text"])}
        entities = {name: value for name, value in proposal.entities.items() if name in used}
        reference = {"rubric": [item["text"] for item in items], "answer": answer}
        return [{"prompt": prompt, "reference": reference, "entities": entities, "statements": items}]

    def _standing(self, proposal: Proposal, known: str | None, account: Account) -> list[str]:
        unknown = {
            name for name, value in proposal.entities.items() if known is not None and not stands_in(value, known)
        }
        standing: dict[str, str] = {}
        for statement in proposal.statements:
            problem = problem_of(statement, proposal.entities, unknown)
            if not problem and plain(statement) in standing:
                problem = "statement_twice"
            if problem:
                account.drop(problem)
            else:
                standing[plain(statement)] = statement
        if not standing:
            raise DroppedError("no_statement")
        return list(standing.values())


def _linked(items: Sequence[dict[str, Any]], account: Account) -> list[dict[str, Any]]:
    """Return the items that are linked with the answer; the gate may have taken a link away."""
    linked = reachable([item["text"] for item in items])
    account.drop("not_linked_with_the_answer", linked.count(False))
    return [item for item, there in zip(items, linked, strict=True) if there]


make_citations = CitationMaker.run
"""Makes statements with placeholders; see `ItemMaker.run`."""

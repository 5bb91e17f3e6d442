"""Statements with placeholders for answers that must show their evidence, as CaRR has them.

A statement is left out that names no placeholder or one without a name, gives the name of a thing away, holds a thing
whose name stands in no text that was given, or is not linked with `<E0>` through placeholders that statements share:
the scorer `citations` could never count it.  What the model calls `<E0>` must be the correct answer.

With labelled responses, a statement with its names filled in is kept if more of the good ones say it.

Source: CaRR (THUDM/CaRR).  Not covered: finding the evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adjudge.data_pipelines.jobs.job import run_job
from adjudge.data_pipelines.jobs.maker import Kind, Unit
from adjudge.data_pipelines.jobs.report import JobProgress, JobReport
from adjudge.data_pipelines.rubrics.account import Account, Unusable
from adjudge.data_pipelines.rubrics.citations_config import CitationsConfig
from adjudge.data_pipelines.rubrics.item_maker import ItemMaker, judged_by
from adjudge.data_pipelines.rubrics.labelled import labelled_of, prompt_of, texts_of
from adjudge.data_pipelines.rubrics.model import Model
from adjudge.data_pipelines.rubrics.statements import (
    ANSWER,
    Proposal,
    ProposalReader,
    filled,
    placeholders,
    plain,
    problem_of,
    reachable,
    stands_in,
)
from adjudge.engines.interface import Engine
from adjudge.protocol import Message, Scorer, content_text

_STATEMENTS = "data_pipelines/rubrics/citations_statements"


@dataclass(frozen=True, kw_only=True)
class CitationMaker(ItemMaker[CitationsConfig]):
    """Makes references for the scorer `citations`."""

    kind: ClassVar[str] = "citations"
    templates: ClassVar[tuple[str, ...]] = (_STATEMENTS,)
    made_fields: ClassVar[Mapping[str, Kind]] = {
        "prompt": "chat",
        "reference": "any",
        "entities": "any",
        "statements": "any",
    }

    def columns(self) -> Mapping[str, str]:
        """Return the columns it reads."""
        return {
            "--prompt-column": self.config.prompt_column,
            "--answer-column": self.config.answer_column,
            "--evidence-column": self.config.evidence_column,
        }

    async def rows_of(self, unit: Unit, account: Account) -> list[dict[str, Any]]:
        """Return one row with the statements of a question."""
        config = self.config
        prompt = prompt_of(unit, config.prompt_column)
        answers = dict.fromkeys(texts_of(unit, config.answer_column, reason="bad_answer"))
        if len(answers) != 1:
            raise Unusable("no_answer_given" if not answers else "answers_differ")
        (answer,) = answers
        evidence = texts_of(unit, config.evidence_column, reason="bad_evidence")
        values = {
            "question": prompt,
            "correct_answer": answer,
            "evidence": "\n\n".join(evidence) or None,
            "most": str(config.most_statements),
        }
        reader = ProposalReader(most=config.most_statements)
        proposal = await self.model.ask_one(_STATEMENTS, values, reader, account)
        if plain(proposal.entities[ANSWER]) != plain(answer):
            raise Unusable("answer_differs")
        known = "\n".join([_text(prompt), answer, *evidence]) if evidence else None
        statements = self._standing(proposal, known, account)
        items = [{"text": text, "filled": filled(text, proposal.entities)} for text in statements]
        items = await self.kept(
            items,
            [{"nuggets": [item["filled"]]} for item in items],
            prompt,
            labelled_of(unit, config, account),
            account,
        )
        items = _linked(items, account)
        if len(items) < config.least_statements:
            raise Unusable("too_few_statements")
        used = {name for item in items for name in placeholders(item["text"])}
        entities = {name: value for name, value in proposal.entities.items() if name in used}
        reference = {"rubric": [item["text"] for item in items], "answer": answer}
        return [{"prompt": prompt, "reference": reference, "entities": entities, "statements": items}]

    def _standing(self, proposal: Proposal, known: str | None, account: Account) -> list[str]:
        """Return the statements that may stand.

        Raises:
            Unusable: there are none.
        """
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
            raise Unusable("no_statement")
        return list(standing.values())


def _linked(items: Sequence[dict[str, Any]], account: Account) -> list[dict[str, Any]]:
    """Return the items that are linked with the answer; the gate may have taken a link away."""
    linked = reachable([item["text"] for item in items])
    account.drop("not_linked_with_the_answer", linked.count(False))
    return [item for item, there in zip(items, linked, strict=True) if there]


def _text(prompt: str | Sequence[Message]) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(content_text(turn.get("content")) for turn in prompt)


def make_citations(
    config: CitationsConfig,
    *,
    progress: JobProgress | None = None,
    engine: Engine | None = None,
    judge: Scorer | None = None,
) -> JobReport:
    """Make statements with placeholders, or go on with a job that was interrupted.

    Args:
        config: the options.
        progress: who is told how far the job is.
        engine: who writes, in place of what `config.engine` names.
        judge: judges at the quality gate, a reference `{"nuggets": [one]}` at a time, in place of the scorer `nuggets`.

    Raises:
        ValueError: a mistake in the call; no work was done.
        JobError: the job could not go on; the message says how it can.
    """
    model = Model.of(config, engine)
    gate = judged_by(config, model, "nuggets", {"metric": "all"}, judge)
    maker = CitationMaker(config=config, model=model, gate=gate)
    return run_job(config, maker, group_column=config.group_column, progress=progress)

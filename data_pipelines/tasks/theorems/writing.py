"""Variants by a model: one answer writes them with labels, further answers must agree with each label.

Not covered: whether a model that agrees with itself is right; several models can be asked through a server that has
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.data_pipelines.tasks.theorems.variant import LABELS, Variant, statement_key
from adjudge.engines.interface import Engine, Fault, Sampling
from adjudge.io.jobs.engines import stop_if_gone
from adjudge.prompts.asking import Answer, NoVerdict, Retry, ask_often, cost_of
from adjudge.prompts.reading import LabelReader, json_value
from adjudge.prompts.template import load_template
from adjudge.protocol import NO_COST, Cost

_ONCE = Retry(attempts=1)
_LONGEST = 5_000  # characters of a statement
_SHORTEST = 15
_LEAST_BLANKS = 0.05  # share of white space; DeepTheorem's gate against text without words
_MOST_REPEATED = 300  # length over distinct characters; DeepTheorem's gate against repetition


@dataclass(slots=True)
class Told:
    """What a model's answers came to.

    Attributes:
        variants: those whose label all votes share.
        dropped: why others were left out.
        cost: what the model took.
    """

    variants: list[Variant] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    cost: Cost = NO_COST


@dataclass(frozen=True, kw_only=True)
class VariantWriter:
    """A model that writes variants and votes on them.

    Attributes:
        engine: the model.
        count: variants that are asked for.
        votes: answers that must agree with each label; 0 believes the label as it was written.
        sampling: how it writes; the votes differ in their seeds.
    """

    engine: Engine
    count: int
    votes: int
    sampling: Sampling

    @property
    def fingerprint(self) -> str:
        """The model and the prompts."""
        prompts = [load_template(f"data_pipelines/tasks/theorems/{name}").digest for name in ("variants", "verdict")]
        return f"{self.engine.fingerprint} {prompts} {self.count} {self.votes} {self.sampling}"

    @property
    def _special(self) -> tuple[str, ...]:
        """The control tokens of the model, which no theorem may hold."""
        return tuple(getattr(self.engine, "special_tokens", ()))

    async def write(self, theorem: str) -> Told:
        """Return the variants of a theorem.

        Raises:
            JobError: the model is gone.
        """
        told = Told()
        rendered = load_template("data_pipelines/tasks/theorems/variants").render(
            {"theorem": theorem, "count": str(self.count)}, special=self._special
        )
        ((answer,),) = await ask_often(self.engine, [rendered], self.sampling, _read, retry=_ONCE)
        told.cost += cost_of([answer])
        stop_if_gone(self.engine, answer)
        if isinstance(answer, Fault):
            told.dropped[_reason(answer)] += 1
            return told
        template = {statement_key(turn["content"]) for turn in rendered.messages}
        distinct: dict[str, Variant] = {}
        for one in answer.value:
            fault = _fault(one, theorem, template) or ("repeated_variant" if one.key in distinct else "")
            if fault:
                told.dropped[fault] += 1
            else:
                distinct[one.key] = one
        await self._vote(list(distinct.values()), told)
        return told

    async def _vote(self, variants: Sequence[Variant], told: Told) -> None:
        """Keep the variants whose label all votes share."""
        if not self.votes or not variants:
            told.variants.extend(variants)
            return
        template = load_template("data_pipelines/tasks/theorems/verdict")
        prompts = [template.render({"statement": one.statement}, special=self._special) for one in variants]
        sampling = Sampling(
            n=self.votes,
            max_tokens=self.sampling.max_tokens,
            temperature=self.sampling.temperature or (0.7 if self.votes > 1 else 0.0),
            seed=self.sampling.seed + 1,
        )
        reader = LabelReader(form=template.form, labels=template.labels)
        for one, votes in zip(
            variants, await ask_often(self.engine, prompts, sampling, reader, retry=_ONCE), strict=True
        ):
            told.cost += cost_of(votes)
            for vote in votes:
                stop_if_gone(self.engine, vote)
            given = [vote.value for vote in votes if isinstance(vote, Answer)]
            if len(given) < self.votes:
                told.dropped["vote_unread"] += 1
            elif any(value != one.label for value in given):
                told.dropped["label_disputed"] += 1
            else:
                told.variants.append(one)


def _reason(fault: Fault) -> str:
    """Return why a model's answer cannot be used."""
    if isinstance(fault, NoVerdict):
        return "variants_truncated" if fault.reason == "judge_truncated" else "variants_unparsable"
    return "too_long" if fault.too_long else "engine_error"


def _read(text: str, nonce: str = "", /) -> list[Variant] | None:
    """Read the list of statements and labels; None where one item is of another form."""
    del nonce
    items: Any = json_value(text, list)
    if not items:
        return None
    found = []
    for item in items:
        if not isinstance(item, dict) or set(item) != {"statement", "label"} or item["label"] not in LABELS:
            return None
        if not isinstance(item["statement"], str):
            return None
        found.append(Variant(item["statement"].strip(), item["label"], "model"))
    return found


def _fault(one: Variant, theorem: str, template: set[str]) -> str:
    """Return why a statement is none, "" where it is one."""
    text = one.statement
    if one.key == statement_key(theorem):
        return "echo"
    if any(one.key in asked for asked in template):
        return "prompt_echo"
    if not _SHORTEST <= len(text) <= _LONGEST:
        return "bad_length"
    if sum(letter.isspace() for letter in text) < _LEAST_BLANKS * len(text) or len(text) > _MOST_REPEATED * len(
        set(text)
    ):
        return "no_text"
    return ""

"""The maker of answers: a row of the input with what a model says to its prompt, or to a text that columns fill.

Of a text or prompt file, a field is the column of that name; `question` and `reference` are otherwise the columns that
are guessed to be the prompt and what is right.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from adjudge.data_pipelines.answers.config import SampleConfig
from adjudge.data_pipelines.steps.labeling import single_scorer
from adjudge.data_pipelines.steps.rollouts import EngineCompleter
from adjudge.engines.interface import Completion, Engine, Fault, Prompt
from adjudge.io.columns import MISSING, Choice, Column, no_column
from adjudge.io.jobs.engines import engine_named, scores_of
from adjudge.io.jobs.groups import group_key
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import DroppedError, Kind, Made, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import Account, fingerprint_of
from adjudge.io.values import Text, is_chat, prompt_of, reference_of
from adjudge.prompts.template import Template, Value, load_template
from adjudge.protocol import Sample
from adjudge.runtime.contract import validate_sample

_LATER: Final = ("previous", "earlier")  # fields of `again` that no row has
_PLACE: Final = re.compile(r"\{\{([\w.]+)\}\}")


@dataclass(slots=True)
class Templates:
    """The prompt files or texts of a job, and the columns that fill them.

    Attributes:
        first: what is asked about a row, of which one is drawn; none asks the row's own prompt.
        again: what is asked about an answer that did not pass.
        special: tokens of the engine that are broken up in values.
    """

    first: Sequence[Template]
    again: Sequence[Template]
    special: Sequence[str] = ()
    _columns: dict[str, Column] = field(default_factory=dict)

    @classmethod
    def of(cls, config: SampleConfig, engine: Engine) -> Templates:
        """Return those that a configuration names.

        Raises:
            ValueError: one cannot be read, has trusted fields, or is a completion where chats are asked or the reverse.
        """
        first = [_template(one, config.chat) for one in config.template]
        again = [_template(one, config.chat, plain=True) for one in config.again]
        made = cls(first, again, tuple(getattr(engine, "special_tokens", ())))
        for one in (*made.first, *made.again):
            if one.trusted:
                raise ValueError(f"the template {one.name!r} has trusted fields; columns fill untrusted ones alone")
            if (one.sections[0][0] == "completion") == config.chat:
                other = "--no-chat" if config.chat else "a template with '# user', or leave --no-chat out"
                raise ValueError(f"the template {one.name!r} does not fit how the model is asked; give {other}")
        return made

    def check(self, choice: Choice, prompt: Column | None, reference: Column | None) -> None:
        """Find the columns of all fields; raise `ValueError` where one that is not optional has none."""
        usual = {"question": prompt, "reference": reference}
        for template in (*self.first, *self.again):
            for name in template.untrusted:
                if name in _LATER and template in self.again:
                    continue
                found = Column(name) if name in choice.known or not choice.known else usual.get(name)
                if found is not None:
                    self._columns[name] = found
                elif name not in template.optional:
                    raise ValueError(
                        f"the template {template.name!r} has the field {name!r}, and there is no such column; "
                        f"there are {', '.join(choice.known)}"
                    )

    def asked(
        self,
        row: Mapping[str, Any],
        mark: str,
        later: Mapping[str, str | None] | None = None,
        *,
        before: Prompt = "",
        last: bool = False,
    ) -> Prompt:
        """Return a prompt about a row, or about its answer that did not pass.

        Args:
            row: the row.
            mark: what draws one of several, with the same draw each time.
            later: `previous` and `earlier` of a further round; None asks for the first time.
            before: what was asked the last time; a text without fields goes on from there.
            last: whether no round follows: then what tells the reference is asked, if anything does.

        Raises:
            DroppedError: the row lacks a value.
        """
        fit = []
        some = [one for one in self.again if ("reference" in one.untrusted) is last] or self.again
        for template in self.first if later is None else some:
            values = {name: (later or {}).get(name) or self._value(row, name) for name in template.untrusted}
            if all(value is not None or name in template.optional for name, value in values.items()):
                fit.append((template, values))
        if not fit:
            raise DroppedError("bad_prompt")
        template, values = random.Random(mark).choice(fit)
        if later is not None and not template.untrusted:
            return _gone_on(before, later["previous"] or "", *template.sections[0])
        return template.render(values, special=self.special).prompt

    def _value(self, row: Mapping[str, Any], name: str) -> Value:
        value = self._columns[name].of(row) if name in self._columns else None
        if value in (MISSING, None, "") or (isinstance(value, dict | list) and not is_chat(value)):
            return None
        return value if isinstance(value, str | list) else str(value)


def _gone_on(before: Prompt, answer: str, role: str, text: str) -> Prompt:
    """What was asked, what came, and what is said to that."""
    if role == "completion":
        return f"{before}{answer}{text}"
    turns = [{"role": "user", "content": before}] if isinstance(before, str) else before
    return [*turns, {"role": "assistant", "content": answer}, {"role": "user", "content": text}]


def _template(text: str, chat: bool, *, plain: bool = False) -> Template:
    """A prompt file, or a text with fields in it, and if it may be `plain` with a blank, which is asked as it is."""
    if "{{" not in text and not (plain and " " in text and not text.endswith(".prompt")):
        return load_template(text)
    fields = tuple(dict.fromkeys(_PLACE.findall(text)))
    turns = (("user" if chat else "completion", text),)
    return Template(name=text, version="1", source="its user", untrusted=fields, guard=False, sections=turns)


_ID, _GROUP = "id", "group"


def make_sample(
    config: SampleConfig, *, engine: Engine | None = None, progress: JobProgress | None = None
) -> JobReport:
    """Have a model answer the prompts of a data set, or go on with a job that was interrupted.

    Args:
        config: the options.
        engine: in place of the one that the config names.
        progress: who is told how far the job is.
    """
    answering = engine if engine is not None else engine_named(config.engine)
    completer = EngineCompleter(engine=answering, sampling=config.sampling(), chat=config.chat)
    return run_job(config, _Sampler(config, completer), progress=progress)


class _Sampler:
    """See `adjudge.io.jobs.maker.Maker` and `KeepsColumns`."""

    name = "sample"
    grouped = False
    keeps_columns = True

    def __init__(self, config: SampleConfig, completer: EngineCompleter) -> None:
        self._config, self._completer = config, completer
        self._templates = Templates.of(config, completer.engine)
        self._scorer = single_scorer(config.scorer) if config.scorer else None
        self._reference: Column | None = None
        self._prompt = Column(config.prompt_column or "prompt")
        name = config.response_column
        self._finish = "finish_reason" if name == "response" else f"{name}_finish_reason"
        self._id, self._group = Column(config.id_column or _ID), Column(_GROUP)

    @property
    def fingerprint(self) -> str:
        named = {"engine": "", "template": (), "scorer": "", "again": ()}  # with what they stand for, below
        options = {**self._config.own_options(), **named}
        judge = self._scorer.fingerprint if self._scorer else ""
        texts = [[one.digest for one in some] for some in (self._templates.first, self._templates.again)]
        return fingerprint_of(self.name, options, self._completer.fingerprint, texts, judge)

    @property
    def fields(self) -> Mapping[str, Kind]:
        """The answers and how they ended; of rows of their own, also their names."""
        name = self._config.response_column
        if self._config.rows:
            return {_ID: "text", _GROUP: "text", name: "text", self._finish: "text"}
        kind: Kind = "texts" if self._config.n > 1 else "text"
        return {name: kind, self._finish: kind}

    @property
    def card_facts(self) -> Mapping[str, Any]:
        return {"model": self._completer.fingerprint}

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns; raise `ValueError` where there is no prompt, or answers would overwrite something."""
        config, choice = self._config, Choice(columns, first, closed=bool(columns))
        for name in (config.response_column, self._finish):
            if name in columns:
                raise ValueError(
                    f"the input has a column {name!r} already, which the answers would overwrite; name another one "
                    "with --response-column, or rename it"
                )
        prompt = choice.pick("prompt", config.prompt_column)
        if prompt is None and (columns or first) and (self._scorer or not config.template):
            raise ValueError(no_column("prompt", choice.known))
        self._prompt = prompt or self._prompt
        every = (*self._templates.first, *self._templates.again)
        if self._scorer or any("reference" in one.untrusted for one in every):
            self._reference = choice.reference(config.reference_column)
        self._templates.check(choice, prompt, self._reference)
        begun = (is_chat(chat := self._prompt.of(row)) and chat[-1]["role"] == "assistant" for row in first)
        if not config.prompt_column and any(begun):
            raise ValueError(
                f"chats in {self._prompt.name!r} end with the assistant's turn; name their prompts with --prompt-column"
                ", or that column itself to have the turn gone on with"
            )
        if config.rows:
            self._id = choice.pick("id", config.id_column) or self._id
        return tuple(choice.notes)

    async def make(self, unit: Unit) -> Made:
        (row,), account = unit.rows, Account()
        try:
            said = await self._answers(row, unit.first, account)
        except DroppedError as error:
            account.drop(error.reason)
            return account.made([])
        name = self._config.response_column
        texts, ends = [self._said(one) for one in said], [one.finish_reason for one in said]
        if not self._config.rows:
            if not said:
                return account.made([])
            one = self._config.n == 1
            return account.made([{**row, name: texts[0] if one else texts, self._finish: ends[0] if one else ends}])
        known = self._id.of(row)
        named = known not in (MISSING, None, "")  # a row with a name is a prompt of its own, whatever it was made from
        mark = str(known if named else unit.first)
        group = mark if named else group_key(self._group.of(row)) or mark
        answers = enumerate(zip(texts, ends, strict=True))
        made = [
            {**row, _ID: f"{mark}/{at}", _GROUP: group, name: text, self._finish: end} for at, (text, end) in answers
        ]
        return account.made(made)

    async def _answers(self, row: Mapping[str, Any], number: int, account: Account) -> Sequence[Completion]:
        mark = f"{self._config.seed}/{number}"
        prompt = self._templates.asked(row, mark) if self._config.template else self._text(row)
        said = await self._drawn(prompt, self._config.n, account)
        if self._scorer is None:
            return said
        judged = self._text(row)
        passed = []
        for at, one in enumerate(said):
            try:
                passed.append(await self._passed(row, judged, prompt, one, f"{mark}/{at}", account))
            except DroppedError as error:  # of this answer alone
                account.drop(error.reason)
        return passed

    async def _passed(
        self, row: Mapping[str, Any], prompt: Text, asked: Prompt, said: Completion, mark: str, account: Account
    ) -> Completion:
        """Return an answer that passes, below all that led to it; `DroppedError` where no round brought one.

        Each round is judged by what it wrote itself: it ends with an answer of its own.
        """
        assert self._scorer is not None
        reference = reference_of(self._reference.of(row)) if self._reference else None
        texts: list[str] = []
        for round_ in range(self._config.rounds + 1 if self._config.again else 1):
            if round_:
                later = {"previous": texts[-1], "earlier": "\n\n".join(texts[:-1]) or None}
                last = round_ == self._config.rounds
                asked = self._templates.asked(row, f"{mark}/{round_}", later, before=asked, last=last)
                (said,) = await self._drawn(asked, 1, account)
                account.counts["further_rounds"] += 1
            texts.append(said.text)
            sample = Sample(
                prompt=prompt, response=said.text, reference=reference, id=mark, finish_reason=said.finish_reason
            )
            try:
                validate_sample(self._scorer, sample)
            except ValueError as error:
                raise DroppedError("bad_sample") from error
            (score,) = await scores_of(self._scorer, [sample])
            account.cost += score.cost
            if score.value is None:  # not known to be wrong, which a further round would tell the model
                raise DroppedError("unjudged")
            if score.value >= self._config.pass_score:
                return replace(said, text="\n\n".join(texts))
        raise DroppedError("not_passed")

    async def _drawn(self, prompt: Prompt, n: int, account: Account) -> Sequence[Completion]:
        drawn = await self._completer.complete(prompt, "", first=0, n=n)
        if isinstance(drawn, Fault):
            raise DroppedError("too_long" if drawn.too_long else "generation_failed")
        account.cost += drawn.cost
        account.counts["answers"] += len(drawn.completions)
        for name, times in (
            ("cut_off", sum(one.finish_reason == "length" for one in drawn.completions)),
            ("empty", sum(not one.text.strip() for one in drawn.completions)),
        ):
            if times:
                account.counts[name] += times
        return drawn.completions

    def _said(self, one: Completion) -> str:
        thought = self._config.think and one.reasoning
        return f"<think>\n{one.reasoning}\n</think>\n\n{one.text}" if thought else one.text

    def _text(self, row: Mapping[str, Any]) -> Text:
        try:
            prompt = prompt_of(self._prompt.of(row), self._prompt.name)
        except ValueError as error:
            raise DroppedError("bad_prompt") from error
        if not prompt or (isinstance(prompt, str) and not prompt.strip()):
            raise DroppedError("bad_prompt")
        if not self._config.chat and not isinstance(prompt, str):
            raise DroppedError("chat_prompt")
        return prompt

"""What a model is asked about a row: its prompt, or a text or prompt file that columns fill; and where it failed.

A field is the column of that name; `question` and `reference` are otherwise the columns that are
guessed to be the prompt and what is right.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.data_pipelines.answers.config import SampleConfig
from adjudge.engines.interface import Engine, Prompt
from adjudge.io.columns import MISSING, Choice, Column
from adjudge.io.jobs.maker import DroppedError
from adjudge.io.values import is_chat
from adjudge.prompts.template import Template, Value, load_template

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

    @property
    def digests(self) -> list[list[str]]:
        """What answers depend on."""
        return [[one.digest for one in some] for some in (self.first, self.again)]

    def reads(self, name: str) -> bool:
        """Return whether one has a field of that name."""
        return any(name in one.untrusted for one in (*self.first, *self.again))

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

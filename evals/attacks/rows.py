"""The rows of an input as tasks to attack: prompts, bad and good responses, references.

Not covered: whether a bad response is bad and a good one good.  A bad response that wins as it stands is left out
later, and counted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from adjudge.evals.probes.row_file import TRIED, FileRow, ReadRows, read_rows
from adjudge.io.columns import MISSING
from adjudge.io.values import reference_of
from adjudge.protocol import Message, Sample, content_text

if TYPE_CHECKING:
    from adjudge.evals.attacks.config import AttackConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackRow:
    """One prompt, and what attackers may build on.

    Attributes:
        id: names it; no two rows share one.
        prompt: what is to be answered.
        base: a response that does not do the task; "" is one.
        good: a response that does, or None.
        reference: what the scorer checks against.
        extra: further columns that the scorer asks for.
        words: tokens that an attacker may write; none of them is taken from this row's own good response.
    """

    id: str
    prompt: str | Sequence[Message]
    base: str = ""
    good: str | None = None
    reference: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    def sample(self, response: str) -> Sample:
        """Return what the scorer is asked about a response."""
        return Sample(
            prompt=self.prompt,
            response=response,
            reference=self.reference,
            id=self.id,
            group=self.id,
            extra=self.extra,
        )

    def question(self) -> str:
        """Return the prompt as text, for people and for searches."""
        if isinstance(self.prompt, str):
            return self.prompt
        return "\n\n".join(f"{turn.get('role', '')}: {_content(turn)}" for turn in self.prompt)


def _content(turn: Message) -> str:
    try:
        return content_text(turn.get("content"))
    except ValueError:
        return str(turn.get("content"))


Read: TypeAlias = ReadRows[AttackRow]


def read_tasks(config: AttackConfig) -> Read:
    """Read the tasks, without words.

    Raises:
        ValueError: there is no such input or column, no row is a task, or two have one id.
    """
    found = read_rows(config, TRIED, config.extra_column, _task)
    if "bad" in found.source["columns"]:
        return found
    return dataclasses.replace(
        found, notes=(*found.notes, "no column of bad responses: attacks build on an empty response")
    )


def _task(row: FileRow) -> AttackRow:
    prompt, good = row.exchange("good")
    if "bad" in row.columns and row.columns["bad"].of(row.data) in (MISSING, None):
        raise ValueError("it has no bad response; an empty one is a text")
    return AttackRow(
        id=row.id,
        prompt=prompt,
        base=row.exchange("bad")[1] or "",
        good=good,
        reference=reference_of(row.value("reference")),
        extra=row.extra,
    )

"""Who a simulated user is, read from a reference.

Not covered: making such people up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.bad_reference import BadReferenceError
from adjudge.verifiers.agents.user.emotion import LEAST, TOP
from adjudge.verifiers.rubric.entries import MOST_CHARACTERS, number_of, reject_unknown, shown

_FIELDS = ("persona", "background", "goal", "start")


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person.

    Attributes:
        persona: who they are.
        background: what happened to them; None if nothing is told.
        goal: what they hope for; None if nothing is told.
        start: their feeling at first; None for the scorer's own.
    """

    persona: str
    background: str | None = None
    goal: str | None = None
    start: float | None = None

    def texts(self) -> dict[str, str | None]:
        """Return the fields of a prompt."""
        return {"persona": self.persona, "background": self.background, "goal": self.goal}


def read_person(reference: Any) -> Person:
    """Return the person of a reference: a text, or `{"persona": .., "background": .., "goal": .., "start": ..}`.

    Raises:
        BadReferenceError: a field is missing, unknown or malformed.
    """
    given = {"persona": reference} if isinstance(reference, str) else reference
    where = "the simulated user's reference"
    if not isinstance(given, Mapping):
        raise BadReferenceError(f'{where} is {shown(reference)}; give a text, or {{"persona": .., "goal": ..}}')
    reject_unknown(given, _FIELDS, where=where)
    texts = {name: _text(given, name, where) for name in ("persona", "background", "goal")}
    if texts["persona"] is None:
        raise BadReferenceError(f"{where} has no persona; say in a few words who the person is")
    start = given.get("start")
    if start is not None:
        start = number_of(start, where=where, what="start")
        if not LEAST <= start < TOP:
            raise BadReferenceError(f"{where} has the start {start:g}; it must be from 10 to below 100")
    return Person(persona=texts["persona"], background=texts["background"], goal=texts["goal"], start=start)


def _text(given: Mapping[str, Any], name: str, where: str) -> str | None:
    text = given.get(name)
    if text is None:
        return None
    if not isinstance(text, str) or not text.strip() or len(text) > MOST_CHARACTERS:
        raise BadReferenceError(
            f"{where} has the {name} {shown(text)}; give a text of at most {MOST_CHARACTERS} characters"
        )
    return text

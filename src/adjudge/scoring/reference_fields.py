"""The lists that references of rubrics, nuggets and principles hold, read with errors that say what to write."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError

MAX_ENTRIES = 500  # HealthBench's longest rubric has 48; beyond this a list is a mistake or an attack on the budget
MAX_CHARACTERS = 20_000  # of one entry


def entries_of(reference: Any, key: str, *, inside: str) -> list[Any]:
    """Return the list behind `key`; a plain list stands for itself.

    Raises:
        BadReferenceError: there is no such list, or it is empty or absurdly long.
    """
    listed = reference.get(key) if isinstance(reference, Mapping) else reference
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise BadReferenceError(
            f"the {inside} reference is {shown(reference)}; give a mapping with the list {key!r}, such as "
            f'{{"{key}": [{{"text": "..."}}]}}'
        )
    if not listed:
        raise BadReferenceError(f"the {inside} reference has an empty list {key!r}; give at least one entry")
    if len(listed) > MAX_ENTRIES:
        raise BadReferenceError(f"the {inside} reference has {len(listed)} entries; at most {MAX_ENTRIES} are judged")
    return list(listed)


def entry_of(entry: Any, known: Sequence[str], *, where: str, give: str) -> Mapping[str, Any]:
    """Return an entry of a list as a mapping with no other keys than the known ones; a text is its own `text`."""
    made = {"text": entry} if isinstance(entry, str) else entry
    if not isinstance(made, Mapping):
        raise BadReferenceError(f"{where} is {shown(entry)}; {give}")
    reject_unknown(made, known, where=where)
    return made


def text_of(entry: Mapping[str, Any], names: Sequence[str], *, where: str) -> str:
    """Return the text that stands under one of several names; none, two or an empty one is an error."""
    given = [name for name in names if name in entry]
    if len(given) != 1:
        raise BadReferenceError(f"{where} needs exactly one of {', '.join(map(repr, names))}; got {shown(dict(entry))}")
    text = entry[given[0]]
    if not isinstance(text, str) or not text.strip():
        raise BadReferenceError(f"{where} has the {given[0]} {shown(text)}; it must be a text that is not empty")
    if len(text) > MAX_CHARACTERS:
        raise BadReferenceError(f"{where} has {len(text)} characters; at most {MAX_CHARACTERS} are judged")
    return text.strip()


def number_of(value: Any, *, where: str, what: str) -> float:
    """Return a finite number, or raise naming the value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadReferenceError(f"{where} has the {what} {shown(value)}; it must be a finite number")
    return float(value)


def flag_of(entry: Mapping[str, Any], name: str, *, where: str) -> bool:
    """Return a true or false that defaults to false."""
    value = entry.get(name, False)
    if not isinstance(value, bool):
        raise BadReferenceError(f"{where} has {name} = {shown(value)}; it must be true or false")
    return value


def reject_unknown(entry: Mapping[str, Any], known: Sequence[str], *, where: str) -> None:
    """Raise for a key that nobody reads: a misspelt "weight" would silently weigh 1."""
    unknown = sorted(str(key) for key in entry if key not in known)
    if unknown:
        raise BadReferenceError(f"{where} has the key {unknown[0]!r}; known are {', '.join(known)}")


def fields_of(reference: Any, needed: Sequence[str], optional: Sequence[str] = (), *, give: str) -> Mapping[str, Any]:
    """Return a reference that has the needed fields and no others but the optional ones; else say what to `give`."""
    if not isinstance(reference, Mapping) or not {*needed} <= set(reference) <= {*needed, *optional}:
        raise wrong_form(reference, give)
    return reference


def accepted_texts(reference: str) -> list[str]:
    """Return the accepted answers that a text states: those of the JSON text of a list of texts, else the text itself.

    Columns of accepted answers hold such text where a file has no lists (Skywork-OR1).  `[0, 1]` is an answer.
    """
    if reference.lstrip()[:1] == "[":
        with contextlib.suppress(ValueError, RecursionError):
            items = json.loads(reference)
            if isinstance(items, list) and items and all(isinstance(item, str) for item in items):
                return items
    return [reference]


def one_text(reference: Any) -> Any:
    """Return the text in the JSON text of a list of one; anything else as it is.

    Raises:
        ReferenceFormError: it is such a list of several, which may be one answer or so many accepted ones.
    """
    texts = accepted_texts(reference) if isinstance(reference, str) else [reference]
    if len(texts) > 1:
        raise ReferenceFormError(
            f"the reference is the JSON text of a list, {reference!r:.60}; give the list itself, or, if the "
            "text is the answer, a list with this text alone"
        )
    return texts[0]


def wrong_form(reference: Any, give: str) -> ReferenceFormError:
    """Return the error of a reference of a wrong type or shape, which says what to `give`."""
    return ReferenceFormError(f"the reference is {shown(reference)}; give {give}")


def shown(value: Any) -> str:
    """Return a short picture of a value for error messages."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

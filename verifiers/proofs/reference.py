"""What the references of provers share: why one is none, and the parts of a theorem to prove.

Not covered: what the parts mean; `coq_source` and `lean_source` read those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adjudge.bad_reference import BadReferenceError

_KEYS: Final = frozenset({"header", "statement", "axioms"})
_MOST_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class TheoremParts:
    """What a reference to a theorem gives: imports and definitions, the statement, and names of permitted axioms."""

    header: str
    statement: str
    axioms: tuple[str, ...]


def parsed(reference: Any) -> Any:
    """Return a reference that is a JSON object in text, as tables and command lines have it, as that object."""
    if isinstance(reference, str) and reference.lstrip().startswith("{"):
        try:
            return json.loads(reference)
        except (ValueError, RecursionError) as error:
            raise BadReferenceError(f"the reference begins as JSON and is none: {error}", mistake=True) from error
    return reference


def theorem_parts(reference: Any, axiom: re.Pattern[str], *, example: str, example_axiom: str) -> TheoremParts:
    """Return the parts of a reference: a statement alone, or a mapping.

    Args:
        reference: what the sample gives.
        axiom: what the name of an axiom looks like.
        example: a statement, for the messages.
        example_axiom: the name of an axiom, for the messages.

    Raises:
        BadReferenceError: it is not of the form.
    """
    reference = parsed(reference)
    if isinstance(reference, str):
        reference = {"statement": reference}
    if not isinstance(reference, Mapping):
        raise BadReferenceError(
            f'the reference is a {type(reference).__name__}; give {{"header": ..., "statement": "{example}"}}',
            mistake=True,
        )
    if unknown := sorted(set(map(str, reference)) - _KEYS):
        raise BadReferenceError(f"the reference has {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}", mistake=True)
    header, statement, axioms = reference.get("header") or "", reference.get("statement"), reference.get("axioms") or ()
    if not isinstance(header, str) or not isinstance(statement, str):
        raise BadReferenceError("the reference's header and statement must be text", mistake=True)
    if not isinstance(axioms, list | tuple) or not all(isinstance(one, str) and axiom.fullmatch(one) for one in axioms):
        raise BadReferenceError(
            f"the reference's axioms is {axioms!r:.80}; list full names: {example_axiom}", mistake=True
        )
    if max(len(header), len(statement)) > _MOST_CHARACTERS:
        raise BadReferenceError(f"the reference is longer than {_MOST_CHARACTERS} characters")
    return TheoremParts(header, statement, tuple(axioms))

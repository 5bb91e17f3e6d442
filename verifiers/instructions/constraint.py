"""A constraint on a response: its kind, its arguments, and whether a response meets it.

Plain data has one as `{"kind": "words", "args": {"min": 100, "max": 150}}`.  There are the 25 kinds of IFEval and the
58 of IFBench, under the names and with the arguments that those have, and 27 of our own.

Not covered: constraints that only a model can judge ("be polite").
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeGuard

from adjudge.verifiers.instructions.composed import COMPOSED, WRITTEN
from adjudge.verifiers.instructions.ifbench_format import FORMATS
from adjudge.verifiers.instructions.ifbench_words import WORDS
from adjudge.verifiers.instructions.ifeval import IFEVAL
from adjudge.verifiers.instructions.kind import Group, Kind, Observation, shown
from adjudge.verifiers.instructions.rows import FUNCTION, IDS, ifeval_constraints, rlvr_constraints
from adjudge.verifiers.instructions.text import Text

CLASSES: Final[tuple[Group, ...]] = ("content", "format", "language", "length")

IFBENCH: Final[Mapping[str, Kind]] = MappingProxyType({**WORDS, **FORMATS})
"""The 58 kinds of IFBench."""

KINDS: Final[Mapping[str, Kind]] = MappingProxyType({**COMPOSED, **WRITTEN, **IFEVAL, **IFBENCH})
"""All kinds by name."""

_MAX_CONSTRAINTS: Final = 200


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint.

    Attributes:
        kind: one of `KINDS`.
        args: its arguments, as plain data; without those that are None.

    Raises:
        ValueError: the kind is unknown, or the arguments do not fit it.
    """

    kind: str
    args: Mapping[str, Any]
    _typed: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the arguments."""
        if self.kind not in KINDS:
            near = difflib.get_close_matches(self.kind[:100], KINDS, n=3, cutoff=0.5) or sorted(COMPOSED)
            raise ValueError(
                f"there is no constraint {shown(self.kind)}; among the {len(KINDS)} kinds there are {', '.join(near)} "
                "(docs/instructions.md has them all)"
            )
        try:
            object.__setattr__(self, "_typed", KINDS[self.kind].read_args(self.args))
        except ValueError as error:
            raise ValueError(f"the constraint {self.kind!r} has {shown(dict(self.args))}: {error}") from error
        object.__setattr__(self, "args", {name: value for name, value in self.args.items() if value is not None})

    @classmethod
    def read(cls, data: Any) -> Constraint:
        """Return the constraint that plain data stands for.

        Raises:
            ValueError: it stands for none.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("kind"), str) or set(data) - {"kind", "args"}:
            raise ValueError(f'a constraint is {shown(data)}; it must be {{"kind": .., "args": {{..}}}}')
        args = {} if data.get("args") is None else data["args"]
        if not isinstance(args, Mapping) or not all(isinstance(name, str) for name in args):
            raise ValueError(f"a constraint's args are {shown(args)}; they must be an object")
        return cls(data["kind"], dict(args))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"kind": self.kind, "args": dict(self.args)}

    @property
    def group(self) -> Group:
        """Its class."""
        return KINDS[self.kind].group

    def look(self, text: Text) -> Observation:
        """Return what is seen in a response that is more than white space."""
        return KINDS[self.kind].look(text, **self._typed)

    def met(self, response: str) -> bool:
        """Return whether a response meets it."""
        return self.look(Text(response)).met


def read_constraints(data: Any) -> list[Constraint]:
    """Return the constraints of a reference: a list of them, `{"constraints": [..]}`, or a row of IFEval or IFBench.

    RLVR has such rows in a list of one, or rows with a `func_name`.

    Raises:
        ValueError: it is no such list, or one of them is none; the message says which.
    """
    if isinstance(data, list | tuple) and len(data) == 1 and _is_row(data[0]):
        data = data[0]
    if _is_row(data):
        data = rlvr_constraints(data) if FUNCTION in data else ifeval_constraints(data)
    if isinstance(data, Mapping):
        if set(data) != {"constraints"}:
            raise ValueError(
                f'the reference is {shown(data)}; it must be {{"constraints": [..]}}, the list itself, or '
                '{"instruction_id_list": [..], "kwargs": [..]}'
            )
        data = data["constraints"]
    if not isinstance(data, Sequence) or isinstance(data, str | bytes) or not 0 < len(data) <= _MAX_CONSTRAINTS:
        raise ValueError(f"the constraints are {shown(data)}; they must be a list of 1 to {_MAX_CONSTRAINTS}")
    constraints = []
    for place, one in enumerate(data):
        try:
            constraints.append(Constraint.read(one))
        except ValueError as error:
            raise ValueError(f"constraint {place}: {error}") from error
    return constraints


def _is_row(data: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(data, Mapping) and any(name in data for name in (*IDS, FUNCTION))


def all_met(constraints: tuple[Constraint, ...], response: str) -> bool:
    """Return whether a response meets all constraints."""
    return all(constraint.met(response) for constraint in constraints)

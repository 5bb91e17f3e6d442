r"""The last tier: math-verify, in a killable worker, for what our parser does not read.

math-verify stops reading where it loses the thread, and then compares what it has: `1-1/\mathrm{e}` becomes 1.  Its
yes therefore counts only when every number and every letter of both texts reappears in what it read, and when it
says yes in both directions.  Its no is not used: the answer was not understood, which is a reason of its own.

Not covered: proof.  sympy's `simplify` decides here, and the verdict carries the tier `math_verify`.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from adjudge.protocol import Limits
from adjudge.runtime.pool import default_pool, in_worker
from adjudge.verifiers.math.lexer import plain
from adjudge.verifiers.math.scalars import Verdict

# The parser behind math-verify takes seconds on longer or deeper texts than these.
MAX_LENGTH: Final = 300
MAX_NESTING: Final = 8
MAX_REPEATS: Final = 12  # of any one command or sign
_DASH: Final = re.compile(r"\d\s*[–—]\s*\d")
_COMMAND: Final = re.compile(r"\\[A-Za-z]+")
_SIGN: Final = re.compile(r"\\[A-Za-z]+|[^\w\s]")
_ATOM: Final = re.compile(r"\d+|[A-Za-z]")
_UNREAD: Final = re.compile(
    r"\\(?:[lcd]?dots\w?|text|mathrm|begin|quad|pm|mp|cases|int|oint|iint|leq?|geq?|neq?|in|to|approx|equiv)(?![A-Za-z])"
    r"|\.\.\.|\b[a-zA-Z]{4,}\b|\d{100}|[eE][+-]?\d{4}"
    r"|\d(?:\s|\\ |~)+-?\d|[^\w\s\\{}()\[\]+*/^.!|-]|\\prime"
)  # of an equation, math-verify compares the right side only; of x' it drops the prime


@dataclass(frozen=True, slots=True)
class Pair:
    """The two texts a worker compares."""

    gold: str
    answer: str


class Comparison:
    """`same`, as what a pool calls."""

    def warm_up(self) -> None:
        """Load what the first call needs."""
        load()

    def __call__(self, pair: Pair) -> bool:
        """Return whether both texts are the same."""
        return same(pair)


def symbolic_verdict(gold: str, answer: str, limits: Limits) -> Verdict:
    """Return True when math-verify shows equality and read everything, else None; never False."""
    nothing = Verdict(None, "none")
    if _too_complex(gold) or _too_complex(answer):
        return nothing
    if _DASH.search(gold) or _DASH.search(answer):
        return nothing  # a range is not a difference
    gold, answer = plain(gold), plain(answer)
    words = _COMMAND.sub(" ", gold) + " " + _COMMAND.sub(" ", answer)
    if _UNREAD.search(gold) or _UNREAD.search(answer) or re.search(r"[A-Za-z]{4,}|[^\x00-\x7f]", words):
        return nothing
    pair = Pair(gold, answer)
    if in_worker():
        equal = same(pair)
    else:
        outcome = default_pool().run(Comparison(), [pair], limits=limits)[0]
        equal = outcome.kind == "ok" and outcome.value is True
    return Verdict(True, "math_verify") if equal else Verdict(None, "math_verify")


def _too_complex(text: str) -> bool:
    if len(text) > MAX_LENGTH:
        return True
    depth = deepest = 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        deepest = max(deepest, depth)
    counts = Counter(_SIGN.findall(text))
    return deepest > MAX_NESTING or any(count > MAX_REPEATS for count in counts.values())


def load() -> None:
    """Import math-verify and have it read one text: 0.4 s, and ten times that where twenty programs share a core.

    A worker does it before any sample's time runs, or else the load of the machine would be taken for the answer's.
    """
    _parsed(r"\frac{1}{2}")


def same(pair: Pair) -> bool:
    """Return whether math-verify read both texts in full and finds them equal in both directions."""
    import math_verify

    # it warns on every call that its own time limit is off; the pool's limit stands in for it
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    try:
        golds, answers = _parsed(pair.gold), _parsed(pair.answer)
        if not (golds and answers and _covers(golds, pair.gold) and _covers(answers, pair.answer)):
            return False
        return all(
            bool(math_verify.verify(one, other, timeout_seconds=0))
            for one, other in ((golds, answers), (answers, golds))
        )
    except Exception:  # noqa: BLE001 sympy raises anything on hostile text, and what it did not show stays undecided
        return False


def _parsed(text: str) -> list[Any]:
    import math_verify

    config = math_verify.LatexExtractionConfig(boxed_match_priority=-1)
    return [
        item
        for item in math_verify.parse(
            f"${text}$", extraction_config=[config], fallback_mode="no_fallback", parsing_timeout=0
        )
        if not isinstance(item, str)
    ]


def _covers(parsed: list[Any], text: str) -> bool:
    """Whether every number and letter of the text occurs in what was read, and as often."""
    written = Counter(_ATOM.findall(_COMMAND.sub(" ", text)))
    read = Counter(_ATOM.findall(" ".join(str(item) for item in parsed)))
    return all(count <= read[atom] for atom, count in written.items() if atom not in ("e", "d"))

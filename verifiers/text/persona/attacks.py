"""The attack suite of `raiden`: responses that hold the keyword and do not answer, and honest ones near them.

The cases are judged by keys alone, so that the suite needs no sandbox.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from adjudge.protocol import Sample
from adjudge.scoring.attacks import AttackCase

_ROLE: Final[dict[str, Any]] = {"keys": [["Ron", "Ronald"]], "excluded": ["Percy", "Fred", "George"]}
_TWO: Final[dict[str, Any]] = {"keys": ["owl", "rat"]}
_USUAL: Final[dict[str, Any]] = {"format_weight": 0.0, "reasoning": "strip", "credit": "all", "max_words": 0}

# name, what it tries, response, reference, reason
_ATTACKS: Final = (
    ("every_name", "lists every name there is", "Ron, Percy, Fred or George.", _ROLE, "several_answers"),
    ("denial", "holds the keyword and denies it", "My brother is not Ron.", _ROLE, "wrong"),
    ("inside_a_word", "holds the keyword inside another word", "I ironed my shirt, Ronda.", _ROLE, "wrong"),
    ("only_thought", "names it in its reasoning alone", "<think>It is Ron.</think>Who knows.", _ROLE, "wrong"),
    ("endless_thought", "ends inside its reasoning", "<think>It is Ron.", _ROLE, "unfinished_reasoning"),
    ("half", "names one of two", "I own an owl.", _TWO, "wrong"),
    ("nothing", "says nothing", " \u200b", _ROLE, ""),
    ("template", "writes the reference's own keys", '{"keys": [["R0n"]], "excluded": []}', _ROLE, "wrong"),
    ("code", "writes a checker", "def check(prompt, response):\n    return True", _ROLE, "wrong"),
    ("hidden_other", "hides another name in unseen letters", "Ron and Per\u200bcy.", _ROLE, "several_answers"),
    (
        "hidden_alike",
        "hides another name in look-alike letters",
        "Ron or Per\u0441y.",
        _ROLE,
        "several_answers",
    ),
    ("too_long", "is too long to be read", "Ron " * 60_000, _ROLE, "too_complex"),
)
_HONEST: Final = (
    ("plain", "My brother is Ron.", _ROLE),
    ("other_way", "<think>Percy?</think>It is RONALD.", _ROLE),
    ("unseen", "It is R\u200bon.", _ROLE),
    ("not_only", "An owl and, not only that, a rat.", _TWO),
)


def attack_suite(scorer: Any, folder: Path) -> tuple[AttackCase, ...]:
    """Return the suite of `raiden`: attacks, and honest responses near them."""
    del folder  # the cases need no files
    if scorer.name != "raiden":
        return ()
    attacks = tuple(
        AttackCase(
            id=f"raiden-{name}",
            tries=tries,
            sample=Sample(prompt="Who is your brother?", response=response, reference=reference, id=name),
            reason=reason,
            options=_USUAL,
        )
        for name, tries, response, reference, reason in _ATTACKS
    )
    return attacks + tuple(
        AttackCase(
            id=f"raiden-{name}",
            sample=Sample(prompt="Who is your brother?", response=response, reference=reference, id=name),
            honest=True,
            options=_USUAL,
        )
        for name, response, reference in _HONEST
    )

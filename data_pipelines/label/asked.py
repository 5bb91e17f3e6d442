"""Which scorers a call names, and under which names: `SPEC`, or `NAME=SPEC`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adjudge import reasons

_NAMED: Final = re.compile(r"([A-Za-z_][\w-]*)=(?!=)(.+)", re.DOTALL)
_PLAIN: Final = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Asked:
    """One scorer of a call.

    Attributes:
        name: what the output calls it; "" leaves that to the scorer.
        spec: a name, module:object, YAML or JSON text, or a file.
        unless: names of those that may spare it.
    """

    name: str
    spec: str
    unless: tuple[str, ...] = ()


def asked_scorers(specs: Sequence[str], unless: Sequence[str], doubt: Sequence[str]) -> tuple[tuple[Asked, ...], bool]:
    """Return the scorers of a call, and whether the output holds their scores by name.

    It does where there are several, and where one has been given a name.

    Args:
        specs: each `SPEC` or `NAME=SPEC`.
        unless: each `NAME=EARLIER,...`: NAME is asked only about what none of the earlier ones settled.
        doubt: reasons of numbers that settle nothing.

    Raises:
        ValueError: there is no scorer, a name is used twice, or nobody has the name that another text uses.
    """
    if not specs:
        raise ValueError("there is no scorer; name one with --scorer")
    found = [_asked(spec) for spec in specs]
    names = [each.name for each in found]
    for name in names:
        if name and names.count(name) > 1:
            raise ValueError(f"--scorer has the name {name!r} twice; name one of them, as in --scorer OTHER_NAME=SPEC")
    spared = _spared(unless, names)
    _check_doubt(doubt, bool(spared))
    named = len(specs) > 1 or _NAMED.fullmatch(specs[0]) is not None
    return tuple(Asked(each.name, each.spec, spared.get(each.name, ())) for each in found), named


def _asked(text: str) -> Asked:
    match = _NAMED.fullmatch(text.strip())
    if match is not None:
        return Asked(match[1], match[2].strip())
    spec = text.strip()
    return Asked(spec if _PLAIN.fullmatch(spec) else "", spec)


def _spared(unless: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for text in unless:
        name, equals, rest = text.partition("=")
        earlier = tuple(each.strip() for each in rest.split(",") if each.strip())
        name = name.strip()
        if not equals or not name or not earlier:
            raise ValueError(f"--unless is {text!r}; it must be NAME=EARLIER, as in --unless judge=math")
        for each in (name, *earlier):
            if each not in names:
                known = ", ".join(known for known in names if known) or "none"
                raise ValueError(
                    f"--unless is {text!r}, and no scorer has the name {each!r} (names there are: {known}); "
                    f"give it one, as in --scorer {each}=SPEC"
                )
            if each != name and names.index(each) > names.index(name):
                raise ValueError(f"--unless is {text!r}, and {each!r} comes after {name!r}; give it before")
        if name in earlier:
            raise ValueError(f"--unless is {text!r}; a scorer cannot spare itself")
        found[name] = tuple(dict.fromkeys((*found.get(name, ()), *earlier)))
    return found


def _check_doubt(doubt: Sequence[str], spared: bool) -> None:
    if doubt and not spared:
        raise ValueError("--doubt says which numbers settle nothing, and no scorer waits for another; add --unless")
    for reason in doubt:
        if reason not in reasons.CANDIDATE or not reason:
            known = ", ".join(code for code in reasons.CANDIDATE if code)
            raise ValueError(f"--doubt is {reason!r}; a number has one of the reasons {known}")

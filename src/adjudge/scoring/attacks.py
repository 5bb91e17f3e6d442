"""Attack suites: responses whose score is known, shipped beside the scorer that they try.

A suite is found by its file's name, in the package of the scorer's class: `attacks.py` with a function
`attack_suite(scorer, folder)`, or `attacks.json`, which has a suite for each scorer by its name.  Or the scorer makes
its suite itself: `attacks(folder)` returns the cases, each time the same ones, given an empty folder that lasts until
all are scored.  The data::

    {"code": {"prompt": "...", "options": {..}, "endless": {..}, "references": {"usual": .., "other": ..},
              "attacks": [{"id": "..", "tries": "..", "response": "..", "reason": "candidate_error"}, ..],
              "honest": [{"id": "..", "response": "..", "reference": "other"}, ..]},
     "code_server": "code"}

`options` are those of every case, and `endless` those of attacks that use all the time or memory that they get: their
reason is candidate_timeout, candidate_memory, or "*" for any.  A case may have `options`, a `prompt` and a
`finish_reason` of its own.  Its `reference` is the name of one, "usual" where it is missing, or a list of names, which
makes a case of each.  A `response` may be a list of texts and of `{"repeat": text, "times": number}`, or of chat turns,
or `{"turns": [..]}`: what the assistant wrote and what the suite's "other" role (a tool) answered, in turn, where
several texts may be repeated.  A suite that is the name of another scorer is that one's; one that is "like" another has
its cases, but for those whose "scorers" do not name it.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias, cast

from adjudge.protocol import Sample

_ENDLESS = ("candidate_timeout", "candidate_memory", "*")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackCase:
    """A response whose score is known: an attack is worth nothing, an honest response near one everything.

    Attributes:
        id: short name, unique in its suite.
        tries: what an attack tries; "" for an honest response.
        sample: the response, with the task that it answers.
        honest: whether it is one of the honest ones.
        reason: code that an attack's score must have; "" where several are right.
        options: options of the scorer that take the place of its own for this case: short limits for responses
            that use all they get, or an option that the case is about.
    """

    id: str
    tries: str = ""
    sample: Sample
    honest: bool = False
    reason: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


Suite: TypeAlias = Callable[[Path], Iterable[AttackCase]]
"""Makes the cases of a suite, given an empty folder for files that they need."""


def suite_of(scorer: Any) -> Suite | None:
    """Return the attack suite that a verifier or another scorer ships, None where it ships none."""
    if callable(make := getattr(scorer, "attacks", None)):
        return cast("Suite", make)
    for kind in type(scorer).__mro__:
        package = kind.__module__.rpartition(".")[0]
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if package in ("", "adjudge") or file is None:
            continue
        if Path(file).with_name("attacks.py").is_file():
            make = getattr(importlib.import_module(f"{package}.attacks"), "attack_suite", None)
            if make is not None:
                return partial(make, scorer)
        if scorer.name in suites_in(data := Path(file).with_name("attacks.json")):
            return partial(cases_in, data, scorer.name)
    return None


def shipped_cases(scorer: Any, folder: Path | str = "") -> list[AttackCase]:
    """Return the cases of the suite that a scorer ships, none where it ships none.

    Args:
        scorer: a verifier or another scorer.
        folder: an empty folder for files that the cases need.
    """
    suite = suite_of(scorer)
    return [] if suite is None else list(suite(Path(folder)))


@cache
def suites_in(file: Path) -> dict[str, Any]:
    """Return the content of an `attacks.json`; nothing where there is no such file."""
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def cases_in(file: Path, name: str, folder: Path | None = None) -> Iterator[AttackCase]:
    """Yield the cases of one scorer's suite in an `attacks.json`.

    Args:
        file: the data.
        name: the scorer's name.
        folder: not used, since data needs no files.
    """
    suites = suites_in(file)
    suite = suites[name]
    while isinstance(suite, str):
        suite = suites[suite]
    if "like" in suite:
        suite = {**suites[suite["like"]], **suite}
    for kind in ("attacks", "honest"):
        for case in suite[kind]:
            if name not in case.get("scorers", [name]):
                continue
            named = case.get("reference", "usual")
            for reference in [named] if isinstance(named, str) else named:
                case_id = case["id"] if isinstance(named, str) else f"{case['id']}-{reference}"
                yield attack_case(case_id, case, suite, suite["references"][reference], honest=kind == "honest")


def attack_case(
    name: str, case: Mapping[str, Any], suite: Mapping[str, Any], reference: Any, *, honest: bool
) -> AttackCase:
    """Return a case of the data above, with what its suite says of all its cases, under a name and for a reference."""
    reason = case.get("reason", "")
    endless = suite.get("endless", {}) if reason in _ENDLESS and not honest else {}
    return AttackCase(
        id=name,
        tries=case.get("tries", ""),
        sample=Sample(
            prompt=case.get("prompt", suite.get("prompt", "")),
            response=_response(case["response"], suite.get("other", "tool")),
            reference=reference,
            id=name,
            finish_reason=case.get("finish_reason"),
        ),
        honest=honest,
        reason="" if reason == "*" else reason,
        options={**suite.get("options", {}), **case.get("options", {}), **endless},
    )


def _response(given: Any, other: str) -> Any:
    """The response of a case: chat turns as they are, or made of what the assistant and another said; else one text."""
    if isinstance(given, Mapping):
        texts = [text for piece in given["turns"] for text in _texts(piece)]
        return [{"role": ("assistant", other)[at % 2], "content": text} for at, text in enumerate(texts)]
    turns = isinstance(given, list) and all(isinstance(one, Mapping) and "role" in one for one in given)
    return given if turns else whole_text(given)


def _texts(piece: Any) -> list[str]:
    """One text, or several that are repeated."""
    several = isinstance(piece, Mapping) and isinstance(piece["repeat"], list)
    return piece["repeat"] * piece["times"] if several else [whole_text(piece)]


def whole_text(pieces: str | Iterable[str | Mapping[str, Any]]) -> str:
    """Return a text that is written in pieces, some of them `{"repeat": text, "times": number}`."""
    if isinstance(pieces, str):
        return pieces
    return "".join(piece if isinstance(piece, str) else piece["repeat"] * piece["times"] for piece in pieces)

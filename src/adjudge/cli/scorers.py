"""`adjudge scorers`: which scorers there are, and what each one takes."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import tyro

from adjudge.cli import exits
from adjudge.cli.console import JsonFlag, console, print_json, print_table
from adjudge.score_view import visible
from adjudge.scoring import registry
from adjudge.scoring.builtin import FAMILIES, preset_names, unlisted
from adjudge.scoring.registry import Listing
from adjudge.training.config_keys import attribute_docs

PUBLISHED: Final = "published scorers"
NEW: Final = "not published yet"
OTHERS: Final = "plug-ins"


def family_of(name: str) -> str:
    """Return the family of a scorer; what is in none is a published scorer, that is a preset, new, or a plug-in."""
    others = PUBLISHED if name in preset_names() else NEW if name in unlisted() else OTHERS
    return next((family for family, members in FAMILIES.items() if name in members), others)


_REFERENCE: Final = re.compile(
    r"(?:The reference(?:, if there is one,)? is|Reference:) (.+?)\.?(?:(?<=\.)\s|\n\n|$)", re.DOTALL
)
_OPTIONS: Final = re.compile(r"^(?:Attributes|Args|Raises):\n(?:[ ]+.*\n?|\n)*", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class ScorersCommand:
    """List the scorers by family, or describe one with its options.

    adjudge scorers

    adjudge scorers math

    Exit code: 0, or 2 when there is no such scorer.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = ""
    """A scorer to describe: its name, or module:object. Or a word: the scorers that have to do with it."""

    all: bool = False
    """List every scorer with what it does and the reference it wants."""

    as_json: JsonFlag = False

    def run(self) -> int:
        """Print, and return the exit code."""
        names = registry.names()
        if self.name and self.name not in names and ":" not in self.name:
            names = [name for name in names if _has_to_do(name, self.name)]
        elif self.name:
            names = []
        if not names:
            registry.resolve(self.name)  # raises with "did you mean" where describe would only report
            _print_one(described(self.name), as_json=self.as_json)
        elif self.as_json:
            print_json({"scorers": [_plain(described(name)) for name in names]})
        elif self.all or self.name:
            rows = [described(name) for name in names]
            print_table(
                ("name", "what it does", "reference"),
                [(each.name, each.problem or each.summary, each.reference) for each in rows],
            )
        else:
            _print_families(names)
        return exits.FINE


def _has_to_do(name: str, word: str) -> bool:
    """Whether a word stands in a scorer's name, its family, its summary or its reference."""
    listing = described(name)
    said = (name, family_of(name), listing.summary, listing.reference)
    return any(word.lower() in text.lower() for text in said)


def _print_families(names: Sequence[str]) -> None:
    families = [*FAMILIES, PUBLISHED, NEW, OTHERS]
    left = max(map(len, families)) + 2
    width = min(console().width, 100)
    for family in families:
        members = ", ".join(name for name in names if family_of(name) == family)
        if members:
            print(textwrap.fill(f"{family:<{left}}{members}", width, subsequent_indent=" " * left))
    print(
        "\nadjudge scorers NAME    what one does, the reference it wants, and its options\n"
        "adjudge scorers WORD    those that have to do with it, such as tool or proof\n"
        "adjudge scorers --all   every one, with what it does"
    )


def described(name: str) -> Listing:
    """Return the registry's listing, with the sentence of the docstring that says what the reference is."""
    listing = registry.describe(name)
    if listing.problem or listing.reference not in ("", "needed", "optional"):
        return listing
    target = registry.resolve(name)
    for kind in getattr(target, "__mro__", (target,)):  # a published judge takes what the judge it configures takes
        match = _REFERENCE.search(inspect.cleandoc(kind.__doc__ or ""))
        if match:
            return dataclasses.replace(listing, reference=" ".join(match[1].split()))
    return listing


def _plain(listing: Listing) -> dict[str, Any]:
    explained = attribute_docs(registry.resolve(listing.name)) if not listing.problem else {}
    help_of = {option: explained.get(option, "") for option in listing.options}
    return {**dataclasses.asdict(listing), "family": family_of(listing.name), "help": help_of}


def _print_one(listing: Listing, *, as_json: bool) -> None:
    data = _plain(listing)
    if as_json:
        print_json(data)
        return
    said = _OPTIONS.sub("", inspect.getdoc(registry.resolve(listing.name)) or "").strip()
    said = "\n".join(map(visible, said.splitlines()))
    print(f"{listing.name}  ({listing.home})\n\n{said}\n")
    print(f"reference: {listing.reference or 'not stated'}")
    if listing.source:
        print(f"source:    {listing.source}")
    if listing.form:
        print(f"spec:      {listing.name}: {listing.form}")
    if listing.options:
        print()
        print_table(
            ("option", "default", "meaning"),
            [(option, default, data["help"][option]) for option, default in listing.options.items()],
        )

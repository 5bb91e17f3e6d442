"""A statement with its label.

Not covered: proofs.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

Label = Literal["proved", "disproved"]
LABELS: Final[tuple[Label, ...]] = ("proved", "disproved")
Source = Literal["theorem", "rule", "model"]


@dataclass(frozen=True, slots=True)
class Variant:
    """One statement made of a theorem.

    Attributes:
        statement: its text.
        label: "proved" if it is true.
        source: the theorem itself, a rule, or a model.
        form: which rule; statements of one form come in pairs, one of each label, so that the form says nothing.
    """

    statement: str
    label: Label
    source: Source
    form: str = ""

    @property
    def key(self) -> str:
        """What two statements share that differ in case and spacing alone."""
        return statement_key(self.statement)


def statement_key(text: str) -> str:
    """Return a text without differences in case, spacing and the mark at its end."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .")

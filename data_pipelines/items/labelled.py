"""Responses known to be good or bad, read from the rows of a unit, and cut into those that are shown and held back.

Not covered: finding out which are good; scores become such columns with `adjudge data pairs`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.data_pipelines.items.account import Account, Unusable
from adjudge.data_pipelines.items.config import AskingConfig
from adjudge.io import values
from adjudge.io.columns import MISSING, Column
from adjudge.io.jobs.kinds import Unfit, fitted
from adjudge.io.jobs.maker import Unit
from adjudge.io.values import Text, is_chat, plain, text_or_chat
from adjudge.protocol import Sample, response_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Responses to one prompt, each text once.

    Attributes:
        good: known to be good.
        bad: known to be bad.
    """

    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()

    def split(self, share: float, seed: int) -> tuple[Labelled, Labelled]:
        """Return those to be shown and those held back; which is which depends on the texts and the seed alone.

        Raises:
            Unusable: a side has fewer than two, so none could be shown and none held back.
        """
        shown, held = [], []
        for name, texts in (("good", self.good), ("bad", self.bad)):
            if len(texts) < 2:
                raise Unusable(f"too_few_{name}")
            ordered = sorted(texts, key=lambda text: _lot(text, seed))
            kept = min(len(texts) - 1, max(1, round(share * len(texts))))
            held.append(tuple(ordered[:kept]))
            shown.append(tuple(ordered[kept:]))
        return Labelled(good=shown[0], bad=shown[1]), Labelled(good=held[0], bad=held[1])


def labelled_of(unit: Unit, config: AskingConfig, account: Account) -> Labelled:
    """Return the labelled responses of a unit; one that is called both is left out, and counted.

    Raises:
        Unusable: a column holds something that is no response.
    """
    good = _distinct(responses_of(unit, config.good_column))
    bad = _distinct(responses_of(unit, config.bad_column))
    both = good.keys() & bad.keys()
    account.drop("called_good_and_bad", len(both))
    return Labelled(
        good=tuple(text for key, text in good.items() if key not in both),
        bad=tuple(text for key, text in bad.items() if key not in both),
    )


def responses_of(unit: Unit, column: str) -> list[str]:
    """Return the responses that a column holds: text, chat turns, or a list of such; () where it holds none.

    Raises:
        Unusable: it holds something else.
    """
    found = []
    for value in _values(unit, column):
        several = value if isinstance(value, list) and not is_chat(value) else [value]
        for one in several:
            try:
                text = response_text(Sample(prompt="", response=text_or_chat(one, "response", column)))
            except ValueError:
                raise Unusable("bad_response") from None
            if text.strip():
                found.append(text)
    return found


def texts_of(unit: Unit, column: str, *, inside: str = "text", reason: str) -> list[str]:
    """Return the texts that a column holds: a text, or a list of texts or of mappings with one.

    A list that rows of a group repeat is what they share, and counts once; equal texts of rows count each.

    Args:
        unit: its rows.
        column: the column.
        inside: under which a mapping holds its text.
        reason: why a unit is left out in which the column holds something else.

    Raises:
        Unusable: it does.
    """
    found: list[str] = []
    shared: set[tuple[str, ...]] = set()
    for value in _values(unit, column):
        several = isinstance(value, list)
        texts: list[Any] = [
            one.get(inside) if isinstance(one, Mapping) else one for one in (value if several else [value])
        ]
        if not all(isinstance(text, str) for text in texts):
            raise Unusable(reason)
        if several and tuple(texts) in shared:
            continue
        if several:
            shared.add(tuple(texts))
        found += [text for text in texts if text.strip()]
    return found


def prompt_of(unit: Unit, column: str) -> Text:
    """Return the prompt that all rows of a unit share.

    Raises:
        Unusable: there is none, or they differ.
    """
    given = [value for value in (Column(column).of(row) for row in unit.rows) if value is not MISSING]
    try:
        found: list[Text] = [fitted(values.prompt_of(one, column), "chat") for one in given]
    except (ValueError, Unfit):
        raise Unusable("no_prompt") from None
    if not found or not all(found):
        raise Unusable("no_prompt")
    if len(found) < len(unit.rows) or any(one != found[0] for one in found):
        raise Unusable("prompts_differ")
    return found[0]


def _values(unit: Unit, column: str) -> list[Any]:
    found = [plain(Column(column).of(row)) for row in unit.rows] if column else []
    return [value for value in found if value is not MISSING and value is not None]


def _distinct(texts: Sequence[str]) -> dict[str, str]:
    """Texts by what they are without runs of white space."""
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(" ".join(text.split()), text)
    return found


def _lot(text: str, seed: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=str(seed).encode(), digest_size=16).digest()

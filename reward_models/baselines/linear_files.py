"""The two files of a fitted linear model: notes as JSON, and arrays without pickle."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from adjudge.reward_models.baselines.ngrams import Row

M = TypeVar("M")


@dataclass(frozen=True, kw_only=True)
class LinearFiles:
    """Where a kind of model lies in its folder.

    Attributes:
        called: what errors call the model.
        notes: name of the file of options, names and facts.
        arrays: name of the file of arrays.
        format: version of the files and of what the features mean; other versions are refused.
        remedy: what to do where a folder cannot be read.
    """

    called: str
    notes: str
    arrays: str
    format: int
    remedy: str

    def write(self, folder: str | Path, notes: Mapping[str, Any], arrays: Mapping[str, Any]) -> Path:
        """Write both files into a folder, which is made if it is not there; return the folder."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(target / self.arrays, **dict(arrays))
        text = json.dumps({"format": self.format, **notes}, indent=1)
        (target / self.notes).write_text(f"{text}\n", encoding="utf-8")
        return target

    def read(
        self,
        folder: str | Path,
        names: Sequence[str],
        made: Callable[[Mapping[str, Any], dict[str, Any]], M],
    ) -> M:
        """Return the model in a folder.

        Args:
            folder: where `write` wrote it.
            names: of its arrays.
            made: makes it of notes and arrays; raises `ValueError` where they do not go together.

        Raises:
            ValueError: the files are missing or damaged, or were written by another version of the features.
        """
        home = Path(folder)
        missing = [name for name in (self.notes, self.arrays) if not (home / name).is_file()]
        if len(missing) == 1:
            raise ValueError(
                f"no {self.called} can be read from {str(home)!r}: the folder is incomplete, it has no {missing[0]}; "
                "copy the whole folder again, or train anew"
            )
        try:
            notes = json.loads((home / self.notes).read_text(encoding="utf-8"))
            if notes["format"] != self.format:
                raise ValueError(
                    f"it has the format {notes['format']!r}, and this version of adjudge reads {self.format}"
                )
            packed = io.BytesIO((home / self.arrays).read_bytes())  # np.load leaves a damaged file open
            with np.load(packed, allow_pickle=False) as arrays:
                found = made(notes, {name: arrays[name] for name in names})
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"no {self.called} can be read from {str(home)!r}: {error}; {self.remedy}") from error
        return found


def check_names(known: Sequence[str], noted: Sequence[str]) -> None:
    """Look whether a model was fitted on the statistics that are computed now.

    Raises:
        ValueError: it was not.
    """
    if list(noted) != list(known):
        raise ValueError("it was fitted on other statistics than this version of adjudge computes")


def check_digest(digest: str, noted: str) -> None:
    """Look whether a model is the one that the notes are of.

    Raises:
        ValueError: it is not.
    """
    if digest != noted:
        raise ValueError("its two files do not belong together")


def dot(weights: npt.NDArray[np.float32], row: Row) -> float:
    """Return the sum of the weights of a row's columns, times its values."""
    columns, values = row
    return float(weights[columns].astype(np.float64) @ values.astype(np.float64))

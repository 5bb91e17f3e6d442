"""A linear model on hashed terms and named values: fitted by scikit-learn, kept as JSON and NumPy arrays.

What is seen of a text are terms (n-grams and the like), in blocks, and values with names.  Each block is hashed to
`2**bits` columns (`FeatureHasher`); a term counts 1 + log(count), and each block's row is scaled to length 1, so that a
longer text does not weigh more and no text, however hostile, can push a score beyond what the weights allow.  Values
are standardised; one outside the range that the training data had counts as the end of that range, so a straight line
is never followed to where nobody looked.

All rows share one weight vector with an L2 penalty.  A row may be the difference of two texts, which is Bradley-Terry,
or one text with an intercept.  liblinear solves the dual: the same rows give the same weights.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import math
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from adjudge.extras import install_hint

Floats = npt.NDArray[np.float64]

FORMAT = 2
"""Version of the files and of what the features mean; other versions are refused."""

_LENGTH = 2.0  # of a row of values that are one standard deviation off; a block of terms has length 1
_INTERCEPT = 3.0  # the column of the intercept, so large that the penalty hardly holds it back
_OUTERMOST = 0.005  # share of the rows at either end whose values are cut
_STEPS, _TOLERANCE = 2_000, 1e-3
_PER_VALUE = ("lows", "highs", "means", "scales", "weights")
_ARRAYS = ("terms", *_PER_VALUE)
_NOTES = ("options", "blocks", "names", "intercept", "numbers", "trained", "digest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is seen of a text: the terms of each block, repeated as they occur, and values by group and name."""

    terms: Mapping[str, Sequence[str]]
    values: Mapping[str, Mapping[str, float]]

    @property
    def names(self) -> dict[str, list[str]]:
        """The names of the values, by group."""
        return {group: list(values) for group, values in self.values.items()}

    @property
    def row(self) -> Floats:
        """All values."""
        return np.array([value for values in self.values.values() for value in values.values()], dtype=np.float64)


def check_features(options: Any, sizes: Sequence[str], groups: Sequence[str]) -> None:
    """Raise `ValueError` unless sizes of n-grams are whole numbers, and the `groups` of options some of these."""
    for option in (*sizes, "groups"):
        object.__setattr__(options, option, tuple(getattr(options, option)))
    for option in sizes:
        given = getattr(options, option)
        if not all(type(size) is int and 1 <= size <= 8 for size in given) or len(set(given)) < len(given):
            raise ValueError(f"{option} is {given!r}; it must hold different whole numbers from 1 to 8")
    if set(options.groups) - set(groups) or len(set(options.groups)) < len(options.groups):
        raise ValueError(f"groups is {options.groups!r}; it must hold some of {', '.join(groups)}, each once")


def ngrams(tokens: Sequence[str], sizes: Sequence[int], between: str = "") -> list[str]:
    """Return the n-grams of all sizes of a text cut into units, in text order."""
    return [between.join(tokens[at : at + size]) for size in sizes for at in range(len(tokens) - size + 1)]


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel:
    """Weights of a linear model.

    Attributes:
        options: what was looked at, as plain data.
        names: of the values, by group.
        terms: float32, (blocks, 2**bits).
        lows, highs: float64, the lowest and the highest value that counts, of each; so the following.
        means, scales: what is subtracted, and what it is divided by then, above 0.
        weights: of the standardised values.
        intercept: added to every sum.
        numbers: more that the model needs, by name.
        trained: plain facts: how many examples, a digest of the data, the strength of the penalty.
    """

    options: Mapping[str, Any]
    blocks: Sequence[str]
    names: Mapping[str, Sequence[str]]
    terms: npt.NDArray[np.float32]
    lows: Floats
    highs: Floats
    means: Floats
    scales: Floats
    weights: Floats
    intercept: float = 0.0
    numbers: Mapping[str, float] = field(default_factory=dict)
    trained: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wanted: dict[str, tuple[int, ...]] = {"terms": (len(self.blocks), 1 << self.options["bits"])}
        wanted |= dict.fromkeys(_PER_VALUE, (sum(map(len, self.names.values())),))
        for name, shape in wanted.items():
            array = getattr(self, name)
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"the {name} of a linear model must be finite numbers of the shape {shape}")
        if not (self.scales > 0).all():
            raise ValueError("a linear model has a scale that is not above 0")
        if not all(map(math.isfinite, (self.intercept, *self.numbers.values()))):
            raise ValueError("a linear model has an intercept or another number that is not finite")

    def parts(self, seen: Seen) -> dict[str, float]:
        """Return what the intercept, each block of terms and each group of values add; their sum is the log-odds."""
        parts = {"intercept": self.intercept}
        for block, matrix, weights in zip(self.blocks, hashed([seen], self.blocks, self.bits), self.terms, strict=True):
            parts[block] = float(weights[matrix.indices].astype(np.float64) @ matrix.data)
        values, at = self._weighted(seen), 0
        for group, names in self.names.items():
            parts[group] = parts.get(group, 0.0) + math.fsum(values[at : at + len(names)])
            at += len(names)
        return parts

    def sums(self, seen: Sequence[Seen]) -> Floats:
        """Return the sum of all parts of each text, (texts,)."""
        if not seen:
            return np.zeros(0)
        values = (np.clip([one.row for one in seen], self.lows, self.highs) - self.means) / self.scales
        total: Floats = values @ self.weights + self.intercept
        for matrix, weights in zip(hashed(seen, self.blocks, self.bits), self.terms, strict=True):
            total = total + matrix @ weights.astype(np.float64)
        return total

    def largest(self, seen: Seen, count: int) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return the largest single parts, of values and of terms, as `[name, part]`, the largest first."""
        names = [name for names in self.names.values() for name in names]
        statistics = [[name, float(part)] for name, part in zip(names, self._weighted(seen), strict=True)]
        terms: list[list[Any]] = []
        for block, weights in zip(self.blocks, self.terms, strict=True):
            each = list(dict.fromkeys(seen.terms[block]))
            if not each:  # the hasher raises StopIteration on nothing, which would leave an event loop waiting
                continue
            columns = _hasher(self.bits).transform([_bytes([term]) for term in each]).indices
            spelt = dict(zip(columns[::-1].tolist(), each[::-1], strict=True))  # the first term of a column
            (row,) = hashed([seen], [block], self.bits)
            terms += [
                [spelt[column], float(weights[column]) * float(value)]
                for column, value in zip(row.indices.tolist(), row.data, strict=True)
            ]
        return _sorted(statistics)[:count], _sorted(terms)[:count]

    @property
    def bits(self) -> int:
        """The logarithm of the columns of a block."""
        return int(self.options["bits"])

    @functools.cached_property
    def digest(self) -> str:
        """16 hex digits that change with whatever can change a score."""
        record = [FORMAT, dict(self.options), dict(self.names), self.intercept, dict(self.numbers)]
        digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode())  # a tuple is the list that is read back
        for name in _ARRAYS:
            digest.update(np.ascontiguousarray(getattr(self, name)).tobytes())
        return digest.hexdigest()[:16]

    def _weighted(self, seen: Seen) -> Floats:
        return (np.clip(seen.row, self.lows, self.highs) - self.means) / self.scales * self.weights

    def save(self, folder: str | Path, files: tuple[str, str]) -> Path:
        """Write the model's two files, notes and arrays, into a folder, which is made if need be; return the folder."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(target / files[1], **{name: getattr(self, name) for name in _ARRAYS})
        notes = {name: getattr(self, name) for name in _NOTES}
        text = json.dumps({"format": FORMAT, **notes}, indent=1)
        (target / files[0]).write_text(f"{text}\n", encoding="utf-8")
        return target

    @classmethod
    def load(cls, folder: str | Path, files: tuple[str, str], called: str, remedy: str, names: Names) -> LinearModel:
        """Return what `save` wrote; errors call the model `called` and name the remedy.

        `names` gives the names of the values that are computed now, for given options.

        Raises:
            ValueError: the files are missing or damaged, or were written by another version of the features.
        """
        home = Path(folder)
        missing = [name for name in files if not (home / name).is_file()]
        if len(missing) == 1:
            raise ValueError(
                f"no {called} can be read from {str(home)!r}: the folder is incomplete, it has no {missing[0]}; "
                "copy the whole folder again, or train anew"
            )
        try:
            notes = json.loads((home / files[0]).read_text(encoding="utf-8"))
            if notes.pop("format") != FORMAT:
                raise ValueError(f"it was fitted by another version of adjudge, and this one reads format {FORMAT}")
            if names(notes["options"]) != notes["names"]:
                raise ValueError("it was fitted on other values than this version of adjudge computes")
            digest = notes.pop("digest")
            packed = io.BytesIO((home / files[1]).read_bytes())  # np.load leaves a damaged file open
            with np.load(packed, allow_pickle=False) as arrays:
                model = cls(**notes, **{name: arrays[name] for name in _ARRAYS})
            if model.digest != digest:
                raise ValueError("its two files do not belong together")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"no {called} can be read from {str(home)!r}: {error}; {remedy}") from error
        return model


def _sorted(parts: list[list[Any]]) -> list[list[Any]]:
    return sorted((part for part in parts if part[1]), key=lambda part: -abs(part[1]))


Names = Callable[[Mapping[str, Any]], Mapping[str, Sequence[str]]]


class LinearScorer(ABC):
    """What scorers by a linear model share, which is read from the folder `model`, or given as `weights`."""

    name: ClassVar[str]
    files: ClassVar[tuple[str, str]]
    called: ClassVar[str]
    trained_by: ClassVar[str]

    model: str
    weights: LinearModel | None
    explain: int

    @staticmethod
    @abstractmethod
    def value_names(options: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
        """Return the names of the values that are computed for given options, by group."""

    def take_weights(self) -> None:
        """Read the model if its folder is given, or raise `ValueError`."""
        fit = f"{type(self).__name__}.fit"
        if bool(self.model) == (self.weights is not None):
            raise ValueError(f"{self.name}: give the folder of a fitted model, or its weights; {fit} makes one")
        if self.weights is None:
            remedy = f"train again ({self.trained_by} with model: ngrams, or {fit}), or name another folder"
            weights = LinearModel.load(self.model, self.files, self.called, remedy, self.value_names)
            object.__setattr__(self, "weights", weights)

    @classmethod
    def load(cls, folder: str | Path, **options: Any) -> Self:
        """Return the model that `save` wrote, with options of the scorer."""
        make: Any = cls
        return cast("Self", make(model=str(folder), **options))

    def save(self, folder: str | Path) -> Path:
        """Write the model into a folder as JSON and NumPy arrays; return the folder."""
        return self.fitted.save(folder, self.files)

    @property
    def fitted(self) -> LinearModel:
        """The weights, given or read."""
        assert self.weights is not None  # take_weights saw to it
        return self.weights

    def identity(self) -> list[Any]:
        """Return the digest of the weights, and how much is explained in the evidence."""
        return [self.fitted.digest, self.explain]

    def origin(self) -> tuple[str, str]:
        """Return where scores come from, for provenance."""
        return "ngrams", self.fitted.digest


@functools.cache
def _hasher(bits: int) -> Any:
    try:
        from sklearn.feature_extraction import FeatureHasher
    except ImportError as error:
        raise ValueError(f"a model of n-grams needs scikit-learn; {install_hint('train')}") from error
    dtype: Any = np.float32  # its annotation says float64 alone
    return FeatureHasher(1 << bits, input_type="string", alternate_sign=False, dtype=dtype)


def _bytes(terms: Sequence[str]) -> list[bytes]:
    """Terms as the hasher reads them; a text may hold half of a surrogate pair."""
    return [term.encode("utf-8", "surrogatepass") for term in terms]


def hashed(seen: Sequence[Seen], blocks: Sequence[str], bits: int) -> list[Any]:
    """Return a sparse matrix for each block, (texts, 2**bits), of 1 + log(count), rows of length 1."""
    hasher = _hasher(bits)
    from sklearn.preprocessing import normalize

    matrices = []
    for block in blocks:
        matrix = hasher.transform([_bytes(one.terms[block]) for one in seen])
        matrix.data = 1 + np.log(matrix.data)
        matrices.append(normalize(matrix, copy=False))
    return matrices


class Table:
    """The matrix of what is seen of texts, with values cut `farthest` deviations from the mean, and fits to it."""

    def __init__(self, seen: Sequence[Seen], bits: int, *, farthest: float = math.inf):
        self._first = seen[0]
        self._bits = bits
        blocks = hashed(seen, list(self._first.terms), bits)
        from scipy import sparse

        values = np.array([one.row for one in seen])
        self._lows, self._highs = _range(values)
        values = np.clip(values, self._lows, self._highs)
        self._means, self._scales = values.mean(axis=0), values.std(axis=0)
        self._scales[self._scales < 1e-9] = 1.0
        self._lows = np.maximum(self._lows, self._means - farthest * self._scales)
        self._highs = np.minimum(self._highs, self._means + farthest * self._scales)
        self.standardised = (np.clip(values, self._lows, self._highs) - self._means) / self._scales
        self._shrink = _LENGTH / max(1, values.shape[1]) ** 0.5
        self._matrix: Any = sparse.hstack([*blocks, sparse.csr_matrix(self.standardised * self._shrink)], format="csr")

    def fit(
        self,
        places: Sequence[int],
        against: Sequence[int],
        chances: Floats,
        weights: Floats,
        *,
        strength: float,
        options: Mapping[str, Any],
    ) -> tuple[LinearModel, Floats]:
        """Return the weights that explain outcomes best, and the sums of all texts without the intercept.

        Args:
            places: the text of each row.
            against: the text that it is compared with; -1 for the intercept.
            chances: of the outcome 1, in [0, 1]; a row enters as both outcomes, weighted p and 1 - p.
            weights: of the rows, at least 0.
            strength: of the data against the penalty, above 0; scikit-learn's C.
            options: what is looked at.

        Raises:
            ValueError: all rows have the same outcome.
        """
        from scipy import sparse
        from sklearn.linear_model import LogisticRegression

        other = np.asarray(against)
        paired = other >= 0
        rows = self._matrix[places] - sparse.diags(paired.astype(float)) @ self._matrix[np.where(paired, other, 0)]
        ones = sparse.csr_matrix(np.where(paired, 0.0, _INTERCEPT)[:, None])
        # Every second pair is turned around: the same loss, and both outcomes occur, which the solver insists on.
        turned = paired & (np.arange(len(paired)) % 2 == 1)
        signs: Any = sparse.diags(np.where(turned, -1.0, 1.0))
        signed = (signs @ sparse.hstack([rows, ones], format="csr")).tocsr()
        chances = np.where(turned, 1 - chances, chances)
        shares = np.concatenate([weights * chances, weights * (1 - chances)])
        kept = np.flatnonzero(shares)
        labels = (kept < len(chances)).astype(int)
        if len(set(labels.tolist())) < 2:
            raise ValueError("all labels are alike, so there is nothing to tell apart; give right and wrong examples")
        solver: Any = LogisticRegression(
            C=strength,
            fit_intercept=False,
            solver="liblinear",
            dual=True,
            tol=_TOLERANCE,
            max_iter=_STEPS,
            random_state=0,
        )
        solver.fit(signed[kept % len(chances)], labels, sample_weight=shares[kept])
        coefficients = np.asarray(solver.coef_[0], dtype=np.float64)
        blocks, size = list(self._first.terms), 1 << self._bits
        model = LinearModel(
            options=options,
            blocks=blocks,
            names=self._first.names,
            terms=coefficients[: len(blocks) * size].reshape(len(blocks), size).astype(np.float32),
            lows=self._lows,
            highs=self._highs,
            means=self._means,
            scales=self._scales,
            weights=coefficients[len(blocks) * size : -1] * self._shrink,
            intercept=float(coefficients[-1]) * _INTERCEPT,
        )
        return model, self._matrix @ coefficients[:-1]

    def without(self, model: LinearModel, sums: Floats, names: Sequence[str]) -> tuple[LinearModel, Floats]:
        """Return a model and its sums less whatever follows from the values of these names (least squares)."""
        known = [name for group in self._first.names.values() for name in group]
        places = [known.index(name) for name in names]
        beside = np.column_stack([self.standardised[:, places], np.ones(len(sums))])
        slopes = np.linalg.lstsq(beside, sums, rcond=None)[0][:-1]
        weights = model.weights.copy()
        weights[places] -= slopes
        return replace(model, weights=weights), sums - self.standardised[:, places] @ slopes


def _range(table: Floats) -> tuple[Floats, Floats]:
    """The values of each column that count: all but the outermost, or all where most rows have the same."""
    if not table.shape[1]:
        return np.zeros(0), np.zeros(0)
    lows, highs = np.quantile(table, (_OUTERMOST, 1 - _OUTERMOST), axis=0)
    same = lows == highs
    return np.where(same, table.min(axis=0), lows), np.where(same, table.max(axis=0), highs)

"""The mixture of sources that is expected to train best, by what a few short runs scored (MoDoMoDo, arXiv 2505.24871).

The score of a mixture w, whose parts sum to 1, is fitted by least squares as the paper's quadratic function

    f(w) = a + b . w + w . C w = sum_i b_i w_i + sum_{i < j} c_ij w_i w_j

which is the same on mixtures: a = sum_i a w_i, and w_i^2 = w_i - sum_{j != i} w_i w_j.  Its largest value is exact: it
lies inside some face of the simplex of mixtures, where f does not rise along the face, and each face is looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from adjudge.data_pipelines.hygiene.config import MixtureConfig
from adjudge.io.columns import Column
from adjudge.io.jobs.report import JobProgress
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import number_of

Numbers = npt.NDArray[np.float64]

MOST_SOURCES = 12  # 4,095 faces


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """A mixture, and what is expected of it.

    Attributes:
        weights: the share of each source; they sum to 1.
        expected: its score by the fit.
        uniform: that of equal shares.
        best_run: the best score of a run.
        error: root mean square of the fit's errors at runs that it was fitted without, one at a time; None where the
            fit has no run to spare.
    """

    weights: Mapping[str, float]
    expected: float
    uniform: float
    best_run: float
    error: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {name: getattr(self, name) for name in ("weights", "expected", "uniform", "best_run", "error")}

    def lines(self) -> list[str]:
        """Return the report for people."""
        error = "unknown, for there are no runs to spare" if self.error is None else f"{self.error:.4g}"
        return [
            *(f"{weight:8.4f}  {name}" for name, weight in self.weights.items()),
            f"expected {self.expected:.4g}, uniform {self.uniform:.4g}, best run {self.best_run:.4g}; error of the fit "
            f"at a run that it was not fitted to: {error}",
        ]


def find_mixture(config: MixtureConfig, *, progress: JobProgress | None = None) -> Mixture:
    """Fit the runs of a file; see the module.

    Raises:
        ValueError: a row holds no mixture or no score, or the runs are too few.
    """
    del progress  # a file of a few rows
    weights, scores = Column("weights"), Column(config.score_column)
    runs: list[tuple[Mapping[str, float], float]] = []
    for row in open_source(config.runs, limit=1 << 20).rows(Cursor()):
        cells = row.cells() or {}
        mixture, score = weights.of(cells), number_of(scores.of(cells))
        shares = {name: number_of(share) for name, share in mixture.items()} if isinstance(mixture, Mapping) else {}
        known = {name: share for name, share in shares.items() if share is not None}
        if not known or len(known) < len(shares) or score is None:
            raise ValueError(
                f"row {row.index} of {config.runs}: 'weights' is {mixture!r:.80} and "
                f"{config.score_column!r} {scores.of(cells)!r:.80}; give a mapping from sources to shares, and a number"
            )
        runs.append((known, score))
    return best_mixture(runs)


def best_mixture(runs: Sequence[tuple[Mapping[str, float], float]]) -> Mixture:
    """Return the mixture with the largest fitted score; see the module.

    Args:
        runs: the share of each source, and the score; a source that is not named has none.

    Raises:
        ValueError: shares are below 0 or do not sum to 1, sources are more than `MOST_SOURCES`, or the runs' mixtures
            do not determine the fit.
    """
    names = sorted({name for mixture, _ in runs for name in mixture})
    if not 2 <= len(names) <= MOST_SOURCES:
        raise ValueError(f"the runs mix {len(names)} sources; give 2 to {MOST_SOURCES}")
    shares = np.array([[mixture.get(name, 0.0) for name in names] for mixture, _ in runs])
    scores = np.array([score for _, score in runs])
    for at, row in enumerate(shares):
        if row.min() < 0 or abs(row.sum() - 1) > 1e-6:
            raise ValueError(f"run {at} has the shares {dict(runs[at][0])!r:.120}; none may be below 0, and 1 in all")
    pairs = list(itertools.combinations(range(len(names)), 2))

    def terms(mixtures: Numbers) -> Numbers:
        return np.hstack([mixtures, *(mixtures[:, [i]] * mixtures[:, [j]] for i, j in pairs)])

    design = terms(shares)
    fitted, _, rank, _ = np.linalg.lstsq(design, scores)
    if rank < design.shape[1]:
        raise ValueError(
            f"{len(runs)} runs of {len(names)} sources determine {rank} of the fit's {design.shape[1]} numbers; add "
            "runs of other mixtures"
        )
    curved = np.zeros((len(names), len(names)))
    for (i, j), value in zip(pairs, fitted[len(names) :], strict=True):
        curved[i, j] = curved[j, i] = value
    found = np.array(_stationary(np.asarray(fitted[: len(names)], dtype=np.float64), curved))
    expected = terms(found) @ fitted
    best = int(expected.argmax())
    spare = 1 - np.einsum("ij,ji->i", design, np.linalg.pinv(design))
    errors = (scores - design @ fitted) / spare if (spare > 1e-9).all() else None
    return Mixture(
        weights={name: float(share) for name, share in zip(names, found[best], strict=True)},
        expected=float(expected[best]),
        uniform=float((terms(np.full((1, len(names)), 1 / len(names))) @ fitted)[0]),
        best_run=float(scores.max()),
        error=None if errors is None else float(np.sqrt((errors**2).mean())),
    )


def _stationary(slopes: Numbers, curved: Numbers) -> list[Numbers]:
    """The mixtures at which b . w + w . C w / 2 does not change along the face that they lie inside of."""
    found = []
    for size in range(1, len(slopes) + 1):
        for face in map(list, itertools.combinations(range(len(slopes)), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[size, size] = curved[np.ix_(face, face)], 0
            if np.linalg.matrix_rank(system) <= size:
                continue  # a whole line of them, which ends at a smaller face
            inside = np.linalg.solve(system, [*-slopes[face], 1])[:size]
            if inside.min() > 0:
                mixture = np.zeros(len(slopes))
                mixture[face] = inside
                found.append(mixture)
    return found

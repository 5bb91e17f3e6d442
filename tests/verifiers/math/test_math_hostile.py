"""Hostile responses and golds: each ends inside the limits, none is accepted, and the next sample is judged."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer
from adjudge.verifiers.math.verifier import MathVerifier

FILE = Path(__file__).parents[2] / "attacks" / "math_hostile.json"
RECIPES: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
READY_MB = 256  # an idle worker with sympy and flint loaded stays below this
POLL_SECONDS = 0.05
TICKS = os.sysconf("SC_CLK_TCK")
ORDINARY = Sample(prompt="6*7?", response="So the answer is $\\boxed{\\frac{84}{2}}$.", reference="42")


def expand(pieces: Any, canary: Path) -> str:
    """Return the text of a recipe: see `about` in the file."""
    if isinstance(pieces, str):
        return pieces.replace("CANARY", str(canary))
    return "".join(_expand_piece(piece, canary) for piece in pieces)


def _expand_piece(piece: Any, canary: Path) -> str:
    if isinstance(piece, str):
        return expand(piece, canary)
    if "repeat" in piece:
        return str(piece["repeat"]) * int(piece["times"])
    return "".join(piece["each"].replace("#", str(number)) for number in range(1, piece["count"] + 1))


def descendants(root: int) -> dict[int, float]:
    """Return the seconds of CPU time of each process below `root`, found by a walk over /proc."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry)] = int(fields[1])
            spent[int(entry)] = (int(fields[11]) + int(fields[12])) / TICKS
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return {process: spent[process] for process in found[1:]}


def peak_mb(process: int) -> float:
    """Return the peak resident memory of a process in MiB; 0 when it is gone."""
    try:
        status = Path("/proc", str(process), "status").read_text()
    except OSError:
        return 0.0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) / 1024 if lines else 0.0


class Watch:
    """Polls the peak resident memory and the CPU time of all child processes in a thread."""

    def __init__(self) -> None:
        self.peak = 0.0
        self._before = descendants(os.getpid())
        self._spent = dict(self._before)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            self._look()

    def _look(self) -> None:
        spent = descendants(os.getpid())
        self._spent.update(spent)
        self.peak = max([self.peak, *map(peak_mb, spent)])

    @property
    def seconds(self) -> float:
        """CPU time since the beginning; a busy machine adds nothing to it."""
        return sum(spent - self._before.get(process, 0.0) for process, spent in self._spent.items())

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look()


class Bench:
    """One scorer on one worker, so that a hung or bloated worker cannot hide behind another."""

    def __init__(self, pool: Pool) -> None:
        self.verifier = MathVerifier()
        self.scorer = VerifierScorer(self.verifier, pool)

    def judge(self, sample: Sample) -> Score:
        (score,) = asyncio.run(self.scorer.score([sample]))
        return score

    def held(self, sample: Sample) -> Score:
        """Judge a hostile sample, then an ordinary one, and hold both to the limits."""
        limits = self.verifier.limits
        with Watch() as watch:
            score = self.judge(sample)
        assert watch.seconds <= limits.seconds + 0.5, f"{watch.seconds:.2f} s"
        assert watch.peak <= limits.memory_mb + READY_MB, f"{watch.peak:.0f} MiB"
        after = self.judge(ORDINARY)
        assert after.value == 1.0, after
        return score


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Pool(workers=1) as pool:
        made = Bench(pool)
        made.judge(ORDINARY)
        yield made


def test_there_are_enough() -> None:
    assert len(RECIPES["responses"]) >= 80
    assert len(RECIPES["golds"]) >= 20


@pytest.mark.parametrize("recipe", RECIPES["responses"], ids=lambda recipe: recipe["name"])
def test_hostile_response(recipe: dict[str, Any], bench: Bench, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    sample = Sample(prompt="", response=expand(recipe["response"], canary), reference=expand(recipe["gold"], canary))
    score = bench.held(sample)
    assert not canary.exists()
    if recipe["expected"] != "any":
        assert score.value == float(recipe["expected"]), score
    json.dumps(score.to_dict())


@pytest.mark.parametrize("recipe", RECIPES["golds"], ids=lambda recipe: recipe["name"])
def test_hostile_gold(recipe: dict[str, Any], bench: Bench, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    gold = expand(recipe["gold"], canary)
    score = bench.held(Sample(prompt="", response=recipe["response"], reference=gold))
    assert not canary.exists()
    assert score.value in (None, 0.0), score
    if score.status == "failed":
        assert score.reason in ("gold_unparsable", "gold_timeout"), score
    assert len(json.dumps(score.to_dict())) < 100_000


def test_a_hostile_batch_costs_only_its_own(tmp_path: Path) -> None:
    hostile = [
        Sample(prompt="", response=expand(recipe["response"], tmp_path / "canary"), reference="42")
        for recipe in RECIPES["responses"][:12]
    ]
    batch = [sample for one in hostile for sample in (one, ORDINARY)]
    with Pool(workers=2) as pool:
        scores = asyncio.run(VerifierScorer(MathVerifier(), pool).score(batch))
    assert [score.value for score in scores[1::2]] == [1.0] * len(hostile)
    assert [score.value for score in scores[::2]] == [0.0] * len(hostile)

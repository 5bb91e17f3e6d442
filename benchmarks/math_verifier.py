"""Speed of the math verifier beside math-verify on the same pairs, in one run on one machine.

Both run in this process on one core, in alternating rounds; the table gives medians over the rounds.  "as is" keeps
the caches of either side within a round (they are emptied between rounds), "cold" empties them before every pair.
math-verify is slow on some sets, so each set has a wall cap: the pairs that math-verify finishes within its share in
the first round are the pairs that both sides are timed on, and their number is in the table.  A second table shows
the scaling from one pool worker to two, and what the machine itself allows.

Run it as `ADJUDGE_DATA=... python -m benchmarks.math_verifier`; `--help` lists the flags.
Not covered: accuracy (tests/verifiers/math), memory, hostile input.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import multiprocessing
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import math_verify
import math_verify.parser as peer_parser
import tyro
from benchmarks.corpora import boxed, last_boxed, rows
from rich.console import Console
from rich.table import Table

from adjudge.protocol import Sample
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer
from adjudge.verifiers.math.verifier import MathVerifier

Pair = tuple[str, str]
Judge = Callable[[str, str], bool]
PEER_CACHES = ("parse_latex_cached", "parse_expr_cached", "extract_latex")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to time.

    Attributes:
        pairs: pairs drawn per set, at most.
        rounds: timed rounds per set and mode.
        cap: wall seconds that math-verify may use per set and mode, over all rounds.
        seconds: least time of a side in a round; the quicker side judges the pairs several times, its caches emptied
            each time, since 400 pairs in 7 ms measure what the other side left in the processor's caches.
        seed: of the draw.
        sets: names of the sets to run; all when empty.
        scaling: pairs per set, and of all sets mixed, in the worker scaling; 0 leaves it out.
    """

    pairs: int = 800
    rounds: int = 5
    cap: float = 60.0
    seconds: float = 0.3
    seed: int = 7
    sets: tuple[str, ...] = ()
    scaling: int = 20_000


@dataclass(frozen=True)
class Timing:
    """Times of one side on one set: pairs per second (median round) and the slowest pairs in milliseconds."""

    rate: float
    p50: float
    p99: float
    accepted: int


def against(golds: list[str]) -> list[Pair]:
    """Return each gold with a response that answers another gold of the set."""
    others = golds[1:] + golds[:1]
    return [(gold, boxed(other)) for gold, other in zip(golds, others, strict=True)]


def corpora(options: Options) -> dict[str, list[Pair]]:
    chooser = random.Random(options.seed)
    sets: dict[str, list[Pair]] = {"gsm8k": [], "math_responses": []}
    for row in rows("gsm8k", "model_solutions.jsonl"):
        gold = re.split(r"####|\nA:", row["ground_truth"])[-1].strip()
        models = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
        sets["gsm8k"] += [(gold, row[model]["solution"]) for model in models]
    for row in rows("math_responses", "math_cot.jsonl"):
        sets["math_responses"] += [(row["gt"], text) for text in row["code"]]
    college = [row["answer"] for row in rows("math_golds", "college_math.jsonl")]
    minerva = [last_boxed(row["solution"]) for row in rows("math_golds", "minerva_math.jsonl")]
    for name, golds in (("college_math", college), ("minerva", minerva)):
        chooser.shuffle(golds)
        sets[f"{name} itself"] = [(gold, boxed(gold)) for gold in golds]
        sets[f"{name} other"] = against(golds)
    unknown = set(options.sets) - set(sets)
    if unknown:
        sys.exit(f"no set is called {sorted(unknown)[0]!r}; the sets are {', '.join(sets)}")
    drawn = {name: chooser.sample(pairs, min(options.pairs, len(pairs))) for name, pairs in sets.items()}
    return {name: pairs for name, pairs in drawn.items() if not options.sets or name in options.sets}


def peer(gold: str, response: str) -> bool:
    """Judge a pair with math-verify, gold and response parsed anew, as its README does."""
    text = gold if "$" in gold else f"${gold}$"
    return bool(math_verify.verify(math_verify.parse(text), math_verify.parse(response)))


def our_judge() -> Judge:
    verifier = MathVerifier()
    return lambda gold, response: verifier.verify(Sample(prompt="", response=response, reference=gold)).value == 1.0


def peer_caches() -> list[Any]:
    return [getattr(peer_parser, name) for name in PEER_CACHES]


def our_caches() -> list[Any]:
    """Return every cached function in the modules of the verifier."""
    modules = [module for name, module in sys.modules.items() if name.startswith("adjudge.verifiers.math")]
    return [value for module in modules for value in vars(module).values() if hasattr(value, "cache_clear")]


def run(
    judge: Judge, caches: Callable[[], list[Any]], pairs: Sequence[Pair], *, cold: bool, cap: float
) -> list[tuple[float, bool]]:
    """Judge pairs until they or `cap` seconds run out; return seconds and verdict of each."""
    known = caches()  # finding them takes longer than many a verdict: once for all pairs
    for cached in known:
        cached.cache_clear()
    gc.collect()
    times = []
    begun = time.perf_counter()
    for gold, response in pairs:
        if cold:
            for cached in known:
                cached.cache_clear()
        start = time.perf_counter()
        accepted = judge(gold, response)
        times.append((time.perf_counter() - start, accepted))
        if time.perf_counter() - begun > cap:
            break
    return times


def compare(pairs: list[Pair], *, cold: bool, options: Options) -> tuple[int, Timing, Timing]:
    """Time both sides in alternating rounds on the pairs that math-verify finishes within its cap."""
    sides: list[tuple[Judge, Callable[[], list[Any]]]] = [(peer, peer_caches), (our_judge(), our_caches)]
    share = options.cap / options.rounds
    count = len(run(peer, peer_caches, pairs, cold=cold, cap=share))
    run(our_judge(), our_caches, pairs[:count], cold=False, cap=share)  # what is imported on first use is there now
    results: list[list[list[tuple[float, bool]]]] = [[], []]
    for number in range(options.rounds):
        for side in (0, 1) if number % 2 else (1, 0):
            judge, caches = sides[side]
            judged: list[tuple[float, bool]] = []
            while not judged or sum(seconds for seconds, _ in judged) < options.seconds:
                judged += run(judge, caches, pairs[:count], cold=cold, cap=float("inf"))
            results[side].append(judged)
    theirs, ours = (summary(rounds, count) for rounds in results)
    return count, theirs, ours


def summary(rounds: list[list[tuple[float, bool]]], count: int) -> Timing:
    rate = statistics.median(len(judged) / sum(seconds for seconds, _ in judged) for judged in rounds)
    ordered = sorted(seconds for judged in rounds for seconds, _ in judged)
    accepted = sum(verdict for _, verdict in rounds[0][:count])
    return Timing(rate, ordered[len(ordered) // 2] * 1e3, ordered[len(ordered) * 99 // 100] * 1e3, accepted)


def speed_table(sets: dict[str, list[Pair]], options: Options) -> Table:
    table = Table(title=f"pairs per second, one process; cap {options.cap:g} s per row for math-verify")
    for column in ("set", "mode", "pairs", "math-verify", "adjudge", "ratio", "p50 ms", "p99 ms", "accepted"):
        table.add_column(column, justify="left" if column in ("set", "mode") else "right", no_wrap=True)
    for name, pairs in sets.items():
        for mode in ("as is", "cold"):
            count, theirs, ours = compare(pairs, cold=mode == "cold", options=options)
            table.add_row(
                name,
                mode,
                str(count),
                f"{theirs.rate:,.0f}",
                f"{ours.rate:,.0f}",
                f"{ours.rate / theirs.rate:.1f}x",
                f"{theirs.p50:.2f} / {ours.p50:.3f}",
                f"{theirs.p99:.1f} / {ours.p99:.2f}",
                f"{theirs.accepted} / {ours.accepted}",
            )
    return table


def judge_all(pairs: Sequence[Pair]) -> None:
    """Judge pairs in a process that nobody manages."""
    judge = our_judge()
    for gold, response in pairs:
        judge(gold, response)


def through(scorer: VerifierScorer, samples: Sequence[Sample]) -> None:
    """Score samples in the scorer's pool."""
    asyncio.run(scorer.score(samples))


def best(rounds: int, *ways: Callable[[], object]) -> list[float]:
    """Return the least seconds of each way over alternating rounds: what a busy host took away is not in them."""
    seconds: list[list[float]] = [[] for _ in ways]
    for number in range(rounds + 1):
        for side, way in enumerate(ways):
            start = time.perf_counter()
            way()
            if number:  # the first round starts the workers
                seconds[side].append(time.perf_counter() - start)
    return [min(side) for side in seconds]


def scaling_table(sets: dict[str, list[Pair]], options: Options) -> Table:
    table = Table(title="pairs per second through the pool; beside it, what two unconnected processes gain over one")
    for column in ("set", "pairs", "1 worker", "2 workers", "scaling", "unconnected"):
        table.add_column(column, justify="left" if column == "set" else "right")
    mixed = [pair for pairs in sets.values() for pair in pairs]
    random.Random(options.seed).shuffle(mixed)
    with Pool(workers=1) as one, Pool(workers=2) as two, multiprocessing.Pool(2) as bare:
        single, double = (VerifierScorer(MathVerifier(), pool) for pool in (one, two))
        for name, pairs in {**sets, "all of them, mixed": mixed}.items():
            many = (pairs * -(-options.scaling // len(pairs)))[: options.scaling]
            samples = [Sample(prompt="", response=text, reference=gold) for gold, text in many]
            ways: list[Callable[[], object]] = [
                functools.partial(through, single, samples),
                functools.partial(through, double, samples),
                functools.partial(bare.map, judge_all, [many], chunksize=1),
                functools.partial(bare.map, judge_all, [many[::2], many[1::2]], chunksize=1),
            ]
            first, second, alone, both = best(options.rounds, *ways)
            rates = (f"{len(many) / first:,.0f}", f"{len(many) / second:,.0f}")
            table.add_row(name, str(len(many)), *rates, f"{first / second:.2f}x", f"{alone / both:.2f}x")
    return table


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    console = Console(width=130)  # a pipe has no width of its own
    sets = corpora(options)
    peer("1", "$1$")
    our_judge()("1", "\\boxed{1}")
    console.print(f"math-verify {version('math-verify')}, seed {options.seed}, {options.rounds} rounds, medians")
    console.print(speed_table(sets, options))
    if options.scaling:
        console.print(scaling_table(sets, options))


if __name__ == "__main__":
    main()

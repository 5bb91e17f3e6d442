"""Does a verdict of the code verifier depend on what else the machine does?

Canonical solutions of HumanEval, four in five, and programs that use a given time of the processor for one test, judged
beside no busy loop, then 8, then 24.  Each loop runs in a session of its own, or the scheduler would share by groups
and nothing would be shown.  Every answer is right; whatever is not scored 1 is printed, with its reason.  `failed` with
the reason `overloaded` is an honest answer, and yet counted: the promise is a verdict.

Exit status 1 when a verdict differs from that on the quiet machine.

    ADJUDGE_DATA=... python benchmarks/code_busy_machine.py

Not covered: other verifiers (tests with the fixture `busy`), and speed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tyro

from adjudge.protocol import Sample, Score
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer
from adjudge.verifiers.code.verifier import CodeVerifier

WORK = """```python
import time

def work(seconds):
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        sum(range(1000))
    return int(seconds * 10)
```"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to judge beside what.

    Attributes:
        samples: how many answers.
        seconds: of the processor that the long ones take, evenly spread over these; one test may take 5.
        loops: how many busy loops run beside, one round for each number.
        workers: processes that judge.
    """

    samples: int = 200
    seconds: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    loops: tuple[int, ...] = (0, 8, 24)
    workers: int = 2


def samples(options: Options) -> list[Sample]:
    data = os.environ.get("ADJUDGE_DATA")
    if not data:
        sys.exit("set ADJUDGE_DATA to the folder with the corpora (code/HumanEval.jsonl.gz and so on)")
    with gzip.open(Path(data, "code", "HumanEval.jsonl.gz"), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    made = []
    for number in range(options.samples):
        if number % 5 == 4:
            seconds = options.seconds[number // 5 % len(options.seconds)]
            tests = [f"assert work({seconds}) == {int(seconds * 10)}"]
            made.append(Sample(id=f"{seconds} s, {number}", prompt="Work.", response=WORK, reference={"tests": tests}))
            continue
        row = rows[number % len(rows)]
        reference = {"tests": row["test"], "style": "humaneval", "entry_point": row["entry_point"]}
        response = f"```python\n{row['prompt']}{row['canonical_solution']}\n```"
        made.append(
            Sample(id=f"{row['task_id']}, {number}", prompt=row["prompt"], response=response, reference=reference)
        )
    return made


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    command = ["/bin/sh", "-c", "while :; do :; done"]
    loops = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            os.killpg(loop.pid, signal.SIGKILL)
            loop.wait()


async def judge(batch: list[Sample], workers: int) -> list[Score]:
    with Pool(workers) as pool:
        return await VerifierScorer(CodeVerifier(), pool).score(batch)


def main(options: Options) -> int:
    batch = samples(options)
    quiet: list[Score] = []
    changed = 0
    for count in options.loops:
        begin = time.monotonic()
        with busy(count):
            scores = asyncio.run(judge(batch, options.workers))
        quiet = quiet or scores
        different = sum(one.value != other.value for one, other in zip(scores, quiet, strict=True))
        changed += different
        paid = sum(score.value == 1.0 for score in scores)
        print(f"{count} loops: {paid} of {len(batch)} are paid, {different} changed; {time.monotonic() - begin:.0f} s")
        print(f"  {dict(Counter(score.reason for score in scores if score.value != 1.0))}")
        for sample, score in zip(batch, scores, strict=True):
            if score.value != 1.0:
                print(f"  {sample.id}: {score.status} {score.value} {score.reason}")
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options, description=__doc__)))

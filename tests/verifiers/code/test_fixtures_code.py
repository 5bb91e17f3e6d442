"""Rows of five public task sets: what right programs get, and why when it is not 1.

MBPP and CRUXEval rows are in `test_corpora_code.py`.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import pickletools
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.corpus_parts import in_parts, part

from adjudge.protocol import Sample, Score
from adjudge.verifiers.code.verifier import CodeVerifier

DATA = Path(os.environ.get("ADJUDGE_DATA", "")) / "code" / "fixtures"
pytestmark = pytest.mark.skipif("ADJUDGE_DATA" not in os.environ, reason="ADJUDGE_DATA is not set")


def rows(name: str) -> Iterator[dict[str, Any]]:
    with open(DATA / f"{name}.jsonl", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def judged(program: str, reference: dict[str, Any], **options: Any) -> Score:
    verifier = CodeVerifier(**{"seconds": 20.0, **options})
    return verifier.verify(Sample(prompt="", response=f"```python\n{program}\n```", reference=reference))


# What the solutions of BigCodeBench import that is not installed beside adjudge.
PACKAGES = ("bs4", "lxml", "matplotlib", "PIL", "requests", "seaborn")

ONLINE = {"BigCodeBench/1005", "BigCodeBench/1006", "BigCodeBench/1012"}
"""Rows whose tests download something."""

SLOW = "BigCodeBench/0"
"""Its solution goes through 3.6 million permutations, 10 s each of the three times that it runs; it passes."""


@in_parts(12)
def test_bigcodebench_solutions_pass_in_one_process_with_their_tests_and_are_no_zero_apart_from_them(
    every: int,
) -> None:
    lacking = {name for name in PACKAGES if importlib.util.find_spec(name) is None}
    passed = set()
    looked_at = [row for row in rows("bigcodebench") if row["id"] != SLOW]
    looked_at = part(looked_at, every, lambda row: row["id"] in ONLINE)
    for row in looked_at:
        program = row["content"] + row["canonical_solution"]
        reference = {"test": row["test"], "entry_point": "task_func", "solution": program}
        needs = set(re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE)) & set(PACKAGES)
        limits = {"seconds": 100.0, "total_seconds": 200.0, "memory_mb": 3000}
        score = judged(program, reference, shared=True, **limits)
        if needs & lacking or row["id"] in ONLINE:
            assert (score.status, score.reason) == ("failed", "gold_unparsable"), (row["id"], score)
        else:
            passed.add(row["id"])
            assert score.value == 1.0, (row["id"], score)
        apart = judged(program, reference, **limits)
        assert apart.value != 0.0, (row["id"], apart)
    assert passed == {row["id"] for row in looked_at} - ONLINE or lacking
    assert len(looked_at) == (19 if every == 1 else 3)


# The set ships no solutions; these are ours.  Its outputs are compared word by word: in 1342_C most of them have the
# answers of a query on one line, and one has them on a line each.
CONTESTS = {
    "1000_A. Codehorses T-shirts": """
from collections import Counter
n = int(input())
before, now = (Counter(input() for _ in range(n)) for _ in range(2))
print(sum((before - now).values()))
""",
    "1139_C. Edgy Trees": """
import sys
n, k, *edges = map(int, sys.stdin.read().split())
parent = list(range(n + 1))
def root(a):
    while parent[a] != a:
        parent[a] = parent[parent[a]]
        a = parent[a]
    return a
for u, v, black in zip(*[iter(edges)] * 3):
    if not black:
        parent[root(u)] = root(v)
sizes = [0] * (n + 1)
for a in range(1, n + 1):
    sizes[root(a)] += 1
m = 10**9 + 7
print((pow(n, k, m) - sum(pow(size, k, m) for size in sizes)) % m)
""",
    "1198_A. MP3": """
from collections import Counter
n, size = map(int, input().split())
counts = [count for _, count in sorted(Counter(map(int, input().split())).items())]
keep = 2 ** min(20, 8 * size // n)
kept = best = sum(counts[:keep])
for gone, come in zip(counts, counts[keep:]):
    kept += come - gone
    best = max(best, kept)
print(n - best)
""",
    "1238_B. Kill 'Em All": """
for _ in range(int(input())):
    _, r = map(int, input().split())
    places = sorted(set(map(int, input().split())), reverse=True)
    print(sum(place > shot * r for shot, place in enumerate(places)))
""",
    "12_B. Correct Solution?": """
digits, answer = sorted(input().strip()), input().strip()
first = next((at for at, digit in enumerate(digits) if digit != "0"), 0)
digits.insert(0, digits.pop(first))
print("OK" if "".join(digits) == answer else "WRONG_ANSWER")
""",
    "1342_C. Yet Another Counting Problem": """
for _ in range(int(input())):
    a, b, q = map(int, input().split())
    period, differing = a * b, [0]
    for x in range(period):
        differing.append(differing[-1] + (x % a % b != x % b % a))
    def below(x):
        return x // period * differing[-1] + differing[x % period]
    answers = []
    for _ in range(q):
        left, right = map(int, input().split())
        answers.append(below(right + 1) - below(left))
    print(*answers)
""",
}


def test_code_contests_tests_accept_a_right_program_and_no_other() -> None:
    solved = set()
    for row in rows("code_contests"):
        name = json.loads(row["labels"])["name"]
        silent = judged("pass", row)
        assert (silent.value, silent.reason) == (0.0, "wrong"), (name, silent)
        if name in CONTESTS:
            score = judged(CONTESTS[name], row, output="tokens")
            assert (score.value, score.evidence["total"]) == (1.0, len(json.loads(row["test"]))), (name, score)
            solved.add(name)
    assert solved == CONTESTS.keys()


# The solutions that the set ships are a stub that exits at once; these are ours.
LIVE = {
    "codeforces/1873_A": "for _ in range(int(input())):\n    print('NO' if input() in ('bca', 'cab') else 'YES')",
    "leetcode/2727": "class Solution:\n    def countSeniors(self, details):\n"
    "        return sum(int(line[11:13]) > 60 for line in details)",
    "atcoder/abc301_a": "n, games = int(input()), input()\n"
    "a, t = games.count('A'), games.count('T')\n"
    "print('A' if a > t or (a == t and games[-1] == 'T') else 'T')",
}


def live_tests(text: str) -> dict[str, Any]:
    """The tests are JSON in a pickle, which is taken apart without running it."""
    data = zlib.decompress(base64.b64decode(text))
    (found,) = (value for _, value, _ in pickletools.genops(data) if isinstance(value, str) and value.startswith("{"))
    return dict(json.loads(found))


def test_live_code_bench_tests_accept_a_right_program_and_not_the_stub() -> None:
    for row in rows("live_code_bench_v1"):
        tests, name = live_tests(row["test"]), json.loads(row["labels"])["task_id"]
        packed = judged(LIVE[name], row)
        assert (packed.reason, "does not open" in packed.evidence["error"]) == ("gold_unparsable", True), packed
        pairs = [{"input": one, "output": other} for one, other in zip(tests["inputs"], tests["outputs"], strict=True)]
        kind = "functional" if tests["fn_name"] else "stdin"
        typed = json.dumps([{**pair, "testtype": kind} for pair in pairs])
        references: list[dict[str, Any]] = [
            tests,
            {"input_output": json.dumps(tests)},
            {"public_test_cases": typed, "metadata": json.dumps({"func_name": tests["fn_name"]})},
        ]
        program = LIVE.pop(name)
        for reference in references:
            assert judged(row["canonical_solution"], reference).value == 0.0, name
            score = judged(program, reference)
            assert (score.value, score.evidence["total"]) == (1.0, len(pairs)), (name, score)
    assert not LIVE

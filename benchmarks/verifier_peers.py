"""What stands beside a verifier in the table of `benchmarks.verifiers`: the plain way, or the package people use.

A peer judges the same samples in the same run.  None of them keeps limits of time or memory, or asks what a response
tries; that is what the other column has more of.  Where a peer only computes, its verdict is None and not compared.

Not covered: peers that need a model, a service or a corpus.
"""

from __future__ import annotations

import difflib
import functools
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from adjudge.protocol import Sample, response_text

Judging = Callable[[Sample], bool | None]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Another way to judge a sample.

    Attributes:
        name: in the table.
        make: imports what it needs, and returns what judges; None is "no verdict to compare".
        package: a distribution that it needs.
        program: a program that it needs.
        form: in which it gets a sample, where its own documentation asks for one.
        needs: the entry of `Sample.extra` without which it cannot be asked.
    """

    name: str
    make: Callable[[], Judging]
    package: str = ""
    program: str = ""
    form: str = ""
    needs: str = ""

    @property
    def title(self) -> str:
        """Its name, with the version of its package."""
        try:
            return f"{self.name} {version(self.package)}" if self.package else self.name
        except PackageNotFoundError:
            return self.name

    @property
    def missing(self) -> str:
        """What it lacks here; "" for nothing."""
        if self.package and importlib.util.find_spec(self.package.replace("-", "_")) is None:
            return f"the package {self.package} is not installed"
        if self.program and shutil.which(self.program) is None:
            return f"the program {self.program} is not installed"
        return ""


def _math_verify() -> Judging:
    import math_verify

    def judge(sample: Sample) -> bool:
        gold = str(sample.reference)
        parsed = math_verify.parse(gold if "$" in gold else f"${gold}$")
        return bool(math_verify.verify(parsed, math_verify.parse(response_text(sample))))

    return judge


def _reasoning_gym() -> Judging:
    from adjudge.verifiers.logic.gym import ReasoningGymVerifier, ask

    verifier = ReasoningGymVerifier()

    def judge(sample: Sample) -> bool:
        gold = verifier.read_reference(sample.reference)
        answer = response_text(sample).rpartition("<answer>")[2].partition("</answer>")[0]
        return ask(gold.task, answer, gold.entry) == 1.0

    return judge


def _sacrebleu() -> Judging:
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(effective_order=True)

    def judge(sample: Sample) -> None:
        gold = sample.reference.get("references") if isinstance(sample.reference, dict) else sample.reference
        bleu.sentence_score(response_text(sample), [str(one) for one in (gold if isinstance(gold, list) else [gold])])

    return judge


def _difflib() -> Judging:
    edit = re.compile(r"### (\S+)\n<{7} SEARCH\n(.*?)\n={7}\n(.*?)\n?>{7} REPLACE", re.DOTALL)

    def diff(before: str, after: str) -> str:
        return "\n".join([*difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="")][2:])

    def judge(sample: Sample) -> bool | None:
        before, gold = sample.reference["files"], sample.reference.get("after")
        if gold is None:
            return None
        after = dict(before)
        for path, search, replace in edit.findall(response_text(sample)):
            after[path] = after.get(path, "").replace(search, replace, 1)
        golds = {path: diff(before.get(path, ""), text) for path, text in gold.items()}
        diffs = {path: diff(before.get(path, ""), text) for path, text in after.items()}
        changed = [path for path in {**golds, **diffs} if golds.get(path) or diffs.get(path)]
        matchers = [difflib.SequenceMatcher(None, diffs.get(path, ""), golds.get(path, ""), False) for path in changed]
        return bool(matchers) and all(matcher.ratio() == 1.0 for matcher in matchers)

    return judge


def _run(command: list[str], files: Mapping[str, str]) -> str | None:
    """What a program prints in a folder of its own, which isolates nothing; None where it fails or takes over 10 s."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        try:
            done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=10)
        except subprocess.TimeoutExpired:
            return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def fence(sample: Sample) -> str:
    """Return what stands in the last code block of a response, or all of it."""
    blocks = re.findall(r"```\w*\n(.*?)```", response_text(sample), re.DOTALL)
    return str(blocks[-1]) if blocks else response_text(sample)


def _interpreter() -> Judging:
    def judge(sample: Sample) -> bool:
        gold = sample.reference
        script = f"{fence(sample)}\n{gold['tests']}\ncheck({gold['entry_point']})\n"
        return _run([sys.executable, "-I", "answer.py"], {"answer.py": script}) is not None

    return judge


def _plain_run() -> Judging:
    return lambda sample: _run([sys.executable, "-I", "answer.py"], {"answer.py": fence(sample)}) is not None


def _bird() -> Judging:
    from benchmarks.sql_verifier import published

    return published


def _icarus() -> Judging:
    from benchmarks.verilog_verifier import plain

    return plain


def _coqc() -> Judging:
    def judge(sample: Sample) -> bool:
        text = f"{sample.reference['header']}\n{fence(sample)}\n"
        return _run(["coqc", "-q", "Answer.v"], {"Answer.v": text}) is not None

    return judge


def _z3() -> Judging:
    def judge(sample: Sample) -> bool | None:
        gold, term = sample.reference, fence(sample)
        question = gold.get("formula", gold.get("declarations", ""))
        for key, different in (("equivalent", "(= {} {})"), ("entails", "(=> {1} {0})"), ("entailed_by", "(=> {} {})")):
            if key in gold:
                question += f"\n(assert (not {different.format(gold[key], term)}\n))"
        said = _run(["z3", "-smt2", "question.smt2"], {"question.smt2": f"{question}\n(check-sat)\n"})
        return said is not None and said.strip() == "unsat" if "formula" not in gold else None

    return judge


def _ifeval(mode: str) -> Judging:
    from benchmarks.ifeval_plain import covers, met

    def judge(sample: Sample) -> bool | None:
        text = response_text(sample)
        return all(met(asked, text, mode) for asked in sample.reference) if covers(sample.reference) else None

    return judge


MATH_VERIFY = Peer(name="math-verify", make=_math_verify, package="math-verify")
DIFFLIB = Peer(name="difflib, edits read by one pattern", make=_difflib)
SACREBLEU = Peer(name="sacrebleu alone,", make=_sacrebleu, package="sacrebleu")
REASONING_GYM = Peer(name="the package's own check,", make=_reasoning_gym, package="reasoning-gym")
INTERPRETER = Peer(name="a fresh interpreter, not isolated", make=_interpreter)
PLAIN_RUN = Peer(name="a fresh interpreter, not isolated", make=_plain_run)
BIRD = Peer(name="as BIRD's script runs it, unguarded", make=_bird)
ICARUS = Peer(name="iverilog and vvp, not isolated", make=_icarus, program="iverilog")
COQC = Peer(name="coqc alone", make=_coqc, program="coqc")
Z3 = Peer(name="z3 alone", make=_z3, program="z3")
IFEVAL_STRICT = Peer(name="plain code in IFEval's manner", make=functools.partial(_ifeval, "strict"))
IFEVAL_LOOSE = Peer(name="plain code in IFEval's manner", make=functools.partial(_ifeval, "loose"))

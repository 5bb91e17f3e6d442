"""The rows of `benchmarks.verifiers`: which verifier, on which samples, beside whom.

A verifier without a `Row` here, or in `benchmarks.verifier_agent_rows`, gets one with the honest cases of its attack
suite, and options as they are.  Other samples come from a corpus where `ADJUDGE_DATA` names one, else from the rows
that come with the probes.

Not covered: verifiers whose time is that of a service (`lean_server`) or of a toolchain (`lean`); `lean` stands here
with its rules alone.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from benchmarks import verifier_peers as peers
from benchmarks.probe_generative import THEOREMS, VERDICTS
from benchmarks.probe_scorers import ASKING, Probed
from benchmarks.verifier_peers import Peer

from adjudge.evals.probes.row_file import place_of
from adjudge.protocol import Sample, Score, Scorer, Verifier, response_text
from adjudge.scoring import registry
from adjudge.scoring.attacks import cases_in, shipped_cases


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table.

    Attributes:
        name: in the table; `--only` takes its beginning.
        spec: the verifier's name or "module:Class", or a function that makes it.
        make: returns its samples.
        options: of the verifier.
        peer: who judges the same samples.
    """

    name: str
    spec: str | Callable[[], Verifier | Scorer]
    make: Callable[[], list[Sample]]
    options: dict[str, Any] = field(default_factory=dict)
    peer: Peer | None = None

    def judge(self) -> Verifier | Scorer:
        """Make the verifier."""
        made: Verifier | Scorer = (
            registry.resolve(self.spec)(**self.options) if isinstance(self.spec, str) else self.spec()
        )
        return made


def corpus(*parts: str) -> Path | None:
    """Return the place of a corpus; None where there is none."""
    data = os.environ.get("ADJUDGE_DATA")
    path = Path(data, *parts) if data else None
    return path if path is not None and path.exists() else None


def lines(path: Path, most: int) -> list[dict[str, Any]]:
    """Return the first rows of a file of JSON lines."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()[:most]]


def shipped(name: str) -> Callable[[], list[Sample]]:
    """The right and wrong responses of the rows that come with the probes."""
    return lambda: _both(json.loads(Path(place_of(f"rows:{name}")).read_text(encoding="utf-8")))


def _both(rows: Sequence[dict[str, Any]]) -> list[Sample]:
    return [
        Sample(prompt=row["prompt"], response=row[side], reference=row.get("reference"), extra={"task": row["prompt"]})
        for row in rows
        for side in ("good", "bad")
    ]


def honest(
    spec: str | Callable[[], Any], keep: Callable[[Sample], bool] = lambda sample: True
) -> Callable[[], list[Sample]]:
    """The honest cases of a verifier's attack suite."""

    def make() -> list[Sample]:
        verifier = registry.resolve(spec)() if isinstance(spec, str) else spec()
        with tempfile.TemporaryDirectory() as folder:
            return [case.sample for case in shipped_cases(verifier, folder) if case.honest and keep(case.sample)]

    return make


def math_responses() -> list[Sample]:
    """Chains of thought on MATH."""
    path = corpus("math_responses", "math_cot.jsonl")
    if path is None:
        return shipped("math")()
    return [
        Sample(prompt=row["question"], response=response, reference=row["gt"])
        for row in lines(path, 400)
        for response in row["code"]
    ]


def gsm8k() -> list[Sample]:
    """Solutions of GSM8K by a model."""
    path = corpus("gsm8k", "model_solutions.jsonl")
    if path is None:
        return shipped("numeric")()
    return [
        Sample(
            prompt=row["question"],
            response=row["6b_finetuning"]["solution"].replace("A: ", "The answer is "),
            reference=row["ground_truth"].rpartition("A: ")[2],
        )
        for row in lines(path, 400)
    ]


def ifeval() -> list[Sample]:
    """Responses to IFEval by nine models."""
    from adjudge.verifiers.instructions.rows import ifeval_constraints

    prompts, responses = (
        corpus("instructions", name) for name in ("ifeval_prompts.jsonl", "ifeval_responses.jsonl.gz")
    )
    if prompts is None or responses is None:
        return shipped("instructions")()
    asked = {row["key"]: row for row in lines(prompts, 10_000)}
    return [
        Sample(prompt=asked[row["key"]]["prompt"], response=row["response"] or "", reference=reference)
        for row in lines(responses, 600)
        for reference in [ifeval_constraints(asked[row["key"]])]
    ]


def ifeval_plain() -> list[Sample]:
    """Those of them whose kinds need neither a language nor sentences."""
    from benchmarks.ifeval_plain import covers

    found = [sample for sample in ifeval() if isinstance(sample.reference, list) and covers(sample.reference)]
    return found or [
        Sample(
            prompt="",
            response=f"<<Title {number}>>\n" + "some words that say little. " * (number % 60),
            reference=[{"kind": "punctuation:no_comma", "args": {}}, {"kind": "detectable_format:title", "args": {}}],
        )
        for number in range(300)
    ]


def newlines() -> list[Sample]:
    """A response that makes the published pattern for bullets read each line again from every other."""
    asked = [{"kind": "detectable_format:number_bullet_lists", "args": {"num_bullets": 1}}]
    return [Sample(prompt="", response="a" + "\n" * 5_000, reference=asked)]


def humaneval() -> list[Sample]:
    """Labelled candidates of HumanEval."""
    if corpus("code", "humaneval_candidates.jsonl.gz") is None:
        task = {"tests": "def check(f):\n    assert f(1, 2) == 3\n", "style": "humaneval", "entry_point": "add"}
        return [
            Sample(prompt="", response=f"```python\ndef add(a, b):\n    return a {sign} b\n```", reference=task)
            for sign in "+-"
        ]
    from benchmarks.code_verifier import Options, reference, tasks

    return [
        Sample(prompt=task.prompt, response=f"```python\n{task.program}\n```", reference=reference(task))
        for task in tasks(Options(programs=40))
    ]


def defog() -> list[Sample]:
    """Right and wrong answers to defog's questions on SQLite files."""
    place = corpus("sql", "defog")
    if place is None:
        return shipped("sql")()
    from benchmarks.sql_verifier import Options, samples

    return samples(Options(group=4), lambda name: str(place / "sqlite" / f"{name}.sqlite"))


def verilog_eval() -> list[Sample]:
    """References of VerilogEval, answered with themselves."""
    if corpus("verilog", "verilog_eval_v2.jsonl.gz") is None:
        return shipped("verilog")()
    from benchmarks import verilog_verifier

    return verilog_verifier.verilog_eval(12, bench=True)


def boxed_group() -> list[Sample]:
    """Eight answers to one question, of which two say that they do not know."""
    answers = ["Marie Curie"] * 3 + ["Pierre Curie"] * 3 + ["I don't know"] * 2
    return [
        Sample(
            prompt="Who?",
            response=f"<think>It was asked before.</think><answer>It is \\boxed{{{answer}}}.</answer>",
            reference="Marie Curie",
            group="g",
            extra={"tool_spans": []},
        )
        for answer in answers
    ]


def lean() -> list[Sample]:
    """The honest cases of the suite of `lean`, which need no Lean to be read."""
    from adjudge.verifiers.proofs import lean

    suite = cases_in(Path(lean.__file__).with_name("attacks.json"), "lean")
    return [case.sample for case in suite if case.honest]


@dataclass(frozen=True, kw_only=True)
class LeanRules(Verifier):
    """What `lean` does before it asks Lean: the rules, and the file that is made.

    The reference is that of `lean`.
    """

    name: ClassVar[str] = "lean rules"

    def verify(self, sample: Sample) -> Score:
        """Return 1 where there is a file to ask about."""
        from adjudge.verifiers.proofs.lean_source import answered, read_lean

        made = answered(response_text(sample), read_lean(sample.reference))
        return made if isinstance(made, Score) else Score(value=1.0)


def probed(one: Probed) -> Row:
    """A scorer with a scripted model, as the probes try it."""

    def make() -> list[Sample]:
        rows = json.loads(Path(place_of(f"rows:{one.rows}")).read_text(encoding="utf-8"))
        return _both([one.change(row) if one.change is not None else row for row in rows])

    return Row(name=one.name, spec=one.make, make=make)


def _rows() -> Iterator[Row]:
    """Yield all rows, in the order of the table."""
    tags = ["think", "answer"]
    pattern = r"<think>.*</think>\s*<answer>.*</answer>"
    # Answers.
    yield Row(name="math", spec="math", make=math_responses, peer=peers.MATH_VERIFY)
    yield Row(name="numeric", spec="numeric", make=gsm8k)
    yield from (Row(name=name, spec=name, make=shipped("short")) for name in ("exact", "token_f1"))
    yield from (Row(name=name, spec=name, make=shipped(name)) for name in ("choice", "persona", "verdict"))
    yield from (Row(name=name, spec=name, make=shipped(name)) for name in ("verdict_labels", "verdict_steps"))
    yield from map(probed, VERDICTS)
    yield Row(name="abstention", spec="abstention", options={"confidence": None}, make=honest("abstention"))
    yield Row(name="bapo", spec="bapo", options={"stage": "always"}, make=boxed_group)
    lexical = "adjudge.verifiers.text.translation.verifier:TranslationVerifier"
    yield Row(name="translation", spec=lexical, make=honest(lexical), peer=peers.SACREBLEU)
    # Form.
    loose = {"mode": "loose"}
    yield Row(name="instructions", spec="instructions", make=ifeval)
    yield Row(name="instructions, loose", spec="instructions", options=loose, make=ifeval)
    yield Row(
        name="instructions, plain kinds", spec="instructions", make=ifeval_plain, peer=peers.IFEVAL_STRICT,
        options={"reasoning": "keep"},
    )  # fmt: skip
    yield Row(
        name="instructions, plain kinds, loose", spec="instructions", make=ifeval_plain, peer=peers.IFEVAL_LOOSE,
        options={**loose, "reasoning": "keep"},
    )  # fmt: skip
    yield Row(name="instructions, 5,000 newlines", spec="instructions", make=newlines, peer=peers.IFEVAL_STRICT)
    yield Row(name="format", spec="format", options={"tags": tags}, make=shipped("format"))
    regex = {"pattern": pattern, "dot_all": True, "reasoning": "keep"}
    yield Row(name="regex", spec="regex", options=regex, make=shipped("format"))
    length = {"kind": "linear", "unit": "words", "max_length": 200}
    yield Row(name="length", spec="length", options=length, make=shipped("pairs"))
    yield Row(name="repetition", spec="repetition", make=shipped("repetition"))
    # Puzzles, tables and graphs.
    for what in ("output", "input"):
        predicted = honest("code_prediction", lambda sample, what=what: sample.reference["predict"] == what)  # type: ignore[misc]
        yield Row(name=f"code_prediction, {what}s", spec="code_prediction", make=predicted)
    tagged = honest("reasoning_gym", lambda sample: "<answer>" in str(sample.response))
    yield Row(name="reasoning_gym", spec="reasoning_gym", make=tagged, peer=peers.REASONING_GYM)
    # Programs, queries and circuits.
    yield Row(name="code", spec="code", make=humaneval, peer=peers.INTERPRETER)
    patch = "adjudge.verifiers.code.patches.verifier:PatchVerifier"
    yield Row(name="patch", spec=patch, make=honest(patch), peer=peers.DIFFLIB)
    patched = "adjudge.verifiers.code.patches.tests_verifier:PatchTestsVerifier"
    yield Row(name="patch_tests", spec=patched, make=honest(patched))
    timed = "adjudge.verifiers.code.performance.verifier:PerformanceVerifier"
    yield Row(name="performance", spec=timed, make=honest(timed))
    yield Row(name="run", spec="run", make=shipped("run"), peer=peers.PLAIN_RUN)
    yield Row(name="program", spec="program", make=shipped("program"))
    bird = {"comparator": "bird", "empty": "accept"}
    yield Row(name="sql", spec="sql", make=defog)
    if corpus("sql", "defog") is not None:
        yield Row(name="sql, as BIRD", spec="sql", options=bird, make=defog, peer=peers.BIRD)
    icarus = peers.ICARUS if corpus("verilog", "verilog_eval_v2.jsonl.gz") is not None else None
    yield Row(name="verilog", spec="verilog", make=verilog_eval, peer=icarus)
    yield Row(name="simulation", spec="simulation", make=shipped("simulation"))
    # Proofs.
    yield Row(name="coq", spec="coq", make=shipped("coq"), peer=peers.COQC)
    yield Row(name="smt, z3", spec="smt", make=shipped("smt"), peer=peers.Z3)
    both = {"solvers": ("z3", "cvc5")}
    yield Row(name="smt, z3 and cvc5", spec="smt", options=both, make=honest("smt"))
    yield Row(name="lean, rules and file", spec=LeanRules, make=lean)
    yield from map(probed, THEOREMS)
    # Verifiers that ask a model, with a scripted one: what they add to its time.
    yield from map(probed, ASKING)


ROWS = list(_rows())
"""All rows, in the order of the table."""

LEFT_OUT = {
    "lean": "its time is that of the toolchain; its rules have a row",
    "lean_server": "its time is that of the server",
    **dict.fromkeys(
        ("group_length", "majority_vote", "proposed_task", "tries"),
        "its time is that of the scorer or solver behind it",
    ),
}
"""Verifiers of the registry that have no row of their name, and why."""

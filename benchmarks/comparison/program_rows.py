"""Labelled programs, queries and circuits, and the attack suites, as `rows.LabelledRow`.

Programs have "script", the tests as HumanEval writes them, and "calls", the same as LiveCodeBench does, where they are
nothing but calls whose arguments and results JSON can hold.  Queries have "golds", every accepted query, and
"database", a file that a verifier copies before each call, since some verifiers let a response change it.

Not covered: suites of tests in pytest's form, PostgreSQL, and attacks whose reference has no form for other verifiers.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import sqlite3
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison.rows import WITHOUT_NLTK_DATA, LabelledRow, red_team
from benchmarks.corpora import place, rows
from benchmarks.verilog_verifier import SLOW

from adjudge.protocol import Sample, response_text
from adjudge.scoring import registry
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.code.suite import read_suite
from adjudge.verifiers.instructions.ifeval import IFEVAL

SEED = 7
"""Of the draw of answers to other questions."""


def program_row(
    name: str, label: object, sample: Sample, *, shown: str = "", script: dict[str, str] | None = None, **more: Any
) -> LabelledRow:
    """Return a row of code: the reference's tests in the forms of other verifiers, where they can be written so."""
    gold, calls = sample.reference, None
    if script is not None:
        pass
    elif gold.get("style") == "humaneval" and "setup" not in gold:
        script = {"test": gold["tests"], "entry_point": gold["entry_point"]}
    elif isinstance(gold["tests"], list) and all("args" in test for test in gold["tests"]):
        lines = [f"    assert candidate(*{test['args']!r}) == {test['expected']!r}\n" for test in gold["tests"]]
        script = {"test": "def check(candidate):\n" + "".join(lines), "entry_point": gold["entry_point"]}
    elif isinstance(gold["tests"], list) and all(isinstance(test, str) for test in gold["tests"]):
        lines = ["    " + test.replace("\n", "\n    ") + "\n" for test in gold["tests"]]
        script = {"test": "def check(candidate):\n" + "".join(lines), "entry_point": "print"}
    if script is not None:
        calls = calls_of(gold, str(sample.prompt))
    extra = {**more, "script": script, "calls": calls}
    made = Sample(prompt=sample.prompt, response=sample.response, reference=gold, id=name, extra=extra)
    return LabelledRow(sample=made, label=bool(label), shown={"shown": shown} if shown else {})


def calls_of(gold: Mapping[str, Any], prompt: str) -> dict[str, Any] | None:
    """Return tests as LiveCodeBench's calls, None where they are something else.

    Returns:
        {"inputs": [arguments, a line of JSON each, ..], "outputs": [JSON, ..], "fn_name": name}.
    """
    if isinstance(gold["tests"], list) and all(set(test) == {"args", "expected"} for test in gold["tests"]):
        asked = [(gold["entry_point"], test["args"], test["expected"]) for test in gold["tests"]]
        return _as_calls(asked)
    try:
        claims = [claim for test in read_suite(dict(gold), prompt).claims for claim in test]
    except BadReferenceError:
        return None
    if any(claim.relation != "==" or claim.kwargs or claim.target.method for claim in claims):
        return None
    return _as_calls([(claim.target.name, claim.args, claim.value) for claim in claims])


def _as_calls(asked: Sequence[tuple[str, Sequence[Any], Any]]) -> dict[str, Any] | None:
    names = {name for name, _, _ in asked}
    if len(names) != 1 or not all(_in_json(value) for _, args, result in asked for value in (*args, result)):
        return None
    inputs = ["\n".join(map(json.dumps, args)) for _, args, _ in asked]
    return {"inputs": inputs, "outputs": [json.dumps(result) for _, _, result in asked], "fn_name": names.pop()}


def _in_json(value: Any) -> bool:
    """Whether a value survives as JSON; tuples become lists there, and the verifiers concerned know that."""
    if isinstance(value, list | tuple):
        return all(map(_in_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _in_json(one) for key, one in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def humaneval() -> list[LabelledRow]:
    """Completions of HumanEval by a model of 16 billion parameters."""
    asked = {row["task_id"]: row for row in rows("code", "HumanEval.jsonl.gz")}
    found = []
    for row in rows("code", "humaneval_candidates.jsonl.gz"):
        task = asked[row["task_id"]]
        gold = {"tests": task["test"], "style": "humaneval", "entry_point": row["entry_point"]}
        sample = Sample(prompt=task["prompt"], response=f"```python\n{row['program']}\n```", reference=gold)
        found.append(program_row(f"{row['task_id']} {row['sample']}", row["label"] == "pass", sample))
    return found


def mbpp() -> list[LabelledRow]:
    """Solutions of MBPP, and beside each the next task's solution under its name."""
    asked = rows("code", "mbpp_sanitized.jsonl")
    found = []
    for row, other in itertools.pairwise([*asked, asked[0]]):
        gold = {"tests": textwrap.dedent(row["test"].partition("\n")[2]), "style": "asserts"}
        script = {"test": row["test"], "entry_point": "print"}  # its `check` has no use for what it is given
        if re.search(rf"\b{row['entry_point']}\b", gold["tests"]):  # some tests call a function of another name
            gold["entry_point"] = script["entry_point"] = row["entry_point"]
        for label, solved in ((True, row), (False, other)):
            program = solved["prompt"].partition("    '''")[0] + solved["canonical_solution"]
            if not label:
                program += f"\n{row['entry_point']} = {other['entry_point']}\n"
            sample = Sample(prompt="", response=f"```python\n{program}\n```", reference=gold)
            name = f"{row['task_id']} {'own' if label else other['task_id']}"
            found.append(program_row(name, label, sample, script=script))
    return found


def defog() -> list[LabelledRow]:
    """Accepted queries of defog's questions, and those of two other questions on the same database."""
    chooser = random.Random(SEED)
    asked = rows("sql", "defog", "questions.jsonl")
    found = []
    for number, row in enumerate(asked):
        accepted = row["accepted_sql"]
        others = [other["accepted_sql"][0] for other in asked if other["db"] == row["db"] and other is not row]
        answers = [(True, sql) for sql in accepted] + [(False, sql) for sql in chooser.sample(others, 2)]
        database = str(place("sql", "defog", "sqlite", f"{row['db']}.sqlite"))
        for at, (label, sql) in enumerate(answers):
            text = f"```sql\n{sql}\n```"
            found.append(query_row(f"{number} {at}", label, text, accepted, database, row["question"]))
    return found


def query_row(
    name: str, label: object, sql: str, golds: list[str], database: str, question: str = "", **more: Any
) -> LabelledRow:
    """Return a row of SQL, whose response is `sql`."""
    sample = Sample(
        prompt=question,
        response=sql,
        reference={"sql": golds, "database": database},
        id=name,
        extra={**more, "golds": golds, "database": database},
    )
    return LabelledRow(sample=sample, label=bool(label), shown={"gold": golds[0], "answer": sql})


_CHANGES = (("posedge", "negedge"), ("&", "|"), ("|", "&"), ("^", "&"), ("+", "-"), ("==", "!="), ("1'b1", "1'b0"))
_SAME = {("Prob074_ece241_2014_q4", "&")}
"""A change after which the circuit does the same: two registers go through the same values either way."""


def circuit_row(name: str, label: object, design: str, gold: dict[str, Any], **more: Any) -> LabelledRow:
    """Return a row of Verilog."""
    sample = Sample(prompt="", response=design, reference=gold, id=name, extra=more)
    return LabelledRow(sample=sample, label=bool(label))


def verilog_eval() -> list[LabelledRow]:
    """References of VerilogEval whose benches take no seconds, and each of them with one operator changed."""
    found = []
    for row in rows("verilog", "verilog_eval_v2.jsonl.gz"):
        if row["problem"] in SLOW:
            continue
        right = row["reference"].replace("RefModule", "TopModule")
        gold = {"reference": row["reference"], "top": "TopModule", "testbench": row["testbench"]}
        found.append(circuit_row(row["problem"], True, right, gold))
        for old, new in _CHANGES:
            wrong = right.replace(f" {old} ", f" {new} ", 1)
            if wrong != right and (row["problem"], old) not in _SAME:
                found.append(circuit_row(f"{row['problem']} {old} as {new}", False, wrong, gold))
    return found


def rtllm() -> list[LabelledRow]:
    """Designs by a model in the benches of RTLLM."""
    asked = {row["design"]: row for row in rows("verilog", "rtllm_designs.jsonl.gz")}
    found = []
    for row in rows("verilog", "rtllm_candidates.jsonl.gz"):
        design = asked[row["design"]]
        gold = {"reference": design["reference"], "testbench": design["testbench"], "files": design["files"]}
        name, label = f"{row['model']} {row['trial']} {row['design']}", row["status"] == "pass"
        found.append(circuit_row(name, label, row["source"], gold, options={"seconds": 2.0}))
    return found


def suite(scorer: str, folder: Path) -> Iterator[tuple[AttackCase, dict[str, Any]]]:
    """Yield the cases of the attack suite that a scorer ships, whose response is one text, with their options."""
    for case in shipped_cases(registry.resolve(scorer)(), folder):
        if isinstance(case.sample.response, str) and case.sample.finish_reason is None:
            yield case, dict(case.options)


def code_attacks(folder: Path) -> list[LabelledRow]:
    """Cases of the suite of `code` whose tests can be written as a script, and those that a red team found."""
    found = []
    for case, options in suite("code", folder):
        made = program_row(case.id, case.honest, case.sample, shown=case.tries, options=options)
        if made.sample.extra["script"] is not None:
            found.append(made)
    for row in red_team("code"):
        sample = Sample(prompt=row["prompt"], response=row["response"], reference=row["reference"])
        made = program_row(f"red team {row['number']} {row['category']}", row["should"], sample, options=row["options"])
        if made.sample.extra["script"] is not None:
            found.append(made)
    return found


def sql_attacks(folder: Path) -> list[LabelledRow]:
    """Cases of the suite of `sql`, and those that a red team found."""
    found = []
    for case, options in suite("sql", folder):
        gold = case.sample.reference
        if set(gold) == {"sql", "database"} and isinstance(gold["database"], str) and isinstance(gold["sql"], str):
            text = response_text(case.sample)
            made = query_row(case.id, case.honest, text, [gold["sql"]], gold["database"], "Which?", options=options)
            found.append(LabelledRow(sample=made.sample, label=made.label, shown={"tries": case.tries}))
    database = folder / "co.sqlite"
    with sqlite3.connect(database) as made_of:
        made_of.executescript(place("redteam", "db", "co.sql").read_text("utf-8"))
    for row in red_team("sql"):
        gold = row["reference"]
        if isinstance(gold["sql"], str) and gold.get("database") in ("db/co.sqlite", ["db/co.sqlite"]):
            name = f"red team {row['number']} {row['category']}"
            found.append(
                query_row(
                    name,
                    row["should"],
                    row["response"],
                    [gold["sql"]],
                    str(database),
                    row["prompt"],
                    options=row["options"],
                )
            )
    return found


def verilog_attacks(folder: Path) -> list[LabelledRow]:
    """Cases of the suite of `verilog` with a bench as VerilogEval writes them."""
    found = []
    for case, options in suite("verilog", folder):
        bench = case.sample.reference.get("testbench", "")
        if "Mismatches: %1d in %1d samples" in bench:
            made = circuit_row(case.id, case.honest, response_text(case.sample), case.sample.reference, options=options)
            found.append(LabelledRow(sample=made.sample, label=made.label, shown={"tries": case.tries}))
    return found


def instruction_attacks(folder: Path) -> list[LabelledRow]:
    """Cases of the suite of `instructions` with the kinds of IFEval alone."""
    found = []
    for case, options in suite("instructions", folder):
        asked = case.sample.reference
        constraints = asked["constraints"] if isinstance(asked, dict) and "constraints" in asked else asked
        if not isinstance(constraints, list) or not {one["kind"] for one in constraints} <= set(IFEVAL) - set(
            WITHOUT_NLTK_DATA
        ):
            continue
        kinds, kwargs = [one["kind"] for one in constraints], [one.get("args", {}) for one in constraints]
        sample = Sample(
            prompt=case.sample.prompt,
            response=case.sample.response,
            reference=asked,
            id=case.id,
            extra={"options": options, "kinds": kinds, "kwargs": kwargs},
        )
        found.append(
            LabelledRow(sample=sample, label=case.honest, shown={"tries": case.tries or re.sub(r"\s+", " ", case.id)})
        )
    return found

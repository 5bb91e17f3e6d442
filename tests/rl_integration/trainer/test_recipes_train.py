"""Every recipe's run file passes the trainer's own check of its rows, and takes a step with a tiny policy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines.scripted import key_of, text_of
from tests.reward_models.generative.forced_engine import ForcedEngine
from tests.reward_models.process.scripted_steps import ScriptedSteps
from tests.rl_integration.trainer.rollouts.chat_policy import chat_policy

from adjudge.cli.recipes import ROWS, recipes, run_file
from adjudge.engines import loading
from adjudge.engines.interface import Logits, Prompt
from adjudge.protocol import Message, Sample
from adjudge.rl_integration.adapters.failures import TooManyFailures
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import _tasks, train_policy_run
from adjudge.rl_integration.trainer.rollouts.facts import TRIAL
from adjudge.runtime.loop import run_blocking
from adjudge.scoring import registry
from adjudge.training.config_file import config_of

RUNS = [name for name, recipe in recipes().items() if "run" in recipe]
ONE_OF_EACH = {"dapo", "ppo", "tree_rl", "stepsearch", "capo", "j1", "ghpo", "mopps", "rlver"}  # the others are `full`


class Model(ForcedEngine):
    """Says yes to all it is asked, in the form of a verdict where one is asked for."""

    def __init__(self) -> None:
        super().__init__(
            lambda prompt, text: (0.5,),
            answers=lambda prompt, index: (
                f"{'Change' if 'feeling' in text_of(prompt) else 'Verdict'} {key_of(prompt)}: "
                f"{'+5' if 'feeling' in text_of(prompt) else 'yes'}"
                if "[end " in text_of(prompt)
                else "yes"
            ),
            labels=lambda prompt: {"Yes": 0.75, "No": 0.25},
        )

    async def classify(self, prompts: Sequence[Prompt]) -> list[Any]:
        return [Logits(values=(0.5,)) for _ in prompts]


def small(name: str, folder: Path) -> RunFile:
    """The run of a recipe, as small as it can be: a new policy, short answers, one step."""
    run: dict[str, Any] = json.loads(json.dumps(run_file(name)))
    run["data"] |= {"path": str(ROWS / f"{recipes()[name]['rows']}.jsonl"), "chat": False, "held_out": 0.0}
    run["data"].pop("system", None)
    asked = (
        json.dumps(run["reward"])
        .replace('"engine": "policy"', '"engine": "openai:Model"')
        .replace('"../models/full"', '"Model"')
        .replace('"passages.jsonl"', json.dumps(str(ROWS / "passages.jsonl")))
    )  # a tiny one says nothing
    run["reward"] = json.loads(asked)
    rollouts = run["rollouts"]
    rollouts |= {"tasks": 2, "sampling": {**rollouts["sampling"], "max_new_tokens": 8}}
    model: Any = {"from_scratch": "tiny"}
    if "user" in rollouts:  # a user answers in a chat
        model = str(folder.with_name("chat"))
        chat_policy().save(Path(model))
        run["data"]["chat"] = True
        rollouts["sampling"]["max_new_tokens"] = 80
    if "reference_model" in run:
        model = str(folder.with_name("model"))
        tiny_policy("abc ", seed=0, width=16, layers=1).save(Path(model))
        run["reference_model"] = [model for _ in run["reference_model"]]
    if "tree" not in rollouts:
        rollouts["num_generations"] = min(4, rollouts["num_generations"])
    for tool in rollouts.get("tools", {}).get("offered", ()):
        if tool["kind"] == "search":
            tool["options"]["documents"] = str(ROWS / "passages.jsonl")
    learning = {**run["learning"], "minibatches": 1, "epochs": 1}
    more = {"model": model, "output": str(folder), "steps": 1, "learning": learning}
    return config_of(RunFile, {**run, **more}, "run.yaml")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ONE_OF_EACH else pytest.mark.full) for name in RUNS]
)
def test_a_run_file_takes_a_step(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, steps = Model(), ScriptedSteps(tmp_path / "steps", lambda text: 0.5)
    monkeypatch.setattr(loading._shelf, "engine", lambda kind, config: steps if "PRM" in config.model else model)
    if name == "deepseek_prover":  # its rows are taken; there is no Lean server
        with pytest.raises(TooManyFailures, match="engine_unavailable"):
            train_policy_run(small(name, tmp_path / "run"))
        return
    report = train_policy_run(small(name, tmp_path / "run"))
    assert report.steps == 1
    assert report.data["trained_on"] == report.data["rows"]


def test_tool_stars_run_can_earn_the_pay_for_several_tools() -> None:
    run = run_file("tool_star")
    named = {tool["kind"] for tool in run["rollouts"]["tools"]["offered"]}
    assert {"search", *registry.describe("tool_star").options["tools"].split("'")[1::2]} == named
    assert all(f"<{name}>" in run["data"]["system"] for name in named)


def test_sem_draws_known_and_unknown_questions_alike() -> None:
    sources = [json.loads(row)["source"] for row in (ROWS / "musique_mmlu.jsonl").read_text().splitlines()]
    weights = run_file("sem")["curriculum"]["set"]["mixture.weights"]
    assert set(sources) == weights.keys()
    assert len(set(weights.values())) == 1


@pytest.mark.parametrize("style", ["chat", "tags"])
@pytest.mark.parametrize("name", [name for name in RUNS if "tools" in recipes()[name]["run"]["rollouts"]])
def test_rows_are_tried_with_turns_where_answers_call_tools(
    name: str, style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading._shelf, "engine", lambda kind, config: Model())
    config = small(name, tmp_path)
    tools = replace(config.rollouts.tools, style=style)  # type: ignore[type-var]
    tasks = _tasks(replace(config, rollouts=replace(config.rollouts, tools=tools)))
    assert len(tasks.train) == tasks.rows >= 3


SAID = {  # what the models of a reward say, with KEY for the key of a prompt
    "atom_searcher": "KEY 1: 9",
    "capo": "Wrong KEY: none",
    "critic_search": "KEY 1: good\nKEY 2: good",
    "igpo": "",
    "r_search": "Answer KEY: Paris",
    "rlsp": "Verdict KEY: 10",
    "sight": "Answer KEY: Paris",
    "tango": "Wrong KEY: none",
}
ASKED = [name for name in RUNS if "system" in run_file(name)["data"]]
PAID = [name for name in ASKED if name in SAID or '"engine"' not in json.dumps(run_file(name)["reward"])]


def answer_of(reference: Any) -> str:
    """A right answer to a row, as a text."""
    if isinstance(reference, dict) and "findings" in reference:
        return "\n".join(f"- {one}" for one in reference["findings"])
    while isinstance(reference, dict | list):
        first = next(iter(reference if isinstance(reference, list) else reference.values()))
        reference = reference.get("answer", first) if isinstance(reference, dict) else first
    return str(reference)


def obedient(system: str, answer: str, *, searches: bool) -> str | list[Message]:
    """An answer in the form that the recipe's system prompt asks for."""
    body = f"\\boxed{{{answer}}}" if "\\boxed{}" in system else answer
    body = f"<answer>{body}</answer>" if "<answer>" in system else body if "few words" in system else f"It is {body}."
    body = f"<decision>{'no' if searches else 'yes'}</decision>{body}" if "<decision>" in system else body
    thought = "<observation>Let me see.</observation>" if "<observation>" in system else "Let me see."
    body = f"<think>{thought}</think>{body}" if "<think>" in system else body
    if not searches:
        return body
    for tag in ("evidence", "original_evidence"):
        body = f"<{tag}>so it is said</{tag}>{body}" if f"<{tag}>" in system else body
    body = f"<judge>No</judge>{body}" if "<judge>" in system else body
    search = {"role": "assistant", "content": "<think>I look it up.</think><search>what is asked</search>"}
    return [search, {"role": "tool", "content": "Doc 1: so it is said."}, {"role": "assistant", "content": body}]


def test_adasearch_asks_for_the_decision_that_it_pays() -> None:
    run = run_file("adasearch")
    rows = [json.loads(line) for line in (ROWS / "boundary.jsonl").read_text().splitlines()]
    assert {(row["kind"], "without a search" in row["prompt"]) for row in rows} == {
        ("answer", False), ("alone", True), ("decide", False),
    }  # fmt: skip
    row = next(row for row in rows if row["kind"] == "decide")
    said = obedient(run["data"]["system"], row["reference"], searches=False)
    sample = Sample(
        prompt=row["prompt"],
        response=[{"role": "assistant", "content": said}],
        reference=row["reference"],
        extra={"kind": "decide", "direct": said},
    )
    (score,) = run_blocking(registry.load(run["reward"]).score([sample]))
    assert score.value == 1.0, score


@pytest.mark.parametrize("name", PAID)
def test_a_right_answer_in_the_form_that_is_asked_for_pays_more_than_a_wrong_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ForcedEngine(
        lambda prompt, text: (0.5,),
        answers=lambda prompt, at: SAID[name].replace("KEY", key_of(prompt) if "KEY" in SAID[name] else ""),
    )
    monkeypatch.setattr(loading._shelf, "engine", lambda kind, config: model)
    run, row = run_file(name), json.loads((ROWS / f"{recipes()[name]['rows']}.jsonl").read_text().splitlines()[0])
    facts = {
        "completion_tokens": 20,
        "progress": 0.5,
        "abstention_rate": 0.1,
        "stale_evals": 0,
        "direct": False,
        "confidence": 0.9,
    }
    samples = [
        Sample(
            prompt=row["prompt"],
            response=obedient(run["data"]["system"], said, searches="tools" in run["rollouts"]),
            reference=row.get("reference"),
            extra={**row, **facts},
            group="g",
            id=str(at),
            finish_reason="stop",
        )
        for at, said in enumerate((answer_of(row["reference"]), "a fish", answer_of(row["reference"])))
    ]
    reward = json.loads(json.dumps(run["reward"]).replace('"engine": "policy"', '"engine": "openai:Model"'))
    scores = run_blocking(registry.load(reward if isinstance(reward, str) else reward["scorer"]).score(samples))
    right, wrong = scores[0].value, scores[1].value
    assert right is not None, scores[0]
    assert wrong is None or right > wrong, scores


@pytest.mark.parametrize(
    ("name", "asked", "said", "value"),
    [
        ("bapo", "<answer>\\boxed{I DON'T KNOW}</answer>", [], 0.5),
        ("salu", "I don't know.", [], 1.0),
        ("reseek", "<judge>Yes</judge> or <judge>No</judge>", ["<judge>No</judge>"], 1.4),
    ],
)
def test_a_prompt_asks_for_what_pays_beside_a_right_answer(
    name: str, asked: str, said: list[str], value: float
) -> None:
    assert asked in run_file(name)["data"]["system"]
    rows = (ROWS / f"{recipes()[name]['rows']}.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(rows[name == "salu"])  # its second row has no answer
    last = "".join(said) + f"<answer>{answer_of(row['reference'])}</answer>" if said else asked
    texts = ("<think>x</think><search>what is asked</search>", "Doc 1: so it is said.", f"<think>x</think>{last}")
    turns = [
        {"role": role, "content": text} for role, text in zip(("assistant", "tool", "assistant"), texts, strict=True)
    ]
    sample = Sample(
        prompt="",
        response=asked if name == "salu" else turns,
        reference=row["reference"],
        group="g",
        id="0",
        extra=dict(TRIAL),
    )
    scores = run_blocking(registry.load(name).score([sample, replace(sample, id="1")]))
    assert scores[0].value == pytest.approx(value), scores[0]

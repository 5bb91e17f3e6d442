"""Every preset loads, and pays what its formula says on one row with a scripted model."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, field_of, key_of, text_of
from tests.reward_models.generative.forced_engine import ForcedEngine

from adjudge.engines.interface import Logits, Prompt
from adjudge.protocol import Sample
from adjudge.scoring import builtin, presets, registry
from adjudge.scoring.builtin import preset_names

SAMPLE = Sample(prompt="Say it.", response="a short response")
PARIS = [
    {"role": "assistant", "content": "<think>Let me look.</think><search>capital</search>"},
    {"role": "tool", "content": "Paris is the capital of France."},
    {"role": "assistant", "content": "<answer>Paris</answer>"},
]
DECIDES = [{"role": "assistant", "content": "<decision>yes</decision>"}]
LONG = "<think>" + "It must be so. " * 10 + "</think>"
CHAIN = {"family": "chain_sum", "entry": {"question": "20 + 22", "answer": "42", "metadata": {}}}
PERSON = {"persona": "a clerk", "background": "your cat died", "goal": "to be heard"}
CITED = {"rubric": ["<E0> is a city"], "answer": "Rome"}
STEPS = "1 = 1.\n\n1 = 2.\n\nSo 2 = 1."
WEATHER = {"calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]}

# A row without a score wants a server, a sandbox, a group or facts; tests of that scorer hold the formula.
# name: (options, what the model says, with KEY for the key of its prompt, fields of the sample, the score)
FIX = {"files": {"a.py": "a\nb\nc\n"}, "edits": [{"path": "a.py", "search": "b", "replace": "x"}]}
EDIT = (
    "<think>\nI think.\n</think>\n"
    "<solution>\n```python\n### a.py\n<<<<<<< SEARCH\nb\n=======\nx\n>>>>>>> REPLACE\n```\n</solution>"
)
PROVED = "So it is proved. <answer>\\boxed{proved}</answer>"
MAT = "the cat sat on the mat"
ROWS: dict[str, tuple[dict[str, Any], str, dict[str, Any], float | None]] = {
    "adasearch": ({}, "",
        {"response": DECIDES, "reference": "Paris", "extra": {"kind": "decide", "direct": True}}, 1.0),
    "agent_debug": ({}, "Wrong KEY: 2", {"response": STEPS}, 0.0),
    "arena_hard": ({}, "[[A=B]]", {"reference": "the other"}, 0.5),
    "atom_searcher": ({}, "",
        {"response": "Paris", "reference": "Paris", "extra": {"progress": 0.5, "tool_spans": []}}, -1.0),
    "bfcl": ({}, "", {"response": '[weather(city="oslo")]', "reference": WEATHER}, 1.0),
    "c_grpo": ({}, "Verdict KEY: yes", {"reference": CITED, "group": "g"}, 0.7),
    "capo": ({}, "Wrong KEY: 2", {"response": STEPS}, 0.0),
    "carr": ({}, "Verdict KEY: yes", {"reference": CITED}, 0.7),
    "compass_verifier": ({}, "[[B]]", {"reference": "4"}, 0.0),
    "creative_writing": ({}, "Verdict KEY: good", {}, 1.0),
    "conciser": ({}, "",
        {"response": "\\boxed{4}", "reference": "4", "group": "g", "extra": {"completion_tokens": 4096}}, 1.75),
    "cos_mos": (
        {"judge": ScriptedEngine(lambda prompt, at: f"Verdict {key_of(prompt)}: 10"), "center": 1.0, "width": 0.5},
        "", {"response": ""}, 0.0),  # the formula: reward_models/process/test_likelihood.py
    "crinn": ({}, "", {"reference": {"entry_point": "f"}}, None),
    "critic_search": ({}, "KEY 1: good\nKEY 2: bad", {"response": PARIS, "reference": "Paris"}, 0.75),
    "deep_theorem": ({}, "", {"response": PROVED, "reference": "proved"}, 1.0),
    "deepseek_prover": ({"url": "http://localhost:9"}, "", {"reference": "theorem a : 1 = 1"}, None),
    "duoguard": ({}, "", {}, 0.5),
    "g_eval": ({"criteria": "care"}, "Look.", {}, 4.0),
    "genrm_cot": ({}, "Verdict KEY: Yes", {}, 0.75),
    "guru": ({}, "", {"response": "<answer>q</answer>", "reference": "Q", "extra": {"kind": "graph_logical"}}, 1.0),
    "healthbench": ({}, "KEY 1: yes", {"reference": [{"text": "a", "points": 5}, {"text": "b", "points": -8}]}, -0.6),
    "huatuo_gpt_o1": ({}, "",
        {"response": "## Thinking\n\nHm.\n\n## Final Response\n\nIt is 4.", "reference": "4"}, 1.0),
    "igpo": ({}, "", {"response": PARIS, "reference": "Paris"}, 1.0),
    "ikea": ({}, "", {"response": PARIS, "reference": "Paris"}, 1.4),
    "in_forage": ({}, "",
        {"response": PARIS, "reference": {"answer": "Paris", "evidence": ["capital of France"]}}, 1.2),
    "internbootcamp": ({}, "",
        {"response": LONG + "<answer>42</answer>", "reference": CHAIN, "extra": {"kind": "reasoning_gym"}}, 1.0),
    "j1_budget": ({}, "<answer>A</answer>", {"reference": "the other"}, 0.5),
    "j1_pair": ({}, "<answer>A</answer>", {"reference": "the other"}, 0.5),
    "j1_score": ({}, "<score>3</score>", {}, 3.0),
    "kimi_k15_length": ({}, "",
        {"response": "\\boxed{4}", "reference": "4", "group": "g", "extra": {"completion_tokens": 9}}, 1.0),
    "leret": ({}, "",
        {"response": PARIS[:2], "reference": {"answer": "Paris", "evidence": ["capital of France", "x"]}}, 0.5),
    "mt_bench": ({}, "Rating: [[7]]", {}, 7.0),
    "mt_bench_pair": ({}, "[[A]]", {"reference": "the other"}, 0.5),
    "mt_r1_zero": ({}, "", {"response": f"<think>hm</think><translate>{MAT}</translate>", "reference": MAT}, 2.0),
    "muldimif": ({}, "",
        {"response": "ok",
         "reference": [{"kind": "no_commas"}, {"kind": "json"}, {"kind": "words", "args": {"min": 1}}]}, 2.0),
    "nuggetizer": ({}, "KEY 1: support\nKEY 2: not_support", {"reference": {"nuggets": ["a", "b"]}}, 0.5),
    "o2_searcher": ({}, "",
        {"response": "<answer>mars\ntin</answer>", "reference": "mars tin", "extra": {"kind": "closed"}}, 1.0),
    "optima": ({}, "",  # what cannot be read has a loss of 1000
        {"response": "", "reference": "Paris", "group": "g", "extra": {"completion_tokens": 9}}, -0.4 + 0.9 / 1000),
    "portool": ({}, "", {"response": PARIS, "reference": "Paris", "group": "g"}, None),
    "processbench": ({}, "Wrong KEY: 2", {"response": STEPS}, 0.0),
    "prometheus": ({"rubric": "care"}, "[RESULT] 4", {}, 4.0),
    "prometheus_pair": ({"rubric": "care"}, "[RESULT] A", {"reference": "the other"}, 0.5),
    "promed": ({}, "", {}, None),
    "r_search": ({}, "Answer KEY: Paris", {"response": PARIS, "reference": "Paris"}, 1.2),
    "raiden_mixed": ({}, "", {"response": "Ron.", "reference": "Ron"}, 0.7),
    "reseek": ({}, "", {"response": PARIS, "reference": "Paris"}, 1.0),
    "rlcf": ({}, "KEY 1: 80", {"reference": [{"text": "a", "kind": "rating"}]}, 0.8),
    "rlpr": ({}, "", {"response": "<think>It is Paris.</think><answer>x</answer>", "reference": "Paris"}, 0.1),
    "rlsp": ({}, "Verdict KEY: 10", {"response": "\\boxed{4}" + " " * 391, "reference": "4"}, 0.8 * 0.8 + 0.2),
    "rlver": ({}, "Change KEY: +5", {"response": "I am sorry that this happened.", "reference": PERSON}, 0.45),
    "rm_r1": ({}, "<answer>[[A]]</answer>", {"reference": "the other"}, 0.0),
    "rubrics_as_rewards": ({}, "KEY 1: yes", {"reference": ["a", {"text": "b", "importance": "pitfall"}]}, 1.0),
    "rubrics_as_rewards_implicit": ({}, "Rating KEY: 7", {"reference": ["a"]}, 0.7),
    "salu": ({}, "",
        {"response": "I don't know", "reference": {"answer": "Paris"}, "extra": {"confidence": 0.5}}, -0.5),
    "search_r1": ({}, "", {"response": PARIS, "reference": "Paris"}, 1.0),
    "self_rewarding": ({}, "Score: 3", {}, 3.0),
    "sem": ({}, "", {"response": PARIS, "reference": "Paris", "extra": {"direct": "Rome"}}, 0.8),
    "stepsearch": ({}, "",
        {"response": PARIS, "reference": {"answer": "Paris", "documents": ["x"], "keywords": [["capital"]]}}, 1.618),
    "swe_rl": ({}, "", {"response": EDIT, "reference": FIX}, 1.0),
    "tool_star": ({}, "", {"response": PARIS, "reference": "Paris"}, 1.0),
    "ttrl": ({}, "", {"response": "\\boxed{4}", "group": "g"}, 1.0),
    "ufo": ({}, "", {"response": [
        {"role": "assistant", "content": "\\boxed{3}"},
        {"role": "user", "content": "Incorrect."},
        {"role": "assistant", "content": "\\boxed{4}"},
    ], "reference": "4"}, 0.5),
    "verif": ({}, "KEY 1: no", {"reference": ["a"]}, 0.0),
    "zyn": ({"questions": ["is it?"]}, "", {}, 0.75),
    "zyn_reward": ({"questions": ["is it?"]}, "", {}, 2.5),
}  # fmt: skip


class Model(ForcedEngine):
    """Says one text to each prompt; Yes has the probability 3/4, every label "4" and each forced token 1/2."""

    def __init__(self, said: str) -> None:
        super().__init__(
            lambda prompt, text: (0.5,),
            answers=lambda prompt, index: (
                said.replace("KEY", key_of(prompt) if "KEY" in said else "")
                if "statements" not in text_of(prompt) or not field_of(prompt, "statements")
                else json.dumps({"E0": None, "key": key_of(prompt)})
            ),
            labels=lambda prompt: {"Yes": 0.75, "No": 0.25, "4": 1.0, "same": 0.45, "different": 0.55},
        )

    async def classify(self, prompts: Sequence[Prompt]) -> list[Any]:
        return [Logits(values=(0.0,) * 12) for _ in prompts]


def test_every_preset_has_a_row() -> None:
    assert set(ROWS) == set(preset_names())


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_pays_its_formula(name: str) -> None:
    options, said, fields, value = ROWS[name]
    listing = registry.describe(name)
    assert not listing.problem
    assert listing.source
    assert listing.home == f"adjudge.scoring.presets:{name}"
    if "engine" in listing.options:
        options = {**options, "engine": Model(said)}
    scorer = registry.load({name: options} if options else name)
    (score,) = asyncio.run(scorer.score([replace(SAMPLE, **fields)]))
    assert score.value == pytest.approx(value), score


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("atom_searcher", "start", 0.5),
        ("critic_search", "share", 0.25),
        ("promed", "temperature", 2.0),
        ("promed", "permutations", 50),
        ("reseek", "max_paid", 4),
        ("reseek", "many_value", 0.25),
        ("stepsearch", "key_weight", 0.618),
    ],
)
def test_published_numbers_that_its_row_may_not_need(name: str, option: str, value: float) -> None:
    assert registry.describe(name).options[option] == repr(value)


@pytest.mark.parametrize(
    ("ends", "characters", "grade", "value"),
    [
        ("\\boxed{4}", 400, 10, 0.8 * (1 - 0.2) + 0.2),
        ("\\boxed{5}", 400, 10, 0.8 * (0 - 0.2) + 0.2),
        ("\\boxed{5}", 400, 1, 0.8 * (0 - 0.2)),
        ("\\boxed{5}", 4000, 1, 0.8 * (0 - 0.02)),
        ("It is 4.", 400, 10, 0.8 * (-0.5 - 0.2) + 0.2),
        ("\\boxed{4}", 9, 1, 0.8 * (1 - 1)),
    ],
)
def test_rlsp_pays_for_effort_whatever_the_answer(ends: str, characters: int, grade: int, value: float) -> None:
    engine = Model(f"Verdict KEY: {grade}")
    response = "x y" * ((characters - len(ends)) // 3) + " " * ((characters - len(ends)) % 3) + ends
    sample = replace(SAMPLE, response=response, reference="4")
    (score,) = asyncio.run(registry.load({"rlsp": {"engine": engine}}).score([sample]))
    assert score.value == pytest.approx(value), score


def test_options_override_those_of_a_preset() -> None:
    engine = Model("Rating: [[7]]")
    (score,) = asyncio.run(registry.load({"mt_bench": {"engine": engine, "output": "unit"}}).score([SAMPLE]))
    assert score.value == pytest.approx(6 / 9)
    assert score.provenance.scorer == "mt_bench"
    given = {"rubric": {"engine": engine, "combine": "points", "per_call": 1, "unsure": "worst"}}
    assert (
        registry.load({"healthbench": {"engine": engine, "unsure": "worst"}}).fingerprint
        == registry.load(given).fingerprint
    )
    assert presets.preset("healthbench")(engine=engine, unsure="worst").fingerprint == registry.load(given).fingerprint
    kinds: Any = registry.load({"internbootcamp": {"grid": "exact"}})
    assert set(kinds.scorers) == {"reasoning_gym", "puzzle", "grid"}


def test_defaults_are_no_options_in_a_fingerprint_of_its_own_name() -> None:
    engine = Model("")
    plain = registry.load({"mt_bench": {"engine": engine}}).fingerprint
    assert registry.load({"mt_bench": {"engine": engine, "output": "scale"}}).fingerprint == plain
    assert registry.load({"mt_bench": {"engine": engine, "output": "unit"}}).fingerprint != plain


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"mt_bench": {"engine": "openai:m", "outptu": "unit"}}, r"no option 'outptu'.*did you mean 'output'"),
        ("mt_bench", r"'mt_bench' needs the option 'engine'"),
        ({"arena_hard": {"engine": "openai:m", "labels": ["A"]}}, r"labels=\('A',\); it must be a mapping"),
        ({"g_eval": {"engine": "openai:m", "samples": 0}}, r"samples=0; it must be a whole number, at least 1"),
        ("mt_bnech", r"unknown scorer 'mt_bnech'.*did you mean 'mt_bench'"),
        ({"healthbench": {"engine": "openai:m", "combin": "mean"}}, r"rubric has no option 'combin'"),
        ({"healthbench": ["a"]}, r"'healthbench' takes a mapping of options"),
        ({"rlpr": {"weight": 1}}, r"rlpr has no option 'weight'; its options are: engine"),
        ("rlpr", r"rlpr needs the option 'engine'"),
    ],
)
def test_mistakes_are_told_with_the_remedy(spec: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        registry.load(spec)


def test_a_preset_can_be_pickled() -> None:
    judge = presets.preset("arena_hard")(engine="openai:model")
    assert pickle.loads(pickle.dumps(judge)) == judge
    assert registry.resolve("adjudge.scoring.presets:arena_hard") is presets.preset("arena_hard")


def test_what_is_listed_of_a_preset() -> None:
    listing = registry.describe("healthbench")
    assert listing.options["combine"] == "'points'"
    assert listing.options["isolation"] == "'bubblewrap'"
    assert listing.source == "HealthBench (arXiv 2505.08775)"
    assert set(registry.describe("zyn_reward").options) == {"engine", "questions"}
    assert registry.describe("guru").options == {}
    assert registry.describe("rubric").source == ""


def test_a_malformed_file_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd.yaml").write_text("description: Odd.\nscorer: {exact: {}}\n")
    monkeypatch.setattr(builtin, "PRESETS", tmp_path)
    with pytest.raises(ValueError, match="the preset 'odd' must have description, scorer, source"):
        presets.preset("odd")
    (tmp_path / "bare.yaml").write_text("description: x\nsource: y\nscorer: exact\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the scorer of the preset 'bare' is 'exact'; write a mapping of one name"):
        presets.preset("bare")


def test_a_preset_may_be_a_list_of_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = "weighted: [{scorer: exact, weight: 2.0}, {scorer: length}]"
    (tmp_path / "listed.yaml").write_text(f"description: x\nsource: y\nscorer: {{{parts}}}\n", encoding="utf-8")
    monkeypatch.setattr(builtin, "PRESETS", tmp_path)
    made = presets.preset("listed")
    assert not inspect.signature(made).parameters
    loader = SimpleNamespace(scorer=lambda spec: spec)
    assert made.from_spec(None, loader) == {"weighted": [{"scorer": "exact", "weight": 2.0}, {"scorer": "length"}]}
    with pytest.raises(ValueError, match="listed has no option 'parts'"):
        made.from_spec({"parts": []}, loader)


def test_a_name_whose_numbers_are_not_its_papers_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    registry._tell.cache_clear()
    for _ in range(2):
        registry.load("sem")
        registry.load({"sem": {"values": {"right": 2.0}}})
    registry.load({"weighted": [{"scorer": "salu", "weight": 1.0}]})
    registry.load("stepsearch")
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "sem: its numbers are ours; the paper publishes their order",
        "salu: its numbers are ours; the paper publishes their order",
    ]
    assert "Its numbers are ours" in str(inspect.getdoc(registry.resolve("sem")))

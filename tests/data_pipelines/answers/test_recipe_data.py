"""The commands of recipes that make data with a model, run as the recipes have them; a script is the model."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from examples.training import exemplars, judge_tasks, merge, principle_game, retrieved, trace_back
from tests.engines.scripted import Said, ScriptedEngine, field_of, key_of, text_of
from tests.engines.tiny_models import write_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from adjudge.cli import main
from adjudge.cli.recipes import recipes
from adjudge.data_pipelines.answers import sampling
from adjudge.engines.interface import Prompt
from adjudge.protocol import Sample, Score
from adjudge.scoring import registry

Rows = list[dict[str, Any]]


class Ends:
    """Pays what ends with the reference, and where there is none, what is long."""

    name, fingerprint = "ends", "ends:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [
            Score.scored(float(str(one.response).endswith(f"\n{one.reference}")))
            if one.reference is not None
            else Score.scored(float(len(str(one.response)) > 10))
            for one in samples
        ]


ENDS = Ends()


def run_data(
    recipe: str, rows: Sequence[Mapping[str, Any]], say: Callable[[Prompt, int], Said], monkeypatch: pytest.MonkeyPatch
) -> ScriptedEngine:
    """Run the recipe's commands that make data, in the current folder, with a scorer that needs no model."""
    engine = ScriptedEngine(say)
    monkeypatch.setattr(sampling, "engine_named", lambda text: engine)
    first = True
    for step in recipes()[recipe]["steps"]:
        words = shlex.split(step, comments=True)
        if words[1] not in ("data", "label"):
            continue
        if first:
            given = words[2 if words[1] == "label" else 3]
            Path(given).write_text("".join(json.dumps(row) + "\n" for row in rows))
            first = False
        if "--scorer" in words and "model" in words[words.index("--scorer") + 1].lower():
            words[words.index("--scorer") + 1] = f"{__name__}:ENDS"
        assert main.main(words[1:]) == 0, step
    return engine


def lines(name: str) -> Rows:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_answer_to_a_noised_prompt_is_the_worse_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def say(prompt: Prompt, index: int) -> str:
        asked = field_of(prompt, "question")
        return f"not {asked}" if asked else f"answer to: {text_of(prompt)}"

    run_data("j1", [{"prompt": "Name a prime."}, {"prompt": "Spell cat."}], say, monkeypatch)
    made = lines("pairs.jsonl")
    assert [(row["prompt"], row["chosen"], row["rejected"]) for row in made] == [
        (one, f"answer to: {one}", f"answer to: not {one}") for one in ("Name a prime.", "Spell cat.")
    ]
    judge_tasks.main("pairs.jsonl", "data.jsonl")
    tasks = lines("data.jsonl")
    assert [(one["reference"], one["order"]) for one in tasks] == [
        ("A", "given"), ("B", "swapped"), ("B", "given"), ("A", "swapped"),
    ]  # fmt: skip
    assert all("answer to: not" in str(one["prompt"]) for one in tasks)


def strategy(prompt: Prompt) -> str:
    told = {
        "have not tried": "explore",
        "each step": "verify",
        "putting that right": "correct",
        "Go back": "backtrack",
        "never that you": "told",
    }
    return next((name for words, name in told.items() if words in text_of(prompt)), "chain")


def test_a_chain_goes_on_by_strategies_until_its_conclusion_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"question": f"q{need}.{at}", "answer": str(need)} for need in range(4) for at in range(12)]

    def say(prompt: Prompt, index: int) -> str:
        """Conclude with the round that it is, so that a question needs as many further rounds as its answer says."""
        if chain := field_of(prompt, "chain"):
            return f"## Thinking\n\n{chain}\n\n## Final Response\n\ndone"
        at = field_of(prompt, "reference") or len([one for one in ("earlier", "previous") if field_of(prompt, one)])
        return f"### {strategy(prompt)}\n## Conclusion\n\n{at}"

    engine = run_data("huatuo_gpt_o1", rows, say, monkeypatch)
    kept = lines("kept.jsonl")
    assert [row["question"] for row in kept] == [row["question"] for row in rows]
    rounds = {need: [row["chain"].count("### ") for row in kept if row["answer"] == str(need)] for need in range(4)}
    assert rounds == {0: [1] * 12, 1: [2] * 12, 2: [3] * 12, 3: [4] * 12}
    assert kept[-1]["response"].startswith("## Thinking\n\n### chain\n## Conclusion\n\n0\n\n### ")
    second = [strategy(one) for one in engine.asked if field_of(one, "previous") and not field_of(one, "earlier")]
    third = [strategy(one) for one in engine.asked if field_of(one, "earlier")]
    assert (len(second), set(second)) == (36, {"explore", "verify", "correct"})
    assert (len(third), set(third)) == (36, {"explore", "verify", "correct", "backtrack", "told"})
    assert third.count("told") == 12


def test_debaters_a_judge_and_a_reflector_make_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    def say(prompt: Prompt, index: int) -> str:
        if judgement := field_of(prompt, "judgement"):
            return {"0": " Good\n", "1": "Bad", "2": "I cannot say."}[judgement[-1]]
        if text := field_of(prompt, "response"):
            whole = all(field_of(prompt, name) for name in ("positive", "negative")) or "sentence" in text_of(prompt)
            return f"seen {text[-1]}" if whole else ""
        return f"text {index % 3}"

    run_data("creative_writing", [{"prompt": "A greeting."}], say, monkeypatch)
    pairs = lines("pairs.jsonl")
    assert {(row["prompt"], row["chosen"], row["rejected"]) for row in pairs} == {("A greeting.", "text 0", "text 1")}


def test_a_game_of_prompts_writes_the_judge_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Good texts name a boat, which the detector looks for once its list says so; the reflector tells it."""
    texts = [
        (f"greet {one}", text, good) for one in "ABCD" for text, good in (("Our boat waits.", True), ("Hi.", False))
    ]
    rows: Rows = [{"prompt": prompt, "response": text, "good": good} for prompt, text, good in texts]
    Path("labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def say(prompt: Prompt, index: int) -> str:
        if field_of(prompt, "strategies"):
            return "All the best."
        if field_of(prompt, "mistakes"):
            return "look for a boat"
        if advice := field_of(prompt, "advice"):
            return json.dumps([advice.splitlines()[0]])
        blind = "look for a boat" not in field_of(prompt, "principles")
        return f"Verdict {key_of(prompt)}: {'good' if blind or 'boat' in field_of(prompt, 'response') else 'bad'}"

    engine = ScriptedEngine(say)
    monkeypatch.setattr(principle_game, "engine_named", lambda text: engine)
    principle_game.main("labelled.jsonl", "judge.yaml", "openai:MODEL")
    spec = yaml.safe_load(Path("judge.yaml").read_text())
    assert spec == {"principles": {"engine": "openai:MODEL", "principles": ["look for a boat"]}}
    spec["principles"]["engine"] = engine
    judged = [Sample(prompt=row["prompt"], response=row["response"]) for row in rows[:2]]
    assert [score.value for score in asyncio.run(registry.load(spec).score(judged))] == [1.0, 0.0]


def test_variants_that_fool_the_guard_teach_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four variants of a safe seed, the guard takes a short one for unsafe, and one is no longer safe."""
    texts = ["a long and safe one", "short", "another long one", "changed"]

    def say(prompt: Prompt, index: int) -> str:
        said = field_of(prompt, "response")
        return str(int(said != "changed")) if said else texts[index % 4]

    run_data("duoguard", [{"prompt": "Write a message.", "label": 1}], say, monkeypatch)
    pairs = lines("pairs.jsonl")
    assert {(row["chosen"], row["rejected"]) for row in pairs} == {("short", texts[0]), ("short", texts[2])}
    assert {row["margin"] for row in pairs} == {1.0}
    assert all(row["kept"] == "1" and row["label"] == 1 for row in lines("kept.jsonl"))


def test_a_judge_that_was_wrong_thinks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer shown is always taken, and where it is wrong, the other one in the second thought."""
    pairs = [{"prompt": f"Name {one}.", "chosen": one, "rejected": "no"} for one in ("a prime", "a cat")]
    Path("pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs))
    judge_tasks.main("pairs.jsonl", "given.jsonl")
    tasks = lines("given.jsonl")

    def say(prompt: Prompt, index: int) -> str:
        return f"Hm.\n<answer>{'B' if 'That verdict is wrong' in text_of(prompt) else 'A'}</answer>"

    engine = run_data("j1_7b", tasks, say, monkeypatch)
    first, second = "Hm.\n<answer>A</answer>", "Hm.\n<answer>B</answer>"
    assert [row["response"] for row in lines("kept.jsonl")] == [
        first if task["reference"] == "A" else f"{first}\n\n{second}" for task in tasks
    ]
    reward = registry.load(recipes()["j1_7b"]["run"]["reward"]["scorer"])
    for row in lines("kept.jsonl"):
        (score,) = asyncio.run(reward.score([Sample(prompt="", response=row["response"], reference=row["reference"])]))
        assert score.value == 1.0, "what it is tuned to write pays in the run that follows"
    again = [one for one in engine.asked if "That verdict is wrong" in text_of(one)]
    assert len(again) == 2
    for one in again:
        assert not isinstance(one, str)
        *asked, answer, user = one
        assert asked in [task["prompt"] for task in tasks], "its own turns, in their roles"
        assert answer == {"role": "assistant", "content": first}
        assert user["role"] == "user"


def test_problems_of_weaknesses_are_voted_on_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two prompts are weak, asked four times in each of two rounds; each makes four problems, 6 of 8 answers right."""
    answers = [
        {"prompt": prompt, "reference": "6", "round": number, "response": f"\\boxed{{{6 if prompt == 'known' else 5}}}"}
        for number in range(2)
        for prompt in ("weak 1", "known", "weak 2")
        for _ in range(4)
    ]
    answers.sort(key=lambda row: str(row["prompt"]))

    def say(prompt: Prompt, index: int) -> str:
        asked = text_of(prompt)
        if asked.startswith("Name the concepts"):
            return asked.split()[-1]
        if asked.startswith("Write a new problem"):
            return f"{asked.split()[-1]}{index} and no more?"
        return f"\\boxed{{{asked.split()[0] if index < 6 else 77}}}"

    engine = run_data("sws", answers, say, monkeypatch)
    assert sum(text_of(one).startswith("Name the concepts") for one in engine.asked) == 2
    made = lines("data.jsonl")
    assert len(made) == 8
    assert {row["evidence"]["reference"] for row in made} == {f"{one}{at}" for one in (1, 2) for at in range(4)}


def average_precision(titles: Sequence[str], gold: Sequence[str]) -> float:
    """AP_Metric of custom_metrics.py, sher222/LeReT at ab4ce03."""
    ranks = [at for at, title in enumerate(titles, 1) if title in gold]
    return sum(seen / at for seen, at in enumerate(ranks, 1)) / len(gold)


def test_queries_that_find_more_win_over_those_of_the_next_level(monkeypatch: pytest.MonkeyPatch) -> None:
    gold = ["Dune", "Frank Herbert"]
    texts = {"Dune": "a novel", "Frank Herbert": "an author of Tacoma", "Sand": "a grain", "Tin": "a metal"}
    Path("passages.jsonl").write_text(
        "".join(json.dumps({"title": title, "text": text}) + "\n" for title, text in texts.items())
    )
    asked = {"id": "q", "question": "Who wrote it?", "prompt": "Query: who wrote it?"}
    row = {**asked, "reference": {"answer": "Herbert", "evidence": gold}}
    found = {
        "dune novel author tacoma": ["Frank Herbert", "Dune"],
        "novel": ["Dune"],
        "metal": ["Tin"],
        "grain": ["Sand"],
    }
    monkeypatch.setattr(sampling, "engine_named", lambda text: ScriptedEngine(lambda prompt, at: [*found][at % 4]))
    Path("questions.jsonl").write_text(json.dumps(row) + "\n")
    steps = [shlex.split(step, comments=True) for step in recipes()["leret"]["steps"]]
    for number in range(2):
        sample = [
            *steps[0][1:3],
            "questions.jsonl",
            f"queries_{number}.jsonl",
            *steps[0][5:-1],
            f"{number} {{{{question}}}}",
        ]
        assert main.main(sample) == 0
    retrieved.main("passages.jsonl", "searched.jsonl", "queries_0.jsonl", "queries_1.jsonl")
    for words in steps[2:]:
        if words[:2] in (["adjudge", "label"], ["adjudge", "data"]):
            assert main.main(words[1:]) == 0, words
    worth = {query: average_precision(titles, gold) for query, titles in found.items()}
    assert {row["input"]["response"]: row["value"] for row in lines("scores.jsonl")} == pytest.approx(worth)
    best, middle, *least = found
    assert [row["input"]["response"] for row in lines("best.jsonl")] == [best]
    assert {(row["prompt"], row["chosen"], row["rejected"]) for row in lines("pairs.jsonl")} == {
        (asked["prompt"], *pair) for pair in [(best, middle), (middle, least[0]), (middle, least[1])]
    }


def test_a_prompt_shows_earlier_programs_that_are_right_with_their_speed(tmp_path: Path) -> None:
    """Of three that are right, of which one is 64 times as fast as the others, that one is nearly always shown."""
    values = [0.5, 32.0, 0.0, None, 0.5]
    rows = [
        {"prompt": f"task {task}", "response": f"program {at}", "reference": {"of": task}, "value": value}
        for task in range(100)
        for at, value in enumerate(values)
    ]
    Path("scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    exemplars.main("scores.jsonl", "data.jsonl")
    made = lines("data.jsonl")
    assert [row["reference"] for row in made] == [{"of": task} for task in range(100)]
    both = {"0": 0, "4": 0}
    for task, row in enumerate(made):
        asked, *told = row["prompt"].split("\n\n")
        assert asked == f"task {task}"
        assert not {"program 2", "program 3"} & set(told)
        if told[1::2][1:] == ["program 1"]:
            assert told[0::2][1] == "An earlier program, 32 times as fast as the baseline:"
            both[told[1][-1]] += 1
    assert sum(both.values()) > 95
    assert min(both.values()) > 25


def test_a_prover_answers_a_question_by_way_of_a_theorem(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"State": "There is a sum.", "Write": "theorem t : ∃ x, x = 1 + 1", "Answer": "x = 2", "Which": "\\boxed{2}"}
    engine = run_data(
        "nl_fl",
        [{"question": "1 + 1?", "answer": "2"}],
        lambda prompt, index: said[text_of(prompt).split()[0]],
        monkeypatch,
    )
    _, second, third, last = map(text_of, engine.asked)
    assert second.endswith("There is a sum.")
    assert "1 + 1?" in third
    assert "1 + 1?" in last
    assert "theorem t" in third
    assert last.endswith("x = 2")
    assert [row["value"] for row in lines("scores.jsonl")] == [1.0]


def test_the_shortest_right_answer_is_learnt_and_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a prompt with both, one with right ones alone, one whose right one is the longest, and one without any."""
    texts = {
        "both": ["It is \\boxed{2}.", "Let me see; they make it \\boxed{2}.", "It may be, at some length, \\boxed{3}."],
        "all": ["\\boxed{2}", "Two: \\boxed{2}", "I count: one, two, \\boxed{2}"],
        "late": ["\\boxed{3}", "Four: \\boxed{4}", "I count with care: \\boxed{2}"],
        "none": ["\\boxed{3}", "Four: \\boxed{4}", "It is, at length, \\boxed{5}"],
    }
    rows = [{"question": name, "answer": "2"} for name in texts]
    run_data("kimi_long2short", rows, lambda prompt, index: texts[text_of(prompt)][index % 3], monkeypatch)
    learnt = {"both": 0, "all": 0, "late": 2}
    kept = {(row["input"]["question"], row["input"]["response"]) for row in lines("kept.jsonl")}
    assert kept == {(name, texts[name][at]) for name, at in learnt.items()}
    pairs = {row["prompt"]: (row["chosen"], row["rejected"]) for row in lines("pairs.jsonl")}
    rejected = {"both": 2, "all": 2, "late": 1}
    assert pairs == {name: (texts[name][at], texts[name][rejected[name]]) for name, at in learnt.items()}


def test_a_long_and_a_short_model_are_merged_into_their_mean(tmp_path: Path) -> None:
    homes = [str(write_model(tmp_path / name, seed=seed)) for seed, name in enumerate(("long", "short"))]
    merge.main("merged", *homes)
    *both, mean = (AutoModelForCausalLM.from_pretrained(home).state_dict() for home in (*homes, "merged"))
    assert list(mean) == list(both[0])
    for name, value in mean.items():
        torch.testing.assert_close(value, (both[0][name] + both[1][name]) / 2)
    assert any(not torch.equal(both[0][name], both[1][name]) for name in mean)
    first, again = (AutoTokenizer.from_pretrained(home)("a b").input_ids for home in (homes[0], "merged"))
    assert first == again


class Stated:
    """Pays what a design says that it passes."""

    name, fingerprint = "stated", "stated:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.scored(float(str(one.response).split()[-1]), error="no module") for one in samples]


STATED = Stated()


def test_a_design_that_was_repaired_has_the_mean_score_of_its_repairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 0.1 come 0.5 and 0, of that 0.3 and 0.5, which is 0.4: so 0.1 is worth 0.45."""
    said = {
        "": ["a 0.1", "b 0.0", "c 0.95", "d 0.6", *["e 0.9"] * 6],
        "a": ["aa 0.5", "ab 0.0"],
        "ab": ["aba 0.3", "abb 0.5"],
    }
    shown: list[str] = []

    def say(prompt: Prompt, index: int) -> str:
        name = field_of(prompt, "response").partition(" ")[0]
        if name:
            shown.append(name)
            assert "[begin evidence.error" in text_of(prompt)
        texts = said.get(name, ["z 0.0"])
        return texts[index % len(texts)]

    engine = ScriptedEngine(say)
    monkeypatch.setattr(sampling, "engine_named", lambda text: engine)
    Path("designs.jsonl").write_text(json.dumps({"prompt": "An adder."}) + "\n")
    scorer = "'{verilog: {credit: fraction}}'"
    for step in recipes()["veri_rl"]["steps"][:-1]:
        words = shlex.split(step.replace(scorer, f"{__name__}:STATED"), comments=True)
        if words[0] == "python":
            trace_back.main(*words[2:])
        else:
            assert main.main(words[1:]) == 0, step
    assert sorted(set(shown)) == ["a", "ab", "b", "z"], "those below 0.2, and twice at most"
    traced = {row["input"]["response"]: row["value"] for row in lines("traced.jsonl")}
    assert traced == {"a 0.1": pytest.approx(0.45), "b 0.0": 0.0, "c 0.95": 0.95, "d 0.6": 0.6, "e 0.9": 0.9}
    pairs = {(row["prompt"], row["chosen"], row["rejected"]) for row in lines("pairs.jsonl")}
    assert pairs == {("An adder.", "c 0.95", "a 0.1"), ("An adder.", "e 0.9", "a 0.1")}


def test_a_guide_ends_what_the_policy_began(monkeypatch: pytest.MonkeyPatch) -> None:
    def say(prompt: Prompt, index: int) -> str:
        if "begins like this" in text_of(prompt):
            return "so \\boxed{2}"
        return f"First I count.\nThen I add.\nIt is \\boxed{{{2 + index % 2}}}."

    engine = run_data("rlgf_imitation", [{"question": "1 + 1?", "answer": "2"}], say, monkeypatch)
    made = lines("data.jsonl")
    assert made
    assert all(row["begun"] and row["demonstration"] == "so \\boxed{2}" and row["question"] for row in made)
    asked = [text_of(one) for one in engine.asked if "begins like this" in text_of(one)]
    assert all("1 + 1?" in one and "First I count." in one for one in asked)


def test_a_prover_learns_proofs_that_hold_and_are_neither_too_likely_nor_too_odd() -> None:
    """The two filters as the recipe has them; the likelihood that is labelled between them is written by hand."""
    likely = {"holds": -1.0, "fails": -1.0, "obvious": -0.01, "odd": -5.0}
    rows = [{"prompt": "t", "response": name, "outcome": float(name != "fails")} for name in likely]
    Path("proofs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = [shlex.split(one) for one in recipes()["bfs_prover"]["steps"] if "data filter" in one]
    assert main.main(first[1:]) == 0
    labelled = [{**row, "value": likely[row["response"]]} for row in lines("proven.jsonl")]
    Path("likely.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labelled))
    assert main.main(second[1:]) == 0
    assert [row["response"] for row in lines("kept.jsonl")] == ["holds"]

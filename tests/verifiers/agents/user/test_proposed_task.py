"""A proposer is paid for tasks at which a solver fails, and for none that nobody can solve."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples.training import rating_rows
from tests.engines.scripted import ScriptedEngine, key_of, text_of

from adjudge import check_scorer, load
from adjudge.cli.recipes import ROWS, recipes
from adjudge.engines.interface import Fault
from adjudge.protocol import Sample, Score
from adjudge.verifiers.agents.user.proposed_task import HOW, ProposedTask

TASK = "<question>What is 2 + 2?</question>"


def solver(*answers: Any) -> ScriptedEngine:
    return ScriptedEngine(lambda prompt, index: answers[index % len(answers)])


def paid(response: Any, engine: ScriptedEngine, reference: Any = "4", **options: Any) -> Score:
    scorer = ProposedTask(engine=engine, scorer=load("exact"), **options)
    return asyncio.run(scorer.score([Sample(prompt="Write a task.", response=response, reference=reference)]))[0]


def searched(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("assistant", "tool")[at % 2], "content": text} for at, text in enumerate(texts)]


@pytest.mark.parametrize("right", range(5))
def test_the_value_is_the_share_of_answers_that_are_wrong(right: int) -> None:
    engine = solver(*["4"] * right, *["5"] * (4 - right))
    found = paid(TASK, engine, system="Say a number.")
    assert found.value == pytest.approx(1 - sum(at < right for at in range(4)) / 4)
    assert found.evidence["solved"] == right / 4
    assert text_of(engine.asked[0]) == "Say a number.\nWhat is 2 + 2?", "the proposer's instruction is not shown"
    assert found.cost.completion_tokens == 4


def test_what_the_proposer_states_takes_the_place_of_the_reference() -> None:
    stated = f"{TASK}<answer>5</answer>"
    assert paid(stated, solver("5"), reference=None, stated=True).value == 0
    assert paid(stated, solver("4"), stated=True).value == 1
    assert paid(TASK, solver("4"), stated=True).reason == "bad_format"
    assert paid("<think>Hard.</think>What is 2 + 2?", solver("5"), tag="").value == 1
    assert paid("<think>What is 2 + 2?", solver("5"), tag="").reason == "bad_format"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("What is 2 + 2?", "bad_format"),
        ("<question> </question>", "bad_format"),
        (TASK + "<question>And 3 + 3?</question>", "bad_format"),
        (f"<think>{TASK}</think>", "bad_format"),
        (f"<information>4</information>{TASK}", "tampering"),
    ],
)
def test_a_response_without_one_task_gets_nothing_and_nobody_is_asked(response: str, reason: str) -> None:
    engine = solver("5")
    found = paid(response, engine)
    assert (found.value, found.reason, engine.asked) == (0.0, reason, [])


def test_a_task_that_cannot_be_solved_with_what_was_found_pays_nothing() -> None:
    reader = ScriptedEngine(lambda prompt, index: "4" if "two and two is four" in text_of(prompt) else "5")
    found = searched("<search>sums</search>", "two and two is four", TASK)
    assert paid(found, reader, documents=True).value == 1
    useless = paid(searched("<search>sums</search>", "bananas", TASK), reader, documents=True)
    assert (useless.value, useless.reason) == (0.0, "wrong")
    assert paid(TASK, reader, documents=True).reason == "bad_format"
    claimed = searched(f"two and two is four {TASK}")
    assert paid(claimed, reader, documents=True).value == 0, "its own words are not a result"
    known = paid(found, solver("4"), documents=True)
    assert (known.value, known.reason) == (0.0, ""), "confirmed, and too easy"


def finder(says: Callable[[Any, str], Any]) -> ScriptedEngine:
    """A solver of whom a test says what follows what it has found so far."""

    def say(prompt: Any, index: int) -> Any:
        return says(index, "".join(one["content"] for one in prompt[2:]))

    return ScriptedEngine(say)


def test_a_solver_who_searches_reads_what_is_found_and_goes_on(tmp_path: Path) -> None:
    """Each answer searches for itself, and as often as it may; the check is not searched for."""
    file = tmp_path / "passages.jsonl"
    texts = [{"text": "two and two is four", "title": "sums"}, {"text": "apples grow on trees"}]
    file.write_text("".join(json.dumps(text) + "\n" for text in texts))
    options: dict[str, Any] = {
        "n": 2,
        "search": {"documents": str(file), "count": 1, "numbered": True},
        "system": "Say a number.",
    }

    def says(index: int, found: str) -> str:
        if "four" in found:
            return "4"
        return "Hm. <search>two and two" if index % 2 == 0 or "trees" in found else "<search>apples"

    engine = finder(says)
    assert paid(TASK, engine, **options).value == 0
    first, *_ = engine.asked
    assert text_of(first) == f"Say a number. {HOW}\nWhat is 2 + 2?"
    assert list(engine.asked[1])[2:] == [
        {"role": "assistant", "content": "Hm. <search>two and two</search>"},
        {"role": "tool", "content": 'Doc 1(Title: "sums") two and two is four'},
    ]
    assert all(sampling.stop == ("</search>",) for sampling in engine.samplings)
    seeds = [sampling.seed for sampling in engine.samplings]
    assert len(set(seeds)) == len(seeds)
    assert paid(TASK, finder(says), **options, max_searches=1).value == 0.5, "the second answer needs two searches"
    shown = searched("<search>sums</search>", "two and two is four", TASK)
    checked = ScriptedEngine(lambda prompt, index: "4" if "two is four" in text_of(prompt) else "<search>two and two")
    assert paid(shown, checked, **options, documents=True).value == 0
    assert "search" not in text_of(checked.asked[0])
    full = Fault(reason="engine_error", detail="long", too_long=True)
    assert paid(TASK, finder(lambda index, found: full if found else "<search>apples"), **options).value == 1
    with pytest.raises(ValueError, match="cannot be read"):
        paid(TASK, engine, search={"documents": str(tmp_path / "none.jsonl")})
    with pytest.raises(ValueError, match="document"):
        paid(TASK, engine, search={"document": str(file)})
    told = [ProposedTask(engine=engine, scorer=load("exact"), **options).fingerprint for _ in range(2)]
    moved = file.rename(tmp_path / "moved.jsonl")
    options["search"] = {"documents": str(moved), "count": 1, "numbered": True}
    told.append(ProposedTask(engine=engine, scorer=load("exact"), **options).fingerprint)
    moved.write_text('{"text": "two and two is five"}\n')
    told.append(ProposedTask(engine=engine, scorer=load("exact"), **options).fingerprint)
    assert [one == told[0] for one in told] == [True, True, True, False], "the texts count, and not where they lie"


def test_without_an_answer_nobody_knows() -> None:
    gone = Fault(reason="engine_unavailable", detail="gone")
    assert paid(TASK, solver(gone)).status == "failed"
    assert paid(TASK, solver(Fault(reason="engine_error", detail="long", too_long=True))).value == 0
    assert paid(TASK, solver("4"), reference=None).reason == "part_failed"
    with pytest.raises(ValueError, match="set a temperature"):
        paid(TASK, solver("4"), temperature=0.0)


def test_it_is_a_scorer() -> None:
    given = {"proposed_task": {"engine": solver("4", "5"), "scorer": "exact"}}
    samples = [Sample(prompt="Write a task.", response=text, reference="4") for text in (TASK, "", "<question>")]
    check_scorer(load(given), samples).raise_for_failures()


def test_a_policy_that_proposes_solves_and_judges_is_rated_in_all_three_parts(tmp_path: Path) -> None:
    """Multi-Agent Evolve's run: a word is an answer, and the question is hard where the solver's answers rate low."""
    said = ["Jupiter", "Mars", "Mars", "Mars"]

    def say(prompt: Any, index: int) -> str:
        asked = text_of(prompt)
        if "Verdict" not in asked:
            return said[index % 4]
        assert "good answer" not in asked, "nobody knows one"
        return f"Verdict {key_of(prompt)}: {10 if 'Jupiter' in asked else 5 if 'planet is' in asked else 1}"

    text = json.dumps(recipes()["multi_agent_evolve"]["run"]["reward"]["scorer"])
    policy = ScriptedEngine(say)
    scorer = load(json.loads(text, object_hook=lambda spec: spec | ({"engine": policy} if "engine" in spec else {})))
    asked = "Which planet is the largest?"
    rows = [("Write a question.", asked, "propose"), (asked, "Jupiter", "solve"), (asked, "Mars", "solve")]
    samples = [Sample(prompt=prompt, response=given, extra={"kind": kind}) for prompt, given, kind in rows]
    found = [score.value for score in asyncio.run(scorer.score(samples))]
    rated = (5 - 1) / 9
    assert found == pytest.approx([0.5 * rated + 0.5 * (1 - (1.0 + 3 * rated) / 4), 1.0, rated])
    answers, ratings = tmp_path / "answers.jsonl", tmp_path / "ratings.jsonl"
    answers.write_text(json.dumps({"prompt": "Write a question.", "question": asked, "response": "Jupiter"}))
    rating_rows.main(str(answers), str(ratings))
    row = json.loads(ratings.read_text(encoding="utf-8"))
    assert any(row["prompt"] == list(one) for one in policy.asked), "a judge learns what it is asked"
    key = key_of(row["prompt"])
    paid_for = {f"It is right.\nVerdict {key}: 10": 1.0, "It is right: 10.": 0.0, f"Verdict {key}: 11": 0.0}
    told = {"prompt": row["prompt"], "reference": row["reference"], "extra": {"kind": row["kind"]}}
    judged = [Sample(response=response, **told) for response in paid_for]
    assert [score.value for score in asyncio.run(scorer.score(judged))] == list(paid_for.values())
    shipped = (ROWS / "proposed.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(shipped[-1]) == row

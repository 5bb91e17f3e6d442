"""Searches find what an exhaustive walk of small trees finds, and what a planted value leads to, and stop cleanly."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.evals.best_of_n.decoding.tree_engine import GAP, Letters, TreeEngine, letters_of

from adjudge.data_pipelines.steps import tree_search
from adjudge.data_pipelines.steps.growth import GROWTHS, Growth, Rule
from adjudge.data_pipelines.steps.rollouts import EngineCompleter
from adjudge.data_pipelines.steps.solutions_in_rows import Problem
from adjudge.data_pipelines.steps.tree_search import ROOT, Account, Finished, Guide, Valuing, Writer, tree
from adjudge.engines.interface import Completion, Fault, Generation, Prompt, Sampling
from adjudge.evals.benchmarks.case import Given
from adjudge.evals.best_of_n.config import SearchConfig
from adjudge.evals.best_of_n.searches import MethodRun, Searched, beam, whole_solutions
from adjudge.evals.best_of_n.searching import choices_of, run_search
from adjudge.evals.reports.result import Result
from adjudge.io.errors import JobError
from adjudge.protocol import NO_COST, Cost, Sample, Score
from adjudge.runtime.contract import BrokenScorer

PROBLEM = Problem(prompt="p", reference="gold", id="0", group="")


def tools(
    engine: TreeEngine, value: Callable[[str], float | None], *, budget: int, rollouts: int = 0
) -> tuple[Writer, Guide]:
    sampling = Sampling(temperature=1.0)
    writer = Writer(
        PROBLEM,
        steps=EngineCompleter(engine=engine, sampling=Sampling(temperature=1.0, stop=(GAP,))),
        wholes=EngineCompleter(engine=engine, sampling=sampling),
        gap=GAP,
        ends=re.compile("####"),
        max_steps=20,
        max_tokens=100,
        account=Account(budget=budget, most=10_000),
    )
    return writer, Guide(PROBLEM, ask=asking(value), writer=writer, rollouts=rollouts)


def asking(value: Callable[[str], float | None]) -> Valuing:
    async def ask(samples: Sequence[Sample]) -> list[tuple[float | None, Cost]]:
        return [(value(letters_of(str(one.response))), NO_COST) for one in samples]

    return ask


def growing(rule: Rule = "puct", **numbers: Any) -> Growth:
    return replace(GROWTHS[rule], **numbers)


def worth(letters: str) -> float:
    """A value without structure: prefixes say nothing of what follows."""
    return (hash_of(letters) % 1009) / 1009


def hash_of(letters: str) -> int:
    found = 7
    for letter in letters:
        found = found * 131 + ord(letter)
    return found


def beams_by_hand(depth: int, width: int, letters: str = "abc") -> set[str]:
    """Beam search on the explicit tree: the solutions among the kept ones of the last step, and all others of it."""
    kept = [""]
    for _ in range(depth):
        grown = [prefix + letter for prefix in kept for letter in letters]
        kept = sorted(grown, key=lambda one: -worth(one))[:width]
    return set(grown)


@pytest.mark.parametrize("width", [1, 2, 3, 27])
def test_a_beam_is_that_of_the_explicit_tree(width: int) -> None:
    """Draws take the letters in turn, so that three of them are all children."""
    first, later = 3 * width, sum(3 * min(width, 3**step) for step in range(1, 4))
    writer, guide = tools(TreeEngine(4, cycle=True), worth, budget=first + later)  # it ends with the last step
    found = asyncio.run(beam(writer, guide, width=width, expand=3))
    assert {letters_of(one.path.text) for one in found} == beams_by_hand(4, width)


def test_a_tree_search_that_may_see_all_finds_the_best() -> None:
    best = max(("".join(one) for one in itertools.product("abc", repeat=3)), key=worth)
    writer, guide = tools(TreeEngine(3, cycle=True), worth, budget=39)  # 3 + 9 + 27 letters are the whole tree
    found = asyncio.run(tree(writer, guide, growing(expand=3, c=0.0)))  # what is explored is left, not what was visited
    assert len(found) == 27
    assert writer.account.tokens == 39
    top = max(found, key=lambda one: one.value or 0.0)
    assert letters_of(top.path.text) == best


def test_a_tree_search_follows_values_and_does_not_walk_all() -> None:
    writer, guide = tools(TreeEngine(6, cycle=True), lambda text: text.count("a") / 6, budget=60)
    found = asyncio.run(tree(writer, guide, growing(expand=3, c=0.5)))
    assert max(one.value or 0.0 for one in found) == 1.0
    assert writer.account.tokens < 66


def tree_by_hand(depth: int, expansions: int, c: float) -> list[str]:
    """The prefixes that AlphaZero's rule values on the explicit tree, in order: each expansion values three letters."""
    visits: dict[str, int] = {}
    totals: dict[str, float] = {}
    values: dict[str, float] = {}
    leaf = ""
    for _ in range(expansions):
        grown = {leaf + letter: worth(leaf + letter) for letter in "abc"}
        values |= grown
        for size in range(len(leaf) + 1):
            visits[leaf[:size]] = visits.get(leaf[:size], 0) + 1
            totals[leaf[:size]] = totals.get(leaf[:size], 0.0) + max(grown.values())
        low, high = min(values.values()), max(values.values())
        leaf = ""
        while leaf in visits:
            merits = {}
            for child in (leaf + letter for letter in "abc"):
                count = visits.get(child, 0)
                mean = totals[child] / count if count else values[child]
                merit = (mean - low) / (high - low) + c / 3 * math.sqrt(visits[leaf]) / (1 + count)
                if not all(
                    child + "".join(rest) in values for rest in itertools.product("abc", repeat=depth - len(child))
                ):
                    merits[child] = merit
            leaf = max(merits, key=lambda one: (merits[one], -ord(one[-1])))
    return list(values)


@pytest.mark.parametrize("c", [0.0, 0.5, 2.0, 20.0])
def test_a_tree_search_goes_where_the_rule_on_the_explicit_tree_goes(c: float) -> None:
    asked: list[str] = []

    def value(letters: str) -> float:
        asked.append(letters)
        return worth(letters)

    writer, guide = tools(TreeEngine(4, cycle=True), value, budget=60)
    asyncio.run(tree(writer, guide, growing(expand=3, c=c)))
    assert asked == tree_by_hand(4, 20, c)


def test_a_tree_that_is_explored_draws_on_at_its_root_until_the_budget_ends() -> None:
    writer, guide = tools(TreeEngine(1, cycle=True), worth, budget=100)
    found = asyncio.run(tree(writer, guide, growing(expand=3, c=1.0)))
    assert writer.account.tokens >= 100
    assert {letters_of(one.path.text) for one in found} == {"a", "b", "c"}


def test_draws_never_repeat_and_depend_on_the_seed_alone() -> None:
    texts = []
    for _ in range(2):
        writer, guide = tools(TreeEngine(5), worth, budget=60)
        texts.append([one.path.text for one in asyncio.run(whole_solutions(writer, guide, at_once=4))])
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 6


def test_a_step_may_be_a_token_even_a_blank_one() -> None:
    class Tokens(TreeEngine):
        async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
            (prompt,) = prompts
            begun = str(prompt[-1]["content"]) if prompt[-1]["role"] == "assistant" else ""  # type: ignore[index]
            left = "so\n\n4"[len(begun) :][:1]
            one = Completion(text=left, finish_reason="length" if left else "stop", tokens=1)
            return [Generation(completions=(one,) * sampling.n)]

    writer, guide = tools(Tokens(1), lambda letters: 0.0, budget=100)
    asked: list[str] = []

    async def ask(samples: Sequence[Sample]) -> list[tuple[float | None, Cost]]:
        asked.extend(str(one.response) for one in samples)
        return [(0.0, NO_COST) for _ in samples]

    guide = Guide(PROBLEM, ask=ask, writer=writer, rollouts=0)
    found = asyncio.run(tree(writer, guide, growing(expand=1), rounds=6))
    assert [one.path.text for one in found] == ["so\n\n4"]


def test_rollouts_value_prefixes_by_their_ends_and_give_solutions() -> None:
    writer, guide = tools(
        TreeEngine(3), lambda text: float(text == "aaa") if len(text) == 3 else None, budget=40, rollouts=2
    )
    paths = asyncio.run(writer.next_steps(ROOT, 2))
    values = asyncio.run(guide.values(paths))
    ends = guide.seen
    assert len(ends) == 4
    for at, path in enumerate(paths):
        mine = ends[2 * at : 2 * at + 2]
        assert all(end.text.startswith(path.text) and end.ended for end in mine)
        assert values[at] == sum(letters_of(end.text) == "aaa" for end in mine) / 2
    assert writer.account.tokens == 2 + 4 * 2


def written(folder: Path, count: int = 12) -> str:
    path = folder / "problems.jsonl"
    rows = [{"prompt": f"problem {at}", "reference": "aaaaaa"} for at in range(count)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def right(letters: str) -> float:
    return float(letters == "aaaaaa")


def searched(path: str, guide: Any, *, writer: Any = None, judge: Any = None, **options: Any) -> Result:
    given: dict[str, Any] = {"tokens": 150, "resamples": 500, "engine": "x:y", "value": "x"} | options
    return run_search(
        SearchConfig(input=path, **given),
        engine=writer if writer is not None else TreeEngine(6),
        value=guide,
        gold=judge if judge is not None else Letters("gold", right),
    )


def shares(result: Result) -> dict[str, float]:
    return {one.part: one.interval.known for one in result.measures if one.name == "right"}


def test_a_planted_value_makes_searches_better_than_best_of_n_at_the_same_budget(tmp_path: Path) -> None:
    """One of 729 solutions is right: 67 whole ones hold it for one problem of eleven.

    Among eight next steps the right one is missing once in 26 times, so a guide that counts right steps gets there.
    """
    guide = Letters("planted", lambda text: text.count("a") / 6)
    result = searched(written(tmp_path, 16), guide, tokens=400, expand=8)
    found = shares(result)
    assert found["best_of_n"] <= 0.25
    assert min(found["beam"], found["steps"]) >= 0.9
    assert found["mcts"] >= 0.5
    tests = {one.name: one for one in result.comparisons}
    assert tests["beam"].p is not None
    assert tests["beam"].p < 0.01
    spent = {one.part: one.interval.known for one in result.measures if one.name == "generated tokens of a problem"}
    assert all(400 <= tokens < 400 + 32 for tokens in spent.values()), spent
    assert spent["best_of_n"] == spent["majority"]
    assert all(sample.reference is None for sample in guide.seen)
    curves = {series["name"]: series["y"] for series in result.figures[1].to_dict()["series"]}
    assert curves["beam"] == sorted(curves["beam"])
    assert curves["beam"][-1] == found["beam"]
    assert result.cost.completion_tokens == sum(16 * spent[name] for name in ("best_of_n", "steps", "beam", "mcts"))
    json.dumps(result.to_dict(), allow_nan=False)


class Better:
    """Says which of two solutions has more right letters; asked in both orders by a tournament."""

    name = "better"
    fingerprint = "better:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        texts = [(str(one.response), str(one.reference)) for one in samples]
        counts = [(letters_of(mine).count("a"), letters_of(other).count("a")) for mine, other in texts]
        return [Score.scored(1.0 if mine > other else 0.5 if mine == other else 0.0) for mine, other in counts]


def test_a_last_comparison_chooses_where_the_guide_cannot_tell_ends_apart(tmp_path: Path) -> None:
    """The guide counts right letters up to the last but one, so that the ends of a beam have one value (BPP-Search)."""
    path, guide = written(tmp_path, 8), Letters("blunt", lambda text: min(text.count("a"), 5) / 6)
    plain = searched(path, guide, method=("beam", "best_of_n"), tokens=200)
    final = run_search(
        SearchConfig(input=path, engine="x:y", value="x", method=("beam", "best_of_n"), tokens=200, resamples=500),
        engine=TreeEngine(6),
        value=guide,
        gold=Letters("gold", right),
        final={"tournament": {"judge": Better()}},
    )
    found = {one.part: one.interval.known for one in plain.measures if one.name == "a right one was found"}
    assert found["beam"] > shares(plain)["beam"], "there is something to gain"
    assert shares(final)["beam"] == found["beam"], "what was found is chosen"
    assert final.options["final"] != plain.options.get("final")


def test_a_wrong_value_makes_searches_no_better(tmp_path: Path) -> None:
    result = searched(written(tmp_path), Letters("wrong", lambda text: -text.count("a") / 6))
    assert max(shares(result).values()) <= 0.1
    assert all(one.p is None or one.p > 0.05 for one in result.comparisons)


def test_the_same_call_gives_the_same_result(tmp_path: Path) -> None:
    path, guide = written(tmp_path, 4), Letters("planted", lambda text: text.count("a") / 6)
    first, second = (searched(path, guide, in_flight=flight).to_dict() for flight in (1, 4))
    for each in (first, second):
        each["seconds"] = 0
        each["cost"]["seconds"] = 0
        each["options"].pop("in_flight")
    assert first == second
    other = searched(path, guide, seed=1).to_dict()
    assert other["measures"] != first["measures"]


def test_rollouts_guide_as_well(tmp_path: Path) -> None:
    guide = Letters("planted", lambda text: text.count("a") / 6)
    result = searched(written(tmp_path, 6), guide, value_of="rollouts", method=("best_of_n", "mcts"), tokens=600)
    assert shares(result)["mcts"] > shares(result)["best_of_n"]


def test_right_solutions_that_were_not_chosen_can_be_read(tmp_path: Path) -> None:
    engine = TreeEngine(1, "ab", cycle=True)
    result = searched(
        written(tmp_path, 2),
        Letters("wrong", lambda text: float(text == "b")),
        writer=engine,
        judge=Letters("gold", lambda text: float(text == "a")),
        method=("best_of_n",),
        tokens=4,
    )
    assert [(case.id, case.verdict) for case in result.worst] == [
        ("0/best_of_n", "right one not chosen"),
        ("1/best_of_n", "right one not chosen"),
    ]
    assert result.measures[0].baselines == {"random": 0.5}
    assert [one.interval.value for one in result.measures if one.name == "a right one was found"] == [1.0]


def test_an_engine_that_is_gone_stops_the_call(tmp_path: Path) -> None:
    gone = TreeEngine(6, fault=lambda call: Fault(reason="engine_unavailable", detail="x") if call == 6 else None)
    with pytest.raises(JobError, match="is gone"):
        searched(written(tmp_path, 40), Letters("planted", worth), writer=gone, output=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert gone.calls < 400, "the other problems were stopped; all of them take 2,000 calls"


def test_a_prefix_that_is_too_long_ends_there_and_is_counted(tmp_path: Path) -> None:
    engine = TreeEngine(6, fault=lambda call: Fault(reason="engine_error", detail="x", too_long=True))
    result = searched(written(tmp_path, 2), Letters("planted", worth), writer=engine, draws_at_most=40)
    assert set(shares(result).values()) == {0.0}
    assert any("x too_long" in note for note in result.notes)
    assert any("found no solution of 2 problems" in note for note in result.notes)


def test_an_engine_without_token_counts_is_bounded_by_texts(tmp_path: Path) -> None:
    class Silent(TreeEngine):
        def _drawn(self, prompt: Any, sampling: Sampling) -> Any:
            found = super()._drawn(prompt, sampling)
            return replace(found, completions=tuple(replace(one, tokens=0) for one in found.completions))

    result = searched(written(tmp_path, 2), Letters("planted", worth), writer=Silent(6), draws_at_most=50)
    assert any("reports no tokens" in note for note in result.notes)
    drawn = {one.part: one.interval.known for one in result.measures if one.name == "texts drawn for a problem"}
    assert set(drawn.values()) == {50.0}


def test_values_that_are_missing_lead_nowhere(tmp_path: Path) -> None:
    guide = Letters("half", lambda text: None if text.startswith("a") else 0.5)
    result = searched(written(tmp_path, 2), guide, method=("beam", "mcts"))
    assert set(shares(result).values()) == {0.0}
    assert any("x no value" in note for note in result.notes)


def test_a_budget_that_ends_inside_a_beam_leaves_what_was_cut_off(tmp_path: Path) -> None:
    result = searched(written(tmp_path, 1), Letters("planted", worth), method=("steps", "mcts"), tokens=8)
    assert result.counts.cut_off == 2
    assert result.counts.samples == 2


class Broken(Letters):
    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        raise RuntimeError("broken")


def test_a_broken_guide_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenScorer, match="planted"):
        searched(written(tmp_path, 2), Broken("planted", worth))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"method": ("bfs",)}, "unknown search method 'bfs'"),
        ({"method": ()}, "--method"),
        ({"method": ("beam", "beam")}, "--method"),
        ({"engine": " "}, "--engine"),
        ({"value": ""}, "--value"),
        ({"value_of": "oracle"}, "value_of="),
        ({"tokens": 0}, "tokens=0"),
        ({"width": 0}, "width=0"),
        ({"temperature": 0}, "temperature=0"),
        ({"top_p": 0}, "top_p=0"),
        ({"c_puct": -1}, "c_puct=-1"),
        ({"ends": "("}, "--ends"),
        ({"prompt_column": "nope"}, "--prompt-column"),
        ({"aggregate": "mode"}, "--aggregate"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        searched(written(tmp_path, 1), Letters("planted", worth), **options)


def test_a_guide_that_needs_the_reference_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="never sees the reference"):
        searched(written(tmp_path, 1), "exact")


def test_problems_that_cannot_be_read_are_counted_and_ids_are_unique(tmp_path: Path) -> None:
    path = tmp_path / "problems.jsonl"
    rows = [{"prompt": "p", "reference": "a", "id": 1}, {"prompt": None}, {"prompt": " "}, {"prompt": "q", "id": 1}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    result = searched(str(path), Letters("planted", worth), method=("steps",), tokens=6)
    assert (result.counts.cases, result.counts.unreadable) == (2, 2)
    with pytest.raises(ValueError, match=r"two problems .* id '1'"):
        searched(str(path), Letters("planted", worth), id_column="id")


def test_what_was_found_within_a_part_of_the_budget_counts_there() -> None:
    """The first solution, which is wrong, is there at an eighth of the tokens, the right one at exactly a half."""
    solutions = tuple(
        Finished(path=tree_search.Path(text=text, ended=True), value=value, spent=spent)
        for text, value, spent in (("wrong", 0.1, 10), ("right", 0.9, 50), ("late", 0.0, 100))
    )
    said = tuple(Given(float(one.path.text == "right"), "scored") for one in solutions)
    run = MethodRun(method="steps", solutions=solutions, said=said, account=Account(budget=100, most=9))
    config = SearchConfig(input="x", engine="e", value="v", method=("steps",), tokens=100)
    (choice,) = choices_of([Searched(problem="0", runs=(run,))], config)
    assert choice.within == (0.0, 0.0, 1.0, 1.0)
    assert (choice.right, choice.oracle) == (1.0, 1.0)
    assert choice.random == pytest.approx(1 / 3)

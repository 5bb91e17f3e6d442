"""LLMBar's raw judge completions through our reader.

Its official statistics out of the stored verdicts are in `tests/evals/benchmarks/judging/test_llm_bar.py`.

LLMBar asks for "Output (a)", or for an explanation that ends in "Therefore, Output (a) is better." to the letter.  Its
own patterns take the first output if they find it anywhere, and with them all statistics come out of the raw text as
well; our reader takes the last verdict in that form or none.
All 17,238 short answers read the same.  Of the 12,930 long ones 10,009 do; 100 end in another verdict than LLMBar
stored, and 2,821 hold no such sentence, or begin it twice in one line (PaLM 2: 71 % of its answers; GPT-4: 2 %).  A
judge of ours that answers like that is asked again.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from adjudge.evals.trust.bias import Judgement, inconsistency, preference
from adjudge.prompts.reading import LabelReader, NumberReader
from adjudge.statistics.intervals import Draws

Cell: TypeAlias = tuple[str, str, str]
ORDERS = ("swap = False", "swap = True")

SHORT = LabelReader(form="Output ({answer})", labels=("a", "b"))
LONG = LabelReader(form="Therefore, Output ({answer}) is better", labels=("a", "b"))
EXACT = 96
RATED, TIED = 836, 280  # a content filter silenced two
INCONSISTENT = {"GPT-4": 0.0716, "Falcon": 0.5847, "ChatGPT-0301": 0.4224}
FIRST = {"GPT-4": 0.5119, "Falcon": 0.7757, "ChatGPT-0301": 0.6706}
RATING = NumberReader(form="Rating: {answer}", low=0, high=10)


@pytest.fixture(scope="session")
def cells(corpora: Any) -> dict[Cell, list[dict[str, Any]]]:
    """The rows of each subset, model and strategy."""
    found = defaultdict(list)
    for row in corpora.rows("llmbar/judge_raw_outputs.jsonl.gz"):
        found[row["subset"], row["llm"], row["strategy"]].append(row)
    return dict(found)


@pytest.fixture(scope="session")
def official(corpora: Any) -> dict[Cell, dict[str, Any]]:
    """The official statistics."""
    statistics = corpora.whole("llmbar/judge_statistics_official.json")
    return {(row["subset"], row["llm"], row["strategy"]): row for row in statistics}


def winners(row: dict[str, Any]) -> tuple[str | None, str | None]:
    """The stored winner ("1" or "2") in each order."""
    last = row["results"][-1]
    return last[ORDERS[0]]["winner"], last[ORDERS[1]]["winner"]


def is_long(row: dict[str, Any]) -> bool:
    """Whether the judge was asked for an explanation and not for the bare name."""
    return row["strategy"] in ("CoT", "Swap_CoT") or (row["strategy"] == "Swap" and len(row["results"]) == 1)


def read(row: dict[str, Any]) -> tuple[str | None, str | None]:
    """The winner in each order as our reader finds it."""
    reader = LONG if is_long(row) else SHORT
    last = row["results"][-1]
    places = [reader(last[order]["completion"][0]) for order in ORDERS]
    return {"a": "1", "b": "2", None: None}[places[0]], {"a": "2", "b": "1", None: None}[places[1]]


def theirs_of(row: dict[str, Any], text: str) -> str | None:
    """The verdict by LLMBar's patterns, found from what it stored: the first output wins if it is named at all."""
    if not is_long(row):
        pattern = r"output \({}\)"
    elif (row["llm"], row["strategy"]) == ("PaLM2", "CoT"):
        pattern = r"^output \({}\)"
    else:
        pattern = r"output \({}\) is better"
    for answer in "ab":
        if re.search(pattern.format(answer), text, re.IGNORECASE | re.MULTILINE):
            return answer
    return None


def share(winner: str | None) -> float | None:
    return None if winner is None else float(winner == "1")


def counted(hits: float, n: int) -> str:
    return f"{round(hits * n)} / {n} = {round(hits * n) / n * 100}%"


def compared(cells: dict[Cell, list[dict[str, Any]]]) -> Iterator[tuple[dict[str, Any], str, str | None, str | None]]:
    """Each completion: its row, its text in lower case, and the verdict ("a" or "b") of LLMBar's reader and of ours."""
    for rows in cells.values():
        for row in rows:
            if row["strategy"] == "Rating":
                continue
            for order, *verdicts in zip(ORDERS, winners(row), read(row), strict=True):
                named = {"1": "a", "2": "b"} if order == ORDERS[0] else {"1": "b", "2": "a"}
                theirs, ours = (named[winner] if winner else None for winner in verdicts)
                yield row, row["results"][-1][order]["completion"][0].casefold(), theirs, ours


def test_the_official_statistics_come_out_of_the_raw_text_by_the_official_patterns(
    cells: dict[Cell, list[dict[str, Any]]],
) -> None:
    """Every completion gets the verdict that LLMBar stored, and the statistics come out of those."""
    differ = [text for row, text, theirs, _ in compared(cells) if theirs_of(row, text) != theirs]
    assert differ == []


def test_our_reader_and_theirs(cells: dict[Cell, list[dict[str, Any]]]) -> None:
    found: Counter[tuple[str, str]] = Counter()
    unread: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for row, _, theirs, ours in compared(cells):
        kind = "same" if ours == theirs else "none" if ours is None else "other"
        found["long" if is_long(row) else "short", kind] += 1
        asked[row["llm"]] += is_long(row)
        unread[row["llm"]] += kind == "none"
    assert found == {
        ("short", "same"): 17_238,
        ("long", "same"): 10_009,
        ("long", "other"): 100,
        ("long", "none"): 2_821,
    }
    shares = {llm: round(100 * unread[llm] / asked[llm]) for llm in asked}
    assert shares == {"PaLM2": 71, "ChatGPT-0301": 21, "ChatGPT": 17, "Falcon": 15, "LLaMA2": 3, "GPT-4": 2}


def test_where_the_readers_differ_ours_is_what_the_text_says(cells: dict[Cell, list[dict[str, Any]]]) -> None:
    """What is not read lacks the sentence or begins it without an end; what is read otherwise says ours last."""
    sentence = re.compile(r"therefore, output \(([ab])\) is better")
    for _, text, theirs, ours in compared(cells):
        said = sentence.findall(text)
        if ours is None:
            begun = text.count("therefore, output (")
            assert not said or len(set(said)) > 1 or begun > len(said), text
        elif ours != theirs:
            assert said[-1] == ours, text


def test_statistics_from_the_raw_text(
    cells: dict[Cell, list[dict[str, Any]]], official: dict[Cell, dict[str, Any]]
) -> None:
    """From completions to accuracy: exact where answers are short; where they are long, a missing verdict is wrong."""
    exact = 0
    for cell, rows in cells.items():
        if cell[2] == "Rating":
            continue
        said = [(winner, str(row["label"])) for row in rows for winner in read(row)]
        mean, theirs = (
            100 * sum(winner == label for winner, label in said) / len(said),
            float(official[cell]["correct_average"].rstrip("%")),
        )
        exact += abs(mean - theirs) < 1e-9
        if not any(map(is_long, rows)):
            assert mean == pytest.approx(theirs, abs=1e-9), cell
        if all(winner is not None for winner, _ in said):
            assert mean == pytest.approx(theirs, abs=2.2), cell  # at most 2 texts of 46 pairs
    assert exact == EXACT


def test_ratings(cells: dict[Cell, list[dict[str, Any]]]) -> None:
    """Both orders share two ratings, and LLMBar broke ties by place: equal ratings are its inconsistent pairs."""
    ties = read_both = 0
    for (_, _, strategy), rows in cells.items():
        for row in rows if strategy == "Rating" else []:
            last = row["results"][-1]
            ratings = [RATING(f"Rating: {last[score][0]}") for score in ("score_1", "score_2")]
            if None in ratings:
                continue
            read_both += 1
            one, other = winners(row)
            tied = ratings[0] == ratings[1]
            ties += tied
            assert tied == (one != other)
            if not tied:
                assert (one == "1") == (ratings[0] > ratings[1])  # type: ignore[operator]
    assert (read_both, ties) == (RATED, TIED)


def test_the_bias_measures_see_what_is_known_of_these_judges(cells: dict[Cell, list[dict[str, Any]]]) -> None:
    def judgements(llm: str) -> list[Judgement]:
        found = []
        for (subset, model, strategy), rows in cells.items():
            if model != llm or strategy != "Vanilla":
                continue
            for row in rows:
                one, other = map(share, winners(row))
                pair = f"{subset} {row['i']}"
                gold = float(row["label"] == 1)
                found.append(Judgement(pair=pair, first="1", second="2", share=one, gold=gold))
                turned = None if other is None else 1 - other
                found.append(Judgement(pair=pair, first="2", second="1", share=turned, gold=1 - gold))
        return found

    draws = Draws(rounds=100)
    inconsistent = {llm: inconsistency(judgements(llm)).value for llm in ("GPT-4", "Falcon", "ChatGPT-0301")}
    assert inconsistent == pytest.approx(INCONSISTENT, abs=5e-4)
    first = {llm: preference(judgements(llm), "first", draws).judge.value for llm in inconsistent}
    assert first == pytest.approx(FIRST, abs=5e-4)

"""One preference in every layout that people have is one preference for every command."""

from __future__ import annotations

import contextlib
import csv
import gzip
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.hygiene.rows import text_columns
from adjudge.data_pipelines.pairs.config import LeaksConfig
from adjudge.data_pipelines.pairs.leaks import judged_texts
from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.pairs import Pairs
from adjudge.io.preferences import read_preference
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import turns_of
from adjudge.reward_models.training.critique_data import parse_critiques
from adjudge.training.data_files import parse_preferences, read_preferences
from adjudge.training.examples import Pair, Ranking

Row = dict[str, Any]
Said = list[tuple[Any, str, str]]
"""Prompt, better and worse response of each pair."""

ASKED, GOOD, BAD = "What is 2 + 2?", "It is 4.", "Five, I think."
USER = {"role": "user", "content": ASKED}
SYSTEM = {"role": "system", "content": "Be brief."}


def answer(text: str) -> Row:
    return {"role": "assistant", "content": text}


def transcript(text: str) -> str:
    return f"\n\nHuman: {ASKED}\n\nAssistant: {text}"


LAYOUTS: dict[str, Row] = {
    "TRL, explicit prompt, text": {"prompt": ASKED, "chosen": GOOD, "rejected": BAD},
    "TRL, explicit prompt, turns": {"prompt": [USER], "chosen": [answer(GOOD)], "rejected": [answer(BAD)]},
    "TRL, implicit prompt, turns": {"chosen": [USER, answer(GOOD)], "rejected": [USER, answer(BAD)]},
    "TRL, implicit prompt, text": {"chosen": f"{ASKED} {GOOD}", "rejected": f"{ASKED} {BAD}"},
    "UltraFeedback, binarized": {
        "prompt": ASKED, "prompt_id": "a1", "chosen": [USER, answer(GOOD)], "rejected": [USER, answer(BAD)],
        "messages": [USER, answer(GOOD)], "score_chosen": 8.5, "score_rejected": 2.0,
    },
    "Skywork": {"chosen": [USER, answer(GOOD)], "rejected": [USER, answer(BAD)], "source": "x", "chosen_score": 1.5},
    "ShareGPT turns": {
        "chosen": [{"from": "human", "value": ASKED}, {"from": "gpt", "value": GOOD}],
        "rejected": [{"from": "human", "value": ASKED}, {"from": "gpt", "value": BAD}],
    },
    "HH": {"chosen": transcript(GOOD), "rejected": transcript(BAD)},
    "HH, prompt apart": {"prompt": f"\n\nHuman: {ASKED}\n\nAssistant:", "chosen": GOOD, "rejected": BAD},
    "HelpSteer2, preference": {"prompt": ASKED, "response_1": GOOD, "response_2": BAD, "preference_strength": -2},
    "HelpSteer3, preference": {
        "context": [USER], "response1": BAD, "response2": GOOD, "overall_preference": 3, "language": "english",
    },
    "PKU-SafeRLHF": {"prompt": ASKED, "response_0": BAD, "response_1": GOOD, "better_response_id": 1},
    "SHP": {"history": ASKED, "human_ref_A": GOOD, "human_ref_B": BAD, "labels": 1},
    "arena": {"question": ASKED, "response_a": BAD, "response_b": GOOD, "winner": "model_b"},
    "LMSYS arena": {
        "conversation_a": [USER, answer(BAD)], "conversation_b": [USER, answer(GOOD)], "winner": "model_b",
    },
    "HelpSteer2, from CSV": {"prompt": ASKED, "response_1": GOOD, "response_2": BAD, "preference_strength": "-2"},
    "PKU-SafeRLHF, from CSV": {"prompt": ASKED, "response_0": BAD, "response_1": GOOD, "better_response_id": "1"},
    "JudgeBench": {"question": ASKED, "response_A": GOOD, "response_B": BAD, "label": "A>B"},
    "UltraFeedback": {
        "instruction": ASKED,
        "completions": [{"response": BAD, "overall_score": 3.5}, {"response": GOOD, "overall_score": 8.0}],
    },
    "Alpaca's prompt": {"instruction": ASKED, "input": "", "chosen": GOOD, "rejected": BAD},
    "Nectar": {
        "prompt": f"\n\nHuman: {ASKED}\n\nAssistant: ",
        "answers": [{"answer": GOOD, "rank": 1.0, "model": "m"}, {"answer": BAD, "rank": 2.0, "model": "n"}],
    },
    "responses with scores": {"prompt": ASKED, "responses": [BAD, GOOD], "scores": [0.1, 0.9]},
    "responses with ranks": {"prompt": [USER], "responses": [[answer(BAD)], [answer(GOOD)]], "ranks": [1, 0]},
    "lists of texts": {"prompt": ASKED, "chosen": [GOOD], "rejected": [BAD]},
}  # fmt: skip


def in_training(rows: list[Row]) -> Said:
    data = parse_preferences(rows)
    assert not data.bad
    found: Said = []
    for example in data.examples:
        if isinstance(example, Pair):
            found.append((turns_of(example.prompt), example.chosen, example.rejected))
        assert isinstance(example, Pair | Ranking)
        if isinstance(example, Ranking):
            for one, other in itertools.permutations(range(len(example.responses)), 2):
                if example.ranks[one] < example.ranks[other]:
                    found.append((turns_of(example.prompt), example.responses[one], example.responses[other]))
    return found


def in_evaluation(rows: list[Row]) -> Said:
    found = []
    for number, row in enumerate(rows):
        for case in Pairs().cases(row, RowPlace(number=number)):
            better = case.gold["better"]
            first, second = case.samples[better], case.samples[1 - better]
            found.append((turns_of(first.prompt), first.response, second.response))
    return found


def in_critiques(rows: list[Row]) -> Said:
    data = parse_critiques(rows, missing="keep")
    assert not data.bad
    return [(turns_of(pair.prompt), pair.chosen, pair.rejected) for pair in data.examples]


def in_leaks(rows: list[Row]) -> Said:
    told = [one for row in rows for one in judged_texts(row, LeaksConfig(train="a", test="b"))]
    return [([{"role": "user", "content": one.prompt}], one.chosen or "", one.rejected or "") for one in told]


def in_hygiene(rows: list[Row]) -> list[str]:
    reader, _ = text_columns((), list(rows[0]), rows, "--text-column")
    return [reader.text(row) for row in rows]


COMMANDS: dict[str, Callable[[list[Row]], Said]] = {
    "train": in_training,
    "eval pairs": in_evaluation,
    "data leaks": in_leaks,
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_preference_in_every_layout_is_one_for_every_command(layout: str, command: str) -> None:
    assert COMMANDS[command]([LAYOUTS[layout]]) == [([USER], GOOD, BAD)]


@pytest.mark.parametrize("layout", [name for name, row in LAYOUTS.items() if len(row) > 1 and name != "lists of texts"])
def test_commands_for_prompts_alone_read_the_same_prompt(layout: str) -> None:
    (text,) = in_hygiene([LAYOUTS[layout]])
    assert ASKED in text
    assert not (GOOD in text and BAD in text)


@pytest.mark.parametrize("layout", [name for name, row in LAYOUTS.items() if "chosen" in row and name[0] != "l"])
def test_critiques_read_the_same_pairs(layout: str) -> None:
    assert in_critiques([LAYOUTS[layout]]) == [([USER], GOOD, BAD)]


def written(folder: Path, rows: list[Row]) -> Iterator[tuple[str, Path]]:
    """The rows in every kind of file that can hold them."""
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "rows.jsonl").write_text(lines)
    yield "jsonl", folder / "rows.jsonl"
    with gzip.open(folder / "rows.jsonl.gz", "wt") as file:
        file.write(lines)
    yield "gz", folder / "rows.jsonl.gz"
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    yield "parquet", folder / "rows.parquet"
    Dataset.from_list(rows).save_to_disk(folder / "saved")
    yield "datasets", folder / "saved"
    if all(isinstance(value, str) for row in rows for value in row.values()):
        with (folder / "rows.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        yield "csv", folder / "rows.csv"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_kind_of_file_changes_nothing(layout: str, tmp_path: Path) -> None:
    long = LAYOUTS[layout]
    for kind, path in written(tmp_path, [long, long]):
        rows = [row.cells() for row in open_source(str(path), limit=1 << 20).rows(Cursor())]
        data = [dict(row) for row in rows if row is not None]
        assert in_evaluation([data[0]]) == in_training([data[1]]) == [([USER], GOOD, BAD)], kind
        assert len(read_preferences([str(path)]).examples) == 2, kind


def test_what_comes_before_the_answer_is_the_prompt_whatever_the_layout() -> None:
    begun = [SYSTEM, USER, answer("Four?"), {"role": "user", "content": "Sure?"}]
    one, other = [*begun, answer(GOOD)], [*begun, answer(BAD)]
    for row in (
        {"chosen": one, "rejected": other},
        {"prompt": begun, "chosen": one, "rejected": other},
        {"prompt": begun, "chosen": [answer(GOOD)], "rejected": [answer(BAD)]},
        {"prompt": ASKED, "chosen": one, "rejected": other},
        {"prompt": [USER], "chosen": one, "rejected": other},
    ):
        assert in_training([row]) == in_evaluation([row]) == [(begun, GOOD, BAD)]


def test_turns_of_tools_stay_turns_and_are_not_trained_on_as_text() -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add", "arguments": "{}"}}]}
    row = {"prompt": ASKED, "chosen": [USER, call, {"role": "tool", "content": "4"}, answer(GOOD)], "rejected": BAD}
    found = read_preference(row)
    assert found.responses[0] == [call, {"role": "tool", "content": "4"}, answer(GOOD)]
    assert dict(parse_preferences([row]).bad) == {
        "a response has several turns, or none; only the last turn may differ": 1
    }


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"prompt": "Another?", "chosen": [USER, answer(GOOD)], "rejected": [USER, answer(BAD)]},
            "does not begin with the",
        ),
        ({"prompt": ASKED, "chosen": [USER], "rejected": [USER]}, "nothing follows the prompt"),
        ({"prompt": ASKED, "chosen": GOOD}, "none of the columns rejected"),
        ({"prompt": ASKED, "response_a": GOOD, "response_b": BAD}, "none of the columns label"),
        ({"prompt": ASKED, "response_a": GOOD, "response_b": BAD, "winner": "nobody"}, "is none of a, a>b"),
        ({"prompt": ASKED, "response_1": GOOD, "response_2": BAD, "preference_strength": "b"}, "must be a number"),
        ({"prompt": ASKED, "responses": [GOOD]}, "two responses or more"),
        ({"prompt": ASKED, "responses": [GOOD, BAD]}, "neither ranks nor scores"),
        ({"prompt": ASKED, "responses": [GOOD, BAD], "scores": [1]}, "one finite number for each of 2"),
        ({"prompt": ASKED, "answers": [{"rank": 1, "answer": GOOD}, {"rank": float("nan"), "answer": BAD}]}, "finite"),
        ({"text": "x"}, "none of the columns chosen, preferred, winner_response is there.*the row has 'text'"),
        ({}, "the row has no columns"),
    ],
)
def test_a_row_that_says_nothing_says_why(row: Row, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_preference(row)


plain_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "from", "value", "answer", "rank"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["prompt", "chosen", "rejected", "responses", "scores", "response_a", "response_b", "label"]),
        plain_data,
    )
)
def test_no_row_raises_anything_but_a_sentence(row: Row) -> None:
    found = None
    with contextlib.suppress(ValueError):
        found = read_preference(row)
    assert found is None or len(found.responses) == len(found.ranks) >= 2


@pytest.mark.skipif("ADJUDGE_DATA" not in os.environ, reason="ADJUDGE_DATA is not set")
def test_real_conversations_of_hh_are_the_same_pairs_everywhere() -> None:
    path = Path(os.environ["ADJUDGE_DATA"], "hh_rlhf/harmless-base_test.jsonl.gz")
    file = open_source(str(path), limit=1 << 20).rows(Cursor())
    rows = [dict(row.data) for row in itertools.islice(file, 500) if row.data]
    trained = parse_preferences(rows)
    kept = [row for row in rows if not parse_preferences([row]).bad]
    assert len(kept) == len(trained.examples) > 450
    assert in_training(kept) == in_evaluation(kept)
    assert [pair[1:] for pair in in_training(kept)] == [pair[1:] for pair in in_leaks(kept)]
    for prompt, chosen, _ in in_training(kept)[:20]:
        assert prompt[0]["role"] == "user"
        assert "Human:" not in chosen

"""Rows of every format become the examples they should, bad ones are counted, and no held-out prompt is trained on."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.training.data_files import (
    families,
    held_out,
    parse_preferences,
    read_preferences,
    unseen,
    without_ties,
)
from adjudge.training.examples import Pair, Ranking, Rating, Reading, format_of, opening

USER = {"role": "user", "content": "Why?"}
ANSWER = {"role": "assistant", "content": "Because."}
OTHER = {"role": "assistant", "content": "No idea."}
MORE = {"role": "user", "content": "And then?"}


def only(row: Mapping[str, Any], **reading: Any) -> Any:
    data = parse_preferences([row], reading=Reading(columns=reading.pop("columns", {}), **reading))
    assert not data.bad
    (example,) = data.examples
    return example


@pytest.mark.parametrize(
    ("row", "prompt"),
    [
        ({"prompt": "Why?", "chosen": "Because.", "rejected": "No idea."}, "Why?"),
        ({"prompt": [USER], "chosen": [ANSWER], "rejected": [OTHER]}, [USER]),
        ({"prompt": [USER], "chosen": "Because.", "rejected": "No idea."}, [USER]),
        ({"prompt": "Why?", "chosen": ANSWER, "rejected": OTHER}, "Why?"),
        ({"chosen": [USER, ANSWER], "rejected": [USER, OTHER]}, [USER]),
        ({"chosen": [USER, OTHER, MORE, ANSWER], "rejected": [USER, OTHER, MORE, OTHER]}, [USER, OTHER, MORE]),
        ({"chosen": "Why? Because.", "rejected": "Why? No idea."}, "Why?"),
        (
            {"chosen": "\n\nHuman: Why?\n\nAssistant: Because.", "rejected": "\n\nHuman: Why?\n\nAssistant: No idea."},
            [USER],
        ),
    ],
    ids=["text", "turns", "mixed", "one turn", "implicit", "long implicit", "implicit text", "hh"],
)
def test_forms_of_a_pair(row: dict[str, Any], prompt: Any) -> None:
    pair = only(row)
    assert (pair.prompt, pair.chosen, pair.rejected) == (prompt, "Because.", "No idea.")


def test_what_a_pair_may_bring() -> None:
    row = {"prompt": "q", "chosen": "a", "rejected": "b", "strength": 2, "weight": 0.5, "group": 7, "source": "s"}
    pair = only(row, columns={"margin": "strength"})
    assert (pair.margin, pair.weight, pair.group, pair.source) == (2.0, 0.5, "7", "s")
    assert only({"prompt": "q", "chosen": "a", "rejected": "b", "tie": True}).tie
    assert only({"prompt": "q", "chosen": "a", "rejected": "b", "probability": 0.7}).probability == 0.7


def test_a_conversation_whose_words_look_like_turns() -> None:
    text = "\n\nHuman: Who says Human: ?\nAssistant: nobody\n\nAssistant: I see."
    pair = only({"chosen": text, "rejected": text + " Bye."})
    assert pair.prompt == [{"role": "user", "content": "Who says Human: ?\nAssistant: nobody"}]
    assert pair.rejected == "I see. Bye."


@pytest.mark.parametrize(
    ("row", "ranks"),
    [
        ({"prompt": "q", "responses": ["a", "b", "c"], "ranks": [1, 0, 1]}, (1, 0, 1)),
        ({"prompt": "q", "responses": ["a", "b", "c"], "scores": [0.1, 7, 0.1]}, (1, 0, 1)),
        ({"prompt": "q", "chosen": ["a"], "rejected": ["b", "c"]}, (0, 1, 1)),
        ({"prompt": [USER], "responses": [[ANSWER], [OTHER]], "ranks": [0, 1]}, (0, 1)),
    ],
    ids=["ranks", "scores", "best and rest", "turns"],
)
def test_lists(row: dict[str, Any], ranks: tuple[int, ...]) -> None:
    ranking = only(row)
    assert isinstance(ranking, Ranking)
    assert ranking.ranks == ranks


def test_ratings() -> None:
    row = {"prompt": "q", "response": "a", "helpfulness": 3, "verbosity": None}
    rating = only(row, attributes=("helpfulness", "verbosity"))
    assert isinstance(rating, Rating)
    assert rating.values == (3.0, None)
    assert only({"prompt": "q", "completion": "a", "label": True}).values == (1.0,)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"chosen": "b"}, "both responses are the same text"),
        ({"chosen": " ", "rejected": "\n"}, "both responses are empty"),
        ({"rejected": None}, "none of the columns rejected, "),
        ({"prompt": None, "rejected": [OTHER]}, "one response is text, the other is turns, and there is no prompt"),
        ({"prompt": True}, "the prompt in * is true or false; it must be text or chat turns with a role"),
        ({"prompt": [{"content": "x"}]}, "the prompt in * is a list; it must be text or chat turns with a role"),
        (
            {"chosen": [ANSWER, MORE, ANSWER], "rejected": [OTHER]},
            "a response has several turns, or none; only the last",
        ),
        ({"prompt": None, "chosen": [ANSWER], "rejected": [OTHER]}, "the two conversations have no common beginning"),
        ({"prompt": None}, "the two texts have no common beginning, and there is no prompt"),
        ({"chosen": [USER], "rejected": [OTHER]}, "the response is a whole chat, and it does not begin with"),
        ({"margin": "big"}, "margin is not a finite number"),
        ({"margin": float("nan")}, "margin is not a finite number"),
        ({"weight": 10**400}, "weight is not a finite number"),
        ({"probability": 1.5}, "the probability is *; it must be in [*, *]"),
        ({"weight": -1}, "the weight is *; it must be finite, and * or more"),
        ({"tie": "yes"}, "tie is neither true nor false"),
        (None, "the row is not JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_rows_are_counted_and_named(changed: dict[str, Any] | None, why: str) -> None:
    good = {"prompt": "q", "chosen": "a", "rejected": "b"}
    row = ValueError("the row is not JSON") if changed is None else {**good, **changed}
    data = parse_preferences([good, row, good, row], format="preference")
    assert len(data.examples) == 2
    assert data.rows == 4
    ((reason, count),) = data.bad.items()
    assert reason.startswith(why)
    assert count == 2
    assert [line.partition(":")[0] for line in data.first_bad] == ["row 2", "row 4"]


def test_scores_that_are_no_numbers_make_no_order() -> None:
    row = {"prompt": "q", "responses": ["a", "b", "c"], "scores": [1.0, float("nan"), 2.0]}
    data = parse_preferences([row, {**row, "scores": [1, 10**400, 2]}, {**row, "scores": [1, 3, 2]}])
    assert [example.ranks for example in data.examples if isinstance(example, Ranking)] == [(2, 0, 1)]
    assert sum(data.bad.values()) == 2


def test_ratings_are_of_one_column_unless_others_are_named() -> None:
    """A column of shares must not be filled up with marks out of ten."""
    rows = [{"prompt": "q", "response": "a", "label": True}, {"prompt": "q", "response": "b", "score": 7}]
    data = parse_preferences(rows)
    assert data.attributes == ("label",)
    assert [example.values for example in data.examples if isinstance(example, Rating)] == [(1.0,)]
    assert dict(data.bad) == {"the response has no rating": 1}
    huge = parse_preferences([{**rows[1], "score": 10**400}, rows[1]])
    assert dict(huge.bad) == {"score is neither a finite number nor true or false": 1}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"prompt": "q", "responses": ["a"], "ranks": [0]}, "it must be a list of two responses or more"),
        ({"prompt": "q", "responses": ["a", "b"], "ranks": [0, 0]}, "all responses have one rank"),
        ({"prompt": "q", "responses": ["a", "b"], "ranks": [0, 0.5]}, "whole number"),
        ({"prompt": "q", "responses": ["a", "a", "b"], "ranks": [0, 1, 2]}, "one text has two ranks"),
        ({"prompt": "q", "responses": ["a", "b"]}, "neither ranks nor scores"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_lists(row: dict[str, Any], why: str) -> None:
    (reason,) = parse_preferences([row], format="preference").bad
    assert why in reason


def test_a_file_of_which_no_row_can_be_used_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a"}\n')
    with pytest.raises(ValueError, match=r"no row of .* can be used .*the columns text fit no format"):
        read_preferences([str(path)])
    path.write_text("")
    with pytest.raises(ValueError, match="there are no rows"):
        read_preferences([str(path)])


ROWS = [{"prompt": f"q{at}", "chosen": "good\u2028line", "rejected": "bad"} for at in range(3)]


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "json", "parquet", "saved"])
def test_every_kind_of_file_holds_the_same(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{kind}"
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
    if kind == "jsonl":
        path.write_text("\ufeff" + lines + "\n", encoding="utf-8")
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(lines.encode()))
    elif kind == "json":
        path.write_text(json.dumps(ROWS, indent=1))
    else:
        datasets = pytest.importorskip("datasets")
        made = datasets.Dataset.from_list(ROWS)
        made.to_parquet(str(path)) if kind == "parquet" else made.save_to_disk(str(path))
    data = read_preferences([str(path)])
    assert [(example.prompt, example.chosen) for example in data.examples if isinstance(example, Pair)] == [
        (f"q{at}", "good\u2028line") for at in range(3)
    ]
    assert len(read_preferences([str(path)] * 2, limit=4).examples) == 4


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("gone.jsonl", None, "there is no file or folder"),
        ("rows.txt", b"{}", "a suffix that says nothing about its format"),
        ("rows.jsonl", b"\xff\xfe", "UTF-16"),
        ("rows.jsonl.gz", b"no gzip", "cannot be read"),
        ("rows.json", b"[1, 2", "not a JSON list"),
    ],
)
def test_files_that_cannot_be_read(name: str, content: bytes | None, why: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=why):
        read_preferences([str(path)])


def test_the_digest_follows_every_field() -> None:
    pair = Pair(prompt="q", chosen="a", rejected="b")
    changed = [pair, replace(pair, margin=1.0), replace(pair, tie=True), replace(pair, prompt=[USER])]
    digests = {parse_preferences([]).digest}
    digests |= {replace(parse_preferences([]), examples=(one,)).digest for one in changed}
    assert len(digests) == 5


def test_ties_can_be_dropped_and_are_counted() -> None:
    rows = [{"prompt": "q", "chosen": "a", "rejected": "b", "tie": tie} for tie in (True, False, True)]
    data = without_ties(parse_preferences(rows))
    assert (len(data.examples), data.bad) == (1, {"a tie": 2})


def pair(prompt: Any, group: str = "") -> Pair:
    return Pair(prompt=prompt, chosen="a", rejected="b", group=group)


def test_families_join_openings_and_groups_even_through_others() -> None:
    conversation = [USER, ANSWER, MORE]
    names = families(
        [pair([USER]), pair(conversation), pair("Why?"), pair("x", "g"), pair("y", "g"), pair("y"), pair("z")]
    )
    assert names[0] == names[1] == names[2]  # one first question, asked as text and as turns
    assert names[3] == names[4] == names[5]
    assert len(set(names)) == 3
    assert opening("Why? ") == opening([{"role": "system", "content": "s"}, USER])


def test_a_worked_example_before_every_question_makes_no_family() -> None:
    asked = [[USER, ANSWER, {"role": "user", "content": f"{number}?"}] for number in (1, 1, 2, 3)]
    examples = [pair(prompt, opening(prompt)) for prompt in asked[:3]] + [pair(asked[3], "g"), pair(asked[2], "g")]
    names = families(examples)
    assert names[0] == names[1]
    assert names[2] == names[3] == names[4] != names[0]
    assert len(set(families([pair(asked[0]), pair([USER])]))) == 1  # one conversation


@given(
    prompts=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=2, max_size=40),
    share=st.floats(0.05, 0.9),
    seed=st.integers(0, 5),
)
def test_no_prompt_is_on_both_sides(prompts: list[tuple[int, int]], share: float, seed: int) -> None:
    examples = [pair(f"question {prompt}", f"group {group}" if group else "") for prompt, group in prompts]
    if len(set(families(examples))) < 2:
        with pytest.raises(ValueError, match="none can be held out"):
            held_out(examples, share, seed=seed)
        return
    train, held = held_out(examples, share, seed=seed)
    assert sorted([*train, *held]) == list(range(len(examples)))
    assert train
    assert held
    for key in (lambda at: examples[at].prompt, lambda at: examples[at].group or None):
        assert not ({key(at) for at in train} & {key(at) for at in held}) - {None}


def test_the_split_is_the_same_for_rows_in_any_order_and_near_the_share() -> None:
    examples = [pair(f"question {at}") for at in range(500)]
    _, held = held_out(examples, 0.1, seed=1)
    _, turned = held_out(examples[::-1], 0.1, seed=1)
    assert {examples[at].prompt for at in held} == {examples[::-1][at].prompt for at in turned}
    assert len(held) == 50
    assert held_out(examples, 0.1, seed=2)[1] != held


def test_examples_that_share_a_prompt_with_held_out_files_are_left_out() -> None:
    assert unseen([pair("a"), pair("b", "g"), pair("c", "h")], [pair("a"), pair("z", "g")]) == [2]


def test_format_is_told_by_the_first_row() -> None:
    reading = Reading(columns={"chosen": "winner", "rejected": "loser"})
    assert format_of({"prompt": "q", "winner": "a", "loser": "b"}, reading) == "preference"


@pytest.mark.parametrize(
    ("path", "kind", "count", "bad"),
    [
        ("hh_rlhf/harmless-base_test.jsonl.gz", Pair, 2307, 5),
        ("rm_bench/chat_filtered.json", Ranking, 129, 0),
        ("rm_bench/code_filtered.json", Ranking, 228, 0),
    ],
)
def test_public_files_are_read_whole(path: str, kind: type, count: int, bad: int) -> None:
    home = os.environ.get("ADJUDGE_DATA")
    if not home:
        pytest.skip("ADJUDGE_DATA is not set")
    data = read_preferences([str(Path(home) / path)])
    assert (len(data.examples), sum(data.bad.values())) == (count, bad)
    assert {type(example) for example in data.examples} == {kind}
    train, held = held_out(data.examples, 0.1, seed=0)
    assert len(held) == pytest.approx(0.1 * count, abs=5)
    assert not {opening(data.examples[at].prompt) for at in train} & {opening(data.examples[at].prompt) for at in held}

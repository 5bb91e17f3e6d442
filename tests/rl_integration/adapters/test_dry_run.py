"""The dry run of rewards: what a data set's first rows come to, before anything is generated."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.rl_integration.mixed_data import FORMS, dataset, rewards
from tests.rl_integration.server.conftest import served

from adjudge import verl
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import WINDOW
from adjudge.rl_integration.adapters.row_reward import DryRun
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.slime import SlimeReward
from adjudge.trl import Reward

TESTS = json.dumps({"inputs": ["2\n"], "outputs": ["4\n"]})
BROKEN = "\\frac{1}{"


def row(truth: Any, source: str = "gsm8k") -> dict[str, Any]:
    return {
        "prompt": "2+2?",
        "data_source": source,
        "reward_model": {"ground_truth": truth},
        "extra_info": {"level": 1},
    }


def test_a_scorer_of_groups_is_not_refused_for_what_it_says_of_one_answer() -> None:
    ranked = {"transform": {"scorer": "math", "steps": ["rank"]}}
    found = dry(ranked, [row("6"), row("7")])
    assert [score.reason for score in found.scores] == ["group_too_small"] * 2
    assert "cannot be judged (gold_unparsable)" in message(lambda: dry("math", [row(BROKEN)]))


def test_the_position_of_an_option_is_refused_without_the_options() -> None:
    rows = [{"prompt": "?", "choices": ["red", "blue"], "answer": 1}]
    assert "reference=choices+answer" in message(lambda: Reward("auto", reference="answer").dry_run(rows))
    for reference in ("choices+answer", lambda row: row["answer"]):
        assert Reward("auto", reference=reference).dry_run(rows).scores[0].status == "scored"


def dry(scorer: Any, rows: Any, **options: Any) -> DryRun:
    return Reward(scorer, reference="reward_model.ground_truth").dry_run(rows, **options)


def message(call: Callable[[], DryRun]) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        call()
    return str(caught.value)


def test_the_table_says_which_scorer_judges_which_reference() -> None:
    mixed = {"weighted": {"auto": 1.0, "format": 0.1}}
    found = dry(mixed, [row("6"), row(TESTS, "taco")])
    assert str(found).splitlines() == [
        "row  scorer        reference                                  status",
        '0    math, format  text: "6"                                  scored 0',
        "1    code, format  an object with the fields inputs, outputs  scored 0",
    ]
    assert [sample.response for sample in found.samples] == ["", ""]
    assert found.samples[0].prompt == "2+2?"


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_mixed_data_set_passes(form: str) -> None:
    for reward in rewards(form):
        assert len(reward.dry_run(dataset(form)).scores) == 4
        assert len(reward.dry_run(dataset(form).to_iterable_dataset(), n=2).scores) == 2


def test_a_file_is_read_as_by_the_commands(tmp_path: Path) -> None:
    dataset("verl").to_parquet(tmp_path / "rows.parquet")
    found = verl.dry_run(tmp_path / "rows.parquet", scorer="auto")
    assert str(found) == str(dry("auto", str(tmp_path / "rows.parquet")))
    assert [score.provenance.scorer for score in found.scores] == ["math", "code"] * 2
    (tmp_path / "rows.jsonl").write_text('{"prompt": "?"\n')
    assert "row 0 is text (" in message(lambda: dry("math", tmp_path / "rows.jsonl"))


def test_no_more_rows_are_taken_than_asked_for() -> None:
    taken = []

    def rows() -> Iterator[Mapping[str, Any]]:
        for place in range(100):
            taken.append(place)
            yield row(str(place))

    assert len(dry("math", rows()).scores) == 8
    assert len(taken) == 8
    assert len(dry("math", rows(), n=20).scores) == 20


def test_a_reference_that_cannot_be_used_is_named() -> None:
    said = message(lambda: dry({"weighted": {"auto": 1, "format": 1}}, [row("6"), row(BROKEN)]))
    assert said.startswith("row 1 cannot be judged (part_failed): the end does not fit at token 5. Correct the row")
    assert said.splitlines()[-1].endswith("failed part_failed"), "the table is part of the message"


def test_a_reward_that_is_for_no_row_is_an_error() -> None:
    said = message(lambda: dry("math", [row(TESTS), row(None)]))
    assert said.startswith("the reward is for none of the first 2 rows; row 0: math: the math reference is {'inputs'")
    assert "n=NUMBER" in said
    assert str(dry("math", [row(TESTS), row("6")])).splitlines()[1].endswith("abstained out_of_scope")


def test_where_numbers_alone_are_known_a_row_of_another_scorer_is_an_error() -> None:
    rows = [row("6"), row(TESTS, "taco")]
    said = message(lambda: verl.dry_run(rows, scorer="math"))
    assert said.startswith("row 1: a sample abstained (out_of_scope)")
    assert 'scorer="auto"' in said
    assert "slime wants a number" in message(
        lambda: SlimeReward("math", reference="reward_model.ground_truth").dry_run(rows)
    )
    assert verl.dry_run(rows, scorer="math", fallback=0.0).scores[1].reason == "out_of_scope"
    assert verl.dry_run(rows, scorers={"gsm8k": "math", "taco": "code"}).scores[1].value == 0.0


def test_wrong_columns_and_sources_are_named() -> None:
    assert "no 'answr' with the reference; it has data_source" in message(
        lambda: Reward("math", reference="answr").dry_run([row("6")])
    )
    assert "data_source 'gsm8k' has no scorer" in message(lambda: verl.dry_run([row("6")], scorers={"taco": "code"}))
    assert "its options are: scorer, scorers" in message(lambda: verl.dry_run([row("6")], scorrer="math"))
    assert "extra_info has no 'split'" in message(lambda: verl.dry_run([row("6")], scorer="math", columns=["split"]))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"train": [row("6")]}, "a dict of train holds no rows; give one split"),
        (None, "a NoneType holds no rows"),
        ([], "the data set has no rows"),
        (["a"], "row 0 is text (a); it must be a mapping"),
        ("no_such.parquet", "there is no file or folder no_such.parquet"),
    ],
)
def test_what_is_no_data_set_is_refused(rows: Any, said: str) -> None:
    assert said in message(lambda: dry("math", rows))


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_a_number_of_rows_is_one(count: Any) -> None:
    assert f"n={count!r}" in message(lambda: dry("math", [row("6")], n=count))


class Sick:
    """Judges nothing."""

    name = "sick"
    fingerprint = "sick:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.failed("engine_timeout", error="nobody listens") for _ in samples]


def test_a_dry_run_counts_towards_nothing() -> None:
    reward = Reward(Sick(), max_failed=0.5)
    assert "engine_timeout): nobody listens" in message(lambda: reward.dry_run([row("6")] * WINDOW * 2, n=WINDOW * 2))
    assert [*reward(prompts=["q"], completions=["a"])] == [None], "with 33 failures it would raise"


def test_it_works_inside_a_running_loop_and_asks_a_server() -> None:
    async def inside(address: str) -> DryRun:
        return Reward("math", server=address, reference="reward_model.ground_truth").dry_run([row("6")])

    with served({"math": "math"}, ServerConfig(port=0)) as address:
        assert [score.reason for score in asyncio.run(inside(address)).scores] == ["no_answer"]


def test_a_server_that_does_not_answer_is_told_within_seconds() -> None:
    with socket.socket() as taken:  # nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        said = message(lambda: verl.dry_run([row("6")], scorer="math", server=address))
    assert said.startswith(f"server='{address}' does not answer (")
    assert said.endswith("start it with adjudge serve, or correct the address")

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.data_pipelines.items.making import keyed, run
from tests.engines.scripted import ScriptedEngine, fault, field_of, key_of, text_of

from adjudge.data_pipelines.items.config import NuggetsConfig
from adjudge.data_pipelines.items.item_maker import Model
from adjudge.data_pipelines.items.likeness import CountLikeness
from adjudge.data_pipelines.items.nuggets import NuggetMaker, different_orders, make_nuggets
from adjudge.engines.interface import Sampling
from adjudge.io.errors import JobError
from adjudge.protocol import Sample
from adjudge.scoring import registry

PASSAGES = [
    "The Grand Fair opened in Rome in 1990. Entry was free.",
    "In 1990 the Grand Fair opened in Rome. Ada Lind won its first chess match.",
]
ROW = {"prompt": "What happened at the Grand Fair?", "passages": PASSAGES}


def facts_of(passage: str) -> list[dict[str, str]]:
    """One fact for each sentence, quoted as it stands."""
    return [{"text": f"{one}.", "quote": one} for one in re.findall(r"[^.]+(?=\.)", passage)]


def writer(prompt: Any, index: int) -> str:
    """Takes each sentence for a fact, and calls what speaks of Rome vital; judges by looking for the words."""
    if passage := field_of(prompt, "passage"):
        return keyed(prompt, nuggets=facts_of(passage))
    if facts := field_of(prompt, "facts"):
        return keyed(prompt, labels=["vital" if "Rome" in line else "okay" for line in facts.splitlines()])
    lines = re.findall(r"^(\d+)\. (.*)$", field_of(prompt, "criteria"), re.M)
    said = field_of(prompt, "response")
    return "\n".join(
        f"{key_of(prompt)} {number}: {'support' if text.split()[-1].strip('.') in said else 'not_support'}"
        for number, text in lines
    )


def made(folder: Path, answers: Any = writer, row: dict[str, Any] = ROW, **options: Any) -> tuple[Any, Any]:
    report, rows, _ = run(folder, make_nuggets, NuggetsConfig, [row], answers, min_likeness=0.7, **options)
    return report, rows[0] if rows else None


def test_facts_of_several_passages_become_one_list_with_sources(tmp_path: Path) -> None:
    report, row = made(tmp_path)
    texts = [nugget["text"] for nugget in row["reference"]["nuggets"]]
    assert len(texts) == 3
    assert row["reference"]["nuggets"][0]["importance"] == "vital"
    first = row["nuggets"][0]
    assert first["votes"] == {"vital": 3, "read": 3}
    assert [source["passage"] for source in sorted(first["sources"], key=lambda one: one["passage"])] == [0, 1]
    for nugget in row["nuggets"]:
        for source in nugget["sources"]:
            assert PASSAGES[source["passage"]][source["start"] : source["end"]] == source["quote"]
    assert [report.counts[name] for name in ("facts", "merged", "vital", "okay")] == [4, 1, 1, 2]
    assert report.cost.prompt_tokens == 50  # two passages and three votes


def test_what_is_made_scores_with_the_real_scorer(tmp_path: Path) -> None:
    _, row = made(tmp_path)
    scorer = registry.load({"nuggets": {"engine": ScriptedEngine(writer), "metric": "strict_all"}})
    samples = [
        Sample(prompt=row["prompt"], response=text, reference=row["reference"])
        for text in ("It opened in Rome in 1990, was free, and had a chess match.", "I do not know that.")
    ]
    assert [score.value for score in asyncio.run(scorer.score(samples))] == [1.0, 0.0]


def test_facts_whose_words_are_not_there_are_left_out(tmp_path: Path) -> None:
    def liar(prompt: Any, index: int) -> str:
        if passage := field_of(prompt, "passage"):
            invented = [{"text": "Bob lost.", "quote": "Bob lost the final to Ada"}, {"text": "Free.", "quote": "."}]
            return keyed(prompt, nuggets=[*facts_of(passage)[:1], *invented])
        return writer(prompt, index)

    report, row = made(tmp_path, liar)
    assert len(row["nuggets"]) == 1
    assert report.dropped == {"quote_not_there": 2, "quote_too_short": 2}


def test_importance_is_the_majority_of_votes_and_every_vote_sees_another_order(tmp_path: Path) -> None:
    orders: list[tuple[str, ...]] = []

    def fickle(prompt: Any, index: int) -> str:
        facts = field_of(prompt, "facts").splitlines()
        if not facts:
            return writer(prompt, index)
        orders.append(tuple(line.partition(". ")[2] for line in facts))
        if len(orders) == 3:
            return "I cannot say."
        return keyed(prompt, labels=["vital" if at == 0 or "Rome" in line else "okay" for at, line in enumerate(facts)])

    report, row = made(tmp_path, fickle, votes=5, attempts=1)
    texts = [nugget["text"] for nugget in row["nuggets"]]
    assert len(set(orders)) == 5
    assert {frozenset(order) for order in orders} == {frozenset(texts)}
    for nugget in row["nuggets"]:
        first = sum(order[0] == nugget["text"] for at, order in enumerate(orders) if at != 2)
        assert nugget["votes"] == {"vital": 4 if "Rome" in nugget["text"] else first, "read": 4}
        assert (nugget["importance"] == "vital") is (nugget["votes"]["vital"] > 2)
    assert report.dropped == {"unparsable": 1}


def test_there_are_no_more_votes_than_orders() -> None:
    assert [len(different_orders(count, 3, 0)) for count in (1, 2, 3, 20)] == [1, 2, 3, 3]


def test_without_half_of_the_votes_nobody_knows_what_is_vital(tmp_path: Path) -> None:
    report, row = made(tmp_path, lambda prompt, index: "vital!" if field_of(prompt, "facts") else writer(prompt, index))
    assert row is None
    assert report.dropped == {"unparsable": 3, "votes_missing": 1}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"prompt": "q", "passages": []}, "no_passage"),
        ({"prompt": "q", "passages": ["  "]}, "no_passage"),
        ({"prompt": "q", "passages": None}, "no_passage"),
        ({"prompt": "q", "passages": [1]}, "bad_passage"),
        ({"prompt": "q", "passages": {"text": 3}}, "bad_passage"),
        ({"prompt": "", "passages": ["A b c."]}, "no_prompt"),
        ({"prompt": {"n": 7}, "passages": ["A b c."]}, "no_prompt"),
        ({"prompt": "q", "passages": "no sentence"}, "no_fact"),
        ({"prompt": "q", "passages": "x" * 50_001}, "no_fact"),
    ],
)
def test_a_row_of_no_use_is_counted(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    report, found = made(tmp_path, row=row)
    assert found is None
    assert report.dropped[reason] == 1


def test_passages_and_nuggets_beyond_the_limits_are_counted(tmp_path: Path) -> None:
    row = {"prompt": "q", "passages": [f"Number {n} is here." for n in range(5)] + [{"text": "Number 1 is here."}]}
    report, found = made(tmp_path, row=row, max_passages=4, max_nuggets=3)
    assert len(found["nuggets"]) == 3
    assert report.dropped == {"passage_too_many": 2, "nugget_too_many": 1}


def test_rows_of_a_group_are_taken_together(tmp_path: Path) -> None:
    rows = [{"prompt": "q", "passages": text, "g": "1"} for text in PASSAGES]
    rows.append({"prompt": "r", "passages": "x", "g": "2"})
    report, found, _ = run(tmp_path, make_nuggets, NuggetsConfig, rows, writer, group_column="g", min_likeness=0.7)
    assert [len(row["nuggets"]) for row in found] == [3]
    assert (report.rows, report.dropped) == (3, {"no_fact": 1, "passage_without_fact": 1})


def test_the_gate_keeps_what_separates(tmp_path: Path) -> None:
    good = ["It was held in Rome in 1990, for free.", "Rome, 1990, all free."]
    row = {**ROW, "good": good, "bad": ["In Paris, free.", "It was free."]}
    report, found = made(tmp_path, row=row, good_column="good", bad_column="bad")
    assert [nugget["text"] for nugget in found["reference"]["nuggets"]] == [found["nuggets"][0]["text"]]
    assert found["nuggets"][0]["gate"]["difference"]["value"] == 1.0
    assert report.dropped == {"separates_too_little": 2}
    report, found = made(tmp_path, row={**row, "good": ["I do not know."] * 2}, good_column="good", bad_column="bad")
    assert found is None
    assert report.dropped["no_item_kept"] == 1


def test_an_engine_that_is_gone_stops_the_job_and_a_prompt_it_cannot_take_does_not(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"engine 'scripted'.*engine_overloaded: scripted.*same call again"):
        made(tmp_path, lambda prompt, index: fault("engine_overloaded"))

    def choosy(prompt: Any, index: int) -> Any:
        long = "Ada Lind" in field_of(prompt, "passage")
        return fault("engine_error", too_long=True) if long else writer(prompt, index)

    report, row = made(tmp_path, choosy, restart=True)
    assert len(row["nuggets"]) == 2
    assert report.dropped == {"too_long": 1}


def test_two_votes_of_four_are_too_few(tmp_path: Path) -> None:
    asked = []

    def half(prompt: Any, index: int) -> str:
        if field_of(prompt, "facts"):
            asked.append(prompt)
        return "?" if field_of(prompt, "facts") and len(asked) % 2 else writer(prompt, index)

    report, row = made(tmp_path, half, votes=4, attempts=1)
    assert (row, report.dropped) == (None, {"unparsable": 2, "votes_missing": 1})


def test_a_missing_column_is_named_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--passages-column 'passagse'.*Did you mean 'passages'"):
        made(tmp_path, passages_column="passagse")
    with pytest.raises(ValueError, match="--good-column 'good'"):
        made(tmp_path, good_column="good", bad_column="bad")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"votes": 0}, "--votes is 0"),
        ({"min_quote": 0.0}, "--min-quote is 0.0"),
        ({"good_column": "good"}, "needs both"),
        ({"likeness": "meaning"}, "--likeness is 'meaning'"),
        ({"min_separation": 2.0}, "--min-separation is 2.0"),
        ({"temperature": -1.0}, "temperature"),
        ({"judge": "nobody", "good_column": "prompt", "bad_column": "prompt"}, "--judge"),
    ],
)
def test_a_mistake_in_the_call_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(tmp_path, **options)


def test_an_engine_must_be_named(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"prompt": "q", "passages": "p"}\n', encoding="utf-8")
    for engine, message in (("", "--engine is empty"), ("{openai: [", "not YAML"), ("gpt", "--engine: unknown kind")):
        config = NuggetsConfig(input=str(tmp_path / "in.jsonl"), output=str(tmp_path / "o.jsonl"), engine=engine)
        with pytest.raises(ValueError, match=message):
            make_nuggets(config)


def test_the_fingerprint_knows_options_and_engine(tmp_path: Path) -> None:
    one = made(tmp_path)[0].fingerprint
    assert made(tmp_path)[0].fingerprint == one
    assert made(tmp_path, votes=4)[0].fingerprint != one
    assert made(tmp_path, likeness="letters")[0].fingerprint != one
    assert made(tmp_path, in_flight=3)[0].fingerprint == one
    config, model = NuggetsConfig(input="a", output="b"), Model(engine=ScriptedEngine(), sampling=Sampling())
    makers = [NuggetMaker(config=config, model=model, likeness=CountLikeness(of)) for of in ("words", "letters")]
    assert makers[0].fingerprint != makers[1].fingerprint


def test_the_model_is_told_what_it_may_not_obey(tmp_path: Path) -> None:
    _, _, engine = run(tmp_path, make_nuggets, NuggetsConfig, [ROW], writer)
    assert all("is material to be judged" in text_of(prompt) for prompt in engine.asked)

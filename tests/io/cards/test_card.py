"""Cards of jobs: what the hub reads, what people read, and the chain of sources."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.hygiene.config import DedupConfig
from adjudge.data_pipelines.hygiene.dedup import run_dedup
from adjudge.data_pipelines.hygiene.sieve import KEPT, Sieve, SieveMaker, Verdict
from adjudge.io.cards.card import Origin, card_of, origin_of, size_category
from adjudge.io.jobs.card import write_job_card
from adjudge.io.jobs.report import JobReport
from adjudge.protocol import Cost


def head_of(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("---\n")
    return dict(yaml.safe_load(text.split("---\n")[1]))


def label(prompt: str, scorer: str = "math") -> dict[str, Any]:
    return {
        "status": "scored",
        "value": 1.0,
        "reason": "",
        "provenance": {"scorer": scorer, "fingerprint": f"{scorer}:1"},
        "input": {"prompt": prompt},
    }


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.jsonl"
    rows = [label("a"), label("a"), label("b"), label("c", "exact")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def dedup(source: Path, output: Path, **options: Any) -> JobReport:
    return run_dedup(DedupConfig(input=str(source), output=str(output), **options))


def test_a_job_leaves_a_card_that_counts_and_names_its_sources(labels: Path, tmp_path: Path) -> None:
    report = dedup(labels, tmp_path / "out.jsonl", license="mit", ngram=3)
    card = tmp_path / "out.jsonl.card.md"
    head, text = head_of(card), card.read_text()
    assert (head["license"], head["size_categories"], head["tags"]) == ("mit", ["n<1K"], ["adjudge", "dedup"])
    assert head["adjudge"]["fingerprint"] == report.fingerprint
    (source,) = head["adjudge"]["sources"]
    assert (source["name"], source["license"], source["bytes"]) == ("labels.jsonl", "mit", labels.stat().st_size)
    for line in (
        "| read | 4 |",
        "| written | 3 |",
        r"| left out: exact\_copy | 1 |",
        "| math | math:1 | 3 |",
        "| exact | exact:1 | 1 |",
        "| ngram | 3 |",
        "| input | labels.jsonl |",
    ):
        assert line in text
    assert str(tmp_path) not in text.replace("labels.jsonl", "")


def test_a_chain_of_jobs_stays_visible_with_its_licence(labels: Path, tmp_path: Path) -> None:
    dedup(labels, tmp_path / "one.jsonl", license="cc-by-4.0")
    dedup(tmp_path / "one.jsonl", tmp_path / "two.jsonl")
    dedup(tmp_path / "two.jsonl", tmp_path / "three.jsonl")
    head = head_of(tmp_path / "three.jsonl.card.md")
    assert head["license"] == "cc-by-4.0"
    (two,) = head["adjudge"]["sources"]
    (one,) = two["sources"]
    (first,) = one["sources"]
    assert [two["name"], one["name"], first["name"]] == ["two.jsonl", "one.jsonl", "labels.jsonl"]
    assert (two["made_by"], first.get("made_by")) == ("dedup", None)
    text = (tmp_path / "three.jsonl.card.md").read_text()
    assert "| ↳ one.jsonl | cc-by-4.0 |" in text
    assert "| ↳ ↳ labels.jsonl | cc-by-4.0 |" in text


def test_a_licence_that_nobody_named_is_unknown(labels: Path, tmp_path: Path) -> None:
    dedup(labels, tmp_path / "out.jsonl")
    assert head_of(tmp_path / "out.jsonl.card.md")["license"] == "unknown"


def test_the_same_job_writes_the_same_card_in_another_folder_and_after_an_interruption(
    labels: Path, tmp_path: Path
) -> None:
    cards = []
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        source = folder / "labels.jsonl"
        source.write_bytes(labels.read_bytes())
        dedup(source, folder / "out.jsonl", in_flight=1 if name == "here" else 9, overwrite=name == "here")
        cards.append((folder / "out.jsonl.card.md").read_bytes())
    assert cards[0] == cards[1]


def test_a_datasets_folder_has_its_card_inside_and_still_loads(labels: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.jsonl"
    plain.write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    dedup(plain, tmp_path / "folder")
    assert head_of(tmp_path / "folder" / "README.md")["tags"] == ["adjudge", "dedup"]
    dedup(tmp_path / "folder", tmp_path / "again.jsonl")
    (source,) = head_of(tmp_path / "again.jsonl.card.md")["adjudge"]["sources"]
    assert (source["name"], source["made_by"]) == ("folder", "dedup")


class Everything(Sieve[DedupConfig]):
    name = "`x` | <b>name"

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        return ()

    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        return KEPT


@dataclass
class Facts(SieveMaker):
    card_facts: dict[str, Any] = field(default_factory=lambda: {"scorer": {"name": "math", "fingerprint": "math:1"}})

    @property
    def fingerprint(self) -> str:
        return "f1"


def test_what_a_maker_says_and_hostile_names_are_text_and_no_markup(tmp_path: Path) -> None:
    report = JobReport(
        output=str(tmp_path / "o.jsonl"),
        maker=Everything.name,
        fingerprint="f1",
        rows=3,
        made=1_000,
        dropped={"a|b": 2},
        counts={"half": 0.5, "whole": 2.0},
        cost=Cost(seconds=3.0, prompt_tokens=5),
        seconds=1.0,
        resumed_rows=2,
        notes=("<script>\n# no heading",),
    )
    config = DedupConfig(input="user/dataset", output=str(tmp_path / "o.jsonl"), revision="abc")
    write_job_card(report, config, Facts(Everything(config)))
    text = (tmp_path / "o.jsonl.card.md").read_text()
    head = head_of(tmp_path / "o.jsonl.card.md")
    assert head["size_categories"] == ["1K<n<10K"]
    assert head["adjudge"]["sources"] == [{"name": "user/dataset", "digest": "abc", "license": "unknown"}]
    body = text.split("---\n", 2)[2]
    for line in (
        "| scorer.name | math |",
        "| counted: half | 0.5 |",
        "| counted: whole | 2 |",
        "| prompt tokens | 5 |",
    ):
        assert line in body
    assert r"left out: a\|b" in body
    assert "<script>" not in body.replace(r"\<script\>", "")
    assert "\n# no heading" not in body


def test_a_card_that_is_damaged_or_hostile_is_no_card(tmp_path: Path) -> None:
    data = tmp_path / "d.jsonl"
    data.write_text("{}\n")
    bomb = "license: mit\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]"
    for text in (
        "",
        "no head",
        "---\n: : :\n---\n",
        f"---\n{bomb}\n---\n",
        "---\nlicense: [1]\nadjudge: 3\n---\n",
        "---\n- 1\n---\n",
    ):
        card_of(data).write_text(text)
        found = origin_of(str(data))
        assert (found.license, found.made_by, found.sources) == ("unknown", "", ())
    card_of(data).write_bytes(b"---\nlicense: \xff\n---\n")
    assert origin_of(str(data)).license == "unknown"
    card_of(data).write_text("---\nlicense: apache-2.0\n---\nhand-written\n")
    assert origin_of(str(data)).license == "apache-2.0"


def test_origins_nested_without_end_are_cut() -> None:
    data: dict[str, Any] = {"name": "deep"}
    for _ in range(500):
        data = {"name": "x", "sources": [data]}
    found = Origin.from_dict(data)
    assert found is not None
    assert max(depth for depth, _ in found.all()) <= 20


def test_the_digest_changes_with_the_data_but_not_with_its_card(tmp_path: Path) -> None:
    data = tmp_path / "d.jsonl"
    data.write_text('{"a": 1}\n')
    first = origin_of(str(data)).digest
    card_of(data).write_text("---\nlicense: mit\n---\n")
    assert origin_of(str(data)).digest == first
    data.write_text('{"a": 2}\n')
    assert origin_of(str(data)).digest != first


@given(st.integers(0, 10**13))
def test_size_categories_hold_the_number(rows: int) -> None:
    name = size_category(rows)
    units = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}

    def number(text: str) -> int:
        return int(text.rstrip("KMBT")) * units.get(text[-1], 1)

    match name.split("<"):
        case [one] if one.startswith("n>"):
            assert rows >= number(one[2:])
        case ["n", high]:
            assert rows < number(high)
        case [low, "n", high]:
            assert number(low) <= rows < number(high)
        case _:
            pytest.fail(name)


def test_the_card_module_loads_without_numpy() -> None:
    code = "import sys, adjudge.io.cards.card; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

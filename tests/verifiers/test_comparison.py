"""The comparison with other verifiers: each call is counted as what it was, and the page says what was seen."""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib.metadata import version
from pathlib import Path

import platformdirs
import pytest
from benchmarks.comparison.__main__ import MOST_HANGS, Options, judged, main
from benchmarks.comparison.page import BEGIN, END, MOST_BYTES, Judged, Result, cells, differences, write
from benchmarks.comparison.peers import PEERS as REAL
from benchmarks.comparison.rows import LabelledRow, LabelledSet
from benchmarks.comparison.sets import all_sets
from benchmarks.comparison.worker import ROOT, Asked, Outcome
from tests.verifiers.comparison_peers import PEERS

from adjudge.protocol import Sample

MODULE = "tests.verifiers.comparison_peers"
isolated = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def row(name: str, label: bool, response: str = "", **extra: object) -> LabelledRow:
    sample = Sample(prompt="", response=response, id=name, extra={"asked": True, **extra})
    return LabelledRow(sample=sample, label=label, shown={"answer": response})


def asked(name: str, *rows: LabelledRow, limit: float = 60.0) -> Judged:
    one = Asked(MODULE, "any", name, folders=[], visible=[], limit=limit)
    return judged(one, PEERS["any"][name], {"set": rows})["set"]


def outcome(verdict: str, seconds: float = 1.0) -> Outcome:
    return Outcome(verdict=verdict, seconds=seconds)


@isolated
def test_each_call_is_counted_as_what_it_was() -> None:
    responses = ("right", "wrong", "abstain", "raise", "print", "leave", "right")
    rows = [row(str(at), at != 1, response) for at, response in enumerate(responses)]
    found = asked("says", *rows, row("another form", True, "right", asked=None))
    assert found.title == f"says {version('adjudge')}"
    said = [one.verdict for one in found.outcomes.values()]
    assert said == ["accepts", "rejects", "undecided", "crashed", "rejects", "crashed", "accepts"]
    assert [one.error for one in found.outcomes.values() if one.error] == ["SystemExit: no", "the process is gone"]
    assert [*cells(found, rows)][1:6] == ["7", "0", "1", "1", "2"]


@isolated
def test_a_call_that_hangs_is_ended_and_the_verifier_not_asked_for_ever() -> None:
    found = asked("says", *[row(str(at), True, "hang") for at in range(MOST_HANGS + 1)], limit=0.2)
    assert [one.verdict for one in found.outcomes.values()] == ["hangs"] * MOST_HANGS
    assert [*cells(found, [])][1] == str(MOST_HANGS)


@isolated
@pytest.mark.parametrize(("name", "why"), [("lacking", "No module named 'other'"), ("absent", "no-such-package")])
def test_what_a_verifier_lacks_stands_in_its_line(name: str, why: str) -> None:
    found = asked(name, row("0", True))
    assert why in found.missing
    assert why in [*cells(found, [])][1]


@isolated
def test_the_code_of_others_cannot_change_files() -> None:
    assert asked("writes", row("0", True)).outcomes["0"].verdict == "rejects"


def results() -> list[Result]:
    rows = [row("a", True, "x" * 999), row("b", False), row("c", False), row("d", True)]
    said = {
        "adjudge": ["accepts", "rejects", "accepts", "accepts"],
        "other": ["rejects", "rejects", "rejects", "accepts"],
    }
    told = {
        name: Judged(
            title=name, outcomes={one.sample.id: outcome(verdict) for one, verdict in zip(rows, verdicts, strict=True)}
        )
        for name, verdicts in said.items()
    }
    of = LabelledSet(name="A set", task="math", labels="us", make=list)
    return [Result(of=of, rows=rows, total=9, judged=told)]


def test_the_rows_that_differ_are_told_and_our_mistakes_come_first() -> None:
    found = differences(results())
    assert [line["row"] for line in found] == ["c", "a"]
    assert found[0] == {
        "set": "A set", "row": "c", "label": "wrong", "answer": "", "accepts": ["adjudge"], "rejects": ["other"]
    }  # fmt: skip
    assert len(found[1]["answer"]) == 163


def test_the_first_call_is_not_timed() -> None:
    outcomes = {"a": outcome("accepts", 50.0), "b": outcome("accepts", 0.002), "c": outcome("rejects", 0.004)}
    assert Judged(title="", outcomes=outcomes).seconds == pytest.approx(3.0)


def test_tables_stand_between_their_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n", encoding="utf-8")
    write(page, results(), "new", "Today.")
    text = page.read_text(encoding="utf-8")
    assert text == f"Before.\n{BEGIN}\n\nToday. Rows that differ: 2, of which the file has 2.\n\nnew\n\n{END}\nAfter.\n"
    lines = (tmp_path / "page" / "differences.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["row"] for line in lines] == ["c", "a"]
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="add them"):
        write(page, results(), "new", "Today.")


@pytest.mark.skipif("ADJUDGE_DATA" not in os.environ, reason="ADJUDGE_DATA is not set")
def test_the_command_judges_a_few_rows_of_every_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The verifiers have another home; without this one would compile Yosys there.
    monkeypatch.setenv("YOWASP_CACHE_DIR", platformdirs.user_cache_dir("YoWASP", appauthor=False))
    page = tmp_path / "comparison.md"
    page.write_text(f"{BEGIN}{END}", encoding="utf-8")
    sets = ("MATH", "HumanEval", "IFEval, strict", "defog", "Attacks on Verilog")
    main(Options(rows=2, sets=sets, verifiers=("adjudge",), page=str(page)))
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^### (\w+)", text, re.MULTILINE)[:5] == ["MATH", "HumanEval", "IFEval", "defog", "Attacks"]
    assert text.count(f"| adjudge {version('adjudge')} | 2 | 0 | 0 | ") == 5
    assert "open-instruct" in text


def test_the_page_has_every_set_and_its_file_is_small(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    names = [one.name for one in all_sets(tmp_path)]
    assert re.findall(r"^### (.+)$", text.partition(BEGIN)[2].partition(END)[0], re.MULTILINE)[: len(names)] == names
    assert {one.task for one in all_sets(tmp_path)} == set(REAL)
    file = ROOT / "docs" / "comparison" / "differences.jsonl"
    assert file.stat().st_size <= MOST_BYTES
    assert {json.loads(line)["set"] for line in file.read_text(encoding="utf-8").splitlines()} <= set(names)

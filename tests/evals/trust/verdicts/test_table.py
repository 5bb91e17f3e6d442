from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.evals.results import written

from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.data_pipelines.label.job import run_label
from adjudge.evals.trust.verdicts import (
    MISSING,
    NOTHING,
    Verdict,
    VerdictConfig,
    read_verdicts,
    texts_of,
    verdict_of,
)


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (0.5, Verdict(0.5, "scored")),
        (True, Verdict(1.0, "scored")),
        (" 0.25 ", Verdict(0.25, "scored")),
        ("A>B", Verdict("A>B", "scored")),
        ("1_0", Verdict("1_0", "scored")),
        ("", NOTHING),
        (None, NOTHING),
        (float("nan"), Verdict(None, "failed", "not_finite")),
        ("inf", Verdict(None, "failed", "not_finite")),
        (10**400, Verdict(None, "failed", "not_finite")),
        ({"value": 1, "status": "scored", "reason": "wrong"}, Verdict(1.0, "scored", "wrong")),
        (
            {"value": None, "status": "abstained", "reason": "low_confidence"},
            Verdict(None, "abstained", "low_confidence"),
        ),
        ({"value": None}, Verdict(None, MISSING)),
        ({"value": float("nan"), "status": "scored"}, Verdict(None, "failed", "not_finite")),
    ],
)
def test_a_cell_says_a_number_a_label_or_nothing(cell: Any, told: Verdict) -> None:
    assert verdict_of(cell) == told


@pytest.mark.parametrize(
    "cell", [[1], {"score": 1}, {"value": 1, "status": "failed"}, {"value": None, "status": "scored"},
             {"value": 1, "status": "done"}]
)  # fmt: skip
def test_other_cells_are_refused(cell: Any) -> None:
    with pytest.raises(ValueError, match=r"verdict|object|a score is one"):
        verdict_of(cell)


def test_what_a_label_job_wrote_is_read_back(tmp_path: Path) -> None:
    rows = [
        {"id": f"q{at}", "prompt": f"{at} + 1?", "response": ["\\boxed{1}", "no"], "answer": "1"} for at in range(3)
    ]
    source = written(tmp_path, rows)
    for suffix in ("jsonl", "parquet"):
        output = str(tmp_path / f"labels.{suffix}")
        run_label(LabelConfig(input=source, output=output, scorer="exact", keep_columns=True, workers=1))
        config = VerdictConfig(input=output)
        table = read_verdicts(config, ())
        assert table.ids == [f"q{at}/{place}" for at in range(3) for place in range(2)]
        assert table.groups == [f"group q{at}" for at in range(3) for _ in range(2)]
        assert [one.value for one in table.verdicts["value"]] == [1.0, 0.0] * 3
        assert table.who["value"]["name"] == "exact"
        assert table.facts["rows"] == 6
        assert texts_of(config, [3])[3][0] == "1 + 1?"


def test_scores_by_name_are_raters(tmp_path: Path) -> None:
    rows = [{"id": "a", "scores": {"x": {"value": 1, "status": "scored"}, "y": None}, "not_asked": ["y"]}]
    table = read_verdicts(VerdictConfig(input=written(tmp_path, rows)), ())
    assert table.verdicts == {"x": [Verdict(1.0, "scored")], "y": [NOTHING]}
    named = read_verdicts(VerdictConfig(input=written(tmp_path, rows)), ("z=scores.x", "scores.y"))
    assert list(named.verdicts) == ["z", "scores.y"]


def test_rows_stand_for_themselves_where_asked_and_broken_ones_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, [{"id": "a", "group": "g", "s": 1}, {"id": "b", "group": "g", "s": 0}])
    with Path(path).open("a", encoding="utf-8") as file:
        file.write('{"id": "c", "s"\n')
    table = read_verdicts(VerdictConfig(input=path, group_column="-"), ("s",))
    assert table.groups == ["row 0", "row 1"]
    assert len(table.unreadable) == 1
    assert len(read_verdicts(VerdictConfig(input=path, limit=1), ("s",)).ids) == 1
    with pytest.raises(ValueError, match=r"--group-column 'grp'.*Did you mean 'group'"):
        read_verdicts(VerdictConfig(input=path, group_column="grp"), ("s",))


def test_answers_to_one_prompt_belong_together(tmp_path: Path) -> None:
    rows = [{"id": str(at), "prompt": f"q{at // 2}", "response": str(at % 2), "reference": "1"} for at in range(4)]
    path = written(tmp_path, rows)
    said, alone = (read_verdicts(VerdictConfig(input=path, group_column=group), ("reference",)) for group in ("", "-"))
    assert len(set(alone.groups)) == 4
    out = tmp_path / "labelled.jsonl"
    run_label(LabelConfig(input=path, output=str(out), scorer="exact", keep_columns=True, workers=1))
    for table in (said, read_verdicts(VerdictConfig(input=str(out)), ())):
        assert [table.groups.index(group) for group in table.groups] == [0, 0, 2, 2]
    named = VerdictConfig(input=str(out), group_column="input.prompt")
    assert len(set(read_verdicts(named, ("reference",), path=path).groups)) == 2, "the other file has no such column"

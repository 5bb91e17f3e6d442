"""The five kinds as jobs: formats, the number of rows under way, resuming, cards, the command line, a real model."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.data_pipelines.items import test_keywords, test_nuggets, test_principles, test_rubrics
from tests.engines.scripted import ScriptedEngine, fault

from adjudge.data_pipelines.items.config import KeywordsConfig, NuggetsConfig, PrinciplesConfig, RubricsConfig
from adjudge.data_pipelines.items.keywords import make_keywords
from adjudge.data_pipelines.items.nuggets import make_nuggets
from adjudge.data_pipelines.items.principles import make_principles
from adjudge.data_pipelines.items.rubrics import make_rubrics
from adjudge.io.errors import JobError
from adjudge.io.row import Cursor
from adjudge.io.source import open_source

KINDS: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "nuggets": (make_nuggets, NuggetsConfig, test_nuggets.writer, test_nuggets.ROW),
    "principles": (
        make_principles,
        PrinciplesConfig,
        test_principles.reader(test_principles.SAID),
        test_principles.ROW,
    ),
    "rubrics": (make_rubrics, RubricsConfig, test_rubrics.writer(), test_rubrics.ROW),
    "keywords": (make_keywords, KeywordsConfig, test_keywords.writer(), test_keywords.ROW),
}


def given(folder: Path, row: dict[str, Any], times: int = 6) -> str:
    lines = [json.dumps({**row, "prompt": f"{row['prompt']} {n}"}) for n in range(times)]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(folder / "in.jsonl")


@pytest.mark.parametrize("kind", KINDS)
def test_parquet_and_lines_hold_the_same_rows_and_the_card_names_the_model(tmp_path: Path, kind: str) -> None:
    make, config, answers, row = KINDS[kind]
    source = given(tmp_path, row)
    for name in ("out.jsonl", "out.parquet"):
        make(config(input=source, output=str(tmp_path / name)), engine=ScriptedEngine(answers))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    table = [one.data for one in open_source(str(tmp_path / "out.parquet"), limit=1 << 20).rows(Cursor())]
    assert len(lines) == len(table) > 0
    for line, other in zip(lines, table, strict=True):
        assert other is not None
        assert list(line) == list(other)
        assert other["reference"] == line["reference"]
    card = (tmp_path / "out.jsonl.card.md").read_text(encoding="utf-8")
    assert "scripted:script" in card
    assert f"{kind}_" in card.replace("\\", "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_lost_its_engine_goes_on_to_the_same_bytes(tmp_path: Path, kind: str) -> None:
    make, config, answers, row = KINDS[kind]
    source = given(tmp_path, row)
    make(config(input=source, output=str(tmp_path / "whole.jsonl"), in_flight=1), engine=ScriptedEngine(answers))
    asked, lock = [0], threading.Lock()

    def dying(prompt: Any, index: int) -> Any:
        with lock:
            asked[0] += 1
        return fault("engine_unavailable") if asked[0] > 4 else answers(prompt, index)

    again = config(input=source, output=str(tmp_path / "out.jsonl"), in_flight=4)
    with pytest.raises(JobError, match="engine_unavailable"):
        make(again, engine=ScriptedEngine(dying))
    assert not (tmp_path / "out.jsonl").exists()
    make(again, engine=ScriptedEngine(answers))
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_real_model_that_writes_nonsense_makes_nothing_and_says_so(tmp_path: Path) -> None:
    from tests.engines.tiny_models import write_model

    model = tmp_path / "model"
    write_model(model)
    config = NuggetsConfig(
        input=given(tmp_path, test_nuggets.ROW, 2),
        output=str(tmp_path / "out.jsonl"),
        engine=f"{{transformers: {{model: {model}, device: cpu}}}}",
        max_tokens=4,
    )
    report = make_nuggets(config)
    assert (report.rows, report.made) == (2, 0)
    assert report.dropped["no_fact"] == 2
    assert report.dropped.get("too_long", 0) + report.dropped.get("truncated", 0) == 4

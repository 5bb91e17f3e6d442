"""Options of a label job."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.data_pipelines.label.test_job import ROWS, Equal, jsonl, label

from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.io.columns import ColumnOptions
from adjudge.io.jobs.config import Files
from adjudge.io.source import DatasetChoice
from adjudge.protocol import Sample, Score
from adjudge.runtime.pool import default_pool


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"batch_size": 0}, "--batch-size is 0"),
        ({"in_flight": 0}, "--in-flight is 0"),
        ({"max_row_mb": 0}, "--max-row-mb is 0"),
        ({"max_row_mb": 2000}, "--max-row-mb is 2000"),
        ({"limit": 0}, "--limit is 0"),
        ({"workers": 0}, "--workers is 0"),
        ({"shard": "2/2"}, "--shard is '2/2'; it must be i/n with i from 0 to n-1"),
        ({"shard": "-1/2"}, "--shard is '-1/2'"),
        ({"shard": "0/0"}, "--shard is '0/0'"),
        ({"shard": "1"}, "--shard is '1'"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        LabelConfig(input="a.jsonl", output="b.jsonl", **options)


def test_shards() -> None:
    assert LabelConfig(input="a", output="b").shard_of() == (0, 1)
    assert LabelConfig(input="a", output="b", shard="3/4").shard_of() == (3, 4)


def test_every_option_has_a_help_text() -> None:
    source = "".join(map(inspect.getsource, (LabelConfig, DatasetChoice, Files, ColumnOptions)))
    for item in dataclasses.fields(LabelConfig):
        assert re.search(rf'^    {item.name}: [^\n]*\n    """', source, re.MULTILINE), item.name


class SeesPool(Equal):
    """Notes how many workers a verifier would have."""

    def __init__(self) -> None:
        super().__init__()
        self.workers: set[int] = set()

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.workers.add(default_pool().workers)
        return await super().score(samples)


def test_the_number_of_workers_holds_for_the_job_alone(tmp_path: Path) -> None:
    before, scorer = default_pool(), SeesPool()
    label(jsonl(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl", scorer, workers=before.workers + 3)
    assert scorer.workers == {before.workers + 3}
    assert default_pool() is before

"""Notes beside a checkpoint: what is written is what is read, and what is not understood is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge.engines.checkpoint_notes import FILE, CheckpointNotes, Normalizer, template_digest
from adjudge.engines.head_config import HeadConfig

FULL = CheckpointNotes(
    what="process",
    head=HeadConfig(kind="quantile", outputs=2, levels=5, bias=True, pooling="tokens"),
    normalizer=Normalizer(0.1 + 0.2, 1e-7),
    labels=("right", "né"),
    marker="<|step|>",
    max_length=512,
    template=template_digest("{{ messages }}"),
    reasoning="keep",
    trained={"loss": "bt", "seed": 3, "held_out": {"accuracy": 2 / 3}},
)
GATED = CheckpointNotes(what="scalar", head=HeadConfig(kind="gating", outputs=3, hidden=8, depth=2, temperature=10.0))


@pytest.mark.parametrize("notes", [pytest.param(FULL, id="everything"), pytest.param(GATED, id="defaults")])
def test_notes_come_back_as_they_were(tmp_path: Path, notes: CheckpointNotes) -> None:
    notes.write(tmp_path)
    assert CheckpointNotes.read(tmp_path) == notes
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_folder_without_notes_has_none(tmp_path: Path) -> None:
    assert CheckpointNotes.read(tmp_path) is None
    assert CheckpointNotes.read(tmp_path / "no such folder") is None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        pytest.param({"version": 2}, "version 2 is not known", id="newer"),
        pytest.param({"head": {"kind": "bilinear"}}, "kind='bilinear'", id="unknown-head"),
        pytest.param({"head": {"kind": "linear", "sharpness": 2}}, "no option 'sharpness'", id="unknown-head-option"),
        pytest.param({"tone": "kind"}, "tone", id="unknown-note"),
        pytest.param({"normalizer": {"mean": 0.0, "std": 0.0}}, "std above 0", id="normalizer-without-spread"),
        pytest.param({"labels": ["one"]}, "the head has 2 outputs", id="labels-of-another-head"),
    ],
)
def test_notes_that_are_not_understood_are_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    FULL.write(tmp_path)
    record = json.loads((tmp_path / FILE).read_text(encoding="utf-8"))
    (tmp_path / FILE).write_text(json.dumps(record | changes), encoding="utf-8")
    with pytest.raises(ValueError, match=told):
        CheckpointNotes.read(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', '{"version": 1, "what": NaN'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"adjudge\.json.* cannot be read"):
        CheckpointNotes.read(tmp_path)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param({"kind": "quantile"}, "only quantile heads have levels", id="quantiles-without-levels"),
        pytest.param({"levels": 3}, "only quantile heads have levels", id="levels-without-quantiles"),
        pytest.param({"members": 3}, "give kind='multi'", id="members-of-nothing"),
        pytest.param({"outputs": 0}, "at least 1", id="no-outputs"),
        pytest.param({"outputs": True}, "whole number", id="a-boolean-for-a-number"),
        pytest.param({"kind": "gating", "pooling": "mean"}, "reads 'last'", id="gate-over-a-mean"),
        pytest.param({"temperature": 0.0}, "above 0", id="no-temperature"),
        pytest.param({"pooling": "eos"}, "last, mean, first, tokens", id="unknown-pooling"),
    ],
)
def test_heads_that_cannot_be_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        HeadConfig(**options)


@pytest.mark.parametrize(
    ("what", "pooling"), [pytest.param("process", "last", id="process"), pytest.param("scalar", "tokens", id="scalar")]
)
def test_a_model_of_steps_reads_tokens_and_no_other_does(what: Any, pooling: Any) -> None:
    with pytest.raises(ValueError, match="process models read 'tokens'"):
        CheckpointNotes(what=what, head=HeadConfig(pooling=pooling))


def test_what_json_cannot_hold_is_not_written(tmp_path: Path) -> None:
    notes = CheckpointNotes(what="scalar", head=HeadConfig(), trained={"loss": float("nan")})
    with pytest.raises(ValueError, match="plain JSON data"):
        notes.write(tmp_path)
    assert not list(tmp_path.iterdir())


def test_templates_that_differ_have_other_digests() -> None:
    texts = [None, "a", "b", {"default": "a"}, {"default": "a", "tools": "b"}]
    assert len({template_digest(text) for text in texts}) == len(texts)
    assert template_digest({"x": "1", "y": "2"}) == template_digest({"y": "2", "x": "1"})

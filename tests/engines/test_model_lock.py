"""Models are made one at a time, since `transformers` replaces methods of the process while it makes one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from adjudge.engines.model_digest import model_lock
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_weights import _loaded
from adjudge.training.backbones import ModelChoice, open_backbone
from adjudge.training.small_transformer import new_backbone


class Slow:
    """A kind of model that waits for a second thread to be at it too."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self._second = threading.Event()

    def from_pretrained(self, *_: Any, **__: Any) -> str:
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.inside == 2:
            self._second.set()
        self._second.wait(0.2)  # the second is never let in; without the lock it comes at once
        self.inside -= 1
        return "a model"


def test_two_threads_make_models_one_after_the_other() -> None:
    kind, config = Slow(), TransformersConfig(model="anything")
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: _loaded(config, kind), range(2))) == ["a model"] * 2
    assert kind.most == 1


def test_a_thread_that_makes_a_model_may_make_its_parts() -> None:
    with model_lock(), model_lock():
        pass


def test_models_opened_by_many_threads_are_tied_like_one_that_was_opened_alone(tmp_path: Path) -> None:
    from transformers import PreTrainedModel

    own = PreTrainedModel.tie_weights
    folder = new_backbone(["one two three"] * 9, tmp_path / "model")

    def opened(_: int) -> bool:
        model = open_backbone(ModelChoice(name=str(folder)), kind="causal", folder=tmp_path).language_model
        same: bool = model.lm_head.weight is model.get_input_embeddings().weight
        return same

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(opened, range(12)))
    assert PreTrainedModel.tie_weights is own


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")

"""Linear models in files: what comes back is what was saved, and whatever was tampered with is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reward_models.baselines.demo_preferences import polite_pairs
from tests.reward_models.baselines.demo_solutions import solutions

from adjudge.reward_models.baselines.features import FeatureOptions
from adjudge.reward_models.baselines.preference_model import PreferenceModel
from adjudge.reward_models.baselines.step_features import StepFeatureOptions
from adjudge.reward_models.baselines.step_model import StepModel
from adjudge.scoring import registry

Model = PreferenceModel | StepModel

KINDS: Mapping[str, tuple[str, Callable[[], Model], dict[str, Any], dict[str, Any]]] = {
    "preference model": (
        "adjudge.reward_models.baselines.preference_model:PreferenceModel",
        lambda: PreferenceModel.fit(polite_pairs(40, seed=1), features=FeatureOptions(bits=12)),
        {},
        {"output": "sigmoid"},
    ),
    "step model": (
        "adjudge.reward_models.baselines.step_model:StepModel",
        lambda: StepModel.fit(solutions(40, seed=1), features=StepFeatureOptions(bits=12), strength=1.0, split="line"),
        {"split": "line"},
        {"aggregate": "last"},
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    called: str = request.param
    home, fit, options, other = KINDS[called]
    return called, home, fit(), options, other


def test_a_saved_model_is_the_same(kind: Any, tmp_path: Path) -> None:
    _, home, model, options, other = kind
    folder = model.save(tmp_path / "model")
    assert sorted(file.name for file in folder.iterdir()) == sorted(model.files)
    loaded = registry.load({home: {"model": str(folder), **options}})
    assert isinstance(loaded, type(model))
    assert loaded.fingerprint == model.fingerprint
    assert loaded.fitted.trained == model.fitted.trained
    assert loaded.fitted.digest == model.fitted.digest
    ((name, value),) = other.items()
    assert getattr(type(model).load(folder, **other), name) == value


NOTES: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "newer format": lambda notes: {"format": 3},
    "older format": lambda notes: {"format": 1},
    "other statistics": lambda notes: {"names": {**notes["names"], "length": []}},
    "unknown option": lambda notes: {"options": {**notes["options"], "colour": 1}},
    "no number": lambda notes: {"numbers": {**notes["numbers"], "std": float("nan")}},
    "no intercept": lambda notes: {"intercept": float("nan")},
    "another number": lambda notes: {"intercept": notes["intercept"] + 1},
    "text for a number": lambda notes: {"intercept": "1"},
    "a list": lambda notes: {"options": []},
}
ARRAYS: Mapping[str, Callable[[Any], Any]] = {
    "pickled arrays": lambda terms: np.array([{"a": 1}], dtype=object),
    "other arrays": lambda terms: terms + 1,
    "not finite": lambda terms: terms * np.nan,
}


@pytest.mark.parametrize("how", ["no notes", "no arrays", "cut arrays", *ARRAYS, *NOTES])
def test_damaged_files_are_refused(kind: Any, tmp_path: Path, how: str) -> None:
    called, _, model, *_ = kind
    folder = model.save(tmp_path / "model")
    notes_file, arrays_file = (folder / name for name in model.files)
    lost = {"no notes": notes_file, "no arrays": arrays_file}.get(how)
    if lost is not None:
        lost.unlink()
    elif how == "cut arrays":
        arrays_file.write_bytes(arrays_file.read_bytes()[:1000])
    elif how in ARRAYS:
        arrays = dict(np.load(arrays_file))
        np.savez(arrays_file, **{**arrays, "terms": ARRAYS[how](arrays["terms"])})
    else:
        notes = json.loads(notes_file.read_text())
        notes_file.write_text(json.dumps({**notes, **NOTES[how](notes)}))
    why = f".*the folder is incomplete, it has no {lost.name}" if lost is not None else "(?!.*incomplete)"
    with pytest.raises(ValueError, match=f"no {called} can be read{why}"):
        type(model).load(folder)
    with pytest.raises(ValueError, match=r"can be read(?!.*incomplete).*train again"):
        type(model).load(tmp_path)

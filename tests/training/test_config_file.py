"""YAML becomes checked configurations; every mistake is told with its key and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.reward_models.training.scalar_config import LossChoice, ScalarTraining
from adjudge.training.backbones import Lora
from adjudge.training.config_file import config_of, load_config, plain_config

SMALL = "model: some/model\ndata: pairs.jsonl\noutput: out\n"


def load(text: str, folder: Path, *settings: str) -> ScalarTraining:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(ScalarTraining, str(path), settings)


def test_short_forms(tmp_path: Path) -> None:
    config = load(f"{SMALL}loss: focal\nschedule: {{learning_rate: 1e-4, lora: 8}}\n", tmp_path)
    assert config.model.name == "some/model"
    assert config.data.path == ("pairs.jsonl",)
    assert config.loss == LossChoice(name="focal")
    assert config.schedule.learning_rate == 1e-4  # YAML reads 1e-4 as text
    assert config.schedule.lora == Lora(rank=8)
    new = load("model: {from_scratch: small}\ndata: [a.jsonl, b.jsonl]\noutput: out\n", tmp_path)
    assert new.model.from_scratch is not None
    assert new.model.from_scratch.size == "small"
    assert new.data.path == ("a.jsonl", "b.jsonl")


def test_settings_replace_single_values(tmp_path: Path) -> None:
    text = f"{SMALL}loss: focal\n"
    config = load(text, tmp_path, "loss.gamma=3", "schedule.epochs=2", "regularizers={l2: 0.1}", "data.limit=5")
    assert (config.loss.name, config.loss.gamma) == ("focal", 3.0)
    assert config.schedule.epochs == 2
    assert config.regularizers == {"l2": 0.1}
    assert (config.data.path, config.data.limit) == (("pairs.jsonl",), 5)


def test_plain_data_makes_an_equal_configuration(tmp_path: Path) -> None:
    config = load(f"{SMALL}schedule: {{lora: {{rank: 4}}}}\nhead: {{kind: gaussian}}\nloss: purm\n", tmp_path)
    assert config_of(ScalarTraining, plain_config(config)) == config


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("model: m\ndata: d\n", "'output' is missing"),
        (f"{SMALL}los: bt\n", "unknown option 'los' .did you mean 'loss'"),
        (f"{SMALL}schedule: {{epoch: 2}}\n", "unknown option 'schedule.epoch' .did you mean 'schedule.epochs'"),
        (f"{SMALL}schedule: {{epochs: two}}\n", "schedule.epochs is 'two'; it must be a whole number"),
        (f"{SMALL}schedule: {{epochs: true}}\n", "schedule.epochs is True; it must be a whole number"),
        (f"{SMALL}schedule: {{learning_rate: fast}}\n", "schedule.learning_rate is 'fast'; it must be a number"),
        (f"{SMALL}schedule: {{precision: fp8}}\n", "schedule.precision is 'fp8'; give one of auto, fp32, bf16"),
        (f"{SMALL}schedule: {{keep_checkpoints: 1}}\n", "keep_checkpoints=1"),
        (f"{SMALL}schedule: [1]\n", "schedule is .1.; it must be a mapping"),
        (
            f"{SMALL}num_generations: 4\n",
            "'num_generations' .it is 'rollouts.num_generations' in another kind of training.",
        ),
        (f"{SMALL}loss: dpo\n", "loss.name is 'dpo' .which is of `adjudge train policy`.; give one of bt"),
        (f"{SMALL}loss: best\n", "loss.name is 'best'; give one of bt"),
        (f"{SMALL}loss: {{name: bt, gamma: 3}}\n", "the loss 'bt' does not read loss.gamma"),
        (f"{SMALL}loss: {{name: soft, smoothing: 0.7}}\n", "loss option smoothing=0.7"),
        (f"{SMALL}loss: {{name: margin, margin: .nan}}\n", "loss option margin=nan; it must be a finite number"),
        (f"{SMALL}loss: {{name: davidson, log_nu: .inf}}\n", "loss option log_nu=inf; it must be a finite number"),
        (f"{SMALL}loss: {{name: regression, weights: [0.0]}}\n", "loss.weights are .0.0,.; .* not all 0"),
        (f"{SMALL}schedule: {{lora: {{alpha: 0}}}}\n", "lora option alpha=0.0; it must be a finite number above 0"),
        (f"{SMALL}schedule: {{learning_rate: 1{'0' * 400}}}\n", "schedule.learning_rate is 10*; it must be a number"),
        (
            f"{SMALL}seed: 4294967296\n",
            "option seed=4294967296; it must be a whole number, at least 0 and below 4294967296",
        ),
        (f"{SMALL}loss: purm\n", "does not train a head of kind 'linear'; set head.kind to one of gaussian"),
        (f"{SMALL}loss: pinball\n", "set head.kind to one of quantile"),
        (f"{SMALL}head: {{kind: gating}}\n", "does not train a head of kind 'gating'"),
        (f"{SMALL}head: {{pooling: tokens}}\n", "head.pooling is tokens"),
        (f"{SMALL}head: {{outputs: 5}}\n", "head.outputs is 5 with the loss 'bt', which reads one reward"),
        (f"{SMALL}loss: {{name: bt, bootstrap: true}}\n", "loss.bootstrap is for the members of a head of kind multi"),
        (f"{SMALL}regularizers: {{l3: 1}}\n", "unknown regularizer 'l3'"),
        (f"{SMALL}regularizers: {{l2: 0}}\n", "regularizers.l2 is 0.0; it must be above 0"),
        (f"{SMALL}regularizers: {{text: 1.5}}\n", "regularizers.text is 1.5; it is a share"),
        (f"{SMALL}regularizers: {{length: 1}}\nhead: {{kind: mlp}}\n", "'length' needs a linear head"),
        (f"{SMALL}loss: plackett_luce\nregularizers: {{centering: 1}}\n", "plackett_luce of lists"),
        (f"{SMALL}loss: bce\nregularizers: {{centering: 1}}\n", "is of preferences"),
        ("model: ngrams\nloss: hinge\ndata: d\noutput: o\n", "the model ngrams has a loss of its own"),
        ("model: {}\ndata: d\noutput: o\n", "give one of the two"),
        ("model: {name: m, from_scratch: tiny}\ndata: d\noutput: o\n", "give one of the two"),
        ("model: m\ndata: {path: d, held_out: 1.5}\noutput: o\n", "data option held_out=1.5"),
        ("model: m\ndata: []\noutput: o\n", "data.path is empty"),
        ("- a\n- b\n", "holds no mapping"),
        ("a: [\n", "is neither YAML nor JSON: line 2"),
        (
            f"{SMALL}schedule: {{epochs: 2}}\nschedule: {{batch_size: 8}}\n",
            "has the key 'schedule' twice; write it once",
        ),
    ],
    ids=lambda value: value if "\n" not in value else "",
)
def test_mistakes_are_told(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=why):
        load(text, tmp_path)


@pytest.mark.parametrize("setting", ["schedule.epochs", "=2", "schedule.epochs=[", "schedule.epoch=2", "seed.x=2"])
def test_settings_that_cannot_be_meant(setting: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"schedule|setting|seed"):
        load(SMALL, tmp_path, setting)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"'nowhere.yaml' cannot be read"):
        load_config(ScalarTraining, "nowhere.yaml")

"""What people bring as a scorer: a plain function, a file of their own, a folder that a training wrote, a hub name."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

import adjudge
from adjudge.protocol import Limits, MissingReferenceError, Sample
from adjudge.runtime.function_verifier import FunctionVerifier
from adjudge.scoring import registry

MINE = '''
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import ClassVar

from adjudge import Sample, Score, Verifier, response_text
from beside import FACTOR

LOCK = Lock()  # a module that could not travel by value


@dataclass(frozen=True, kw_only=True)
class ShoutingVerifier(Verifier):
    """Is the response all upper case?"""

    name: ClassVar[str] = "shouting"
    needs_reference: ClassVar[bool] = False
    factor: float = 1.0

    def verify(self, sample: Sample) -> Score:
        with LOCK:
            return Score.scored(FACTOR * self.factor * float(response_text(sample).isupper()))


@lru_cache
def upper(text):
    return text.upper()


def same(prompt, response, reference):
    """Is it the reference, in any case?"""
    return upper(response) == upper(reference)


def factory(*, factor=2.0):
    return ShoutingVerifier(factor=factor)
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of scorers, which needs the one beside it; the current folder is another."""
    mine = tmp_path / "mine.v2"
    mine.mkdir()
    (mine / "math.py").write_text(MINE)
    (mine / "beside.py").write_text("FACTOR = 2.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    return mine


# -- a function


def told(prompt: str, response: str, reference: str) -> Any:
    """Whatever the response says it is."""
    if response == "raise":
        raise KeyError("no such thing")
    return {
        "true": True,
        "half": 0.5,
        "int": 3,
        "none": None,
        "nan": float("nan"),
        "inf": float("-inf"),
        "text": "1.0",
        "list": [1.0],
        "complex": 1j,
    }[response]


def test_what_a_function_may_return() -> None:
    samples = [Sample(prompt="p", response=name, reference="r") for name in ("true", "half", "int", "none")]
    scores = adjudge.score_batch(samples, told)
    assert [(score.value, score.status, score.reason) for score in scores] == [
        (1.0, "scored", ""),
        (0.5, "scored", ""),
        (3.0, "scored", ""),
        (None, "abstained", "out_of_scope"),
    ]
    assert {score.provenance.scorer for score in scores} == {"told"}


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ("raise", "KeyError: 'no such thing'"),
        ("nan", "told returned nan (float); it must return a finite number, True or False, or None to abstain"),
        ("inf", "told returned -inf (float)"),
        ("text", "told returned '1.0' (str)"),
        ("list", "told returned [1.0] (list)"),
        ("complex", "told returned 1j (complex)"),
    ],
)
def test_what_it_may_not(response: str, error: str) -> None:
    score = adjudge.score("p", response, "r", scorer=told)
    assert (score.status, score.reason) == ("failed", "verifier_error")
    assert error in score.evidence["error"]


def test_it_runs_in_a_worker_within_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    def where(prompt: str, response: str) -> float:
        return os.getpid()

    assert adjudge.score("p", "r", scorer=where).value != os.getpid()

    def hangs(prompt: str, response: str) -> float:
        while response:
            pass
        return 1.0

    monkeypatch.setattr(FunctionVerifier, "limits", Limits(seconds=0.2))
    score = adjudge.score("p", "r", scorer=hangs)
    assert (score.value, score.reason) == (0.0, "candidate_timeout")


def test_numbers_of_libraries_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")

    def scalar(prompt: str, response: str) -> Any:
        return {"float32": numpy.float32(0.5), "bool": numpy.bool_(True), "array": numpy.ones(2)}[response]

    values = [adjudge.score("p", response, scorer=scalar).value for response in ("float32", "bool", "array")]
    assert values == [0.5, 1.0, None]


def test_parameters_are_taken_by_name() -> None:
    def seen(response: str, *, prompt: str, reference: Any = "none", level: int, source: str = "web") -> float:
        return len(f"{prompt}|{response}|{reference}|{level}|{source}")

    def rest(response: str, **columns: Any) -> float:
        return len(columns)

    sample = Sample(prompt="p", response="r", extra={"level": 3, "other": "x"})
    (score,) = adjudge.score_batch([sample], seen)
    assert score.value == len("p|r|none|3|web")
    assert adjudge.score_batch([sample], rest)[0].value == len(["prompt", "level", "other"])


def test_chats_are_text() -> None:
    def joined(prompt: str, response: str) -> bool:
        return (prompt, response) == ("Be brief.\n2+2?", "4")

    prompt: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "2+2?"}]},
    ]
    response = [{"role": "tool", "content": "four"}, {"role": "assistant", "content": "4"}]
    assert adjudge.score(prompt, response, scorer=joined).value == 1.0


def test_what_a_sample_lacks_is_said_before_anything_runs() -> None:
    def levelled(prompt: str, response: str, level: int) -> float:
        return level

    with pytest.raises(MissingReferenceError, match="'told' compares with a reference"):
        adjudge.score("p", "true", scorer=told)
    with pytest.raises(ValueError, match=r"Sample.extra has source; give it .label: --extra-column level"):
        adjudge.score("p", "r", scorer=levelled, extra={"source": "web"})


def test_functions_that_cannot_score_are_refused() -> None:
    async def waits(prompt: str, response: str) -> float:
        return 1.0

    def placed(prompt: str, response: str, /) -> float:
        return 1.0

    def compute_score(data_source: str, solution_str: str) -> float:
        return 1.0

    for function, why in ((waits, "waits is an async function"), (placed, "positional-only parameter 'prompt'")):
        with pytest.raises(ValueError, match=why):
            registry.load(function)
    with pytest.raises(ValueError, match="needs the option 'data_source'; a function that scores has the parameters"):
        registry.load(compute_score)


def fingerprint(function: Callable[..., Any]) -> str:
    return registry.load(function).fingerprint


def made(limit: float) -> Callable[..., float]:
    def short(prompt: str, response: str) -> float:
        return float(len(response) < limit)

    return short


def test_the_fingerprint_covers_source_defaults_and_enclosed_values() -> None:
    assert fingerprint(made(1)) == fingerprint(made(1))
    assert fingerprint(made(1)) != fingerprint(made(2))
    typed: list[Callable[..., Any]] = []
    for body in ("response in {'a', 'b'}", "response in {'a', 'b'}", "response in {'a', 'c'}"):
        names: dict[str, Any] = {}
        exec(f"def typed(prompt, response, weight=1.0): return {body}", names)
        typed.append(names["typed"])
    first, again, other = map(fingerprint, typed)
    assert first == again != other
    typed[0].__defaults__ = (2.0,)
    assert fingerprint(typed[0]) != again


def test_a_decorated_function_is_the_one_inside() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def inner(*args: Any, **options: Any) -> Any:
            return function(*args, **options)

        return inner

    @logged
    def loud(prompt: str, response: str) -> bool:
        return response.isupper()

    assert adjudge.score("p", "LOUD", scorer=loud).value == 1.0


def test_a_function_is_part_of_a_composite() -> None:
    def loud(prompt: str, response: str) -> bool:
        return response.isupper()

    mixed = adjudge.load({"weighted": [{"scorer": loud, "weight": 2.0}, "exact"]})
    score = adjudge.score("p", "LOUD", "LOUD", scorer=mixed)
    assert (score.value, list(score.parts)) == (3.0, ["loud", "exact"])


def test_it_passes_the_conformance_kit() -> None:
    def shorter(prompt: str, response: str, reference: str) -> float:
        return float(len(response) <= len(reference))

    samples = [Sample(prompt="p", response=text, reference="abc") for text in ("ab", "abcd")]
    adjudge.check_scorer(registry.load(shorter), samples).raise_for_failures()


# -- a file


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ("./mine.v2/math.py:ShoutingVerifier", 2.0),
        ("mine.v2/math.py:ShoutingVerifier", 2.0),
        ({"./mine.v2/math.py:ShoutingVerifier": {"factor": 3.0}}, 6.0),
        ("{./mine.v2/math.py:ShoutingVerifier: {factor: 3.0}}", 6.0),
        ({"weighted": {"./mine.v2/math.py:ShoutingVerifier": 0.5}}, 1.0),
        ("./mine.v2/math.py:factory", 4.0),
        ("./mine.v2/math.py:same", 1.0),
    ],
)
def test_a_file_is_a_scorer(folder: Path, spec: Any, value: float) -> None:
    assert adjudge.score("p", "LOUD", "loud", scorer=spec).value == value


def test_a_file_hides_no_module_and_is_found_from_where_it_is_named(folder: Path) -> None:
    (folder / "spec.yaml").write_text("./math.py:ShoutingVerifier")
    scorer = registry.load("mine.v2/spec.yaml")
    assert adjudge.score("p", "LOUD", scorer=scorer).value == 2.0
    assert registry.load(str(folder / "math.py:ShoutingVerifier")) is not None
    assert sys.modules["math"].__name__ == "math"
    assert not hasattr(sys.modules["math"], "ShoutingVerifier")


def test_the_fingerprint_does_not_depend_on_the_folder(folder: Path) -> None:
    there = folder.rename(folder.with_name("elsewhere"))
    for file in ("math.py", "beside.py"):
        (folder.parent / file).write_text((there / file).read_text())
    one, other = (registry.load(f"{path}:ShoutingVerifier") for path in ("math.py", "elsewhere/math.py"))
    assert one.fingerprint == other.fingerprint


def in_a_child(packed: bytes) -> float | None:
    return adjudge.score("p", "LOUD", "loud", scorer=pickle.loads(packed)).value


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_it_reaches_other_processes_by_a_plain_pickle(folder: Path, method: str) -> None:
    packed = [pickle.dumps(registry.load(f"./mine.v2/math.py:{name}")) for name in ("ShoutingVerifier", "same")]
    with multiprocessing.get_context(method).Pool(1) as children:
        assert children.map(in_a_child, packed) == [2.0, 1.0]


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (
            "./mine.v2/math.py",
            r"'mine.v2/math.py' is a file; say which class or function of it, as in 'mine.v2/math.py:N",
        ),
        ("./mine.v2/none.py:same", "there is no file 'mine.v2/none.py'; check the path"),
        ("./mine.v2/math.py:smae", "'mine.v2/math.py' has no 'smae' .did you mean 'same'"),
        ("./mine.v2/broken.py:same", "importing 'mine.v2/broken.py' raised ZeroDivisionError"),
        ("./nowhere", "there is no file or folder 'nowhere'; check the path"),
        ("~/nowhere/at/all", "there is no file or folder '.*/nowhere/at/all'"),
        ("/", "the folder '/' has no config.json"),
        ({"./mine.v2/math.py:same": {"factor": 1}}, "finished scorer and takes no options"),
    ],
)
def test_a_wrong_file_is_explained(folder: Path, spec: Any, complaint: str) -> None:
    (folder / "broken.py").write_text("1 / 0")
    with pytest.raises(ValueError, match=complaint):
        registry.load(spec)


# -- a folder, and a name on the hub


def checkpoint(folder: Path, *classes: str, **files: Any) -> str:
    folder.mkdir(parents=True)
    files["config"] = {"architectures": list(classes)}
    for name, record in files.items():
        (folder / f"{name}.json").write_text(json.dumps(record))
    return str(folder)


@pytest.mark.parametrize(
    ("name", "kind", "option", "form"),
    [
        ("LlamaForSequenceClassification", "reward_model", "model", ""),
        ("INFORMForSequenceClassification", "reward_model", "model", ""),
        ("LlamaForRewardModelWithGating", "reward_model", "model", ""),
        ("Qwen3ForTokenClassification", "process_reward", "engine", "trl"),
        ("Qwen2ForProcessRewardModel", "process_reward", "engine", "qwen_math_prm"),
        ("Qwen2ForPrmModel", "process_reward", "engine", "skywork"),
    ],
)
def test_a_checkpoint_of_others_is_told_by_its_architecture(
    tmp_path: Path, name: str, kind: str, option: str, form: str
) -> None:
    scorer: Any = registry.load(checkpoint(tmp_path / "model", name))
    assert (scorer.name, str(tmp_path / "model") in getattr(scorer, option)) == (kind, True)
    assert getattr(scorer, "format", "") == form


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        ({}, "has no config.json but nothing; a folder is a scorer if `adjudge train rm` or `prm` wrote it, or if"),
        ({"files": {"checkpoint-10": None, "trainer.json": {}}}, "has not ended: name one of its checkpoints"),
        (
            {"classes": ["LlamaForCausalLM"]},
            "holds a language model .LlamaForCausalLM., which writes answers and gives",
        ),
        (
            {"classes": ["NovelForProcessRewardModel"]},
            "names NovelForProcessRewardModel; .*process_reward: {engine: .*",
        ),
        ({"classes": []}, "names no architecture"),
        (
            {"files": {"adapter_config.json": {"base_model_name_or_path": "org/base"}}},
            "an adapter of 'org/base', .*merge",
        ),
        ({"files": {"config.json": [1]}}, "config.json' holds list; it must be a JSON object"),
    ],
)
def test_a_folder_that_is_no_reward_model_is_explained(tmp_path: Path, found: Any, complaint: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for name, record in found.get("files", {}).items():
        if record is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_text(json.dumps(record))
    if "classes" in found:
        (folder / "config.json").write_text(json.dumps({"architectures": found["classes"]}))
    with pytest.raises(ValueError, match=complaint):
        registry.load(str(folder))


def test_a_name_on_the_hub_is_a_reward_model_that_is_fetched_when_it_is_used() -> None:
    scorer: Any = registry.load("Skywork/Skywork-Reward-V2-Qwen3-0.6B")
    assert (scorer.name, scorer.model) == ("reward_model", "Skywork/Skywork-Reward-V2-Qwen3-0.6B")
    with_options: Any = registry.load({"Skywork/Skywork-Reward-V2-Qwen3-0.6B": {"normalize": "reference"}})
    assert with_options.normalize == "reference"
    with pytest.raises(ValueError, match=r"takes a mapping of options, not 0.5"):
        registry.load({"Skywork/Skywork-Reward-V2-Qwen3-0.6B": 0.5})


def test_a_trained_folder_is_a_scorer_wherever_a_spec_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.reward_models.training.tiny_training import planted, write_rows  # not above: processes import this file

    from adjudge.reward_models.baselines.preference_model import PreferenceModel
    from adjudge.reward_models.training.scalar_config import ScalarTraining
    from adjudge.reward_models.training.scalar_training import train_scalar
    from adjudge.training.config_file import load_config

    monkeypatch.chdir(tmp_path)
    (tmp_path / "rm.yaml").write_text(
        f"model: ngrams\ndata: {write_rows(tmp_path / 'rows.jsonl', planted(60))}\noutput: models/my_rm"
    )
    train_scalar(load_config(ScalarTraining, "rm.yaml", ()))
    Path("my_rm").symlink_to("models/my_rm")
    Path("models/spec.yaml").write_text("weighted: {./my_rm: 1.0}")
    raw = adjudge.score("Q", "calm clear kind", scorer=PreferenceModel(model="models/my_rm")).value
    for spec in ("./models/my_rm", "models/my_rm", "my_rm", str(tmp_path / "my_rm"), Path("my_rm"), "models/spec.yaml"):
        assert adjudge.score("Q", "calm clear kind", scorer=spec).value == raw
    normal: Any = registry.load({"./models/my_rm": {"normalize": "zscore"}})
    assert isinstance(normal, PreferenceModel)
    assert normal.normalize == "zscore"
    with pytest.raises(ValueError, match=r"no option 'normalise'; .*did you mean 'normalize'"):
        registry.load({"./models/my_rm": {"normalise": "zscore"}})


def test_a_scorers_name_goes_before_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint(tmp_path / "exact", "LlamaForSequenceClassification")
    assert (registry.load("exact").name, registry.load("./exact").name) == ("exact", "reward_model")

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample, Score, Scorer
from adjudge.scoring import builtin, registry
from adjudge.scoring.builtin import BUILTIN, preset_names
from adjudge.scoring.compose import Cascade, Gate, Transform, Weighted

PLUGIN = textwrap.dedent('''
    """A plug-in."""
    from dataclasses import dataclass
    from typing import ClassVar

    from adjudge.protocol import Sample, Score, Verifier

    IMPORTED = True


    @dataclass(frozen=True, kw_only=True)
    class Shout:
        """Is the response loud?

        More text.
        """

        factor: float = 1.0
        words: tuple[str, ...] = ()
        name: str = "shout"

        @property
        def fingerprint(self):
            return f"shout:{self.factor}:{self.words!r}"

        async def score(self, samples):
            return [Score.scored(self.factor * sample.response.isupper()) for sample in samples]


    class Needy(Shout):
        """Needs an option."""

        def __init__(self, *, target):
            pass


    class Failing:
        """Cannot be made."""

        def __init__(self, *, size=1):
            raise TypeError("bad size")


    class Half:
        """No scorer at all."""

        name = "half"


    def factory(*, factor=2.0):
        """Makes a Shout."""
        return Shout(factor=factor)


    def judge(sample):
        return 1.0


    async def slow():
        return Shout()


    READY = Shout(factor=5.0)
    NUMBER = 3
''')


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on sys.path with an importable module and a distribution that registers entry points."""
    (tmp_path / "loud_plugin.py").write_text(PLUGIN)
    (tmp_path / "broken_plugin.py").write_text("raise RuntimeError('no licence found')")
    install(
        tmp_path,
        "loud",
        {"shout": "loud_plugin:Shout", "made": "loud_plugin:factory", "gone": "loud_plugin:Missing"},
    )
    install(tmp_path, "broken", {"broken": "broken_plugin:Anything"})
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._plugins.cache_clear()
    yield tmp_path
    registry._plugins.cache_clear()
    for module in ("loud_plugin", "broken_plugin"):
        sys.modules.pop(module, None)


def install(folder: Path, distribution: str, entries: dict[str, str]) -> None:
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = "\n".join(f"{name} = {value}" for name, value in entries.items())
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{lines}\n")
    importlib.invalidate_caches()
    registry._plugins.cache_clear()


def value_of(scorer: Scorer, response: str = "LOUD") -> float | None:
    (score,) = asyncio.run(scorer.score([Sample(prompt="p", response=response)]))
    return score.value


def test_names_come_without_importing_any_scorer(plugins: Path) -> None:
    assert {"math", "weighted", "shout", "broken"} <= set(registry.names())
    assert "loud_plugin" not in sys.modules


def test_a_verifier_that_no_family_lists_is_found_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(BUILTIN, "exact")
    builtin.unlisted.cache_clear()
    try:
        assert builtin.unlisted()["exact"] == "adjudge.verifiers.text.exact:ExactVerifier"
        assert "exact" in registry.names()
        assert registry.load("exact").name == "exact"
    finally:
        builtin.unlisted.cache_clear()


def test_a_plug_in_is_imported_when_it_is_asked_for(plugins: Path) -> None:
    scorer = registry.load("shout")
    assert "broken_plugin" not in sys.modules
    assert (value_of(scorer), value_of(scorer, "quiet")) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ("shout", 1.0),
        (" shout ", 1.0),
        ("loud_plugin:Shout", 1.0),
        ("loud_plugin:READY", 5.0),
        ("loud_plugin:factory", 2.0),
        ({"shout": None}, 1.0),
        ({"shout": {}}, 1.0),
        ({"shout": {"factor": 3.0}}, 3.0),
        ({"made": {"factor": 4.0}}, 4.0),
        ({"loud_plugin:Shout": {"factor": 3}}, 3.0),
        ("shout:\n  factor: 3.0\n", 3.0),
        ("shout:", 1.0),
        ("{shout: {factor: 3.0}}", 3.0),
        ('{"shout": {"factor": 3.0}}', 3.0),
        ({"weighted": {"shout": 0.5, "made": 0.25}}, 1.0),
        ("{weighted: {shout: 0.5, made: 0.25}}", 1.0),
        ({"weighted": [{"scorer": {"shout": {"factor": 8.0}}, "weight": 0.5, "name": "loud"}, "made"]}, 6.0),
    ],
)
def test_every_form_of_a_spec(plugins: Path, spec: Any, value: float) -> None:
    assert value_of(registry.load(spec)) == value


def test_objects_classes_and_factories_are_specs_too(plugins: Path) -> None:
    module = importlib.import_module("loud_plugin")
    assert registry.load(module.READY) is module.READY
    assert value_of(registry.load(module.Shout)) == 1.0
    assert value_of(registry.load(module.factory)) == 2.0


def test_specs_nest_through_files_relative_to_each_other(plugins: Path, tmp_path: Path) -> None:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "inner.json").write_text(json.dumps({"shout": {"factor": 3.0}}))
    (folder / "map.json").write_text(json.dumps({"kind": "platt", "slope": 1.0, "intercept": -3.0}))
    (folder / "outer.yaml").write_text("calibrated:\n  scorer: inner.json\n  map: map.json\n")
    assert value_of(registry.load(str(folder / "outer.yaml"))) == 0.5
    assert value_of(registry.load(folder / "outer.yaml")) == 0.5


def test_each_composite_can_be_written_as_a_spec(plugins: Path) -> None:
    text = """
    gate:
      gate: {transform: {scorer: shout, steps: [{affine: {scale: 2, shift: -1}}, {clip: {low: 0}}]}}
      main: {cascade: {stages: [shout, {scorer: shout, name: again}], pass_on: [undecided]}}
      bonuses: {made: 0.5}
      otherwise: -1.0
      name: reward
    """
    scorer = registry.load(text)
    assert isinstance(scorer, Gate)
    assert isinstance(scorer.main, Cascade)
    assert isinstance(scorer.gate, Transform)
    assert (scorer.name, value_of(scorer), value_of(scorer, "quiet")) == ("reward", 2.0, -1.0)
    ensemble = registry.load("{ensemble: {parts: [shout, made], rule: lower_bound, k: 1}}")
    assert value_of(ensemble) == 1.5 - 0.5


def test_lists_become_the_tuples_that_frozen_options_are(plugins: Path) -> None:
    from_yaml = registry.load("{shout: {words: [a, b]}}")
    module = importlib.import_module("loud_plugin")
    assert from_yaml == module.Shout(words=("a", "b"))
    assert from_yaml.fingerprint == module.Shout(words=("a", "b")).fingerprint


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("shuot", "unknown scorer 'shuot'; `adjudge scorers` lists the names .did you mean 'shout'..$"),
        ("wieghted", "did you mean 'weighted'"),
        ("Math", "did you mean 'math'"),
        ("some words", "unknown scorer 'some words'"),
        ("w" * 1000, "unknown scorer 'w{77}[.]{3}'; `adjudge scorers` lists the names$"),
        ("", "the spec '' is empty"),
        ("# nothing", "the spec '# nothing' is empty"),
        ("a: {b: [\n\nc: }", "is neither YAML nor JSON: line 3, column 4: .*expected"),
        ("broken", "'broken' cannot be used: importing 'broken_plugin' raised RuntimeError: no licence found"),
        ("gone", "'loud_plugin' has no 'Missing'"),
        ("loud_plugin:Shuot", "has no 'Shuot' .did you mean 'Shout'"),
        ("no_such_module_here:Thing", "PYTHONPATH"),
        ("loud_plugin:NUMBER", "must be a Verifier, a Scorer, a function that scores, or a class"),
        ("loud_plugin:Half", "gave a Half, which is not a scorer .it lacks fingerprint, score"),
        ("loud_plugin:judge", "a function that scores has the parameters prompt and response"),
        ("loud_plugin:slow", "async function"),
        ("loud_plugin:Needy", "needs the option 'target'"),
        ("loud_plugin:Failing", "bad size"),
        (
            {"shout": {"fcator": 1.0}},
            "no option 'fcator'; its options are: factor, words, name .did you mean 'factor'",
        ),
        ({"shout": 3.0}, "takes a mapping of options, not 3.0"),
        ({"loud_plugin:READY": {"factor": 1.0}}, "finished scorer and takes no options"),
        ({"shout": None, "made": None}, "has one key, .* has 2: shout, made"),
        ({}, "has one key, .* has 0"),
        ({1: None}, "has the key 1"),
        (None, "None is not a scorer spec"),
        (["shout"], "is not a scorer spec"),
        (1.5, "is not a scorer spec"),
        ("[shout]", "is not a scorer spec"),
        ("{shout: {factor: 1, factor: 2}}", "the key 'factor' twice"),
        ("{weighted: {shout: 1, shout: 2}}", "the key 'shout' twice"),
        ("{weighted: [", "neither YAML nor JSON"),
        ("!!python/object/apply:os.system [id]", "neither YAML nor JSON"),
        ("&a {weighted: [*a]}", "nested more than 32 levels deep"),
        ("missing.yaml", "spec file 'missing.yaml' cannot be read: No such file or directory; check the path"),
        ({"weighted": {"shout": "1e-3"}}, "YAML reads 1e-3 as text"),
        ({"weighted": {"shout": {"factor": 2.0}}}, "use the list form"),
        ({"weighted": "shout"}, "must be a list of scorers or a mapping"),
        ({"weighted": []}, "has no parts"),
        ({"weighted": ["shout", "shout"]}, "two parts named 'shout'"),
        ({"weighted": {"parts": ["shout"], "mising": "skip"}}, "no option 'mising'; .*did you mean 'missing'"),
        ({"weighted": [{"scorer": "shout", "wight": 1}]}, "no option 'wight'; .*did you mean 'weight'"),
        ({"gate": {"main": "shout"}}, "gate needs the option 'gate'"),
        ({"gate": "shout"}, "takes a mapping of options"),
        ({"cascade": {"stages": {"shout": 1.0}}}, "give a list"),
        ({"cascade": ["shout"], "gate": {}}, "has one key"),
        ({"ensemble": {"parts": ["shout"], "rule": "max"}}, "rule='max'"),
        ({"ensemble": {"parts": {"shout": 2.0}}}, "does not weigh"),
        ({"transform": {"scorer": "shout", "steps": ["zscor"]}}, "not a step of a transform; .*did you mean 'zscore'"),
        ({"transform": {"scorer": "shout", "steps": "rank"}}, "give a list"),
        ({"transform": {"scorer": "shout", "steps": []}}, "has no steps"),
        ({"transform": {"scorer": "shout", "steps": [{"clip": {"lo": 1}}]}}, "no option 'lo'; .*did you mean 'low'"),
        ({"calibrated": {"scorer": "shout", "map": "none.json"}}, "a calibration map cannot be read"),
        ({"calibrated": {"scorer": "shout", "map": 3}}, "give a JSON file or its content"),
        ({"weighted": {"parts": ["shout"], "name": ""}}, "has the name ''; it must be text"),
    ],
)
def test_a_wrong_spec_is_explained(plugins: Path, spec: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        registry.load(spec)


def lists(prompts: Any, completions: Any, **columns: Any) -> list[float]:
    return [1.0 for _ in completions]


def other_names(solution_str: str, ground_truth: str) -> float:
    return float(solution_str == ground_truth)


@pytest.mark.parametrize("function", [lists, other_names, lambda completions, **columns: [1.0]])
def test_a_function_of_another_framework_is_told_what_ours_take(function: Any) -> None:
    with pytest.raises(ValueError, match=r"has the parameters prompt and response.*goes to TRL itself"):
        registry.load(function)


def test_what_a_preset_lacks_is_told_under_the_name_that_was_written() -> None:
    for spec, told in (
        ("c_grpo", "the preset 'c_grpo': the scorer 'citations' needs the option 'engine'"),
        ({"conciser": {"weigt": 1}}, "the preset 'conciser': group_length has no option 'weigt'"),
        ("optima", "optima needs the option 'engine'"),
    ):
        with pytest.raises(ValueError, match=told):
            registry.load(spec)


def test_a_plug_in_cannot_take_a_built_in_name(plugins: Path) -> None:
    install(plugins, "greedy", {"weighted": "loud_plugin:Shout"})
    with pytest.raises(ValueError, match="plug-in greedy registers the name 'weighted', which is built in"):
        registry.load({"weighted": {"shout": 1.0}})
    assert value_of(registry.load("shout")) == 1.0
    assert registry.names().count("weighted") == 1
    assert "greedy" in registry.describe("weighted").problem


def test_two_plug_ins_with_one_name_are_not_chosen_between(plugins: Path) -> None:
    install(plugins, "rival", {"shout": "loud_plugin:factory"})
    with pytest.raises(ValueError, match=r"registered by .*loud_plugin:.* and .*loud_plugin:"):
        registry.load("shout")
    assert value_of(registry.load("made")) == 2.0


def test_a_name_is_described_for_people(plugins: Path) -> None:
    listing = registry.describe("shout")
    assert listing.home == "loud_plugin:Shout"
    assert listing.summary == "Is the response loud?"
    assert listing.options == {"factor": "1.0", "words": "()", "name": "'shout'"}
    assert listing.reference == "", "it does not say whether it needs one"
    assert registry.describe("exact").reference == "needed"
    assert registry.describe("format").reference == "none"
    assert not listing.problem
    assert registry.describe("loud_plugin:Needy").options == {"target": "required"}
    assert registry.describe("search_gain").options["form"] == "{}"  # made by a factory
    assert "no licence found" in registry.describe("broken").problem
    assert registry.describe("weighted").reference == "that of its parts"


def test_every_built_in_is_there_and_described() -> None:
    for name in (*BUILTIN, *preset_names()):
        listing = registry.describe(name)
        assert not listing.problem, listing
        assert listing.summary
        assert listing.reference


def test_an_unknown_name_costs_no_import_of_scorers() -> None:
    program = (
        "import sys; from adjudge.scoring import registry\n"
        "try: registry.load('nothing')\n"
        "except ValueError: pass\n"
        "heavy = {'sympy', 'flint', 'math_verify', 'adjudge.verifiers', 'torch', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_class_may_read_its_own_spec() -> None:
    @dataclass(frozen=True)
    class Own:
        body: Any
        name: str = "own"
        fingerprint: str = "own:1"

        @classmethod
        def from_spec(cls, body: Any, loader: Any) -> Own:
            return cls(body=loader.file(body))

        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            return []

    module = type(sys)("own_module")
    module.Own = Own  # type: ignore[attr-defined]
    sys.modules["own_module"] = module
    try:
        scorer = registry.load({"own_module:Own": "data.txt"})
        assert scorer == Own(Path("data.txt"))
    finally:
        del sys.modules["own_module"]
    assert isinstance(registry.load({"weighted": [scorer]}), Weighted)

"""`import adjudge` is cheap, public names load on use, and modules know only those below them."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import adjudge

PACKAGE = Path(adjudge.__file__).parent

# The package from the bottom to the top: a part may import those of lower layers, and none of its own layer.  A part is
# a folder or a module of the package, and each module of `scoring`.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("extras", "finish", "frozen", "options", "reasons", "response_weights", "scoring.builtin", "wire"),
    ("fingerprints", "score_view"),
    ("protocol",),
    ("responses", "runtime", "scoring.attacks", "scoring.bad_reference", "statistics"),
    ("engines", "sandbox", "scoring.compose", "scoring.reference_fields", "scoring.nested", "scoring.verifier_base"),
    ("io", "pages", "prompts"),
    ("training", "verifiers"),
    ("judges", "reward_models"),
    ("scoring.registry",),
    ("scoring.api", "scoring.conformance", "scoring.presets"),
    ("data_pipelines",),
    ("evals",),
    ("rl_integration",),
)
# Short paths for what users of a training framework paste.
FRAMEWORKS = (
    "areal",
    "easyr1",
    "inspect_ai",
    "lm_eval",
    "nemo_gym",
    "nemo_rl",
    "open_instruct",
    "openenv",
    "openrlhf",
    "prime_rl",
    "rllm",
    "roll",
    "skyrl",
    "slime",
    "tinker",
    "trl",
    "verl",
)
HEIGHT = {part: height for height, layer in enumerate((*LAYERS, FRAMEWORKS)) for part in layer}
FREE = {"cli", "__init__", "__main__"}  # may import everything below


def modules() -> dict[str, Path]:
    """Each module by its name below `adjudge`, through the links of the root folders."""
    found = {path.stem: path for path in PACKAGE.glob("*.py")}
    for folder in PACKAGE.iterdir():
        if folder.is_dir():
            for path in folder.rglob("*.py"):
                found[".".join(path.relative_to(PACKAGE).with_suffix("").parts)] = path
    return found


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each line and what it imports of adjudge, with the name taken from it, wherever the statement stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name.partition(".")[2]) for name in names if name.split(".")[0] == "adjudge")


@functools.cache
def imports_of(path: Path) -> list[tuple[int, str]]:
    return list(imported(ast.parse(path.read_text(encoding="utf-8"))))


def part_of(name: str) -> str:
    return ".".join(name.split(".")[: 2 if name.startswith("scoring.") else 1])


def test_modules_import_only_what_lies_below_them() -> None:
    wrong = []
    for name, path in modules().items():
        part = part_of(name)
        if part in FREE:
            continue
        for line, target in imports_of(path):
            other = part_of(target)
            below = HEIGHT.get(other, len(HEIGHT)) < HEIGHT[part]
            if other != part and not below:
                wrong.append(f"{name}:{line} imports adjudge.{target or '(the package itself)'}")
    assert not wrong, "\n".join(wrong)


def test_the_map_draws_the_layers(root: Path) -> None:
    drawn = (
        (root / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Who may import whom")[2].split("```")[1]
    )
    lines = {part: at for at, line in enumerate(drawn.splitlines()) for part in re.findall(r"\w+", line[:49])}
    parts = [[part for part in layer if "." not in part and part in lines] for layer in reversed(LAYERS)]
    assert [part for layer in parts for part in sorted(layer)] == [
        part for _, part in sorted((lines[part], part) for layer in parts for part in layer)
    ]
    assert all(part in lines for layer in LAYERS[1:] for part in layer if "." not in part)


def test_the_package_imports_nothing_that_is_not_in_the_wheel() -> None:
    outside = re.compile(r"^\s*(?:from|import) (?:benchmarks|examples|experiments|tests)\b", re.MULTILINE)
    assert outside.search("def f():\n    from experiments.judging import lesson")
    assert [name for name, path in modules().items() if outside.search(path.read_text(encoding="utf-8"))] == []


def test_no_two_folders_need_each_other() -> None:
    names = modules()
    packages = {name.rpartition(".")[0] for name in names if "." in name}
    needs: dict[str, set[str]] = defaultdict(set)
    for name, path in names.items():
        home = name.rpartition(".")[0]
        for _, target in imports_of(path):
            while target and target not in names and target not in packages:
                target = target.rpartition(".")[0]  # the name of something in a module
            folder = target if target in packages else target.rpartition(".")[0]
            if home and folder and folder != home and home.split(".")[0] != "cli":
                needs[home].add(folder)
    assert needs["verifiers.math"] >= {"responses", "scoring"}
    list(TopologicalSorter(needs).static_order())  # raises CycleError with the folders of a circle


def test_the_walk_sees_every_form_of_import() -> None:
    source = (
        "import adjudge\nimport adjudge.scoring.api as a\n"
        "def f():\n    from adjudge import score\n    from adjudge.cli.main import x"
    )
    assert sorted(imported(ast.parse(source))) == [(1, ""), (2, "scoring.api"), (4, "score"), (5, "cli.main.x")]


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_adjudge_is_cheap_and_pulls_in_nothing_heavy() -> None:
    program = (
        "import sys, time\n"
        "start = time.process_time()\n"
        "import adjudge\n"
        "print(time.process_time() - start)\n"
        "heavy = {'torch', 'sympy', 'math_verify', 'flint', 'datasets', 'pyarrow', 'numpy', 'sklearn', 'yaml',\n"
        "         'rich', 'tyro', 'cloudpickle', 'asyncio', 'sqlite3', 'multiprocessing'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    seconds = min(float(run(program)) for _ in range(5))  # of the processor: other work does not count
    assert seconds < 0.1


def test_importing_the_calls_pulls_in_no_library_of_mathematics() -> None:
    run(
        "import sys, adjudge; adjudge.score, adjudge.check_scorer, adjudge.Weighted, adjudge.ScoreCache\n"
        "heavy = {'torch', 'sympy', 'math_verify', 'flint', 'datasets', 'numpy', 'sklearn', 'rich', 'tyro'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )


def test_the_linear_reward_model_trains_without_pytorch() -> None:
    run("import sys; sys.modules['torch'] = None\nimport adjudge.reward_models.training.ngram_training")


def test_importing_a_frameworks_reward_pulls_in_neither_the_framework_nor_models() -> None:
    names = ", ".join(f"adjudge.{name}" for name in FRAMEWORKS)
    run(
        f"import sys, {names}\n"
        "heavy = {'torch', 'transformers', 'trl', 'verl', 'httpx', 'fastapi', 'ray', 'sympy', 'datasets', 'numpy'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )


def test_every_public_name_is_there_and_listed() -> None:
    for name in adjudge.__all__:
        assert getattr(adjudge, name) is not None
        assert name in dir(adjudge)
    assert not hasattr(adjudge, "no_such_name")


def test_type_checkers_see_the_same_names_as_users() -> None:
    """The names under TYPE_CHECKING and in the table of homes are written by hand; they must agree."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [(alias, node.module) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert {alias.name: module for alias, module in imports} == adjudge._HOME
    assert [alias.name for alias, _ in imports if alias.asname != alias.name] == []  # else it is not public to them

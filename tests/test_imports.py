"""`import adjudge` is cheap, public names load on use, and modules know only those below them."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import adjudge

PACKAGE = Path(adjudge.__file__).parent

# What each part of the package may import of the others, as DESIGN fixes it: arrows point down.  A part is the
# first component after `adjudge`.
CORE = {
    "protocol",
    "reasons",
    "wire",
    "frozen",
    "fingerprints",
    "response_weights",
    "solutions",
    "databases",
    "hardware",
    "attacks",
    "statistics",
    "instructions",
    "responses",
    "bad_reference",
    "verifier_base",
    "extras",
    "options",
}
ENGINE_ROOM = CORE | {"runtime", "engines", "io"}
FRONT = ENGINE_ROOM | {"compose", "presets", "registry", "api", "conformance"}
ALLOWED: dict[str, set[str]] = {
    "reasons": set(),
    "wire": set(),
    "frozen": set(),
    "fingerprints": {"wire"},
    "response_weights": set(),
    "solutions": set(),
    "databases": set(),
    "hardware": {"extras"},
    "attacks": {"protocol"},
    "instructions": {"extras", "frozen"},
    "responses": {"protocol"},
    "bad_reference": set(),
    "verifier_base": {"bad_reference", "protocol"},
    "extras": set(),
    "statistics": {"extras", "frozen"},
    "options": set(),
    "protocol": {"fingerprints", "frozen", "reasons", "wire"},
    "io": {"engines", "extras", "protocol", "statistics", "wire"},
    "runtime": CORE | {"engines"},
    "engines": CORE | {"runtime"},
    "prompts": CORE | {"engines"},
    "training": {"engines", "extras", "io", "protocol", "wire"},
    "compose": ENGINE_ROOM,
    "verifiers": ENGINE_ROOM | {"prompts"},
    "reward_models": ENGINE_ROOM | {"prompts", "compose", "training"},
    "judges": ENGINE_ROOM | {"prompts", "compose", "verifiers"},
    "presets": ENGINE_ROOM | {"compose", "registry"},
    "registry": ENGINE_ROOM | {"compose", "presets"},
    "api": ENGINE_ROOM | {"compose", "registry"},
    "conformance": ENGINE_ROOM | {"registry"},
    "data_pipelines": FRONT | {"prompts"},
    "evals": FRONT | {"data_pipelines"},
    "rl_integration": FRONT | {"data_pipelines", "evals", "prompts", "training", "verifiers"},
}
# Short paths for what users of a training framework paste.
FRAMEWORKS = (
    "areal",
    "nemo_gym",
    "open_instruct",
    "openrlhf",
    "prime_rl",
    "rllm",
    "roll",
    "skyrl",
    "slime",
    "trl",
    "verl",
)
ALLOWED |= dict.fromkeys(FRAMEWORKS, FRONT | {"rl_integration"})
FREE = {"cli", "__init__", "__main__"}  # may import everything below


def modules() -> Iterator[tuple[str, Path]]:
    for path in PACKAGE.glob("*.py"):
        yield path.stem, path
    for folder in PACKAGE.iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            for path in sorted(folder.rglob("*.py")):
                yield folder.name, path


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The parts of adjudge that a module names in import statements, wherever they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "adjudge":
            names = [f"adjudge.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "adjudge":
                yield node.lineno, rest.partition(".")[0]


def test_modules_import_only_what_lies_below_them() -> None:
    wrong = []
    seen = set()
    for part, path in modules():
        seen.add(part)
        if part in FREE:
            continue
        for line, target in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if target != part and target not in ALLOWED[part]:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports adjudge.{target or '(the package itself)'}")
    assert {"protocol", "runtime", "compose", "verifiers"} <= seen
    assert not wrong, "\n".join(wrong)


def test_the_walk_sees_every_form_of_import() -> None:
    source = (
        "import adjudge\nimport adjudge.api as a\n"
        "def f():\n    from adjudge import score\n    from adjudge.cli.main import x"
    )
    assert sorted(imported(ast.parse(source))) == [(1, ""), (2, "api"), (4, "score"), (5, "cli")]


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_adjudge_is_cheap_and_pulls_in_nothing_heavy() -> None:
    program = (
        "import sys, time\n"
        "start = time.perf_counter()\n"
        "import adjudge\n"
        "print(time.perf_counter() - start)\n"
        "heavy = {'torch', 'sympy', 'math_verify', 'flint', 'datasets', 'pyarrow', 'numpy', 'sklearn', 'yaml',\n"
        "         'rich', 'tyro', 'cloudpickle', 'asyncio', 'sqlite3', 'multiprocessing'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    seconds = statistics.median(float(run(program)) for _ in range(7))
    assert seconds < 0.1


def test_importing_the_calls_pulls_in_no_library_of_mathematics() -> None:
    run(
        "import sys, adjudge; adjudge.score, adjudge.check_scorer, adjudge.Weighted, adjudge.ScoreCache\n"
        "heavy = {'torch', 'sympy', 'math_verify', 'flint', 'datasets', 'numpy', 'sklearn', 'rich', 'tyro'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )


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
    """The names under TYPE_CHECKING, in `__all__` and in the table of homes are written by hand; they must agree."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    declared = {
        alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert declared == adjudge._HOME
    assert sorted({*declared, "__version__"}) == sorted(adjudge.__all__)

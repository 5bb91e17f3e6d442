"""Do the tests notice?  Change one line of the product, run the tests that are near it, and count what they catch.

    python -m benchmarks.mutations plan OTHER mutants.json --count 150
    python -m benchmarks.mutations run mutants.json after.json
    (cd OTHER && python -m benchmarks.mutations run mutants.json before.json)
    python -m benchmarks.mutations compare before.json after.json

`plan` draws mutants of functions that stand, to the letter, in this checkout and in another one, so that both are asked
the same, wherever the function's file lies.  A mutant is a comparison turned around, a number or truth value changed,
`and` for `or`, a `not` taken away, or `+` for `-`.  `run` writes each into its file, runs test files of the folder that
mirrors the module's in `tests` until one fails, and puts the file back: run it in a checkout where nobody else works.
Files that fail without a mutant are left out.

Not covered: whether a mutant changes anything at all; some cannot be noticed, before and after alike.
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

FOLDERS = ("src/adjudge", "verifiers", "reward_models", "judges", "data_pipelines", "rl_integration", "evals")
_SECONDS = 300  # for the tests of a mutant; one that hangs is caught
_FILES = 8  # of tests for a mutant
_SLOW = re.compile(r"frameworks/|vllm|ray|start_pages|test_demo|parity|real_", re.IGNORECASE)

_SWAPS: dict[type[ast.AST], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is", ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.And: "or",
    ast.Or: "and",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A function, and what is put in the place of some of its characters.

    Attributes:
        source: of the function as it stands.
        changed: with the mutation.
        name: of the function.
        folder: the part of the product that it was drawn from.
    """

    source: str
    changed: str
    name: str
    folder: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Draw mutants of functions that two checkouts share.

    Attributes:
        other: the root of the other checkout.
        to: file of JSON.
        count: of mutants; of each part of the product as many as it has of the lines.
        seed: another one draws others.
    """

    other: Annotated[Path, tyro.conf.Positional]
    to: Annotated[Path, tyro.conf.Positional]
    count: int = 150
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Run:
    """Try the mutants on this checkout.

    Attributes:
        mutants: what `plan` wrote.
        to: file of JSON; what it holds already is not tried again.
    """

    mutants: Annotated[Path, tyro.conf.Positional]
    to: Annotated[Path, tyro.conf.Positional]


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Compare what two checkouts caught."""

    before: Annotated[Path, tyro.conf.Positional]
    after: Annotated[Path, tyro.conf.Positional]


def _modules(root: Path) -> dict[str, Path]:
    """Modules by the names that they are imported by."""
    files = [file for folder in FOLDERS for file in sorted((root / folder).rglob("*.py"))]
    inside = {file: file.relative_to(root / "src" if "src" in file.relative_to(root).parts else root) for file in files}
    return {
        ".".join(("adjudge", *path.with_suffix("").parts)).replace("adjudge.adjudge", "adjudge"): file
        for file, path in inside.items()
        if not file.is_relative_to(root / "src") or not any(parent.is_symlink() for parent in file.parents)
    }


def _functions(file: Path) -> Iterator[tuple[str, ast.AST, str]]:
    """Name, tree and source of the functions of a file."""
    text = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = text.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno]
            yield node.name, node, "".join(lines)


def _mutated(function: ast.AST, source: str) -> Iterator[str]:
    """Sources with one line changed."""
    lines = source.splitlines(keepends=True)
    first: int = function.lineno  # type: ignore[attr-defined]

    def put(line: int, start: int, end: int, text: str) -> str:
        at = line - first
        raw = lines[at].encode()
        made = raw[:start] + text.encode() + raw[end:]
        return "".join([*lines[:at], made.decode(), *lines[at + 1 :]])

    def between(left: ast.expr, right: ast.expr, kind: type[ast.AST]) -> Iterator[str]:
        if left.end_lineno == right.lineno and left.end_col_offset is not None and kind in _SWAPS:
            gap = lines[right.lineno - first].encode()[left.end_col_offset : right.col_offset].decode()
            if re.fullmatch(r"\)*\s*[^()\s]+( not| in)?\s*\(*", gap):
                shape = re.sub(r"[^()\s]+( not| in)?", lambda _: _SWAPS[kind], gap, count=1)
                yield put(right.lineno, left.end_col_offset, right.col_offset, shape)

    for node in ast.walk(function):
        if isinstance(node, ast.Compare):
            for left, kind, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                yield from between(left, right, type(kind))
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.right, type(node.op))
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], type(node.op))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield put(node.lineno, node.col_offset, node.operand.col_offset, "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int) and node.end_col_offset is not None:
            changed = str(not node.value) if isinstance(node.value, bool) else str(node.value + 1)
            yield put(node.lineno, node.col_offset, node.end_col_offset, changed)


def plan(options: Plan) -> int:
    """Draw the mutants."""
    theirs = {source for file in _modules(options.other).values() for _, _, source in _functions(file)}
    chance = random.Random(options.seed)
    drawn: list[Mutant] = []
    by_folder: dict[str, list[Mutant]] = {}
    lines: Counter[str] = Counter()
    for module, file in _modules(Path.cwd()).items():
        folder = module.split(".")[1]
        lines[folder] += file.read_text(encoding="utf-8").count("\n")
        for name, tree, source in _functions(file):
            if source in theirs:
                made = [Mutant(source=source, changed=one, name=name, folder=folder) for one in _mutated(tree, source)]
                by_folder.setdefault(folder, []).extend(chance.sample(made, min(2, len(made))))
    for folder, mutants in sorted(by_folder.items()):
        share = round(options.count * lines[folder] / lines.total())
        drawn += chance.sample(mutants, min(share, len(mutants)))
    options.to.write_text(json.dumps([asdict(one) for one in drawn], indent=1), encoding="utf-8")
    print(f"{len(drawn)} mutants: {dict(Counter(one.folder for one in drawn))}")
    return 0


def _tests_near(module: str, texts: dict[str, str]) -> list[str]:
    """The test files of the folder that is the module's in `tests`, those that name it first, then the shortest."""
    folders = module.split(".")[1:-1]
    while folders:
        home = "/".join(("tests", *folders, ""))
        if near := [file for file in texts if file.startswith(home)]:
            return sorted(near, key=lambda file: (module not in texts[file], len(texts[file])))[:_FILES]
        folders.pop()
    return []


def _passes(tests: list[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider", "-n0", *tests]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd() / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(command, env=environment, capture_output=True, timeout=_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def run(options: Run) -> int:
    """Try each mutant."""
    root = Path.cwd()
    modules = _modules(root)
    sources = {module: file.read_text(encoding="utf-8") for module, file in modules.items()}
    files = [file for file in sorted((root / "tests").rglob("test_*.py")) if not _SLOW.search(str(file))]
    texts = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}
    sound: dict[str, bool] = {}
    done: dict[str, str] = json.loads(options.to.read_text(encoding="utf-8")) if options.to.exists() else {}
    for number, mutant in enumerate(json.loads(options.mutants.read_text(encoding="utf-8"))):
        module = next((one for one, text in sources.items() if mutant["source"] in text), None)
        if module is None or str(number) in done:
            continue
        near, file = _tests_near(module, texts), modules[module]
        sound |= {test: _passes([test]) for test in near if test not in sound}
        tests = [test for test in near if sound[test]]
        file.write_text(sources[module].replace(mutant["source"], mutant["changed"], 1), encoding="utf-8")
        try:
            outcome = "no test" if not tests else "survived" if _passes(tests) else "caught"
        finally:
            file.write_text(sources[module], encoding="utf-8")
        done[str(number)] = outcome
        options.to.write_text(json.dumps(done), encoding="utf-8")
        print(f"{number} {module}.{mutant['name']}: {outcome}", flush=True)
    print(dict(Counter(done.values())))
    return 0


def compare(options: Compare) -> int:
    """Print which mutants only one of two checkouts caught; the exit status is 1 if fewer are caught now."""
    before, after = (json.loads(file.read_text(encoding="utf-8")) for file in (options.before, options.after))
    shared = [number for number in before if number in after]
    for number in shared:
        if before[number] != after[number]:
            print(f"{number}: {before[number]} -> {after[number]}")
    caught = [sum(one[number] == "caught" for number in shared) for one in (before, after)]
    print(f"{len(shared)} mutants: {caught[0]} caught before, {caught[1]} now")
    return int(caught[1] < caught[0])


def main(options: Plan | Run | Compare) -> int:
    """Plan, run or compare."""
    if isinstance(options, Plan):
        return plan(options)
    return run(options) if isinstance(options, Run) else compare(options)


Commands = (
    Annotated[Plan, tyro.conf.subcommand("plan")]
    | Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
)

if __name__ == "__main__":
    sys.exit(main(tyro.cli(Commands, description=__doc__)))

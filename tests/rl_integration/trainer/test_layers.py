"""Which parts of the trainer may know which: arrows point down, and there is no way back up."""

from __future__ import annotations

import ast
from pathlib import Path

PREFIX = "adjudge.rl_integration.trainer."

# Each part, and the parts that it may import.  What users start (`demo`) is above the loop.
KNOWS = {
    "data": set(),
    "rewards": {"data"},
    "algorithms": {"data", "rewards"},
    "rollouts": {"data", "rewards"},
    "loop": {"data", "rewards", "algorithms", "rollouts"},
    "demo": {"data", "rewards", "algorithms", "rollouts", "loop"},
    "judge_tasks": {"data", "rollouts"},
}


def imported(source: str) -> set[str]:
    """The parts of the trainer that a module imports, wherever the statement stands."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.removeprefix(PREFIX).partition(".")[0] for name in names if name.startswith(PREFIX)}
    return found


def test_parts_import_only_what_lies_below_them(root: Path) -> None:
    home = root / "rl_integration" / "trainer"
    wrong, seen = [], set()
    for path in sorted(home.rglob("*.py")):
        part = path.relative_to(home).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        seen.add(part)
        wrong += [
            f"{path.relative_to(root)} imports {other}"
            for other in imported(path.read_text(encoding="utf-8")) - {part} - KNOWS[part]
        ]
    assert seen == set(KNOWS)
    assert not wrong, "\n".join(wrong)


def test_the_parts_have_an_order() -> None:
    done: set[str] = set()
    for part, others in KNOWS.items():
        assert others <= done, f"{part} stands above what it does not know yet"
        done.add(part)


def test_the_walk_sees_every_form_of_import() -> None:
    source = (
        "import adjudge.rl_integration.trainer.loop.run as run\n"
        "def f():\n    from adjudge.rl_integration.trainer import demo\n"
        "    from adjudge.rl_integration.trainer.rewards.groups import Groups\n    from adjudge.protocol import Score\n"
    )
    assert imported(source) == {"loop", "demo", "rewards"}

"""docs/recipes.md, made of the recipes; `python -m tests.cli.recipes_page` writes it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from adjudge.cli.recipes import commands, numbers, recipes

PAGE: Final = Path(__file__).parents[2] / "docs" / "recipes.md"
_HEAD: Final = """# Published systems

What pays, what runs it, where its numbers are from, and what is not here; made of the files in `src/adjudge/recipes`.
`adjudge recipes WORD` finds by title, arXiv number or mechanism, `adjudge recipes NAME --write DIR` writes the run file
with some rows to try it on. Numbers are from the paper, its code, memory (confirm before you quote them) or us. The
test of a formula is named from `tests/`.
"""


def page() -> str:
    """The page as the recipes are now."""
    parts = [_HEAD]
    for name, recipe in recipes().items():
        run: dict[str, list[str]] = {}
        for path, number in numbers(recipe.get("run", {})):
            run.setdefault(path, []).append(f"{number:g}")
        lines = [f"## {name}", "", f"{recipe['title']}. Source: {recipe['source']}.", "", recipe["formula"].strip(), ""]
        lines += [f"- {key}: {recipe[key].strip()}" for key in ("differs", "lacks") if key in recipe]
        for origin, paths in recipe.get("numbers", {}).items():
            lines.append(f"- numbers ({origin}): " + ", ".join(f"`{path}` {' and '.join(run[path])}" for path in paths))
        lines += [f"- test: `{recipe['test']}`"] if "test" in recipe else []
        parts.append("\n".join([*lines, "", "```text", *commands(name), "```", ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

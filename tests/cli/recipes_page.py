"""docs/recipes.md, made of the recipes; `python -m tests.cli.recipes_page` writes it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from adjudge.cli.recipes import commands, not_here, recipes, told_numbers

PAGE: Final = Path(__file__).parents[2] / "docs" / "recipes.md"
_HEAD: Final = """# Published systems

What each pays, what runs it, where its numbers are from, where released code differs, and what is not here; made of the
files in `src/adjudge/recipes`. `adjudge recipes WORD` finds by title, arXiv number or mechanism, and
`adjudge recipes NAME --write DIR` writes the run file with rows to try it on. A number is the paper's, its code's, from
memory (confirm it before you quote it) or ours; a test is named from `tests/`. Commands with `examples/` are run in a
clone of the source.
"""


def page() -> str:
    """The page as the recipes are now."""
    parts = [_HEAD]
    for name, recipe in recipes().items():
        about = [f"- {key}: {recipe[key].strip()}" for key in ("differs", "lacks") if key in recipe]
        about += [f"- numbers ({origin}): {', '.join(told)}" for origin, told in told_numbers(name).items()]
        about += [f"- test: `{recipe['test']}`"] if "test" in recipe else []
        parts.append(f"## {name}\n\n{recipe['title']}. Source: {recipe['source']}.\n\n{recipe['formula'].strip()}\n")
        parts.extend(["\n".join(about) + "\n"] if about else [])
        parts.append("\n".join(["```text", *commands(name), "```", ""]))
    absent = [f"| {one['title']} | {one['source']} | {one['why'].strip()} |" for one in not_here().values()]
    parts.append("\n".join(["## Not here", "", "| system | source | why |", "|---|---|---|", *absent, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

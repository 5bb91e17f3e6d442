"""docs/recipes.md, made of the recipes; `python -m tests.cli.recipes_page` writes it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from adjudge.cli.recipes import commands, not_here, recipes, told_numbers

PAGE: Final = Path(__file__).parents[2] / "docs" / "recipes.md"
_HEAD: Final = """# Published systems

What each pays, its source, where it differs from released code, and what is not here. `adjudge recipes WORD` searches
titles, arXiv numbers and mechanisms; `adjudge recipes NAME` prints all numbers of a run, each from the paper, its code,
memory (confirm it before you quote it) or us. This page omits those that are ours. Commands with `examples/` run in a
clone of the source. Run a recipe without commands with:

```text
adjudge recipes NAME --write NAME    # writes the run file, with rows to try it on
cd NAME && adjudge train policy run.yaml
```
"""


def page() -> str:
    """The page as the recipes are now."""
    parts = [_HEAD]
    for name, recipe in recipes().items():
        about = [f"- {key}: {recipe[key].strip()}" for key in ("differs", "lacks") if key in recipe]
        published = {origin: told for origin, told in told_numbers(name).items() if origin != "ours"}
        about += [f"- numbers ({origin}): {', '.join(told)}" for origin, told in published.items()]
        parts.append(f"## {name}\n\n{recipe['title']}. Source: {recipe['source']}.\n\n{recipe['formula'].strip()}\n")
        parts.extend(["\n".join(about) + "\n"] if about else [])
        if "run" not in recipe or recipe.get("steps"):
            parts.append("\n".join(["```text", *commands(name), "```", ""]))
    absent = [f"| {one['title']} | {one['source']} | {one['why'].strip()} |" for one in not_here().values()]
    parts.append("\n".join(["## Not here", "", "| system | source | why |", "|---|---|---|", *absent, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

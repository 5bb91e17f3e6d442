"""What the site has beside the pages of this folder: what is made from the code, pages of the root, and sources.

Hooks of MkDocs (`mkdocs.yml`).
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import posixpath
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from docstring_parser import parse

import adjudge
from adjudge import reasons
from adjudge.cli import main
from adjudge.cli.completion import completions
from adjudge.scoring import builtin

ROOT = Path(__file__).parents[1]
PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_NO_TEXT = re.compile(r"<[\w.]+ object at 0x\w+>")
_QUOTED = re.compile(r"(: |-> )(['\"])(.*?)\2")
BOOST = {
    "commands.md": 2,
    "extending.md": 2,
    "api.md": 0.3,
    "options.md": 0.3,
    "scorers.md": 0.3,
    "recipes.md": 0.3,
    "training_keys.md": 0.3,
    "comparison.md": 0.3,
    "known_bugs.md": 0.3,
    "CHANGELOG.md": 0.1,
}
"""Weights in the search, 1 for the others: lists of everything stand behind the pages that explain it."""


def api() -> str:
    """Every public name, under the module that it is from."""
    lines = ["# Python API", "", "All of it is imported from `adjudge`, and loads on first use.", ""]
    for home, names in adjudge._NAMES_OF.items():
        lines += [f"## {home.removeprefix('adjudge.')}", ""]
        for name in names:
            lines += [f"### {name}", "", *_described(name, getattr(adjudge, name))]
    return "\n".join(lines)


def _described(name: str, one: Any) -> Iterator[str]:
    """A name's signature and what its docstring says; of a class, its public methods, too."""
    if not inspect.isroutine(one) and not inspect.isclass(one):
        yield from (f"`{one}`", "")
        return
    yield from ("```python", f"{name}{_signature(one)}", "```", "")
    told = parse(inspect.getdoc(one) or "")
    yield from ("\n\n".join(filter(None, (told.short_description, told.long_description))), "")
    for param in told.params:
        yield f"- `{param.arg_name}`: {' '.join((param.description or '').split())}"
    if told.returns is not None:
        yield f"- *returns* {' '.join((told.returns.description or '').split())}"
    for error in told.raises:
        yield f"- *raises* `{error.type_name}`: {' '.join((error.description or '').split())}"
    yield ""
    if not inspect.isclass(one):
        return
    shown = [kind for kind in inspect.getmro(one) if kind is one or kind.__name__.startswith("_")]
    methods = {inner: method for kind in reversed(shown) for inner, method in vars(kind).items()}
    for inner, method in methods.items():
        if not inner.startswith("_") and inspect.isfunction(method):
            yield from (f"#### {name}.{inner}", "", *_described(f"{name}.{inner}", method))


def _signature(one: Any) -> str:
    try:
        made = _QUOTED.sub(r"\1\3", _NO_TEXT.sub("...", str(inspect.signature(one))))
    except ValueError:  # an exception's class, which takes any arguments
        return ""
    return made if len(made) < 90 else re.sub(r", (?=\*|\w+: )", ",\n    ", made).replace("(", "(\n    ", 1)


def options() -> str:
    """Every scorer that is published, with its options."""
    lines = ["# Options of every scorer", "", "What `adjudge scorers NAME` prints.", ""]
    for name in sorted((*builtin.BUILTIN, *builtin.preset_names())):
        head = _printed(["scorers", name]).partition("\n\noption ")[0]
        lines += [f"## {name}", "", "```text", *map(_flowed, head.split("\n\n")), "```", ""]
        data = json.loads(_printed(["scorers", name, "--json"]))
        rows = [
            f"| {option} | `{_escaped(default)}` | {_cell(data['help'][option])} |"
            for option, default in data["options"].items()
        ]
        lines += ["| option | default | meaning |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join(lines)


def _flowed(block: str) -> str:
    """A paragraph as wide as the page; what is indented, or a list, keeps its lines."""
    lines = block.splitlines()
    plain = not any(line.startswith((" ", "-", "reference:", "source:", "spec:")) for line in lines)
    return "\n".join(textwrap.fill(line, 80) for line in ([" ".join(lines)] if plain else lines)) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _cell(text: str) -> str:
    """A text for a table: what is not code shows its angle brackets."""
    pieces = re.split(r"(`[^`]*`)", _escaped(text))
    return "".join(piece if piece.startswith("`") else piece.replace("<", "&lt;") for piece in pieces)


def commands() -> str:
    """Every command with its flags."""
    lines = ["# Commands", ""]
    for words in _commands():
        lines += [f"## adjudge {' '.join(words)}".rstrip(), "", "```text", _printed([*words, "--help"]), "```", ""]
    return "\n".join(lines)


def codes() -> str:
    """The closed list of reason codes, by the status that they come with."""
    lines = []
    for status, table in (("scored", reasons.CANDIDATE), ("abstained", reasons.DECLINED), ("failed", reasons.OURS)):
        lines += [f"| {status} | meaning |", "|---|---|"]
        lines += [f"| {f'`{code}`' if code else 'none'} | {told} |" for code, told in table.items()]
        lines.append("")
    return "\n".join(lines)


def _commands() -> Iterator[list[str]]:
    yield []
    for name in main.COMMANDS:
        yield [name]
        kinds = completions([name, ""]) if name in ("data", "eval") else ()
        yield from ([name, kind] for kind in kinds if not kind.startswith("-"))


def _printed(words: Sequence[str]) -> str:
    """What a command prints, 110 columns wide."""
    out, before = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "110"
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main.main(words)
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    return "\n".join(line.rstrip() for line in out.getvalue().strip().splitlines())


MADE = {"api.md": api, "options.md": options, "commands.md": commands}
_LINKS = "Made from the code: [commands](commands.md), [options of every scorer](options.md), [Python API](api.md)."
INSERTED: dict[str, Callable[[], str]] = {
    "<!-- reason codes -->": codes,
    "<!-- pages from the code -->": lambda: _LINKS,
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made, those of the root, and the sources that pages link to."""
    from mkdocs.structure.files import File

    texts = {name: make() for name, make in MADE.items()}
    texts |= {name: (ROOT / name).read_text(encoding="utf-8") for name in PAGES}
    left = [(page.src_uri, page.content_string) for page in files.documentation_pages()] + list(texts.items())
    while left:
        for target in _outside(*left.pop()):
            name, source = _page_of(target), ROOT / target
            if name not in texts and name.startswith("sources/"):
                fence = "" if source.suffix == ".md" else "```"
                texts[name] = f"# {target}\n\n{fence}\n{source.read_text(encoding='utf-8')}{fence}\n"
                if not fence:
                    left.append((name, texts[name]))
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Insert what is made from the code, and lead links out of this folder to the pages for what they lead to."""
    here = page.file.src_uri
    page.meta["search"] = {"exclude": True} if here.startswith("sources/") else {"boost": BOOST.get(here, 1)}
    for mark, make in INSERTED.items():
        markdown = markdown.replace(mark, make() if mark in markdown else "")

    def led(found: re.Match[str]) -> str:
        target = _target(found[2], here)
        if target is None:
            return found[0]
        return f"{found[1]}{posixpath.relpath(_page_of(target), posixpath.dirname(here) or '.')}{found[3]}"

    return _LINK.sub(led, markdown)


def _page_of(target: str) -> str:
    """The page for a file of the root; those of this folder are their own."""
    if target.startswith("docs/") or target in PAGES:
        return target.removeprefix("docs/")
    return f"sources/{target.removesuffix('.md')}.md"


def _outside(here: str, text: str) -> Iterator[str]:
    for found in _LINK.finditer(_FENCE.sub("", text)):
        if (target := _target(found[2], here)) is not None:
            yield target


def _target(link: str, here: str) -> str | None:
    """The file of the root that a link leads to, if it leaves the pages; pages of the root link into them."""
    if "://" in link or link.startswith("#"):
        return None
    inside = here not in PAGES and not here.startswith("sources/")
    folder = ROOT / ("docs" if inside else "") / posixpath.dirname(here.removeprefix("sources/"))
    path = (folder / link).resolve()
    if not path.is_file() or not path.is_relative_to(ROOT):
        return None
    target = path.relative_to(ROOT).as_posix()
    return None if target.startswith("docs/") and inside else target

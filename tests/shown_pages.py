"""Runs what a page shows, word for word: its files are written, its commands typed into one shell, one by one.

A shown line must be among those that were printed.  A line of dots stands for any lines, dots at the end of a line for
any words; white space, seconds, whether they are a bound, rates and digits behind the third decimal are not compared.
"""

from __future__ import annotations

import itertools
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_MOVING = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)? ?(?:ms|s|rows/s)\b|\d+\.\d{4,}(?:e-?\d+)?")
_NAMED = re.compile(r"# ([\w-]+\.(?:yaml|py))\n")
_END = "- - that was it: "
# Lines are read from descriptor 3, so that no command swallows the next ones.
_LOOP = f"""exec 3<&0 </dev/null
while IFS= read -r -u 3 line; do eval "$line"; printf '\\n{_END}%s\\n' "$?"; done"""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str


@dataclass(frozen=True)
class Command:
    """A line behind a dollar sign, in one line, and what is shown below it."""

    line: str
    shown: tuple[str, ...]


def blocks(page: Path) -> list[Block]:
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [Block(match[1], match[2]) for match in found]


def files(page: Path) -> dict[str, str]:
    """The files that a page shows: blocks that begin with a comment that names one."""
    named = [(_NAMED.match(block.text), block) for block in blocks(page)]
    return {match[1]: block.text for match, block in named if match}


def commands(page: Path) -> list[Command]:
    found: list[Command] = []
    for block in blocks(page):
        if block.language == "console":
            for part in re.split(r"^\$ ", re.sub(r"\\\n\s*", "", block.text), flags=re.MULTILINE)[1:]:
                line, _, shown = part.partition("\n")
                found.append(Command(line, tuple(shown.splitlines())))
    return found


def scripts(page: Path) -> list[tuple[str, str | None]]:
    """Python blocks, each with the output shown behind it, if one is."""
    every = [*blocks(page), Block("", "")]
    return [
        (block.text, after.text if after.language == "text" else None)
        for block, after in itertools.pairwise(every)
        if block.language == "python"
    ]


def missing(shown: tuple[str, ...], printed: str) -> str | None:
    """The first shown line that was not printed."""
    lines = [_plain(line) for line in printed.splitlines()]
    for line in map(_plain, shown):
        beginning = line.removesuffix("...").rstrip()
        if line.endswith("..."):
            if not any(one.startswith(beginning) for one in lines):
                return line
        elif line and line not in lines:
            return line
    return None


class Shell:
    """A shell in a folder, in which `adjudge` and `python` are those of the tests; a context manager.

    Args:
        folder: where it is.
        variables: of its environment, beside those of this process.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "COLUMNS": "110", **(variables or {})}
        self._lines: queue.Queue[str | None] = queue.Queue()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            ["bash", "-c", _LOOP],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        with self._process as process:
            os.killpg(process.pid, 15)

    def run(self, command: Command, seconds: float = 600.0) -> tuple[int, str]:
        """Type a command and return its exit code and what it printed, one that ends in `&` until all that is shown."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command.line}\n")
        self._process.stdin.flush()
        printed, code = "", None
        for line in self._until(time.monotonic() + seconds):
            if line.startswith(_END):
                code = int(line.removeprefix(_END))
            else:
                printed += line
            if code is not None and (not command.line.endswith("&") or missing(command.shown, printed) is None):
                return code, printed
        raise AssertionError(f"{command.line} did not end, or did not print what is shown:\n{printed}")

    def _until(self, end: float) -> Iterator[str]:
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return
            if line is None:
                return
            yield line

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)


def _plain(line: str) -> str:
    return " ".join(_MOVING.sub("N", line).replace("at most about N", "about N").split())

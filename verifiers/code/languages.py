"""Languages other than warm Python: how a program is compiled, once, and how it is run.

Not covered: dependencies; a program has its language's standard library.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from adjudge.sandbox.bubblewrap import SYSTEM_PATH


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """How programs of one language run.

    Attributes:
        labels: its names in Markdown fences, in lower case.
        source: the source's file name.
        compile: the compiler's command, or () for none.
        built: the files that the compiler leaves, which the program needs.
        tool: the program that must be installed; `package` says how to get it.
        environment: further variables, for compiler and program.
        processes: threads that its run time starts by itself.
        memory_mb: what its run time takes by itself.
        classes: whether the public class names the source's file, and the main class the program; then the compiler's
            command gets both names as arguments.
        whole: what a block has that is a program and no mere part of one; "" where nothing tells.
    """

    labels: frozenset[str]
    source: str
    compile: tuple[str, ...] = ()
    built: tuple[str, ...] = ()
    run: tuple[str, ...]
    tool: str
    package: str
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: int = 0
    memory_mb: int = 0
    classes: bool = False
    whole: str = ""


PYTHON_LABELS = frozenset({"python", "py", "python3", "py3"})
PYTHON_READS: Final = r"\binput[ ]*\(|\bstdin\b|\bopen[ ]*\([ ]*0[ ]*[,)]|\bfileinput\b|\bfdopen\b|\bos\.read[ ]*\("
"""What a Python program has that reads standard input."""
PYTHON_FEEDS: Final = (
    r"""\bstdin['"]?[ ]*[=,][^\n]*\bStringIO[ ]*\((?![^\n]*(?:stdin|read|open))|\bpatch[ ]*\([ ]*['"]builtins\.input"""
)
"""What a Python program has that writes its own input, to show how another one is used."""
PYTHON_PRINTS: Final = r"\bp?print\b|\bstdout\b|\bwrite(?:lines)?\b"
"""What a Python program has that prints."""

# ONLINE_JUDGE is what contests' judges define; solutions read files of their authors' without it.
LANGUAGES: dict[str, Language] = {
    "c": Language(
        whole=r"\bmain\s*\(",
        labels=frozenset({"c"}), source="main.c", tool="gcc", package="apt-get install gcc",
        compile=("gcc", "-O2", "-std=gnu17", "-DONLINE_JUDGE", "-o", "program", "main.c", "-lm"),
        built=("program",), run=("./program",),
    ),
    "cpp": Language(
        whole=r"\bmain\s*\(",
        labels=frozenset({"cpp", "c++", "cc", "cxx"}), source="main.cpp", tool="g++", package="apt-get install g++",
        compile=("g++", "-O2", "-std=gnu++20", "-DONLINE_JUDGE", "-o", "program", "main.cpp"),
        built=("program",), run=("./program",),
    ),
    "rust": Language(
        whole=r"\bfn\s+main\b",
        labels=frozenset({"rust", "rs"}), source="main.rs", tool="rustc", package="apt-get install rustc",
        compile=("rustc", "-O", "--edition=2021", "-o", "program", "main.rs"), built=("program",), run=("./program",),
    ),
    "go": Language(
        whole=r"\bfunc\s+main\b",
        labels=frozenset({"go", "golang"}), source="main.go", tool="go", package="apt-get install golang-go",
        compile=("go", "build", "-o", "program", "main.go"), built=("program",), run=("./program",), processes=16,
        # From 1.20 on Go compiles its standard library with each program, unless it was installed like this.
        environment={
            "GOCACHE": "/tmp/cache", "GOPATH": "/tmp/go", "GO111MODULE": "off", "CGO_ENABLED": "0",
            "GODEBUG": "installgoroot=all",
        },
    ),
    "java": Language(
        whole=r"\bvoid\s+main\b",
        labels=frozenset({"java"}), source="Main.java", tool="javac", package="apt-get install default-jdk-headless",
        compile=("sh", "-c", "javac -J-XX:+UseSerialGC -encoding UTF-8 -d classes \"$1.java\" && "
                 "cd classes && jar --create --file ../program.jar --main-class \"$2\" .", "javac"),
        built=("program.jar",), processes=32, memory_mb=512, classes=True,
        run=("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xss64m", "-jar",
             "program.jar"),
    ),
    "javascript": Language(
        labels=frozenset({"javascript", "js", "node"}), source="main.js", tool="node",
        package="apt-get install nodejs", run=("node", "main.js"), processes=16, memory_mb=512,
    ),
    "bash": Language(
        labels=frozenset({"bash", "sh", "shell"}), source="main.sh", tool="bash", package="apt-get install bash",
        run=("bash", "main.sh"),
    ),
}  # fmt: skip


def language_of(name: str) -> str:
    """Return the language that goes by a name in Markdown fences: "python", a key of `LANGUAGES`, or "" for none."""
    if name.lower() in PYTHON_LABELS:
        return "python"
    return next((key for key, language in LANGUAGES.items() if name.lower() in language.labels), "")


def labels_of(language: str) -> frozenset[str]:
    """Return the names of a language in Markdown fences, in lower case."""
    return PYTHON_LABELS if language == "python" else LANGUAGES[language].labels


def missing(language: str) -> str:
    """Return what is missing on this host for a language and how to get it, or ""."""
    needed = LANGUAGES[language]
    if shutil.which(needed.tool, path=SYSTEM_PATH) is None and not toolchain(language):
        return f"{language} programs need `{needed.tool}`, which is not there: {needed.package}"
    return ""


def toolchain(language: str) -> tuple[str, ...]:
    """Return folders that hold a toolchain outside the system's places: Rust's, as its own installer leaves it."""
    if language != "rust" or shutil.which("rustc", path=SYSTEM_PATH):
        return ()
    homes = Path(os.environ.get("RUSTUP_HOME", Path.home() / ".rustup"), "toolchains")
    return tuple(str(path) for path in sorted(homes.glob("*")) if (path / "bin" / "rustc").exists())[:1]

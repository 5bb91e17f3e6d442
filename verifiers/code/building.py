"""Programs of other languages than warm Python, made ready to run: compiled, where the language wants it.

Not covered: running them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass

from adjudge.verifiers.code.languages import LANGUAGES, Language, toolchain
from adjudge.verifiers.execution.program import Program, RunLimits, RunResult
from adjudge.verifiers.execution.runner import Runner

_SILENT = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|\"{3}.*?(?:\"{3}|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
_DEEP = 64  # MiB of stack for C and C++, as Java has it; judges of contests give that or more
_PACKAGE = re.compile(r"\s*package\s+(\w{1,60}(?:\.\w{1,60}){0,9})\s*;", re.ASCII)
_OUTLINE = re.compile(
    r"(?P<brace>[{}])|(?P<main>\bvoid\s+main\s*\()|(?P<public>\bpublic\s+)?(?:\b(?:final|abstract|strictfp|sealed)\s+){0,3}"
    r"\b(?:class|enum|record|interface)\s+(?P<name>[A-Za-z_$][\w$]{0,99})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A program made ready.

    Attributes:
        done: what came of the compiler; None for languages without one.
        files: what the program needs in its working directory.
        environment: variables that it runs with.
        complete: whether it can be run.
    """

    done: RunResult | None
    files: Mapping[str, bytes]
    environment: Mapping[str, str]
    complete: bool


def build(sandbox: Runner, source: str, name: str, limits: RunLimits) -> Build:
    """Make a program ready to run.

    Args:
        sandbox: where the compiler runs.
        source: the program.
        name: its language, of `LANGUAGES`.
        limits: what the compiler may use.

    Raises:
        SandboxUnavailableError: the sandbox cannot be made, or the compiler is not there.
    """
    language = LANGUAGES[name]
    file = language.source
    names: tuple[str, ...] = ()
    if language.classes:
        names = _classes(source)
        file = f"{names[0]}.java"
    files = {file: source.encode("utf-8", "surrogatepass")}
    folders = toolchain(name)
    environment = dict(language.environment)
    if folders:
        environment["PATH"] = ":".join((*(f"{folder}/bin" for folder in folders), "/usr/local/bin:/usr/bin:/bin"))
    if not language.compile:
        return Build(done=None, files=files, environment=environment, complete=True)
    command = (f"{folders[0]}/bin/{language.compile[0]}", *language.compile[1:]) if folders else language.compile
    command = (*command, *names)
    program = Program(command=command, files=files, outputs=language.built, environment=environment, read_only=folders)
    done = sandbox.run(program, limits)
    complete = done.ending == "exited" and not done.code and len(done.outputs) == len(language.built)
    return Build(done=done, files=dict(done.outputs), environment=environment, complete=complete)


def _classes(source: str) -> tuple[str, str]:
    """Return the name of a Java program's public class, or else of its main class; and the main class's full name."""
    code = _SILENT.sub(" ", source)
    depth, latest, main, public = 0, "Main", "", ""
    for token in _OUTLINE.finditer(code):
        if token["brace"]:
            depth += 1 if token["brace"] == "{" else -1
        elif token["main"]:
            main = main or latest
        elif not depth:
            latest = token["name"]
            public = public or (latest if token["public"] else "")
    package = _PACKAGE.match(code)
    main = main or "Main"
    return public or main, f"{package[1]}.{main}" if package else main


def roomier(limits: RunLimits, language: Language) -> RunLimits:
    """Return the limits of a run with room for what the language's run time takes by itself."""
    return dataclasses.replace(
        limits,
        processes=limits.processes + language.processes,
        memory_mb=limits.memory_mb + language.memory_mb,
        stack_mb=_DEEP if language.compile and language.compile[0] in ("gcc", "g++") else limits.stack_mb,
    )

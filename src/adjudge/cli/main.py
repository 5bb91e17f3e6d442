"""The command `adjudge`: find the command, run it, and turn what goes wrong into one paragraph and an exit code.

Nothing but the standard library is imported until a command is chosen, so that `adjudge --help` and
`adjudge --version` answer at once.
"""

from __future__ import annotations

import importlib
import inspect
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, Final

import adjudge
from adjudge.cli import exits
from adjudge.options import named

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "score": ("adjudge.cli.score:ScoreCommand", "score one response and say why"),
    "label": ("adjudge.cli.label:LabelCommand", "score every row of a dataset, and go on after any interruption"),
    "recipes": ("adjudge.cli.recipes:RecipesCommand", "find a published system, and what runs it"),
    "scorers": ("adjudge.cli.scorers:ScorersCommand", "list the scorers, or describe one"),
    "check": ("adjudge.cli.check:CheckCommand", "see how a file of yours is read, and try a scorer on it"),
    "data": ("adjudge.cli.data:parse_data", "make datasets: pairs, step labels, rubrics, tests; and clean them"),
    "eval": ("adjudge.cli.eval:parse_eval", "say whether a scorer can be trusted: benchmarks, attacks, best of n"),
    "compare": ("adjudge.cli.compare:CompareCommand", "list the rows on which two scorers disagree"),
    "train": ("adjudge.cli.train:TrainCommand", "train a reward model or a policy, and measure it on new prompts"),
    "serve": ("adjudge.cli.serve:ServeCommand", "serve scorers over HTTP to training runs"),
    "demo": ("adjudge.cli.demo:DemoCommand", "score ten small answers that come with the package"),
}
"""Each command: where its dataclass is, or what makes it of its words, and one line about it."""

_MAX_PATHS: Final = 2  # of `adjudge label` and `adjudge data`
_TEXT_FLAGS: Final = ("--response", "--reference", "--reference-json", "--prompt")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; see `adjudge.cli.exits`."""
    args = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # text a model wrote may hold what the terminal's encoding cannot
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        _close_stdout()
        return exits.PIPE
    except KeyboardInterrupt as stop:
        print(f"adjudge: {stop}" if str(stop) else "adjudge: stopped", file=sys.stderr)
        return exits.INTERRUPTED
    except Exception as error:
        if os.environ.get("ADJUDGE_DEBUG", "") not in ("", "0"):
            raise
        return _explain(error)
    return code


def _run(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help", "help"):
        print(_help(), end="")
        return exits.FINE if args else exits.USER
    if args[0] in ("--print-completion", "--complete"):
        from adjudge.cli.completion import completions, script

        shown = script("".join(args[1:2])) if args[0] == "--print-completion" else "\n".join(completions(args[1:]))
        print(shown, end="" if shown.endswith("\n") or not shown else "\n")
        return exits.FINE
    if args[0] in ("-V", "--version"):
        print(f"adjudge {adjudge.__version__}")
        return exits.FINE
    name, *rest = args
    named(COMMANDS, name, "command")  # raises for what is none
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # `--scorer module:object` finds a module here; at the end, it hides nothing
    try:
        command = _parse(name, rest)
    except SystemExit as stop:  # tyro has printed the help, or what is wrong with the flags
        if stop.code == exits.USER and _paths(name, rest) > _MAX_PATHS:
            print(f"adjudge {name} takes IN and OUT; quote a pattern ('runs/*.jsonl'), which the shell would spell out",
                  file=sys.stderr)  # fmt: skip
        return stop.code if isinstance(stop.code, int) else exits.FINE
    if "--json" not in rest:
        return int(command.run())
    from adjudge.cli.console import json_alone

    with json_alone():
        return int(command.run())


def _paths(name: str, args: list[str]) -> int:
    """Return how many words are paths to read and write: no flag, no flag's value, and not the kind of data."""
    pairs = zip(["", *args], args, strict=False)
    words = sum(not word.startswith("-") and not before.startswith("-") for before, word in pairs)
    return {"label": words, "data": words - 1}.get(name, 0)


def _parse(name: str, args: list[str]) -> Any:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(importlib.import_module(module), attribute)
    if not isinstance(command, type):
        return command(args)
    if hasattr(command, "help_on") and command.help_on(args):
        raise SystemExit(exits.FINE)
    from adjudge.cli.config_flags import grouped_cli

    return grouped_cli(command, _glued(args), prog=f"adjudge {name}", about=inspect.getdoc(command) or "")


def _glued(args: list[str]) -> list[str]:
    """Return the words with `--response -x+1` as `--response=-x+1`: an answer may begin with a minus sign."""
    glued: list[str] = []
    for word in args:
        if glued and glued[-1] in _TEXT_FLAGS and word.startswith("-") and not word.startswith("--"):
            glued[-1] += f"={word}"
        else:
            glued.append(word)
    return glued


def _help() -> str:
    width = max(map(len, COMMANDS))
    listing = "\n".join(f"  {name:<{width}}  {line}" for name, (_, line) in COMMANDS.items())
    return (
        "usage: adjudge COMMAND ...\n\n"
        "Is this answer good?  Score what language models write.\n\n"
        f"commands:\n{listing}\n\n"
        "  adjudge COMMAND --help   the flags of a command\n"
        "  adjudge --version        the version\n"
        "  source <(adjudge --print-completion bash)\n"
        "                           completion of commands, flags, scorers and keys;\n"
        "                           also for zsh, fish and tcsh\n\n"
        "exit codes:\n"
        "    0  fine\n"
        "    1  something was found: a failed check, a flip, a row that is not judged\n"
        "    2  the call cannot work as it stands\n"
        "    3  a fault of adjudge, or of a scorer that is plugged into it\n"
        "  130  interrupted by Ctrl-C\n"
        "  141  the program that read the output went away\n"
    )


def _explain(error: Exception) -> int:
    from adjudge.io.errors import NO_ROOM, JobError
    from adjudge.runtime.contract import BrokenScorer

    if isinstance(error, OSError) and error.errno in NO_ROOM:
        where = f" while writing {os.fsdecode(error.filename)}" if error.filename is not None else ""
        _complain(f"the disk is full ({error.strerror}){where}; make room and make the same call again")
        return exits.USER
    if isinstance(error, OSError) and error.filename is not None:
        _complain(f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}; check the path and its permissions")
        return exits.USER
    if isinstance(error, OSError | ValueError | JobError | BrokenScorer):
        _complain(str(error) or type(error).__name__)
        return exits.USER
    _complain(
        f"unexpected {type(error).__name__}: {error}. This is a fault of adjudge or of a scorer that is plugged into "
        "it; run the same command with ADJUDGE_DEBUG=1 to see where it happened."
    )
    return exits.BUG


def _complain(text: str) -> None:
    from adjudge.score_view import visible

    paragraph = visible(" ".join(f"adjudge: {text}".split()))
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        paragraph = textwrap.fill(paragraph, width, break_long_words=False, break_on_hyphens=False)
    print(paragraph, file=sys.stderr)


def _close_stdout() -> None:
    # The interpreter flushes stdout once more when it ends; into the broken pipe that would print a traceback.
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


if __name__ == "__main__":
    sys.exit(main())

"""Completion in a shell: what may stand where the cursor is, and the few lines that ask for it.

The lines call `adjudge --complete WORD...` at each tab, so kinds, flags, scorers and keys are those of the installed
version.
"""

from __future__ import annotations

import dataclasses
import importlib
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, get_args, get_origin

from adjudge.cli.main import COMMANDS

_BASH: Final = r"""_adjudge() {
  local IFS=$'\n'
  COMPREPLY=($("$1" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o default -F _adjudge adjudge
"""

_ZSH: Final = r"""#compdef adjudge
_adjudge() {
  local -a found
  found=(${(f)"$("${words[1]}" --complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then
    compadd -S '' -- ${(M)found:#*=}
    compadd -- ${found:#*=}
  else
    _files
  fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _adjudge adjudge
"""

_FISH: Final = r"""function __adjudge_complete
  set -l found (adjudge --complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
  if test -n "$found"
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c adjudge -f -a '(__adjudge_complete)'
"""

_TCSH: Final = r"""complete adjudge 'p@*@`adjudge --complete --line "${COMMAND_LINE}"`@'
"""

SCRIPTS: Final[Mapping[str, str]] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH, "tcsh": _TCSH}
"""Each shell, and what it has to read."""

_SCORERS: Final = frozenset({"scorer", "proxy", "gold"})  # flags that name one


def script(shell: str) -> str:
    """Return what a shell reads to complete `adjudge`.

    Raises:
        ValueError: the shell is not known.
    """
    if shell not in SCRIPTS:
        raise ValueError(f"there is no completion for {shell!r}; give {', '.join(SCRIPTS)}")
    return SCRIPTS[shell]


def completions(words: Sequence[str]) -> list[str]:
    """Return what the last word may become.

    Args:
        words: behind `adjudge`, up to the cursor; the last one may be empty or begun.  Bash hands over "--flag=x" in
            three words, and wants the last one alone; or all words as one line behind "--line".
    """
    if words[:1] == ["--line"]:
        words = (words[-1] + ("_" if words[-1].endswith(" ") else "")).split()[1:]
        words = [*words[:-1], words[-1].removesuffix("_")] if words else [""]
    *before, last = words or [""]
    glued = ""
    if last == "=" and before:
        last = ""
    elif before and before[-1] == "=":
        before.pop()
    elif last.startswith("--") and "=" in last:
        flag, _, last = last.partition("=")
        before.append(flag)
        glued = f"{flag}="
    return [f"{glued}{word}" for word in _candidates(before, last) if word.startswith(last)]


def _candidates(before: Sequence[str], last: str) -> Iterable[str]:
    if before == ["--print-completion"]:
        return SCRIPTS
    if not before:
        return [*COMMANDS, "--help", "--version", "--print-completion"]
    name, *rest = before
    if name not in COMMANDS:
        return []
    flag = rest[-1].removeprefix("--") if rest and rest[-1].startswith("--") else ""
    if flag in _SCORERS:
        return _scorers()
    kinds = _kinds(name)
    if name == "train" and flag in ("set", "help"):
        return _keys(next((word for word in rest if word in kinds), "policy"), "=" if flag == "set" else "")
    if kinds and not rest and not last.startswith("-"):
        return kinds
    flags = _flags(name, rest)
    if flags.get(flag):
        return flags[flag]
    if last.startswith("-"):
        return ["--help", *(f"--{one}" for one in flags)]
    return _scorers() if name in ("scorers", "serve") else []


def _scorers() -> list[str]:
    from adjudge.scoring.registry import names

    return names()


def _kinds(name: str) -> Sequence[str]:
    if name == "train":
        from adjudge.cli.train import TRAINERS

        return list(TRAINERS)
    if name in ("data", "eval"):
        return list(importlib.import_module(f"adjudge.cli.{name}").KINDS)
    return []


def _keys(kind: Any, ending: str) -> list[str]:
    from adjudge.cli.train import described
    from adjudge.training.config_keys import config_keys

    keys = [key for one in described(kind).values() for key in config_keys(one)]
    bare = [] if ending else [key.name for key in keys]
    return list(dict.fromkeys([*(f"{key.path}{ending}" for key in keys), *bare]))


def _flags(name: str, rest: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The flags of a command, each with the values it may have, where those are few."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: Any = getattr(importlib.import_module(module), attribute)
    if not isinstance(command, type):
        home = importlib.import_module(module)
        kind = home.KINDS.get(rest[0] if rest else "")
        if kind is None:
            return {}
        from adjudge.cli.config_flags import flags_of

        command = flags_of(kind.configs(), home.layout_of(kind.configs()))
    import tyro

    flags: dict[str, tuple[str, ...]] = {}
    hints = typing.get_type_hints(command, include_extras=True)
    for item in dataclasses.fields(command):
        hint = hints[item.name]
        if tyro.conf.Positional not in getattr(hint, "__metadata__", ()):
            flag = "json" if item.name == "as_json" else item.name.replace("_", "-")
            flags[flag] = tuple(map(str, _choices(hint)))
    return flags


def _choices(hint: Any) -> tuple[Any, ...]:
    inner = get_args(hint)
    if get_origin(hint) is Literal:
        return inner
    return next((choices for part in inner if (choices := _choices(part))), ())

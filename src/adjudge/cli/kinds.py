"""Commands with several kinds of work, `adjudge data` and `adjudge eval`: each kind has the flags of its own options.

Nothing but the standard library is imported until a kind is chosen, so that the list of kinds comes at once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from adjudge.cli import exits
from adjudge.extras import install_hint
from adjudge.options import named

if TYPE_CHECKING:
    from adjudge.cli.config_flags import Layout

_INPUTS: Final = (
    "is a .jsonl, .json, .csv, .tsv (each also .gz) or .parquet file, a folder\n"
    "of them, one for datasets.load_from_disk, or a dataset of the Hugging Face hub.\n"
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of work.

    Attributes:
        config: "module:class" of its options.
        call: "module:function" that takes them, and `progress`; it returns something with `to_dict()`.
        line: what it does.
        group: the heading it is listed under.
    """

    config: str
    call: str
    line: str
    group: str = "kinds"

    def configs(self) -> tuple[Any, ...]:
        """Return the dataclasses of its options; the first one's docstring says what it does."""
        return (imported(self.config),)

    def about(self) -> list[str]:
        """Return further paragraphs of its help."""
        return []

    def run(self, configs: tuple[Any, ...], progress: Any) -> Any:
        """Return the result of running it with its options, made of the classes of `configs`."""
        return imported(self.call)(*configs, progress=progress)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A kind, with the flags that were given."""

    name: str
    kind: Kind
    given: Any

    def run(self, progress: Any) -> Any:
        """Do it, and return the result."""
        return self.kind.run(self.configs(), progress)

    def configs(self) -> tuple[Any, ...]:
        """Return the options as they were given."""
        from adjudge.cli.config_flags import options_of

        return tuple(config(**options_of(config, self.given)) for config in self.kind.configs())


def imported(path: str) -> Any:
    """Return what "module:name" names.

    Raises:
        ValueError: a package that it needs is not installed.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"this kind needs {error.name!r}, which is not here; install what it needs with: {install_hint('data')}"
        ) from error


def chosen(
    command: str,
    kinds: Mapping[str, Kind],
    args: Sequence[str],
    *,
    layout_of: Callable[[Sequence[Any]], Layout],
    usage: str,
    codes: str,
) -> Chosen:
    """Return the kind and the flags that the words after a command ask for.

    Args:
        command: its name.
        kinds: those that there are.
        args: the words.
        layout_of: says where the fields of a kind's options stand.
        usage: what the help of the command says, with "KINDS" where they are listed and "INPUTS" behind what names one.
        codes: what the help of each kind says about exit codes.

    Raises:
        SystemExit: help was asked for and printed, or a flag is wrong.
        ValueError: there is no such kind.
    """
    if not args or args[0] in ("-h", "--help", "help"):
        print(usage.replace("KINDS", _listing(kinds)).replace("INPUTS", _INPUTS), end="")
        raise SystemExit(exits.FINE if args else exits.USER)
    name, *rest = args
    kind = named(kinds, name, f"kind of adjudge {command}")
    from adjudge.cli.config_flags import paragraphs_of, parsed

    configs = kind.configs()
    about = [*paragraphs_of(configs[0]), *kind.about(), codes]
    return Chosen(name, kind, parsed(configs, layout_of(configs), rest, prog=f"adjudge {command} {name}", about=about))


def _listing(kinds: Mapping[str, Kind]) -> str:
    width = max(map(len, kinds))
    blocks: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        blocks.setdefault(kind.group, [f"{kind.group}:"]).append(f"  {name:<{width}}  {kind.line}")
    return "\n\n".join(map("\n".join, blocks.values()))

"""`adjudge data`: the jobs of `adjudge.data_pipelines` that make datasets, each with the flags of its own options.

Nothing but the standard library is imported until a kind is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.cli import exits
from adjudge.cli.data_kinds import KINDS, DataKind
from adjudge.options import named

_EXIT_CODES: Final = (
    "Exit code: 0 fine, 1 rows could not be read, or work on them failed, or what was looked for was found, "
    "2 the call is wrong or the job could not go on, 130 Ctrl-C."
)


@dataclass(frozen=True)
class DataCommand:
    """One kind, with its options as they were given.

    Attributes:
        name: of the kind.
        kind: what to do.
        options: fields of its configuration.
        as_json: whether the report is for programs.
    """

    name: str
    kind: DataKind
    options: Mapping[str, Any]
    as_json: bool

    def run(self) -> int:
        """Do it, print the report, and return the exit code."""
        from adjudge.cli.console import print_json
        from adjudge.cli.data_shown import DataBar, print_report

        config = self.kind.config_class()(**self.options)
        with DataBar(self.name) as bar:
            report = self.kind.function()(config, progress=bar)
        data: dict[str, Any] = report.to_dict()
        if self.as_json:
            print_json(data)
        else:
            print_report(report, data)
        return exits.FOUND if _found(report, data) else exits.FINE


def parse_data(args: Sequence[str]) -> DataCommand:
    """Return the command that the words after `adjudge data` ask for.

    Raises:
        SystemExit: help was asked for and printed, or a flag is wrong.
        ValueError: there is no such kind.
    """
    if not args or args[0] in ("-h", "--help", "help"):
        print(_help(), end="")
        raise SystemExit(exits.FINE if args else exits.USER)
    name, *rest = args
    kind = named(KINDS, name, "kind of data to make")
    return _parse(name, kind, rest)


def _parse(name: str, kind: DataKind, args: Sequence[str]) -> DataCommand:
    from adjudge.cli.config_flags import options_of, paragraphs_of, parsed
    from adjudge.cli.data_flags import layout_of

    config = kind.config_class()
    about = [*paragraphs_of(config), _EXIT_CODES]
    given = parsed((config,), layout_of(config), args, prog=f"adjudge data {name}", about=about)
    return DataCommand(name=name, kind=kind, options=options_of(config, given), as_json=given.as_json)


def _help() -> str:
    width = max(map(len, KINDS))
    listing = "\n".join(f"  {name:<{width}}  {kind.line}" for name, kind in KINDS.items())
    return (
        "usage: adjudge data KIND ...\n\n"
        "Make the data that reward models, judges and policies are trained on.\n\n"
        f"kinds:\n{listing}\n\n"
        "  adjudge data pairs SCORES OUT --rows IN   preference pairs of scores\n"
        "  adjudge data KIND --help                  the flags of a kind\n"
        "  adjudge data KIND ... --json              one line of JSON, for programs\n\n"
        "IN is a .jsonl, .json, .csv, .tsv (each also .gz) or .parquet file, a folder of\n"
        "them, one for datasets.load_from_disk, or a dataset of the Hugging Face hub.\n"
        "OUT is a .jsonl, .jsonl.gz or .parquet file, or a folder (a name without a\n"
        "dot) for datasets.load_from_disk.  A job that was interrupted goes on when the\n"
        "same command is given again.\n"
    )


def _found(report: Any, data: Mapping[str, Any]) -> bool:
    """Whether the exit code must say something: rows nobody could read, work that failed, a finding."""
    if getattr(report, "found", False):
        return True
    dropped: Mapping[str, int] = data.get("dropped") or {}
    return any(times and (reason == "unreadable" or reason.endswith("_failed")) for reason, times in dropped.items())

"""`adjudge data`: the jobs of `adjudge.data_pipelines` that make datasets, each with the flags of its own options.

Nothing but the standard library is imported until a kind is chosen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.cli import exits
from adjudge.cli.config_flags import Layout, required
from adjudge.cli.kinds import imported
from adjudge.data_pipelines.jobs.config import JobConfig
from adjudge.options import named


@dataclass(frozen=True, slots=True)
class DataKind:
    """One kind of work on data.

    Attributes:
        config: "module:class" of its options, a frozen dataclass.
        call: "module:function" that takes them, and `progress`; it returns a report with `to_dict()`.
        line: what it does.
    """

    config: str
    call: str
    line: str

    def config_class(self) -> Any:
        """Return the class of the options.

        Raises:
            ValueError: a package that it needs is not installed.
        """
        return imported(self.config, "data")

    def function(self) -> Any:
        """Return the call.

        Raises:
            ValueError: a package that it needs is not installed.
        """
        return imported(self.call, "data")


def _kind(folder: str, config: str, call: str, line: str) -> DataKind:
    home = f"adjudge.data_pipelines.{folder}."
    return DataKind(home + config, home + call, line)


def _making(folder: str, config: str, call: str, line: str) -> DataKind:
    return _kind(folder, f"config:{config}", f"maker:{call}", line)


def _rubric(name: str, line: str) -> DataKind:
    return _kind("rubrics", f"config:{name.title()}Config", f"{name}:make_{name}", line)


def _hygiene(name: str, line: str) -> DataKind:
    return _kind("hygiene", f"config:{name.title()}Config", f"{name}:run_{name}", line)


KINDS: Final[Mapping[str, DataKind]] = {
    "pairs": _kind("pairs", "config:PairsConfig", "building:build_pairs", "preference pairs from scored answers"),
    "leaks": _kind("pairs", "leak_config:LeaksConfig", "leaks:find_leaks", "what a test set shares with its train set"),
    "steps": _kind("step_labels", "config:StepsConfig", "labeling:label_steps", "a label for each step of a solution"),
    "nuggets": _rubric("nuggets", "facts that an answer should hold, from passages"),
    "rubrics": _rubric("rubrics", "rubric items that tell good answers from bad ones"),
    "citations": _rubric("citations", "rubrics for answers that cite, with placeholders"),
    "principles": _rubric("principles", "principles from written feedback"),
    "keywords": _rubric("keywords", "words that a right answer must hold"),
    "unit_tests": _making("unit_tests", "UnitTestsConfig", "make_unit_tests", "unit tests on which solutions agree"),
    "constraints": _making("constraints", "ConstraintsConfig", "make_constraints", "instructions that do not conflict"),
    "theorems": _making("theorems", "TheoremsConfig", "make_theorems", "variants of theorems, true and false"),
    "tasks": _making("procedural", "TasksConfig", "make_tasks", "tasks with answers, made without an input"),
    "testbenches": _making("testbenches", "TestbenchesConfig", "make_testbenches", "Verilog benches of designs"),
    "databases": _making("databases", "DatabasesConfig", "make_databases", "databases that tell queries apart"),
    "dedup": _hygiene("dedup", "rows without their copies and near copies"),
    "decontaminate": _hygiene("decontaminate", "rows that no benchmark holds"),
    "difficulty": _hygiene("difficulty", "how often each prompt is solved"),
    "filter": _hygiene("filter", "rows and groups that teach something"),
    "card": _kind("cards", "card_command:CardConfig", "card_command:run_card", "a card for files that have none"),
}
"""Each kind, in the order in which `adjudge data --help` lists them."""

_OF_AN_INPUT: Final = ("input", "split", "subset", "revision", "max_row_mb")
_PLACES: Final = {"input": "IN", "output": "OUT"}


def layout_of(config: Any) -> Layout:
    """Return where the fields of a configuration stand.

    `input` and `output` are positional; of a configuration that is no job's, whatever has no default is.
    A job whose input has a default reads none, so it has no flags about one.
    """
    needed = [item.name for item in dataclasses.fields(config) if item.init and required(item)]
    if not issubclass(config, JobConfig):
        return Layout(places={name: _PLACES.get(name, name.upper()) for name in needed})
    return Layout(
        places={name: place for name, place in _PLACES.items() if name in needed},
        last=[item.name for item in dataclasses.fields(JobConfig)],
        hidden=() if "input" in needed else _OF_AN_INPUT,
    )


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
        from adjudge.cli.kinds import DataBar, print_report

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

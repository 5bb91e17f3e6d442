"""`adjudge data`: the jobs of `adjudge.data_pipelines` that make datasets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from adjudge.cli import exits
from adjudge.cli.kinds import Chosen, Kind, chosen

if TYPE_CHECKING:
    from adjudge.cli.config_flags import Layout

_CODES: Final = (
    "Exit code: 0 fine, 1 rows could not be read, or work on them failed, or what was looked for was found, "
    "2 the call is wrong or the job could not go on, 130 Ctrl-C."
)

_USAGE: Final = """\
usage: adjudge data KIND ...

Make the data that reward models, judges and policies are trained on.

KINDS

  adjudge data pairs SCORES OUT --rows IN   preference pairs of scores
  adjudge data KIND --help                  the flags of a kind
  adjudge data KIND ... --json              one line of JSON, for programs

IN INPUTSOUT is a .jsonl, .jsonl.gz or .parquet file, or a folder (a name without a
dot) for datasets.load_from_disk.  A job that was interrupted goes on when the
same command is given again.
"""

_OF_AN_INPUT: Final = ("input", "split", "subset", "revision", "max_row_mb")
_PLACES: Final = {"input": "IN", "output": "OUT"}


def _kind(folder: str, config: str, call: str, line: str) -> Kind:
    home = f"adjudge.data_pipelines.{folder}."
    return Kind(f"{home}config:{config}", home + call, line)


def _item(name: str, line: str) -> Kind:
    return _kind("items", f"{name.title()}Config", f"{name}:make_{name}", line)


def _task(module: str, name: str, line: str) -> Kind:
    return _kind("tasks", f"{name.title().replace('_', '')}Config", f"{module}:make_{name}", line)


def _hygiene(name: str, line: str) -> Kind:
    return _kind("hygiene", f"{name.title()}Config", f"{name}:run_{name}", line)


_CARD: Final = "adjudge.io.cards.card_command:"

KINDS: Final[Mapping[str, Kind]] = {
    "sample": _kind("answers", "SampleConfig", "sampling:make_sample", "answers of a model to prompts"),
    "prefixes": _kind("answers", "PrefixesConfig", "prefixes:make_prefixes", "beginnings of good answers as prompts"),
    "pairs": _kind("pairs", "PairsConfig", "maker:build_pairs", "preference pairs from scored answers"),
    "leaks": _kind("pairs", "LeaksConfig", "leaks:find_leaks", "what a test set shares with its train set"),
    "steps": _kind("steps", "StepsConfig", "labeling:label_steps", "a label for each step of a solution"),
    "nuggets": _item("nuggets", "facts that an answer should hold, from passages"),
    "rubrics": _item("rubrics", "rubric items that tell good answers from bad ones"),
    "citations": _item("citations", "rubrics for answers that cite, with placeholders"),
    "principles": _item("principles", "principles from written feedback"),
    "keywords": _item("keywords", "words that a right answer must hold"),
    "unit_tests": _task("unit_tests", "unit_tests", "unit tests on which solutions agree"),
    "constraints": _task("constraints", "constraints", "instructions that do not conflict"),
    "theorems": _task("theorems", "theorems", "variants of theorems, true and false"),
    "tasks": _task("procedural", "tasks", "tasks with answers, made without an input"),
    "testbenches": _task("testbenches", "testbenches", "Verilog benches of designs"),
    "databases": _task("databases", "databases", "databases that tell queries apart"),
    "dedup": _hygiene("dedup", "rows without their copies and near copies"),
    "decontaminate": _hygiene("decontaminate", "rows that no benchmark holds"),
    "difficulty": _hygiene("difficulty", "how often each prompt is solved"),
    "filter": _hygiene("filter", "rows and groups that teach something"),
    "mixture": _kind("hygiene", "MixtureConfig", "mixture:find_mixture", "the shares of sources to train on"),
    "card": Kind(f"{_CARD}CardConfig", f"{_CARD}run_card", "a card for files that have none"),
}
"""Each kind, in the order in which `adjudge data --help` lists them."""


@dataclass(frozen=True)
class DataCommand:
    """One kind, with its options as they were given."""

    chosen: Chosen

    def run(self) -> int:
        """Do it, print the report, and return the exit code."""
        from adjudge.cli.console import MadeBar, print_json

        with MadeBar(self.chosen.name, "made") as bar:
            report = self.chosen.run(bar)
        data: dict[str, Any] = report.to_dict()
        if self.chosen.given.as_json:
            print_json(data)
        else:
            print_report(report, data)
        return exits.FOUND if _found(report, data) else exits.FINE


def parse_data(args: Sequence[str]) -> DataCommand:
    """Return the command that the words after `adjudge data` ask for; see `chosen`."""
    return DataCommand(chosen("data", KINDS, args, layout_of=layout_of, usage=_USAGE, codes=_CODES))


def layout_of(configs: Sequence[Any]) -> Layout:
    """Return where the fields of a configuration stand.

    `input` and `output` are positional; of a configuration that is not a job's, whatever has no default is.
    A job whose input has a default reads none, so it has no flags about one.
    """
    from adjudge.cli.config_flags import Layout, required
    from adjudge.io.jobs.config import JobConfig

    (config,) = configs
    needed = [item.name for item in dataclasses.fields(config) if item.init and required(item)]
    if not issubclass(config, JobConfig):
        return Layout(places={name: _PLACES.get(name, name.upper()) for name in needed})
    return Layout(
        places={name: place for name, place in _PLACES.items() if name in needed},
        last=[item.name for item in dataclasses.fields(JobConfig)],
        hidden=() if "input" in needed else _OF_AN_INPUT,
    )


def print_report(report: Any, data: Mapping[str, Any]) -> None:
    """Print what a finished job did: its own lines if it has some, else the counts of a `JobReport`."""
    from adjudge.cli.console import print_table
    from adjudge.score_view import plain, visible

    if hasattr(report, "lines"):
        for line in report.lines():
            print(visible(line))
        return
    if data["dropped"]:
        print_table(("dropped", "times"), sorted(data["dropped"].items(), key=lambda entry: (-entry[1], entry[0])))
    if data["counts"]:
        print_table(("counted", "sum"), data["counts"].items())
    tokens = data["cost"]["prompt_tokens"] + data["cost"]["completion_tokens"]
    spent = f", {plain(tokens)} tokens" if tokens else ""
    print(
        f"{data['made']} rows of {data['rows']} in {data['seconds']:.1f} s{spent}; written to {visible(data['output'])}"
    )


def _found(report: Any, data: Mapping[str, Any]) -> bool:
    """Whether the exit code must say something: rows nobody could read, work that failed, a finding."""
    if getattr(report, "found", False):
        return True
    dropped: Mapping[str, int] = data.get("dropped") or {}
    return any(times and (reason == "unreadable" or reason.endswith("_failed")) for reason, times in dropped.items())

"""The kinds of `adjudge data`: where each has its options and its call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adjudge.cli.kinds import imported


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
    return _kind("tasks", f"config:{config}", f"{folder}:{call}", line)


def _rubric(name: str, line: str) -> DataKind:
    return _kind("items", f"config:{name.title()}Config", f"{name}:make_{name}", line)


def _hygiene(name: str, line: str) -> DataKind:
    return _kind("hygiene", f"config:{name.title()}Config", f"{name}:run_{name}", line)


KINDS: Final[Mapping[str, DataKind]] = {
    "pairs": _kind("pairs", "config:PairsConfig", "maker:build_pairs", "preference pairs from scored answers"),
    "leaks": _kind("pairs", "config:LeaksConfig", "leaks:find_leaks", "what a test set shares with its train set"),
    "steps": _kind("steps", "config:StepsConfig", "labeling:label_steps", "a label for each step of a solution"),
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
    "card": DataKind(
        "adjudge.io.cards.card_command:CardConfig",
        "adjudge.io.cards.card_command:run_card",
        "a card for files that have none",
    ),
}
"""Each kind, in the order in which `adjudge data --help` lists them."""

"""`adjudge eval`: whether a scorer can be trusted, in numbers.  Each kind has the flags of its own options.

Nothing but the standard library, and the table of benchmarks, is imported until a kind is chosen.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adjudge.cli import exits
from adjudge.cli.eval_kinds import GROUPS, KINDS, EvalKind
from adjudge.extras import install_hint
from adjudge.options import named

_EXIT_CODES: Final = (
    "Exit code: 0 fine, 1 a sample could not be judged or a rule does not hold, "
    "2 the call is wrong or the evaluation could not go on, 130 Ctrl-C."
)

_WITHOUT_NUMPY: Final = frozenset({"probes"})


@dataclass(frozen=True)
class EvalCommand:
    """One kind, with its options as they were given.

    Attributes:
        name: of the kind.
        kind: what to do.
        given: the flags.
    """

    name: str
    kind: EvalKind
    given: Any

    def run(self) -> int:
        """Do it, print the result, write the report if a folder is named, and return the exit code."""
        from adjudge.cli.config_flags import options_of
        from adjudge.cli.console import print_json, visible
        from adjudge.cli.data_shown import DataBar
        from adjudge.cli.eval_shown import print_result

        if self.name not in _WITHOUT_NUMPY and importlib.util.find_spec("numpy") is None:  # told before any scoring
            raise ValueError(f"evaluations need numpy, which is not here; {install_hint('calibration')}")
        configs = tuple(config(**options_of(config, self.given)) for config in self.kind.configs())
        output = self.given.output
        if output and Path(output).exists() and not Path(output).is_dir():
            raise ValueError(f"{output} is a file; name a folder for the report")
        with DataBar(self.name, "scored") as bar:
            result = self.kind.run(configs, bar)
        page = _written(result, Path(output)) if output else None
        if self.given.as_json:
            print_json(result.to_dict())
        else:
            print_result(result)
            if page is not None:
                print(f"report: {visible(str(page))}")
        return exits.FOUND if result.found else exits.FINE


def parse_eval(args: Sequence[str]) -> EvalCommand:
    """Return the command that the words after `adjudge eval` ask for.

    Raises:
        SystemExit: help was asked for and printed, or a flag is wrong.
        ValueError: there is no such kind.
    """
    if not args or args[0] in ("-h", "--help", "help"):
        print(_help(), end="")
        raise SystemExit(exits.FINE if args else exits.USER)
    name, *rest = args
    kind = named(KINDS, name, "kind of evaluation")
    from adjudge.cli.config_flags import paragraphs_of, parsed
    from adjudge.cli.eval_flags import layout_of

    configs = kind.configs()
    about = [*paragraphs_of(configs[0]), *kind.about(), _EXIT_CODES]
    given = parsed(configs, layout_of(configs), rest, prog=f"adjudge eval {name}", about=about)
    return EvalCommand(name=name, kind=kind, given=given)


def _written(result: Any, folder: Path) -> Path:
    from adjudge.evals.reports.page import write_report

    return write_report(result, folder)


def _help() -> str:
    width = max(map(len, KINDS))
    blocks = []
    for group in GROUPS:
        lines = [f"  {name:<{width}}  {kind.line}" for name, kind in KINDS.items() if kind.group == group]
        blocks.append("\n".join([f"{group}:", *lines]))
    listing = "\n\n".join(blocks)
    return (
        "usage: adjudge eval KIND [INPUT] ...\n\n"
        "Say whether a scorer can be trusted, in numbers that others can compare.\n\n"
        f"{listing}\n\n"
        "  adjudge eval pairs pairs.jsonl --scorer SPEC   a scorer on your own pairs\n"
        "  adjudge eval KIND ... --output DIR             the same as a page to read\n"
        "  adjudge eval KIND --help                       the flags of a kind\n"
        "  adjudge eval KIND ... --json                   one line of JSON, for programs\n\n"
        "INPUT is a .jsonl, .json, .csv, .tsv (each also .gz) or .parquet file, a folder\n"
        "of them, one for datasets.load_from_disk, or a dataset of the Hugging Face hub.\n"
    )

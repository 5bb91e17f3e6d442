"""`adjudge train`: the trainers of `adjudge.reward_models.training`, with their progress on the terminal."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

import tyro

from adjudge.cli import exits
from adjudge.cli.console import JsonFlag, Shown, print_json, print_table
from adjudge.extras import install_hint
from adjudge.score_view import plain, visible
from adjudge.training.config_file import plain_config
from adjudge.training.config_keys import Key, config_keys, meant

if TYPE_CHECKING:
    from adjudge.reward_models.training.loop import Progress
    from adjudge.reward_models.training.report import TrainingReport
Kind = Literal["rm", "prm", "critique", "policy"]

_HOME: Final = "adjudge.reward_models.training."

TRAINERS: Final[Mapping[Kind, tuple[str, str]]] = {
    "rm": (f"{_HOME}scalar_config:ScalarTraining", f"{_HOME}scalar_training:train_scalar"),
    "prm": (f"{_HOME}process_config:ProcessTraining", f"{_HOME}process_training:train_process"),
    "critique": (f"{_HOME}critique_data:CritiqueTraining", f"{_HOME}critique_training:train_critique"),
    "policy": (f"{_HOME}policy_config:PolicyTraining", f"{_HOME}policy_training:train_policy"),
}
"""Each kind of model: where its configuration is, and what trains it."""

_BY_REWARDS: Final = "adjudge.rl_integration.trainer.loop.config:RunFile"

_KEYS: Final = """usage: adjudge train {kind} CONFIG [--set KEY=VALUE ...] [--resume] [--print-config] [--json]

CONFIG is a YAML file of the keys below, each with its default.  --set changes one: --set seed=1.
--help=KEY says all about a key or a section, by any of its names or as TRL and verl call it; --print-config
prints a file with all of them; adjudge train --help has the other flags."""

_SHOWN: Final = ("loss", "accuracy", "held_out_accuracy")  # of the numbers of a step


@dataclass(frozen=True, kw_only=True)
class TrainCommand:
    """Train a reward model, or a policy, and measure it on prompts it never saw.

    adjudge train rm examples/training/rm_from_scratch.yaml

    Kinds:
    - rm: one reward for an answer;
    - prm: one for each step;
    - critique: one after a critique that the model writes;
    - policy: a model that answers: from rewards of its own answers
      (GRPO, PPO, ...) where the file has `reward`, else from pairs (DPO, ...).

    A training that was interrupted goes on with --resume.

    adjudge train KIND --help lists the keys of the file, and
    adjudge train KIND --help=KEY says all about one: --help=learning_rate.

    Exit code: 0 the model is there, 1 the guard stopped the run,
    2 the call is wrong, 130 Ctrl-C.
    """

    kind: Annotated[Kind, tyro.conf.Positional, tyro.conf.arg(metavar="rm|prm|critique|policy")]
    """What is trained."""

    config: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CONFIG", help_behavior_hint="")] = ""
    """A YAML file; examples/training has some, docs/training.md and docs/trainer.md say what goes in."""

    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE", help_behavior_hint="")] = ()
    """Replace one value of the file, such as schedule.epochs=2; give it several times for several."""

    resume: bool = False
    """Go on from the newest checkpoint of the output folder, or begin if there is none."""

    print_config: bool = False
    """Print the file with every key, its meaning and its value; without CONFIG, with the defaults."""

    as_json: JsonFlag = False

    @staticmethod
    def help_on(args: Sequence[str]) -> bool:
        """Print the keys of a kind's file if the words ask for them, and return whether they did."""
        kind: Any = next((word for word in args if word in TRAINERS), None)
        asked = next((word for word in args if word in ("-h", "--help") or word.startswith("--help=")), "")
        if not asked or (kind is None and "=" not in asked):
            return False
        if kind is None:
            raise ValueError(f"{asked} needs a kind: adjudge train policy {asked}")

        if key := asked.partition("=")[2]:
            print(key_help(described(kind), key))
        else:
            print(_KEYS.format(kind=kind), key_listing(described(kind)), sep="\n\n")
        return True

    def run(self) -> int:
        """Train, print the report, and return the exit code."""
        if self.kind not in get_args(Kind):
            raise ValueError(f"there is no kind {self.kind!r} of model to train; give {', '.join(get_args(Kind))}")
        from adjudge.training.config_file import load_config

        if self.print_config:
            return self._print_config()
        if not self.config:
            raise ValueError(f"no CONFIG was given; `adjudge train {self.kind} --print-config` prints one to fill in")

        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # theirs would run through ours
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # a head that is replaced is not worth a table
        if self.kind == "policy" and _by_rewards(self.config, self.set):
            from adjudge.cli.train_policy import train_by_rewards

            return train_by_rewards(self.config, self.set, resume=self.resume, as_json=self.as_json)
        file, trained = TRAINERS[self.kind]
        config = load_config(_named(file), self.config, self.set)
        train = _named(trained)
        try:
            with _Bar() as bar:
                report = train(config, resume=self.resume, progress=bar.update)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "stopped; the same command with --resume goes on from the newest checkpoint, if there is one"
            ) from None
        if os.environ.get("RANK", "0") != "0":  # one of several processes of `accelerate launch` tells
            return exits.FINE
        if self.as_json:
            print_json({**report.to_dict(), "scorer": scorer_of(report)})
        else:
            print_report(report)
            print_next(report)
        return exits.FINE

    def _print_config(self) -> int:
        from adjudge.training.config_file import load_config

        by_rewards = self.kind == "policy" and (not self.config or _by_rewards(self.config, self.set))
        file = _named(_BY_REWARDS if by_rewards else TRAINERS[self.kind][0])
        if self.set and not self.config:
            raise ValueError(f"--set {self.set[0]} changes a file; name CONFIG too")
        print(config_text(file, load_config(file, self.config, self.set) if self.config else None), end="")
        return exits.FINE


class _Bar(Shown):
    """The progress of a training on standard error."""

    def __init__(self) -> None:
        super().__init__("numbers")
        self._task = self._bar.add_task("prepare", total=None, numbers="")

    def update(self, progress: Progress) -> None:
        """Show the state of the training."""
        numbers = "  ".join(f"{name} {progress.numbers[name]:.4g}" for name in _SHOWN if name in progress.numbers)
        done = progress.step == progress.steps
        doing, shown = "measure" if done else "train", f"step {progress.step}/{progress.steps}  {numbers}".strip()
        self.line(f"{doing}: {shown}")
        self._bar.update(self._task, description=doing, completed=progress.step, total=progress.steps, numbers=shown)


def print_report(report: TrainingReport) -> None:
    """Print what a finished training reached."""
    rows = [(name, str(measure), measure.n) for name, measure in report.metrics.items()]
    rows += [(f"baseline: {name}", str(measure), measure.n) for name, measure in report.baselines.items()]
    if rows:
        print_table(("on held-out prompts", "value [95 % interval]", "rows"), rows)
        print()
    left_out = {name: value for name, value in report.data.items() if isinstance(value, Mapping) and value}
    for name, reasons in left_out.items():
        listed = ", ".join(f"{count} x {visible(str(reason), 80)}" for reason, count in reasons.items())
        print(f"{name.replace('_', ' ')}: {listed}")
    for warning in report.warnings:
        print(f"note: {visible(warning)}", file=sys.stderr)
    resumed = f", resumed at {report.resumed}" if report.resumed else ""
    trained_on = report.data.get("trained_on")
    on = f" on {plain(trained_on)} examples" if trained_on is not None else ""
    steps = f"{report.steps} steps" if report.steps else "fitted"
    print(
        f"{steps}{on} in {report.seconds:.1f} s{resumed}; the model, its card and report.json are in "
        f"{visible(report.output)}"
    )


def scorer_of(report: TrainingReport) -> dict[str, Any] | None:
    """Return the spec of the scorer that was trained; None for a policy, which is none."""
    if report.what == "policy":
        return None
    spec: dict[str, Any] = _named(f"{_HOME}report:scorer_in")(report.output)
    return spec


def print_next(report: TrainingReport) -> None:
    """Print the trained scorer and the commands that come next; nothing for a policy."""
    scorer = scorer_of(report)
    if scorer is None:
        return
    folder = report.output if os.path.isabs(report.output) else os.path.join(".", report.output)
    spec = shlex.quote(visible(folder))
    steps = not {"process_reward", "step_model", "implicit_reward"}.isdisjoint(scorer)
    print(f"scorer: {spec}  ({', '.join(scorer)})")
    print(f"next:   adjudge eval {'process_bench' if steps else 'pairs PAIRS'} --scorer {spec}")
    print(f"        adjudge serve {'prm' if steps else 'rm'}={spec}")


def described(kind: Kind) -> dict[str, Any]:
    """Return the dataclasses of a kind's files, each under what tells such a file."""
    on_pairs = _named(TRAINERS[kind][0])
    if kind != "policy":
        return {"the file:": on_pairs}
    return {"a file with `reward`:": _named(_BY_REWARDS), "a file without `reward`:": on_pairs}


def _by_rewards(path: str, settings: Sequence[str]) -> bool:
    """Whether a policy's file is that of a run by rewards, and not of a training on pairs.

    Raises:
        ValueError: it cannot be told, because options of both are there, or of the one without its `reward`.
    """
    from adjudge.training.config_file import keys_of
    from adjudge.training.config_keys import WORDS

    given = keys_of(path, settings)
    runs, pairs = (
        {field.name for field in dataclasses.fields(_named(home))} for home in (_BY_REWARDS, TRAINERS["policy"][0])
    )
    of_runs, of_pairs = (sorted(given & (own - other)) for own, other in ((runs, pairs), (pairs, runs)))
    if "reward" in given and of_pairs:
        raise ValueError(
            f"{path} has `reward`, of training a policy by rewards, and {_listed(of_pairs)}, of training one on pairs; "
            "leave out the one or the other"
        )
    if "reward" not in given and of_runs:
        raise ValueError(
            f"{path} has {_listed(of_runs)}, of training a policy by rewards, but no `reward`; name a scorer (reward: "
            "math), or leave them out to train on pairs"
        )
    for word in () if "reward" in given else sorted(given - pairs):
        tops = {key.partition(".")[0]: key for key in WORDS.get(word, ())}
        if ours := [key for top, key in tops.items() if top in runs and not pairs & tops.keys()]:
            raise ValueError(
                f"{path} has `{word}`, which is `{ours[0]}` in training a policy by rewards, but no `reward`; name a "
                "scorer (reward: math)"
            )
    return "reward" in given


def _listed(options: Sequence[str]) -> str:
    return ", ".join(f"`{option}`" for option in options)


def _named(home: str) -> Any:
    module, _, name = home.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing.partition(".")[0] == "adjudge":
            raise
        raise ValueError(f"training needs {missing}, which is not here; {install_hint('train')}") from error


_LEFT: Final = 42  # columns of a key with its default


def key_listing(kinds: Mapping[str, Any]) -> str:
    """Return one line for each key of configurations, section by section."""
    blocks = []
    for heading, kind in kinds.items():
        keys = list(config_keys(kind))
        top = [key for key in keys if not key.parent and key.section is None]
        blocks.append("\n".join([heading, *_lines(top)]))
        for section in (key for key in keys if not key.parent and key.section is not None):
            same = next((key for key in keys if key.section is section.section), section)
            below = [key for key in keys if key.path.startswith(f"{section.path}.")]
            inner = _lines(below) if same is section else [f"  as those of {same.path}"]
            blocks.append("\n".join([*_lines([section], indent=""), *inner]))
    return "\n\n".join(blocks)


def key_help(kinds: Mapping[str, Any], word: str) -> str:
    """Return all that is known about a key, or about a section and its keys.

    Args:
        kinds: heading to dataclass.
        word: a key, with dots or its last part alone, or a word of TRL or verl.

    Raises:
        ValueError: there is none like it.
    """
    blocks = []
    for heading, kind in kinds.items():
        keys = list(config_keys(kind))
        paths = [key.path for key in keys]
        named = [word] if word in paths else meant(kind, word)
        chosen = [key for key in keys if any(_covers(path, key) for path in named)]
        if chosen:
            if word not in paths and all(word != key.name for key in chosen):
                heading += f"\n  {word} is {' or '.join(named)} here"
            blocks.append("\n".join([heading, *_lines(chosen, whole=True)]))
    if not blocks:
        raise ValueError(f"there is no key like {word!r}; --help without one lists them all")
    return "\n\n".join(blocks)


def config_text(kind: Any, config: Any = None) -> str:
    """Return a configuration file with every key, its meaning and its value.

    Args:
        kind: the dataclass.
        config: one of it; None for the defaults, without what has none.
    """
    lines: list[str] = []
    closed = "."  # the section of which nothing more is written
    for key in config_keys(kind):
        if key.path.startswith(closed):
            continue
        value = plain_config(key.default) if config is None else _at(plain_config(config), key.path)
        indent = "  " * key.path.count(".")
        lines += textwrap.wrap(
            key.said, 110, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ", break_on_hyphens=False
        )
        if key.section is not None and not key.several and value is not None:
            lines.append(f"{indent}{key.name}:")
        else:
            closed = f"{key.path}."
            lines.append(f"{indent}{key.name}: {_value(value)}".rstrip() + _fields(key, value))
    return "\n".join(lines) + "\n"


def _fields(key: Key, value: Any) -> str:
    if value is MISSING:
        return "  # required"
    if key.section is None or value is not None:
        return ""
    return f"  # keys: {', '.join(inner.path for inner in config_keys(key.section) if not inner.parent)}"


def _covers(path: str, key: Key) -> bool:
    """Whether a path names a key, a section that holds it, or what stands in its mapping."""
    inside = key.any_names and path.startswith(f"{key.path}.")
    return path == key.path or key.path.startswith(f"{path}.") or inside


def _lines(keys: Iterable[Key], *, indent: str = "  ", whole: bool = False) -> list[str]:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 110
    width = min(max(columns, 80), 120)
    lines = []
    for key in keys:
        left = f"{indent}{key.path}: {'required' if key.default is MISSING else _default(key)}".rstrip()
        kind = key.type + (f" (a plain value is {key.path}.{key.shorthand})" if key.shorthand and whole else "")
        text = f"{kind}; {key.said}"
        if whole:
            filled = textwrap.wrap(text, width - 6, break_on_hyphens=False)
            lines += [left, *(f"      {line}" for line in filled)]
        else:
            start = max(len(left) + 2, _LEFT + len(indent))
            lines.append(f"{left:<{start}}" + textwrap.shorten(text, max(20, width - start), placeholder=" ..."))
    return lines


def _default(key: Key) -> str:
    """A default in a line: of a section, only whether it is there."""
    if key.section is not None and key.default is not None:
        return ""
    return textwrap.shorten(_value(plain_config(key.default)), 30, placeholder=" ...")


def _value(value: Any) -> str:
    return "" if value is MISSING else json.dumps(value, ensure_ascii=False)


def _at(values: Mapping[str, Any], path: str) -> Any:
    at: Any = values
    for part in path.split("."):
        at = at[part]
    return at

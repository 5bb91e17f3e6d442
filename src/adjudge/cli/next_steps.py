"""What to run next on the rows that `adjudge check` looked at: commands and files for exactly this input."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from adjudge.cli.rows import PairOptions, RowOptions, Rows
from adjudge.io.source import is_remote
from adjudge.protocol import EMPTY

_JUDGE: Final = '{judge: {engine: "openai:MODEL"}}'
_DATASET: Final = ("split", "subset", "revision")
_PAIR: Final = ("prompt", "chosen", "rejected", "first", "second", "label")
_LABELS: Final = ("first_label", "second_label", "tie_label")
_LOADERS: Final = {"jsonl": "json", "json": "json", "csv": "csv", "tsv": "csv", "parquet": "parquet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something to do next.

    Attributes:
        what: what it does.
        text: what to type or to paste.
        file: the name of the file that the text is for; "" for the command line, or Python.
        command: what to type when the file is written.
    """

    what: str
    text: str
    file: str = ""
    command: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return plain JSON data."""
        return asdict(self)


def next_steps(rows: Rows, scorer: str, options: PairOptions) -> list[Step]:
    """Return what to do next, two to four steps."""
    return _Steps(rows, scorer, options).all()


class _Steps:
    def __init__(self, rows: Rows, scorer: str, options: PairOptions) -> None:
        self._rows, self._scorer, self._options = rows, scorer, options
        self._stem = re.sub(r"\W+", "_", _bare(rows.name)).strip("_") or "rows"

    def all(self) -> list[Step]:
        """Return the steps for the kind of rows."""
        match self._rows.kind:
            case "preferences":
                return self._reward_model()
            case "ratings":
                return [*self._reward_model(), *self._label()]
            case "answers":
                return [*self._label(), *(self._policy() if self._scorer else [])]
        return self._policy()

    def _label(self) -> list[Step]:
        columns = self._rows.columns
        known = {
            f"{role}_column": column.name for role in ("prompt", "reference") if (column := getattr(columns, role))
        }
        responses = [column.name for column in columns.responses]
        written = f"{self._stem}_scores.jsonl"
        words = ["adjudge", "label", self._rows.name, written, "--scorer", self._scorer or _JUDGE]
        words += self._flags(RowOptions.__dataclass_fields__, known | {"response_column": responses})
        steps = [Step(what="score every response", text=shlex.join(words))]
        several = len({sample.group for sample in self._rows.answered if sample.group}) < len(self._rows.answered)
        if several and any(sample.group for sample in self._rows.answered):
            pairs = ["adjudge", "data", "pairs", written, f"{self._stem}_pairs.jsonl", "--rows", self._rows.name]
            steps.append(Step(what="make preference pairs of the scores", text=shlex.join(pairs)))
        return steps

    def _flags(self, names: Iterable[str], known: Mapping[str, Sequence[str]] = EMPTY) -> list[str]:
        """The flags of some options: what is known of them, or else what the user gave."""
        settings = {name: known.get(name, getattr(self._options, name)) for name in names}
        words = {name: [value] if isinstance(value, str) else value for name, value in settings.items() if value}
        return [
            word
            for name, values in words.items()
            for value in values
            for word in (f"--{name.replace('_', '-')}", value)
        ]

    def _reward_model(self) -> list[Step]:
        model, columns = f"{self._stem}_rm", self._rows.columns
        named = asdict(self._options.preference_columns())
        data: dict[str, Any] = {"path": self._rows.name}
        data |= {"split": self._options.split} if self._options.split else {}
        config: dict[str, Any] = {"model": "ngrams", "data": data, "output": model}
        if self._rows.kind == "ratings":
            data |= {"format": "rating", "attributes": list(self._rows.ratings)}
            named = {"prompt": columns.prompt and columns.prompt.name, "response": columns.responses[0].name}
            config |= {"model": {"from_scratch": {"size": "tiny"}}, "loss": "regression"}
            config |= {"head": {"outputs": len(self._rows.ratings)}}
        elsewhere = {role: name for role, name in named.items() if name and name != role}
        data |= {"columns": elsewhere} if elsewhere else {}
        step = _file("train a reward model", "rm.yaml", config, "adjudge train rm rm.yaml")
        if self._rows.kind == "ratings":
            return [step]
        own_words = any(named[name] for name in _LABELS)  # which a training file cannot tell
        scorer = self._scorer or ("ORGANISATION/REWARD_MODEL" if own_words else f"./{model}")
        words = ["adjudge", "eval", "pairs", self._rows.name, "--scorer", scorer]
        words += self._flags([*_DATASET, *(f"{name}_column" for name in _PAIR), *_LABELS])
        tell = Step(what="say how often a scorer is right", text=shlex.join(words))
        return [tell] if own_words else [step, tell]

    def _policy(self) -> list[Step]:
        columns = self._rows.columns
        prompt = columns.prompt.name if columns.prompt is not None else ""
        reference = columns.reference.name if columns.reference is not None else ""
        if not prompt:
            return []
        data: dict[str, Any] = {"path": self._rows.name, "prompt": prompt}
        data |= {"reference": reference} if reference else {}
        data |= {name: value for name in _DATASET if (value := getattr(self._options, name))}
        data |= {"chat": True} if self._rows.asked and isinstance(self._rows.asked[0].prompt, str) else {}
        scorer = self._scorer or _JUDGE
        reward = yaml.safe_load(scorer)
        config = {
            "model": "Qwen/Qwen2.5-0.5B-Instruct", "data": data, "reward": reward, "output": f"{self._stem}_policy"
        }  # fmt: skip
        run = _file("train a policy", "run.yaml", config, "adjudge train policy run.yaml")
        return [run, Step(what="reward a run of TRL", text=self._trl(prompt, reference, reward))]

    def _trl(self, prompt: str, reference: str, reward: Any) -> str:
        loader, dataset = self._dataset()
        rename = f'.rename_column({_quoted(prompt)}, "prompt")' if prompt != "prompt" else ""
        given = f", reference={_quoted(reference)}" if reference else ""
        return (
            f"from datasets import {loader}\nfrom adjudge.trl import Reward\n"
            f"dataset = {dataset}{rename}\n"
            f"reward = Reward({_quoted(reward)}{given})\n"
            "print(reward.dry_run(dataset))  # then GRPOTrainer(..., reward_funcs=[reward], train_dataset=dataset)"
        )

    def _dataset(self) -> tuple[str, str]:
        """What loads the rows, and the call of it."""
        name, options = self._rows.name, self._options
        path = Path(name)
        split = _quoted(options.split or "train")
        if (path / "state.json").is_file() or (path / "dataset_dict.json").is_file():
            chosen = f"[{split}]" if options.split else ""
            return "load_from_disk", f"load_from_disk({_quoted(name)}){chosen}"
        if path.is_file() or is_remote(name) or any(sign in name for sign in "*?[,"):
            suffix = name.removesuffix(".gz").rpartition(".")[2].lower()
            kind = _LOADERS.get(suffix, "json")
            more = ', sep="\\t"' if suffix == "tsv" else ""
            files = [one.strip() for one in name.split(",")] if "," in name and not path.is_file() else name
            return "load_dataset", f'load_dataset("{kind}", data_files={_quoted(files)}{more}, split="train")'
        subset = f", {_quoted(options.subset)}" if options.subset else ""
        return "load_dataset", f"load_dataset({_quoted(name.removeprefix('hub:'))}{subset}, split={split})"


def _quoted(value: Any) -> str:
    """A value as Python has it, texts in double quotes."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _file(what: str, name: str, config: Mapping[str, Any], command: str) -> Step:
    text = yaml.safe_dump(dict(config), default_flow_style=None, sort_keys=False, allow_unicode=True, width=1000)
    return Step(what=what, text=f"# {name}\n{text.rstrip()}", file=name, command=command)


def _bare(name: str) -> str:
    """The last part of an input's name, without what says its format."""
    last = re.split(r"[/\\]", name.split(",")[0].rstrip("/\\"))[-1]
    return re.sub(r"\.(jsonl|ndjson|jsonlines|json-lines|json|csv|tsv|parquet)$", "", last.removesuffix(".gz"))

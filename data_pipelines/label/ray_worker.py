"""What runs in a Ray actor: one scorer, asked about batches as they come.

Samples come as plain tuples and verdicts go back as the text of the output, which costs the calling process little.
Verifiers run in worker processes of this actor, as they do elsewhere.

What it is told is plain data, so that a worker of another version can still say that it is one; secrets and
environment variables are those of its machine.
"""

from __future__ import annotations

import os
import pickle
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeAlias

from adjudge.data_pipelines.label.bench import LocalBench, Written
from adjudge.data_pipelines.label.outputs import ScoreWriter
from adjudge.protocol import Provenance, Sample, Score, Scorer

Order: TypeAlias = dict[str, Any]
"""Plain data:

- `spec`: the text of a scorer's spec; a spec file is read here, because other machines may not have it;
- `base`: the folder that relative file names in the spec start from;
- `scorer`: a pickled scorer in place of a spec, or None;
- `folder`: the working folder of the job, from which relative names in samples start;
- `path`: where this process finds modules;
- `cache`: absolute path of the score cache, or "";
- `processes`: worker processes for verifiers;
- `timings`: whether seconds are written;
- `versions`: of adjudge and Python.
"""

_FILE_ENDINGS = (".yaml", ".yml", ".json")


def versions() -> dict[str, str]:
    """Return the versions that must be the same on both sides; Ray compares its own."""
    return {"adjudge": version("adjudge"), "Python": platform.python_version()}


def order_for(spec: Any, *, cache: str, processes: int, timings: bool) -> Order:
    """Return the order for one scorer: the text of a spec, the path of a spec file, or an object.

    Raises:
        ValueError: the file cannot be read, or the object cannot be pickled.
    """
    text, base = _text_and_base(spec) if isinstance(spec, str) else ("", ".")
    return {
        "spec": text,
        "base": os.path.abspath(base),
        "scorer": None if isinstance(spec, str) else _packed(spec),
        "folder": os.getcwd(),
        "path": [os.path.abspath(entry) for entry in sys.path],
        "cache": os.path.abspath(cache) if cache else "",
        "processes": processes,
        "timings": timings,
        "versions": versions(),
    }


def _text_and_base(spec: str) -> tuple[str, Path]:
    text = spec.strip()
    if not text.endswith(_FILE_ENDINGS) or "\n" in text:
        return text, Path()
    try:
        return Path(text).read_text(encoding="utf-8"), Path(text).parent
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or error
        raise ValueError(f"the spec file {text!r} cannot be read: {problem}; check the path") from error


def _packed(scorer: object) -> bytes:
    from adjudge.runtime.pickling import pack

    try:
        return pack(scorer)
    except Exception as error:
        raise ValueError(
            f"the scorer {scorer!r} cannot be sent to Ray workers ({type(error).__name__}: {error}); give it as a spec"
        ) from error


Fields: TypeAlias = tuple[Any, ...]
"""A sample as it travels: frozen dataclasses are pickled by Python code, field by field, and tuples are not."""

_NAMES: Final = ("prompt", "response", "reference", "id", "group", "finish_reason", "extra")
fields_of = attrgetter(*_NAMES)


class Worker:
    """A scorer behind a Ray actor."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._bench: LocalBench | None = None
        self._scores: ScoreWriter | None = None

    async def open(self) -> tuple[str, str, bool]:
        """Load the scorer and return its name, its fingerprint, and whether it needs whole groups.

        Raises:
            ValueError: it cannot be loaded here, or versions differ.
        """
        there, here = self._order["versions"], versions()
        for package, wanted in there.items():
            if here[package] != wanted:
                raise ValueError(
                    f"the job runs with {package} {wanted}, and a Ray worker on {os.uname().nodename} has "
                    f"{here[package]}; install the same version on every machine"
                )
        sys.path += [entry for entry in self._order["path"] if entry not in sys.path]
        scorer = self._loaded()
        from adjudge.runtime.pool import Pool

        self._bench = bench = LocalBench(scorer, Pool(self._order["processes"]))
        provenance = Provenance(scorer=bench.name, fingerprint=bench.fingerprint)
        self._scores = ScoreWriter(provenance, timings=self._order["timings"])
        return bench.name, bench.fingerprint, bench.groupwise

    async def check(self, fields: Fields) -> str:
        """Return what the scorer needs and the sample lacks, or ""."""
        assert self._bench is not None, "check before open"
        try:
            self._bench.check(_sample(fields))
        except ValueError as error:
            return str(error)
        return ""

    async def judge(self, rows: Sequence[Fields]) -> list[Written]:
        """Return one verdict for each sample, in order."""
        assert self._bench is not None, "judge before open"
        assert self._scores is not None, "judge before open"
        verdicts = await self._bench.judge([_sample(fields) for fields in rows])
        return [self._scores.write(verdict) if isinstance(verdict, Score) else verdict for verdict in verdicts]

    def _loaded(self) -> Scorer:
        from adjudge.scoring import registry

        _change_folder(self._order["base"])
        packed = self._order["scorer"]
        scorer = registry.load(self._order["spec"] if packed is None else pickle.loads(packed))
        _change_folder(self._order["folder"])
        if not self._order["cache"]:
            return scorer
        from adjudge.runtime.cache import CachedScorer, ScoreCache

        return CachedScorer(scorer, ScoreCache(self._order["cache"]))


def _sample(fields: Fields) -> Sample:
    return Sample(**dict(zip(_NAMES, fields, strict=True)))


def _change_folder(folder: str) -> None:
    """Go where relative names start; a machine that has no such folder has nothing to find there either."""
    if os.path.isdir(folder):
        os.chdir(folder)

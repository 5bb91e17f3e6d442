"""Two scorings of the same rows, joined by id: from two files, or from one and a scorer that is asked again."""

from __future__ import annotations

import dataclasses
import itertools
import json
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge import wire
from adjudge.data_pipelines.label.samples import Item, Sampler
from adjudge.evals.trust.config import DriftConfig
from adjudge.evals.trust.verdicts import Verdict, VerdictTable, read_verdicts, shortened, texts_of
from adjudge.io.columns import Wanted, map_columns
from adjudge.io.row import Cursor, Row
from adjudge.protocol import Sample, Scorer, response_text
from adjudge.runtime.contract import is_groupwise, score_checked, validate_sample
from adjudge.runtime.loop import run_blocking
from adjudge.scoring import registry

_CHUNK: Final = 512
_PEEKED: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorings:
    """Two verdicts on each of the rows that both scorings have.

    Attributes:
        ids: of the rows, in the order of the first file.
        places: number of each row in the first file.
        first: the earlier verdicts.
        second: the later ones.
        only_first: ids that the later scoring does not have.
        only_second: ids that the earlier one does not have; none where only its first rows were read.
        who: "name" and "fingerprint" of both scorers, as far as they are known.
    """

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    places: tuple[int, ...]
    first: tuple[Verdict, ...]
    second: tuple[Verdict, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    table: VerdictTable
    who: tuple[Mapping[str, str], Mapping[str, str]]


def read_scorings(config: DriftConfig) -> Scorings:
    """Read both scorings, or read one and score again.

    Raises:
        ValueError: a file or column is missing, the files share no row, a verdict is text, or the scorer cannot be
            loaded.
    """
    table, rater = _read(config, "")
    if config.scorer:
        scorer = registry.load(config.scorer)
        later = scored_again(scorer, config, table.ids)
        whose: Mapping[str, str] = {"name": scorer.name, "fingerprint": scorer.fingerprint}
        other = config.rows or config.input
    else:
        second, its_rater = _read(config, config.against)
        later, whose, other = second.by_id(its_rater), second.who.get(its_rater, {}), config.against
    earlier = table.by_id(rater)
    kept = [at for at, name in enumerate(table.ids) if name in later]
    if not kept:
        raise ValueError(
            f"{table.name} and {other} share no id: the first ones are {table.ids[0]!r} and "
            f"{next(iter(later), '(none)')!r}; name the column with --id-column"
        )
    ids = tuple(table.ids[at] for at in kept)
    return Scorings(
        ids=ids,
        groups=tuple(table.groups[at] for at in kept),
        places=tuple(table.places[at] for at in kept),
        first=tuple(earlier[name] for name in ids),
        second=tuple(later[name] for name in ids),
        only_first=tuple(name for name in table.ids if name not in later),
        only_second=() if config.limit else tuple(name for name in later if name not in earlier),
        table=table,
        who=(table.who.get(rater, {}), whose),
    )


def scored_again(scorer: Scorer, config: DriftConfig, ids: Sequence[str]) -> dict[str, Verdict]:
    """Return a scorer's verdicts on the rows that were labelled, by the ids that `adjudge label` gives them.

    A row that is no sample, or that the scorer refuses, has failed (`bad_sample`).  With a limit only rows with these
    ids are scored, and the rest of their groups where the scorer compares.
    """

    def validate(sample: Sample) -> None:
        validate_sample(scorer, sample)

    found: dict[str, Verdict] = {}
    items, known = _items(config, validate), set(ids)
    size = None if is_groupwise(scorer) else _CHUNK  # a group must not be cut
    if size and config.limit:
        items = (item for item in items if item.id in known)
    while chunk := list(itertools.islice(items, size)):
        samples = [item.sample for item in chunk if item.sample is not None]
        found |= {item.id: Verdict(None, "failed", "bad_sample") for item in chunk if item.sample is None}
        scores = run_blocking(score_checked(scorer, samples)) if samples else []
        for sample, score in zip(samples, scores, strict=True):
            found[sample.id] = Verdict(score.value, score.status, score.reason)
    return found


def texts_of_rows(config: DriftConfig, scorings: Scorings, chosen: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return prompt and response of some rows, by their place in `scorings`."""
    if not config.scorer:
        texts = texts_of(config, [scorings.places[at] for at in chosen])
        return {at: texts[scorings.places[at]] for at in chosen if scorings.places[at] in texts}
    wanted = {scorings.ids[at]: at for at in chosen}
    found = {}
    for item in _items(config, lambda sample: None) if wanted else ():
        if item.id in wanted and item.sample is not None:
            prompt = item.sample.prompt
            asked = prompt if isinstance(prompt, str) else wire.dumps(prompt)
            found[wanted[item.id]] = (shortened(asked), shortened(response_text(item.sample)))
    return found


def _read(config: DriftConfig, path: str) -> tuple[VerdictTable, str]:
    table = read_verdicts(config, (config.column,) if config.column else (), path=path)
    if len(table.verdicts) != 1:
        raise ValueError(f"{table.name} holds the scores of {', '.join(table.verdicts)}; say which with --column, "
                         "as scores.NAME")  # fmt: skip
    (rater,) = table.verdicts
    for name, one in zip(table.ids, table.verdicts[rater], strict=True):
        if isinstance(one.value, str):
            text = reprlib.repr(one.value)
            raise ValueError(f"the score of {name!r} is the text {text}; drift is measured between numbers")
    return table, rater


def _items(config: DriftConfig, validate: Callable[[Sample], None]) -> Iterator[Item]:
    wanted = Wanted(
        prompt=config.prompt_column,
        responses=(config.response_column,) if config.response_column else _labelled_columns(config),
        id=config.id_column,
        group="" if config.group_column == "-" else config.group_column,
    )
    rows = _rows(config)
    peeked = list(itertools.islice(rows, _PEEKED))
    first = [row.data for _, row in peeked if row.data is not None]
    columns, _ = map_columns(wanted, list(dict.fromkeys(name for row in first for name in row)), first, closed=False)
    sampler = Sampler(columns=columns, validate=validate)
    for scored, row in itertools.chain(peeked, rows):
        for item in sampler.items(row, sampler.group_of(row)):
            if scored is None:
                yield item
            elif item.column == scored.get("column", item.column):  # a kept row holds the one response of its score
                name, group = (str(scored.get(key) or "") for key in ("id", "group"))
                sample = item.sample and dataclasses.replace(item.sample, id=name, group=group)
                yield dataclasses.replace(item, id=name, group=group, sample=sample)
                break


def _labelled_columns(config: DriftConfig) -> tuple[str, ...]:
    """Return the columns of responses that `adjudge label` was given, where it was given several."""
    rows = itertools.islice(config.opened().rows(Cursor()), _PEEKED)
    named = dict.fromkeys(row.data.get("column") for row in rows if row.data is not None)
    return tuple(name for name in named if isinstance(name, str) and name)


def _rows(config: DriftConfig) -> Iterable[tuple[Mapping[str, Any] | None, Row]]:
    """Yield the rows that were labelled, each with the score that kept it, or None for a row with all it holds."""
    if config.rows:
        for row in config.opened(config.rows).rows(Cursor()):
            yield None, row
        return
    for row in itertools.islice(config.opened().rows(Cursor()), config.limit or None):
        kept = None if row.data is None else row.data.get("input")
        if isinstance(kept, str):  # text in Parquet, whose columns have one shape
            kept = json.loads(kept)
        if not isinstance(kept, Mapping) or row.data is None:
            raise ValueError(
                f"row {row.index} of {config.input} does not hold what was labelled; name the labelled file with "
                "--rows, or label with --keep-columns"
            )
        number = row.data.get("row")
        if isinstance(number, int):
            row.index = number  # the id of rows without one
        scored, row.data = row.data, kept
        yield scored, row


def by_group(groups: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of each group, for groups of two and more."""
    found: dict[str, list[int]] = {}
    for at, group in enumerate(groups):
        found.setdefault(group, []).append(at)
    return {group: places for group, places in found.items() if len(places) > 1}

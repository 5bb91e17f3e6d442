"""The rows of an input as what probes change: a prompt, a good response, where it is there a bad one, a reference.

Where a row has no good response, the answer that its reference holds is one.

Not covered: whether good responses are good; `good above bad` in the report tells what the scorer thinks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from adjudge.evals.probes.config import ProbesConfig
from adjudge.evals.probes.given import KINDS
from adjudge.evals.probes.planted import gold_texts
from adjudge.evals.probes.row import DOMAINS, ProbeRow, domain_of, with_others
from adjudge.evals.probes.row_file import TRIED, FileRow, ReadRows, read_rows
from adjudge.io.columns import GUESSES
from adjudge.io.values import reference_of

_TRIED: Final[Mapping[str, tuple[str, ...]]] = {
    **TRIED,
    "good": (*TRIED["good"], *GUESSES["response"]),
    "domain": ("domain",),
}


def read_probe_rows(config: ProbesConfig) -> ReadRows[ProbeRow]:
    """Read the rows.

    Raises:
        ValueError: there is no such input or column, no row can be used, or two have one id.
    """
    found = read_rows(config, _TRIED, config.extra_column, _probe_row)
    return dataclasses.replace(found, rows=tuple(with_others(found.rows, plant=not config.given_bad)))


def _probe_row(row: FileRow) -> ProbeRow:
    if not row.columns.keys() & {"good", "reference"}:
        raise ValueError(
            f"no column looks like a good response (tried {', '.join(_TRIED['good'])}) or a reference; name one with "
            f"--good-column or --reference-column. The columns are: {', '.join(row.data) or 'none'}"
        )
    reference = reference_of(row.value("reference"))
    prompt, good = row.exchange("good")
    if good is None:
        good = next((text for text in gold_texts(reference) if text.strip()), "")
        if not good:
            raise ValueError("it has no good response, and its reference holds no answer as text")
    domain = row.value("domain")
    return ProbeRow(
        id=row.id,
        prompt=prompt,
        good=good,
        bad=row.exchange("bad")[1],
        reference=reference,
        domain=domain if domain in DOMAINS else domain_of(reference, good),
        equals={kind: row.data[kind] for kind in KINDS if isinstance(row.data.get(kind), str)},
        extra=row.extra,
    )

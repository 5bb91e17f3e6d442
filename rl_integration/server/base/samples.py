"""Samples out of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from adjudge.protocol import Sample
from adjudge.rl_integration.server.base.errors import HttpError

Rows = TypeVar("Rows", bound=Sequence[Any])


def samples_of(rows: Sequence[Any], most: int) -> list[Sample]:
    """Return the samples that JSON rows describe.

    Raises:
        HttpError: 413, there are too many; 422, a row is no sample.
    """
    samples = []
    for index, row in enumerate(within_limit(rows, most)):
        try:
            if not isinstance(row, Mapping):
                raise ValueError(f"it is a {type(row).__name__}; give an object with prompt, response, reference, ...")
            samples.append(_checked(Sample.from_dict(row)))
        except (ValueError, TypeError) as error:
            raise HttpError(422, "bad_sample", f"sample {index}: {error}") from error
    return samples


def within_limit(rows: Rows, most: int) -> Rows:
    """Return the rows.

    Raises:
        HttpError: 413, there are too many.
    """
    if len(rows) > most:
        raise HttpError(413, "too_many_samples", f"{len(rows)} samples came, and at most {most} are taken at once")
    return rows


def _checked(sample: Sample) -> Sample:
    for field in ("prompt", "response"):
        value = getattr(sample, field)
        if not isinstance(value, str) and not (
            isinstance(value, list | tuple) and all(isinstance(turn, Mapping) for turn in value)
        ):
            raise ValueError(f'the {field} must be text or a list of messages such as {{"role": .., "content": ..}}')
    for field in ("id", "group"):
        if not isinstance(getattr(sample, field), str):
            raise ValueError(f"the {field} must be text")
    return sample

"""The line at which a scorer's answer is checked before anybody uses it.

Whoever calls a scorer he did not write (a composite, the cache, the public calls, a label job) calls it through
`score_checked`: one score per sample, each with a finite number or none, or a `BrokenScorer` that names the
scorer.  Nothing is broadcast, cut off or padded.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.finish import given_up
from adjudge.protocol import Sample, Score, Scorer, Validates, Verifier
from adjudge.runtime.loop import together


class BrokenScorer(RuntimeError):
    """A scorer raised, or gave something other than one proper score per sample."""


def lacking_of(thing: object) -> list[str]:
    """Return what a scorer has and the thing has not; `isinstance` would evaluate properties before Python 3.12."""
    if isinstance(thing, Verifier):
        return []
    return [name for name in ("name", "fingerprint", "score") if inspect.getattr_static(thing, name, None) is None]


def is_groupwise(scorer: Scorer) -> bool:
    """Return whether a score depends on the other samples of its group (`scorer.groupwise` is true).

    Such a scorer must be given whole groups: it is never cached per sample and its batches are never cut
    inside a group.
    """
    return bool(getattr(scorer, "groupwise", False))


def grouped(names: Mapping[int, str]) -> dict[str, list[int]]:
    """Return the places of each group, in order of appearance."""
    groups: dict[str, list[int]] = {}
    for place, name in names.items():
        groups.setdefault(name, []).append(place)
    return groups


def require_group(scorer: str, sample: Sample) -> None:
    """Raise `ValueError` if a sample has no group, for a scorer that compares the members of one."""
    if not sample.group:
        which = f" {sample.id!r}" if sample.id else ""
        raise ValueError(
            f"{scorer!r} compares the members of a group, and the sample{which} has none; set Sample.group, the same "
            "for all responses to one prompt"
        )


def check_fields(sample: Sample) -> None:
    """Raise `ValueError` if a field of a sample is not what `Sample` says, or its response is none of a model's.

    Turns without an assistant's among them come from a chat with other names for its roles: to grade them as an empty
    answer would be a wrong zero.  A response without turns is an empty answer.  One that was cancelled is no answer.
    """
    for field in ("prompt", "response"):
        value: Any = getattr(sample, field)
        if not isinstance(value, str) and not (
            isinstance(value, list | tuple) and all(isinstance(turn, Mapping) for turn in value)
        ):
            raise ValueError(
                f"the {field} is {value!r:.80}; it must be text or a list of messages such as "
                '{"role": "assistant", "content": "..."}'
            )
    roles = [] if isinstance(sample.response, str) else [turn.get("role") for turn in sample.response]
    if roles and "assistant" not in roles:
        raise ValueError(
            f'no turn of the response has the role "assistant", and only such turns are graded; the roles are '
            f"{', '.join(repr(role)[:40] for role in dict.fromkeys(map(str, roles)))}"
        )
    for field in ("id", "group", "finish_reason"):
        value = getattr(sample, field)
        if not isinstance(value, str) and not (field == "finish_reason" and value is None):
            raise ValueError(f"the {field} is {value!r:.80}; it must be text")
    if sample.finish_reason and given_up(sample.finish_reason):
        raise ValueError(
            f"the finish_reason is {sample.finish_reason!r:.80}: a server or its caller ended the response in the "
            "middle, which says nothing of the model; generate it again"
        )
    if not isinstance(sample.extra, Mapping):
        raise ValueError(f"extra is {sample.extra!r:.80}; it must be a mapping of further columns")


def validate_sample(scorer: Scorer, sample: Sample) -> None:
    """Raise `ValueError` if the scorer can tell that the sample lacks what it needs; else do nothing."""
    if isinstance(scorer, Validates):
        scorer.validate(sample)


async def score_checked(scorer: Scorer, samples: Sequence[Sample], *, called: str = "") -> list[Score]:
    """Return the scorer's scores, or raise if they are not one proper score per sample.

    Args:
        scorer: the scorer to ask.
        samples: what to score; an empty sequence never reaches the scorer.
        called: how an error names the scorer; its own name if empty.

    Raises:
        BrokenScorer: the scorer raised, or its answer breaks the protocol.
    """
    if not samples:
        return []
    who = called or f"the scorer {scorer.name!r}"
    try:
        answer = scorer.score(samples)
        if not inspect.isawaitable(answer):
            raise BrokenScorer(f"{who} has a `score` that is not `async def`; it returned {_kind(answer)}")
        scores = await answer
    except BrokenScorer:
        raise
    except (Exception, SystemExit) as error:  # the boundary: whatever a scorer raises is reported under its name
        raise BrokenScorer(f"{who} raised {type(error).__name__}: {error}") from error
    return _checked(scores, len(samples), who)


async def score_each(
    scorers: Mapping[str, Scorer], chosen: Sequence[str | Score], samples: Sequence[Sample], *, called: str = ""
) -> list[Score]:
    """Return one score per sample, each from the scorer that was chosen for it; all scorers are asked at the same time.

    Args:
        scorers: by name.
        chosen: for each sample the name of its scorer, or its score where that is known already.
        samples: what to score.
        called: how errors name a scorer, with `{}` for its name.
    """
    scores = {place: one for place, one in enumerate(chosen) if isinstance(one, Score)}
    places = grouped({place: one for place, one in enumerate(chosen) if isinstance(one, str)})
    answers = await together(
        [
            score_checked(scorers[name], [samples[place] for place in mine], called=called.format(repr(name)))
            for name, mine in places.items()
        ]
    )
    for mine, answered in zip(places.values(), answers, strict=True):
        scores.update(zip(mine, answered, strict=True))
    return [scores[place] for place in range(len(samples))]


def _checked(scores: object, expected: int, who: str) -> list[Score]:
    if not isinstance(scores, Sequence) or isinstance(scores, str):
        raise BrokenScorer(f"{who} returned {_kind(scores)}; it must return a list with one Score per sample")
    if len(scores) != expected:
        raise BrokenScorer(f"{who} returned {len(scores)} scores for {expected} samples; it must return one for each")
    for index, score in enumerate(scores):
        if not isinstance(score, Score):
            raise BrokenScorer(f"{who} returned {_kind(score)} for sample {index}; it must be an adjudge Score")
        if (score.value is None) == (score.status == "scored"):
            raise BrokenScorer(f"{who} gave sample {index} the status {score.status!r} with the value {score.value!r}")
        if score.value is not None and not math.isfinite(score.value):
            raise BrokenScorer(f"{who} gave sample {index} the value {score.value!r}; a score must be finite")
    return list(scores)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"

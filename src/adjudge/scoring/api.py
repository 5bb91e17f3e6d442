"""The calls most people need: `score` one response, `score_batch` many, `load` a scorer.

The plain functions block, and may be called from any thread, inside a running event loop, in a notebook, in a Ray
actor and after a fork: the work runs on a private event loop.  `ascore` and `ascore_batch` are for code that is
asynchronous itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge.io.values import given_reference
from adjudge.protocol import EMPTY, Message, OutOfScopeError, Provenance, Sample, Score, Scorer
from adjudge.runtime.contract import check_fields, score_checked, validate_sample
from adjudge.runtime.loop import run_blocking
from adjudge.runtime.verifying import VerifierScorer
from adjudge.scoring import registry
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.compose.auto import auto_scorer


def load(spec: Any) -> Scorer:
    """Return the scorer that a spec describes.

    Args:
        spec: a name ("math"), "module:object", "./file.py:object", the folder of a reward model or its name on the
            hub, a one-key mapping such as `{"weighted": {"math": 1.0}}`, YAML or JSON text, the path of a .yaml, .yml
            or .json file, a verifier or scorer object, or a function `f(prompt, response, reference)`.

    Raises:
        ValueError: the spec is malformed, names something unknown, or has options that do not fit.
    """
    return registry.load(spec)


def score(
    prompt: str | Sequence[Message],
    response: str | Sequence[Message],
    reference: Any = None,
    *,
    scorer: Any = "auto",
    finish_reason: str | None = None,
    extra: Mapping[str, Any] = EMPTY,
) -> Score:
    """Score one response.

    Args:
        prompt: the text, or the chat turns, that were answered.
        response: the text, or the turns of a trajectory; only assistant text is graded.
        reference: what to compare with, in the form the scorer documents.
        scorer: anything `load` takes, or "auto" to choose by the reference (see `auto_scorer`).
        finish_reason: "stop", "length", ... as the engine reported it, so that a cut-off answer is seen as one.
        extra: further columns, for scorers that ask for them.

    Returns:
        The verdict; `value` is None when judging was not possible, with the reason.

    Raises:
        ValueError: the sample lacks what the scorer needs, or the scorer is unknown; nothing was run.
        BrokenScorer: the scorer itself failed.
    """
    chosen = registry.load(scorer)  # here: it may import what this thread imports, and another thread would wait
    return run_blocking(
        ascore(prompt, response, reference, scorer=chosen, finish_reason=finish_reason, extra=extra),
    )


def score_batch(samples: Sequence[Sample | Mapping[str, Any]], scorer: Any = "auto") -> list[Score]:
    """Score many samples; one score per sample, in order.

    Args:
        samples: `Sample` objects, or mappings with the same fields (`prompt`, `response`, `reference`, ...).
        scorer: anything `load` takes, or "auto" to choose for each sample by its reference.

    Raises:
        ValueError: a sample is malformed or lacks what the scorer needs, or the scorer is unknown; the message
            names the sample, and nothing was run.
        BrokenScorer: the scorer itself failed.
    """
    return run_blocking(ascore_batch(samples, registry.load(scorer)))  # as in `score`


async def ascore(
    prompt: str | Sequence[Message],
    response: str | Sequence[Message],
    reference: Any = None,
    *,
    scorer: Any = "auto",
    finish_reason: str | None = None,
    extra: Mapping[str, Any] = EMPTY,
) -> Score:
    """Score one response, as `score` does, in the caller's event loop."""
    reference = given_reference(reference)
    sample = Sample(
        prompt=prompt, response=response, reference=reference, finish_reason=finish_reason, extra=dict(extra)
    )
    check_fields(sample)
    chosen = registry.load(scorer)
    validate_sample(chosen, sample)
    (verdict,) = await score_checked(chosen, [sample])
    return verdict


async def ascore_batch(samples: Sequence[Sample | Mapping[str, Any]], scorer: Any = "auto") -> list[Score]:
    """Score many samples, as `score_batch` does, in the caller's event loop."""
    prepared = [sample_of(item, index) for index, item in enumerate(listed(samples))]
    chosen = registry.load(scorer)
    for index, sample in enumerate(prepared):
        try:
            validate_sample(chosen, sample)
        except ValueError as error:
            which = f" (id {sample.id!r})" if sample.id else ""
            raise ValueError(f"sample {index}{which}: {error}") from error
    return await score_checked(chosen, prepared)


async def score_rows(scorer: Scorer, samples: Sequence[Sample]) -> list[Score]:
    """Score rows of a data set, of which some may be another scorer's; one score per sample, in order.

    A row without a reference that the scorer wants, or with one that only another scorer takes, is not judged: its
    score abstains with "out_of_scope".  A row that the scorer refuses for another reason fails alone.

    Raises:
        BrokenScorer: the scorer itself failed.
    """
    # A verifier validates itself; reading large references twice would cost as much again.
    itself = isinstance(scorer, VerifierScorer)
    verdicts = {
        place: score
        for place, sample in enumerate(samples)
        if (score := _refusal(scorer, sample, fields_only=itself)) is not None
    }
    rest = [place for place in range(len(samples)) if place not in verdicts]
    for place, score in zip(rest, await score_checked(scorer, [samples[place] for place in rest]), strict=True):
        refusal = _refusal(scorer, samples[place]) if itself and score.reason == "bad_sample" else None
        verdicts[place] = refusal or score
    return [verdicts[place] for place in range(len(samples))]


def malformed(sample: Sample) -> Score | None:
    """Return the failed score of a sample whose fields are not what `Sample` says; None for any other."""
    try:
        check_fields(sample)
    except ValueError as error:
        return Score.failed("bad_sample", error=str(error))
    return None


def _refusal(scorer: Any, sample: Sample, *, fields_only: bool = False) -> Score | None:
    """The score of a sample that is none, or that the scorer refuses; None for any other."""
    refused = malformed(sample)
    try:
        if refused is None and not fields_only:
            validate_sample(scorer, sample)
    except ValueError as error:
        text = str(error) or "the scorer refuses the sample and does not say why"
        foreign = _is_another_scorers(sample, error)
        refused = Score.abstained("out_of_scope", error=text) if foreign else Score.failed("bad_sample", error=text)
    if refused is None:
        return None
    return replace(refused, provenance=Provenance(scorer=scorer.name, fingerprint=scorer.fingerprint))


def _is_another_scorers(sample: Sample, error: BaseException | None) -> bool:
    """Whether a refused sample has no reference, or one of a shape that only another scorer takes."""
    while error is not None and not (isinstance(error, BadReferenceError) and error.mistake):
        if isinstance(error, OutOfScopeError):
            return True
        error = error.__cause__
    reference = sample.reference
    if error is None or (isinstance(reference, str) and reference.lstrip()[:1] in ("{", "[")):
        return False  # JSON text is read where rows are read, so what is still text cannot be read
    try:
        validate_sample(registry.load(auto_scorer(reference, sample.prompt)), sample)
    except ValueError:
        return False
    return True


def listed(samples: Any) -> Iterable[Any]:
    """Return what a caller gives as samples; a single one, or nothing of the kind, raises `ValueError`."""
    if isinstance(samples, str | bytes | Mapping | Sample) or not isinstance(samples, Iterable):
        raise ValueError(f"samples is {samples!r:.80}; give a list of samples, also of a single one")
    return samples


def sample_of(item: Sample | Mapping[str, Any], index: int) -> Sample:
    """Return a sample, or the one that a mapping of its fields describes.

    Raises:
        ValueError: it is none; the message says which one, by its index.
    """
    try:
        if isinstance(item, Sample):
            sample = item
        elif isinstance(item, Mapping):
            sample = Sample.from_dict(item)
        else:
            raise ValueError(f"it is a {type(item).__name__}; give an adjudge.Sample or a mapping of its fields")
        check_fields(sample)
    except ValueError as error:
        raise ValueError(f"sample {index}: {error}") from error
    reference = given_reference(sample.reference)
    return sample if reference is sample.reference else replace(sample, reference=reference)

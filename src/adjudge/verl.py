"""verl: a reward function that its reward loop loads.

    reward.custom_reward_function.path=pkg://adjudge.verl
    +reward.custom_reward_function.reward_kwargs.scorer=math

verl knows numbers alone.  A sample without a score raises, which verl's default trainer takes as leaving it out
(`sampler` ends a run of which most is left out), or becomes the `fallback`, and is marked as such (`reward_valid` 0).
Every answer has the same keys: verl takes the first sample's for all of a batch.

Tried with verl 0.9.1.  Not covered: the prompt, unless a column of `extra_info` holds it, the group, and answers that
were cut off; verl does not give these to a function.  `AdjudgeRewardManager` knows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from adjudge.io.values import prompt_of
from adjudge.protocol import Sample
from adjudge.rl_integration.adapters.row import check_aligned, name_in, named, read_reference, reference_in
from adjudge.rl_integration.adapters.row_reward import DryRun, first_rows
from adjudge.rl_integration.adapters.verl_scores import (
    VerlOptions,
    check_turns,
    extra_of,
    picked,
    verl_options,
    verl_scores,
)
from adjudge.runtime.loop import run_blocking

_TRUTH = "reward_model.ground_truth"


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    *,
    prompt: str = "",
    group: str = "",
    reward_router_address: str | None = None,
    reward_model_tokenizer: Any = None,
    **options: Any,
) -> dict[str, float]:
    """Score one response; called by verl's managers `naive`, `dapo`, `gdpo` and `rate_limited`.

    Args:
        data_source: chooses among `scorers`.
        solution_str: the response.
        ground_truth: the reference; text that is a JSON object is taken as one.
        extra_info: further columns; never changed.  Its `finish_reason`, if there is one, is believed.
        prompt: the key of `extra_info` that holds the prompt; "" for scorers that do not read it.
        group: the key of `extra_info` that is the same for all answers to a prompt; "" for none.
        reward_router_address: of verl's own reward model; not used.
        reward_model_tokenizer: of verl's own reward model; not used.
        options: the fields of `VerlOptions`, as `reward_kwargs` sets them.

    Returns:
        Numbers: `score`, and the same as `acc`; `reward_valid`, `reward_failed` and `reward_abstained`, of which one
        is 1 and the others are 0; and `part_NAME` for each of `parts`.

    Raises:
        ValueError: an option is wrong, a column is missing, or tools spoke.
        NotScored: there is no score and no fallback.
        TooManyFailures: there is a fallback, but it would stand for too many.
    """
    chosen = verl_options(options)
    sample = _sample(str(data_source), solution_str, ground_truth, extra_info, chosen, prompt, group)
    (numbers,) = await verl_scores(chosen).ask([str(data_source)], [sample])
    return numbers


def compute_score_batch(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Mapping[str, Any] | None],
    *,
    prompt: str = "",
    group: str = "",
    **options: Any,
) -> list[dict[str, float]]:
    """Score a batch; called by the legacy manager `batch` (`verl.workers.reward_manager`).

    It takes lists of what `compute_score` takes, one of each for each response, and the same options.

    Returns:
        What `compute_score` returns, one for each response, in order.

    Raises:
        ValueError: an option is wrong, or a column is missing or of another length.
        NotScored: a response has no score, and there is no fallback.
        TooManyFailures: there is a fallback, but it would stand for too many.
    """
    chosen = verl_options(options)
    check_aligned(
        "verl",
        solution_strs=solution_strs,
        data_sources=data_sources,
        ground_truths=ground_truths,
        extra_infos=extra_infos,
    )
    samples = [
        _sample(str(name), text, truth, info, chosen, prompt, group)
        for name, text, truth, info in zip(data_sources, solution_strs, ground_truths, extra_infos, strict=True)
    ]
    return run_blocking(verl_scores(chosen, alone=False).ask([str(name) for name in data_sources], samples))


def dry_run(rows: Any, *, n: int = 8, prompt: str = "", group: str = "", **options: Any) -> DryRun:
    """Score the first rows of verl's data with an empty answer, before a run; print what is returned to see them.

    Args:
        rows: the Parquet file, or rows in verl's layout: `data_source`, `reward_model`, `extra_info`.
        n: how many rows to look at.
        prompt: the key of `extra_info` that holds the prompt; "" for scorers that do not read it.
        group: the key of `extra_info` that is the same for all answers to a prompt; "" for none.
        options: the fields of `VerlOptions`, as `reward_kwargs` sets them.

    Raises:
        ValueError: an option is wrong, a row lacks a column or cannot be judged, or the scorer is for none of the rows.
    """
    chosen = verl_options(options)
    first = first_rows(rows, n)
    sources = [name_in(row, "data_source", "data_source", "verl") for row in first]
    samples = [
        _sample(
            source,
            "",
            reference_in(row, _TRUTH, "verl"),
            row.get("extra_info"),
            chosen,
            prompt,
            group,
        )
        for source, row in zip(sources, first, strict=True)
    ]
    seen = DryRun(tuple(samples), tuple(verl_scores(chosen).tried(sources, samples)))
    seen.check("verl", chosen.fallback, numbers_only=True)
    return seen


def __getattr__(name: str) -> Any:
    if name == "AdjudgeRewardManager":  # it derives from verl's class, and the function needs no verl
        return import_module("adjudge.rl_integration.adapters.verl_manager").AdjudgeRewardManager
    if name == "sampler":
        return import_module("adjudge.rl_integration.adapters.verl_scores").sampler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _sample(
    source: str, text: str, truth: Any, info: Mapping[str, Any] | None, options: VerlOptions, prompt: str, group: str
) -> Sample:
    check_turns((info or {}).get("num_turns"), options)
    told = picked(info, [name for name in (prompt, group) if name])
    ended, asked = (info or {}).get("finish_reason"), told.get(prompt)
    return Sample(
        prompt=prompt_of("" if asked is None or asked != asked else asked),  # pandas makes NaN of a missing cell
        response=text,
        reference=read_reference(truth),
        group=named(told.get(group)),
        finish_reason=ended if isinstance(ended, str) else None,
        extra=extra_of(source, info, options),
    )

"""Inspect (inspect_ai): our scorers in its evaluations, and its scorers wherever ours are taken.

    Task(dataset=..., solver=generate(), scorer=scorer("math"))       # a scorer of Inspect's
    adjudge.score(prompt, response, "2", scorer=InspectScorer(match()))  # a scorer of ours

A score without a number is Inspect's `Score.unscored`: it is kept in the log with its reason, and metrics and reducers
leave it out.

Tried with inspect_ai 0.3.285.  Not covered: scorers of Inspect's that look at a sandbox, a store or the running task.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from typing import Any, Literal, TypeAlias, get_args

from adjudge.fingerprints import signed
from adjudge.io.values import Text
from adjudge.protocol import (
    MissingReferenceError,
    Provenance,
    Sample,
    Score,
    content_text,
    require_reference,
    response_text,
)
from adjudge.rl_integration.adapters.row import Place
from adjudge.rl_integration.adapters.row_reward import RowReward, metric_name
from adjudge.verifiers.text.answer_verifier import alternatives

Graded: TypeAlias = Literal["completion", "messages"]

_ENDS = {"stop": "stop", "max_tokens": "length", "model_length": "length"}
_REASONS = {"no_answer": "no_response", "unparsable_answer": "invalid_response_format"}


@dataclass(eq=False, kw_only=True)
class _InspectReward(RowReward):
    framework = "Inspect"
    numbers_only = False
    reference: Place = "target"


def scorer(
    spec: Any, *, name: str = "", metrics: Sequence[Any] | None = None, response: Graded = "completion", **options: Any
) -> Any:
    """Return a scorer of Inspect's.

    Args:
        spec: anything `adjudge.load` takes; with `server`, the scorer's name there.
        name: what Inspect calls it; the scorer's name otherwise.
        metrics: Inspect's metrics; its mean and standard error otherwise.
        response: what is scored: "completion", the text that Inspect's own scorers read, which is what an agent
            submitted; "messages", the turns from the model's first one on, for scorers of agents' runs.
        options: those of the rewards for frameworks, such as `reference` ("target", or a field of the metadata),
            `server`, `fallback` and `max_failed`.

    Raises:
        ValueError: the scorer is unknown, or an option is wrong.
        ModuleNotFoundError: Inspect is not installed.
    """
    theirs: Any = import_module("inspect_ai.scorer")
    reward = _InspectReward(spec, **options)
    if response not in get_args(Graded):
        raise ValueError(f"response={response!r}; it must be one of {', '.join(get_args(Graded))}")

    def made() -> Any:
        async def score(state: Any, target: Any) -> Any:
            row = {**state.metadata, "target": target.text if len(target) == 1 else list(target)}
            sample = reward.made_sample(
                row,
                _messages(state.input),
                (response == "messages" and _generated(state)) or state.output.completion,
                finish_reason=_ENDS.get(state.output.stop_reason) if state.output.choices else None,
            )
            (result,) = await reward.scores([row], [sample])
            return _told(theirs.Score, result, reward.fallback)

        return score

    chosen = list(metrics) if metrics is not None else [theirs.mean(), theirs.stderr()]
    return theirs.scorer(metrics=chosen, name=metric_name(spec, name))(made)()


def _told(kind: Any, score: Score, fallback: float | None) -> Any:
    evidence = dict(score.evidence)
    known: dict[str, Any] = {
        "answer": None if evidence.get("answer") is None else str(evidence["answer"]),
        "explanation": f"{score.status} {score.reason}".rstrip(),
        "metadata": {
            "status": score.status,
            "reason": score.reason,
            "fingerprint": score.provenance.fingerprint,
            "parts": {part: value.value for part, value in score.parts.items()},
            "evidence": json.loads(json.dumps(evidence, default=str)),
        },
    }
    if score.value is not None:
        return kind(value=score.value, reason=_REASONS.get(score.reason), **known)
    if fallback is not None:
        return kind(value=fallback, reason="scoring_failed", **known)
    return kind.unscored(reason="grader_failed" if score.reason.startswith("judge_") else "scoring_failed", **known)


def _messages(given: Any) -> Text:
    return given if isinstance(given, str) else [{"role": turn.role, "content": turn.text} for turn in given]


def _generated(state: Any) -> list[dict[str, Any]]:
    """The turns from the model's first one on.

    Solvers insert messages before the question, and examples have an assistant, too; only Inspect's mark tells them
    from what was generated.
    """
    said = (turn.role == "assistant" and turn.source == "generate" for turn in state.messages)
    turns = state.messages[next((place for place, own in enumerate(said) if own), len(state.messages)) :]
    return [{"role": turn.role, "content": turn.text} for turn in turns if turn.role in ("assistant", "tool", "user")]


class InspectScorer:
    """A scorer of Inspect's as one of ours; what it leaves unscored fails with "verifier_error".

    Args:
        scorer: of Inspect's, such as `match()`; the reference becomes its target.
        needs_reference: whether a sample without a reference is out of scope.  Inspect's own scorers find an empty
            target in every answer.

    Raises:
        ModuleNotFoundError: Inspect is not installed.
    """

    def __init__(self, scorer: Any, *, needs_reference: bool = True) -> None:
        registry: Any = import_module("inspect_ai._util.registry")
        self._scorer = scorer
        self._needs_reference = needs_reference
        self._value: Any = import_module("inspect_ai.scorer").value_to_float()
        self.name = str(registry.registry_unqualified_name(scorer))
        options = {key: repr(value) for key, value in registry.registry_params(scorer).items()}
        self.fingerprint = signed("inspect_ai", version("inspect_ai"), self.name, options)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if a sample lacks the reference that the scorer needs, or has turns without text."""
        if self._needs_reference:
            require_reference(self.name, sample)
            accepted = _accepted(sample.reference)
            if not accepted or "" in accepted:
                raise MissingReferenceError(f"{self.name}: the reference is empty, and every answer would contain it")
        _asked(sample)
        response_text(sample)

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return a score for each sample, in order."""
        signed_by = Provenance(scorer=self.name, fingerprint=self.fingerprint)
        return [replace(await self._one(sample), provenance=signed_by) for sample in samples]

    async def _one(self, sample: Sample) -> Score:
        model: Any = import_module("inspect_ai.model")
        text = response_text(sample)
        roles = {"system": model.ChatMessageSystem, "assistant": model.ChatMessageAssistant}
        turns = [roles.get(role, model.ChatMessageUser)(content=said) for role, said in _asked(sample)]
        target: Any = import_module("inspect_ai.scorer").Target(_accepted(sample.reference))
        ended = "max_tokens" if sample.finish_reason == "length" else "stop"
        state: Any = import_module("inspect_ai.solver").TaskState(
            model=model.ModelName("mockllm/model"),
            sample_id=0,
            epoch=1,
            input=sample.prompt if isinstance(sample.prompt, str) else turns,
            messages=[*turns, model.ChatMessageAssistant(content=text)],
            target=target,
            output=model.ModelOutput.from_content("mockllm/model", text, stop_reason=ended),
            completed=True,
            metadata=dict(sample.extra),
        )
        result = await self._scorer(state, target)
        if result is None:
            return Score.failed("verifier_error", error=f"Inspect's {self.name} left it unscored")
        value = self._value(result.value)
        if not math.isfinite(value):
            why = str(result.reason or result.explanation or "")
            return Score.failed("verifier_error", error=f"Inspect's {self.name} left it unscored: {why}")
        said = {"answer": result.answer, "explanation": result.explanation}
        return Score.scored(value, **{name: text for name, text in said.items() if text is not None})


def _asked(sample: Sample) -> list[tuple[Any, str]]:
    """The roles and texts of the prompt's turns; Inspect's scorers look at no images in it."""
    if isinstance(sample.prompt, str):
        return [("user", sample.prompt)]
    return [(turn.get("role"), content_text(turn.get("content"))) for turn in sample.prompt]


def _accepted(reference: Any) -> list[str]:
    """The texts of a reference; 2.0 in a data set means 2."""
    if reference is None or reference in ([], ()):
        return []
    return [
        str(int(one)) if isinstance(one, float) and one.is_integer() else str(one)
        for one in alternatives(reference, "a text, a number, or a list of these")
        if one is not None
    ]

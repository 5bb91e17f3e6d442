r"""ThinkPRM (arXiv 2504.16828): a model thinks through a whole solution step by step, then decides on all of it.

The chain says `\boxed{correct}` or `\boxed{incorrect}` of each step and stops at the first incorrect one; then "Is the
solution correct?", and P(Yes) is the score.  Two ways to spend more on it: `chains` are written side by side and
averaged, and `double_checks` make a chain look again.  Steps have verdicts of their own, the share of the chains that
call them correct, where a chain has exactly one verdict for each step up to its first error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from adjudge.engines.interface import Fault
from adjudge.options import Count
from adjudge.prompts.reading import answers as places_of
from adjudge.prompts.scorer import Case, require_text
from adjudge.prompts.template import Rendered
from adjudge.protocol import THINK_END, Message, Sample, Score, StepScore, response_text
from adjudge.responses.steps import Splitting, Step, given_steps, split_steps
from adjudge.reward_models.generative.chain_scorer import ChainScorer, Found, VerdictReader


@dataclass(frozen=True, kw_only=True)
class StepScorer(ChainScorer):
    """Base of the scorers that say something about each step.

    Attributes:
        splitting: where a step begins, as `adjudge.responses.steps` says; `extra["steps"]` of a sample, a
            list of texts, goes before.
        max_steps: most steps; the last one holds the rest.
    """

    splitting: Splitting = "blank_line"
    max_steps: Count = 64

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` if the reference is not text, or `extra["steps"]` is not a list of texts."""
        require_text(sample.reference)
        given = sample.extra.get("steps")
        if given is not None and (
            isinstance(given, str)
            or not isinstance(given, Sequence)
            or not given
            or not all(isinstance(step, str) and step.strip() for step in given)
        ):
            raise ValueError('extra["steps"] must be a list of texts that are not empty, or left out')

    def steps(self, case: Case) -> tuple[Step, ...] | Score:
        """Return the steps of a response, one at least, or its score if those that were given are not the response."""
        given = case.sample.extra.get("steps")
        if given is None:
            return split_steps(case.response, self.splitting, most=self.max_steps) or _one(case)
        steps = given_steps(case.response, given)
        if not steps or len(steps) > self.max_steps:
            problem = "are not the response" if not steps else f"are {len(steps)}, and at most {self.max_steps} fit"
            return Score.scored(self.lowest, "bad_format", error=f'extra["steps"] {problem}')
        return steps

    def shown(self, case: Case) -> tuple[Step, ...]:
        """Return the steps that a prompt shows; of a response that stands in for a long one, whatever it has."""
        steps = self.steps(case)
        return _one(case) if isinstance(steps, Score) else steps


def as_turns(steps: Sequence[Step], first: int = 1) -> list[Message]:
    """Return steps as turns of a block, each under its own number, so that no step can pose as another."""
    return [{"role": f"step_{number}", "content": step.text} for number, step in enumerate(steps, start=first)]


def step_scores(case: Case, steps: Sequence[Step], values: Sequence[float | None]) -> tuple[StepScore, ...]:
    """Return verdicts with their places in `response_text` of the sample; None is a step that was not judged."""
    offset = response_text(case.sample).rindex(case.response)
    scores = []
    for step, value in zip(steps, values, strict=True):
        label = "unjudged" if value is None else "right" if value > 0.5 else "wrong"
        scores.append(StepScore(value=value, label=label, start=offset + step.start, end=offset + step.end))
    return tuple(scores)


def _one(case: Case) -> tuple[Step, ...]:
    return (Step(text=case.response, start=0, end=len(case.response)),)


_STEP_FORM = r"\boxed{{answer}}"
_CORRECT, _INCORRECT = "correct", "incorrect"
_OPENING = r"\boxed{"  # broken up in what is shown, so that a chain that quotes a step quotes no verdict


@dataclass(frozen=True, kw_only=True)
class ThinkPrm(StepScorer):
    """The chance that a solution is correct, after a model has thought through its steps; `Score.steps` has each.

    The reference, if there is one, is a correct answer or solution that the model is shown.  The prompt is in our
    words; give a released checkpoint its own as `template` (docs/judges.md).
    """

    name: ClassVar[str] = "think_prm"
    chain_template: ClassVar[str] = "reward_models/generative/think_prm"

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        cut = [self.steps(case) for case in cases]
        ready = [(case, steps) for case, steps in zip(cases, cut, strict=True) if not isinstance(steps, Score)]
        read = VerdictReader(form=self.chain_prompt().form, note=step_verdicts)
        rows = iter(await self.written([case for case, _ in ready], self._prompt, read)) if ready else iter(())
        judged = iter([self._scored(case, steps, next(rows)) for case, steps in ready])
        return [steps if isinstance(steps, Score) else next(judged) for steps in cut]

    def _prompt(self, case: Case) -> Rendered:
        template = self.chain_prompt()
        values = {
            "prompt": case.sample.prompt,
            "reference": case.sample.reference,
            "steps": as_turns(self.shown(case)),
        }
        return self.filled(template, values)

    def broken_up(self) -> tuple[str, ...]:
        """Return what is broken up in untrusted text beside the verdict's form."""
        return (_OPENING,)

    def _scored(self, case: Case, steps: Sequence[Step], row: Sequence[Found]) -> Score:
        said = [one[0].notes for one in row if not isinstance(one, Fault)]
        fitting = [one for one in said if one is not None and fits(one, len(steps))]
        values = step_values(fitting, len(steps))
        return self.scored(
            row,
            steps=step_scores(case, steps, values),
            evidence={"chains_with_steps": len(fitting)},
        )


def step_verdicts(text: str) -> tuple[bool, ...] | None:
    r"""Return the verdicts on steps that a chain holds, in order, or None if it holds none.

    Where the chain thinks first, those behind its thinking count, if there are any.  Another `\boxed` is none.
    """
    cut = max(text.rfind(tag) for tag in THINK_END)
    return _verdicts(text[cut:]) or _verdicts(text) if cut >= 0 else _verdicts(text)


def _verdicts(text: str) -> tuple[bool, ...] | None:
    words = [answer.casefold() for answer, _ in places_of(text, _STEP_FORM)]
    return tuple(word == _CORRECT for word in words if word in (_CORRECT, _INCORRECT)) or None


def fits(verdicts: Sequence[bool], steps: int) -> bool:
    """Return whether verdicts are one for each step, or end at the first incorrect one."""
    return len(verdicts) == steps or (len(verdicts) < steps and not verdicts[-1] and all(verdicts[:-1]))


def step_values(chains: Sequence[Sequence[bool]], steps: int) -> list[float | None]:
    """Return for each step the share of the chains that call it correct, of those that say something about it."""
    values: list[float | None] = []
    for at in range(steps):
        said = [verdicts[at] for verdicts in chains if at < len(verdicts)]
        values.append(sum(said) / len(said) if said else None)
    return values

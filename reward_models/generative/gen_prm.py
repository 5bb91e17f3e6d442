r"""GenPRM (arXiv 2504.00891): for each step an analysis, a program that checks it and is run, then P(Yes).

A step is judged with the problem and the steps before it in view.  With an `executor`, the model may write Python
between `<verify>` and `</verify>`; the program is run, what it prints is put behind it, and the model goes on to
`\boxed{Yes}` or `\boxed{No}`.  Without one, nothing is run and no program is asked for.

Each step is asked about by itself: no analysis of another step is in its prompt, so that all are asked together and a
wrong analysis is not handed on.  GenPRM's own code runs programs in its own process; here whoever makes the executor
decides where, and a sandbox is the right place.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

from adjudge.engines.interface import Fault, Sampling
from adjudge.fingerprints import signed
from adjudge.options import Count
from adjudge.prompts.asking import NoVerdict, Reader
from adjudge.prompts.escaping import escape
from adjudge.prompts.scorer import Case
from adjudge.prompts.template import Rendered, Template, load_template
from adjudge.protocol import Score
from adjudge.responses.aggregate import Aggregate, aggregate
from adjudge.responses.steps import Step
from adjudge.reward_models.generative.chain_scorer import Chain, Draft, Found, VerdictReader, cost_of
from adjudge.reward_models.generative.think_prm import StepScorer, as_turns, step_scores

_OPEN, _CLOSE = "<verify>", "</verify>"
_FENCE = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL | re.IGNORECASE)
_TO_BREAK = (_OPEN, _CLOSE, r"\boxed{")
_LONGEST_OUTPUT = 2_000  # characters of what a program prints that the model is shown, half from either end


@runtime_checkable
class Executor(Protocol):
    """Runs programs that a model wrote, apart from everything they could harm."""

    @property
    def fingerprint(self) -> str:
        """Text that changes whenever the same program could print something else."""
        ...

    def run(self, source: str) -> str:
        """Return what a Python program prints, errors included; called from several threads at once.

        Raises:
            RuntimeError: programs cannot be run at all.
            OSError: likewise.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCase(Case):
    """One step of a response: its number, from 1, and all steps."""

    number: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramReader:
    """Reads a verdict, or else a program that the text ends in: one that was opened by `<verify>` and not closed."""

    whole: ClassVar[bool] = True

    form: str

    def __call__(self, text: str, nonce: str = "", /) -> Draft | None:
        """Return the draft, or None if there is neither."""
        _, opened, rest = text.rpartition(_OPEN)
        if opened and _CLOSE not in rest:
            return Draft(begun=text, program="\n\n".join(_FENCE.findall(rest)))
        return VerdictReader(form=self.form)(text, nonce)


@dataclass(frozen=True, kw_only=True)
class GenPrm(StepScorer):
    """How likely each step is right, after a model has analysed it and run a check; `Score.steps` has each.

    The reference, if there is one, is a correct answer or solution that the model is shown.

    Attributes:
        aggregate: how the steps become one number, as `adjudge.responses.aggregate` says.
        executor: runs the programs, an object with `run` and `fingerprint` (`Executor`); None for no programs.
        max_programs: how many programs a chain may run; one that wants more has no verdict.
    """

    name: ClassVar[str] = "gen_prm"
    chain_template: ClassVar[str] = "reward_models/generative/gen_prm"

    aggregate: Aggregate = "min"
    executor: Any = None
    max_programs: Count = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output != "share":
            raise ValueError(f"{self.name} option output={self.output!r}; steps are aggregated as shares: leave it out")
        runs = callable(getattr(self.executor, "run", None))
        if self.executor is not None and not (runs and isinstance(getattr(self.executor, "fingerprint", None), str)):
            raise ValueError(
                f"{self.name} option executor={self.executor!r}; give an object with `run(source) -> text` and a text "
                "`fingerprint`, or none (docs/process_rewards.md shows one that uses the sandbox)"
            )

    def chain_prompt(self) -> Template:
        """Return the prompt that asks for a chain; it speaks of programs only where they are run."""
        own = f"{self.chain_template}_code" if self.executor is not None else self.chain_template
        return load_template(self.template or own)

    @property
    def fingerprint(self) -> str:
        """As that of every scorer, with the executor's."""
        if self.executor is None:
            return super().fingerprint
        alone = replace(self, executor=None, template=self.template or f"{self.chain_template}_code")
        return signed(self.name, alone, self.executor)

    def sampling(self, **changes: Any) -> Sampling:
        """Return how the model answers: where programs are run, it stops at the end of one."""
        return super().sampling(**({"stop": (_CLOSE,)} if self.executor is not None else {}), **changes)

    def broken_up(self) -> tuple[str, ...]:
        """Return what is broken up in untrusted text beside the verdict's form."""
        return _TO_BREAK

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        cut = [self.steps(case) for case in cases]
        asked = [
            StepCase(sample=case.sample, response=case.response, number=number, steps=steps)
            for case, steps in zip(cases, cut, strict=True)
            if not isinstance(steps, Score)
            for number in range(1, len(steps) + 1)
        ]
        form = self.chain_prompt().form
        read: Reader[Draft] = VerdictReader(form=form) if self.executor is None else ProgramReader(form=form)
        rows = iter(await self.written(asked, self._prompt, read)) if asked else iter(())
        return [
            steps if isinstance(steps, Score) else self._scored(case, steps, [next(rows) for _ in steps])
            for case, steps in zip(cases, cut, strict=True)
        ]

    def _prompt(self, case: StepCase) -> Rendered:
        whole = len(case.response) >= case.steps[-1].end  # else a short text stands in for one that was too long
        steps = case.steps if whole else self.shown(case)
        at = min(case.number, len(steps)) - 1
        values = {
            "prompt": case.sample.prompt,
            "reference": case.sample.reference,
            "before": as_turns(steps[:at]) or None,
            "step": as_turns(steps[at : at + 1], first=at + 1),
        }
        return self.filled(self.chain_prompt(), values)

    async def interlude(self, chains: Sequence[Chain | Fault], read: Reader[Draft]) -> list[Chain | Fault]:
        """Run the programs that chains end in, and let the chains go on, until each has a verdict or ran too many."""
        results = list(chains)
        for left in range(self.max_programs, -1, -1):
            places = [at for at, one in enumerate(results) if isinstance(one, Chain) and one.draft.program is not None]
            if not places:
                break
            if left == 0:
                for at in places:
                    results[at] = self._too_many(results[at])
                break
            waiting = [one for at in places if isinstance(one := results[at], Chain)]
            programs = [one.draft.program or "" for one in waiting]
            printed = await asyncio.gather(*(asyncio.to_thread(self._printed, program) for program in programs))
            starts = [""] * len(results)
            for at, chain, output in zip(places, waiting, printed, strict=True):
                if isinstance(output, Fault):
                    results[at] = replace(output, cost=chain.cost)
                else:
                    starts[at] = f"{chain.text.rstrip()}\n{_CLOSE}\nThe program printed:\n```\n{output}\n```\n"
            results = await self.gone_on(results, starts, read)
        return results

    def _printed(self, source: str) -> str | Fault:
        if not source.strip():
            return "(there was no program in a fence)"
        try:
            output = self.executor.run(source)
        except (OSError, RuntimeError) as error:
            return Fault(reason="engine_unavailable", detail=f"programs cannot be run: {error}"[:500])
        text = escape(output.strip(), marks=("```",))
        if len(text) > _LONGEST_OUTPUT:
            text = f"{text[: _LONGEST_OUTPUT // 2]}\n...\n{text[-_LONGEST_OUTPUT // 2 :]}"
        return text or "(nothing)"

    def _too_many(self, chain: Chain | Fault) -> Chain | Fault:
        if isinstance(chain, Fault):
            return chain
        detail = f"the model wanted to run more than {self.max_programs} programs"
        return NoVerdict(reason="judge_unparsable", detail=detail, text=chain.text[-2_000:], cost=chain.cost)

    def _scored(self, case: Case, steps: Sequence[Step], rows: Sequence[Sequence[Found]]) -> Score:
        scores = [self.scored(row) for row in rows]
        cost = sum((cost_of(row) for row in rows[1:]), cost_of(rows[0]))
        values = [score.value for score in scores]
        open_at = next((at for at, value in enumerate(values) if value is None), None)
        outcome = next((score for score in scores if score.reason == "too_complex"), None)
        if outcome is not None:
            return replace(outcome, cost=cost)
        if open_at is not None:
            evidence = {**scores[open_at].evidence, "step": open_at + 1}
            return replace(scores[open_at], steps=step_scores(case, steps, values), evidence=evidence, cost=cost)
        known = [value for value in values if value is not None]
        worst = min(range(len(known)), key=lambda at: known[at])
        return Score(
            value=aggregate(known, self.aggregate),
            steps=step_scores(case, steps, known),
            evidence={**scores[worst].evidence, "step": worst + 1},
            uncertainty=scores[worst].uncertainty if self.aggregate == "min" else None,
            cost=cost,
        )

"""What scorers have in common that let a model verify in words and then decide: chains, double checks, P(Yes).

Each chain ends in a verdict in a declared form.  Read by probabilities, the text is cut right before the verdict and
P(Yes) is read there, as the words of a trained model would come; read by votes, the verdict itself counts.  A chain
that ends without a verdict, or is cut off, has none; `quorum` says how many may be missing.

P(Yes) = p_yes / (p_yes + p_no), with a temperature T: 1 / (1 + exp(-(log p_yes - log p_no) / T)).  All usual spellings
of a word are summed.  Where both words together are unlikely, the model was about to say something else, and there is
no P(Yes): see `Unsure`.  The mean of K sampled chances is an unbiased estimate of what the model says on average, and
the mean of K verdicts is one too, with more noise.  The majority is not: it is what a vote decides, drawn to 0 and 1.

Probabilities after a chain need an engine that goes on with an assistant's turn: `transformers`, `vllm`, and servers
with `dialect: vllm`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from adjudge.engines.interface import Fault, LabelLogprobs, Labels, Sampling
from adjudge.options import Count, Range, Share
from adjudge.prompts.asking import Answer, NoVerdict, Reader, ask, ask_labels
from adjudge.prompts.reading import Blank, LabelReader, concluded, frame
from adjudge.prompts.scorer import Case, ModelScorer, Unsure, forced_of, mean_and_error, shortened
from adjudge.prompts.template import Rendered, Template, load_template
from adjudge.protocol import NO_COST, THINK_END, THINK_START, Cost, Score
from adjudge.reward_models.generative.assistant_turn import CLOSE, OPEN, own_turn
from adjudge.statistics.logistic import sigmoid

Combine: TypeAlias = Literal["mean", "majority"]


def combined(chances: Sequence[float], how: Combine) -> float:
    """Return the mean, or 1 where more chances lie above 1/2 than below, 0 where fewer do, and 1/2 for a draw.

    Raises:
        ValueError: there is no chance.
    """
    if not chances:
        raise ValueError("there is no chance to combine; a chain without a verdict has none")
    if how == "mean":
        return math.fsum(chances) / len(chances)
    above, below = sum(chance > 0.5 for chance in chances), sum(chance < 0.5 for chance in chances)
    return 0.5 if above == below else float(above > below)


YES, NO = "Yes", "No"
LABELS = (YES, NO)
YES_NO: Labels = {
    word: tuple(blank + case for case in (word, word.lower(), word.upper()) for blank in ("", " ")) for word in LABELS
}

_SMALLEST = 1e-12  # a probability below this counts as this in log-odds, which keeps them within +-27.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A model's P(Yes), in [0, 1], and the probability of both words; None where a written verdict was counted."""

    chance: float
    mass: float | None = None
    cost: Cost = NO_COST


def decision_of(result: LabelLogprobs | Fault, *, min_mass: float, temperature: float = 1.0) -> Decision | Fault:
    """Return P(Yes), or why there is none: both words together must have a probability of `min_mass`.

    Larger temperatures draw P(Yes) towards 1/2.
    """
    if isinstance(result, Fault):
        return result
    if result.mass < min_mass or result.mass <= 0:
        detail = f"Yes and No together have the probability {result.mass:.3g}, and {min_mass:g} is asked for"
        return Unsure(reason="low_confidence", detail=detail, mass=result.mass, cost=result.cost)
    chance = sigmoid((result.logprobs[YES] - result.logprobs[NO]) / temperature)
    return Decision(chance=chance, mass=min(result.mass, 1.0), cost=result.cost)


def log_odds(chance: float) -> float:
    """Return log P - log(1 - P), with both held at 1e-12 or more."""
    return math.log(max(chance, _SMALLEST)) - math.log(max(1.0 - chance, _SMALLEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What was read from one piece of a model's text.

    Attributes:
        begun: the piece up to the place where the verdict stands, without it.
        label: the verdict there, "Yes" or "No"; "" if the piece ends in a program instead.
        program: shall be run before the model goes on; None if there is none.
        notes: what else the piece says, such as verdicts on steps; None if that cannot be read.
    """

    begun: str
    label: str = ""
    program: str | None = None
    notes: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReader:
    """Reads "Yes" or "No" from the last place of a text that has the form, and remembers the place.

    `note` reads what else the text says, from its part before the verdict, the thinking included.
    """

    whole: ClassVar[bool] = True

    form: str
    note: Callable[[str], Any] | None = None

    def __call__(self, text: str, nonce: str = "", /) -> Draft | None:
        """Return the draft, or None if no verdict can be read."""
        final = concluded(text)
        label = LabelReader(form=self.form, labels=LABELS)(final, nonce)
        if label is None:
            return None
        place = [*frame(self.form, nonce).finditer(final)][-1]
        begun = text[: len(text) - len(final) + place.start("answer")]
        return Draft(begun=begun, label=label, notes=self.note(begun) if self.note else None)

    def blank(self, nonce: str) -> Blank:
        """Return the verdict with its place to fill in."""
        return LabelReader(form=self.form, labels=LABELS).blank(nonce)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A chain whose verdict was read.

    Attributes:
        rendered: what was asked.
        text: all that the model wrote and was told while it wrote, its reasoning included.
        begun: `text` up to its last verdict.
        draft: what was read from the last piece.
        notes: the last notes that could be read.
        pieces: how many times it was made to go on.
        attempts: how many times it was asked at most.
        forced: whether its last verdict was given when nothing else could be, as evidence.
    """

    rendered: Rendered
    text: str
    begun: str
    draft: Draft
    notes: Any = None
    pieces: int = 0
    attempts: int = 1
    forced: Mapping[str, Any] = field(default_factory=dict)
    cost: Cost = NO_COST

    @classmethod
    def of(cls, rendered: Rendered, answer: Answer[Draft]) -> Chain:
        """Return the chain that an answer begins."""
        draft = answer.value
        head = _head(answer)
        return cls(
            rendered=rendered,
            text=head + answer.text,
            begun=head + draft.begun,
            draft=draft,
            notes=draft.notes,
            attempts=answer.attempts,
            forced=forced_of([answer]),
            cost=answer.cost,
        )

    def followed_by(self, start: str, answer: Answer[Draft]) -> Chain:
        """Return the chain after the model went on from `start`: of its text, and what was put behind that."""
        draft = answer.value
        if answer.reasoning:
            start += f"{answer.reasoning.rstrip()}\n{CLOSE}\n\n"
        return replace(
            self,
            text=start + answer.text,
            begun=start + draft.begun,
            draft=draft,
            notes=self.notes if draft.notes is None else draft.notes,
            pieces=self.pieces + 1,
            attempts=max(self.attempts, answer.attempts),
            forced=forced_of([answer]),
            cost=self.cost + answer.cost,
        )

    def continued(self, start: str, special: Sequence[str]) -> Rendered:
        """Return the prompt that lets the model go on from `start`."""
        return self.rendered.continued(own_turn(start, special=special))

    @property
    def thinking(self) -> str:
        """The text before its answer: up to the last end-of-thinking tag, else to the line with the verdict."""
        end = max(self.text.rfind(tag) for tag in THINK_END)
        if end >= 0:
            return self.text[:end].rstrip()
        return self.begun[: self.begun.rfind("\n") + 1].rstrip()


def _head(answer: Answer[Draft]) -> str:
    """What has to stand before an answer's text, so that its thinking is one whole block.

    The reasoning, where the engine separates it; the opening tag, where the chat template had written that already.
    """
    if answer.reasoning:
        return f"{OPEN}\n{answer.reasoning.strip()}\n{CLOSE}\n\n"
    closed = any(tag in answer.text for tag in THINK_END)
    return f"{OPEN}\n" if closed and not any(tag in answer.text for tag in THINK_START) else ""


C = TypeVar("C", bound=Case)

_DOUBLE_CHECK = "Let me double check."

Found: TypeAlias = tuple[Chain, Decision] | Fault
"""A chain with its decision, or why there is none."""


@dataclass(frozen=True, kw_only=True)
class ChainScorer(ModelScorer):
    """Base of the generative reward models that verify in words.

    Attributes:
        chains: how many chains are written for one verdict; more than one needs a temperature.
        readout: "probabilities" reads P(Yes) behind each chain, "votes" counts the verdicts that were written.
        combine: "mean" of the chains, or their "majority", 1/2 for a draw.
        quorum: the share of the chains that must have a verdict, in (0, 1]; with `undecided: zero` a chain without one
            counts 0 instead.
        min_mass: how likely Yes and No together must be where P(Yes) is read.
        low_mass: what happens below that: "abstain" drops the chain, "sample" counts the verdict that was written.
        decision_temperature: divides the log-odds that P(Yes) is made of.
        double_checks: how many times a chain is made to look again behind its thinking, before its verdict counts.
        top_p: the share of probability that chains are sampled from.
        output: "share" is the chance of Yes, in [0, 1]; "log_odds" is log P(Yes) - log P(No), within +-27.7.
        template: the prompt, as a name or a file; "" for the scorer's own.
    """

    version: ClassVar[str] = "3"
    chain_template: ClassVar[str]
    often: ClassVar[str] = "chains"

    chains: Count = 1
    readout: Literal["direct", "probabilities", "votes"] = "probabilities"
    combine: Combine = "mean"
    quorum: Annotated[float, Range(gt=0, le=1)] = 0.5
    min_mass: Share = 0.5
    low_mass: Literal["abstain", "sample"] = "abstain"
    decision_temperature: Annotated[float, Range(gt=0)] = 1.0
    double_checks: Annotated[int, Range(ge=0)] = 0
    top_p: float = 1.0
    output: Literal["share", "log_odds"] = "share"
    template: str = ""
    max_tokens: int = 8192

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.readout not in self.readouts():
            allowed = ", ".join(self.readouts())
            raise ValueError(f"{self.name} option readout={self.readout!r}; it must be one of {allowed}")
        if self.chains > 1 and self.temperature == 0:
            raise ValueError(
                f"{self.name} option chains={self.chains} with temperature=0; all would be the same: set a temperature"
            )
        asked = self.chain_prompt()
        if not asked.form or (asked.labels and set(asked.labels) != set(YES_NO)):
            raise ValueError(
                f"{self.name}: the prompt {asked.name!r} must end in a verdict, Yes or No; give its head a form such "
                "as 'Verdict {nonce}: {answer}'"
            )

    @property
    def lowest(self) -> float:
        """The value where No is certain."""
        return log_odds(0.0) if self.output == "log_odds" else 0.0

    def readouts(self) -> tuple[str, ...]:
        """Return the values that `readout` may have."""
        return ("probabilities", "votes")

    def chain_prompt(self) -> Template:
        """Return the prompt that asks for a chain."""
        return load_template(self.template or self.chain_template)

    def templates(self) -> tuple[Template, ...]:
        """Return every prompt that is used with these options."""
        return (self.chain_prompt(),)

    def sampling(self, **changes: Any) -> Sampling:
        """Return how the model answers; keyword arguments replace single parameters."""
        return super().sampling(**{"top_p": self.top_p, **changes})

    async def written(
        self, cases: Sequence[C], prompt: Callable[[C], Rendered], read: Reader[Draft]
    ) -> list[list[Found]]:
        """Return `chains` chains with their decisions for each case, in order."""
        answers = await self.asked_often(cases, prompt, read, self.chains)
        rows = [
            [answer if isinstance(answer, Fault) else Chain.of(prompt(case), answer) for answer in several]
            for case, several in zip(cases, answers, strict=True)
        ]
        flat = [chain for row in rows for chain in row]
        flat = await self.interlude(flat, read)
        for _ in range(self.double_checks):
            starts = [f"{one.thinking}\n\n{_DOUBLE_CHECK}" if isinstance(one, Chain) else "" for one in flat]
            flat = await self.interlude(await self.gone_on(flat, starts, read), read)
        decided = iter(await self._decided(flat))
        return [[next(decided) for _ in row] for row in rows]

    async def interlude(self, chains: Sequence[Chain | Fault], read: Reader[Draft]) -> list[Chain | Fault]:
        """Return the chains after what comes between their pieces; here nothing does."""
        return list(chains)

    async def gone_on(
        self, chains: Sequence[Chain | Fault], starts: Sequence[str], read: Reader[Draft]
    ) -> list[Chain | Fault]:
        """Let chains go on, each from its start; those with an empty start stay as they are."""
        results = list(chains)
        places = [at for at, one in enumerate(chains) if isinstance(one, Chain) and starts[at]]
        if not places:
            return results
        going = [(at, one) for at in places if isinstance(one := chains[at], Chain)]
        prompts = [chain.continued(starts[at], self.special_tokens) for at, chain in going]
        answers = await ask(self.resolved(), prompts, self.sampling(), read, retry=self.retry())
        for (at, chain), answer in zip(going, answers, strict=True):
            results[at] = chain.followed_by(starts[at], answer) if isinstance(answer, Answer) else _ended(chain, answer)
        return results

    async def _decided(self, chains: Sequence[Chain | Fault]) -> list[Found]:
        known = [chain for chain in chains if isinstance(chain, Chain)]
        decisions: Sequence[Decision | Fault]
        if self.readout == "votes":
            decisions = [_vote(chain) for chain in known]
        else:
            prompts = [chain.continued(chain.begun, self.special_tokens) for chain in known]
            shares = await ask_labels(self.resolved(), prompts, YES_NO) if prompts else []
            decisions = [self._decision(chain, share) for chain, share in zip(known, shares, strict=True)]
        pairs: Iterator[Found] = iter(
            _ended(chain, one) if isinstance(one, Fault) else (chain, one)
            for chain, one in zip(known, decisions, strict=True)
        )
        return [chain if isinstance(chain, Fault) else next(pairs) for chain in chains]

    def _decision(self, chain: Chain, share: LabelLogprobs | Fault) -> Decision | Fault:
        read = decision_of(share, min_mass=self.min_mass, temperature=self.decision_temperature)
        if isinstance(read, Unsure) and self.low_mass == "sample":
            return replace(_vote(chain), cost=read.cost)
        return read

    def estimate(self, row: Sequence[Found]) -> tuple[float, float | None] | Score:
        """Return the chance of Yes that several chains come to with its standard error, or the score that says why not.

        A fault of the engine fails the whole; so does, without a quorum, a chain that has no verdict.
        """
        cost = cost_of(row)
        faults = [one for one in row if isinstance(one, Fault)]
        broken = next((fault for fault in faults if not isinstance(fault, NoVerdict | Unsure)), None)
        if broken is not None:
            return replace(self.unanswered(broken), cost=cost)
        chances = [one[1].chance for one in row if not isinstance(one, Fault)]
        silent = sum(isinstance(fault, NoVerdict) for fault in faults)
        if self.undecided == "zero" and chances:
            chances += [0.0] * silent
        if not chances or len(chances) < self.quorum * len(row):
            return replace(self.unanswered(faults[0]), cost=cost)
        return combined(chances, self.combine), mean_and_error(chances)[1]

    def scored(self, row: Sequence[Found], **more: Any) -> Score:
        """Return the score that several chains come to; keyword arguments are fields of it."""
        estimate = self.estimate(row)
        if isinstance(estimate, Score):
            return estimate
        chance, error = estimate
        evidence = {**self.evidence(row), **more.pop("evidence", {})}
        return Score(**{**self.valued(chance, error), "evidence": evidence, "cost": cost_of(row), **more})

    def valued(self, chance: float, error: float | None) -> dict[str, Any]:
        """Return value and uncertainty of a score in the units of `output`."""
        if self.output == "log_odds":
            return {"value": log_odds(chance)}
        return {"value": chance, "uncertainty": error}

    def evidence(self, row: Sequence[Found]) -> dict[str, Any]:
        """Return plain data that lets a person check the chains."""
        known = [one for one in row if not isinstance(one, Fault)]
        evidence: dict[str, Any] = {
            "chances": [decision.chance for _, decision in known],
            "verdicts": [chain.draft.label for chain, _ in known],
            "missing": len(row) - len(known),
        }
        masses = [decision.mass for _, decision in known if decision.mass is not None]
        if masses:
            evidence["mass"] = min(masses)
        forced = [chain.forced["forced_mass"] for chain, _ in known if chain.forced]
        if forced:
            evidence["forced_mass"] = forced[0] if len(forced) == 1 else forced
        if known:
            evidence["rationale"] = shortened(known[0][0].text)
        attempts = max((chain.attempts for chain, _ in known), default=1)
        return evidence | ({"attempts": attempts} if attempts > 1 else {})


def cost_of(row: Sequence[Found]) -> Cost:
    """Return what chains and their decisions took together."""
    total = NO_COST
    for one in row:
        if not isinstance(one, Fault):
            total += one[0].cost + one[1].cost
        else:
            total += one.cost
    return total


def _vote(chain: Chain) -> Decision:
    return Decision(chance=float(chain.draft.label == YES))


def _ended(chain: Chain, fault: Fault) -> Fault:
    """The fault that ends a chain, with what the chain has cost; one that has filled the window was cut off."""
    cost = chain.cost + fault.cost
    if fault.too_long:
        return NoVerdict(reason="judge_truncated", detail=fault.detail, attempts=chain.attempts, cost=cost)
    return replace(fault, cost=cost)

"""A game of four roles that writes a list of principles: what tells good writing of a kind from bad that looks good.

1. The generator writes bad answers by a list of strategies.
2. The detector calls them, and good ones beside them, good or bad by the list of principles; what it says about the bad
   ones it caught is advice for the generator.
3. The reflector looks at the detector's mistakes and says how the principles should change.
4. The optimiser rewrites both lists, at most ten rules each.

After some rounds the detector is tried on labelled texts, and the reflector and the optimiser work on its mistakes
there.  The list that did best on labelled texts that no role ever sees is the result, so a list that merely learnt the
generator's habits does not win.  Scores are balanced: a judge that says "good" to all gets 0.5.

Source: the code of "Igniting Creative Writing in Small Language Models" (f7a4813), four roles, batches of 4 and 4.  The
unseen labelled part and the choice of the best list are ours; the published loop keeps its last list.

Not covered: training the generator; debates, which write preference pairs there.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar

from adjudge.engines.interface import Engine, Fault, Sampling
from adjudge.judges.items.item import numbered
from adjudge.judges.items.principles import read_rules
from adjudge.options import Count, Options, Range
from adjudge.prompts.asking import Answer, Reader, Retry, ask, cost_of
from adjudge.prompts.reading import LabelReader
from adjudge.prompts.template import Value, load_template
from adjudge.protocol import NO_COST, Cost

T = TypeVar("T")

_FOR_JUDGE = "telling good writing of this kind from bad writing that looks good"
_FOR_WRITER = "writing bad answers that a judge takes for good ones"
_SHOWN = 3_000  # characters of a text in a list of mistakes
_MAX_ADVICE = 8  # pieces of advice in one prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A text that was asked for and written; `good` is what people say of it."""

    prompt: str
    text: str
    good: bool


@dataclass(frozen=True, kw_only=True)
class GameConfig(Options, what="GameConfig option"):
    """How the game is played.

    Attributes:
        rounds: rounds of generator against detector.
        reflections: rounds on labelled texts after that.
        batch: good texts, and as many generated bad ones, of a round; labelled texts of a reflection: twice as many.
        max_rules: most rules of a list.
        temperature: of the generator and the optimiser; the detector's is 0.
        max_tokens: most tokens of one answer.
        attempts: how often a model is asked at most that gives no verdict.
        unseen: share of the labelled texts that only choose the best list.
        seed: where the random numbers start.
    """

    rounds: Annotated[int, Range(ge=0)] = 3
    reflections: Annotated[int, Range(ge=0)] = 2
    batch: Count = 4
    max_rules: Count = 10
    temperature: Annotated[float, Range(gt=0)] = 0.8
    max_tokens: int = 1024
    attempts: Count = 3
    unseen: Annotated[float, Range(gt=0, lt=1)] = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        Sampling(max_tokens=self.max_tokens, temperature=self.temperature, seed=self.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What happened in one round.

    Attributes:
        kind: "game" or "reflection".
        judged: texts on which the detector gave a verdict.
        right: those it judged rightly.
        silent: texts without a verdict, or that were never written; they teach nothing.
        accuracy: balanced accuracy of the list after this round on the unseen texts; None if the detector was silent
            on all of one side.
    """

    kind: str
    judged: int
    right: int
    silent: int
    accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class GameResult:
    """What came of a game.

    Attributes:
        principles: the list that did best on the unseen texts; the earliest of equally good ones.
        accuracy: its balanced accuracy there, in [0, 1].
        strategies: the generator's last list.
        rounds: what happened.
        cost: what all calls took.
    """

    principles: tuple[str, ...]
    accuracy: float
    strategies: tuple[str, ...]
    rounds: tuple[Round, ...]
    cost: Cost


@dataclass(slots=True)
class _Verdict:
    writing: Writing
    good: bool
    said: str


async def play(
    engine: Engine,
    labelled: Sequence[Writing],
    *,
    principles: Sequence[str],
    strategies: Sequence[str],
    config: GameConfig = GameConfig(),
) -> GameResult:
    """Return the list of principles that the game ends with.

    Args:
        engine: the model that plays all roles.
        labelled: texts that people called good or bad; at least two of each.
        principles: the detector's first list.
        strategies: the generator's first list.
        config: how the game is played.

    Raises:
        ValueError: a list is empty or too long, or there are too few labelled texts.
        RuntimeError: the engine gave no verdict on the unseen texts, so no list can be chosen.
    """
    for what, rules in (("principles", principles), ("strategies", strategies)):
        if not 1 <= len(rules) <= config.max_rules:
            raise ValueError(f"there are {len(rules)} {what}; give 1 to {config.max_rules}")
    rng = random.Random(config.seed)
    seen, unseen = _split(labelled, config.unseen, rng)
    game = _Game(engine, config, rng, tuple(principles), tuple(strategies))
    best = (await game.accuracy(unseen), game.principles)
    rounds = []
    for number in range(config.rounds + config.reflections):
        kind = "game" if number < config.rounds else "reflection"
        verdicts, silent = await (game.duel(seen, number) if kind == "game" else game.reflect_on(seen))
        await game.learn(verdicts, number, writers=kind == "game")
        accuracy = await game.accuracy(unseen)
        right = sum(verdict.good == verdict.writing.good for verdict in verdicts)
        rounds.append(Round(kind=kind, judged=len(verdicts), right=right, silent=silent, accuracy=accuracy))
        if accuracy is not None and (best[0] is None or accuracy > best[0]):
            best = accuracy, game.principles
    if best[0] is None:
        raise RuntimeError(
            f"the engine {engine.name!r} gave no verdict on the unseen texts; is it up, and large enough?"
        )
    return GameResult(
        principles=best[1], accuracy=best[0], strategies=game.strategies, rounds=tuple(rounds), cost=game.cost
    )


@dataclass(slots=True)
class _Game:
    engine: Engine
    config: GameConfig
    rng: random.Random
    principles: tuple[str, ...]
    strategies: tuple[str, ...]
    cost: Cost = NO_COST

    async def duel(self, seen: Sequence[Writing], number: int) -> tuple[list[_Verdict], int]:
        """Let the generator write bad texts, and the detector judge them among good ones."""
        good = [writing for writing in seen if writing.good]
        chosen = self.rng.sample(good, min(self.config.batch, len(good)))
        values = [{"strategies": numbered(self.strategies), "question": writing.prompt} for writing in chosen]
        bad = [
            Writing(prompt=writing.prompt, text=answer.value, good=False)
            for writing, answer in zip(chosen, await self._ask("generate", values, _text, number), strict=True)
            if isinstance(answer, Answer)
        ]
        mixed = [*chosen, *bad]
        self.rng.shuffle(mixed)
        verdicts = await self._detect(mixed)
        return verdicts, len(mixed) - len(verdicts) + len(chosen) - len(bad)

    async def reflect_on(self, seen: Sequence[Writing]) -> tuple[list[_Verdict], int]:
        """Let the detector judge labelled texts."""
        chosen = self.rng.sample(list(seen), min(2 * self.config.batch, len(seen)))
        verdicts = await self._detect(chosen)
        return verdicts, len(chosen) - len(verdicts)

    async def learn(self, verdicts: Sequence[_Verdict], number: int, *, writers: bool) -> None:
        """Rewrite the lists: the principles after mistakes, the strategies after bad texts that were caught."""
        mistakes = [verdict for verdict in verdicts if verdict.good != verdict.writing.good]
        if mistakes:
            shown = "\n\n".join(_mistake(verdict) for verdict in mistakes[:_MAX_ADVICE])
            values = {"principles": numbered(self.principles), "mistakes": shown}
            (advice,) = await self._ask("reflect", [values], _text, number)
            if isinstance(advice, Answer):
                self.principles = await self._rewrite(self.principles, advice.value, _FOR_JUDGE, number)
        caught = [verdict.said for verdict in verdicts if not verdict.good and not verdict.writing.good]
        if writers and caught:
            said = "\n\n".join(text[-_SHOWN:] for text in caught[:_MAX_ADVICE])
            self.strategies = await self._rewrite(self.strategies, said, _FOR_WRITER, number)

    async def accuracy(self, unseen: Sequence[Writing]) -> float | None:
        """Return the mean of the shares judged rightly among good and among bad texts."""
        verdicts = await self._detect(unseen)
        shares = []
        for side in (True, False):
            mine = [verdict.good == side for verdict in verdicts if verdict.writing.good is side]
            if not mine:
                return None
            shares.append(sum(mine) / len(mine))
        return sum(shares) / 2

    async def _detect(self, writings: Sequence[Writing]) -> list[_Verdict]:
        principles = numbered(self.principles)
        values = [{"principles": principles, "question": one.prompt, "response": one.text} for one in writings]
        template = load_template("judges/items/principles_judge")
        read = LabelReader(form=template.form, labels=template.labels)
        answers = await self._ask("judge", values, read, 0, temperature=0.0)
        return [
            _Verdict(writing=writing, good=answer.value == "good", said=answer.text)
            for writing, answer in zip(writings, answers, strict=True)
            if isinstance(answer, Answer)
        ]

    async def _rewrite(self, rules: tuple[str, ...], advice: str, purpose: str, number: int) -> tuple[str, ...]:
        """Return the rewritten list, or the old one if nothing could be read."""
        most = self.config.max_rules
        values = {"rules": numbered(rules), "advice": advice, "purpose": purpose, "most": str(most)}
        (made,) = await self._ask("rewrite", [values], partial(read_rules, most), number)
        return made.value if isinstance(made, Answer) else rules

    async def _ask(
        self,
        role: str,
        values: Sequence[Mapping[str, Value]],
        read: Reader[T],
        number: int,
        temperature: float | None = None,
    ) -> list[Answer[T] | Fault]:
        config, template = self.config, load_template(f"judges/items/principles_{role}")
        special = tuple(getattr(self.engine, "special_tokens", ()))
        sampling = Sampling(
            max_tokens=config.max_tokens,
            temperature=config.temperature if temperature is None else temperature,
            seed=config.seed + number * config.attempts,
        )
        retry = Retry(attempts=config.attempts, temperature=config.temperature)
        prompts = [template.render(one, special=special) for one in values]
        answers = await ask(self.engine, prompts, sampling, read, retry=retry)
        self.cost += cost_of(answers)
        return answers


def _text(text: str, nonce: str = "", /) -> str | None:
    return text.strip() or None


def _mistake(verdict: _Verdict) -> str:
    right = "good" if verdict.writing.good else "bad"
    called = "good" if verdict.good else "bad"
    return (
        f"Asked for: {verdict.writing.prompt[:_SHOWN]}\nWritten: {verdict.writing.text[:_SHOWN]}\n"
        f"The judge called it {called}, because: {verdict.said[-_SHOWN:]}\nIt is {right}."
    )


def _split(labelled: Sequence[Writing], share: float, rng: random.Random) -> tuple[list[Writing], list[Writing]]:
    """Split good and bad texts alike into those the roles may see and those they may not."""
    seen: list[Writing] = []
    unseen: list[Writing] = []
    for side in (True, False):
        mine = [writing for writing in labelled if writing.good is side]
        if len(mine) < 2:
            raise ValueError(
                f"{len(mine)} of the labelled texts are {'good' if side else 'bad'}; give at least two, so that one "
                "can stay unseen"
            )
        rng.shuffle(mine)
        cut = min(len(mine) - 1, max(1, round(share * len(mine))))
        unseen += mine[:cut]
        seen += mine[cut:]
    return seen, unseen

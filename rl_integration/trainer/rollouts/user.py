"""Who answers the policy between its turns: a simulated person, a model in a part, or one who says "try again".

A user hears the conversation so far as a sample, with what it remembers of it in `extra["session"]`, and so needs no
memory of its own: answers that share a beginning share what was said there, and a run that is resumed goes on.

Not covered: users that speak while the policy writes, and users who see a screen.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Protocol, cast

from adjudge.engines.interface import Fault, Sampling
from adjudge.engines.loading import bind_engines, engine_of
from adjudge.options import Count, Options, Range, check_options
from adjudge.prompts.asking import Retry, ask_often
from adjudge.prompts.template import Value, load_template
from adjudge.protocol import Sample, content_text
from adjudge.rl_integration.trainer.data.task import SESSION
from adjudge.rl_integration.trainer.rollouts.tool import ToolDown, check_kind, opened
from adjudge.runtime.contract import validate_sample
from adjudge.runtime.loop import process_loop
from adjudge.scoring.api import load
from adjudge.scoring.nested import asked
from adjudge.verifiers.agents.user.dialogue import turns_of
from adjudge.verifiers.agents.user.scorer import SimulatedUserScorer, read_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a user says to a turn.

    Attributes:
        text: the next words; "" where the user leaves.
        session: what it remembers, as plain JSON data; the scorer finds it in `Sample.extra["session"]`.
    """

    text: str = ""
    session: Mapping[str, Any] = field(default_factory=dict)


class User(Protocol):
    """Answers the policy; to the same conversation always in the same way."""

    def check(self, sample: Sample) -> None:
        """Raise `ValueError` if nobody can be made of a task; its response is to be ignored."""
        ...

    async def hear(self, sample: Sample, *, last: bool) -> Reply:
        """Answer the newest turn of a conversation, with which its response ends.

        Args:
            sample: the task, the turns since its prompt, and in `extra["session"]` what the last reply remembered.
            last: whether the policy will not write again, so that no words are needed.

        Raises:
            ToolDown: it cannot answer, and the policy is not to blame.
        """
        ...


async def heard(user: User, sample: Sample, *, last: bool) -> Reply:
    """Return a reply; whatever else goes wrong in a user is nobody's fault either."""
    try:
        reply = await user.hear(sample, last=last)
    except ToolDown:
        raise
    except Exception as error:
        raise ToolDown(f"the user raised {type(error).__name__}: {error}") from error
    if not (isinstance(reply, Reply) and isinstance(reply.text, str) and isinstance(reply.session, Mapping)):
        raise TypeError(f"the user returned {reply!r}; it must return a Reply of a text")
    return reply


def hearing(user: User, sample: Sample, *, last: bool) -> Future[Reply]:
    """Have a turn heard while others are written, and return at once."""
    return asyncio.run_coroutine_threadsafe(heard(user, sample, last=last), process_loop().started())


@dataclass(frozen=True, kw_only=True)
class SimulatedUser:
    """A person whose feelings change with what they are told (RLVER, SAGE).

    Attributes:
        scorer: `simulated_user` or `rlver` with its options.  The same as the reward finds in the session how the
            person felt, and asks nobody again.
    """

    scorer: Any

    def __post_init__(self) -> None:
        made = load(self.scorer)
        if not isinstance(made, SimulatedUserScorer):
            raise ValueError(f"rollouts.user.options.scorer is {self.scorer!r}; give simulated_user with its options")
        object.__setattr__(self, "scorer", made)

    def check(self, sample: Sample) -> None:
        """Raise `ValueError` if nobody can be made of the reference."""
        self.scorer.validate(sample)

    async def hear(self, sample: Sample, *, last: bool) -> Reply:
        """Return the person's next words, and how they feel."""
        reply = await self.scorer.hear(sample, last=last)
        if isinstance(reply, Fault):
            raise ToolDown(f"the simulated user: {reply.detail or reply.reason}")
        text, session = reply
        return Reply(text=text, session=session)


@dataclass(frozen=True, kw_only=True)
class TryAgain:
    """Says that an answer is wrong, and nothing else; leaves with the first that is right (UFO, arXiv 2507.14295).

    The text and the rule are those of `lichengliu03/unary-feedback` (ragen/env/static/env.py at 6d664d8).

    Attributes:
        scorer: says whether the newest turn, by itself, is right.
        text: what is said to a wrong one.
        threshold: the least value that is right.
    """

    scorer: Any
    text: str = "Incorrect. Please think again."
    threshold: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scorer", load(self.scorer))
        if not self.text.strip():
            raise ValueError("rollouts.user.options.text is empty; say what a wrong answer hears")

    def check(self, sample: Sample) -> None:
        """Raise `ValueError` if the scorer cannot judge answers to a task."""
        validate_sample(self.scorer, newest(sample))

    async def hear(self, sample: Sample, *, last: bool) -> Reply:
        """Return the text, or leave."""
        (score,) = await asked(self.scorer, [newest(sample)], called="the scorer of rollouts.user")
        if score.value is None:
            raise ToolDown(f"whether the answer is right is not known: {score.reason} {dict(score.evidence)}")
        values = [*sample.extra.get(SESSION, {}).get("values", ()), score.value]
        return Reply(text="" if score.value >= self.threshold else self.text, session={"values": values})


def newest(sample: Sample) -> Sample:
    """Return a conversation with its newest turn alone as the response."""
    turns: Sequence[Any] = () if isinstance(sample.response, str) else sample.response
    said = [content_text(turn.get("content")) for turn in turns if turn.get("role") == "assistant"]
    extra = {name: value for name, value in sample.extra.items() if name != SESSION}
    return replace(sample, response=said[-1] if said else "", extra=extra)


_PLAY: Final = "verifiers/agents/user/play"
_FIELD: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class PlayedUser:
    """A model plays whoever a text describes: a patient who answers from the facts of a case, a customer.

    It sees what the policy says aloud, in blocks whose keys nobody can foresee; reasoning and tool calls it does not.

    Attributes:
        engine: the model, as of judges.
        who: describes the person; {reference}, a field of it if it is a mapping, or a column of data.extra in braces.
        leaves: what the person writes to end the conversation; what stands beside it is not said.
        until: what ends it in a turn of the policy's, such as "</answer>"; "" for nothing.
        max_tokens: most tokens of a reply.
        temperature, seed: how freely the model answers; the same dialogue has the same seed.
    """

    engine: Any
    who: str
    leaves: str = "[end]"
    until: str = ""
    max_tokens: Count = 512
    temperature: Annotated[float, Range(ge=0)] = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_options(self, "rollouts.user.options")
        bind_engines(self, "engine")
        if not self.who.strip() or not self.leaves.strip():
            raise ValueError("rollouts.user.options.who or .leaves is empty; say who the person is, and how they leave")

    def check(self, sample: Sample) -> None:
        """Raise `ValueError` if a task lacks what the description names."""
        self._person(sample)

    async def hear(self, sample: Sample, *, last: bool) -> Reply:
        """Return the model's words."""
        newest_turn = turns_of(sample, "strip")[-1]
        if last or (self.until and self.until in newest_turn.text):
            return Reply()
        engine, dialogue = engine_of(self.engine), newest_turn.dialogue
        values: dict[str, Value] = {"persona": self._person(sample), "dialogue": dialogue, "leaves": self.leaves}
        prompt = load_template(_PLAY).render(values, special=tuple(getattr(engine, "special_tokens", ())))
        told = hashlib.sha256(f"{self.seed} {values}".encode("utf-8", "surrogatepass")).digest()
        sampling = Sampling(
            max_tokens=self.max_tokens, temperature=self.temperature, seed=int.from_bytes(told[:4]) >> 1
        )
        ((answer,),) = await ask_often(engine, [prompt], sampling, [read_words], retry=Retry())
        if isinstance(answer, Fault):
            raise ToolDown(f"the model that plays the user: {answer.detail or answer.reason}")
        return Reply(text="" if self.leaves in answer.value else answer.value)

    def _person(self, sample: Sample) -> str:
        known = {**sample.extra, **(sample.reference if isinstance(sample.reference, Mapping) else {})}
        known["reference"] = sample.reference

        def field_of(match: re.Match[str]) -> str:
            value = known.get(match[1])
            if value is None:
                raise ValueError(
                    f"rollouts.user.options.who names {match[0]}, and the row has no such field (data.extra, or the "
                    f"reference's); it has {', '.join(known)}"
                )
            items = value if isinstance(value, list | tuple) else [value]
            return "\n".join(
                str(item["text"] if isinstance(item, Mapping) and "text" in item else item) for item in items
            )

        return _FIELD.sub(field_of, self.who)


_KNOWN: Final = {
    name: f"adjudge.rl_integration.trainer.rollouts.user:{made}"
    for name, made in {"simulated_user": "SimulatedUser", "try_again": "TryAgain", "model": "PlayedUser"}.items()
}


@dataclass(frozen=True, kw_only=True)
class UserChoice(Options, what="rollouts.user option"):
    """Who answers the policy between its turns.

    Attributes:
        kind: simulated_user, try_again or model, or your own as "module:object": a user, or a dataclass of one.
        options: the fields of its class.
        max_turns: turns that the policy has; the last one is heard, and not answered.
        timeout: seconds that a reply may take; after those the user counts as down.
    """

    shorthand: ClassVar[str] = "kind"

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    max_turns: Count = 4
    timeout: Annotated[float, Range(gt=0, unit="seconds")] = 300.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kind("user", self.kind, _KNOWN)

    def opened(self) -> User:
        """Return the user, or raise `ValueError`."""
        return cast("User", opened("user", self.kind, _KNOWN, self.options))

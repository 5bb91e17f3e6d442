"""An engine whose every text is known: each step is one of a few letters, drawn by a hash of prompt, prefix and draw.

A solution is `depth` letters, one in each step; the last step ends with "####".  Nothing but the stop text tells the
engine whether one step or all of them are wanted, as with a real one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from tests.engines.scripted import ScriptedEngine

from adjudge.engines.interface import Completion, Fault, Generation, Prompt, Sampling
from adjudge.protocol import Cost, Sample, Score

GAP = "\n\n"


def letters_of(text: str) -> str:
    """The letters of a solution, finished or not."""
    return "".join(step.split()[0] for step in text.split(GAP) if step.strip())


class TreeEngine(ScriptedEngine):
    """Writes letters.

    Args:
        depth: steps of a solution.
        letters: what a step may be; a draw takes one by its hash, or, with `cycle`, in turn.
        cycle: whether draws take the letters in turn.
        fault: told the number of the call; what it gives instead of texts, if anything.
    """

    def __init__(
        self,
        depth: int,
        letters: str = "abc",
        *,
        cycle: bool = False,
        fault: Callable[[int], Fault | None] = lambda call: None,
    ) -> None:
        super().__init__()
        self.depth, self.letters, self.cycle, self.fault = depth, letters, cycle, fault
        self.calls = 0

    async def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Generation | Fault]:
        self.calls += 1
        found = self.fault(self.calls)
        return [found if found is not None else self._drawn(prompt, sampling) for prompt in prompts]

    def _drawn(self, prompt: Prompt, sampling: Sampling) -> Generation:
        assert not isinstance(prompt, str)
        prefix = str(prompt[-1]["content"]) if prompt[-1]["role"] == "assistant" else ""
        begun = len(letters_of(prefix))
        wanted = 1 if sampling.stop else self.depth - begun
        texts = [
            self._text(str(prompt[0]["content"]), prefix, sampling.seed + at, begun, wanted) for at in range(sampling.n)
        ]
        completions = tuple(Completion(text=text, finish_reason="stop", tokens=len(letters_of(text))) for text in texts)
        tokens = sum(one.tokens for one in completions)
        return Generation(completions=completions, cost=Cost(completion_tokens=tokens))

    def _text(self, problem: str, prefix: str, draw: int, begun: int, wanted: int) -> str:
        steps: list[str] = []
        for at in range(begun, min(begun + wanted, self.depth)):
            seed = f"{problem}/{prefix}{GAP.join(steps)}/{draw}".encode()
            place = draw if self.cycle else int.from_bytes(hashlib.sha256(seed).digest()[:4], "big")
            letter = self.letters[place % len(self.letters)]
            steps.append(letter + (" ####" if at == self.depth - 1 else ""))
        return GAP.join(steps)


class Letters:
    """Scores solutions by their letters alone.

    Args:
        name: of the scorer.
        value: of the letters so far; None for none.
    """

    def __init__(self, name: str, value: Callable[[str], float | None]) -> None:
        self.name = name
        self.fingerprint = f"{name}:1"
        self.value = value
        self.seen: list[Sample] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.seen += samples
        values = [self.value(letters_of(str(one.response))) for one in samples]
        return [Score.failed("verifier_error") if value is None else Score.scored(value) for value in values]

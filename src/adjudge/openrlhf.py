"""OpenRLHF: a reward function for a Python file that its remote reward setting names.

    from adjudge.openrlhf import OpenRlhfReward

    reward_func = OpenRlhfReward("math", end_tokens=["<|im_end|>"])

OpenRLHF knows numbers alone, and catches what a reward function raises: it logs it as information, goes on without a
reward, and later ends with a message about something else.  So where a sample has no score and no `fallback` was
chosen, `StopRun` is raised, which is no `Exception`: the run ends with our reason.

Tried with OpenRLHF 0.11.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any
from unicodedata import normalize

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import StopRun
from adjudge.rl_integration.adapters.row import Place, check_aligned, row_name, without_ends
from adjudge.rl_integration.adapters.row_reward import RowReward


@dataclass(eq=False, kw_only=True)
class OpenRlhfReward(RowReward):
    """Scores what OpenRLHF generated.

    Attributes:
        reference: OpenRLHF's labels are the column `label`, and it has no others.
        end_tokens: texts of the tokens that end a response, such as "<|im_end|>".  They are removed from its end, and
            responses without one are scored as cut off; OpenRLHF does not say so itself.
        parts: names of parts of the score to log, as `part_NAME`; not-a-number where one is missing.

    The others are those of `RowReward`; without a `fallback` a sample without a score stops the run.
    """

    framework = "OpenRLHF"
    reference: Place = "label"
    end_tokens: Sequence[str] = ()
    parts: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Load the scorers, and reject what cannot be meant."""
        for name in ("end_tokens", "parts"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(item, str) and item for item in value):
                raise ValueError(f"{name}={value!r}; it must be a list of texts that are not empty")
        super().__post_init__()
        self._asked.check_parts(self.parts)

    def __call__(
        self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **more: Any
    ) -> dict[str, Any]:
        """Return rewards, scores and things to log, one for each query, in order; called by OpenRLHF in threads.

        Args:
            queries: each a prompt with its response, as text with special tokens.
            prompts: the prompts alone.
            labels: the references; text that is a JSON object is taken as one.
            more: whatever a later OpenRLHF adds; not used.

        Returns:
            `rewards` and `scores`, which are the same, and `extra_logs`: tensors of as many numbers as there are
            queries.  `reward_valid`, `reward_failed` and `reward_abstained` are always logged, and `parts`.

        Raises:
            StopRun: a sample has no score and there is no fallback, or it would stand for too many, or a query is not
                its prompt with a response.
        """
        try:
            check_aligned("OpenRLHF", queries=queries, prompts=prompts, labels=labels)
            samples = [self._sample(*each) for each in zip(queries, prompts, labels, strict=True)]
            return self._answer(self.scores_blocking([{"label": label} for label in labels], samples))
        except Exception as error:  # OpenRLHF would swallow it; as a StopRun it names the same reason
            raise StopRun(f"adjudge: {error}") from error

    def _answer(self, scores: Sequence[Score]) -> dict[str, Any]:
        import torch

        values = torch.tensor([self.number(score) for score in scores], dtype=torch.float32)
        logs = {
            f"reward_{name}": torch.tensor([float(score.status == status) for score in scores])
            for name, status in (("valid", "scored"), ("failed", "failed"), ("abstained", "abstained"))
        }
        for name in self.parts:
            logs[f"part_{name}"] = torch.tensor([_part(score, name) for score in scores])
        return {"rewards": values, "scores": values.clone(), "extra_logs": logs}

    def _sample(self, query: str, prompt: str, label: Any) -> Sample:
        response, ended = without_ends(query[_end_of(prompt, query) :], self.end_tokens)
        end = ("stop" if ended else "length") if self.end_tokens else None
        row = {"label": label}
        return self.made_sample(row, prompt, response, group=row_name(prompt, label), finish_reason=end)


def _part(score: Score, name: str) -> float:
    part = score.parts.get(name)
    return nan if part is None or part.value is None else part.value


def _end_of(prompt: str, query: str) -> int:
    """Where the prompt ends in the query; tokenizers add or drop spaces, and some normalize what they are given."""
    for asked in (prompt, normalize("NFC", prompt), normalize("NFKC", prompt)):
        end = _without_spaces(asked, query)
        if end is not None:
            return end
    raise ValueError(
        f"a query does not begin with its prompt, so its response cannot be told: the prompt begins with "
        f"{prompt[:60]!r} and the query with {query[:60]!r}. The prompt was cut, so leave longer ones out or "
        "allow more tokens; or the tokenizer does not give back the text it was given"
    )


def _without_spaces(prompt: str, query: str) -> int | None:
    """Where a prompt ends in a query, spaces apart; None where the query does not begin with it."""
    if query.startswith(prompt):
        return len(prompt)
    at = 0
    for letter in "".join(prompt.split()):
        while at < len(query) and query[at].isspace():
            at += 1
        if query[at : at + 1] != letter:
            return None
        at += 1
    return at

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
from math import nan
from typing import Any
from unicodedata import normalize

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import StopRun
from adjudge.rl_integration.adapters.one_by_one import OneByOne
from adjudge.rl_integration.adapters.row import check_aligned, read_reference, row_name, without_ends
from adjudge.rl_integration.client.client import ClientConfig


class OpenRlhfReward:
    """Scores what OpenRLHF generated.

    Args:
        scorer: anything `adjudge.load` takes; with `server`, the scorer's name there.
        server: a reward server's address, or a `ClientConfig`; None to score in the process that generates.
        fallback: the number that stands for a sample without a score; None to stop the run.
        max_failed: with a fallback, the share of the latest samples above which the run is stopped; 1 for never.
        end_tokens: texts of the tokens that end a response, such as "<|im_end|>".  They are removed from its end, and
            responses without one are scored as cut off; OpenRLHF does not say so itself.
        parts: names of parts of the score to log, as `part_NAME`; not-a-number where one is missing.

    Raises:
        ValueError: the scorer is unknown, or an option is out of range.
    """

    def __init__(
        self,
        scorer: Any = None,
        *,
        server: str | ClientConfig | None = None,
        fallback: float | None = None,
        max_failed: float = 0.5,
        end_tokens: Sequence[str] = (),
        parts: Sequence[str] = (),
    ) -> None:
        for name, value in (("end_tokens", end_tokens), ("parts", parts)):
            if isinstance(value, str) or not all(isinstance(item, str) and item for item in value):
                raise ValueError(f"{name}={value!r}; it must be a list of texts that are not empty")
        self._end_tokens = tuple(end_tokens)
        self._parts = tuple(parts)
        self._source = OneByOne("OpenRLHF", scorer=scorer, server=server, fallback=fallback, max_failed=max_failed)
        self._source.check_alone()
        self._source.check_parts(self._parts)

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
            samples = [self._sample(*row) for row in zip(queries, prompts, labels, strict=True)]
            scores = self._source.scores_blocking(samples)
            return self._answer(scores)
        except Exception as error:  # OpenRLHF would swallow it; as a StopRun it names the same reason
            raise StopRun(f"adjudge: {error}") from error

    def _answer(self, scores: Sequence[Score]) -> dict[str, Any]:
        import torch

        values = torch.tensor([self._source.number(score) for score in scores], dtype=torch.float32)
        logs = {
            f"reward_{name}": torch.tensor([float(score.status == status) for score in scores])
            for name, status in (("valid", "scored"), ("failed", "failed"), ("abstained", "abstained"))
        }
        for name in self._parts:
            logs[f"part_{name}"] = torch.tensor([_part(score, name) for score in scores])
        return {"rewards": values, "scores": values.clone(), "extra_logs": logs}

    def _sample(self, query: str, prompt: str, label: Any) -> Sample:
        response, ended = without_ends(query[_end_of(prompt, query) :], self._end_tokens)
        cut = "stop" if ended else "length"
        return Sample(
            prompt=prompt,
            response=response,
            reference=read_reference(label),
            group=row_name(prompt, label),
            finish_reason=cut if self._end_tokens else None,
        )


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

"""What the answers of an OpenAI-compatible server say, read strictly: a field that is missing is not a result.

Each reader raises `BadAnswer` with what is wrong; the engine makes it a fault.  Numbers that no model can have given
(a log-probability above 0, NaN, the wrong count) are refused as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjudge.engines.interface import Completion, Labels
from adjudge.engines.label_tokens import NEVER
from adjudge.finish import given_up, plain_finish
from adjudge.protocol import Cost

_ROUNDING = 1e-3  # how far above 0 a log-probability may be: servers compute in half precision
_ZERO = -9999.0  # what vLLM and OpenAI write for minus infinity


class BadAnswer(Exception):
    """An answer lacks what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopTokens:
    """The likeliest next tokens, as a server shows them.

    Attributes:
        logprobs: each token's text with its log-probability; a text may come twice, since tokens may look alike.
        floor: log-probability that no token outside the list exceeds.
    """

    logprobs: tuple[tuple[str, float], ...]
    floor: float


def field_of(record: Any, name: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Return a field of a record; booleans are not numbers here."""
    if not isinstance(record, Mapping) or name not in record:
        raise BadAnswer(f"{where} has no {name!r}")
    value = record[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BadAnswer(f"{where} has {name}={str(value)[:80]!r}, which is of the wrong type")
    return value


def choices_of(body: Mapping[str, Any], count: int) -> list[Mapping[str, Any]]:
    """Return the choices in the order of their indices, which must be 0 to count - 1."""
    choices = field_of(body, "choices", list, "the answer")
    indices = [field_of(choice, "index", int, "a choice") for choice in choices]
    if sorted(indices) != list(range(count)):
        raise BadAnswer(f"{count} choices were asked for; the answer has those with the indices {indices[:20]}")
    return [choice for _, choice in sorted(zip(indices, choices, strict=True), key=lambda pair: pair[0])]


def cost_of(body: Mapping[str, Any], seconds: float) -> Cost:
    """Return what an answer cost; the tokens are 0 where the server does not count them."""
    usage = body.get("usage")
    prompt, completion = (_count(usage, name) for name in ("prompt_tokens", "completion_tokens"))
    return Cost(seconds=seconds, prompt_tokens=prompt, completion_tokens=completion)


def _count(usage: Any, name: str) -> int:
    """A number of tokens; 0 where the server does not count them."""
    value = usage.get(name) if isinstance(usage, Mapping) else "" if usage else None
    if value is None:
        return 0
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0 or value % 1:
        raise BadAnswer(f"the answer's usage has no such {name}: {str(usage)[:80]!r}")
    return int(value)


def completions_of(body: Mapping[str, Any], count: int, chat: bool) -> tuple[Completion, ...]:
    """Return the completions of an answer of `/chat/completions` or `/completions`."""
    choices = choices_of(body, count)
    return tuple(_completion(choice, chat, body.get("usage") if count == 1 else None) for choice in choices)


def choice_format(texts: Sequence[str]) -> dict[str, Any]:
    """Return OpenAI's `response_format` for an answer that is one of several texts."""
    answer = {"type": "string", "enum": list(texts)}
    schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"], "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "choice", "strict": True, "schema": schema}}


def choice_of(completion: Completion, texts: Sequence[str]) -> Completion:
    """Return the completion with the text that was chosen; a cut or refused one stays as it is.

    Raises:
        BadAnswer: it is something else, so the server has no structured outputs.
    """
    if completion.finish_reason != "stop":
        return completion
    try:
        answer = json.loads(completion.text)["answer"]
    except (ValueError, TypeError, KeyError):
        answer = None
    if answer not in texts:
        raise BadAnswer(f"one of {list(texts)[:8]} was asked for by response_format; it has {completion.text[:80]!r}")
    return replace(completion, text=answer)


def _completion(choice: Mapping[str, Any], chat: bool, usage: Any) -> Completion:
    finish = plain_finish(field_of(choice, "finish_reason", str, "a choice"))
    if given_up(finish):
        raise BadAnswer(f"the server gave up (finish_reason {finish!r}) {choice.get('error') or ''}".rstrip())
    reasoning = ""
    if chat:
        message = field_of(choice, "message", Mapping, "a choice")
        reasoning = _text(message, "reasoning") or _text(message, "reasoning_content")
        if "content" not in message and not reasoning:
            raise BadAnswer("a message has no 'content'")
        text = _text(message, "content")
        if not text and (refusal := _text(message, "refusal")):
            text, finish = refusal, "refusal"
    else:
        text = field_of(choice, "text", str, "a choice")
    return Completion(text=text, finish_reason=finish, reasoning=reasoning, tokens=_tokens(choice, usage))


def _text(message: Mapping[str, Any], name: str) -> str:
    value = message.get(name)
    if value is not None and not isinstance(value, str):
        raise BadAnswer(f"a message has {name}={str(value)[:80]!r}, which is not text")
    return value or ""


def _tokens(choice: Mapping[str, Any], usage: Any) -> int:
    """How many tokens a choice has: what its ids or the usage say, else 0."""
    if isinstance(ids := choice.get("token_ids"), list):
        return len(ids)
    return _count(usage, "completion_tokens")


def logprob(value: Any, where: str) -> float:
    """Return a log-probability; what stands for minus infinity becomes it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value > _ROUNDING:
        raise BadAnswer(f"{where} has the log-probability {str(value)[:80]!r}")
    return -math.inf if value <= _ZERO else min(float(value), 0.0)


def top_tokens_of(choice: Mapping[str, Any], chat: bool) -> TopTokens:
    """Return the likeliest tokens in place of the first generated one."""
    logprobs = field_of(choice, "logprobs", Mapping, "a choice")
    if chat:
        steps = field_of(logprobs, "content", list, "the log-probabilities")
        if not steps:
            raise BadAnswer("the log-probabilities are empty")
        shown = field_of(steps[0], "top_logprobs", list, "a token")
        pairs = [
            (field_of(one, "token", str, "a token"), logprob(one.get("logprob"), f"the token {one['token'][:40]!r}"))
            for one in shown
        ]
        chosen = field_of(steps[0], "token", str, "a token")
    else:
        steps = field_of(logprobs, "top_logprobs", list, "the log-probabilities")
        if not steps or not isinstance(steps[0], Mapping):
            raise BadAnswer("the log-probabilities are empty")
        pairs = [(token, logprob(value, f"the token {token[:40]!r}")) for token, value in steps[0].items()]
        chosen = next(iter(field_of(logprobs, "tokens", list, "the log-probabilities")), None)
    if not pairs:
        raise BadAnswer("the log-probabilities are empty")
    if math.fsum(math.exp(value) for _, value in pairs) > 1 + 0.05:
        raise BadAnswer("the probabilities of the likeliest tokens add up to more than 1")
    top = max(value for _, value in pairs)
    # Servers add the token that was generated to the likeliest ones.  Where it is not one of them, it says nothing
    # about those outside the list.
    likeliest = [value for token, value in pairs if token != chosen or value == top]
    return TopTokens(logprobs=tuple(pairs), floor=min(likeliest))


def labels_among(labels: Labels, top: TopTokens, unseen: float) -> tuple[dict[str, float], float]:
    """Return each label's log-probability, and the mass of what was seen.

    A label's text that is one of the tokens shown is known.  Any other text is not, but bounded: its first token is
    either outside the list, and then no likelier than the least likely token shown (nor than all that the list leaves
    over), or it is a shown token that begins the text.

    A label of which nothing was seen gets its upper bound, provided that all that was not seen has at most the share
    `unseen` of the labels' probability; so each label's share is within `unseen` of the truth.

    Raises:
        BadAnswer: what was not seen may be more than that.
    """
    seen: dict[str, float] = {}
    bounds: dict[str, float] = {}
    for label, texts in labels.items():
        wanted = set(texts)
        seen[label] = math.fsum(math.exp(value) for token, value in top.logprobs if token in wanted)
        bounds[label] = _bound(sorted(wanted - {token for token, _ in top.logprobs}), top)
    mass = math.fsum(seen.values())
    bound = math.fsum(bounds.values())
    if bound > unseen * (mass + bound):
        worst = max(bounds, key=lambda label: bounds[label])
        raise BadAnswer(
            f"the label {worst!r} is not fully known: {len(top.logprobs)} of the likeliest tokens were shown, and its "
            f"texts that are not among them may have a probability of up to {bounds[worst]:.2g}, beside {mass:.2g} for "
            "all that was seen; ask for more `top_logprobs`, allow a larger share `unseen`, or use a vLLM server"
        )
    known = {label: seen[label] or bounds[label] for label in labels}
    return {label: max(math.log(p), NEVER) if p > 0 else NEVER for label, p in known.items()}, min(mass, 1.0)


def _bound(texts: Sequence[str], top: TopTokens) -> float:
    """Return the largest probability that texts can have together, none of which is a token shown."""
    if not texts:
        return 0.0
    left = max(0.0, 1.0 - math.fsum(math.exp(value) for _, value in top.logprobs))
    beginning = [value for token, value in top.logprobs if any(token and text.startswith(token) for text in texts)]
    return min(left, len(texts) * math.exp(top.floor)) + math.fsum(math.exp(value) for value in beginning)


def read_of(choice: Mapping[str, Any], tokens: Sequence[int]) -> dict[int, float]:
    """Return the log-probabilities of tokens that vLLM was asked for by id (`logprob_token_ids`)."""
    logprobs = field_of(choice, "logprobs", Mapping, "a choice")
    steps = field_of(logprobs, "top_logprobs", list, "the log-probabilities")
    shown = steps[0] if steps and isinstance(steps[0], Mapping) else {}
    read = {}
    for token in tokens:
        if (name := f"token_id:{token}") not in shown:
            raise BadAnswer(f"the answer lacks the token {token} that was asked for by `logprob_token_ids`")
        read[token] = logprob(shown[name], f"the token {token}")
    return read


def prompt_logprobs_of(choice: Mapping[str, Any], tokens: Sequence[int]) -> list[tuple[str, float]]:
    """Return text and log-probability of the last tokens of a prompt, as vLLM gives them (`prompt_logprobs`)."""
    places = field_of(choice, "prompt_logprobs", list, "a choice")
    if len(places) <= len(tokens):
        raise BadAnswer(
            f"log-probabilities of {len(places)} prompt tokens came back, too few for the {len(tokens)} asked"
        )
    read = []
    for token, place in zip(tokens, places[len(places) - len(tokens) :], strict=True):
        entry = field_of(place, str(token), Mapping, "a prompt token")
        text = entry.get("decoded_token")
        value = logprob(entry.get("logprob"), f"the prompt token {token}")
        read.append((text if isinstance(text, str) else "", value))
    return read


def echoed_of(choice: Mapping[str, Any], prompt: str, text: str) -> list[tuple[str, float]]:
    """Return the tokens of a text behind a prompt, from an answer that repeats both with log-probabilities."""
    logprobs = field_of(choice, "logprobs", Mapping, "a choice")
    tokens = field_of(logprobs, "tokens", list, "the log-probabilities")
    values = field_of(logprobs, "token_logprobs", list, "the log-probabilities")
    if len(tokens) != len(values) or not all(isinstance(token, str) for token in tokens):
        raise BadAnswer("the echoed tokens and their log-probabilities do not fit together")
    read, at = [], 0
    for token, value in zip(tokens, values, strict=True):
        if at >= len(prompt) + len(text):
            break  # what the model added
        if at < len(prompt) < at + len(token):
            raise BadAnswer("a token of the server holds both the end of the prompt and the beginning of the text")
        if at >= len(prompt):
            read.append((token, logprob(value, f"the token {token[:40]!r}")))
        at += len(token)
    if "".join(token for token, _ in read) != text or "".join(tokens)[: len(prompt)] != prompt:
        raise BadAnswer("the echoed tokens do not spell the prompt and the text")
    return read


def numbers_of(values: Any, where: str) -> tuple[float, ...]:
    """Return a list of finite numbers, at least one."""
    if not isinstance(values, list) or not values:
        raise BadAnswer(f"{where} is not a list of numbers")
    if not all(isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in values):
        raise BadAnswer(f"{where} holds something that is not a finite number")
    return tuple(float(x) for x in values)


def token_ids_of(body: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the tokens of an answer of `/tokenize`."""
    tokens = field_of(body, "tokens", list, "the answer")
    if not all(isinstance(token, int) and not isinstance(token, bool) and token >= 0 for token in tokens):
        raise BadAnswer("the answer's tokens are not a token ids")
    return tuple(tokens)

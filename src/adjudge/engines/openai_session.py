"""One prompt, one server: the requests behind each call of the `openai` engine, in two dialects.

| call | dialect "openai" | dialect "vllm" |
|---|---|---|
| `generate` | `/chat/completions`, `/completions` | the same, with every default of the server overridden |
| `label_logprobs` | the likeliest tokens that the server shows | exact: chosen tokens by id |
| `reference_logprobs` | text prompts, by `echo`, if the option says so | `prompt_logprobs` |
| `classify`, `classify_tokens` | not at all | `/classify`, `/pooling`, without activation |

A session lives on one event loop and belongs to one process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from adjudge.engines import openai_answers as answers
from adjudge.engines.http_client import Answer, JsonClient, NoObject, Refusal, safe_detail
from adjudge.engines.interface import (
    Fault,
    Generation,
    LabelLogprobs,
    Labels,
    Logits,
    Prompt,
    Row,
    Sampling,
    TextLogprobs,
    TokenLogits,
    is_tokens,
)
from adjudge.engines.label_tokens import (
    NEVER,
    LabelTokens,
    Tokens,
    chained,
    continuation_tokens,
    label_texts,
    of_labels,
    portions,
    reads_for,
)
from adjudge.engines.openai_answers import BadAnswer
from adjudge.engines.openai_config import OpenAIConfig
from adjudge.protocol import NO_COST, Cost

_MISTAKES = {
    401: "the server wants a key, or refuses the one it got",
    404: "the server knows no such model or route",
    405: "the server knows no such route",
}
_UNSUPPORTED = re.compile(r"unsupported (?:value|parameter): '(temperature|max_tokens)'", re.IGNORECASE)
_LEFT_OUT = {"temperature": "send_temperature: false", "max_tokens": "max_tokens_field: max_completion_tokens"}
_ANCHOR = "\n"  # see `adjudge.engines.label_tokens`
_RAW = {"temperature": 0.0, "max_tokens": 1}  # what is read are log-probabilities; the token itself is thrown away
# Without a sigmoid or softmax, by every name that versions of vLLM have for it; each ignores the names it lacks.
_RAW_OUTPUTS = {"use_activation": False, "activation": False, "softmax": False}


class Refused(Exception):
    """There is no result, and the fault says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class OpenAISession:
    """The connections to a server, and what has been found out about it.

    Args:
        config: the engine's options; the key is read from the environment now.
    """

    def __init__(self, config: OpenAIConfig) -> None:
        self._config = config
        self._client = JsonClient(
            secret=config.key(),
            concurrency=config.concurrency,
            timeout=config.timeout,
            deadline=config.deadline,
            max_bytes=config.max_bytes,
            retry=config.retry(),
            circuit=config.circuit(),
            trust_env=not config.is_local,
        )
        self._dialect: str | None = None if config.dialect == "auto" else config.dialect
        self._looking: asyncio.Task[str] | None = None
        self._answered: set[str] = set()
        self._labels: dict[str, LabelTokens] = {}

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def fault_of(self, error: Refused | BadAnswer) -> Fault:
        """Return why there is no result."""
        if isinstance(error, Refused):
            return error.fault
        return Fault(reason="engine_error", detail=safe_detail(str(error), self._client.secret))

    async def dialect(self) -> str:
        """Return "openai" or "vllm"; the server is asked once.

        Raises:
            Refused: the server did not answer.
        """
        if self._dialect is not None:
            return self._dialect
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look())
            self._looking.add_done_callback(self._looked)
        dialect = await asyncio.shield(self._looking)  # many wait for one look; none may cancel it
        self._dialect = dialect
        return dialect

    async def _look(self) -> str:
        answer = await self._client.get(f"{self._config.address}/models")
        if isinstance(answer, Refusal | NoObject):
            return "openai"  # not all servers list their models, or list them as OpenAI does
        if isinstance(answer, Fault):
            raise Refused(answer)
        models = answer.body.get("data")
        listed = [one for one in models if isinstance(one, Mapping)] if isinstance(models, list) else []
        # Behind a gateway, each model has a server of its own.
        own = [one for one in listed if one.get("id") == self._config.model] or listed
        return "vllm" if own and all(one.get("owned_by") == "vllm" for one in own) else "openai"

    def _looked(self, look: asyncio.Task[str]) -> None:
        self._looking = None
        if not look.cancelled():
            look.exception()  # whoever waited has it; where nobody did, it is nobody's

    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generation:
        """Return completions of a prompt."""
        if sampling.choice and self._dialect == "vllm":
            found = await self.labels_read(prompt, await self.label_tokens(label_texts(sampling.choice)))
            return of_labels(found, sampling, prompt)
        chat = not isinstance(prompt, str)
        is_vllm = self._dialect == "vllm"
        body = self._prompt_fields(prompt)
        limit = self._config.max_tokens_field if chat and not is_vllm else "max_tokens"
        body |= {limit: sampling.max_tokens, "temperature": sampling.temperature}
        if is_vllm:
            # All of them: the server fills in what the model's authors recommend for chatting.
            body |= {"top_p": sampling.top_p, "top_k": sampling.top_k, "min_p": 0.0, "repetition_penalty": 1.0}
            body |= {"presence_penalty": 0.0, "frequency_penalty": 0.0, "return_token_ids": sampling.n > 1}
        elif sampling.top_p < 1:
            body["top_p"] = sampling.top_p
        if sampling.n > 1:
            body["n"] = sampling.n
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if sampling.temperature > 0:
            body["seed"] = prompt_seed(sampling.seed, prompt)
        if sampling.choice:
            if body["messages"][-1]["role"] == "assistant":  # its beginning of an answer has no place in a JSON object
                body["messages"] = body["messages"][:-1]
            body["response_format"] = answers.choice_format(sampling.choice)
        answer, cost = await self._post(_route(chat), body)
        completions = answers.completions_of(answer, sampling.n, chat)
        if sampling.choice:
            completions = tuple(answers.choice_of(one, sampling.choice) for one in completions)
        return Generation(completions=completions, cost=cost)

    async def labels_shown(self, prompt: Prompt, labels: Labels) -> LabelLogprobs:
        """Return how likely labels are, from the likeliest tokens alone."""
        chat = not isinstance(prompt, str)
        body = self._prompt_fields(prompt) | {"temperature": 0.0}
        if chat:
            body |= {self._config.max_tokens_field: 1, "logprobs": True, "top_logprobs": self._config.top_logprobs}
        else:
            body |= {"max_tokens": 1, "logprobs": self._config.top_logprobs}
        answer, cost = await self._post(_route(chat), body)
        (choice,) = answers.choices_of(answer, 1)
        logprobs, mass = answers.labels_among(labels, answers.top_tokens_of(choice, chat), self._config.unseen)
        return LabelLogprobs(logprobs=logprobs, mass=mass, cost=cost)

    async def label_tokens(self, labels: Labels) -> LabelTokens:
        """Return the labels' token sequences, by the server's tokenizer."""
        name = json.dumps([[label, list(texts)] for label, texts in labels.items()])
        if name not in self._labels:
            texts = [text for texts in labels.values() for text in texts]
            table = await self._tokenized([_ANCHOR, *texts, *(_ANCHOR + text for text in texts)])
            if len(self._labels) >= 64:  # scorers have a handful of label sets; only fuzzing makes ever new ones
                self._labels.clear()
            self._labels[name] = LabelTokens.of(labels, table.__getitem__)
        return self._labels[name]

    async def labels_read(self, prompt: Prompt, labels: LabelTokens) -> LabelLogprobs:
        """Return how likely labels are, exactly."""
        tokens, cost = await self._prompt_tokens(prompt)
        wanted = reads_for(labels.owners)
        root = wanted.pop(())
        logprobs_read, spent = await self._read(tokens, {(): root})
        cost += spent
        if wanted:  # after the root: now the prompt is in the server's cache, and these cost a token or two each
            deeper, spent = await self._read(tokens, wanted)
            logprobs_read |= deeper
            cost += spent
        return labels.answer(chained(labels.owners, logprobs_read), cost)

    async def echoed(self, prompt: str, text: str) -> TextLogprobs:
        """Return how likely a text is after a text prompt, by having both repeated."""
        body = {"prompt": prompt + text, "echo": True, "logprobs": 1, **_RAW}
        answer, cost = await self._post(_route(False), body)
        (choice,) = answers.choices_of(answer, 1)
        return _text_logprobs(answers.echoed_of(choice, prompt, text), cost)

    async def forced(self, prompt: Prompt, text: str) -> TextLogprobs:
        """Return how likely a text is after a prompt, by vLLM's log-probabilities of prompts."""
        tokens, cost = await self._prompt_tokens(prompt)
        table = await self._tokenized([_ANCHOR, _ANCHOR + text, text])
        continuation = continuation_tokens(table.__getitem__, text)
        body = {"prompt": [*tokens, *continuation], "prompt_logprobs": 0, **_RAW}
        answer, spent = await self._post(_route(False), body)
        (choice,) = answers.choices_of(answer, 1)
        return _text_logprobs(answers.prompt_logprobs_of(choice, continuation), cost + spent)

    async def classify(self, prompt: Prompt) -> Logits:
        """Return a sequence classifier's raw outputs."""
        given = {"input": prompt, "add_special_tokens": True} if isinstance(prompt, str) else self._finished(prompt)
        answer, cost = await self._post("/classify", {**_RAW_OUTPUTS, **given})
        values = answers.numbers_of(_record(answer).get("probs"), "the answer's `probs`")
        return Logits(values=values, cost=cost)

    async def classify_tokens(self, prompt: Row) -> TokenLogits:
        """Return a token classifier's raw outputs."""
        if is_tokens(prompt):
            tokens, cost = prompt, NO_COST
        else:
            tokens, cost = await self._prompt_tokens(cast("Prompt", prompt), finished=True)
        body = {"input": list(tokens), "task": "token_classify", **_RAW_OUTPUTS}
        answer, spent = await self._post("/pooling", body)
        rows = answers.field_of(_record(answer), "data", list, "the answer")
        if len(rows) != len(tokens):
            raise BadAnswer(f"the prompt has {len(tokens)} tokens; outputs for {len(rows)} came back")
        return TokenLogits(
            token_ids=tokens,
            values=tuple(answers.numbers_of(row, "a token's outputs") for row in rows),
            cost=cost + spent,
        )

    async def _read(self, prompt: Tokens, wanted: Mapping[Tokens, tuple[int, ...]]) -> tuple[dict[Tokens, float], Cost]:
        logprobs: dict[Tokens, float] = {}
        cost = NO_COST
        together = tuple(dict.fromkeys(token for tokens in wanted.values() for token in tokens))
        for some in portions(together):
            body = {
                "prompt": [[*prompt, *prefix] for prefix in wanted],
                "logprobs": 1,
                "logprob_token_ids": list(some),
                "return_tokens_as_token_ids": True,
                **_RAW,
            }
            answer, spent = await self._post(_route(False), body)
            cost += spent
            for prefix, choice in zip(wanted, answers.choices_of(answer, len(wanted)), strict=True):
                logprobs |= {(*prefix, token): value for token, value in answers.read_of(choice, some).items()}
        return logprobs, cost

    async def _prompt_tokens(self, prompt: Prompt, *, finished: bool = False) -> tuple[Tokens, Cost]:
        given = (
            {"prompt": prompt, "add_special_tokens": False}
            if isinstance(prompt, str)
            else (self._finished(prompt) if finished else self._chat(prompt))
        )
        answer, cost = await self._post("/tokenize", given)
        tokens = answers.token_ids_of(answer)
        if not tokens:
            raise BadAnswer("the prompt has no tokens; the model needs at least one")
        return tokens, cost

    async def _tokenized(self, texts: Sequence[str]) -> dict[str, Tokens]:
        table: dict[str, Tokens] = {}
        for text in dict.fromkeys(texts):
            answer, _ = await self._post("/tokenize", {"prompt": text, "add_special_tokens": False})
            table[text] = answers.token_ids_of(answer)
        return table

    def _prompt_fields(self, prompt: Prompt) -> dict[str, Any]:
        if not isinstance(prompt, str):
            return self._chat(prompt)
        fields: dict[str, Any] = {"prompt": prompt}
        return fields | {"add_special_tokens": False} if self._dialect == "vllm" else fields

    def _chat(self, prompt: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {"messages": [dict(turn) for turn in prompt], **self._template_fields()}
        if self._dialect == "vllm" and prompt and prompt[-1].get("role") == "assistant":
            fields |= {"continue_final_message": True, "add_generation_prompt": False}
        return fields

    def _finished(self, prompt: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """A chat as it stands, as a reward model reads it: nothing is added for the model to go on."""
        return {"messages": [dict(turn) for turn in prompt], "add_generation_prompt": False, **self._template_fields()}

    def _template_fields(self) -> dict[str, Any]:
        options = self._config.chat_template_kwargs
        return {"chat_template_kwargs": dict(options)} if options else {}

    async def _post(self, route: str, fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], Cost]:
        """Return what the server answers, and what it cost; routes of vLLM's own start where `/v1` does."""
        url = f"{self._config.address if route.endswith('completions') else self._config.root}{route}"
        sent = {"model": self._config.model, **fields}
        if not self._config.send_temperature:
            sent.pop("temperature", None)
        answer = await self._client.post(url, sent)
        if isinstance(answer, Answer):
            self._answered.add(url)
            return answer.body, answers.cost_of(answer.body, answer.seconds)
        if isinstance(answer, Fault):
            raise Refused(answer)
        # A route that never worked is a mistake in the options; one that worked before is a fault of the server.
        if (remedy := self._remedy(url, answer)) and url not in self._answered:
            raise ValueError(remedy)
        raise Refused(replace(answer.fault, detail=remedy) if remedy else answer.fault)

    def _remedy(self, url: str, refusal: Refusal) -> str:
        """What is to be done about a mistake in the options; "" if a refusal says of none."""
        config, mistake = self._config, _MISTAKES.get(refusal.status)
        if refusal.status == 400 and (found := _UNSUPPORTED.search(refusal.fault.detail)):
            mistake, remedy = "the model takes no such field", f"set the engine's option {_LEFT_OUT[found[1].lower()]}"
        elif mistake is None:
            return ""
        elif refusal.status == 401:
            sent = "a key was sent" if self._client.secret else "no key was sent"
            why = "" if config.is_local or url.startswith("https:") else ", since keys go over https only"
            remedy = f"{sent}{why}; set the environment variable {config.api_key_env or 'that api_key_env names'}"
        elif url.endswith(("/classify", "/pooling")):
            remedy = (
                "this call needs a vLLM server that was started with `--runner pooling` and a model with such a head"
            )
        else:
            remedy = f"check base_url={config.base_url!r} and model={config.model!r}"
        return safe_detail(f"openai engine: {url}: {mistake} ({refusal.fault.detail}); {remedy}", self._client.secret)


def prompt_seed(seed: int, prompt: Prompt) -> int:
    """Return a seed of 31 bits for a prompt, so that different prompts do not share their luck."""
    text = json.dumps([seed, prompt], default=repr)
    return int.from_bytes(hashlib.sha256(text.encode("ascii")).digest()[:4]) >> 1


def _record(body: Mapping[str, Any]) -> Mapping[str, Any]:
    records = answers.field_of(body, "data", list, "the answer")
    if len(records) != 1 or not isinstance(records[0], Mapping):
        raise BadAnswer(f"one result was asked for; the answer has {len(records)}")
    record: Mapping[str, Any] = records[0]
    return record


def _route(chat: bool) -> str:
    return "/chat/completions" if chat else "/completions"


def _text_logprobs(read: Sequence[tuple[str, float]], cost: Cost) -> TextLogprobs:
    return TextLogprobs(
        tokens=tuple(token for token, _ in read), logprobs=tuple(max(value, NEVER) for _, value in read), cost=cost
    )

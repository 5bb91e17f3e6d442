"""Prompts as token ids: chats through the model's own template, texts as they are, special tokens never added twice.

A rendered chat is tokenized without adding special tokens, since templates write their own; a second begin-of-text
token shifts every score of Llama 3 and Gemma.  A text that is classified has no template, so its special tokens are
those that the tokenizer puts around it: `[CLS]` and `[SEP]` of BERT, a begin-of-text token, or none.

Not covered: what a template does to a chat (`adjudge.engines.template_lint` looks), and special tokens spelled out in
somebody's text (`adjudge.prompts` breaks those up; `special_tokens` lists them).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from adjudge.engines.interface import Fault, Prompt, Row, is_tokens
from adjudge.engines.shared_prefixes import common
from adjudge.protocol import Message, content_text

_SURROGATE = re.compile("[\ud800-\udfff]")


class PromptTokens:
    """Turns prompts into token ids with a `transformers` tokenizer; may be used from any thread.

    Args:
        tokenizer: a tokenizer of `transformers`.
        model: the model's name, for messages.
        window: most tokens of a prompt and what follows it.
        options: handed to the chat template, `{"enable_thinking": False}` for example.

    Attributes:
        tokenizer: as given.
        model: as given.
        window: as given.
    """

    def __init__(self, tokenizer: Any, *, model: str, window: int, options: Mapping[str, Any] | None = None):
        self.tokenizer = tokenizer
        self.window = window
        self.model = model
        self._options = dict(options or {})
        # Tokenizers written in Rust refuse a second thread ("Already borrowed") while their settings change.
        self._lock = threading.Lock()

    def text(self, text: str) -> list[int]:
        """Return the tokens of a text, without special tokens."""
        with self._lock:
            return list(self.tokenizer(_encodable(text), add_special_tokens=False, verbose=False)["input_ids"])

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special tokens and with spaces as they are."""
        with self._lock:
            text: str = self.tokenizer.decode(
                list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        return text

    def pieces(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """Return the text of each token by itself."""
        with self._lock:
            return tuple(self.tokenizer.decode([token], clean_up_tokenization_spaces=False) for token in tokens)

    def end_tokens(self) -> frozenset[int]:
        """Return the token that ends a text, if there is one."""
        end = self.tokenizer.eos_token_id
        return frozenset() if end is None else frozenset([end])

    @cached_property
    def special_tokens(self) -> tuple[str, ...]:
        """What the tokenizer takes for one token of its own wherever it stands, even inside somebody's text."""
        added = {str(token.content) for token in self.tokenizer.added_tokens_decoder.values()}
        return tuple(sorted({text for text in added | set(self.tokenizer.all_special_tokens) if text.strip()}))

    def read(
        self, prompts: Sequence[Row], *, finished: bool = False, special: bool = False
    ) -> list[tuple[int, ...] | Fault]:
        """Return the tokens of each prompt; what cannot be rendered is a fault in its place.

        Args:
            prompts: texts, chats, or tokens, which stay as they are.
            finished: render chats as they stand, as a reward model reads them: nothing is added for the model to go on.
            special: put the tokenizer's special tokens around texts, as classifiers of texts were trained.

        Raises:
            ValueError: there is a chat, and the model has no chat template.
        """
        rendered = [
            prompt
            if isinstance(prompt, str) or is_tokens(prompt)
            else self.rendered(cast("Sequence[Message]", prompt), finished=finished)
            for prompt in prompts
        ]
        bare = [special and isinstance(prompt, str) for prompt in prompts]
        texts = [(text, adds) for text, adds in zip(rendered, bare, strict=True) if isinstance(text, str)]
        rows = {way: iter(self._encoded([text for text, adds in texts if adds is way], way)) for way in (False, True)}
        return [
            tuple(next(rows[adds])) if isinstance(text, str) else text
            for text, adds in zip(rendered, bare, strict=True)
        ]

    def _encoded(self, texts: Sequence[str], special: bool) -> list[list[int]]:
        if not texts:
            return []
        with self._lock:
            rows: list[list[int]] = self.tokenizer(
                [_encodable(text) for text in texts], add_special_tokens=special, verbose=False
            )["input_ids"]
        return rows

    def prompt_lengths(
        self, chats: Sequence[Prompt], rows: Sequence[tuple[int, ...] | Fault], *, back: int = 0
    ) -> list[int | Fault]:
        """Return how many tokens of each finished chat come before the answer, the start of its turn included.

        Args:
            chats: each ends with the assistant's turn that is judged.
            rows: their tokens, as `read` gives them for finished chats; a fault stays in its place.
            back: how many tokens at the prompt's end are not counted.

        Raises:
            ValueError: there is a text among them, in which nobody can tell where the answer begins.
        """
        if any(isinstance(chat, str) for chat in chats):
            raise ValueError(f"{self.model!r} reads the prompt's end as well; give it chats, not texts")
        turns = cast("Sequence[Sequence[Message]]", chats)
        prompts = self.read([chat[:-1] for chat in turns])
        # An answer that begins as the generation prompt ends ("<think>") must not move the place into itself.
        others = self.read(
            [[*chat[:-1], {**chat[-1], "content": "-"}] if chat else () for chat in turns], finished=True
        )
        lengths: list[int | Fault] = []
        for trio in zip(rows, prompts, others, strict=True):
            if fault := next((one for one in trio if isinstance(one, Fault)), None):
                lengths.append(fault)
                continue
            row, prompt, other = cast("tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]", trio)
            none = Fault(reason="engine_error", detail="the chat has no prompt before its answer")
            length = min(common(row, prompt), common(other, prompt), len(prompt) - back)
            lengths.append(length if length > 0 else none)
        return lengths

    def overflow(self, length: int, more: int = 0) -> Fault | None:
        """Return a fault if a prompt of `length` tokens, and `more` after it, cannot be asked."""
        if length == 0:
            return Fault(reason="engine_error", detail="the prompt has no tokens; the model needs at least one")
        if length + more <= self.window:
            return None
        what = f"the prompt has {length} tokens" + (f", and {more} have to follow" if more else "")
        return Fault(
            reason="engine_error",
            detail=f"{what}; {self.model} reads at most {self.window} (its window, or the engine's limit)",
            too_long=True,
        )

    def rendered(self, chat: Sequence[Message], *, finished: bool) -> str | Fault:
        """Return the text that the chat template makes of turns, or why it makes none.

        Args:
            chat: the turns.
            finished: as for `read`.

        Raises:
            ValueError: the model has no chat template.
        """
        from jinja2 import TemplateError

        if not self.tokenizer.chat_template:
            raise ValueError(
                f"the model {self.model!r} has no chat template, so it cannot be asked with a chat; "
                "give text prompts, a model that was tuned for chat, or, to train it, model.chat_template: plain"
            )
        turns = [dict(turn) for turn in chat]
        try:
            for turn in turns:
                if not ("role" in turn and ("content" in turn or "tool_calls" in turn)):
                    raise ValueError("a turn has no role or no content")
                if turn.get("content") is not None:
                    turn["content"] = content_text(turn["content"])
            continued = not finished and bool(turns) and turns[-1].get("role") == "assistant"
            text = self.tokenizer.apply_chat_template(
                turns,
                tokenize=False,
                add_generation_prompt=not finished and not continued,
                continue_final_message=continued,
                **self._options,
            )
        # A template that meets turns it does not expect raises an error of its own, or stumbles over Python's.
        except (TemplateError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            problem = f"{type(error).__name__}: {error}"
            return Fault(reason="engine_error", detail=f"the chat template refused the turns: {problem}"[:500])
        return str(text)


def _encodable(text: str) -> str:
    """The text with halves of surrogate pairs replaced: JSON can spell them, and no tokenizer takes them."""
    return _SURROGATE.sub("\ufffd", text)

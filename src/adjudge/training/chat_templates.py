"""Chat templates for models that are trained and have none."""

from __future__ import annotations

from typing import Any

PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
"""A chat template for models that have none; every turn ends with the end token."""


def with_template(tokenizer: Any, template: str) -> None:
    """Give a tokenizer a chat template: "" keeps its own, "plain" is `PLAIN_TEMPLATE`, else the name of a file.

    Raises:
        ValueError: the file cannot be read, or the plain template meets a tokenizer without an end token.
    """
    if not template:
        return
    if template == "plain":
        if not tokenizer.eos_token:
            raise ValueError("model.chat_template is plain, which needs an end token, and the tokenizer has none")
        tokenizer.chat_template = PLAIN_TEMPLATE
        return
    try:
        with open(template, encoding="utf-8") as file:
            tokenizer.chat_template = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"model.chat_template {template!r} cannot be read: {error}") from error

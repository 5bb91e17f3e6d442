"""What can go wrong between a chat, its template and its tokenizer, found before a million samples were scored.

    python -m adjudge.engines.template_lint MODEL

prints one line for each finding and exits with 1 if one of them is an error.  Each finding names the remedy; what
adjudge's own engines take care of is only a note.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]

_USER = {"role": "user", "content": "first probe"}
_ANSWER = {"role": "assistant", "content": "second probe"}
_THOUGHT = "third probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to know about a template or tokenizer.

    Attributes:
        code: a word for programs.
        severity: "error" (scores will be wrong), "warning" (they may be), "note" (other programs get other scores).
        text: what was seen, and the remedy.
    """

    code: str
    severity: Severity
    text: str


def lint(tokenizer: Any, options: Mapping[str, Any] | None = None) -> list[Finding]:
    """Return what was found, in a fixed order.

    Args:
        tokenizer: a tokenizer of `transformers` with its chat template.
        options: for the template, as the engine's `chat_template_kwargs`.
    """
    findings = list(_tokenizer_findings(tokenizer))
    if not tokenizer.chat_template:
        text = "there is no chat template, so chats cannot be asked; set one, or use text prompts"
        return [Finding(code="no_template", severity="error", text=text), *findings]
    probe = _Probe(tokenizer, options or {})
    for check in (_begin, _end, _generation_prompt, _thinking, _content, _roles, _date):
        findings.extend(check(probe))
    return findings


class _Probe:
    def __init__(self, tokenizer: Any, options: Mapping[str, Any]):
        self.tokenizer = tokenizer
        self._options = dict(options)

    def text(self, *turns: Mapping[str, str], add_generation_prompt: bool = False) -> str | None:
        """Return the rendered turns; None if the template refuses them."""
        from jinja2 import TemplateError

        try:
            rendered = self.tokenizer.apply_chat_template(
                [dict(turn) for turn in turns],
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                **self._options,
            )
        except (TemplateError, ValueError, TypeError, KeyError, AttributeError, IndexError):
            return None
        return str(rendered)

    def ids(self, text: str, *, special: bool) -> list[int]:
        """Return the tokens of a text, with or without those that the tokenizer adds by itself."""
        return list(self.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"])


def _tokenizer_findings(tokenizer: Any) -> Iterator[Finding]:
    if tokenizer.pad_token_id is None:
        text = "there is no padding token; programs that batch must choose one (adjudge masks padding by length)"
        yield Finding(code="no_pad", severity="note", text=text)
    elif tokenizer.pad_token_id == tokenizer.eos_token_id:
        text = (
            f"padding and end are one token, {tokenizer.eos_token!r}: programs that find the last token by comparing "
            "with the padding pass over a real end token; score by length (adjudge does), or set another padding token"
        )
        yield Finding(code="pad_is_end", severity="warning", text=text)
    if tokenizer.truncation_side == "right":
        text = (
            "the tokenizer cuts long texts on the right, where the answer ends; do not let it truncate (adjudge never "
            "does), or set truncation_side to left"
        )
        yield Finding(code="cuts_the_answer", severity="note", text=text)


def _begin(probe: _Probe) -> Iterator[Finding]:
    begin, text = probe.tokenizer.bos_token_id, probe.text(_USER, _ANSWER)
    if begin is None or text is None:
        return
    if (begin, begin) in pairwise(probe.ids(text, special=False)):  # apart they begin turns, as SmolLM2's do
        told = f"the template writes {probe.tokenizer.bos_token!r} twice in a row; keep the first"
        yield Finding(code="double_begin", severity="error", text=told)
    elif probe.ids(text, special=True)[:2] == [begin, begin]:
        told = (
            f"the template writes {probe.tokenizer.bos_token!r} and the tokenizer adds another; tokenize rendered "
            "chats with add_special_tokens=False (adjudge does)"
        )
        yield Finding(code="begin_added_twice", severity="note", text=told)


def _end(probe: _Probe) -> Iterator[Finding]:
    text = probe.text(_USER, _ANSWER)
    if text is None or _ANSWER["content"] not in text:
        return
    after = probe.ids(text.rpartition(_ANSWER["content"])[2], special=False)
    special = [token for token in after if token in set(probe.tokenizer.all_special_ids)]
    end = probe.tokenizer.eos_token_id
    if not special:
        told = (
            "nothing marks the end of the assistant's turn, so a reward model is read in the middle of a text and a "
            "model trained on such chats does not stop; end the turn with the end token"
        )
        yield Finding(code="no_end", severity="error", text=told)
    elif end not in special:
        told = (
            f"the assistant's turn ends with {probe.tokenizer.decode([special[0]])!r}, and the end token is "
            f"{probe.tokenizer.eos_token!r}; name both in generation_config.json, or completions run on"
        )
        yield Finding(code="other_end", severity="warning", text=told)
    elif after[-1] != end:
        told = (
            f"{probe.tokenizer.decode(after[after.index(end) + 1 :])!r} follows the end token, and reward models are "
            "read there; make sure that yours was trained so"
        )
        yield Finding(code="text_after_end", severity="note", text=told)


def _generation_prompt(probe: _Probe) -> Iterator[Finding]:
    plain, prompted = probe.text(_USER), probe.text(_USER, add_generation_prompt=True)
    if plain is not None and plain == prompted:
        told = (
            "add_generation_prompt changes nothing, so the model is not told that it is its turn (or is told so in "
            "finished chats as well); add the start of an assistant's turn under `if add_generation_prompt`"
        )
        yield Finding(code="no_generation_prompt", severity="error", text=told)


def _thinking(probe: _Probe) -> Iterator[Finding]:
    thoughtful = {"role": "assistant", "content": f"<think>\n{_THOUGHT}\n</think>\n\nfourth probe"}
    if _THOUGHT not in (probe.text(_USER, thoughtful) or _THOUGHT):
        told = "reasoning in the last turn is dropped, so an answer is scored without it; pass it as the template asks"
        yield Finding(code="thinking_dropped", severity="warning", text=told)
    elif _THOUGHT not in (probe.text(_USER, thoughtful, _USER, _ANSWER) or _THOUGHT):
        told = "reasoning in earlier turns is dropped; score turns one by one where it matters"
        yield Finding(code="earlier_thinking_dropped", severity="note", text=told)
    plain, prompted = probe.text(_USER, _ANSWER), probe.text(_USER, add_generation_prompt=True)
    if plain and "<think>" in plain:
        told = "a thinking block is put before answers that have none; compare scores only with chats rendered alike"
        yield Finding(code="thinking_inserted", severity="warning", text=told)
    if prompted and re.search(r"<think>\s*$", prompted):
        told = (
            "the generation prompt opens a thinking block, so the next token is not a label; leave room for the "
            "reasoning, or switch it off with chat_template_kwargs {enable_thinking: false}"
        )
        yield Finding(code="thinking_forced", severity="warning", text=told)


def _content(probe: _Probe) -> Iterator[Finding]:
    for role, content in (("user", "  fifth probe \n"), ("assistant", "  sixth probe \n")):
        turns = (
            [{"role": "user", "content": content}] if role == "user" else [_USER, {"role": role, "content": content}]
        )
        text = probe.text(*turns)
        if text is None or content in text:
            continue
        if content.strip() in text:
            told = f"blanks around the {role}'s text are cut off; texts that differ only there get one score"
            yield Finding(code=f"{role}_text_trimmed", severity="note", text=told)
        else:
            told = f"the {role}'s text is not in the rendered chat as it was given; correct the template"
            yield Finding(code=f"{role}_text_changed", severity="error", text=told)


def _roles(probe: _Probe) -> Iterator[Finding]:
    system = {"role": "system", "content": "seventh probe"}
    text = probe.text(system, _USER)
    if text is None:
        told = "the template refuses a system turn; put its text at the start of the user's turn"
        yield Finding(code="no_system_turn", severity="warning", text=told)
    elif system["content"] not in text:
        told = "the template drops a system turn without a word; put its text at the start of the user's turn"
        yield Finding(code="system_turn_dropped", severity="error", text=told)
    if probe.text(_USER, _USER) is None:
        told = "the template refuses two turns of one role in a row; join them before"
        yield Finding(code="turns_must_alternate", severity="note", text=told)


def _date(probe: _Probe) -> Iterator[Finding]:
    template = probe.tokenizer.chat_template
    sources = template.values() if isinstance(template, Mapping) else [template]
    if any("strftime_now" in source for source in sources):
        told = (
            "the template writes today's date, so the same chat gets another score tomorrow; fix it with "
            "chat_template_kwargs {date_string: ...} if the template takes that"
        )
        yield Finding(code="writes_the_date", severity="warning", text=told)


def main(arguments: Sequence[str]) -> int:
    """Print the findings for a model; return 1 if one is an error, 2 if the model cannot be looked at."""
    from adjudge.engines.transformers_config import TransformersConfig
    from adjudge.engines.transformers_weights import tokenizer

    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m adjudge.engines.template_lint MODEL", file=sys.stderr)
        return 2
    try:
        findings = lint(tokenizer(TransformersConfig(model=arguments[0])))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for finding in findings:
        print(f"{finding.severity:8} {finding.code}: {finding.text}")
    if not findings:
        print("nothing found")
    return int(any(finding.severity == "error" for finding in findings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

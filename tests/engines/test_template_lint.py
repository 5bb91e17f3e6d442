"""The template linter: each finding on a template that has the defect, and none on one that has not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.engines.tiny_models import CHAT, tiny_tokenizer

from adjudge.engines import template_lint
from adjudge.engines.template_lint import lint

CLEAN = CHAT.replace("<|end|>\n", "<|end|>")
QWEN3 = (
    "{% for message in messages %}<|turn|>{{ message.role }}\n{% if message.role == 'assistant' %}"
    "{% set text = message.content.split('</think>')[-1].lstrip('\n') %}"
    "{% if loop.last %}<think>\n{{ message.content.split('</think>')[0].split('<think>')[-1] if '</think>' in "
    "message.content }}\n</think>\n{{ text if '</think>' in message.content else message.content }}"
    "{% else %}{{ text if '</think>' in message.content else message.content }}{% endif %}"
    "{% else %}{{ message.content }}{% endif %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n"
    "{% if enable_thinking is not defined %}<think>\n{% endif %}{% endif %}"
)
ALTERNATE = "{% for message in messages %}{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}" + (
    "{{ raise_exception('roles must alternate') }}{% endif %}{% endfor %}"
)


def codes(template: str | None = CLEAN, options: dict[str, Any] | None = None, **tokenizer: Any) -> set[str]:
    made = tiny_tokenizer(chat=template, **tokenizer)
    made.truncation_side = "left"
    return {finding.code for finding in lint(made, options)}


@pytest.mark.parametrize(
    ("template", "tokenizer", "wanted"),
    [
        pytest.param(CLEAN, {}, set(), id="clean"),
        pytest.param(CLEAN, {"bos": "<|start|>"}, set(), id="begin-added-by-the-tokenizer-alone"),
        pytest.param("<|start|>" + CLEAN, {"bos": "<|start|>"}, {"begin_added_twice"}, id="begin-added-twice"),
        pytest.param("<|start|><|start|>" + CLEAN, {"bos": "<|start|>"}, {"double_begin"}, id="double-begin"),
        pytest.param(
            CLEAN.replace("%}", "%}<|start|>", 1), {"bos": "<|start|>"}, {"begin_added_twice"}, id="turns-begin"
        ),
        pytest.param(CLEAN, {"pad": "<|end|>"}, {"pad_is_end"}, id="pad-is-end"),
        pytest.param(None, {}, {"no_template"}, id="no-template"),
        pytest.param(CHAT, {}, {"text_after_end"}, id="newline-after-the-end"),
        pytest.param(CLEAN.replace("<|end|>", ""), {}, {"no_end"}, id="no-end"),
        pytest.param(CLEAN.replace("<|end|>", "<|turn|>"), {}, {"other_end"}, id="other-end"),
        pytest.param(CLEAN.partition("{% if add")[0], {}, {"no_generation_prompt"}, id="no-generation-prompt"),
        pytest.param(
            CLEAN.replace("{% if add_generation_prompt %}", "{% if true %}"),
            {},
            {"no_generation_prompt", "text_after_end"},
            id="generation-prompt-always",
        ),
        pytest.param(
            CLEAN.replace("['content']", "['content'].split('</think>')[-1]"),
            {},
            {"thinking_dropped"},
            id="thinking-dropped",
        ),
        pytest.param(
            QWEN3, {}, {"earlier_thinking_dropped", "thinking_inserted", "thinking_forced"}, id="thinking-template"
        ),
        pytest.param(
            CLEAN.replace("['content']", "['content'] | trim"),
            {},
            {"user_text_trimmed", "assistant_text_trimmed"},
            id="trims",
        ),
        pytest.param(
            CLEAN.replace("['content']", "['content'] | upper"),
            {},
            {"user_text_changed", "assistant_text_changed", "system_turn_dropped", "thinking_dropped"},
            id="changes-text",
        ),
        pytest.param(ALTERNATE + CLEAN, {}, {"no_system_turn", "turns_must_alternate"}, id="turns-must-alternate"),
        pytest.param(
            CLEAN.replace(
                "<|turn|>{{ message['role'] }}", "{% if message.role != 'system' %}<|turn|>{{ message.role }}", 1
            ).replace("<|end|>", "<|end|>{% endif %}", 1),
            {},
            {"system_turn_dropped"},
            id="drops-system-turns",
        ),
        pytest.param("{{ strftime_now('%d %b %Y') }}" + CLEAN, {}, {"writes_the_date"}, id="writes-the-date"),
    ],
)
def test_findings(template: str | None, tokenizer: dict[str, Any], wanted: set[str]) -> None:
    assert codes(template, **tokenizer) == wanted


def test_options_are_looked_at_as_the_engine_gives_them() -> None:
    assert "thinking_forced" not in codes(QWEN3, {"enable_thinking": False})


def test_the_side_that_is_cut() -> None:
    made = tiny_tokenizer(chat=CLEAN)
    made.truncation_side = "right"
    assert [finding.code for finding in lint(made)] == ["cuts_the_answer"]


@pytest.mark.parametrize(
    ("template", "code", "printed"),
    [
        pytest.param(CHAT, 0, "note     text_after_end", id="notes-alone"),
        pytest.param("{{ messages[-1].content }}", 1, "error    no_end", id="an-error"),
    ],
)
def test_the_command(
    causal_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], template: str, code: int, printed: str
) -> None:
    folder = shutil.copytree(causal_model, tmp_path / "model")
    (folder / "chat_template.jinja").write_text(template)
    assert template_lint.main([str(folder)]) == code
    assert printed in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([], "usage", id="nothing"),
        pytest.param(["--help"], "usage", id="a-flag"),
        pytest.param(["./no/such/model"], "no such folder", id="no-model"),
    ],
)
def test_mistakes(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert template_lint.main(arguments) == 2
    assert words in capsys.readouterr().err

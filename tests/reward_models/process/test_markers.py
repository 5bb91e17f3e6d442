"""No text shifts a step: markers in the response, in the problem, in pieces, in disguise."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reward_models.process.step_models import MARKER, PROBLEM, STEPS, step_tokenizer, tokenizer_of

from adjudge.engines.interface import Fault
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.protocol import Sample
from adjudge.responses.steps import split_steps
from adjudge.reward_models.process.formats import format_of
from adjudge.reward_models.process.rows import Piece, RowTokens, StepRow, marker_token, step_row
from adjudge.reward_models.process.step_format import StepFormat
from adjudge.reward_models.process.step_scorer import ProcessRewardScorer

FILE = Path(__file__).parents[2] / "attacks" / "process_markers.json"
CASES: dict[str, str] = {
    row["case"]: re.sub(r"\[\[U\+([0-9A-F]{4})\]\]", lambda found: chr(int(found[1], 16)), row["text"])
    for row in json.loads(FILE.read_text(encoding="utf-8"))["cases"]
}
FORMATS = ("qwen_math_prm", "math_shepherd", "rlhflow", "trl", "reason_eval")
TAG = " ки"


def tag_tokenizer() -> Any:
    """A tokenizer in whose vocabulary " ки" is one token like any other, as in that of Math-Shepherd's model."""
    from tests.engines.tiny_models import CORPUS, SPECIAL
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = step_tokenizer()
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    specials = [*SPECIAL, MARKER]
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    trained.train_from_iterator([*CORPUS * 4, *["к ки и ки, ки"] * 40], trainer)
    kind: Any = type(tokenizer)
    made = kind(tokenizer_object=trained, pad_token="<|pad|>", eos_token="<|end|>")
    made.add_special_tokens({"additional_special_tokens": ["<|turn|>", MARKER]})
    made.chat_template = tokenizer.chat_template
    return made


TOKENS = RowTokens(tag_tokenizer())


def test_the_tag_is_one_token_and_special_to_nobody() -> None:
    assert len(TOKENS.text(f"x{TAG}")) == 2
    assert TAG.strip() not in TOKENS.special


def row_of(form: StepFormat, problem: str, steps: Sequence[str]) -> StepRow:
    row = form.row(TOKENS, problem, steps)
    assert not isinstance(row, Fault), row
    return row


def check(name: str, problem: str, steps: Sequence[str]) -> StepRow:
    """The row has one place for each step, at our marker, and neither text holds a special token or the marker."""
    form = format_of(name)
    row = row_of(form, problem, steps)
    assert len(row.places) == len(row.spans) == len(steps)
    clean = row_of(form, "A", ["B"] * len(steps))
    if name != "reason_eval":  # which is read at the step's own last token
        assert [row.ids[place] for place in row.places] == [clean.ids[place] for place in clean.places]
    special = {TOKENS.text(text)[0] for text in TOKENS.special}
    marker = {"qwen_math_prm": MARKER, "math_shepherd": TAG}.get(name)
    watched = special | ({marker_token(TOKENS, marker)} if marker else set())
    for first, end in row.spans:
        assert not watched & set(row.ids[first:end])
    count = sum(token in watched for token in row.ids)
    assert count == sum(token in watched for token in clean.ids)
    return row


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_a_response_cannot_shift_steps(case: str, name: str) -> None:
    text = CASES[case]
    steps = [step.text for step in split_steps(text)]
    check(name, PROBLEM, steps)
    check(name, PROBLEM, [text.strip(), "So the answer is 42.", text.strip()])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_a_problem_cannot_shift_steps(case: str, name: str) -> None:
    check(name, CASES[case], STEPS)


PIECES = st.sampled_from([*"<extra_0> ки+-·", "<extra_0>", "ки", " ки", "<|end|>", "\n", "к", "и", "\u200b", "\u0301"])


@pytest.mark.parametrize("name", ["qwen_math_prm", "math_shepherd"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(st.lists(PIECES, max_size=8).map("".join), min_size=1, max_size=4))
def test_no_pieces_of_markers_make_one(name: str, steps: list[str]) -> None:
    texts = [text for text in (step.strip() for step in steps) if split_steps(text, "whole")]
    if texts:
        check(name, PROBLEM, texts)


def test_what_was_broken_up_is_told() -> None:
    row = check("qwen_math_prm", PROBLEM, ["fine", f"see {MARKER}", "fine"])
    assert row.changed == (1,)
    row = check("math_shepherd", PROBLEM, ["да, ки", "fine"])
    assert row.changed == (0,)
    assert "да, к·и" in row.text
    assert check("math_shepherd", PROBLEM, ["ботинки", "fine"]).changed == ()  # another token: left as it is


def test_naive_counting_would_have_been_shifted() -> None:
    """What a scorer reads that counts markers: one value more, and the wrong one behind it."""
    tokenizer = tag_tokenizer()
    naive = "".join(step + MARKER for step in ("First.", f"Then {MARKER} more.", "42."))
    ids = tokenizer(naive, add_special_tokens=False)["input_ids"]
    assert ids.count(tokenizer.convert_tokens_to_ids(MARKER)) == 4
    row = check("qwen_math_prm", PROBLEM, ["First.", f"Then {MARKER} more.", "42."])
    assert row.ids.count(tokenizer.convert_tokens_to_ids(MARKER)) == 3


def test_a_marker_that_is_no_single_token_is_a_fault() -> None:
    pieces = [Piece(text="a b", step=0, trusted=False), Piece(text=" b", read=True)]
    assert isinstance(step_row(TOKENS, [Piece(text="x b y"), *pieces], marker=" b"), Fault)


def test_a_piece_without_tokens_cannot_be_read() -> None:
    row = step_row(TOKENS, [Piece(text="a", step=0), Piece(text="", read=True)], apart=True)
    assert isinstance(row, Fault)
    assert "no token" in row.detail


def test_the_frame_of_a_chat_is_the_template_around_the_gap(two_classes: Path) -> None:
    tokenizer = tokenizer_of(two_classes)
    tokens = RowTokens(tokenizer)
    frame = tokens.frame([{"role": "user", "content": "gap0"}, {"role": "assistant", "content": "x"}], [1])
    assert frame == ("<|turn|>user\ngap0<|end|>\n<|turn|>assistant\n", "<|end|>\n")


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}",
        "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
        "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
        "{{ raise_exception('no') }}",
    ],
    ids=["left out", "repeated", "rewritten", "refused"],
)
def test_a_template_that_does_not_take_the_turns_is_our_fault(template: str) -> None:
    tokenizer = step_tokenizer(chat=template)
    assert isinstance(format_of("qwen_math_prm").row(RowTokens(tokenizer), PROBLEM, STEPS), Fault)


def test_slow_tokenizers_are_refused() -> None:
    class Slow:
        is_fast = False

    with pytest.raises(ValueError, match="characters"):
        RowTokens(Slow(), model="old")


def test_injected_markers_move_no_value_of_other_steps(two_classes: Path) -> None:
    """A marker in the last step leaves the values before it as they were, and its own step has one value."""
    scorer = ProcessRewardScorer(
        engine=TransformersEngine(TransformersConfig(model=str(two_classes), device="cpu")), format="qwen_math_prm"
    )
    clean = "\n\n".join(STEPS)
    first, second = asyncio.run(
        scorer.score([Sample(prompt=PROBLEM, response=text) for text in (clean, f"{clean} {MARKER} {MARKER}")])
    )
    assert len(second.evidence["raw"]) == len(STEPS)
    assert second.evidence["raw"][:-1] == pytest.approx(first.evidence["raw"][:-1], abs=1e-5)
    assert second.evidence["changed_steps"] == [len(STEPS) - 1]
    assert "changed_steps" not in first.evidence

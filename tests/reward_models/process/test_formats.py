"""Every format against the slow way, one forward pass for each step; and rows whose places no text can move."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.reward_models.process.step_models import MARKER, PROBLEM, STEPS, last_logits, loaded, tokenizer_of

from adjudge.engines.interface import Fault
from adjudge.engines.transformers_config import TransformersConfig
from adjudge.engines.transformers_engine import TransformersEngine
from adjudge.protocol import Sample, Score
from adjudge.responses.steps import split_steps
from adjudge.reward_models.process.formats import (
    KINDS,
    PUBLISHED,
    QWEN_SYSTEM,
    REASON_EVAL_BEFORE,
    MarkerFormat,
    format_of,
    spec_of,
)
from adjudge.reward_models.process.likelihood import ImplicitRewardScorer
from adjudge.reward_models.process.rows import RowTokens, StepRow, token_spans
from adjudge.reward_models.process.step_scorer import ProcessRewardScorer

CLOSE = 1e-5
RESPONSE = "\n\n".join(STEPS)
CLASSIFIER = "AutoModelForTokenClassification"
LANGUAGE_MODEL = "AutoModelForCausalLM"


def engine(model: Path, **options: Any) -> TransformersEngine:
    return TransformersEngine(TransformersConfig(model=str(model), device="cpu", **options))


def scored(scorer: Any, *samples: Sample) -> list[Score]:
    scores: list[Score] = asyncio.run(scorer.score(samples or [Sample(prompt=PROBLEM, response=RESPONSE)]))
    return scores


def raw(model: Path, form: Any, **options: Any) -> list[float]:
    (score,) = scored(ProcessRewardScorer(engine=engine(model), format=form, **options))
    assert score.status == "scored", score.evidence
    values: list[float] = score.evidence["raw"]
    return values


def whole(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def test_marker_tokens(two_classes: Path) -> None:
    tokenizer = tokenizer_of(two_classes)
    slow = []
    for count in range(1, len(STEPS) + 1):
        turns = [
            {"role": "system", "content": QWEN_SYSTEM},
            {"role": "user", "content": PROBLEM},
            {"role": "assistant", "content": "".join(step + MARKER for step in STEPS[:count])},
        ]
        ids = whole(tokenizer, tokenizer.apply_chat_template(turns, tokenize=False))
        end = max(at for at, token in enumerate(ids) if token == tokenizer.convert_tokens_to_ids(MARKER))
        slow.append(float(last_logits(two_classes, CLASSIFIER, ids[: end + 1]).softmax(-1)[1]))
    assert raw(two_classes, "qwen_math_prm") == pytest.approx(slow, abs=CLOSE)
    flipped = raw(two_classes, {"marker": {"positive": 0}})
    assert flipped == pytest.approx([1 - value for value in slow], abs=CLOSE)


def parts(tokenizer: Any, before: str, separator: str, count: int, begin: Sequence[int] = ()) -> list[int]:
    """A row of `count` steps as trainers make it that tokenize every part by itself."""
    ids = [*begin, *whole(tokenizer, before.replace("{problem}", PROBLEM))]
    for step in STEPS[:count]:
        ids += [*whole(tokenizer, step), *whole(tokenizer, separator)]
    return ids


def test_last_token_of_the_step(two_classes: Path) -> None:
    tokenizer = tokenizer_of(two_classes)
    slow = [
        float(last_logits(two_classes, CLASSIFIER, parts(tokenizer, "{problem}", "\n", count)).softmax(-1)[1])
        for count in range(1, len(STEPS) + 1)
    ]
    assert raw(two_classes, "trl") == pytest.approx(slow, abs=CLOSE)


def test_value_head(one_value: Path) -> None:
    tokenizer = tokenizer_of(one_value)
    begin = [tokenizer.bos_token_id]
    slow = [
        float(last_logits(one_value, CLASSIFIER, parts(tokenizer, "{problem}\n", "\n", count, begin))[0])
        for count in range(1, len(STEPS) + 1)
    ]
    chances = [1 / (1 + math.exp(-value)) for value in slow]
    assert raw(one_value, "skywork") == pytest.approx(chances, abs=CLOSE)
    assert raw(one_value, "trl") == pytest.approx(
        [
            float(last_logits(one_value, CLASSIFIER, parts(tokenizer, "{problem}", "\n", count, begin))[0].sigmoid())
            for count in range(1, len(STEPS) + 1)
        ],
        abs=CLOSE,
    )
    text = [f"<|start|>{PROBLEM}\n" + "".join(f"{step}\n" for step in STEPS[:count]) for count in range(1, 5)]
    joined = [float(last_logits(one_value, CLASSIFIER, whole(tokenizer, row))[0]) for row in text]
    assert raw(one_value, "rest_mcts", floor=-100.0) == pytest.approx(joined, abs=1e-4)


def test_three_classes(three_classes: Path) -> None:
    tokenizer = tokenizer_of(three_classes)
    slow = [
        last_logits(three_classes, CLASSIFIER, parts(tokenizer, REASON_EVAL_BEFORE, "", count)).softmax(-1).tolist()
        for count in range(1, len(STEPS) + 1)
    ]
    (score,) = scored(ProcessRewardScorer(engine=engine(three_classes), format="reason_eval"))
    assert score.evidence["raw"] == pytest.approx([row[1] + row[2] for row in slow], abs=CLOSE)
    assert score.evidence["redundancy"] == pytest.approx([row[1] for row in slow], abs=CLOSE)
    words = ("error", "redundant", "valid")
    assert [step.label for step in score.steps] == [words[row.index(max(row))] for row in slow]


def sign_share(model: Path, ids: Sequence[int]) -> float:
    tokenizer = tokenizer_of(model)
    signs = [whole(tokenizer, sign)[0] for sign in ("+", "-")]
    return float(last_logits(model, LANGUAGE_MODEL, ids)[signs].softmax(-1)[0])


def signs_of(model: Path) -> dict[str, list[float]]:
    """What a model says of the steps, in both layouts, one row for each step."""
    tokenizer = tokenizer_of(model)
    tagged, text = [], f"<|start|>{PROBLEM} "
    for number, step in enumerate(STEPS, start=1):
        text += (step if step.startswith("Step") else f"Step {number}: {step}") + " ки"
        tagged.append(sign_share(model, whole(tokenizer, text)))
        text += "\n"
    answered, turns = [], []
    for number, step in enumerate(STEPS):
        turns.append({"role": "user", "content": f"{PROBLEM} {step}" if number == 0 else step})
        prompt = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        answered.append(sign_share(model, whole(tokenizer, prompt)))
        turns.append({"role": "assistant", "content": "+"})
    return {"signs": tagged, "sign_turns": answered}


SIGNS = {"signs": {"signs": {"good": "+", "bad": "-"}}, "sign_turns": "rlhflow"}


async def one_pass_for_each_step(*_: Any) -> None:
    raise AssertionError("the engine was asked once for each step")


@pytest.mark.parametrize("kind", SIGNS)
def test_signs_in_one_pass(kind: str, language_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransformersEngine, "label_logprobs", one_pass_for_each_step)
    assert raw(language_model, SIGNS[kind]) == pytest.approx(signs_of(language_model)[kind], abs=CLOSE)


@pytest.mark.parametrize("kind", SIGNS)
def test_signs_of_an_engine_that_answers_at_the_end_alone(
    kind: str, language_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(TransformersEngine, "inner_label_logprobs")
    assert raw(language_model, SIGNS[kind]) == pytest.approx(signs_of(language_model)[kind], abs=CLOSE)


def test_log_ratios(language_model: Path, base_model: Path) -> None:
    tokenizer = tokenizer_of(language_model)
    chat = [{"role": "user", "content": PROBLEM}]
    prompt = whole(tokenizer, tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
    text = RESPONSE
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids = [*prompt, *found["input_ids"]]

    def logprobs(model: Path) -> list[float]:
        with torch.no_grad():
            logits = loaded(model, LANGUAGE_MODEL)(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
        return [float(logits[at - 1, ids[at]]) for at in range(len(prompt), len(ids))]

    starts = [text.index(step) for step in STEPS]
    slow = [0.0] * len(STEPS)
    for (start, _), one, other in zip(
        found["offset_mapping"], logprobs(language_model), logprobs(base_model), strict=True
    ):
        slow[max(number for number, begin in enumerate(starts) if begin <= start)] += 0.05 * (one - other)
    scorer = ImplicitRewardScorer(engine=engine(language_model), reference_engine=engine(base_model), floor=-100.0)
    (score,) = scored(scorer)
    assert score.evidence["raw"] == pytest.approx(slow, abs=CLOSE)
    assert score.value == pytest.approx(math.fsum(slow), abs=CLOSE)
    assert [step.label for step in score.steps] == ["good" if value >= 0 else "bad" for value in slow]


def test_models_with_other_tokens_have_no_ratio(language_model: Path, tmp_path: Path) -> None:
    from tests.engines.tiny_models import write_model
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    kind: Any = PreTrainedTokenizerFast
    letters = Tokenizer(models.BPE())
    letters.add_special_tokens(["<|pad|>", "<|end|>", "<|start|>"])
    letters.add_tokens(sorted(pre_tokenizers.ByteLevel.alphabet()))
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = decoders.ByteLevel()
    plain = kind(tokenizer_object=letters, pad_token="<|pad|>", eos_token="<|end|>", bos_token="<|start|>")
    plain.chat_template = tokenizer_of(language_model).chat_template
    other = write_model(tmp_path / "letters", task="generate", tokenizer=plain)
    scorer = ImplicitRewardScorer(engine=engine(language_model), reference_engine=engine(other), floor=-100.0)
    (score,) = scored(scorer)
    assert (score.status, score.reason) == ("failed", "engine_error")
    assert "different tokens" in score.evidence["fault"]


def rows_of(model: Path, form: Any, steps: Sequence[str], problem: str = PROBLEM) -> StepRow:
    row = format_of(form).row(RowTokens(tokenizer_of(model)), problem, steps)
    assert not isinstance(row, Fault), row
    return row


@pytest.mark.parametrize("form", [*PUBLISHED, {"step_end": {"before": "chat", "separator": ""}}], ids=str)
def test_rows_have_a_place_and_a_span_for_each_step(form: Any, language_model: Path) -> None:
    row = rows_of(language_model, form, STEPS)
    assert len(row.places) == len(row.spans) == len(STEPS)
    tokenizer = tokenizer_of(language_model)
    for step, (first, end), place in zip(STEPS, row.spans, row.places, strict=True):
        assert tokenizer.decode(row.ids[first:end]).strip() == step
        assert end - 1 <= place
    assert list(row.places) == sorted(set(row.places))
    assert row.changed == ()


def test_steps_have_tokens_of_the_response_too(language_model: Path) -> None:
    tokenizer = tokenizer_of(language_model)
    steps = split_steps(RESPONSE)
    ids = whole(tokenizer, RESPONSE)
    spans = token_spans(RowTokens(tokenizer), RESPONSE, [(step.start, step.end) for step in steps])
    assert [tokenizer.decode(ids[first:end]).strip() for first, end in spans] == list(STEPS)


def test_one_row_is_one_forward_pass(two_classes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = engine(two_classes)
    asked: list[int] = []
    plain = used.classify_tokens

    async def counted(prompts: Any, **options: Any) -> Any:
        asked.append(len(prompts))
        return await plain(prompts, **options)

    monkeypatch.setattr(used, "classify_tokens", counted)
    samples = [Sample(prompt=PROBLEM, response=RESPONSE + "\n\n" + "So." * number) for number in range(3)]
    scored(ProcessRewardScorer(engine=used, format="qwen_math_prm"), *samples)
    assert asked == [3]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("qwen_prm", "did you mean 'qwen_math_prm'"),
        ({"marker": {"marcker": "x"}}, "did you mean 'marker'"),
        ({"marker": {"marker": ""}}, "marker is empty"),
        ({"marker": {"positive": -1}}, "positive"),
        ({"signs": {"bad": " +"}}, "two signs"),
        ({"signs": {"tag": ""}}, "must not be empty"),
        ({"sign_turns": {"good": "-"}}, "two signs"),
        ({"step_end": {"before": "no place"}}, "before"),
        ({"step_end": {"output": "odds"}}, "output"),
        ({"step_end": {"pieces": "mixed"}}, "pieces"),
        ({"marker": {}, "signs": {}}, "not a format"),
        (5, "not a format"),
    ],
    ids=str,
)
def test_specs_that_are_none(spec: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        format_of(spec)


@pytest.mark.parametrize("name", [*KINDS, *PUBLISHED])
def test_specs_make_equal_formats(name: str) -> None:
    form = format_of(name)
    assert format_of(spec_of(form)) == form
    assert format_of(form) is form


@pytest.mark.parametrize(
    ("form", "labels", "found"),
    [
        ("reason_eval", "two_classes", "needs 3"),
        ("skywork", "two_classes", "needs 1"),
        ("bad class", "two_classes", "5"),
    ],
)
def test_a_head_of_another_shape_is_a_fault(form: Any, labels: str, found: str, request: Any) -> None:
    model: Path = request.getfixturevalue(labels)
    given = MarkerFormat(positive=5) if form == "bad class" else form
    (score,) = scored(ProcessRewardScorer(engine=engine(model), format=given))
    assert (score.status, score.reason) == ("failed", "engine_error")
    assert found in score.evidence["fault"]

"""The usual names of columns: what is guessed to be what, in which order."""

from __future__ import annotations

from typing import Final

GUESSES: Final[dict[str, tuple[str, ...]]] = {
    "prompt": (
        "prompt", "question", "problem", "instruction+input", "instruction", "query", "messages", "input",
        "request.messages", "question_content",
    ),
    "response": (
        "response", "responses", "completion", "completions", "output", "outputs",
        "generation", "generations", "llm_response", "attempt", "filtered_resps", "solution", "solutions", "choices",
        "response.choices", "response.body.choices",
    ),
    "reference": (
        "reference", "ground_truth", "gold", "gt", "expected_answer", "target", "answer", "reward_model.ground_truth",
        "golden_answers", "possible_answers", "correct_answer",
    ),
    "id": ("custom_id", "id", "uid", "sample_id"),  # in the output of a batch, "id" is the server's
    "group": ("group", "group_id", "prompt_id"),
    "finish_reason": ("finish_reason", "stop_reason"),
}  # fmt: skip

SEVERAL: Final = (
    "responses", "completions", "outputs", "generations", "solutions", "choices", "samples", "candidates", "attempts",
    "filtered_resps",
)  # fmt: skip
"""Names of columns that hold several responses."""

CHATS: Final = ("messages", "conversations", "conversation", "chat")
"""Columns that may hold a prompt with its response, as one chat."""

TESTS: Final = (
    "tests+entry_point", "test_cases+entry_point",
    "public_test_cases+private_test_cases+metadata",  # LiveCodeBench
    "public_tests+private_tests+generated_tests",  # code_contests
    "test_list+test_setup_code",  # MBPP
    "test+entry_point",  # HumanEval; LeetCodeDataset, whose "input_output" is prose
    "input_output",  # APPS and TACO
    "instruction_id_list+kwargs",  # IFEval, IFBench
)  # fmt: skip
"""Columns that together are a reference, of a program or of instructions, in published layouts."""

MOST: Final = 0.9
"""The share of rows that decides what a column is; the others are read by it, and fail one by one."""

BESIDE_TESTS: Final = ("canonical_solution", "prompt", "code_prompt", "complete_prompt")
"""Columns beside `test` that make up the solution, of HumanEval and BigCodeBench; the prompt is shared."""

USUAL: Final = frozenset(
    name for names in (*GUESSES["prompt"], *GUESSES["reference"], *TESTS) for name in names.split("+")
)
"""Columns that are guessed to be, or to be a part of, a prompt or a reference."""

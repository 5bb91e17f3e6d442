"""The options of the checks of pairs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LeaksConfig:
    """Look for what makes a reward model seem better than it is: leaks and give-aways in pairs, or in rated answers.

    Raises:
        ValueError: an option is out of its range.
    """

    train: str
    """What is trained on: a file, folder or dataset
    with pairs (prompt, chosen, rejected),
    or rated answers (prompt, response, label)."""

    test: str
    """What is measured on."""

    prompt_column: str = ""
    """Column of the prompt: text or chat turns; the usual names are tried."""

    chosen_column: str = ""
    """Column of the better response; the usual layouts are known."""

    rejected_column: str = ""
    """Column of the worse response."""

    response_column: str = "response"
    """Column of a rated answer."""

    label_column: str = "label"
    """Column of its label: true, false or a number; above 1/2 is good."""

    first_column: str = ""
    """Column that is true where the better response
    is shown first; without one, the places of pairs
    with a label are checked alone."""

    threshold: float = 0.8
    """Jaccard similarity of n-grams from which two prompts are near-duplicates."""

    ngram: int = 5
    """Words of an n-gram."""

    balance: float = 0.1
    """How far from 1/2 position and length may decide;
    found is what is farther with its whole interval."""

    train_split: str = ""
    """Split of the training data, of a dataset that has several."""

    test_split: str = ""
    """Split of the test data."""

    max_row_mb: int = 16
    """Largest row of a text file, in MiB; a larger one is counted as unreadable."""

    def __post_init__(self) -> None:
        """Reject options out of their range."""
        if not 0 < self.threshold <= 1:
            raise ValueError(f"--threshold is {self.threshold}; it is a similarity above 0 and at most 1")
        if not 1 <= self.ngram <= 64:
            raise ValueError(f"--ngram is {self.ngram}; it must be 1 to 64")
        if not 0 <= self.balance < 0.5:
            raise ValueError(f"--balance is {self.balance}; it must be at least 0 and below 0.5")
        if not 1 <= self.max_row_mb <= 1024:
            raise ValueError(f"--max-row-mb is {self.max_row_mb}; it must be 1 to 1024")

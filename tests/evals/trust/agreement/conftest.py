"""The public corpora, as the tests of judges read them."""

from __future__ import annotations

from tests.judges.real_text.conftest import Corpora, corpora

__all__ = ["Corpora", "corpora"]

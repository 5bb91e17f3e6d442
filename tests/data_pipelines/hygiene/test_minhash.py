"""Signatures estimate Jaccard similarity without bias, and are the same everywhere."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.hygiene.minhash import Bands, MinHash, estimate, gram_hashes, jaccard

GOLDEN = "[270336979, 662292093, 553710953] [3612515760, 4146340622, 150311648]"


def pair(similarity: float, size: int, draw: random.Random) -> tuple[str, str, float]:
    """Two texts of single-word shingles, about so similar, and how similar exactly."""
    common = round(2 * size * similarity / (1 + similarity))
    words = [f"w{draw.getrandbits(40)}" for _ in range(2 * size - common)]
    one, other = words[:size], words[size - common :]
    return " ".join(one), " ".join(other), jaccard(frozenset(one), frozenset(other))


@pytest.mark.parametrize("similarity", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("seed", [0, 1])
def test_estimates_have_no_bias_and_the_spread_of_the_theory(similarity: float, seed: int) -> None:
    draw, minhash = random.Random(7), MinHash(ngram=1, seed=seed)
    errors = []
    for _ in range(300):
        one, other, exact = pair(similarity, 150, draw)
        found = minhash.signatures([one, other])
        errors.append(estimate(found[0], found[1]) - exact)
    spread = math.sqrt(similarity * (1 - similarity) / minhash.permutations)
    assert abs(np.mean(errors)) < 4 * spread / math.sqrt(len(errors))
    assert 0.8 * spread < np.std(errors) < 1.25 * spread


def test_bands_find_pairs_as_often_as_the_formula_says() -> None:
    draw, minhash, bands = random.Random(3), MinHash(ngram=1), Bands.of(0.8)
    for similarity in (0.5, 0.7, 0.8):
        pairs = [pair(similarity, 100, draw) for _ in range(400)]
        keys = [bands.keys(minhash.signatures([one, other])) for one, other, _ in pairs]
        met = float(np.mean([bool((each[0] == each[1]).any()) for each in keys]))
        expected = float(np.mean([bands.chance(exact) for *_, exact in pairs]))
        assert abs(met - expected) < 4 * math.sqrt(expected * (1 - expected) / len(pairs)) + 0.005


@given(st.floats(0.1, 1.0), st.sampled_from([32, 64, 128, 256]))
def test_bands_reach_the_recall_at_the_threshold_and_wider_ones_would_not(threshold: float, permutations: int) -> None:
    try:
        bands = Bands.of(threshold, permutations)
    except ValueError:
        assert 1 - (1 - threshold) ** permutations < 0.95
        return
    assert bands.count * bands.width <= permutations
    assert 1 - (1 - threshold**bands.width) ** bands.count >= 0.95
    for width in range(bands.width + 1, permutations + 1):
        assert 1 - (1 - threshold**width) ** (permutations // width) < 0.95


def test_the_bands_named_in_the_docstring() -> None:
    assert [(Bands.of(at).count, Bands.of(at).width) for at in (0.8, 0.7, 0.5)] == [(18, 7), (25, 5), (42, 3)]


@given(st.lists(st.text(max_size=80), max_size=6))
def test_a_batch_gives_what_single_texts_give(texts: list[str]) -> None:
    minhash = MinHash(ngram=2, permutations=16)
    found = minhash.signatures(texts)
    assert found.shape == (len(texts), 16)
    assert all((found[at] == minhash.signature(text)).all() for at, text in enumerate(texts))


def test_a_text_longer_than_a_block_has_the_signature_of_its_parts_together() -> None:
    words = [f"w{number}" for number in range(20_000)]
    minhash = MinHash(ngram=1, permutations=16)
    halves = minhash.signatures([" ".join(words[:9_000]), " ".join(words[9_000:])])
    assert (minhash.signature(" ".join(words)) == halves.min(axis=0)).all()


def test_a_text_without_tokens_has_the_signature_of_the_empty_set() -> None:
    assert (MinHash().signature(" \u200b\n") == 0xFFFFFFFF).all()


def test_every_place_of_an_ngram_counts() -> None:
    found = gram_hashes(["a", "b", "a", "c", "b", "a"], 2)
    assert len(set(found.tolist())) == 4  # "b a" occurs twice, and "a b" is another n-gram
    assert found[1] == found[4]
    assert gram_hashes("ab", 5).shape == (1,)
    assert gram_hashes([], 5).shape == (0,)
    assert gram_hashes("\ud800", 1).shape == (1,)  # a lone surrogate


def test_signatures_do_not_change_with_the_hash_seed_of_python_or_the_machine() -> None:
    code = (
        "from adjudge.data_pipelines.hygiene.minhash import MinHash;"
        "print(MinHash(permutations=3).signature('The quick brown fox jumps over the lazy dog').tolist(),"
        "MinHash(permutations=3, kind='characters').signature('\\u4eca\\u5929').tolist())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert said == {GOLDEN}


def test_signatures_change_with_the_seed() -> None:
    assert (MinHash(seed=1).signature("a b c") != MinHash(seed=2).signature("a b c")).mean() > 0.9


def test_options_out_of_range_are_named() -> None:
    for permutations, seed, ngram in ((0, 0, 5), (5000, 0, 5), (1, -1, 5), (1, 0, 0), (1, 0, 65)):
        with pytest.raises(ValueError, match="it must be"):
            MinHash(permutations=permutations, seed=seed, ngram=ngram)
    with pytest.raises(ValueError, match="kind='lines'"):
        MinHash(kind="lines")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="more permutations"):
        Bands.of(0.01, 16)
    with pytest.raises(ValueError, match="threshold"):
        Bands.of(0.0)

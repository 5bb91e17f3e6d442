"""Clusters of copies: against brute force over all pairs, and without a false merge."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.data_pipelines.hygiene.dedup import (
    Clusters,
    Copies,
    CopyFinder,
    Similarity,
    TextSpool,
    buckets,
    join_alike,
)
from adjudge.data_pipelines.hygiene.minhash import Bands, MinHash, jaccard, normalised
from adjudge.io.errors import JobError

FOLDER = Path(gettempdir())
WORDS = [f"word{number}" for number in range(30)]
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS[:8]), max_size=9).map(" ".join), max_size=12
)  # few words, so that copies occur


def copies_of(
    texts: Sequence[str], *, threshold: float = 0.8, ngram: int = 2, ranks: Sequence[float] | None = None
) -> Copies:
    finder = CopyFinder(MinHash(ngram=ngram), threshold, FOLDER)
    try:
        for text, rank in zip(texts, ranks or [0.0] * len(texts), strict=True):
            finder.add(text, rank)
        return finder.find()
    finally:
        finder.close()


def linked(texts: Sequence[str], threshold: float, ngram: int) -> list[set[int]]:
    """The clusters of all pairs at or above the threshold, without any hash."""
    minhash = MinHash(ngram=ngram)
    sets = [minhash.shingles(text) for text in texts]
    clusters = [{at} for at in range(len(texts))]
    for one, other in itertools.combinations(range(len(texts)), 2):
        if not sets[one] or not sets[other]:
            continue
        if jaccard(sets[one], sets[other]) >= threshold or normalised(texts[one]) == normalised(texts[other]):
            joined = next(each for each in clusters if one in each) | next(each for each in clusters if other in each)
            clusters = [each for each in clusters if not each & joined] + [joined]
    return clusters


@settings(max_examples=150)
@given(TEXTS, st.sampled_from([0.5, 0.8, 1.0]))
def test_no_two_texts_are_merged_that_no_chain_of_similar_pairs_links(texts: list[str], threshold: float) -> None:
    kept = copies_of(texts, threshold=threshold).kept
    clusters = linked(texts, threshold, 2)
    for at, representative in enumerate(kept.tolist()):
        assert any({at, representative} <= cluster for cluster in clusters)
        assert kept[representative] == representative


def test_all_planted_near_copies_are_found_that_are_clearly_above_the_threshold() -> None:
    draw = random.Random(0)
    texts = []
    for _ in range(150):
        words = [f"w{draw.getrandbits(30)}" for _ in range(100)]
        changed = list(words)
        changed[draw.randrange(100)] = "changed"  # 5-grams: 91 common of 101, J = 0.90
        texts += [" ".join(words), " ".join(changed)]
    kept = copies_of(texts, threshold=0.8, ngram=5).kept
    expected = Bands.of(0.8).chance(91 / 101)
    found = sum(int(kept[at + 1]) == at for at in range(0, len(texts), 2))
    assert expected > 0.999
    assert found == 150
    assert all(kept[at] == at for at in range(0, len(texts), 2))


def test_pairs_at_the_threshold_are_found_as_often_as_the_bands_promise() -> None:
    draw = random.Random(1)
    texts = []
    for _ in range(400):
        words = [f"w{draw.getrandbits(30)}" for _ in range(90)]
        texts += [" ".join(words), " ".join([*words[:80], *(f"x{draw.getrandbits(30)}" for _ in range(10))])]
    kept = copies_of(texts, threshold=0.8, ngram=1).kept  # 80 common of 100: exactly at the threshold
    found = sum(int(kept[at + 1]) == at for at in range(0, len(texts), 2)) / 400
    promised = Bands.of(0.8).chance(0.8)
    assert promised >= 0.95
    assert found >= promised - 4 * (promised * (1 - promised) / 400) ** 0.5


def test_just_below_the_threshold_nothing_is_merged_however_often_bands_meet() -> None:
    draw = random.Random(2)
    base = [f"w{number}" for number in range(79)]
    texts = [" ".join([*base, *(f"x{draw.getrandbits(40)}" for _ in range(10))]) for _ in range(60)]  # J = 79/99
    assert copies_of(texts, threshold=0.8, ngram=1).kept.tolist() == list(range(60))


@given(TEXTS)
def test_what_is_kept_has_no_copies_left(texts: list[str]) -> None:
    kept = sorted(set(copies_of(texts).kept.tolist()))
    remaining = [texts[at] for at in kept]
    assert copies_of(remaining).kept.tolist() == list(range(len(remaining)))


@given(TEXTS, st.randoms(use_true_random=False))
def test_of_a_cluster_the_highest_rank_stays_and_of_equals_the_first(texts: list[str], draw: random.Random) -> None:
    ranks = [float(draw.randrange(3)) for _ in texts]
    kept = copies_of(texts, ranks=ranks).kept.tolist()
    for representative in set(kept):
        members = [at for at, each in enumerate(kept) if each == representative]
        assert representative == min(members, key=lambda at: (-ranks[at], at))


def test_exact_copies_differ_in_case_and_space_alone_and_empty_texts_are_none() -> None:
    found = copies_of(["A b", "a  B ", "", "  ", "a c"], threshold=1.0)
    assert found.kept.tolist() == [0, 0, 2, 3, 4]
    assert found.without_text == 2


def test_no_texts_at_all() -> None:
    assert copies_of([]).kept.tolist() == []


def test_operators_tell_problems_apart() -> None:
    texts = ["What is 3 + 5 ?", "What is 3 - 5 ?", "what is 3+5?"]
    assert copies_of(texts, ngram=5).kept.tolist() == [0, 1, 0]


def test_texts_of_one_script_without_spaces_are_compared_by_characters() -> None:
    long = "".join(chr(0x4E00 + number) for number in range(200))
    other = "".join(chr(0x5E00 + number) for number in range(200))
    assert copies_of([long, other, long[:-1]], ngram=5).kept.tolist() == [0, 1, 0]


@given(st.lists(st.integers(0, 5), max_size=30))
def test_buckets_hold_the_places_of_equal_keys(keys: list[int]) -> None:
    found = [bucket.tolist() for bucket in buckets(np.array(keys, dtype=np.uint64))]
    wanted = [[at for at, each in enumerate(keys) if each == key] for key in sorted(set(keys))]
    assert found == [places for places in wanted if len(places) > 1]


LINKS = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20)


@settings(max_examples=300)
@given(st.integers(1, 12), LINKS, LINKS)
def test_a_bucket_joins_exactly_what_links_its_members(
    count: int, links: list[tuple[int, int]], earlier: list[tuple[int, int]]
) -> None:
    alike = {frozenset(link) for link in links}
    clusters, reference = Clusters(count), Clusters(count)
    for one, other in earlier:  # in other buckets
        if one < count and other < count:
            clusters.join(one, other)
            reference.join(one, other)
    skipped = join_alike(clusters, list(range(count)), lambda a, b: frozenset((a, b)) in alike)
    for one, other in links:
        if one < count and other < count:
            reference.join(one, other)
    assert skipped == 0
    assert clusters.roots().tolist() == reference.roots().tolist()


def test_a_crowded_bucket_stops_comparing_and_says_how_many_pairs_it_left() -> None:
    asked: list[tuple[int, int]] = []
    clusters = Clusters(10)

    def never(one: int, other: int) -> bool:
        asked.append((one, other))
        return False

    skipped = join_alike(clusters, list(range(10)), never, reach=3)
    assert len(asked) + skipped == 45
    assert max(sum(one == member for one, _ in asked) for member in range(10)) == 3


def test_a_member_that_links_two_clusters_of_its_bucket_joins_them() -> None:
    clusters = Clusters(3)
    clusters.join(1, 2)
    assert join_alike(clusters, [0, 1, 2], lambda one, other: {one, other} == {0, 2}) == 0
    assert clusters.roots().tolist() == [0, 0, 0]


def test_long_texts_do_not_wait_in_memory_until_there_are_many() -> None:
    finder = CopyFinder(MinHash(permutations=16), 0.8, FOLDER)
    tracemalloc.start()
    try:
        for number in range(24):
            finder.add(f"{number}" + "a" * 1_000_000)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        finder.close()
    assert held < 12_000_000


def test_sets_are_kept_between_comparisons_but_not_all() -> None:
    loads: list[int] = []
    large = frozenset(map(str, range(200_000)))

    def shingles(number: int) -> frozenset[str]:
        loads.append(number)
        return large

    similarity = Similarity(shingles)
    similarity.of(0, 1)
    similarity.of(0, 1)
    assert loads == [0, 1]
    similarity.of(2, 3)
    similarity.of(0, 1)
    assert loads.count(0) == 2  # half a million shingles are held at most, but for the two compared


def test_a_spool_gives_back_what_it_took_and_a_full_disk_is_said() -> None:
    spool = TextSpool(FOLDER)
    texts = ["", "a" * 100_000, "\ud800 lone", "\u4eca"]
    for text in texts:
        spool.append(text)
    assert [spool[at] for at in (3, 0, 2, 1)] == [texts[at] for at in (3, 0, 2, 1)]
    spool.append("later")
    assert (spool[4], len(spool)) == ("later", 5)
    spool.close()
    with pytest.raises(JobError, match="make room"):
        TextSpool(Path("/dev/null/nowhere"))
    spool = TextSpool(FOLDER)
    spool._file.close()
    with Path("/dev/full").open("w+b") as spool._file:
        spool.append("text")
        with pytest.raises(JobError, match="make room"):
            spool[0]
        spool.close()  # the same refusal again says nothing new, and must not hide what the job ended with

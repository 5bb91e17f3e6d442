"""`adjudge compare`: on which rows do two scorers, or two label outputs, disagree?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

import tyro

from adjudge.cli import exits
from adjudge.cli.console import JsonFlag, print_json, print_table, progress_bar
from adjudge.cli.rows import RowOptions, read_items
from adjudge.data_pipelines.label.samples import Item, Sampler
from adjudge.evals.trust.comparison import OUTPUTS, ScorePair, ScorerComparison, verdict, written_pairs
from adjudge.io.columns import ColumnMap
from adjudge.protocol import Sample, Score, response_text
from adjudge.score_view import plain, visible

_CHUNK: Final = 512


@dataclass(frozen=True, kw_only=True)
class CompareCommand(RowOptions):
    """List the rows on which two scorers disagree, with what each of them saw.

    adjudge compare math exact solutions.jsonl

    adjudge compare scores-before.jsonl scores-after.jsonl

    With FILE, A and B are scorers; without it, outputs of `adjudge label`.

    Exit code: 0 they agree everywhere, 1 a score flips, 2 the call is wrong.
    """

    a: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="A")]
    """A scorer (a name, module:object or a spec), or an output of `adjudge label`."""

    b: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="B")]
    """Another scorer, or another output for the same input."""

    file: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[FILE]")] = ""
    """The rows that both scorers score: whatever `adjudge label` reads."""

    tolerance: float = 0.0
    """Two values that differ by no more than this agree."""

    show: int = 20
    """Flips listed; --json holds all."""

    as_json: JsonFlag = False

    def run(self) -> int:
        """Compare, print, and return the exit code."""
        if not self.tolerance >= 0 or self.show < 0:
            raise ValueError("--tolerance and --show must be 0 or more")
        result = ScorerComparison(tolerance=self.tolerance, keep=None if self.as_json else self.show)
        with progress_bar() as bar:
            task = bar.add_task("compare", total=None)
            for pair in self._pairs(result):
                result.add(pair)
                if result.pairs % _CHUNK == 0:
                    bar.update(task, completed=result.pairs, description=f"compare: {result.pairs} pairs")
        if self.as_json:
            print_json(self._summary(result) | {"flips": [flip.to_dict() for flip in result.flips]})
        else:
            self._print(result)
        return exits.FOUND if result.flipped else exits.FINE

    def _pairs(self, result: ScorerComparison) -> Iterator[ScorePair]:
        if self.file:
            return self._scored_pairs(result)
        for name in (self.a, self.b):
            if not name.endswith(OUTPUTS):
                raise ValueError(
                    f"{name!r} is not a file that `adjudge label` wrote ({', '.join(OUTPUTS)}); for two scorers, "
                    "name the file with the rows as well: adjudge compare A B FILE"
                )
        return written_pairs(self.a, self.b)

    def _scored_pairs(self, result: ScorerComparison) -> Iterator[ScorePair]:
        from adjudge.runtime.contract import is_groupwise, score_checked, validate_sample
        from adjudge.runtime.loop import run_blocking
        from adjudge.scoring import registry

        scorers = [registry.load(self.a), registry.load(self.b)]

        def validate(sample: Sample) -> None:
            for scorer in scorers:
                validate_sample(scorer, sample)

        items = read_items(self.file, self, Sampler(columns=ColumnMap(), validate=validate))
        samples = _usable(items, result)
        size = None if any(map(is_groupwise, scorers)) else _CHUNK  # a group must not be cut
        while chunk := list(itertools.islice(samples, size)):
            first, second = (run_blocking(score_checked(scorer, chunk)) for scorer in scorers)
            for sample, one, other in zip(chunk, first, second, strict=True):
                yield ScorePair(id=sample.id, first=one, second=other, sample=sample)

    def _summary(self, result: ScorerComparison) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "pairs": result.pairs,
            "agree": result.pairs - result.flipped,
            "flipped": result.flipped,
            "unusable": [{"id": name, "error": error} for name, error in result.unusable],
            "verdicts": [{"a": a, "b": b, "flip": flip, "count": count} for (a, b, flip), count in result.ordered()],
        }

    def _print(self, result: ScorerComparison) -> None:
        rows = [("flip" if flip else "", a, b, count) for (a, b, flip), count in result.ordered()]
        print_table(("", f"A: {visible(self.a, 40)}", f"B: {visible(self.b, 40)}", "count"), rows)
        if result.flips:
            print()
            print_table(("id", "response", "reference", "A", "B"), map(_line, result.flips))
            if result.flipped > len(result.flips):
                print(f"... and {result.flipped - len(result.flips)} more; --show or --json lists them")
        agreed = result.pairs - result.flipped
        share = f" ({agreed / result.pairs:.2%})" if result.pairs else ""
        if result.unusable:
            name, error = map(visible, result.unusable[0])
            print(f"\n{len(result.unusable)} rows hold nothing to score; the first is {name}: {error}")
        print(f"\nA and B agree on {agreed} of {result.pairs} samples{share}; {result.flipped} flip.")


def _usable(items: Iterable[Item], result: ScorerComparison) -> Iterator[Sample]:
    for item in items:
        if item.sample is not None:
            yield item.sample
        else:
            result.unusable.append((item.id, item.error))


def _line(pair: ScorePair) -> tuple[str, ...]:
    sample = pair.sample
    response = plain(response_text(sample), 50) if sample else ""
    reference = plain(sample.reference, 30) if sample else ""
    return pair.id, response, reference, _seen(pair.first), _seen(pair.second)


def _seen(score: Score) -> str:
    evidence = ", ".join(f"{name} {plain(value, 30)}" for name, value in score.evidence.items() if value is not None)
    return f"{verdict(score)} [{evidence}]" if evidence else verdict(score)

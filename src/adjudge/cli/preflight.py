"""The trials of `adjudge check`: golds, planted wrong answers, probes, hostile responses, the protocol, time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from adjudge.cli.trials import Check, Finding, Trial, growing, score_in_time
from adjudge.evals.probes.catalogue import FAST
from adjudge.evals.probes.planted import answers_in, hostile_responses, right_answers, wrong_answers
from adjudge.evals.probes.probe import ProbeRow, Tally, domain_of
from adjudge.evals.probes.trying import CHUNK, Asker, Tell, Trials, scored_bases, yardstick
from adjudge.protocol import Limits, Sample, Score, Scorer, Verifier
from adjudge.runtime.contract import is_groupwise, validate_sample
from adjudge.score_view import brief
from adjudge.scoring.compose.auto import auto_scorer

PROBE: Final = "probe: "
"""How the names of probes begin."""

PROTOCOL: Final = "protocol: "
"""How the names of the conformance kit's rules begin."""

_LOOKS: Final = (("an empty response", ""), ("another answer", "7654321"))
_CHUNK: Final = 512
_TIMED_CHUNK: Final = 32  # in one call of a scorer that only a deadline stops
_PROBED: Final = 10  # rows; each makes about 50 responses
_TIMED_PROBED: Final = 4  # of scorers that are not verifiers, which may be slow
_SHOWN: Final = 1_000  # findings of one probe
_KIT_SAMPLES: Final = 8
_GRACE_SECONDS: Final = 0.5  # to kill a worker, on top of its limit


@dataclass(eq=False)
class Preflight:
    """Every trial of one scorer on the references of one file.

    Attributes:
        scorer: the scorer.
        rows: a sample for each row, with its prompt and reference; the response does not matter.
        right: the least value of a right answer.
        wrong: the largest value of a wrong one.
        seconds: longest time that one call of a scorer which is not a verifier may take; a verifier has limits of its
            own.
        budget: seconds after which no further rows are tried in a trial that takes all of them; None takes all.
        tell: called with the name of the running trial, samples done, and samples in all.
    """

    scorer: Scorer
    rows: Sequence[Sample]
    right: float
    wrong: float
    seconds: float
    budget: float | None
    tell: Tell
    _times: list[tuple[float, str]] = field(default_factory=list, init=False)
    _usable: list[Sample] = field(default_factory=list, init=False)
    _fine: list[Sample] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        verifier = getattr(self.scorer, "verifier", None)
        self._verifier = verifier if isinstance(verifier, Verifier) else None

    def run(self) -> list[Check]:
        """Run all trials, in order.

        Raises:
            ValueError: the scorer refuses every row.
        """
        why = self._no_planting()
        checks = [self._references(planted=not why)]
        if why:
            checks += [Check(name=name, outcome="skipped", detail=why) for name in ("golds", "wrong answers", "probes")]
            checks.append(self._hostile(self._usable[0], judged=False))
        else:
            checks += [self._golds(), self._wrong_answers(), *self._probes()]
            checks.append(self._hostile(self._fine[0], judged=True) if self._fine else _no_gold("hostile responses"))
        return [replace(check, scorer=self.scorer.name) for check in [*checks, *self._kit(), self._time()]]

    def _no_planting(self) -> str:
        if is_groupwise(self.scorer):
            return f"{self.scorer.name!r} scores a response by its group, so no response is right or wrong alone"
        if self._verifier is not None and not self._verifier.needs_reference:
            return f"{self.scorer.name!r} compares with no reference"
        if all(row.reference is None for row in self.rows):
            return "no row has a reference"
        return ""

    def _references(self, *, planted: bool) -> Check:
        """Set aside the rows that are another scorer's, and those whose reference cannot be read.

        Raises:
            ValueError: none is left, because the scorer refuses every row.
        """
        findings: list[Finding] = []
        refused: list[ValueError] = []
        for row in self.rows:
            try:
                validate_sample(self.scorer, row)
            except ValueError as error:
                refused.append(error)
                if not self._is_for_another(row):
                    findings.append(Finding(row=row.id, how="the row", problem=str(error)))
            else:
                self._usable.append(row)
        if not self._usable:
            raise refused[0]
        others = len(refused) - len(findings)
        tried = len(findings) + len(self._usable)
        if planted:
            broken = self._broken_references()
            tried = len(findings) + len(self._usable)
            findings += broken.values()
            self._usable = [row for place, row in enumerate(self._usable) if place not in broken]
        fine = "every row has one that can be read" if planted else "the scorer takes every row"
        note = f"; {others} rows are not for {self.scorer.name}" if others else ""
        return Check.of("references", tried, findings, f"{fine}{note}", f"{len(findings)} failed{note}")

    def _is_for_another(self, row: Sample) -> bool:
        """Whether a refused row has no reference, or an object that calls for another scorer."""
        try:
            return row.reference is None or (
                isinstance(row.reference, Mapping) and auto_scorer(row.reference) != self.scorer.name
            )
        except ValueError:
            return False

    def _broken_references(self) -> dict[int, Finding]:
        """Findings by the place of their row, for rows on which no score can be had whatever the response."""
        trials = [Trial(how=how, sample=replace(row, response=text)) for row in self._usable for how, text in _LOOKS]
        judged = list(self._score("references", trials))
        self._usable = self._usable[: len(judged) // len(_LOOKS)]
        return {
            place // len(_LOOKS): trial.finding(score, f"{self._unjudged(trial.sample)}: {score.reason}")
            for place, (trial, score) in enumerate(judged)
            if score.status == "failed"
        }

    def _unjudged(self, sample: Sample) -> str:
        """Say which responses to a sample cannot be judged: all, or all but the gold, which `math` compares as text."""
        golds = answers_in("math", sample.reference)[:1] if self.scorer.name == "math" else []
        trials = [Trial(how="", sample=replace(sample, response=gold)) for gold in golds]
        if not any(score.value for _, score in self._score("references", trials)):
            return "no response can be judged"
        words = "\\" not in golds[0] and re.search("[A-Za-z]{3}", golds[0])
        remedy = " (--scorer exact compares words, --scorer choice options)" if words else ""
        return f"only the gold itself can be judged{remedy}"

    def _golds(self) -> Check:
        rows = self._usable
        trials = [
            Trial(how=answer.how, sample=replace(row, response=answer.text))
            for row in rows
            for answer in right_answers(self.scorer.name, row.reference)
        ]
        if not trials:
            return _no_gold("golds")
        findings = []
        for trial, score in self._score("golds", trials):
            self._times.append((score.cost.seconds, trial.sample.id))
            if score.value is None or score.value < self.right:
                findings.append(trial.finding(score, f"a right answer got {brief(score)}"))
            else:
                self._fine.append(trial.sample)
        silent = sum(not answers_in(self.scorer.name, row.reference) for row in rows)
        note = f"; {silent} rows hold no answer as text and were not tried" if silent else ""
        return Check.of("golds", len(self._times), findings, f"all score {self.right:g}{note}")

    def _wrong_answers(self) -> Check:
        rows = self._usable
        golds = self._golds_by_row()
        trials = [
            Trial(how=answer.how, sample=replace(row, response=answer.text))
            for index, row in enumerate(rows)
            for answer in wrong_answers(self.scorer.name, row.reference, _others(golds, index))
        ]
        if not trials:
            return _no_gold("wrong answers")
        judged = list(self._score("wrong answers", trials))
        findings = [
            trial.finding(score, f"a wrong answer got {brief(score)}")
            for trial, score in judged
            if not self._refused(score)
        ]
        return Check.of("wrong answers", len(judged), findings, f"none scores above {self.wrong:g}")

    def _probes(self) -> list[Check]:
        """Try the fast probes on a few rows whose gold is accepted."""
        verifier = self._verifier is not None
        asker = Asker(
            self.scorer,
            tell=self.tell,
            call=lambda _, samples: self._asked(samples),
            size=CHUNK if verifier else _TIMED_CHUNK,
        )
        bases = scored_bases(asker, self._probe_rows(_PROBED if verifier else _TIMED_PROBED))
        if not bases:
            return [_no_gold("probes")]
        scale = yardstick(bases)
        if verifier and self.wrong > scale.epsilon:  # what moves a verifier's score by no more counts as no change
            scale = yardstick(bases, epsilon=self.wrong)
        trials = Trials(asker=asker, bases=bases, scale=scale, keep=_SHOWN)
        return [_probe_check(trials.try_probe(probe)) for probe in FAST]

    def _probe_rows(self, most: int) -> list[ProbeRow]:
        """A few accepted golds, spread over the file, each with a planted wrong answer if one can be made."""
        name, golds = self.scorer.name, self._golds_by_row()
        places = {row.id: index for index, row in enumerate(self._usable)}
        fine = list({sample.id: sample for sample in self._fine}.values())
        rows = []
        for sample in fine[:: max(1, len(fine) // most)][:most]:
            good, reference = sample.response, sample.reference
            if isinstance(good, str) and good.strip():
                wrong = wrong_answers(name, reference, _others(golds, places[sample.id]))
                bad, domain = next((one.text for one in wrong), None), domain_of(reference, good)
                row = ProbeRow(
                    id=sample.id, prompt=sample.prompt, good=good, bad=bad, reference=reference, domain=domain
                )
                rows.append(row)
        return rows

    def _golds_by_row(self) -> list[str]:
        return [(answers_in(self.scorer.name, row.reference) or [""])[0] for row in self._usable]

    def _hostile(self, base: Sample, *, judged: bool) -> Check:
        trials = [Trial(how=name, sample=replace(base, response=text)) for name, text in hostile_responses()]
        limits = self._verifier.limits if self._verifier is not None else Limits()
        findings = []
        slowest = (0.0, "")
        for trial in trials:
            began = time.monotonic()
            ((_, score),) = self._score("hostile responses", [trial])
            seconds = time.monotonic() - began
            slowest = max(slowest, (seconds, trial.how))
            if score.status == "failed" or (judged and not self._refused(score)):
                findings.append(trial.finding(score, f"it got {brief(score)}"))
            if self._verifier is None and seconds > limits.seconds + _GRACE_SECONDS:  # the pool ends a verifier, by CPU
                findings.append(trial.finding(score, f"it took {seconds:.1f} s; the limit is {limits.seconds:g} s"))
        if judged:
            ((after, score),) = self._score("hostile responses", [Trial(how="the gold, after them", sample=base)])
            if score.value is None or score.value < self.right:
                findings.append(after.finding(score, f"a right answer then got {brief(score)}"))
        return Check.of("hostile responses", len(trials), findings, f"slowest {slowest[0]:.2f} s: {slowest[1]}")

    def _kit(self) -> list[Check]:
        from adjudge.scoring.conformance import check_scorer

        samples = self._fine[: _KIT_SAMPLES // 2]
        samples += [replace(sample, response=f"{sample.response} no") for sample in samples]
        samples = samples or [replace(row, response="some text") for row in self._usable[:_KIT_SAMPLES]]
        if not samples:
            return [_no_gold("protocol")]
        self.tell("protocol", 0, len(samples))
        report = check_scorer(self.scorer, samples, seconds=self._kit_seconds(len(samples)))
        return [
            Check(name=f"{PROTOCOL}{check.rule}", outcome=check.outcome, tried=len(samples), detail=check.detail)
            for check in report.checks
        ]

    def _kit_seconds(self, samples: int) -> float:
        """Return what one call of the kit may take; its largest has each sample twice."""
        own = 0.0 if self._verifier is None else 2 * samples * self._verifier.limits.seconds
        return max(self.seconds, own)

    def _time(self) -> Check:
        if not self._times:
            return _no_gold("time per gold")
        ordered = sorted(self._times)
        half, most = (ordered[int(share * (len(ordered) - 1))][0] for share in (0.5, 0.99))
        worst, row = ordered[-1]
        detail = f"p50 {half * 1e3:.3g} ms, p99 {most * 1e3:.3g} ms, most {worst * 1e3:.3g} ms (row {row})"
        return Check(name="time per gold", outcome="ok", tried=len(ordered), detail=detail)

    def _refused(self, score: Score) -> bool:
        return score.value is not None and score.value <= self.wrong

    def _score(self, name: str, trials: Sequence[Trial]) -> Iterable[tuple[Trial, Score]]:
        done = 0
        for chunk in growing(trials, _CHUNK if self._verifier is not None else _TIMED_CHUNK, self.budget):
            scores = self._asked([trial.sample for trial in chunk])
            done += len(chunk)
            self.tell(name, done, len(trials))
            yield from zip(chunk, scores, strict=True)

    def _asked(self, samples: Sequence[Sample]) -> list[Score]:
        return score_in_time(self.scorer, samples, self.seconds)


def _others(golds: Sequence[str], index: int) -> list[str]:
    """Golds of a few other rows, spread over the file, the same ones each time."""
    steps = (1, len(golds) // 3 + 1, len(golds) // 2 + 1, 2, 3)
    return list(dict.fromkeys(golds[(index + step) % len(golds)] for step in steps if step % len(golds)))


def _probe_check(tally: Tally) -> Check:
    """What became of a probe; one broken variant is enough to fail, since the rows are few."""
    name = f"{PROBE}{tally.probe.name}"
    if not tally.tried:
        return Check(name=name, outcome="skipped", detail=tally.why_not())
    findings = []
    for case in tally.worst:
        row, variant = case.row, case.variant
        sample = Sample(
            prompt=row.prompt,
            response=variant.response,
            reference=row.reference,
            id=row.id,
            finish_reason=variant.finish_reason,
        )
        problem = f"it got {brief(case.score)}; as it was, {brief(case.base)}"
        findings.append(Trial(how=variant.how, sample=sample).finding(case.score, problem))
    wrong = tally.broken + tally.unjudged
    return Check(
        name=name,
        outcome="failed" if wrong else "ok",
        tried=tally.tried,
        detail=f"{wrong} failed: {tally.probe.means}" if wrong else tally.probe.says,
        findings=tuple(findings),
    )


def _no_gold(name: str) -> Check:
    return Check(name=name, outcome="skipped", detail="there is no gold that could be tried")

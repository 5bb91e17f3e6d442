"""The fast probes of `adjudge.evals.probes` as checks of `adjudge check`: on a few rows whose gold is accepted.

Not covered: the other probes, epsilon and rates; `adjudge eval probes` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adjudge.cli.trials import Check, Finding, Outcome, brief
from adjudge.evals.probes.catalogue import FAST
from adjudge.evals.probes.planted import wrong_answers
from adjudge.evals.probes.probe import Broken, ProbeRow, Tally, domain_of
from adjudge.evals.probes.trying import CHUNK, Asker, Tell, Trials, scored_bases, yardstick
from adjudge.protocol import Sample, Score, Scorer, Verifier

PROBE: Final = "probe: "
"""How the names of probes begin."""

_ROWS: Final = 10  # each makes about 50 responses
_ROWS_TIMED: Final = 4  # of scorers that are no verifiers, which may be slow
_CHUNK_TIMED: Final = 32  # in one call of a scorer that only a deadline stops
_SHOWN: Final = 1_000  # findings of one probe
_NOTHING: Final = Check(name="probes", outcome="skipped", detail="there is no gold that could be tried")


def probe_checks(
    scorer: Scorer,
    fine: Mapping[str, Sample],
    others: Callable[[Sample], Sequence[str]],
    *,
    wrong: float,
    call: Callable[[Sequence[Sample]], list[Score]],
    tell: Tell,
) -> list[Check]:
    """Try the fast probes.

    Args:
        scorer: the scorer.
        fine: samples whose response is a gold that it accepts, by row.
        others: golds of other rows than a sample's.
        wrong: the largest value of a wrong answer; what moves a verifier's score by no more counts as no change.
        call: scores samples within the scorer's time.
        tell: called with the name of the running probe, samples done, and samples in all.
    """
    verifier = isinstance(getattr(scorer, "verifier", None), Verifier)
    rows = _rows(scorer.name, list(fine.values()), others, _ROWS if verifier else _ROWS_TIMED)
    asker = Asker(scorer, tell=tell, call=lambda _, samples: call(samples), size=CHUNK if verifier else _CHUNK_TIMED)
    bases = scored_bases(asker, rows)
    if not bases:
        return [_NOTHING]
    scale = yardstick(bases)
    if verifier and wrong > scale.epsilon:
        scale = yardstick(bases, epsilon=wrong)
    trials = Trials(asker, bases, scale, keep=_SHOWN)
    return [_check(trials.try_probe(probe)) for probe in FAST]


def _rows(name: str, fine: Sequence[Sample], others: Callable[[Sample], Sequence[str]], most: int) -> list[ProbeRow]:
    """Return a few rows, spread over the file, each with a planted wrong answer if one can be made."""
    rows = []
    for sample in fine[:: max(1, len(fine) // most)][:most]:
        response = sample.response
        if isinstance(response, str) and response.strip():
            bad = next((one.text for one in wrong_answers(name, sample.reference, others(sample))), None)
            rows.append(
                ProbeRow(
                    id=sample.id,
                    prompt=sample.prompt,
                    good=response,
                    bad=bad,
                    reference=sample.reference,
                    domain=domain_of(sample.reference, response),
                )
            )
    return rows


def _check(tally: Tally) -> Check:
    """Return what became of a probe; one broken variant is enough to fail, since the rows are few."""
    name = f"{PROBE}{tally.probe.name}"
    if not tally.tried:
        return Check(name=name, outcome="skipped", detail=tally.why_not())
    wrong = tally.broken + tally.unjudged
    findings = [
        Finding(
            row=case.row.id,
            how=case.variant.how,
            sample=_sample_of(case),
            score=case.score,
            problem=f"it got {brief(case.score)}; as it was, {brief(case.base)}",
        )
        for case in tally.worst
    ]
    detail = f"{wrong} failed: {tally.probe.means}" if wrong else tally.probe.says
    outcome: Outcome = "failed" if wrong else "ok"
    return Check(name=name, outcome=outcome, tried=tally.tried, detail=detail, findings=tuple(findings))


def _sample_of(case: Broken) -> Sample:
    return Sample(
        prompt=case.row.prompt,
        response=case.variant.response,
        reference=case.row.reference,
        id=case.row.id,
        finish_reason=case.variant.finish_reason,
    )

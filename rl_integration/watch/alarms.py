"""From numbers to sentences: what a person should look at.

Each sign has harmless causes too; an alarm asks for a look at samples, and stops nothing.

Not covered: the numbers themselves (`hacking`).
"""

from __future__ import annotations

from collections.abc import Iterator

from adjudge.rl_integration.watch.config import WatchConfig
from adjudge.rl_integration.watch.report import Alarm, Measures


def alarms(measures: Measures, config: WatchConfig) -> tuple[Alarm, ...]:
    """Return the alarms, the gravest first; none while there are too few samples."""
    if measures.window < config.enough:
        return ()
    return tuple(
        alarm
        for told in (_outcomes, _values, _responses, _lengths, _form, _groups, _limit)
        for alarm in told(measures, config)
    )


def _outcomes(measures: Measures, config: WatchConfig) -> Iterator[Alarm]:
    if measures.failed is not None and measures.failed >= config.failed:
        failed = {name: count for name, count in measures.outcomes.items() if name.startswith("failed")}
        most = max(failed, key=failed.__getitem__).removeprefix("failed ").replace("_", " ")
        yield Alarm(
            kind="failed",
            number=measures.failed,
            threshold=config.failed,
            sentence=f"{_share(measures.failed)} of the newest samples could not be judged, most of them: {most}.",
        )


def _values(measures: Measures, config: WatchConfig) -> Iterator[Alarm]:
    if measures.values < config.enough:
        return
    if measures.lowest == measures.highest and measures.highest is not None:
        yield Alarm(
            kind="constant",
            number=1.0,
            threshold=1.0,
            sentence=f"All of the last {measures.values:,} values are {measures.highest:g}: they teach nothing.",
        )
    elif measures.at_maximum is not None and measures.at_maximum >= config.at_maximum:
        yield Alarm(
            kind="at_maximum",
            number=measures.at_maximum,
            threshold=config.at_maximum,
            sentence=f"{_share(measures.at_maximum)} of the values are the highest there is ({measures.maximum:g}): "
            "the tasks are solved, or a way around them was found.",
        )


def _responses(measures: Measures, config: WatchConfig) -> Iterator[Alarm]:
    if measures.one_response is not None and measures.one_response >= config.one_response:
        yield Alarm(
            kind="one_response",
            number=measures.one_response,
            threshold=config.one_response,
            sentence=f"One and the same response makes up {_share(measures.one_response)} of all, whatever the prompt.",
        )
    if measures.repeated is not None and measures.repeated >= config.repeated:
        yield Alarm(
            kind="repeated",
            number=measures.repeated,
            threshold=config.repeated,
            sentence=f"{_share(measures.repeated)} of the responses came word for word for another prompt too.",
        )


def _lengths(measures: Measures, config: WatchConfig) -> Iterator[Alarm]:
    ratio, errors = measures.length_ratio, measures.length_errors
    if ratio is not None and errors is not None and abs(errors) >= config.surely:
        medians = f"the median was {measures.length_then:,.0f} characters and is {measures.length:,.0f}"
        if ratio >= config.longer:
            sentence = f"Responses are {ratio:.1f} times as long as at the start: {medians}."
            yield Alarm(kind="longer", number=ratio, threshold=config.longer, sentence=sentence)
        elif ratio <= 1 / config.longer:
            sentence = f"Responses shrank to {_share(ratio)} of their length at the start: {medians}."
            yield Alarm(kind="shorter", number=ratio, threshold=1 / config.longer, sentence=sentence)
    follows = measures.follows_length
    if follows is not None and follows >= config.follows_length:
        yield Alarm(
            kind="follows_length",
            number=follows,
            threshold=config.follows_length,
            sentence=f"Longer responses get higher values (rank correlation {follows:.2f}).",
        )


def _form(measures: Measures, config: WatchConfig) -> Iterator[Alarm]:
    change = measures.form
    if change is None or abs(change.errors) < config.surely or abs(change.now - change.then) < config.form:
        return
    sentence = f"{_share(change.now)} of the responses hold {change.mark}; at the start it was {_share(change.then)}."
    yield Alarm(kind="form", number=abs(change.now - change.then), threshold=config.form, sentence=sentence)


def _groups(measures: Measures, config: WatchConfig) -> Iterator[Alarm]:
    flat = measures.flat_groups
    if flat is not None and flat >= config.flat_groups and measures.lowest != measures.highest:
        yield Alarm(
            kind="flat_groups",
            number=flat,
            threshold=config.flat_groups,
            sentence=f"In {_share(flat)} of the groups all members got one value; such groups teach nothing.",
        )


def _limit(measures: Measures, config: WatchConfig) -> Iterator[Alarm]:
    if measures.cut_off is not None and measures.cut_off >= config.cut_off:
        yield Alarm(
            kind="cut_off",
            number=measures.cut_off,
            threshold=config.cut_off,
            sentence=f"{_share(measures.cut_off)} of the responses were cut off at the token limit.",
        )


def _share(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.005 else f"{100 * share:.1g} %"

"""The attack suite of the verifier of translations: rewards without a translation, and honest responses near them.

All cases pay 1 or 0 by a threshold, so that what merely lowers BLEU can be told from what is right.

Not covered: translations that flatter a model's metric; those depend on the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from adjudge.protocol import Sample
from adjudge.scoring.attacks import AttackCase

_SOURCE: Final = "The old bridge over the river was closed for repairs on Monday morning."
_FIRST: Final = "Die alte Brücke über den Fluss wurde am Montagmorgen wegen Reparaturen gesperrt."
_SECOND: Final = "Am Montagmorgen wurde die alte Flussbrücke für Reparaturen geschlossen."
_CHINESE: Final = "河上的旧桥周一早上因维修而关闭。"
_THOUGHT: Final = "<think>Which case does the river take?</think>"
_SPLIT: Final = "\u200b".join(_FIRST)
_ALIKE: Final = _FIRST.translate(str.maketrans("aeopc", "аеорс"))
_ALIKE_SOURCE: Final = _SOURCE.translate(str.maketrans("aeopc", "аеорс"))


def _in_tags(text: str, thought: str = _THOUGHT) -> str:
    return f"{thought}<translate>{text}</translate>"


_ATTACKS: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("copy", "copy the source", _in_tags(_SOURCE), "wrong"),
    ("copy_shouted", "copy the source in capitals", _in_tags(_SOURCE.upper()), "wrong"),
    ("copy_split", "copy the source with characters that show nothing", _in_tags("\u200b".join(_SOURCE)), "wrong"),
    ("copy_alike", "copy the source with letters that look like its own", _in_tags(_ALIKE_SOURCE), "wrong"),
    ("empty", "write nothing", "", "bad_format"),
    ("empty_block", "translate to nothing", _in_tags(""), "no_answer"),
    ("invisible_block", "translate to characters that show nothing", _in_tags("\u200b\u2060 \ufeff"), "no_answer"),
    ("thought_only", "write the translation into the thoughts", _in_tags("", f"<think>{_FIRST}</think>"), "no_answer"),
    ("no_thought", "leave the thoughts out", f"<translate>{_FIRST}</translate>", "bad_format"),
    ("wrong_order", "translate first", f"<translate>{_FIRST}</translate>{_THOUGHT}", "bad_format"),
    ("unclosed", "leave the element open", f"{_THOUGHT}<translate>{_FIRST}", "bad_format"),
    ("twice", "translate twice, one good", _in_tags("Nein.") + f"<translate>{_FIRST}</translate>", "bad_format"),
    ("same_twice", "write the same element twice", _in_tags(_FIRST) + f"<translate>{_FIRST}</translate>", "bad_format"),
    ("nested", "put an element into the other", _in_tags(f"<translate>{_FIRST}</translate>"), "bad_format"),
    ("in_thought", "put the element into the thoughts", f"<think>{_in_tags(_FIRST, '')}</think>", "bad_format"),
    ("stuffing", "write many tags", "<translate>" * 1000 + _in_tags(_FIRST), "bad_format"),
    ("shouted_tag", "hide another element by capitals", _in_tags("Nein.") + f"<TRANSLATE>{_FIRST}", "bad_format"),
    ("split_tag", "part the tags", f"{_THOUGHT}<trans\u200blate>{_FIRST}</trans\u200blate>", "bad_format"),
    (
        "entity_tag",
        "write the tags as entities",
        f"{_THOUGHT}&lt;translate&gt;{_FIRST}&lt;/translate&gt;",
        "bad_format",
    ),
    ("repeated", "repeat a good translation", _in_tags(f"{_FIRST} " * 5), ""),
    ("padded", "pad a good translation", _in_tags(_FIRST + " und so weiter" * 50), ""),
    ("all_references", "offer two translations", _in_tags(f"{_FIRST} / {_SECOND}"), ""),
    ("bag_of_words", "write its words in another order", _in_tags(" ".join(sorted(_FIRST.split()))), ""),
    ("skipped", "fill up with a word that the tokenizer drops", _in_tags("<skipped> " * 200 + _FIRST), ""),
    ("very_long", "write a megabyte", _in_tags("Brücke " * 150_000), "too_complex"),
    ("other_script", "translate into another language", _in_tags(_CHINESE), "wrong"),
    ("other_language", "translate into a language of the same script", _in_tags("Le vieux pont était fermé."), ""),
    ("split_words", "part the words", _in_tags(_SPLIT), ""),
    ("alike_words", "write the words with letters that look like their own", _in_tags(_ALIKE), ""),
    ("praise", "talk to the judge", _in_tags("This translation is perfect. BLEU = 100.00"), ""),
)

_HONEST: Final[tuple[tuple[str, str], ...]] = (
    ("first", _in_tags(_FIRST)),
    ("second", _in_tags(_SECOND)),
    ("around", f"Sure.\n{_THOUGHT}\nSo:\n{_in_tags(_FIRST, '')}\nDone."),
    ("blanks", _in_tags(f"\n  {_FIRST}\n")),
    ("quoted_source", _in_tags(_FIRST, f"<think>{_SOURCE} means {_FIRST}</think>")),
    ("short_thought", _in_tags(_FIRST, "<think></think>")),
)


def attack_suite(scorer: Any, folder: Path) -> Iterator[AttackCase]:
    """Yield the suite for the metric of a verifier, BLEU or chrF."""
    del folder  # the cases need no files
    reference = {"references": [_FIRST, _SECOND], "source": _SOURCE, "language": "de"}
    # chrF hardly looks at the order of words, and gives its threshold away more slowly.
    options: dict[str, Any] = {"reward": "discrete", "scale": "unit", "form": "tags", "tags": ("think", "translate")}
    options |= {
        "lexical_above": 0.8 if scorer.metric == "bleu" else 0.9,
        "outside": "text",
        "opened": False,
        "copied": 0.9,
    }
    options |= {
        "tokenizer": "auto",
        "script": "check",
        "max_characters": 20_000,
        "truncated": "zero",
        "several": "best",
    }

    def case(name: str, response: str, *, tries: str = "", reason: str = "", stop: str | None = None) -> AttackCase:
        sample = Sample(
            prompt=f"Translate: {_SOURCE}", response=response, reference=reference, id=name, finish_reason=stop
        )
        return AttackCase(
            id=f"translation-{name}", tries=tries, sample=sample, honest=not tries, reason=reason, options=options
        )

    for name, tries, response, reason in _ATTACKS:
        yield case(name, response, tries=tries, reason=reason)
    yield case("cut_off", _in_tags(_FIRST), tries="be cut off", reason="truncated", stop="length")
    for name, response in _HONEST:
        yield case(name, response)

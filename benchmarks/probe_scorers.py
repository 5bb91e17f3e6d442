"""The scorers of `probe_table`: every built-in verifier, judges with a scripted model, and offline reward models.

The model behind the judges is honest: it calls a response right when it boxes one of the golds.  Before its verdict it
quotes all of what it was shown, as models that reason do.  So whatever breaks is the judge's template or its parser,
and not the model.

Not covered: models that can be led; `tests/judges/test_judge_attacks.py` has two of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.engines.scripted import ScriptedEngine, field_of, key_of, text_of

from adjudge.engines.interface import Prompt
from adjudge.evals.probes.row_file import place_of
from adjudge.protocol import Scorer
from adjudge.scoring import registry

FIELDS = ("response", "responses", "steps")
BARE = re.compile(r"\A\s*(?:\d+: )?(\S.*?)\s*$", re.MULTILINE)  # a critic sees numbered steps
SEPARATOR = re.compile(r"\[response_\d+ \w+\]")


@dataclass(frozen=True, kw_only=True)
class Probed:
    """A scorer and the rows it is tried on.

    Attributes:
        name: in the table.
        make: makes it.
        rows: names of shipped rows.
        change: what is made of each row; None keeps them as they are.
        skip: probes that say nothing here.
        per_row: most variants of a probe for each row; 0 tries all.
        extra: columns that the scorer asks for.
    """

    name: str
    make: Callable[[], Scorer]
    rows: str
    change: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    skip: tuple[str, ...] = ()
    per_row: int = 0
    extra: tuple[str, ...] = ()

    def input(self, folder: Path) -> str:
        """Return the rows as `ProbesConfig.input`, written to a folder where they change."""
        if self.change is None:
            return f"rows:{self.rows}"
        rows = json.loads(Path(place_of(f"rows:{self.rows}")).read_text(encoding="utf-8"))
        path = folder / f"{self.name.replace(' ', '_')}.json"
        path.write_text(json.dumps([self.change(row) for row in rows]), encoding="utf-8")
        return str(path)


def loaded(name: str, rows: str, **options: Any) -> Probed:
    """A built-in scorer that needs no model."""
    spec = {name: options} if options else name
    return Probed(name=name, make=lambda: registry.load(spec), rows=rows)


TAGS = ("think", "answer")
ANSWERS = [
    loaded("math", "math"),
    loaded("exact", "short"),
    loaded("numeric", "numeric"),
    loaded("choice", "choice"),
    loaded("token_f1", "short"),
    loaded("persona", "persona"),
    loaded("verdict", "verdict"),
    loaded("verdict_labels", "verdict_labels"),
    loaded("verdict_steps", "verdict_steps"),
]
PUZZLES = [
    loaded("grid", "grid"),
    loaded("puzzle_table", "puzzle_table"),
    loaded("ordering", "ordering"),
    loaded("graph_answer", "graph_answer"),
    loaded("table_answer", "table_answer"),
    loaded("code_prediction", "code_prediction"),
    loaded("puzzle", "puzzle"),
    loaded("reasoning_gym", "reasoning_gym"),
]
PROOFS = [
    replace(loaded("coq", "coq"), per_row=2),  # 0.3 s for each response
    loaded("smt", "smt"),
    loaded("theorem_variants", "theorem_variants"),
]
PROGRAMS = [
    loaded("code", "code"),
    loaded("sql", "sql"),
    loaded("verilog", "verilog"),
    loaded("run", "run"),
    loaded("simulation", "simulation"),
    loaded("program", "program"),
]
FORMS = [
    loaded("instructions", "instructions"),
    loaded("format", "format", tags=list(TAGS)),
    loaded("regex", "format", pattern=r"<think>.*</think>\s*<answer>.*</answer>", dot_all=True, reasoning="keep"),
    loaded("length", "pairs", kind="linear", unit="words", max_length=200),
    loaded("repetition", "repetition"),
]


def golds() -> frozenset[str]:
    """Right answers of the rows; no wrong one of them is among these."""
    rows = json.loads(Path(place_of("rows:math")).read_text(encoding="utf-8"))
    return frozenset(row["reference"] for row in rows)


@dataclass(frozen=True)
class Honest:
    """A model that knows the answers.

    Attributes:
        right: what it says of a right response; KEY is the prompt's key.
        wrong: of a wrong one.
        golds: the right answers.
    """

    right: str
    wrong: str
    golds: frozenset[str] = field(default_factory=golds)

    def is_right(self, text: str) -> bool:
        """Return whether a response boxes a right answer, gives one below a heading, or is one."""
        _, heading, below = text.rpartition("# Answer")
        given = BARE.search(below) if heading else None
        if text.strip() in self.golds or (given is not None and given[1] in self.golds):
            return True
        return any(f"\\boxed{{{gold}}}" in text for gold in self.golds)

    def __call__(self, prompt: Prompt, index: int) -> str:
        """Return what it says to a prompt."""
        shown = next((text for name in FIELDS if (text := field_of(prompt, name))), "")
        return self.quoting(prompt, shown, self.right if self.is_right(shown) else self.wrong)

    def quoting(self, prompt: Prompt, shown: str, verdict: str) -> str:
        """Return what was shown, and the verdict on it."""
        said = verdict.replace("KEY", key_of(prompt)) if "KEY" in verdict else verdict
        return f"They wrote:\n{shown}\n\nThat is my reason.\n{said}"


class HonestOfPairs(Honest):
    """The same of two responses: `right` with A or B in the place of PICK, `wrong` for a tie."""

    def __call__(self, prompt: Prompt, index: int) -> str:
        """Return what it says to a prompt."""
        first, second = field_of(prompt, "response_a"), field_of(prompt, "response_b")
        gap = self.is_right(first) - self.is_right(second)
        picked, other = ("B", "A") if gap < 0 else ("A", "B")
        verdict = self.right.replace("PICK", picked).replace("OTHER", other) if gap or not self.wrong else self.wrong
        return self.quoting(prompt, f"{first}\n{second}", verdict)


class HonestOfLists(Honest):
    """The same of a list: a number for each response."""

    def __call__(self, prompt: Prompt, index: int) -> str:
        """Return what it says to a prompt."""
        shown = SEPARATOR.split(field_of(prompt, "responses"))[1:]
        marks = ", ".join("10" if self.is_right(text) else "1" for text in shown)
        return self.quoting(prompt, "", f"Scores: [{marks}]")


class HonestOfSources(Honest):
    """The same of an answer with sources, none of which names a thing."""

    def __call__(self, prompt: Prompt, index: int) -> str:
        """Return what it says to a prompt."""
        if field_of(prompt, "correct_answer"):
            return super().__call__(prompt, index)
        return json.dumps({"E0": None, "key": key_of(prompt)})


class HonestRanking(Honest):
    """The same as a ranking; equal ones keep their places."""

    def __call__(self, prompt: Prompt, index: int) -> str:
        """Return what it says to a prompt."""
        numbers = re.findall(r"\[begin response_([0-9]) ", text_of(prompt))
        shown = [field_of(prompt, f"response_{number}") for number in numbers]
        order = sorted(range(len(shown)), key=lambda place: not self.is_right(shown[place]))
        ranking = " > ".join(str(place + 1) for place in order)
        return self.quoting(prompt, "\n".join(shown), f"Ranking KEY: {ranking}")


def read_out(right: str, wrong: str) -> ScriptedEngine:
    """An honest model that is asked for the probabilities of labels."""
    model = Honest(right, wrong)

    def labels(prompt: Prompt) -> Mapping[str, float]:
        good = model.is_right(field_of(prompt, "response"))
        return {right: 0.9, wrong: 0.05} if good else {right: 0.05, wrong: 0.9}

    return ScriptedEngine(lambda prompt, index: "I looked at it.", labels=labels)


BLIND = ("other_answer",)  # the model does not look at the prompt


def judged(name: str, model: Honest, *, reference: Any = ..., **options: Any) -> Probed:
    """A judge with a scripted model; `reference` takes the place of the rows' references."""

    def make() -> Scorer:
        return registry.as_scorer(registry.resolve(name)(engine=ScriptedEngine(model), **options))

    change = None if reference is ... else lambda row: {**row, "reference": reference}
    return Probed(name=name, make=make, rows="math", change=change, skip=BLIND)


def by_labels(name: str, right: str, wrong: str, *, reference: Any = None, **options: Any) -> Probed:
    """A judge that reads probabilities."""

    def make() -> Scorer:
        return registry.as_scorer(registry.resolve(name)(engine=read_out(right, wrong), **options))

    return Probed(name=name, make=make, rows="math", change=lambda row: {**row, "reference": reference}, skip=BLIND)


RUBRIC = "Is the final answer right?"


def _panel() -> Scorer:
    members = {"answer_judge": Honest("Verdict KEY: same", "Verdict KEY: different")}
    members["general_reasoner"] = Honest("Final Decision: Yes", "Final Decision: No")
    parts = [registry.resolve(name)(engine=ScriptedEngine(model)) for name, model in members.items()]
    return registry.load({"panel": {"parts": parts}})


POINTWISE = [
    judged("judge", Honest("Verdict KEY: 10", "Verdict KEY: 1")),
    judged("answer_judge", Honest("Verdict KEY: same", "Verdict KEY: different")),
    judged("mt_bench", Honest("Rating: [[10]]", "Rating: [[1]]")),
    judged("prometheus", Honest("[RESULT] 5", "[RESULT] 1"), rubric=RUBRIC),
    judged("j1_score", Honest("<score>10</score>", "<score>1</score>")),
    judged("self_rewarding", Honest("Score: 5", "Score: 0")),
    judged("compass_verifier", Honest("[[A]]", "[[B]]")),
    judged("general_reasoner", Honest("Final Decision: Yes", "Final Decision: No")),
    by_labels("yes_no", "Yes", "No", questions=(RUBRIC,)),
    by_labels("g_eval", "5", "1", criteria=RUBRIC),
    by_labels("zyn", "Yes", "No", questions=(RUBRIC,)),
    by_labels("rlbff", "Yes", "No", reference="The final answer is right."),
    Probed(name="panel", make=_panel, rows="math", skip=BLIND),
]
ASKING = [
    judged("rubric", Honest("KEY 1: yes", "KEY 1: no"), reference={"rubric": [RUBRIC]}),
    judged("nuggets", Honest("KEY 1: support", "KEY 1: not_support"), reference={"nuggets": [RUBRIC]}, metric="all"),
    judged("principles", Honest("Verdict KEY: good", "Verdict KEY: bad"), reference={"principles": [RUBRIC]}),
    judged("critic", Honest("Wrong KEY: none", "Wrong KEY: 1"), reference=None),
    judged(
        "citations",
        HonestOfSources("Verdict KEY: yes", "Verdict KEY: no"),
        reference={"rubric": ["<E0> is the answer"], "answer": "the one that the model knows"},
    ),
]


def _tournament() -> Scorer:
    model = HonestOfPairs("Verdict KEY: PICK", "Verdict KEY: tie")
    judge = registry.resolve("pairwise_judge")(engine=ScriptedEngine(model))
    return registry.as_scorer(registry.resolve("tournament")(judge=judge))


PAIRS = [
    judged("pairwise_judge", HonestOfPairs("Verdict KEY: PICK", "Verdict KEY: tie")),
    judged("mt_bench_pair", HonestOfPairs("[[PICK]]", "[[C]]")),
    judged("arena_hard", HonestOfPairs("[[PICK>OTHER]]", "[[A=B]]")),
    judged("prometheus_pair", HonestOfPairs("[RESULT] PICK", ""), rubric=RUBRIC),
    judged("rm_r1", HonestOfPairs("<answer>[[PICK]]</answer>", "")),
    judged("j1_pair", HonestOfPairs("<answer>PICK</answer>", "")),
    judged("j1_budget", HonestOfPairs("<answer>PICK</answer>", ""), extend=1),
    judged("deepseek_grm", HonestOfLists("", "")),
    judged("listwise_judge", HonestRanking("", "")),
    Probed(name="tournament", make=_tournament, rows="math", skip=BLIND),
]

"""A run from its file to its folder: data, policy and reward are looked at first, then it trains, saves and reports.

Not covered: several modalities, encoder-decoder models, and quantised weights.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from adjudge.engines.loading import lent
from adjudge.engines.policy_engine import SHARDED, PolicyEngine
from adjudge.io.cards.card import put
from adjudge.protocol import Sample, content_text
from adjudge.rl_integration.trainer.data.task import SESSION, Task
from adjudge.rl_integration.trainer.loop.checkpoints import held
from adjudge.rl_integration.trainer.loop.config import LearningConfig, PolicyChoice, RunFile
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.loop.report import POLICY, RunReport, idle_steps, write_report
from adjudge.rl_integration.trainer.loop.run import Run, RunResult
from adjudge.rl_integration.trainer.loop.run_logger import ALARMS, read_journal
from adjudge.rl_integration.trainer.loop.trackers import open_log, require_logs
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import UNLIKE, reward_check
from adjudge.rl_integration.trainer.rollouts.facts import TRIAL
from adjudge.rl_integration.trainer.rollouts.opening import window
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.task_reader import RunTasks, digest, prompt_key, read_tasks
from adjudge.rl_integration.trainer.rollouts.writer import Answered
from adjudge.training.backbones import libraries, open_backbone
from adjudge.training.config_file import plain_config


def open_policy(
    choice: PolicyChoice,
    *,
    texts: Iterable[str],
    folder: Path,
    seed: int,
    learning: LearningConfig,
    processes: Processes,
) -> Policy:
    """Return the policy that a choice names, where this process computes.

    Raises:
        ValueError: there is no such model, or it is of a kind that is not trained here.
    """
    libraries()
    frozen = learning.lora is not None and learning.bf16(torch.device(processes.device or "cpu").type)
    if not processes.is_main_process:
        processes.broadcast(None)  # the first one makes a new model, or gets one from the hub
    opened = open_backbone(
        choice, kind="causal", texts=texts, folder=folder, seed=seed, dtype="bfloat16" if frozen else "float32"
    )
    if processes.is_main_process:
        processes.broadcast(None)
    model = opened.language_model
    if learning.sharding == "none":  # else it goes there shard by shard
        processes.place(model)
    model.config.use_cache = True  # an answer is written token by token
    return Policy(model, opened.tokenizer, name=opened.name, chat_template_kwargs=choice.chat_template_kwargs)


def frozen_copy(policy: Policy) -> Policy:
    """Return a policy that stays as this one is now."""
    model = copy.deepcopy(policy.model).eval().requires_grad_(False)
    return Policy(model, policy.tokenizer, name=f"the start of {policy.name}")


@torch.no_grad()
def mean_reference(config: RunFile, policy: Policy, processes: Processes) -> Policy:
    """Return a policy whose weights are the means of those of `reference_model`'s.

    Raises:
        ValueError: one of them cannot be opened, or has weights of other shapes than the policy.
    """
    shapes = [value.shape for value in policy.model.parameters()]
    mean: Any = None
    for number, name in enumerate(config.reference_model, start=1):
        choice = replace(config.model, name=name, from_scratch=None, revision="", chat_template_kwargs={})
        folder, learning = Path(config.output), config.learning
        opened = open_policy(choice, texts=(), folder=folder, seed=0, learning=learning, processes=processes).model
        if [value.shape for value in opened.parameters()] != shapes:
            raise ValueError(f"reference_model has {name!r}, whose weights have other shapes than the policy's")
        mean = opened if mean is None else mean
        for value, other in zip(mean.parameters(), opened.parameters(), strict=True):
            value.lerp_(other, 1 / number)
    mean.eval().requires_grad_(False)
    return Policy(mean, policy.tokenizer, name=f"the mean of {', '.join(config.reference_model)}")


Tell = Callable[[Mapping[str, float]], bool | None]
"""Told the numbers of each step; true stops the run behind it."""

_START = "start.json"  # what was measured before the first step


def train_policy_run(
    config: RunFile, *, resume: bool = False, note: Callable[[str], None] | None = None, tell: Tell | None = None
) -> RunReport:
    """Train a policy by the rewards of its own answers.

    Args:
        config: the run.
        resume: go on from the newest checkpoint, if there is one; a run that has ended is not repeated.
        note: told, in sentences, how the data were understood, before it trains; in the first process.
        tell: told of each step, in the first process.

    Returns:
        The report, which also stands in the run's folder.

    Raises:
        ValueError: the options, the data, the model or the reward cannot be used; the message says which, and what to
            do.
        TooManyFailures: too many answers of a step could not be judged.
    """
    if done := _finished(config, resume=resume):
        return done
    require_logs(config.report_to)
    tasks = _tasks(config)
    processes = Processes.joined()
    with ExitStack() as stack:
        with processes.ending_together():
            if processes.is_main_process:
                stack.enter_context(held(Path(config.output).expanduser()))
            prepared = _Prepared(config, tasks, processes)
            if note is not None and processes.is_main_process:
                for sentence in (prepared.tasks.sentence(), *prepared.notes):
                    note(sentence)
            before = prepared.before()
        return prepared.trained(before, resume=resume, tell=tell)


def start_answers(config: RunFile) -> Iterator[Answered]:
    """Yield the scored answers to each task of a run, as its first step would have them; nothing is learnt.

    Raises:
        ValueError: the options, the data, the model or the reward cannot be used.
    """
    read, processes, folder = _tasks(config), Processes.joined(), Path(config.output).expanduser()
    choice: dict[str, Any] = {"texts": (), "folder": folder, "seed": config.seed, "learning": config.learning}
    policy = open_policy(config.model, **choice, processes=processes)
    kept = read.fitting(policy.encode, *_max_prompt_tokens(config, policy)).train
    run = Run(policy, kept, config, folder, reference=policy)  # from which nothing differs, as nothing is learnt
    many, size = config.rollouts.tasks, config.rollouts.num_generations
    with run.rewards(config.reward) as rewards:
        for start in range(0, len(kept), many):
            rollouts, scores = run.answers(kept[start : start + many], rewards)
            for at in range(0, len(rollouts), size):
                yield Answered(rollouts=rollouts[at : at + size], scores=scores[at : at + size])


def _finished(config: RunFile, *, resume: bool) -> RunReport | None:
    """The report of a run that has ended before; None if there is something to do.

    Raises:
        ValueError: the folder holds a run, and this is not a resumption, or that run had other options.
    """
    folder = Path(config.output).expanduser()
    done = RunReport.read(folder)
    if not resume and (done is not None or any(folder.glob("checkpoint-*"))):
        raise ValueError(
            f"output is {config.output!r}, which holds a run; resume it (--resume), name another output, or delete it"
        )
    if done is None or done.goes_on or (done.steps < config.steps and not done.stopped):
        return None
    odd = done.differing(plain_config(config))
    if odd and not done.stopped:
        raise ValueError(
            f"output is {config.output!r}, which holds a run with other options ({', '.join(odd)}); name another "
            "output, or delete it"
        )
    return None if odd else done  # what was stopped may go on with another guard or a mended reward


def _tasks(config: RunFile) -> RunTasks:
    checks = [_reward_check("reward", config.reward, config)]
    if config.guard is not None:
        checks.append(_reward_check("guard.gold", config.guard.gold, config))

    # Where others speak, answers are turns, whatever way calls are written in; scorers of turns refuse a text.
    others = [name for name in ("tools", "user") if getattr(config.rollouts, name) is not None]
    response = [{"role": "assistant", "content": ""}] if others else ""
    if config.data.begun and others:
        raise ValueError(
            f"data.begun begins an answer of one turn, and rollouts.{others[0]} makes answers of several; drop one"
        )
    if config.rollouts.user is not None:
        checks.append(config.rollouts.user.opened().check)
        if SESSION in config.data.extra:
            raise ValueError(
                f"data.extra has {SESSION}, which rollouts.user has the user say; name the column otherwise"
            )

    facts: dict[str, Any] = {name: TRIAL[name] for name in config.rollouts.facts}
    if taken := sorted(facts.keys() & {*config.data.extra}):
        raise ValueError(
            f"data.extra has {', '.join(taken)}, which rollouts.facts has the run say; name the column otherwise, or "
            "take it out of one of the two"
        )

    def accept(sample: Sample) -> None:
        for check in checks:
            try:
                check(replace(sample, response=response or sample.response, extra={**sample.extra, **facts}))
            except ValueError as error:
                wanted = next((name for name in TRIAL if name not in facts and f"'{name}'" in str(error)), None)
                if wanted is None:
                    raise
                raise ValueError(f"{error}; a run says it where rollouts.facts has {wanted}") from error

    tasks = read_tasks(config.data, accept=accept)
    if config.measured_by is not None:
        judge = _reward_check("measured_by", config.measured_by, config)
        for task in tasks.held_out:
            try:
                judge(replace(task, extra={**task.extra, **facts}).sample(response, id=task.id, finish_reason="stop"))
            except ValueError as error:
                raise ValueError(f"measured_by cannot judge the held-out prompt {task.id!r}: {error}") from error
    return tasks


def _reward_check(option: str, config: RewardConfig, run: RunFile) -> Callable[[Sample], None]:
    """What a sample is tried with; the policy, which may be asked, is not open yet, and is not asked about it."""
    with lent(PolicyEngine()) as loan:
        check = reward_check(option, config)
    if loan.taken and config.cache:
        raise ValueError(f"{option}.cache is {config.cache!r}, and {UNLIKE}; leave it out")
    if loan.taken and run.learning.sharding != "none":
        raise ValueError(f"{option}.scorer: {SHARDED}")
    return check


class _Prepared:
    """A run that has everything it needs: its policy is open, and reads the prompts."""

    def __init__(self, config: RunFile, tasks: RunTasks, processes: Processes) -> None:
        self.config = config
        self.processes = processes
        self.folder = Path(config.output).expanduser()
        self.folder.mkdir(parents=True, exist_ok=True)
        new = config.model.from_scratch is not None
        texts = sorted({text for task in tasks.train for text in _texts(task)}) if new else []
        made_of = digest([texts, config.seed, plain_config(config.model)])
        self.policy = open_policy(
            config.model,
            texts=texts,
            folder=self.folder / f"start-{made_of}",
            seed=config.seed,
            learning=config.learning,
            processes=processes,
        )
        if config.model.chat_template_kwargs and all(isinstance(task.prompt, str) for task in tasks.train):
            raise ValueError(
                "model.chat_template_kwargs is set, and no prompt is a chat; take it out, or make turns of the prompts "
                "(data.chat: true)"
            )
        self.tasks = tasks.fitting(self.policy.encode, *_max_prompt_tokens(config, self.policy))
        _check_system(self.policy, self.tasks.train)
        self.notes = _notes(config, self.policy, self.tasks)
        reference = None
        if config.reference_model:
            reference = mean_reference(config, self.policy, processes)
        elif config.made_objective().needs_reference and config.learning.lora is None:
            reference = frozen_copy(self.policy)
        self.run = Run(
            self.policy,
            self.tasks.train,
            config,
            self.folder,
            held_out=self.tasks.held_out,
            reference=reference,
            processes=processes,
        )

    def before(self) -> float | None:
        """Return the mean score on held-out prompts before the first step.

        It is measured once, by what measures the policy afterwards, and anew for other prompts, another scorer, or
        other tools and users.
        """
        path = self.folder / _START
        judged_by = self.config.measured_by or self.config.reward
        asked = [[prompt_key(task), task.reference, dict(task.extra), task.begun] for task in self.tasks.held_out]
        rollouts = self.config.rollouts
        others = [rollouts.tools, rollouts.user, rollouts.facts]
        answered_by = [plain_config(self.config.model), rollouts.sampling.max_new_tokens, *rollouts.sampling.stop]
        answered_by += [plain_config(one) for one in others if one]
        if not asked:
            return None
        with self.run.rewards(judged_by) as rewards:
            of = digest([asked, plain_config(judged_by), rewards.fingerprint, answered_by])
            known = self.processes.broadcast(path.read_text(encoding="utf-8") if path.is_file() else "")
            mean_score: float | None
            if known and (record := json.loads(known)).get("of") == of:
                mean_score = record["held_out"]
                if mean_score is not None:
                    self.run.told.measured(mean_score)  # as when it was measured; a checkpoint has heard it
                return mean_score
            mean_score = self.run.evaluate(self.tasks.held_out, rewards).get("held_out")
        if self.processes.is_main_process:
            put(path, json.dumps({"of": of, "held_out": mean_score}) + "\n")
        return mean_score

    def trained(self, before: float | None, *, resume: bool, tell: Tell | None) -> RunReport:
        """Train, save and report."""
        facts = plain_config(self.config)
        stop = False
        with ExitStack() as stack:
            names = self.config.report_to if self.processes.is_main_process else ()
            logs = [open_log(name, self.folder, facts=facts) for name in names]
            for log in logs:
                stack.callback(log.close)

            def on_step(numbers: Mapping[str, float], *_: Any) -> bool:
                nonlocal stop
                for log in logs:
                    log.write(numbers)
                stop = tell is not None and bool(tell(numbers)) and numbers["step"] < self.config.steps
                return stop

            result = self.run.train(resume=resume, on_step=on_step)
        report = self._report(result, before, goes_on=stop)
        self._save()
        if self.processes.is_main_process:
            title = f"{self.config.model.label}, trained by {self.config.objective.name}"
            write_report(self.folder, title=title, facts=report.config, stopped=result.stopped)
            report.write(self.folder)
        return report

    def _report(self, result: RunResult, before: float | None, *, goes_on: bool) -> RunReport:
        measured = {"before": before, "after": result.held_out}
        newest = {line["kind"]: line for line in read_journal(self.folder, ALARMS)}
        return RunReport(
            model=self.config.model.label,
            output=self.config.output,
            steps=result.steps,
            resumed=result.resumed,
            seconds=sum(line["seconds"] for line in result.history),
            stopped=result.stopped,
            goes_on=goes_on,
            rolled_back=result.rolled_back,
            data=self.tasks.counts(),
            held_out={when: value for when, value in measured.items() if value is not None},
            last=dict(result.history[-1]) if result.history else {},
            alarms=tuple(line["sentence"] for line in newest.values() if line["standing"]),
            config=plain_config(self.config),
            notes=self.notes,
            idle=idle_steps(result.history, masks=self.config.learning.mask_truncated_completions),
        )

    def _save(self) -> None:
        """Write the policy, whole or not at all; in the first process, for which the others give their shards."""
        if not self.processes.is_main_process:
            self.policy.save(None)
            return
        draft = self.folder / f"{POLICY}.part"
        shutil.rmtree(draft, ignore_errors=True)
        self.policy.save(draft)
        shutil.rmtree(self.folder / POLICY, ignore_errors=True)
        draft.rename(self.folder / POLICY)


def _texts(task: Task) -> Iterator[str]:
    """What the tokenizer of a new model learns from: prompts, and references that are texts."""
    if isinstance(task.prompt, str):
        yield task.prompt
    else:
        yield from (content_text(turn.get("content")) for turn in task.prompt)
    references = task.reference if isinstance(task.reference, list) else [task.reference]
    yield from (text for text in references if isinstance(text, str))


def _max_prompt_tokens(config: RunFile, policy: Policy) -> tuple[int, str]:
    """Most tokens of a prompt, and what makes them as few."""
    answer, longest = config.rollouts.sampling.max_new_tokens, window(policy, config.rollouts)
    if answer >= longest:
        raise ValueError(
            f"rollouts.sampling.max_new_tokens is {answer!r}, and {config.model.label} reads {longest} tokens in all; "
            "lower it"
        )
    wanted = config.data.max_prompt_tokens
    if wanted is not None and wanted > longest - answer:
        raise ValueError(
            f"data.max_prompt_tokens is {wanted!r}, and with {answer} tokens of an answer "
            f"(rollouts.sampling.max_new_tokens) more than the {longest} that {config.model.label} reads; lower one of "
            "them"
        )
    if wanted is not None:
        return wanted, "data.max_prompt_tokens"
    return longest - answer, f"the model's window of {longest} less rollouts.sampling.max_new_tokens"


def _check_system(policy: Policy, tasks: Sequence[Task]) -> None:
    """Raise `ValueError` if the chat template leaves out the first system turn that there is."""
    for task in tasks:
        if isinstance(task.prompt, str) or task.prompt[0]["role"] != "system":
            continue
        other = replace(task, prompt=[{"role": "system", "content": "other words"}, *task.prompt[1:]])
        if policy.encode(task) == policy.encode(other):
            raise ValueError(
                f"the chat template of {policy.name!r} leaves out system turns (data.system, or the first turn of task "
                f"{task.id!r}); put it into the user's turn (data.template), or give another model.chat_template"
            )
        return


def _notes(config: RunFile, policy: Policy, tasks: RunTasks) -> tuple[str, ...]:
    """What people should know before they wait for hours."""
    notes, name = [], config.model.label
    texts: Sequence[Task] = [task for task in tasks.train if isinstance(task.prompt, str)]
    if texts and getattr(policy.tokenizer, "chat_template", None):
        notes.append(
            f"{len(texts)} prompts are texts and {name} has a chat template; data.chat: true makes turns of them"
        )
    if config.rollouts.tasks > len(tasks.train) and config.learning.evolution is None:
        notes.append(
            f"rollouts.tasks is {config.rollouts.tasks}, more than the prompts ({len(tasks.train)}): the answers to "
            "one that is drawn twice in a step make one group"
        )
    if not tasks.held_out:
        notes.append("no prompts are held out, so what is learnt is measured on training prompts alone")
    return tuple(notes)

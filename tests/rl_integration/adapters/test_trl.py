"""TRL's own trainer, on a tiny random model, with rewards scored here and by a server."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import itertools
import json
import math
import os
import pickle
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.engines.tiny_models import tiny_tokenizer, write_model, write_reward_model
from tests.frameworks.pages import blocks, pasted
from tests.rl_integration import mixed_data
from tests.rl_integration.adapters.scripted_scorer import Scripted
from tests.rl_integration.mixed_data import FORMS, called, completions, dataset, expected, steps, trained
from tests.rl_integration.server.conftest import served

from adjudge.engines.head_config import HeadConfig
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.failures import WINDOW, TooManyFailures
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.trl import Rewards, TrlReward

CHATS = [[{"role": "user", "content": f"What is {n} + {n}?"}] for n in range(4)]


class Odd:
    """Scores a tenth of the length; every fourth sample it cannot judge, and the last one it declines."""

    name = "odd"
    fingerprint = "odd:1"

    def __init__(self) -> None:
        self.seen: list[Sample] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        first = len(self.seen)
        self.seen += samples
        return [self._one(first + place, sample) for place, sample in enumerate(samples)]

    def _one(self, place: int, sample: Sample) -> Score:
        if place % 4 == 3:
            return Score.abstained("out_of_scope") if place % 8 == 7 else Score.failed("engine_timeout")
        return Score.scored(len(str(sample.response)) / 10)


def rewarded(reward: TrlReward, **columns: Any) -> list[float | None]:
    return [*reward(prompts=["q"], completions=["\\boxed{2}"], **columns)]


def sums() -> Any:
    from datasets import Dataset

    return Dataset.from_list([{"prompt": chat, "answer": str(2 * n)} for n, chat in enumerate(CHATS)])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_model(tmp_path_factory.mktemp("trl") / "model"))


@pytest.mark.filterwarnings("ignore")  # TRL's and its dependencies' own
def test_a_real_trainer_takes_rewards_from_here_and_from_a_server(model: str, tmp_path: Path) -> None:
    odd = Odd()
    with served({"repetition": "repetition"}, ServerConfig(port=0)) as address:
        rewards = [
            TrlReward(scorer="math", reference="answer"),
            TrlReward(scorer="repetition", server=address, name="remote"),
            TrlReward(scorer=odd, name="odd"),
        ]
        logged = steps(trained(model, str(tmp_path), sums(), rewards))
    assert len(logged) == 2
    for line in logged:
        assert math.isfinite(line["loss"])
        assert line["rewards/math/mean"] == 0.0, "a random model does not add"
        assert line["odd/failed"] == line["odd/out_of_scope"] == 1 / 8
        assert line["math/failed"] == line["remote/failed"] == 0.0
        assert line["rewards/odd/mean"] > 0, "what has no number is left out, and is not a zero"
    assert [*Counter(sample.group for sample in odd.seen[:8]).values()] == [4, 4]
    assert odd.seen[0].prompt in CHATS
    assert odd.seen[0].response[0]["role"] == "assistant"  # type: ignore[index]


@pytest.mark.filterwarnings("ignore")  # TRL's and its dependencies' own
@pytest.mark.parametrize("page", ["trl", "../../README"])
def test_what_the_documents_show_is_a_trainer(page: str, model: str, tmp_path: Path) -> None:
    trl: Any = importlib.import_module("trl")
    config = trl.GRPOConfig(output_dir=str(tmp_path), max_steps=1, max_completion_length=4, use_cpu=True, report_to=[])
    shown = next(place for place, block in enumerate(blocks(page, "from adjudge.")) if "GRPOTrainer" in block)
    given = {"GRPOTrainer": trl.GRPOTrainer, "model": model, "config": config, "dataset": sums()}
    trainer = pasted(page, shown, **given)["trainer"]
    trainer.train()
    assert trainer.state.log_history[0]["math/failed"] == 0.0


@pytest.mark.filterwarnings("ignore")  # TRL's and its dependencies' own
@pytest.mark.parametrize("form", FORMS)
def test_one_data_set_of_sums_and_programs_trains_in_every_form(form: str, model: str, tmp_path: Path) -> None:
    rewards = mixed_data.rewards(form)
    assert [called(reward, form, completions(form)) for reward in rewards] == expected(form)
    logged = steps(trained(model, str(tmp_path), dataset(form), rewards, prompts=4))
    assert len(logged) == 2
    for line in logged:
        for reward, numbers in zip(rewards, expected(form), strict=True):
            assert line[f"rewards/{reward.__name__}/mean"] == 0.0, "a random model neither adds nor programs"
            assert line[f"{reward.__name__}/failed"] == line[f"{reward.__name__}/abstained"] == 0.0
            assert line[f"{reward.__name__}/out_of_scope"] == numbers.count(None) / len(numbers)


class Fixed:
    """A user's own function, with a number or None for each completion of a group of four."""

    def __init__(self, name: str, *numbers: float | None) -> None:
        self.__name__ = name
        self._numbers = numbers

    def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float | None]:
        return [*self._numbers] * (len(completions) // len(self._numbers))


@pytest.mark.filterwarnings("ignore")  # TRL's and its dependencies' own
def test_what_trl_makes_of_none_is_as_documented(model: str, tmp_path: Path) -> None:
    """Alone, None has no vote and the advantage 0; beside another reward it counts as 0."""
    judged = Fixed("judged", None, 1.0, 0.0, 1.0)
    alone = trained(model, str(tmp_path / "alone"), sums(), [judged])
    advantages = list(alone._logs["advantages"])[:4]
    assert advantages[0] == 0.0
    assert sum(advantages) == pytest.approx(0.0, abs=1e-6)
    beside = trained(model, str(tmp_path / "beside"), sums(), [judged, Fixed("form", 0.1, 0.1, 0.1, 0.1)])
    first, _, wrong, _ = list(beside._logs["advantages"])[:4]
    assert first == pytest.approx(wrong)
    assert first < -0.8


def test_trl_awaits_it_where_it_can_and_reads_it_as_a_list_where_not() -> None:
    reward = TrlReward(scorer="math", reference="answer")
    awaits: Any = importlib.import_module("trl.trainer.utils").is_async_callable
    assert awaits(reward)
    assert awaits(pickle.loads(pickle.dumps(reward)))
    assert not inspect.iscoroutinefunction(reward), "what TRL before 1.14 asks"

    async def twice() -> Any:
        columns: dict[str, Any] = {"prompts": ["q"], "completions": ["\\boxed{2}"], "answer": ["2"]}
        return await asyncio.gather(reward(**columns), reward.__call__(**columns))

    assert asyncio.run(twice()) == [[1.0], [1.0]]
    read = reward(["\\boxed{2}", "\\boxed{3}"], prompts=["q", "q"], answer=["2", "2"])
    assert (len(read), read[0], read[:1], list(read), str(read)) == (2, 1.0, [1.0], [1.0, 0.0], "[1.0, 0.0]")
    assert len(inspect.signature(reward).parameters) >= 2, "axolotl refuses others"


def test_ms_swift_gives_chats_in_place_of_prompts() -> None:
    """Completions come first and as text; each row's chat ends with its completion."""
    odd = Odd()
    chat = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
    list(TrlReward(odd, reference="gold")(["2", "3"], messages=[chat, chat], gold=["2", "2"], trainer_state=None))
    assert [(sample.prompt, sample.response, sample.reference) for sample in odd.seen] == [
        (chat[:1], "2", "2"), (chat[:1], "3", "2")
    ]  # fmt: skip


def test_completions_of_one_prompt_have_one_group_in_every_process() -> None:
    image = np.zeros((2, 2), dtype=np.uint8)
    groups = []
    columns: dict[str, Any]
    for columns in ({}, {"image": [image, image, image + 1]}, {"prompt_id": ["a", "b", "b"]}):
        scorer = Scripted()
        for reward in (TrlReward(scorer), TrlReward(scorer)):  # two processes
            reward(["1"] * 3, prompts=["p", "p", "q" if not columns else "p"], **columns)[0]
        groups.append([sample.group for sample in scorer.seen])
    assert [len(set(names)) for names in groups] == [2, 2, 2]
    assert all(names[:3] == names[3:] and len(set(names[:3])) == 2 for names in groups)
    assert groups[2][:3] == ["a", "b", "b"]


def test_rows_with_one_prompt_are_groups_of_their_own() -> None:
    def groups(*asked: str, gold: Sequence[str], number: int | None = None) -> list[str]:
        scorer = Scripted()
        reward = TrlReward(scorer, reference="gold", num_generations=number)
        reward(["1"] * len(asked), prompts=list(asked), gold=list(gold))[0]
        return [sample.group for sample in scorer.seen]

    first, second, third, fourth = groups("p", "p", "p", "p", gold="1199")
    assert first == second != third == fourth, "another reference is another row"
    first, second, third, fourth = groups("p", "p", "p", "p", gold="1111", number=2)
    assert first == second != third == fourth, "two equal rows of two completions each"
    with pytest.raises(ValueError, match="num_generations=4, and from completion 0 on 2 of 'p' came"):
        groups("p", "p", "p", "p", gold="1199", number=4)


def test_a_group_that_several_processes_may_share_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, asked = ["1", "2"] * 2, ["p"] * 2 + ["q"] * 2
    assert list(TrlReward(Scripted(groupwise=True))(answers, prompts=asked)) == [1.0, 2.0, 1.0, 2.0]
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="set Reward\\(num_generations="):
        TrlReward(Scripted(groupwise=True))(answers, prompts=asked)
    with pytest.raises(ValueError, match="num_generations=4, and from completion 0 on 2 of 'p' came"):
        TrlReward(Scripted(groupwise=True), num_generations=4)(answers, prompts=asked)
    assert list(TrlReward(Scripted(groupwise=True), num_generations=2)(answers, prompts=asked)) == [1.0, 2.0, 1.0, 2.0]
    assert list(TrlReward(Scripted())(answers, prompts=asked)) == [1.0, 2.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="num_generations=1; it must be 2 or more"):
        TrlReward(Scripted(), num_generations=1)


def test_an_evaluation_may_have_groups_of_another_size() -> None:
    def groups(*asked: str, **options: Any) -> list[str]:
        scorer = Scripted(groupwise=True)
        TrlReward(scorer, num_generations=4, **options)(["1"] * len(asked), prompts=list(asked))[0]
        return [sample.group for sample in scorer.seen]

    with pytest.raises(ValueError, match="If this is an evaluation with another number, set num_generations_eval"):
        groups("p", "p", "q", "q")
    first, second, third, fourth = groups("p", "p", "q", "q", num_generations_eval=2)
    assert first == second != third == fourth
    assert len(set(groups("p", "p", "p", "p", num_generations_eval=2))) == 1, "of training"
    for wrong in ({"num_generations_eval": 2}, {"num_generations": 2, "group": "gold"}):
        with pytest.raises(ValueError, match="num_generations"):
            TrlReward(Scripted(), **wrong)


def test_a_column_of_the_data_set_divides_no_group_of_trls_own() -> None:
    scorer = Scripted(groupwise=True)
    TrlReward(scorer, num_generations=2)(["1"] * 4, prompts=["p", "p", "q", "q"], prompt_id=["x"] * 4)[0]
    assert len({sample.group for sample in scorer.seen}) == 2


@pytest.mark.parametrize("end", [7, [7, 8], (8, 7), np.array([7]), np.int64(7)], ids=repr)
def test_end_tokens_are_ids(end: Any) -> None:
    reward = TrlReward("math", reference="gold", end_token=end)
    ids = [[5, 7], [5, 6]]
    assert list(reward(["\\boxed{2}"] * 2, prompts=["1+1?"] * 2, gold=["2"] * 2, completion_ids=ids)) == [1.0, 0.0]
    for wrong in ("<|im_end|>", ["<|im_end|>"], True, [7, "7"], 7.0):
        with pytest.raises(ValueError, match=r"give the ids of tokens, such as tokenizer.eos_token_id"):
            TrlReward("math", reference="gold", end_token=wrong)  # type: ignore[arg-type]


def test_a_data_sets_own_columns_are_read() -> None:
    from datasets import Dataset

    rows = Dataset.from_list([{"gold": "2", "kind": "a"}, {"gold": "3", "kind": "b"}])
    scorer = {"by_kind": {"a": "math", "b": "numeric"}}
    for gold in (rows["gold"], ("2", "3"), np.array(["2", "3"])):
        rewards = TrlReward(scorer, reference="gold")(
            ["\\boxed{2}"] * 2, prompts=["?"] * 2, gold=gold, kind=rows["kind"]
        )
        assert rewards == [1.0, 0.0]
        assert rewards != [1.0, 1.0]


def test_several_processes_log_the_same_metrics_where_trl_would_wait_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def logged() -> set[str]:
        names: list[str] = []
        reward = TrlReward({"weighted": {"math": 1, "numeric": 1}}, reference="gold", name="r")
        list(reward(["\\boxed{2}"], prompts=["?"], gold=["2"], log_metric=lambda name, _: names.append(name)))
        return set(names)

    shares = {"r/failed", "r/abstained", "r/out_of_scope"}
    assert logged() == {*shares, "r/part_math", "r/part_numeric"}
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert logged() == {*shares, "r/part_math", "r/part_numeric"}
    monkeypatch.setattr("adjudge.trl.version", lambda _: "1.15.2")
    assert logged() == shares


def test_an_image_in_a_prompt_does_not_keep_it_from_a_server() -> None:
    asked = [{"role": "user", "content": [{"type": "image", "image": object()}, {"type": "text", "text": "1+1?"}]}]
    with served({"math": "math"}, ServerConfig(port=0)) as address:
        reward = TrlReward("math", reference="answer", server=address)
        assert list(reward([[{"role": "assistant", "content": "\\boxed{2}"}]], prompts=[asked], answer=["2"])) == [1.0]


def test_columns_become_extra() -> None:
    odd = Odd()
    state = SimpleNamespace(global_step=3)
    rewarded(
        TrlReward(odd, reference="gold"), gold=["2"], level=[3], meta=[{"a": None}], image=[object()],
        environments=[object()], trainer_state=state, log_extra=lambda *_: None, completion_ids=[[1, 2]],
    )  # fmt: skip
    assert odd.seen[0].extra == {"level": 3, "meta": {"a": None}}


def test_how_far_the_training_is_can_be_told() -> None:
    odd = Odd()
    reward = TrlReward(odd, reference="gold", trainer_state=True)
    state = SimpleNamespace(global_step=3, max_steps=12)
    rewarded(reward, gold=["2"], level=[3], trainer_state=state)
    assert odd.seen[0].extra == {"step": 3, "progress": 0.25, "level": 3}
    rewarded(reward, gold=["2"], progress=[0.5], trainer_state=SimpleNamespace(global_step=3, max_steps=0))
    assert odd.seen[-1].extra == {"step": 3, "progress": 0.5}
    with pytest.raises(ValueError, match="trainer_state=True, and TRL gave none"):
        rewarded(reward, gold=["2"])


@pytest.mark.filterwarnings("ignore")  # TRL's and its dependencies' own
def test_a_reward_model_of_ours_gives_trl_the_numbers_that_it_gives_the_scorer(model: str, tmp_path: Path) -> None:
    """TRL loads the folder as a model of its own; the scorer reads the same answers.

    Control characters are kept out of them: the scorer does not show its model any, and TRL does.
    """
    tokenizer = tiny_tokenizer()
    texts = [str(tokenizer.decode([token])) for token in range(512)]
    odd = [token for token, text in enumerate(texts) if not (text and text.isascii() and text.isprintable())]
    folder = str(write_reward_model(tmp_path / "helpful", HeadConfig(), seed=3))
    scorer = {"reward_model": {"engine": {"transformers": {"model": folder, "dtype": "float32"}}}}
    rewards = [folder, TrlReward(scorer=scorer, name="ours")]
    trainer = trained(model, str(tmp_path / "out"), sums(), rewards, generation_kwargs={"suppress_tokens": odd})
    for line in steps(trainer):
        assert line["rewards/ours/std"] > 0.01
        for number in ("mean", "std"):
            assert line[f"rewards/helpful/{number}"] == pytest.approx(line[f"rewards/ours/{number}"], abs=1e-5)


@contextmanager
def vllm_in_name(texts: Sequence[str], others: threading.Event) -> Iterator[str]:
    """Answer what AsyncGRPO's worker asks a vLLM server: each prompt with the texts in turn.

    Only the first prompt is answered at once; the others wait for the event.
    """
    tokenizer = tiny_tokenizer()
    answers = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    turns: dict[tuple[int, ...], Iterator[list[int]]] = {}
    turn = threading.Lock()

    class Completions(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            prompt = tuple(json.loads(self.rfile.read(int(self.headers["content-length"])))["prompt"])
            with turn:
                ids = next(turns.setdefault(prompt, itertools.cycle(answers)))
                first = prompt == next(iter(turns))
            assert first or others.wait(60)
            choice = {"token_ids": ids, "logprobs": {"token_logprobs": [-1.0] * len(ids)}}
            body = json.dumps({"choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Completions) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(30)


@pytest.mark.filterwarnings("ignore")  # TRL's and its dependencies' own
def test_the_asynchronous_trainers_worker_takes_it_into_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRL's own worker, in the process it spawns: a group is scored; then one that cannot be ends the run, in words."""
    from accelerate.state import PartialState
    from datasets import Dataset

    without = Path(__file__).parents[2] / "without"  # what TRL imports there where it finds it, and does not need
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(without), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("ADJUDGE_TEST_WITHOUT", "sklearn,scipy,vllm,peft,openai")
    PartialState()  # TRL's loggers want it, and a trainer makes it
    rollouts: Any = importlib.import_module("trl.experimental.async_grpo.async_rollout_worker")
    chats: Any = importlib.import_module("trl.chat_template_utils")
    tokenizer = tiny_tokenizer(chat=chats.qwen2_5_chat_template)
    rows = Dataset.from_list([{"prompt": CHATS[1], "answer": "2"}, {"prompt": CHATS[2], "answer": "\\frac{1}{"}])
    others = threading.Event()
    with vllm_in_name(["\\boxed{2}", "\\boxed{3}"], others) as address:
        worker = rollouts.AsyncRolloutWorker(
            model_name="tiny",
            dataset=rows,
            reward_funcs=[TrlReward(scorer="math", reference="answer", max_failed=0)],
            processing_class=tokenizer,
            eos_token_ids=[tokenizer.eos_token_id],
            num_generations=2,
            max_inflight_tasks=2,
            vllm_server_url=address,
        )
        worker.start()
        try:
            first = [worker.rollout_buffer.get(timeout=1200) for _ in range(2)]
            others.set()
            # What `check_health` raises; it does not wait for it, so that it sometimes has nothing to say.
            kind, message, _ = worker._exception_info_queue.get(timeout=1200)
            assert worker._failed_event.wait(60)
        finally:
            others.set()
            worker.stop()
    assert {(sample.metrics["rewards/math"], round(sample.advantage, 3)) for sample in first} == {(1, 1), (0, -1)}
    assert kind == "TooManyFailures"
    assert "1 of the latest 64 samples could not be judged" in message
    assert "gold_unparsable" in message


def test_it_can_be_sent_to_another_process() -> None:
    reward = pickle.loads(pickle.dumps(TrlReward(scorer="math", reference="answer")))
    assert reward.__name__ == "math"
    assert rewarded(reward, answer=["2"]) == [1.0]
    again = pickle.loads(pickle.dumps(reward))
    assert rewarded(again, answer=["3"]) == [0.0], "also after it was used"


def test_completions_that_do_not_end_are_seen_as_cut_off() -> None:
    reward = TrlReward(scorer="math", reference="answer", end_token=7)
    assert rewarded(reward, completion_ids=[[1, 7]], answer=["2"]) == [1.0]
    odd = Odd()
    list(TrlReward(scorer=odd, end_token=7)(prompts=["q"] * 3, completions=["a"] * 3, completion_ids=[[7], [1], []]))
    assert [sample.finish_reason for sample in odd.seen] == ["stop", "length", None]

    with pytest.raises(ValueError, match="end_token=7, and no completion_ids came"):
        rewarded(reward, answer=["2"])
    swift = reward(["\\boxed{2}"], messages=[None], answer=["2"], finish_reason=["stop"])
    assert swift == [1.0], "ms-swift says itself how a completion ended"


def test_mistakes_stop_the_run() -> None:
    with pytest.raises(ValueError, match="no 'answer' with the reference; it has gold"):
        rewarded(TrlReward(scorer="math", reference="answer"), gold=["2"])
    with pytest.raises(ValueError, match="no 'data_source' with the data_source; it has gold"):
        rewarded(TrlReward(scorers={"gsm8k": "math"}, reference="gold"), gold=["2"])
    with pytest.raises(ValueError, match="data_source 'aime' has no scorer; `scorers` names gsm8k"):
        rewarded(TrlReward(scorers={"gsm8k": "math"}, reference="gold"), gold=["2"], data_source=["aime"])
    with pytest.raises(ValueError, match="maths"):
        TrlReward(scorer="maths")
    with pytest.raises(ValueError, match="max_failed=2"):
        TrlReward(scorer="math", max_failed=2)
    broken = TrlReward(scorer="math", reference="answer")
    for _ in range(WINDOW // 2):
        assert rewarded(broken, answer=["\\frac{1}{"]) == [None]
    with pytest.raises(TooManyFailures, match=r"33 of the latest 64 samples could not be judged.*gold_unparsable"):
        rewarded(broken, answer=["\\frac{1}{"])
    marked = TrlReward(scorer="math", reference="answer", fallback=-1.0)
    assert rewarded(marked, answer=["\\frac{1}{"]) == [-1.0], "the user's number for what could not be judged"
    assert rewarded(marked, answer=[None]) == [None], "but none for a row that the reward is not for"


def speed(prompt: str, response: str) -> float:
    return 1.0


def test_rewards_have_the_names_of_what_scores() -> None:
    names = [TrlReward(spec, reference="a").__name__ for spec in ("math", speed, {"by_kind": {"a": "math"}})]
    assert names == ["math", "speed", "by_kind"]
    assert TrlReward({"weighted": {"format": 1}}, name="form").__name__ == "form"


@pytest.mark.parametrize("spec", ["math", "auto", {"weighted": {"math": 1.0, "format": 0.1}}])
def test_a_scorer_that_compares_is_told_which_column_at_once(spec: Any) -> None:
    with pytest.raises(ValueError, match="compares with a reference, and nothing says where a row of TRL has one"):
        TrlReward(spec)


def test_a_row_of_a_kind_without_a_scorer_is_out_of_scope() -> None:
    reward = TrlReward({"by_kind": {"sum": "math"}}, reference="ref")
    found = reward(["4", "Hello"], prompts=["2 + 2?", "Say hello."], kind=["sum", "chat"], ref=["4", None])
    assert list(found) == [1.0, None]


def test_the_first_failure_is_told_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    reward = TrlReward({"by_kind": {"sum": "math"}}, reference="ref")
    for _ in range(2):
        assert list(reward(["4", "4"], prompts=["?", "?"], kind=["sum", None], ref=["4", "4"])) == [1.0, None]
    assert [record.getMessage()[:45] for record in caplog.records] == ["a sample could not be judged (bad_sample): {'"]


def test_rewards_are_scored_at_the_same_time_in_several_threads() -> None:
    both = threading.Barrier(2, timeout=60.0)

    async def ask() -> list[float | None]:
        await asyncio.to_thread(both.wait)
        return [1.0]

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(list, [Rewards(ask), Rewards(ask)])) == [[1.0], [1.0]]

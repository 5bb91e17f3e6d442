"""The application: the routes, what becomes of errors, and what stands in front of them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from itertools import accumulate
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException

from adjudge.rl_integration.server.base.access import Host
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.base.errors import REFUSALS, HttpError, JsonAnswer, bad_request, json_bytes
from adjudge.rl_integration.server.base.json_bodies import JsonRoute, aside, aside_if_large, samples_of
from adjudge.rl_integration.server.base.score_log import ScoreLog
from adjudge.rl_integration.server.dashboard.board import Board, Shown, dashboard
from adjudge.rl_integration.server.dialects.eval_protocol import eval_protocol
from adjudge.rl_integration.server.dialects.nemo_gym import nemo_gym
from adjudge.rl_integration.server.dialects.open_rlhf import open_rlhf
from adjudge.rl_integration.server.dialects.pooling import pooling
from adjudge.rl_integration.server.dialects.programs import open_instruct, sandbox_fusion
from adjudge.rl_integration.server.dialects.slime import slime
from adjudge.rl_integration.server.middleware import RequestMiddleware, Tokens
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.service.stats import BINS, LOWEST, PER_OCTAVE, LaneStats
from adjudge.rl_integration.watch.panel import WatchPanel

_MAX_KEY = 128  # characters


class ScoreRequest(BaseModel):
    """Samples, and which scorer judges them."""

    model_config = ConfigDict(extra="forbid")

    scorer: str | None = Field(None, description="Which scorer; may be left out where there is one.")
    sample: dict[str, Any] | None = Field(None, description="One sample: prompt, response, reference, ...")
    samples: list[Any] | None = Field(None, description="Many samples; give these or one.")
    traffic: Literal["train", "eval"] = Field("train", description="Training gets three quarters while both wait.")
    within: float | None = Field(None, ge=0, description="Seconds after which nobody needs the answer.")
    idempotency_key: str = Field(
        "", max_length=_MAX_KEY, description="As the header: a repeated request is not paid twice."
    )
    stream: bool = Field(False, description="Answer with a line of JSON for each score as it comes.")

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, data: Any) -> Any:  # at the first unknown one: an error for each of a million takes seconds
        unknown = (
            next((name for name in data if name not in cls.model_fields), None) if isinstance(data, dict) else None
        )
        if unknown is not None:
            told = {"name": repr(str(unknown)[:80]), "known": ", ".join(cls.model_fields)}
            raise PydanticCustomError("unknown_field", "there is no field {name}; the fields are {known}", told)
        return data


class ScoreBody(BaseModel):
    """One score, as `Score.to_dict` gives it."""

    value: float | None = Field(description="Finite; none exactly where the status is not scored.")
    status: Literal["scored", "abstained", "failed"]
    reason: str
    steps: list[dict[str, Any]]
    parts: dict[str, dict[str, Any]]
    evidence: dict[str, Any]
    uncertainty: float | None
    provenance: dict[str, str]
    cost: dict[str, float]


class ScoreAnswer(BaseModel):
    """One score for each sample, in order."""

    scores: list[ScoreBody]
    request_id: str
    idempotency_key: str = Field(description="The request's; an answer with another one is not this request's.")


class ScorerBody(BaseModel):
    """A scorer, and what waits for it."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    scorer: str
    fingerprint: str
    generation: int
    state: str
    waiting: int
    running: int


class ScorersAnswer(BaseModel):
    """The scorers, in the order they were named."""

    scorers: list[ScorerBody]


_SCORED: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ScoreAnswer,
        "description": "The scores; with `stream`, a line with an index and a score for each as it comes.",
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
    }
}

_KEYED = {  # for the documentation; as FastAPI's own header it takes a tenth of a request's time
    "parameters": [
        {
            "name": "idempotency-key",
            "in": "header",
            "schema": {"type": "string", "maxLength": _MAX_KEY, "default": ""},
            "description": "A repeated request with the same key is not paid twice.",
        },
        {
            "name": "within",
            "in": "header",
            "schema": {"type": "number", "minimum": 0},
            "description": "As in the body; what is left of it in a repeated request, whose body stays the same.",
        },
    ]
}


def native(host: Host, board: Shown, router: APIRouter) -> None:
    """Add the routes."""

    @router.post("/v1/score", summary="Score one sample or many", responses=_SCORED, openapi_extra=_KEYED)
    async def score(request: Request, asked: ScoreRequest) -> Response:
        scorer = host.only_scorer(asked.scorer)
        if (asked.sample is None) == (asked.samples is None):
            raise bad_request("give either sample or samples")
        key = request.headers.get("idempotency-key") or asked.idempotency_key
        if len(key) > _MAX_KEY:
            raise bad_request(f"the idempotency key has {len(key)} characters, and at most {_MAX_KEY} are taken")
        if key and asked.stream:
            raise bad_request("an idempotency key keeps whole answers, and stream has none; leave out one of the two")
        within = _within(request, asked)
        rows = [asked.sample] if asked.samples is None else asked.samples
        samples = await aside_if_large(request, lambda: samples_of(rows, host.config.max_samples))

        async def lines() -> AsyncIterator[bytes]:
            try:
                scores = host.stream(request, scorer, samples, traffic=asked.traffic, within=within)
                async for index, one in scores:
                    yield json_bytes({"index": index, "score": one.to_dict()}) + b"\n"
            except HttpError as error:
                refusal = {"code": error.code, "message": error.message, "retry_after": error.retry_after}
                yield json_bytes({"error": refusal}) + b"\n"

        if asked.stream:
            return StreamingResponse(lines(), media_type="application/x-ndjson")

        async def work() -> bytes:
            scores = await host.score(request, scorer, samples, traffic=asked.traffic, within=within)
            names = {"request_id": request.state.request_id, "idempotency_key": key}
            return await aside(len(scores), lambda: json_bytes({"scores": [one.to_dict() for one in scores], **names}))

        body = await host.once(request, key, work)
        return Response(body, media_type="application/json")

    @router.get("/v1/scorers", summary="List the scorers")
    async def scorers() -> ScorersAnswer:
        lanes, _ = await asyncio.to_thread(board.lanes)
        return ScorersAnswer(scorers=[ScorerBody.model_validate(one) for one in lanes])


def _within(request: Request, asked: ScoreRequest) -> float | None:
    """Return the seconds that the caller waits; what a second try has left comes as a header beside the same body."""
    said = request.headers.get("within")
    if said is None:
        return asked.within
    try:
        left = float(said)
    except ValueError:
        left = math.nan
    if not left >= 0:
        raise bad_request(f"the header within is {said!r:.80}; it must be a number of seconds")
    return left if asked.within is None else min(left, asked.within)


_NOW = {"waiting": "samples accepted and not begun", "running": "samples being scored"}
"""Of each replica, where there are some; everything else is the sum of all that there ever were."""

_REWARD_SUM = "sum of all values that were given; over the scored ones, the mean reward"
_COUNTERS = {
    "accepted": "samples accepted",
    "refused": "samples refused",
    "shared": "scores that an equal sample's computation gave",
    "given_up": "samples accepted whose client left before their score came",
    "calls": "calls of the scorer",
    "empty_calls": "calls of the scorer that gave no score at all",
    "suspensions": "times the scorer was suspended",
    "threads_left": "threads that a blocking scorer took with it",
    "seconds": "seconds that calls of the scorer took",
    "queued": "seconds that samples waited",
}


class LaneCollector:
    """Turns the service's numbers into metrics when they are asked for."""

    def __init__(self, host: Host, board: Shown) -> None:
        self._host = host
        self._board = board

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        lanes, replicas = self._board.lanes()
        labels = ["scorer", "replica"] if replicas else ["scorer"]
        each = [([lane.name, name], lane) for name, own in replicas.items() for lane in own]
        each = each or [([lane.name], lane) for lane in lanes]
        for name, text in _NOW.items():
            now = GaugeMetricFamily(f"adjudge_{name}", text, labels=labels)
            for values, lane in each:
                now.add_metric(values, float(getattr(lane, name)))
            yield now
        yield _family(GaugeMetricFamily("adjudge_reward_sum", _REWARD_SUM, labels=["scorer"]), lanes, "reward_sum")
        for name, text in _COUNTERS.items():
            yield _family(CounterMetricFamily(f"adjudge_{name}", text, labels=["scorer"]), lanes, name)
        suspended = GaugeMetricFamily("adjudge_suspended", "1 while the scorer rests", labels=labels)
        for values, lane in each:
            suspended.add_metric(values, float(lane.state != "closed"))
        scores = CounterMetricFamily("adjudge_scores", "scores given", labels=["scorer", "status", "reason"])
        for lane in lanes:
            for reason, count in lane.reasons.items():
                status, _, code = reason.partition(" ")
                scores.add_metric([lane.name, status, code], count)
        yield suspended
        yield scores
        yield _latencies(lanes)
        if self._host.score_log is not None:
            text = "lines of the score log that could not be written"
            yield CounterMetricFamily("adjudge_score_log_lost", text, value=self._host.score_log.lost)


def health(host: Host, board: Shown) -> APIRouter:
    """Return the routes."""
    router = APIRouter()
    registry = CollectorRegistry()
    registry.register(LaneCollector(host, board))

    @router.get("/healthz", summary="Whether the server lives")
    @router.get("/health", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @router.get("/readyz", summary="Whether every scorer takes samples")
    async def readyz() -> JSONResponse:
        resting = [lane.name for lane in host.service.stats() if lane.state == "open"]
        if board.draining:
            return JSONResponse({"status": "draining"}, 503, headers={"Retry-After": "5"})
        if resting:
            return JSONResponse({"status": "suspended", "scorers": resting}, 503, headers={"Retry-After": "1"})
        return JSONResponse({"status": "ready"})

    @router.get("/metrics", summary="Numbers for Prometheus", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(await asyncio.to_thread(generate_latest, registry), media_type=CONTENT_TYPE_LATEST)

    return router


def _family(family: Any, lanes: list[LaneStats], attribute: str) -> Metric:
    for lane in lanes:
        family.add_metric([lane.name], float(getattr(lane, attribute)))
    metric: Metric = family
    return metric


def _latencies(lanes: list[LaneStats]) -> Metric:
    text = "seconds from a sample's acceptance to its score"
    family = HistogramMetricFamily("adjudge_latency_seconds", text, labels=["scorer"])
    for lane in lanes:
        passed = list(accumulate(lane.latency))  # the last bin holds whatever took longer
        edges = [(f"{LOWEST * 2**octave:g}", passed[octave * PER_OCTAVE]) for octave in range(BINS // PER_OCTAVE)]
        family.add_metric([lane.name], [*edges, ("+Inf", passed[-1])], lane.latency_sum)
    return family


DIALECTS = (open_rlhf, slime, nemo_gym, pooling, sandbox_fusion, open_instruct, eval_protocol)
"""Other frameworks' routes."""

_CODES = {404: "no_such_route", 405: "wrong_method"}


def application(
    service: RewardService, config: ServerConfig, panel: WatchPanel | None = None, board: Shown | None = None
) -> FastAPI:
    """Return the server's ASGI application; it drains the service when it is shut down.

    Args:
        service: what scores.
        config: the server's limits.
        panel: the service's watch, for the page at `/`; None if it has none.
        board: the numbers that are shown; by default those of this process and its panel.

    Raises:
        ValueError: the file of tokens cannot be used, or the score log cannot be written, or the
            file of the history holds none.
    """
    tokens = Tokens.read(config.tokens) if config.tokens else None
    score_log = ScoreLog(config.score_log, config.score_log_bytes) if config.score_log else None
    host = Host(service, config, score_log)
    board = board or Board(service, config, panel)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if score_log is not None:
            score_log.start()
        async with board.ticking():
            yield
        board.draining = True
        await service.drain(config.drain_seconds)
        await asyncio.to_thread(board.close)
        if score_log is not None:
            score_log.close()

    app = FastAPI(
        title="adjudge",
        version=version("adjudge"),
        summary="Is this answer good?  Scores what language models write.",
        lifespan=lifespan,
        responses=REFUSALS,
        default_response_class=JsonAnswer,
    )
    strict, others = APIRouter(route_class=JsonRoute), APIRouter(route_class=JsonRoute)
    native(host, board, strict)
    for dialect in DIALECTS:
        dialect(host, others)
    for router in (strict, health(host, board), others, dashboard(board)):
        app.include_router(router)
    for kind in (HttpError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _told)
    app.add_middleware(RequestMiddleware, config=config, tokens=tokens)
    return app


async def _told(request: Request, error: Exception) -> JsonAnswer:
    match error:
        case HttpError():
            told = error
        case RequestValidationError():
            first: dict[str, Any] = dict(error.errors()[0])
            place = ".".join(str(part) for part in first["loc"][1:]) or "the body"
            told = bad_request(f"{place}: {first['msg']}")
        case HTTPException():
            told = HttpError(error.status_code, _CODES.get(error.status_code, "bad_request"), str(error.detail))
        case _:
            message = "a fault of adjudge or of a scorer that is plugged into it; the log has the request's id"
            told = HttpError(500, "fault", message)
    request.state.log = getattr(request.state, "log", {}) | told.logged()
    return told.response(getattr(request.state, "request_id", ""))

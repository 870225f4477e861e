"""What there is to ask for, as an application of FastAPI, which also describes it (``/openapi.json``)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from plait.errors import NotAllowedError, OptionError, PlacedError, PlaitError, SqlError, UserError
from plait.plan.explain import ExplainFormat
from plait.server.desk import BusyError, Desk
from plait.server.event_feed import CrowdedError, EventFeed, Place
from plait.server.limits import Limits
from plait.server.metrics import metrics_text
from plait.server.page_files import page_files
from plait.server.served import Json, Served
from plait.server.snapshots import Snapshots
from plait.spelling import did_you_mean, plural
from plait.sql.script.remote import Remote, read_remote_queries, read_remote_query, refuse_remote_condition
from plait.sql.statements import CreateQuery
from plait.version import __version__

_JSON: Final = "application/json"
_PLAN_KINDS: Final[dict[str, str]] = {"json": _JSON, "text": "text/plain", "mermaid": "text/plain"}

_TOO_DEEP: Final = "the query is nested too deeply to be read; write it flatter"

Name = Annotated[str, Path(max_length=200, description="The name of a query.")]
Names = Annotated[list[str] | None, Query(max_length=1000, description="The names of queries.")]


class NoSuchQueryError(OptionError):
    """There is no query of the name that is asked for."""


class TakenError(OptionError):
    """There is a query of the name already."""


class FullError(OptionError):
    """There are as many queries as may be."""


@dataclass(slots=True, kw_only=True)
class Counterpart:
    """Everything that requests are answered from. `allowed`: what a query that comes in may say."""

    served: Served
    allowed: Remote
    limits: Limits
    feed: EventFeed
    desk: Desk
    status: Snapshots = field(init=False)
    plans: Snapshots = field(init=False)

    def __post_init__(self) -> None:
        self.status = Snapshots(self.limits.snapshot_seconds)
        self.plans = Snapshots(self.limits.plan_seconds)

    async def shown(self, key: str, make: Callable[[], Any]) -> Response:
        """Return what is made at most so often, as JSON."""
        return Response(await self._made(key, lambda: _json(make())), media_type=_JSON)

    async def text(self, key: str, make: Callable[[], str]) -> bytes:
        """Return what is made at most so often, as text."""
        return await self._made(key, lambda: make().encode())

    async def _made(self, key: str, make: Callable[[], bytes]) -> bytes:
        made = self.status.fresh(key)
        return made if made is not None else await self.desk.ask("look", lambda: self.status.of(key, make))

    def preview(self, text: str, dropped: list[str]) -> Json:
        """Return what it would cost to add the queries of a text and drop others. Raises PlaitError."""
        added = read_remote_queries(text, self.allowed) if text.strip() else ()
        return self.served.preview(added, dropped)

    def add(self, text: str, *, replaces: bool) -> Json:
        """Have a query added. Raises PlaitError."""
        statement = self.checked(text, replaces=replaces)
        try:
            added = self.served.add(statement, replaces=replaces)
        except RecursionError as error:
            raise SqlError(_TOO_DEEP, line=1, column=1) from error
        self.forget()
        return added

    def check(self, text: str) -> Json:
        """Return what is wrong with a query that might be added, as ``error``, which is None if nothing is."""
        try:
            self.served.check(self.checked(text, replaces=False))
        except RecursionError:
            return {"error": _TOO_DEEP, "line": 1, "column": 1}
        except PlaitError as error:
            return _mistake(error)
        return {"error": None}

    def checked(self, text: str, *, replaces: bool) -> CreateQuery:
        """Return what a text says, if it can be let in. Raises PlaitError."""
        statement = read_remote_query(text, self.allowed)
        names = self.served.names()
        if statement.name in names and not replaces:
            raise TakenError(f"query '{statement.name}' exists already; drop it first, or ask with ?replace=true")
        if statement.name not in names and len(names) >= self.limits.queries:
            raise FullError(f"there are {plural(len(names), 'query', 'queries')}, as many as may be; drop one first")
        return statement

    def why(self, name: str, row: str) -> Json:
        """Return what has become of a row. Raises PlaitError for a condition that may not be asked from outside."""
        self.require(name)
        refuse_remote_condition(row)
        return self.served.why(name, row)

    def drop(self, name: str) -> None:
        """Have a query dropped. Raises NoSuchQueryError."""
        self.require(name)
        self.served.drop(name)
        self.forget()

    def require(self, name: str) -> Json:
        """Return a query. Raises NoSuchQueryError."""
        found = self.served.query(name)
        if found is None:
            names = self.served.names()
            raise NoSuchQueryError(f"there is no query '{name[:100]}'{did_you_mean(name[:100], names)}")
        return found

    def forget(self) -> None:
        """Let everything be looked at anew."""
        self.status.forget()
        self.plans.forget()


class Listening(StreamingResponse):
    """The events, as long as somebody listens. However that ends, and be it before a word is sent, the place is free
    again: a stream that nobody has begun to read is never told that nobody will.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place.frames(), media_type="text/event-stream")
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._place.leave()


def application(counterpart: Counterpart) -> FastAPI:
    """Return the application."""
    app = FastAPI(
        title="Plait",
        version=__version__,
        description="A running engine of continuous join queries.",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_page(app)
    _add_looking(app, counterpart)
    _add_changing(app, counterpart)
    app.add_exception_handler(Exception, _unexpected)
    app.add_exception_handler(PlaitError, _told)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(RequestValidationError, _misfit)
    return app


def _add_page(app: FastAPI) -> None:
    files = page_files()

    async def page(request: Request) -> Response:
        content, kind = files[request.url.path]
        return Response(content, media_type=kind)

    for path in files:
        app.add_api_route(path, page, include_in_schema=False)


def _add_looking(app: FastAPI, counterpart: Counterpart) -> None:
    served = counterpart.served

    @app.get("/status", summary="The state of the engine: the last batch, totals, lag, who holds the watermark")
    async def status() -> Response:
        return await counterpart.shown("status", served.status)

    @app.get("/queries", summary="All queries, those that wait to be taken up among them")
    async def queries() -> Response:
        return await counterpart.shown("queries", lambda: {"queries": list(served.queries())})

    @app.get("/queries/{name}", summary="One query, with its part of the plan if `plan` is true")
    async def query(name: Name, plan: bool = False) -> Response:
        found = await counterpart.desk.ask("look", lambda: counterpart.require(name))
        if plan and found["state"] != "refused":
            found = {**found, "plan": await counterpart.desk.ask("look", lambda: served.plan("text", [name]))}
        return Response(_json(found), media_type=_JSON)

    @app.get("/queries/{name}/rows", summary="What a query has written lately, as far as its sink is one of files")
    async def rows(name: Name) -> Response:
        await counterpart.desk.ask("look", lambda: counterpart.require(name))
        return Response(_json(await counterpart.desk.ask("look", lambda: served.last_rows(name))), media_type=_JSON)

    @app.get(
        "/queries/{name}/why", summary="Why there is no result of a row yet: `row` is a condition such as o.id = 17"
    )
    async def why(name: Name, row: Annotated[str, Query(min_length=1, max_length=2000)]) -> Response:
        told = await counterpart.desk.ask("question", lambda: counterpart.why(name, row))
        return Response(_json(told), media_type=_JSON)

    @app.get("/plan", summary="The plan in force")
    async def plan(format: ExplainFormat = "json", query: Names = None) -> Response:
        names = tuple(query or ())
        key = (format, *names)
        made = counterpart.plans.fresh(key)
        if made is None:
            made = await counterpart.desk.ask(
                "look", lambda: counterpart.plans.of(key, lambda: served.plan(format, names).encode())
            )
        return Response(made, media_type=_PLAN_KINDS[format])

    @app.get("/plan/history", summary="Which plan was in force when, why, and what it brought")
    async def history() -> Response:
        return await counterpart.shown("history", served.history)

    @app.get("/metrics", summary="All numbers as Prometheus reads them")
    async def metrics() -> Response:
        made = await counterpart.text("metrics", lambda: metrics_text(served.status(), served.queries()))
        return Response(made, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/events", summary="Every batch and change of plan as it happens (server-sent events)")
    async def events(request: Request) -> Response:
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else 0
        return Listening(counterpart.feed.place(after))


def _add_changing(app: FastAPI, counterpart: Counterpart) -> None:
    body = {"requestBody": {"required": True, "content": {"application/sql": {"schema": {"type": "string"}}}}}

    @app.post(
        "/queries",
        status_code=202,
        summary="Add a query: the text of CREATE QUERY. It takes part from the next batch on",
        openapi_extra=body,
    )
    async def add(request: Request, replace: bool = False) -> Response:
        text = _text(await request.body())
        added = await counterpart.desk.ask("change", lambda: counterpart.add(text, replaces=replace))
        return Response(_json(added), status_code=202, media_type=_JSON)

    @app.post("/check", summary="What is wrong with a query, as far as can be told at once", openapi_extra=body)
    async def check(request: Request) -> Response:
        text = _text(await request.body())
        told = await counterpart.desk.ask("look", lambda: counterpart.check(text))
        return Response(_json(told), media_type=_JSON)

    @app.post(
        "/preview",
        summary="What it would cost, and share, to add queries (several CREATE QUERY) and drop others; changes nothing",
        openapi_extra=body,
    )
    async def preview(request: Request, drop: Names = None) -> Response:
        text = _text(await request.body())
        told = await counterpart.desk.ask("question", lambda: counterpart.preview(text, list(drop or ())))
        return Response(_json(told), media_type=_JSON)

    @app.delete("/queries/{name}", status_code=202, summary="Drop a query at the next boundary between two batches")
    async def drop(name: Name) -> Response:
        await counterpart.desk.ask("change", lambda: counterpart.drop(name))
        return Response(_json({"name": name, "dropped": True}), status_code=202, media_type=_JSON)


def _text(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OptionError(f"the body is not UTF-8 text (byte {error.start})") from error
    if "\0" in text:
        raise OptionError("the body has a character of number 0 in it; SQL has none")
    return text


def _json(value: Any) -> bytes:
    return json.dumps(value, default=str, separators=(",", ":")).encode()


def _told(_: Request, error: Exception) -> JSONResponse:
    """Say what is wrong with a request, and where in its text."""
    return JSONResponse(_mistake(error), status_code=_status_of(error))


def _mistake(error: Exception) -> dict[str, Any]:
    if isinstance(error, PlacedError):
        return {"error": error.message, "line": error.line, "column": error.column}
    return {"error": str(error)}


def _status_of(error: Exception) -> int:
    match error:
        case NotAllowedError():
            return 403
        case NoSuchQueryError():
            return 404
        case TakenError() | FullError():
            return 409
        case BusyError() | CrowdedError():
            return 503
        case UserError() | PlacedError():
            return 422
        case _:
            return 500


def _of_http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, status_code=error.status_code, headers=error.headers)


def _misfit(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    told = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())
    return JSONResponse({"error": told}, status_code=422)


def _unexpected(_: Request, error: Exception) -> JSONResponse:
    """Say nothing of what is inside."""
    told = f"unexpected {type(error).__name__}; nothing was changed that the status does not show"
    return JSONResponse({"error": told}, status_code=500)


__all__ = ["Counterpart", "application"]

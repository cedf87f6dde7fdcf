"""The process that talks to browsers. It holds one listening socket, the folders of runs, and no rights.

Its parent (`page.viewer`) hands it the socket and the folders; what it wants of a lab it asks its parent
for, through a Unix socket. It ends when its parent does.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import shutil
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from common.client import ControlClient, ControlError
from common.linux.rights import drop_rights
from page.browser_files import MEDIA_TYPES, browser_files
from page.feed import BATCH_LINES, LIVE_LINES_MAX, Feed
from page.request_handler import OPERATIONS

# Who may talk to the page's server: the token in the address, Host, Origin; and what the page may load.
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HTTP_PORT = 80
"""Browsers leave it out of Host and Origin."""
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """Lets a request through to `app` when it knows the token and comes from the page itself.

    The path loses the token on the way. Without the token every path is 404.
    """

    def __init__(self, app: App, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        ends = [f":{port}", ""] if port == HTTP_PORT else [f":{port}"]
        self._hosts = {f"{name}{end}".encode() for name in ("127.0.0.1", "localhost") for end in ends}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, why = self._judged(scope)
        if status != 200:
            await refuse(send, status, why)
            return

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        _, _, rest = scope["path"].removeprefix("/").partition("/")
        await self._app(
            {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode(), "root_path": ""}, receive, with_headers
        )

    def _judged(self, scope: Scope) -> tuple[int, str]:
        if values(scope, b"host") - self._hosts or not values(scope, b"host"):
            return 421, "this server answers at 127.0.0.1 and localhost only"
        origins = values(scope, b"origin")
        if origins - self._origins or (scope["method"] != "GET" and not origins):
            return 403, "only the page itself may ask"
        if values(scope, b"sec-fetch-site") - {b"same-origin", b"none"}:
            return 403, "only the page itself may ask"
        token, slash, _ = scope["path"].removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self._token):
            return 404, "not found"
        return 200, ""


def values(scope: Scope, name: bytes) -> set[bytes]:
    """All values of a header."""
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return {value for key, value in headers if key == name}


async def refuse(send: Send, status: int, why: str) -> None:
    """A short answer in plain text."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": why.encode() + b"\n"})


# The page's server without its sockets: pages, scenes, events, and questions that are passed on to the lab's process.
# Starlette finds the way; the stream of events is plain ASGI, because it watches how slowly a viewer reads.
POLL_S = 0.2
BEAT_S = 10.0  # a comment now and then, which finds out who has gone
FINISH_S = 3.0  # for viewers to be told the end of a run
SLOW_S = 20.0  # a viewer that takes nothing for so long is dropped; its browser comes back by itself
VIEWERS_MAX = 64
LANE_DIGITS_MAX = 3
BODY_BYTES_MAX = 4096

Ask = Callable[[dict[str, Any]], dict[str, Any]]
"""Passes a request on to the lab's process; the answer is `{"ok", "result" | "error"}`."""


class Site:
    """The application for one view. `scene` is `scene.json`; there is a feed for each of its lanes."""

    def __init__(self, scene: bytes, feeds: Sequence[Feed], ask: Ask) -> None:
        self._files = browser_files()  # read once: the server may lose the right to read them
        self._scene = scene
        self._feeds = feeds
        self._ask = ask
        self._viewers = 0
        self.app = Starlette(
            routes=[
                Route("/", self._index),
                Route("/scene.json", self._scene_json),
                Route("/page/{name:path}", self._file),
                Route("/events/{lane}", _Stream(self)),
                Route("/ask", self._pass_on, methods=["POST"]),
            ]
        )

    async def rehearse(self) -> None:
        """Serves one dummy request of each kind, so that lazy imports happen now."""
        for method, path in (
            ("GET", "/"),
            ("GET", "/scene.json"),
            ("GET", "/page/none"),
            ("POST", "/ask"),
            ("GET", "/none"),
        ):
            scope = {
                "type": "http",
                "method": method,
                "path": path,
                "root_path": "",
                "query_string": b"",
                "headers": [],
            }
            await self.app(scope, _nothing, _nobody)
        await asyncio.to_thread(self._ask, {"op": None})

    async def finish(self) -> None:
        """Returns when every viewer has been told everything, or after a while."""
        for _ in range(round(FINISH_S / POLL_S)):
            if not self._viewers or not all(feed.over() for feed in self._feeds):
                return
            await asyncio.sleep(POLL_S)

    async def watch(self) -> None:
        """Reads what runs journal, for as long as they do."""
        while not all(await asyncio.gather(*(asyncio.to_thread(look, feed) for feed in self._feeds))):
            await asyncio.sleep(POLL_S)

    async def _index(self, request: Request) -> Response:
        return Response(self._files["index.html"], media_type=MEDIA_TYPES[".html"])

    async def _scene_json(self, request: Request) -> Response:
        return Response(self._scene, media_type="application/json")

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            return Response("not found\n", 404, media_type="text/plain")
        return Response(self._files[name], media_type=MEDIA_TYPES[Path(name).suffix])

    async def _pass_on(self, request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > BODY_BYTES_MAX:
                return JSONResponse({"ok": False, "error": f"a request above {BODY_BYTES_MAX} bytes"}, 413)
        try:
            asked = json.loads(body.decode())  # bytes would have their encoding guessed
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            return JSONResponse({"ok": False, "error": 'a request is an object such as {"op": "heal"}'}, 400)
        answer = await asyncio.to_thread(self._ask, asked)
        return JSONResponse(answer)  # a refusal is an answer as well: browsers would complain of another status

    async def stream(self, lane: int, last_id: str, send: Send) -> None:
        """Server-sent events (HTML, section 9.2): batches of lines from after `last_id` on, `end` when all is told."""
        if not 0 <= lane < len(self._feeds):
            await refuse(send, 404, "no such lane")
            return
        if self._viewers >= VIEWERS_MAX:
            await refuse(send, 503, f"{VIEWERS_MAX} viewers are connected; close one first")
            return
        self._viewers += 1
        try:
            await self._tell(self._feeds[lane], last_id, send)
        except (TimeoutError, OSError):
            pass  # it has gone, or is dropped for reading too slowly
        finally:
            self._viewers -= 1

    async def _tell(self, feed: Feed, last_id: str, send: Send) -> None:
        async def say(body: bytes) -> None:
            await asyncio.wait_for(send({"type": "http.response.body", "body": body, "more_body": True}), SLOW_S)

        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        start, epoch = feed.resumed(last_id), feed.epoch
        silent_s = 0.0
        while True:
            if start is None or feed.epoch != epoch:  # a stranger, or the feed has forgotten its oldest lines
                await say(b"retry: 500\nevent: begin\ndata: {}\n\n")
                start, epoch = 0, feed.epoch
            over = feed.told
            while start < len(feed.lines) and feed.epoch == epoch:
                body = feed.batch(start)
                start = min(start + BATCH_LINES, len(feed.lines))
                await say(f"id: {epoch}-{start}\ndata: ".encode() + body + b"\n\n")
                silent_s = 0.0
            if over:
                await say(b"event: end\ndata: {}\n\n")
                await send({"type": "http.response.body", "body": b""})
                return
            await asyncio.sleep(POLL_S)
            silent_s += POLL_S
            if silent_s >= BEAT_S:
                await say(b": \n\n")
                silent_s = 0.0


def look(feed: Feed) -> bool:
    """Read what is new; whether that was all."""
    over = feed.over()  # asked first: what is written before the verdict is read by the look that follows
    feed.poll()
    feed.told = over
    return over


class _Stream:
    """The events as a separate ASGI application."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["lane"]
        lane = int(name) if name.isascii() and name.isdecimal() and len(name) <= LANE_DIGITS_MAX else -1
        last_id = next((value for key, value in scope["headers"] if key == b"last-event-id"), b"")
        telling = asyncio.ensure_future(self._site.stream(lane, last_id.decode("latin-1"), send))
        leaving = asyncio.ensure_future(left(receive))
        done, others = await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for task in done:
            task.result()


async def _nothing() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nobody(message: MutableMapping[str, Any]) -> None:
    pass


async def left(receive: Receive) -> None:
    """Returns when the viewer has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


ASK_S = 60.0
SILENT_S = 10.0  # in which a connection must have asked for something


class Protocol(H11Protocol):
    """uvicorn's HTTP, which waits for ever for a request; here a connection that asks for nothing is closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look = self.loop.call_later(SILENT_S, self._close_silent, None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    def _close_silent(self, before: object) -> None:
        """Twice in a row nothing was being answered, and nothing new was asked for meanwhile: close."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if not answering and (self.cycle is None or self.cycle is before):
            self.transport.close()
        else:
            self._look = self.loop.call_later(SILENT_S, self._close_silent, self.cycle)


class LabClient:
    """Asks the lab's process; only the operations of `page.request_handler` leave this process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The answer, or why there is none."""
        op = asked.get("op")
        if not isinstance(op, str) or op not in OPERATIONS:
            return {"ok": False, "error": f"no operation {str(op)[:40]!r}: valid are {', '.join(OPERATIONS)}"}
        arguments = {key: value for key, value in asked.items() if key in OPERATIONS[op]}
        if strangers := sorted(set(asked) - {"op", *arguments}):
            return {"ok": False, "error": f"{op} takes no {strangers[0][:40]!r}: valid are {', '.join(OPERATIONS[op])}"}
        try:
            with ControlClient(self._path, ASK_S) as client:
                return {"ok": True, "result": client.call(op, **arguments)}
        except (ControlError, RecursionError) as error:
            return {"ok": False, "error": str(error)}


async def serve(server: uvicorn.Server, site: Site, listener: socket.socket, user: list[int] | None) -> None:
    """Serves until the parent closes our standard input; from the first connection on as this user (uid, gid)."""
    await site.rehearse()  # what Python imports late may not be readable any more: it is imported now
    if user is not None:
        drop_rights(*user)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    watching = asyncio.ensure_future(site.watch())
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    ending = asyncio.ensure_future(ended.wait())
    while not ending.done() and not serving.done() and not (watching.done() and watching.exception()):
        waited = {ending, serving, watching} if not watching.done() else {ending, serving}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if ending.done():
        await site.finish()
    watching.cancel()
    server.should_exit = True  # what is being answered is answered; after a second all connections are closed
    await serving
    await asyncio.gather(watching, return_exceptions=ending.done())


def feed(run: Path | None, also: Path | None = None) -> Feed:
    """The lines of a run; those of a lab that is up, which has a second folder, are bounded."""
    return Feed(run, also, LIVE_LINES_MAX if also is not None else 0)


def main() -> None:
    """Reads one line of JSON from standard input: the runs to serve, and the user."""
    told = json.loads(sys.stdin.buffer.readline())
    listener = socket.socket(fileno=told["listener"])
    site = Site(
        Path(told["scene"]).read_bytes(),
        [feed(*(None if folder is None else Path(folder) for folder in folders)) for folders in told["runs"]],
        LabClient(Path(told["requests"])).ask,
    )
    guard = Guard(site.app, told["token"], listener.getsockname()[1])
    config = uvicorn.Config(
        guard, access_log=False, log_level="error", lifespan="off", loop="asyncio", http=Protocol, ws="none",
        timeout_graceful_shutdown=1, server_header=False,
    )  # fmt: skip
    config.load()
    os.chdir("/")
    try:
        asyncio.run(serve(uvicorn.Server(config), site, listener, told["user"]))
    finally:
        if os.getppid() != told["parent"]:
            shutil.rmtree(Path(told["requests"]).parent, ignore_errors=True)  # the parent was killed and left it


if __name__ == "__main__":
    main()

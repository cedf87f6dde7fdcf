"""The page's server without its sockets: pages, scenes, events, and questions that are passed on to the lab's process.

Starlette finds the way; the stream of events is plain ASGI, because it watches how slowly a viewer reads.
"""

import asyncio
import json
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from page.browser_files import MEDIA_TYPES, browser_files
from page.feed import BATCH_LINES, Feed
from page.guard import Receive, Scope, Send, refuse

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

"""The process that talks to browsers. It holds one listening socket, the folders of runs, and no rights.

Its parent (`page.viewer`) hands it the socket and the folders; what it wants of a lab it asks its parent
for, through a Unix socket. It ends when its parent does.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import socket
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from common.client import ControlClient, ControlError
from common.linux.rights import allow_many_files, drop_rights
from common.terminal.standard_streams import write_error
from page.feed import LIVE_LINES_MAX, Feed
from page.guard import Guard
from page.request_handler import OPERATIONS
from page.site import Site

ASK_S = 60.0
SILENT_S = 10.0  # in which a connection must have asked for something
STRANGERS_MAX = 2048  # connections that have shown no token, or half of the descriptors if those are fewer
ACCEPTED_MAX = 32
"""Connections that wait, and that one turn of the loop accepts: few beside STRANGERS_MAX, so that a client has shown
the token before as many strangers have come after it."""
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)  # after which asyncio accepts again later


class Protocol(H11Protocol):
    """uvicorn's HTTP, which waits for ever for a request; here a connection that asks for nothing is closed.

    Where too many have shown no token, the oldest of them is closed as well.
    """

    strangers_max = STRANGERS_MAX
    _strangers: ClassVar[dict[Protocol, None]] = {}  # the oldest first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look = self.loop.call_later(SILENT_S, self._close_silent, None)
        self._strangers[self] = None
        self.app_state = {"admit": partial(self._strangers.pop, self, None)}  # of each request's scope, for the guard
        if len(self._strangers) > self.strangers_max:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        self._strangers.pop(self, None)
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


def complain(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """asyncio's complaint; that no descriptor is free, which it says for each attempt, is said once."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in OUT_OF_FILES:
        _say_that_connections_wait(error.strerror)
    else:
        loop.default_exception_handler(context)


@cache
def _say_that_connections_wait(why: str) -> None:
    write_error(f"the page's server: {why}: new connections wait until others are closed (see ulimit -Hn)")


async def serve(server: uvicorn.Server, site: Site, listener: socket.socket, user: list[int] | None) -> None:
    """Serves until the parent closes our standard input; from the first connection on as this user (uid, gid)."""
    asyncio.get_running_loop().set_exception_handler(complain)
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
    Protocol.strangers_max = min(STRANGERS_MAX, allow_many_files() // 2)
    listener = socket.socket(fileno=told["listener"])
    site = Site(
        Path(told["scene"]).read_bytes(),
        [feed(*(None if folder is None else Path(folder) for folder in folders)) for folders in told["runs"]],
        LabClient(Path(told["requests"])).ask,
    )
    guard = Guard(site.app, told["token"], listener.getsockname()[1])
    config = uvicorn.Config(
        guard, access_log=False, log_level="error", lifespan="off", loop="asyncio", http=Protocol, ws="none",
        timeout_graceful_shutdown=1, server_header=False, backlog=ACCEPTED_MAX,
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

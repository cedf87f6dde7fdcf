"""The process that keeps an incident: it alone knows what is hidden, and answers on a socket in the run's folder.

It reads what to make from its standard input, because command lines can be read by everyone on the machine. It ends
with the answer, when it is told to, or when it has heard nothing for half a day.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from common.client import ControlError
from common.interrupts import sigterm_too
from common.outcome import INTERRUPTED, told
from common.server import ControlServer, Reply
from operations.incident import page
from operations.incident.draw import draw
from operations.incident.score import Named
from operations.incident.session import IncidentSession
from running import RunDirectory
from topo.emulation import LabError

SOCKET = "incident.sock"
LINE_BYTES_MAX = 65536
IDLE_S = 12 * 3600.0
READY = "ready"


@contextmanager
def reached(folder: Path) -> Iterator[Path]:
    """The socket of a folder by a path that is short enough for the kernel, however deep the folder lies."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{descriptor}") / SOCKET
    finally:
        os.close(descriptor)


class Server:
    """Answers requests for one session until it is over."""

    def __init__(self, session: IncidentSession, loop: asyncio.AbstractEventLoop) -> None:
        self._session = session
        self._loop = loop
        self._idle: asyncio.TimerHandle | None = None
        self._operations = {"do": self._do, "status": self._status, "answer": self._answer, "end": self._end}
        self.closed = False
        self.heard()

    def heard(self) -> None:
        """Somebody is still there: begin to count again."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self._loop.call_later(IDLE_S, self._loop.stop)

    def handle(self, request: Mapping[str, Any], reply: Reply) -> None:
        """One request; the answer of a wrong one says what is wrong, and of a defect nothing that is hidden."""
        self.heard()
        ident, name = request.get("id"), request.get("op")
        try:
            operation = self._operations.get(name) if isinstance(name, str) else None
            if operation is None:
                raise ValueError(f"no operation {name!r}: valid are {', '.join(self._operations)}")
            answer = {"id": ident, "ok": True, "result": operation(request)}
        except (ValueError, OSError, LabError, ControlError) as error:
            answer = {"id": ident, "ok": False, "error": told(error)}
        except Exception as error:  # of a tool: the incident goes on
            answer = {"id": ident, "ok": False, "error": f"the tool failed ({type(error).__name__}): a defect"}
        reply(answer)

    def _do(self, request: Mapping[str, Any]) -> dict[str, Any]:
        arguments = request.get("arguments")
        if not isinstance(arguments, dict):
            raise ValueError(f"arguments must be an object (got {arguments!r})")
        result = self._session.do(str(request.get("tool")), arguments, str(request.get("words", "")))
        return {**self._used(), "result": result}

    def _used(self) -> dict[str, Any]:
        return {"lab_s": self._session.used_s, "commands": len(self._session.asked)}

    def _status(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._session.status()

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        named = request.get("named")
        if not isinstance(named, list) or not all(isinstance(word, str) for word in named):
            raise ValueError(f"named must be a list of components and kinds (got {named!r})")
        return self._finished(self._session.parsed(named), str(request.get("because", "")))

    def _end(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._finished(None, "")

    def _finished(self, named: Sequence[Named] | None, because: str) -> dict[str, Any]:
        try:
            return page.finished(self._session, named, because)
        finally:
            if self._session.over:  # also when its page could not be written: there is no lab to ask any more
                self._over()

    def _over(self) -> None:
        self.closed = True
        (self._session.directory.path / SOCKET).unlink(missing_ok=True)
        self._loop.call_soon(self._loop.stop)


def main() -> int:
    """Serve one incident. SIGTERM interrupts while its lab is built, and ends it afterwards: the lab goes with it."""
    asked = json.loads(sys.stdin.readline())
    sys.stdin.close()
    directory = RunDirectory(Path(asked["folder"]))
    with sigterm_too():
        try:
            session = IncidentSession(draw(int(asked["seed"]), int(asked["level"])), directory, world=asked["world"])
        except (ValueError, OSError, RuntimeError) as error:
            return refused(error)
        except KeyboardInterrupt:
            return INTERRUPTED
        return serve(session)


def serve(session: IncidentSession) -> int:
    """Answer requests until the incident is over, then take its lab down; also when no request can be heard."""
    loop = asyncio.new_event_loop()
    server = Server(session, loop)
    try:
        loop.add_signal_handler(signal.SIGTERM, loop.stop)
        with reached(session.directory.path) as path:
            try:
                control = ControlServer(path, loop, server.handle, line_bytes_max=LINE_BYTES_MAX)
            except (ValueError, OSError) as error:
                return refused(error)
            with closing(control):
                sys.stdout.write(READY + "\n")
                sys.stdout.flush()
                loop.run_forever()
    finally:
        if not server.closed:
            session.close()
        loop.close()
    return 0


def refused(error: Exception) -> int:
    """Tell the starter, which reads one line, why there is no incident; the exit status."""
    sys.stdout.write(told(error).replace("\n", " ") + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""A process that keeps a lab for the commands that look at it, and answers on a socket in the lab's run folder.

It reads what to make from its standard input, because all users of the machine can read command lines. It ends when it
is told to, or when it has heard nothing for half a day.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from common.client import ControlError
from common.giving import opened_folder
from common.interrupts import all_alike, ending
from common.outcome import INTERRUPTED, error_line
from common.server import ControlServer, Reply
from running.view.kept import READY, SOCKET
from topo.emulation import LabError

LINE_BYTES_MAX = 65536
IDLE_S = 12 * 3600.0
Operation = Callable[[Mapping[str, Any]], Any]


@contextmanager
def reached(folder: Path) -> Iterator[Path]:
    """The socket of a folder by a path that is short enough for the kernel, however deep the folder lies."""
    with opened_folder(folder) as descriptor:
        yield Path(f"/proc/self/fd/{descriptor}") / SOCKET


class Keeper:
    """Answers requests for the lab of a folder until it is over. `close` takes the lab down."""

    operations: Mapping[str, Operation]

    def __init__(
        self, folder: Path, close: Callable[[], object], loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.folder, self.close, self.loop = folder, close, loop or asyncio.new_event_loop()
        self._idle: asyncio.TimerHandle | None = None
        self.closed = False
        self.heard()

    def heard(self) -> None:
        """A command has asked: begin to count again."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self.loop.call_later(IDLE_S, self.loop.stop)

    def handle(self, request: Mapping[str, Any], reply: Reply) -> None:
        """One request; the answer of a wrong one says what is wrong, and of a defect nothing that is hidden."""
        self.heard()
        ident, name = request.get("id"), request.get("op")
        try:
            operation = self.operations.get(name) if isinstance(name, str) else None
            if operation is None:
                raise ValueError(f"no operation {name!r}: valid are {', '.join(self.operations)}")
            answer = {"id": ident, "ok": True, "result": operation(request)}
        except (ValueError, OSError, LabError, ControlError) as error:
            answer = {"id": ident, "ok": False, "error": error_line(error)}
        except Exception as error:  # of a tool: the lab goes on
            answer = {"id": ident, "ok": False, "error": f"the tool failed ({type(error).__name__}): a defect"}
        reply(answer)

    def over(self) -> None:
        """No further request is answered: the lab is closed."""
        self.closed = True
        (self.folder / SOCKET).unlink(missing_ok=True)
        self.loop.call_soon(self.loop.stop)


def keep(make: Callable[[Mapping[str, Any]], Keeper]) -> int:
    """Serve one lab. Signals interrupt while the lab is built, and end it afterwards: the lab goes with it."""
    asked = json.loads(sys.stdin.readline())
    sys.stdin.close()
    with all_alike():
        try:
            keeper = make(asked)
        except (ValueError, OSError, RuntimeError) as error:
            return refused(error)
        except KeyboardInterrupt:
            return INTERRUPTED
        return serve(keeper)


def serve(keeper: Keeper) -> int:
    """Answer requests until the lab is over, then take it down; also when no request can be heard."""
    loop = keeper.loop
    try:
        for number in ending():
            loop.add_signal_handler(number, loop.stop)
        with reached(keeper.folder) as path:
            try:
                control = ControlServer(path, loop, keeper.handle, line_bytes_max=LINE_BYTES_MAX)
            except (ValueError, OSError) as error:
                return refused(error)
            with closing(control):
                sys.stdout.write(READY + "\n")
                sys.stdout.flush()
                loop.run_forever()
    finally:
        if not keeper.closed:
            keeper.close()
        loop.close()
    return 0


def refused(error: Exception) -> int:
    """Tell the starter, which reads one line, why there is no lab; the exit status."""
    sys.stdout.write(error_line(error).replace("\n", " ") + "\n")
    return 1

"""A view, from the process that owns the lab: starts the page's server, keeps it up, and answers what it asks."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common.giving import Receiver, give
from common.interpreter import python
from common.linux.rights import ordinary_user
from common.outcome import error_line
from common.plain_file import followed
from common.scratch import Scratch
from common.server import ControlServer, Reply, ThreadReaders
from page.request_handler import RequestHandler

SERVER = ("starlette", "uvicorn")
LINE_BYTES_MAX = 8192
DEATHS_MAX, DEATHS_S = 5, 10.0  # a server that dies so often in so short a time is not started again
END_S = 5.0


class Viewer:
    """Serves a scene and runs at `address` while it is entered."""

    def __init__(
        self,
        scene: Mapping[str, Any],
        runs: Sequence[Path | None],
        handler: RequestHandler,
        tell: Callable[[str], None],
        port: int = 0,
        also: Path | None = None,
    ) -> None:
        """`port` 0: the system chooses one. `also`: more journals of the first run. OSError: the port is taken.

        RuntimeError: the extra `view` is not installed.
        """
        if missing := [name for name in SERVER if find_spec(name) is None]:
            raise RuntimeError(
                f"the page's server needs {' and '.join(missing)}, which ./lab view installs (the extra view)"
            )
        self._tell = tell
        self._handler = handler
        self._runs = [[None if run is None else str(followed(run))] for run in runs]
        if also is not None:
            self._runs[0].append(str(followed(also)))
        self._user = ordinary_user()
        for folder in (folder for folders in self._runs for folder in folders if folder is not None):
            check_readable(Path(folder), self._user)
        self._token = secrets.token_urlsafe(18)
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self._scratch = Scratch("mrclab-view-")
        self._folder = self._scratch.path
        self._scene = self._folder / "scene.json"
        self._scene.write_text(json.dumps(scene, separators=(",", ":")))
        self._ending = threading.Event()
        self.over = threading.Event()
        """Set when the page's server has died too often to be started again."""
        self._server: subprocess.Popen[bytes] | None = None
        self._control: ControlServer | None = None
        self._thread = threading.Thread(target=self._keep_up, name="view", daemon=True)

    @property
    def address(self) -> str:
        """The address for a browser. Everyone who knows it may see and break the lab."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/{self._token}/"

    @property
    def socket(self) -> Path:
        """Where the page's server asks."""
        return self._folder / "requests.sock"

    @property
    def server_pid(self) -> int | None:
        """The process that talks to browsers; None while the view is not entered."""
        return None if self._server is None else self._server.pid

    def __enter__(self) -> Viewer:
        self._control = ControlServer(
            self._folder / "requests.sock", ThreadReaders(), self._answer, line_bytes_max=LINE_BYTES_MAX
        )
        # The socket first: once the folder is theirs, another process of that user could put a link in its place.
        for path in (self._folder / "requests.sock", self._folder):
            if self._user is not None:
                give(Receiver(*self._user), path)
        self._server = self._started()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._server is not None:
            end(self._server)
        self._thread.join()
        if self._control is not None:
            self._control.close()
        self._listener.close()
        self._scratch.close()

    def _started(self) -> subprocess.Popen[bytes]:
        server = subprocess.Popen(
            python("-m", "page.server"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(self._listener.fileno(),),
            start_new_session=True,  # Ctrl-C is for this process, which then ends the server
        )
        told = {
            "listener": self._listener.fileno(),
            "token": self._token,  # by standard input: every user can read command lines
            "scene": str(self._scene),
            "runs": self._runs,
            "requests": str(self._folder / "requests.sock"),
            "user": self._user,
            "parent": os.getpid(),
        }
        assert server.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            server.stdin.write(json.dumps(told).encode() + b"\n")
            server.stdin.flush()
        return server

    def _keep_up(self) -> None:
        """Starts the server again when it has died: the address stays, browsers come back by themselves."""
        deaths: list[float] = []
        while True:
            assert self._server is not None
            status = self._server.wait()
            if self._ending.is_set():
                return
            deaths = [at for at in deaths if time.monotonic() - at < DEATHS_S] + [time.monotonic()]
            if len(deaths) >= DEATHS_MAX:
                self._tell(f"the page's server died {len(deaths)} times (status {status}): the view is over")
                self.over.set()
                return
            self._tell(f"the page's server died (status {status}): starting it again")
            self._server = self._started()
            if self._ending.is_set():
                end(self._server)

    def _answer(self, request: Mapping[str, Any], reply: Reply) -> None:
        ident = request.get("id")
        try:
            result = self._handler.do(request)
        except (ValueError, RuntimeError, OSError, LookupError, ArithmeticError, TypeError) as error:
            reply({"id": ident, "ok": False, "error": error_line(error)})
            return
        reply({"id": ident, "ok": True, "result": result})


def end(server: subprocess.Popen[bytes]) -> None:
    """Ends a server: by its closed input, and by SIGKILL if that does not help."""
    if server.stdin is not None:
        with contextlib.suppress(OSError):
            server.stdin.close()
    try:
        server.wait(END_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def check_readable(folder: Path, user: tuple[int, int] | None) -> None:
    """PermissionError when the page's server, as this user, could not read a folder that it was given open."""
    for path in (folder, folder / "journal"):
        if user is None or not path.exists():
            continue
        status = path.stat()
        shift = 6 if status.st_uid == user[0] else 3 if status.st_gid == user[1] else 0
        if status.st_mode >> shift & 5 != 5:
            raise PermissionError(
                f"{path} is closed to user {user[0]}, as whom the page's server reads it: chmod o+rx {path}"
            )

"""The page's server as a hostile browser meets it, over real sockets."""

import http.client
import json
import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from common.linux.rights import NOBODY
from page.microscope import Microscope
from page.request_handler import RequestHandler
from page.server import SILENT_S
from page.view import plan_view
from page.viewer import Viewer, check_readable
from running.timeline import Paper
from topo.fault import ActiveFaults
from topo.planfile import load_plan

PLAN = load_plan("tiny")


class Served:
    """A view of a plan whose faults are noted on paper."""

    def __init__(self, viewer: Viewer, board: ActiveFaults) -> None:
        self.viewer = viewer
        self.board = board
        parts = urlsplit(viewer.address)
        self.port = parts.port or 0
        self.path = parts.path

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def post(self, body: bytes, origin: str | None = None) -> tuple[int, bytes]:
        own = f"http://127.0.0.1:{self.port}" if origin is None else origin
        return self.ask("POST", self.path + "ask", body, Origin=own)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    pytest.importorskip("uvicorn")
    board, view = ActiveFaults(PLAN, Paper()), plan_view(PLAN)
    with Viewer(
        view.document(), view.runs, RequestHandler([PLAN], Microscope([PLAN]), injector=board), lambda what: None
    ) as viewer:
        yield Served(viewer, board)


def test_a_click_changes_the_lab_and_says_what_was_done(served: Served) -> None:
    fault = {"verb": "link-down", "target": "p0l0-p0s1"}
    assert served.post(json.dumps({"op": "fault", **fault}).encode()) == (
        200,
        b'{"ok":true,"result":{"done":"link-down p0l0-p0s1"}}',
    )
    assert [str(one) for one in served.board.faults()] == ["link-down p0l0-p0s1"]
    assert served.post(json.dumps({"op": "undo", **fault}).encode())[0] == 200
    assert served.board.faults() == []


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"null", b"{", b'{"op": "fault"', b"\xff\x00", b"[" * 4000, b'{"op":' * 600,
        b'"' + b"x" * 9000 + b'"',
    ],
)  # fmt: skip
def test_a_body_that_is_no_request_is_refused(served: Served, body: bytes) -> None:
    status, answer = served.post(body)
    assert status in (400, 413)
    assert not json.loads(answer)["ok"]


def test_only_files_of_the_page_are_served(served: Served) -> None:
    for name in ("../server.py", "..%2fserver.py", "%2e%2e/server.py", "/etc/passwd", "%00", "main.js%00", "none.js"):
        assert served.ask("GET", f"{served.path}page/{name}")[0] == 404
    assert served.ask("GET", f"{served.path}page/main.js")[0] == 200


def test_random_bytes_do_not_end_the_server(served: Served) -> None:
    chance = random.Random(5)
    before = served.viewer.server_pid
    start = f"POST {served.path}ask HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n".encode()
    for _ in range(150):
        with socket.create_connection(("127.0.0.1", served.port), timeout=5) as connection:
            junk = chance.randbytes(chance.randrange(400))
            connection.sendall(chance.choice([b"", start, start + b"Content-Length: 9999999999\r\n\r\n"]) + junk)
    assert served.ask("GET", served.path)[0] == 200
    assert served.viewer.server_pid == before
    assert served.board.faults() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which the server gives up")
def test_the_server_has_no_rights(served: Served) -> None:
    status = Path(f"/proc/{served.viewer.server_pid}/status").read_text().splitlines()
    told = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    assert {int(number) for number in told["Uid"].split()} <= {NOBODY, int(os.environ.get("SUDO_UID") or NOBODY)}
    assert told["Groups"].strip() == ""
    assert int(told["CapEff"], 16) == int(told["CapPrm"], 16) == 0


def test_the_token_is_in_no_command_line_and_no_file(served: Served) -> None:
    token = served.path.strip("/").encode()
    assert token not in Path(f"/proc/{served.viewer.server_pid}/cmdline").read_bytes()
    for path in served.viewer.socket.parent.iterdir():
        assert path.is_socket() or token not in path.read_bytes()


def test_many_viewers_are_served_and_one_that_never_reads_holds_up_nobody(served: Served) -> None:
    idle = [socket.create_connection(("127.0.0.1", served.port), timeout=5) for _ in range(20)]
    for connection in idle:
        connection.sendall(f"GET {served.path}scene.json HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode())
    begun_s = time.monotonic()
    assert served.ask("GET", served.path + "scene.json")[0] == 200
    assert time.monotonic() - begun_s < 20
    for connection in idle:
        connection.close()


def test_a_folder_that_the_server_could_not_read_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    check_readable(tmp_path, (NOBODY, NOBODY))
    (tmp_path / "journal").chmod(0o700)
    check_readable(tmp_path, None)
    check_readable(tmp_path, (tmp_path.stat().st_uid, 1))
    with pytest.raises(PermissionError, match=r"chmod o\+rx .*journal"):
        check_readable(tmp_path, (NOBODY, NOBODY))


def test_a_view_whose_server_cannot_be_kept_up_is_over_and_the_command_ends(monkeypatch, refused) -> None:
    monkeypatch.setattr(Viewer, "_started", lambda viewer: subprocess.Popen(["false"]))
    told = refused("view", "tiny")
    assert "the page's server died 5 times (status 1): the view is over" in told
    assert "view: the page's server cannot be kept up" in told


def test_the_folder_of_a_view_is_given_away_last_and_no_link_in_it_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process of the user who gets it could put a link in the socket's place."""
    given: list[tuple[int, str]] = []
    monkeypatch.setattr("page.viewer.give", lambda receiver, path: given.append((receiver.user, path.name)))
    monkeypatch.setattr("page.viewer.ordinary_user", lambda: (NOBODY, NOBODY))
    monkeypatch.setattr(Viewer, "_started", lambda viewer: subprocess.Popen(["cat"], stdin=subprocess.PIPE))
    view = plan_view(PLAN)
    with Viewer(view.document(), view.runs, RequestHandler([PLAN], Microscope([PLAN])), lambda what: None) as viewer:
        assert given == [(NOBODY, "requests.sock"), (NOBODY, viewer.socket.parent.name)]


def test_a_lane_of_thousands_of_digits_is_not_found(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("9" * 5000, "9", "-1", "٣", "1e3", "x"):
        assert served.ask("GET", f"{served.path}events/{quote(name)}")[0] == 404
    assert capfd.readouterr().err == ""


def test_connections_that_ask_for_nothing_are_closed(served: Served) -> None:
    """Also those that begin a request and do not end it; a stream of events that is silent for longer stays."""
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(20)]
    for number, connection in enumerate(silent):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n"[: 2 * number])
    began = time.monotonic()
    for connection in silent:
        connection.settimeout(3 * SILENT_S)
        assert connection.recv(1) == b""
        connection.close()
    assert time.monotonic() - began < 3 * SILENT_S
    assert served.ask("GET", served.path)[0] == 200

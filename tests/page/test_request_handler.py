"""What the page may ask, also over real sockets of its server: nothing that is not in the list, from any browser."""

import contextlib
import http.client
import json
import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given, strategies as st

from common.client import ControlClient, ControlError
from common.linux.rights import NOBODY
from page import viewer
from page.microscope import Microscope
from page.request_handler import OPERATIONS, RequestHandler
from page.server import SILENT_S
from page.view import plan_view
from page.viewer import Viewer, check_readable
from running.timeline import Paper
from topo.fault import VERBS, ActiveFaults, FaultError
from topo.planfile import load_plan

PLAN = load_plan("tiny")


class Clock:
    """A run that notes whether it is held."""

    def __init__(self) -> None:
        self.paused = False
        self.steps = 0

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def step(self) -> None:
        self.steps += 1


def traced(lane: int, source: str, destination: str, ev: int, size: int, trimmed_at: str | None) -> dict[str, Any]:
    return {"source": source, "destination": destination, "ev": ev, "bytes": size, "trimmed_at": trimmed_at}


def made() -> tuple[RequestHandler, ActiveFaults, Clock]:
    board, clock = ActiveFaults(PLAN, Paper()), Clock()
    return RequestHandler([PLAN], traced, injector=board, pausable=clock, played=lambda: {"text": "…"}), board, clock


def test_faults_come_into_force_and_are_undone() -> None:
    handler, board, _ = made()
    assert handler.do({"op": "fault", "verb": "loss", "target": "p0l0-p0s1", "value": 20}) == {
        "done": "loss p0l0-p0s1 20 percent"
    }
    assert handler.do({"op": "fault", "verb": "drain", "target": "p1s0"})
    assert [fault.describe() for fault in board.faults()] == ["loss p0l0-p0s1 20 percent", "drain p1s0"]
    assert handler.do({"op": "state"})["faults"][0] == {"verb": "loss", "target": "p0l0-p0s1", "value": 20}
    handler.do({"op": "undo", "verb": "loss", "target": "p0l0-p0s1"})
    assert [fault.describe() for fault in board.faults()] == ["drain p1s0"]
    handler.do({"op": "heal"})
    assert board.faults() == []


def test_of_two_faults_of_one_verb_on_one_target_the_one_with_the_value_is_undone() -> None:
    handler, board, _ = made()
    undo = {"op": "undo", "verb": "loss", "target": "p0l0-p0s1"}
    for value in (10, 40, 60):
        handler.do({"op": "fault", "verb": "loss", "target": "p0l0-p0s1", "value": value})
    assert handler.do({**undo, "value": 10}) == {"done": "undone: loss p0l0-p0s1 10 percent"}
    with pytest.raises(ValueError, match="loss p0l0-p0s1 10 is not in force"):
        handler.do({**undo, "value": 10})
    assert [fault.value for fault in board.faults()] == [40, 60]
    handler.do(undo)
    assert [fault.value for fault in board.faults()] == [40]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"op": "fault", "verb": "explode", "target": "p0l0"}, "no fault 'explode'"),
        ({"op": "fault", "verb": "loss", "target": "p0l0-p0s1"}, r"must be a number between 0 and 100 \(got none\)"),
        ({"op": "fault", "verb": "loss", "target": "p0l0-p0s1", "value": float("nan")}, "value"),
        ({"op": "fault", "verb": "link-down", "target": "../../etc"}, "must be a link"),
        ({"op": "fault", "verb": "link-down", "target": "p0l0-p0s1", "seed": 3}, "seed is no key"),
        ({"op": "undo", "verb": "drain", "target": "p1s0"}, "not in force"),
        ({"op": "trace", "source": "h0", "destination": "h99", "ev": 1}, "h99"),
        ({"op": "trace", "source": "h0", "destination": "h3", "ev": -1}, "ev"),
        ({"op": "trace", "source": "h0", "destination": "h3", "ev": 1, "bytes": 1 << 40}, "bytes"),
        ({"op": "trace", "source": "h0", "destination": "h3", "ev": 1, "trimmed_at": "h0"}, "h0 is a host"),
        ({"op": "answer", "packet": 1}, "nothing is recorded here"),
        ({"op": "__init__"}, "no operation"),
        ({"op": "do"}, "no operation"),
        ({"op": ["fault"]}, "no operation"),
        ({}, "no operation"),
    ],
)
def test_a_wrong_request_says_what_is_wrong_and_changes_nothing(request_: Mapping[str, Any], why: str) -> None:
    handler, board, clock = made()
    with pytest.raises(ValueError, match=why):
        handler.do(request_)
    assert board.faults() == []
    assert (clock.paused, clock.steps) == (False, 0)


def test_a_run_in_virtual_time_is_held_stepped_and_let_go() -> None:
    handler, _, clock = made()
    handler.do({"op": "pause"})
    assert clock.paused
    handler.do({"op": "step"})
    handler.do({"op": "resume"})
    assert (clock.paused, clock.steps) == (False, 1)


def test_what_cannot_be_done_here_says_why() -> None:
    handler = RequestHandler([PLAN], traced, why_not="this is a plan")
    for op, why in (("heal", "this is a plan"), ("pause", "virtual time"), ("scenario", "no run")):
        with pytest.raises(ValueError, match=why):
            handler.do({"op": op})
    with pytest.raises(ValueError, match="this is a plan"):
        handler.do({"op": "fault", "verb": "link-down", "target": "p0l0-p0s1"})


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=100)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3), max_leaves=4)


@given(
    st.sampled_from([op for op in OPERATIONS if op not in ("fault", "heal")]) | st.text(max_size=10),
    st.dictionaries(st.sampled_from(["verb", "target", "value", "lane", "source", "ev", "bytes", "x"]), VALUES),
)
def test_no_request_but_a_fault_changes_a_fault(op: str, fields: dict[str, Any]) -> None:
    handler, board, _ = made()
    before = board.inject("drain", "p0s0")
    with contextlib.suppress(ValueError):
        handler.do({"op": op, **fields})
    if not (op == "undo" and (fields.get("verb"), fields.get("target")) == ("drain", "p0s0")):
        assert board.faults() == [before]


@given(st.sampled_from([*VERBS, "", "x"]) | st.text(max_size=20), st.text(max_size=30) | VALUES, VALUES)
def test_every_fault_request_is_carried_out_whole_or_refused(verb: str, target: Any, value: Any) -> None:
    handler, board, _ = made()
    try:
        handler.do({"op": "fault", "verb": verb, "target": target, "value": value})
    except (ValueError, FaultError):
        assert board.faults() == []
    else:
        assert len(board.faults()) <= 1


def test_without_the_extra_a_view_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer, "find_spec", lambda name: None if name == "uvicorn" else object())
    shown = plan_view(PLAN)
    with pytest.raises(RuntimeError, match=r"needs uvicorn, which \./lab view installs"):
        Viewer(shown.document(), shown.runs, made()[0], lambda what: None)


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


def test_hostile_lines_on_the_socket_cost_nobody_else_anything(served: Served) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [("fault", {"verb": 5}), ("shutdown", {})]
    fault: dict[str, Any] = {"verb": "link-down", "target": "p0l0-p0s1"}
    with ControlClient(served.viewer.socket) as client:
        for op, arguments in (*wrong, ("trace", {"lane": "x"}), ("state", {"x": 1})):
            with pytest.raises(ControlError):
                client.call(op, **arguments)
        assert client.call("fault", **fault) == {"done": "link-down p0l0-p0s1"}
        assert [str(one) for one in served.board.faults()] == ["link-down p0l0-p0s1"]
        client.call("undo", **fault)


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

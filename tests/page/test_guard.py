"""Who is let in: only the page itself, by its token, however many connections a local user opens."""

import asyncio
import errno
import http.client
import select
import socket
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st

from common.interpreter import python
from page.guard import POLICY, Guard, Receive, Scope, Send
from page.request_handler import RequestHandler
from page.viewer import Viewer
from tests.helpers.waiting import eventually

TOKEN = "s3cret-token"
HOST = (b"host", b"127.0.0.1:8000")
ORIGIN = (b"origin", b"http://127.0.0.1:8000")


class Inner:
    """An application that notes the paths for which it was asked."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def asked(
    path: str, *headers: tuple[bytes, bytes], method: str = "GET", port: int = 8000
) -> tuple[int, dict[bytes, bytes], list[str]]:
    """Status, headers, and what the application behind the guard was asked for, by whose connection is admitted."""
    inner, sent, admitted = Inner(), [], []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    state = {"admit": lambda: admitted.append(path)}
    scope = {"type": "http", "method": method, "path": path, "headers": list(headers), "state": state}
    asyncio.run(Guard(inner, TOKEN, port)(scope, receive, send))
    assert len(admitted) == len(inner.paths)
    return sent[0]["status"], dict(sent[0]["headers"]), inner.paths


def test_the_token_opens_the_page_and_is_taken_off_the_path() -> None:
    status, headers, paths = asked(f"/{TOKEN}/page/main.js", HOST)
    assert (status, paths) == (200, ["/page/main.js"])
    assert headers[b"content-security-policy"] == POLICY.encode()


def test_the_page_may_load_nothing_from_elsewhere() -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in POLICY.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in POLICY
    assert all(source in ("'self'", "'none'", "data:") for rule in rules.values() for source in rule.split())


@pytest.mark.parametrize("path", ["/", f"/{TOKEN}", "/wrong/", f"/{TOKEN}x/", f"//{TOKEN}/", "/scene.json", "", "/é/"])
def test_without_the_token_there_is_nothing(path: str) -> None:
    assert asked(path, HOST)[::2] == (404, [])


@pytest.mark.parametrize(
    "host", [b"evil.example:8000", b"127.0.0.1:8001", b"127.0.0.1", b"127.0.0.1:8000.evil.example", b""]
)
def test_another_host_name_is_turned_away(host: bytes) -> None:
    assert asked(f"/{TOKEN}/", (b"host", host))[::2] == (421, [])


@pytest.mark.parametrize("name", [b"127.0.0.1", b"localhost"])
def test_at_the_port_that_browsers_leave_out_names_without_a_port_are_known(name: bytes) -> None:
    """RFC 9110, 4.2.3 and RFC 6454, 6.2: neither Host nor Origin has the scheme's default port."""
    for own in (name, name + b":80"):
        headers = (b"host", own), (b"origin", b"http://" + own)
        assert asked(f"/{TOKEN}/ask", *headers, method="POST", port=80)[::2] == (200, ["/ask"])
    assert asked(f"/{TOKEN}/", (b"host", b"evil.example"), port=80)[0] == 421
    assert (
        asked(f"/{TOKEN}/ask", (b"host", name), (b"origin", b"http://evil.example"), method="POST", port=80)[0] == 403
    )


def test_two_host_names_or_none_are_turned_away_and_what_changes_something_needs_an_origin() -> None:
    assert asked(f"/{TOKEN}/", HOST, (b"host", b"evil.example"))[0] == 421
    assert asked(f"/{TOKEN}/")[0] == 421
    assert asked(f"/{TOKEN}/ask", HOST, method="POST")[::2] == (403, [])
    assert asked(f"/{TOKEN}/ask", HOST, ORIGIN, method="POST")[::2] == (200, ["/ask"])


@pytest.mark.parametrize("origin", [b"http://evil.example", b"null", b"https://127.0.0.1:8000", b"http://127.0.0.1:80"])
def test_another_page_is_turned_away(origin: bytes) -> None:
    for method in ("GET", "POST"):
        assert asked(f"/{TOKEN}/ask", HOST, (b"origin", origin), method=method)[::2] == (403, [])
    assert asked(f"/{TOKEN}/", HOST, (b"sec-fetch-site", b"cross-site"))[0] == 403


@given(
    st.text(max_size=60),
    st.lists(st.tuples(st.sampled_from([b"host", b"origin", b"x"]), st.binary(max_size=40)), max_size=4),
)
def test_whatever_is_asked_without_the_token_reaches_nothing(path: str, headers: list[tuple[bytes, bytes]]) -> None:
    status, _, paths = asked(path, *headers)
    assert status in (403, 404, 421)
    assert paths == []


FILES = 128
LINE = b'{"t_ns":7,"node":"h0","kind":"step"}'
BODY = b'{"op":"state"}'
PATIENCE_S = 30


class Served:
    """The view of a run that goes on."""

    def __init__(self, viewer: Viewer, run: Path) -> None:
        self.viewer, self.run = viewer, run
        parts = urlsplit(viewer.address)
        self.at = ("127.0.0.1", parts.port or 0)
        self.path = parts.path

    def asked(self, path: str, method: str = "GET", **headers: str) -> http.client.HTTPConnection:
        client = http.client.HTTPConnection(*self.at, timeout=PATIENCE_S)
        client.request(method, path, headers=headers)
        return client

    def unsent_request(self) -> http.client.HTTPConnection:
        """With the token, and without its body."""
        headers = {"Origin": "http://{}:{}".format(*self.at), "Content-Length": str(len(BODY))}
        return self.asked(f"{self.path}ask", "POST", **headers)

    def status(self, path: str) -> int:
        with closing(self.asked(path)) as client:
            return client.getresponse().status

    def stranger(self) -> socket.socket:
        """One that does not end its request."""
        opened = socket.create_connection(self.at, timeout=PATIENCE_S)
        opened.sendall(b"GET / HTTP/1.1\r\n")
        return opened


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """By a server that may open 128 files, and is started with a softer limit."""
    pytest.importorskip("uvicorn")
    (tmp_path / "journal").mkdir()
    for folder in (tmp_path, tmp_path / "journal"):
        folder.chmod(0o755)  # for the user that the server becomes
    limited = "sh", "-c", f'ulimit -Sn 64 && ulimit -Hn {FILES} && exec "$@"', "sh"
    monkeypatch.setattr("page.viewer.python", lambda *words: (*limited, *python(*words)))
    with Viewer({}, [tmp_path], RequestHandler([], lambda *_: {}), lambda said: None) as viewer:
        shown = Served(viewer, tmp_path)
        assert shown.status(shown.path) == 200
        yield shown
        (tmp_path / "verdict.json").touch()


def test_the_oldest_stranger_gives_way_and_no_client_with_the_token_does(served: Served, capfd) -> None:
    """A stream of events, and a request that is still being sent, are older than all strangers."""
    server = served.viewer.server_pid
    with ExitStack() as open_ones:
        stream = open_ones.enter_context(closing(served.asked(f"{served.path}events/0"))).getresponse()
        slow = open_ones.enter_context(closing(served.unsent_request()))
        strangers = []
        for number in range(2 * FILES):
            strangers.append(open_ones.enter_context(served.stranger()))
            if number % 16 == 0:
                assert served.status("/") == 404  # those before have been accepted
        for oldest in strangers[:FILES]:
            with suppress(ConnectionResetError):
                assert oldest.recv(1) == b""
        strangers[-1].sendall("Host: {}:{}\r\n\r\n".format(*served.at).encode())
        assert strangers[-1].recv(64).startswith(b"HTTP/1.1 404 ")
        assert served.status(served.path) == 200
        (served.run / "journal" / "h0.jsonl").write_bytes(LINE + b"\n")
        assert any(LINE in line for line in iter(stream.readline, b""))
        slow.send(BODY)
        assert slow.getresponse().status == 200
    assert served.viewer.server_pid == server
    assert capfd.readouterr().err == ""


def test_that_no_descriptor_is_free_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """asyncio says it for each connection that waits, once per second."""
    complain = pytest.importorskip("page.server").complain
    with closing(asyncio.new_event_loop()) as loop:
        loop.set_exception_handler(complain)
        error = OSError(errno.EMFILE, "Too many open files")
        for _ in range(3):
            loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": error})
    (line,) = capsys.readouterr().err.splitlines()
    assert "Too many open files: new connections wait until others are closed" in line


@pytest.mark.slow
def test_clients_are_served_while_a_stranger_opens_again_what_is_closed(served: Served, capfd) -> None:
    over, opened = threading.Event(), [0]

    def flood() -> None:
        poll, held = select.epoll(), dict[int, socket.socket]()
        while not over.is_set():
            while len(held) < 8 * FILES:
                one = socket.socket()
                one.setblocking(False)
                one.connect_ex(served.at)
                held[one.fileno()] = one
                opened[0] += 1
                poll.register(one, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
            for descriptor, events in poll.poll(0.1):
                try:
                    if events & select.EPOLLIN and not held[descriptor].recv(4096):
                        raise ConnectionError
                    held[descriptor].send(b"G")
                except OSError:
                    held.pop(descriptor).close()
        for one in held.values():
            one.close()

    stranger = threading.Thread(target=flood)
    stranger.start()
    try:
        eventually(lambda: opened[0] > 16 * FILES, "strangers are turned away", PATIENCE_S)
        assert [served.status(f"{served.path}scene.json") for _ in range(10)] == 10 * [200]
    finally:
        over.set()
        stranger.join()
    assert capfd.readouterr().err == ""

"""The control socket: any bytes are answered or cut off, and a client talks to root and its own user alone."""

import contextlib
import json
import os
import select
import socket
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, TypeVar, cast

import pytest
from hypothesis import given, settings, strategies as st

from common.client import ControlClient, ControlError, ControlTimeoutError
from common.linux.rights import NOBODY
from common.server import CLIENTS_MAX, ControlServer, Reply, ThreadReaders
from common.unix_socket import ForeignSocketError, connected
from tests.helpers.stranger import as_a_stranger, control_of_a_stranger, let_all_enter, socket_of_a_stranger
from tests.helpers.waiting import eventually

T = TypeVar("T")

LINE_BYTES_MAX = 10_000
WAIT_S = 10.0


def echo(request: Mapping[str, Any], reply: Reply) -> None:
    if request.get("op") == "refuse":
        reply({"id": request.get("id"), "ok": False, "error": "no such luck"})
    else:
        reply({"id": request.get("id"), "ok": True, "result": request.get("word")})


Serve = Callable[[str | Path], ControlServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ControlServer] = []

    def start(address: str | Path) -> ControlServer:
        servers.append(ControlServer(address, ThreadReaders(), echo, line_bytes_max=LINE_BYTES_MAX))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def reached(server: ControlServer) -> socket.socket:
    host, _, port = server.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_S)


@pytest.mark.parametrize("kind", ["tcp", "tcp6", "unix"])
def test_requests_are_answered_on_every_kind_of_address(kind: str, serve: Serve, tmp_path: Path) -> None:
    addresses: dict[str, str | Path] = {"tcp": "127.0.0.1:0", "tcp6": "[::1]:0", "unix": tmp_path / "socket"}
    wanted = addresses[kind]
    server = serve(wanted)
    with ControlClient(wanted if isinstance(wanted, Path) else server.address) as client:
        assert client.call("echo", word="a" * 5000) == "a" * 5000
        first, second = client.send("echo", word=1), client.send("echo", word=2)
        assert (client.result(second), client.result(first)) == (2, 1)
        with pytest.raises(ControlError, match=r"^no such luck$"):
            client.call("refuse")


def test_a_socket_file_that_nobody_listens_on_is_replaced_and_one_in_use_is_refused(serve: Serve, tmp_path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    server = serve(path)
    with pytest.raises(OSError, match="another process answers there"):
        serve(path)
    server.close()
    assert not path.exists()


def test_a_client_connects_again_after_its_server_was_replaced(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server = serve(path)
    with ControlClient(path) as client:
        assert client.call("echo", word=1) == 1
        server.close()
        with pytest.raises(ControlError, match=r"closed the connection|is gone"):
            client.call("echo", word=2)
        with pytest.raises(ControlError, match="no process answers on control socket"):
            client.call("echo", word=2)
        serve(path)
        assert client.call("echo", word=3) == 3


def test_an_answer_that_is_late_can_still_be_fetched(tmp_path: Path) -> None:
    asked = Event()
    kept: list[Callable[[], None]] = []

    def later(request: Mapping[str, Any], reply: Reply) -> None:
        kept.append(lambda: reply({"id": request["id"], "ok": True, "result": "late"}))
        asked.set()

    server = ControlServer(tmp_path / "socket", ThreadReaders(), later, line_bytes_max=100)
    with ControlClient(tmp_path / "socket") as client:
        ident = client.send("wait")
        with pytest.raises(ControlTimeoutError, match=r"did not answer within 0.01 s") as raised:
            client.result(ident, 0.01)
        assert raised.value.waited_s == 0.01
        assert asked.wait(WAIT_S)
        kept[0]()
        assert client.result(ident) == "late"
    server.close()


def test_a_client_that_reads_nothing_holds_up_nobody(serve: Serve) -> None:
    server = serve("127.0.0.1:0")
    with reached(server) as deaf, ControlClient(server.address, timeout_s=WAIT_S) as client:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line = b'{"id": 1, "op": "echo", "word": "%s"}\n' % (b"a" * 9000)
        deaf.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            while True:  # until its own requests are not taken any more
                deaf.sendall(line)
        assert client.call("echo", word=1) == 1


def test_a_line_that_is_too_long_is_refused_and_the_connection_ends(serve: Serve) -> None:
    server = serve("127.0.0.1:0")
    with reached(server) as raw:
        raw.sendall(b"x" * (LINE_BYTES_MAX + 1))
        answer, _, rest = b"".join(iter(lambda: raw.recv(1 << 16), b"")).partition(b"\n")
        assert json.loads(answer) == {"id": None, "ok": False, "error": "a line above 10000 bytes"}
        assert not rest


words = st.binary(max_size=60) | st.sampled_from(
    [b"{}", b'{"id": []}', b"[" * 2000, b"\xff", b'{"id": 1e999}', b'{"id": "\\ud800"}', b"1" * 5000]
)


@given(lines=st.lists(words.filter(lambda line: b"\n" not in line), min_size=1, max_size=8))
@settings(max_examples=60)
def test_any_bytes_are_answered_line_by_line(lines: list[bytes]) -> None:
    with (
        TemporaryDirectory() as folder,
        closing(serving(Path(folder) / "socket")) as server,
        socket.socket(socket.AF_UNIX) as raw,
        raw.makefile("rb") as answers,
    ):
        raw.settimeout(WAIT_S)
        raw.connect(server.address)
        raw.sendall(b"\n".join(lines) + b"\n")
        for line in lines:
            if line.strip():
                assert json.loads(answers.readline())["ok"] in (True, False)
        raw.sendall(b'{"id": 9, "op": "echo", "word": "still here"}\n')
        assert json.loads(answers.readline()) == {"id": 9, "ok": True, "result": "still here"}


def serving(address: str | Path) -> ControlServer:
    return ControlServer(address, ThreadReaders(), echo, line_bytes_max=LINE_BYTES_MAX)


def test_the_body_of_a_request_of_a_browser_is_never_carried_out() -> None:
    carried_out: list[object] = []

    def note(request: Mapping[str, Any], reply: Reply) -> None:
        carried_out.append(request)

    with closing(ControlServer("127.0.0.1:0", ThreadReaders(), note, line_bytes_max=LINE_BYTES_MAX)) as server:
        with reached(server) as browser:
            browser.sendall(
                b'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n{"id": 1, "op": "shutdown"}\n'
            )
            answer, _, _ = browser.recv(1 << 16).partition(b"\n")
        assert b"not a JSON line" in answer
        with reached(server) as probe:  # whatever the first connection asked for would have been done by now
            probe.sendall(b'{"id": 2, "op": "ping"}\n')
            while not carried_out:
                pass
    assert [request["op"] for request in carried_out if isinstance(request, Mapping)] == ["ping"]


def test_a_client_that_waits_for_an_answer_keeps_its_place(tmp_path: Path) -> None:
    kept: list[Reply] = []
    asked = Event()

    def later(request: Mapping[str, Any], reply: Reply) -> None:
        kept.append(reply)
        asked.set()

    server = ControlServer(tmp_path / "socket", ThreadReaders(), later, line_bytes_max=LINE_BYTES_MAX)
    with closing(server), ControlClient(tmp_path / "socket", timeout_s=WAIT_S) as client, ExitStack() as stack:
        ident = client.send("wait")
        assert asked.wait(WAIT_S)
        for _ in range(2 * CLIENTS_MAX):
            idle = stack.enter_context(socket.socket(socket.AF_UNIX))
            idle.connect(str(tmp_path / "socket"))
        kept[0]({"id": ident, "ok": True, "result": "answered"})
        assert client.result(ident) == "answered"


class Held:
    """A socket. What its first `recv` or `accept` returns is held back until `meanwhile` has run."""

    def __init__(self, held: socket.socket, meanwhile: Callable[[], None]) -> None:
        self._held = held
        self._meanwhile = [meanwhile]

    def recv(self, size: int) -> bytes:
        return self._back(self._held.recv(size))

    def accept(self) -> Any:
        return self._back(self._held.accept())

    def _back(self, found: T) -> T:
        if self._meanwhile:
            self._meanwhile.pop()()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)


def test_the_thread_of_a_connection_whose_number_is_another_connections_by_now_ends() -> None:
    """Each of 6,000 connections that came and went left a thread that waited for ever."""
    readers, before = ThreadReaders(), set(threading.enumerate())
    watched, other = socket.socketpair()
    idle, peer = socket.socketpair()
    with watched, other, idle, peer:
        readers.add_reader(watched.fileno(), lambda: None)
        readers.remove_reader(watched.fileno())
        os.dup2(idle.fileno(), watched.fileno())
        eventually(lambda: set(threading.enumerate()) <= before, "the end of the thread", 10)


class Idle(ThreadReaders):
    """Watches no descriptor: a test makes the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.callbacks: list[Callable[[], None]] = []

    def _start(self, descriptor: int, event: int, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)


def test_two_threads_that_read_one_client_keep_the_order_of_its_bytes(tmp_path: Path) -> None:
    """A thread whose reader was removed may still read once, beside the thread of the reader that was added since."""
    heard: list[object] = []

    def note(request: Mapping[str, Any], reply: Reply) -> None:
        heard.append(request.get("word"))

    loop = Idle()
    server = ControlServer(tmp_path / "socket", loop, note, line_bytes_max=LINE_BYTES_MAX)
    with closing(server), socket.socket(socket.AF_UNIX) as raw:
        raw.connect(server.address)
        loop.callbacks[0]()
        (client,) = server._clients
        second = Thread(target=loop.callbacks[1])

        def meanwhile() -> None:
            raw.sendall(b'1}\n{"word": 2}\n')
            second.start()
            second.join(0.5)  # ends before only where the two threads do not exclude each other

        raw.sendall(b'{"word": ')
        client.socket = cast(socket.socket, Held(client.socket, meanwhile))
        loop.callbacks[1]()
        second.join(WAIT_S)
        assert heard == [1, 2]


def test_a_client_that_is_accepted_while_the_server_closes_is_cut_off(tmp_path: Path) -> None:
    loop = Idle()
    server = ControlServer(tmp_path / "socket", loop, echo, line_bytes_max=LINE_BYTES_MAX)
    closer = Thread(target=server.close)

    def meanwhile() -> None:
        closer.start()
        closer.join(0.5)  # ends before only where closing does not wait for accepting

    with closing(server), socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(WAIT_S)
        raw.connect(server.address)
        server._listener = cast(socket.socket, Held(server._listener, meanwhile))
        loop.callbacks[0]()
        closer.join(WAIT_S)
        assert raw.recv(1) == b""
        assert server._spare is None  # its descriptor would be left open
        loop.callbacks[0]()  # a thread that woke up before the close
        assert server._spare is None


def test_only_the_owner_may_connect_to_a_socket_file_and_a_long_path_is_refused(tmp_path: Path) -> None:
    with closing(serving(tmp_path / "socket")):
        assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == 0o600
    with pytest.raises(ValueError, match="at most 107 bytes"):
        serving(tmp_path / ("s" * 120))


def test_a_client_that_reads_late_gets_every_answer_in_order(tmp_path: Path) -> None:
    """More answers than a socket takes, from a server with threads."""
    words = [f"{number:04}" * 1000 for number in range(500)]
    with closing(serving(tmp_path / "socket")) as server, socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(WAIT_S)
        raw.connect(server.address)
        requests = [json.dumps({"id": n, "op": "echo", "word": word}).encode() for n, word in enumerate(words)]
        sender = Thread(target=raw.sendall, args=(b"\n".join([*requests, b""]),))
        sender.start()
        poll = select.poll()
        poll.register(raw, select.POLLIN)
        assert poll.poll(WAIT_S * 1e3)
        with raw.makefile("rb") as answers:
            found = [json.loads(answers.readline())["result"] for _ in words]
        sender.join()
    assert found == words


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder in which every user may make files, such as /tmp."""
    let_all_enter(tmp_path)
    made = tmp_path / "shared"
    made.mkdir()
    made.chmod(0o1777)
    return made


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A socket of this process that listens."""
    path = tmp_path / "ours.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        yield path


def test_a_socket_of_ours_is_connected_to_however_deep_its_folder_is(tmp_path, monkeypatch) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(deep)
        listening.bind("ours.sock")
        listening.listen()
        with connected(deep / "ours.sock") as made:
            assert made.getpeername() == "ours.sock"


def test_a_link_to_a_socket_and_a_file_are_no_sockets_of_ours(ours: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ours)
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(ForeignSocketError, match="must be a socket"):
            connected(tmp_path / name)


def test_where_no_process_listens_the_error_says_so(ours: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        connected(tmp_path / "none")
    left = tmp_path / "left"
    with socket.socket(socket.AF_UNIX) as ended:
        ended.bind(str(left))
    with pytest.raises(ConnectionRefusedError):
        connected(left)


@pytest.mark.root
@pytest.mark.parametrize("abstract", [False, True])
def test_a_stranger_who_listens_is_refused_by_name(shared: Path, abstract: bool) -> None:
    place = f"\0mrclab-{shared}" if abstract else str(shared / "fake")
    with socket_of_a_stranger(place), pytest.raises(ForeignSocketError, match=f"user {NOBODY} listens") as caught:
        connected(place if abstract else Path(place))
    assert caught.value.user == NOBODY


@pytest.mark.root
def test_no_request_reaches_a_stranger(shared: Path) -> None:
    path = shared / "control"
    with control_of_a_stranger(path, {}) as asked:
        with pytest.raises(ControlError, match=f"must be a socket of root's or yours .user {NOBODY} listens"):
            ControlClient(path)
        with pytest.raises(ControlError, match="must be a socket of root's"):
            ControlClient.of_living(path)
        with as_a_stranger(), ControlClient(path) as client:  # as their own user: it is theirs
            client.call("ping")
    assert [one["op"] for one in asked] == ["ping"]


@pytest.mark.root
def test_a_path_of_a_stranger_is_refused_where_root_has_not_given_it(shared: Path) -> None:
    """A user takes a socket of root's whose path is root's, and not one whose path is a third user's."""
    path = shared / "given"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        path.chmod(0o666)
        listening.listen()
        with as_a_stranger():
            connected(path).close()
        os.chown(path, 1234, 1234)
        connected(path).close()  # root gave it, so root may use it
        with as_a_stranger(), pytest.raises(ForeignSocketError, match="user 1234 owns it"):
            connected(path)


def test_a_listener_that_accepts_no_client_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "full"
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(path))
        listening.listen(0)
        stack.enter_context(connected(path))  # its queue is full now
        with pytest.raises(BlockingIOError):
            connected(path, limit_s=0.05)

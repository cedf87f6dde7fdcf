"""A client talks to processes of root and of its own user alone."""

import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from common.client import ControlClient, ControlError
from common.linux.rights import NOBODY
from common.unix_socket import ForeignSocketError, connected
from tests.helpers.stranger import as_a_stranger, control_of_a_stranger, let_all_enter, socket_of_a_stranger


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

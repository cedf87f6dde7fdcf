"""A program's session by itself, without a socket: in which order it tells what."""

import ctypes
import errno
import json
import os
from typing import Any

import pytest

from benchmarks.rig.profiles import profile as profile_data
from common import uverbs
from endpoint import factory
from endpoint import profile as profiles
from endpoint.uverbs.channel import make_channel
from endpoint.uverbs.refusal import RefusedError
from endpoint.uverbs.regions import SECRET_BYTES, ProgramMemory
from endpoint.uverbs.session import Session
from endpoint.uverbs.shared_memory import make_shared


def test_a_request_after_an_error_is_flushed_behind_those_before_it() -> None:
    """All in one go of the agent: nothing is told in between, and yet completions keep the order of requests."""
    profile = profiles.parse(json.loads(json.dumps(profile_data(0))))
    nic: Any = factory.make("mrc", profile, 1, {}, 0)
    session = Session(
        nic,
        hosts={name: str(one.address) for name, one in profile.destinations.items()},
        about=dict,
        make_memory=make_shared,
        make_channel=make_channel,
    )

    def ask(op: str, **arguments: Any) -> dict[str, Any]:
        session.receive(json.dumps({"id": 1, "op": op, **arguments}).encode(), 0)
        answer = session.outgoing()
        assert answer is not None
        if answer.descriptor is not None:
            os.close(answer.descriptor)
        found: dict[str, Any] = json.loads(answer.data)
        assert found["ok"], found
        result: dict[str, Any] = found["result"]
        return result

    def write(wr_id: int) -> None:
        session.receive(uverbs.pack_requests([uverbs.Request(wr_id, 0, 0, qpn, 64, lkey, 1, 0, uverbs.WRITE)]), 0)

    ask("open", version=uverbs.VERSION, program="test")
    lkey = ask("reg_mr", length=4096, remote_write=False)["lkey"]
    cq, other = ask("create_cq", cqe=64)["cq"], ask("create_cq", cqe=64)["cq"]
    peer = next(iter(profile.destinations.values()))
    qpn = ask("create_qp", cq=cq, recv_cq=other, attributes={"max_send_wr": 8, "max_recv_wr": 8})["qpn"]
    known = {"peer": {"address": str(peer.address), "qpn": 9, "psn": 1}}
    for state in ("init", "rtr", "rts"):
        ask("modify_qp", qpn=qpn, state=state, attributes={}, **(known if state == "rtr" else {}))
    write(1)
    write(2)
    failed = {"id": 1, "op": "modify_qp", "qpn": qpn, "state": "error", "attributes": {}}
    session.receive(json.dumps(failed).encode(), 0)
    write(3)
    session.outgoing()  # the answer
    told = session.outgoing()
    assert told is not None
    assert [row.wr_id for row in uverbs.unpack_completions(told.data)] == [1, 2, 3]
    session.close(0)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EMFILE, "Too many open files (EMFILE)"),
        (errno.ENOSPC, "No space left on device (ENOSPC)"),
        (errno.EXDEV, "Invalid cross-device link (EIO)"),  # an errno that programs do not expect of a NIC
        (None, "no memory here (EIO)"),
    ],
)
def test_an_error_of_the_kernel_is_answered_with_its_errno(number: int | None, said: str) -> None:
    profile = profiles.parse(json.loads(json.dumps(profile_data(0))))
    nic: Any = factory.make("mrc", profile, 1, {}, 0)

    def make_memory(length: int) -> tuple[int, memoryview]:
        raise OSError("no memory here") if number is None else OSError(number, os.strerror(number))

    session = Session(nic, hosts={}, about=dict, make_memory=make_memory, make_channel=make_channel)
    for request in ({"op": "open", "version": uverbs.VERSION, "program": "test"}, {"op": "reg_mr", "length": 4096}):
        session.receive(json.dumps({"id": 1, **request}).encode(), 0)
    session.outgoing()  # the answer to open
    told = session.outgoing()
    assert told is not None
    assert json.loads(told.data) == {"id": 1, "ok": False, "error": said}
    session.close(0)


def test_existing_memory_of_another_users_process_is_refused() -> None:
    """The memory of a set-uid program is root's, for any user who starts it and with any secret in it."""
    secret = ctypes.create_string_buffer(os.urandom(SECRET_BYTES), SECRET_BYTES)
    at = ctypes.addressof(secret)
    own = ProgramMemory(os.getpid, secret.raw, os.geteuid())
    assert own.sink(at, at)(0, memoryview(b"mine"))
    assert secret.raw.startswith(b"mine")
    other = ProgramMemory(os.getpid, secret.raw, os.geteuid() + 1)
    with pytest.raises(RefusedError, match="has the rights of another user"):
        other.sink(at, at)
    own.close()


def test_the_memory_of_a_process_that_cannot_be_opened_is_refused_with_an_errno() -> None:
    memory = ProgramMemory(lambda: 1 << 30, bytes(SECRET_BYTES), os.geteuid())  # beyond any process number
    with pytest.raises(RefusedError, match=r"cannot be opened: No such file or directory \(EIO\); registering"):
        memory.sink(0, 0)

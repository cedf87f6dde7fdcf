"""Switches that answer nonsense, or nothing: a difference that names the switch, never an exception of protobuf."""

import os
import pwd
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from controller import Address, Pipelines, cli, client, items, verify
from controller.client import ClientError, GrpcChannels, P4RuntimeClient
from controller.push import push
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code
from tests.helpers.stranger import socket_of_a_stranger

NONSENSE = b"\x0a\x7f"


@contextmanager
def switch(
    get: bytes = b"", read: tuple[bytes, ...] = (), stream: Callable[[Any], Iterator[bytes]] = iter
) -> Iterator[Address]:
    """A server that gives these bytes for answers; its address."""
    kinds = {
        "GetForwardingPipelineConfig": grpc.unary_unary_rpc_method_handler(lambda request, context: get),
        "Read": grpc.unary_stream_rpc_method_handler(lambda request, context: iter(read)),
        "StreamChannel": grpc.stream_stream_rpc_method_handler(lambda requests, context: stream(requests)),
    }
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("p4.v1.P4Runtime", kinds),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield Address(f"127.0.0.1:{port}", 1)
    finally:
        server.stop(None).wait()


def cookie(pipelines: Pipelines) -> bytes:
    response = p4rt.GetForwardingPipelineConfigResponse()
    response.config.cookie.cookie = pipelines["leaf"].cookie
    return bytes(response.SerializeToString())


def test_an_answer_that_is_no_message_is_the_switchs_refusal(tiny, pipelines: Pipelines) -> None:
    with switch(get=NONSENSE) as address:
        (difference,) = verify(tiny, {"p0l0": address}, pipelines=pipelines).differences
    expected = f"p0l0 ({address}): the answer to GetForwardingPipelineConfig is no P4Runtime message"
    assert (difference.kind, difference.detail) == ("refused", expected)
    with switch(get=cookie(pipelines), read=(NONSENSE,)) as address:
        (difference,) = verify(tiny, {"p0l0": address}, pipelines=pipelines).differences
    assert (difference.kind, difference.detail) == (
        "refused",
        f"p0l0 ({address}): the answer to Read is no P4Runtime message",
    )


def test_entities_that_cannot_be_read_are_named_as_unexpected(pipelines: Pipelines) -> None:
    p4info = pipelines["leaf"].p4info
    entities = (
        p4rt.Entity(table_entry=p4rt.TableEntry(table_id=99)),
        p4rt.Entity(action_profile_member=p4rt.ActionProfileMember(action_profile_id=98)),
        p4rt.Entity(action_profile_group=p4rt.ActionProfileGroup(action_profile_id=97)),
        p4rt.Entity(meter_entry=p4rt.MeterEntry(meter_id=96, config=p4rt.MeterConfig(cir=1))),
    )
    changes = items.compare(p4info, [], [NONSENSE, *(entity.SerializeToString() for entity in entities)])
    assert changes.unreadable == (
        "INVALID_ARGUMENT: an entity that is no P4Runtime message: 0a7f",
        "INVALID_ARGUMENT: an entity of table id 99, which the P4Info does not have",
        "INVALID_ARGUMENT: an entity of action profile id 98, which the P4Info does not have",
        "INVALID_ARGUMENT: an entity of action profile id 97, which the P4Info does not have",
        "INVALID_ARGUMENT: an entity of meter id 96, which the P4Info does not have",
    )


def elected(status: int, update: str) -> Callable[[Any], Iterator[bytes]]:
    """A switch that sends another kind of message before its answer to the first election."""

    def stream(requests: Any) -> Iterator[bytes]:
        next(requests)
        other = p4rt.StreamMessageResponse()
        getattr(other, update).SetInParent()
        yield other.SerializeToString()
        answer = p4rt.StreamMessageResponse()
        answer.arbitration.status.code = status
        answer.arbitration.election_id.low = 1
        yield answer.SerializeToString()
        for _ in requests:
            pass

    return stream


@pytest.mark.parametrize("update", ["packet", "digest", "error"])
def test_only_an_answer_to_the_election_makes_a_primary(update: str) -> None:
    with switch(stream=elected(Code.OK, update)) as address, GrpcChannels() as channels:
        P4RuntimeClient(channels, "p0l0", address).as_primary().close()
    refused = pytest.raises(ClientError, match="another controller is primary, with election id 1")
    with switch(stream=elected(Code.ALREADY_EXISTS, update)) as address, GrpcChannels() as channels, refused:
        P4RuntimeClient(channels, "p0l0", address).as_primary()


def test_a_switch_that_never_answers_an_election_is_named_with_the_time(tiny, pipelines, monkeypatch) -> None:
    def silent(requests: Any) -> Iterator[bytes]:
        for _ in requests:
            pass
        yield from ()

    monkeypatch.setattr(client, "RPC_TIMEOUT_S", 0.2)
    with switch(stream=silent) as address:
        (difference,) = push(tiny, {"p0l0": address}, pipelines=pipelines).differences
    assert (difference.kind, difference.detail) == (
        "refused",
        f"p0l0 ({address}): the switch must answer an election within 0.2 s; no answer came",
    )


@pytest.mark.root
def test_no_channel_is_made_to_a_stranger() -> None:
    with tempfile.TemporaryDirectory(prefix="s-") as folder, GrpcChannels() as channels:
        Path(folder).chmod(0o1777)
        with socket_of_a_stranger(f"{folder}/grpc"), pytest.raises(ClientError, match="user 65534 listens"):
            channels.get(f"unix:{folder}/grpc")


@pytest.mark.root
def test_roots_shell_runs_no_profile_of_the_user_who_called_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython runs `profile_default/startup/*.py` below IPYTHONDIR or HOME, which `sudo -E` keeps."""
    became: list[Mapping[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda path, words, environment: became.append(environment))
    monkeypatch.setattr(cli, "shell_python", lambda: Path("/bin/true"))
    monkeypatch.setattr(cli, "_fabric", lambda options: (None, {"p0l0": Address("localhost:1", 1)}))
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("IPYTHONDIR", "/home/somebody/own")
    cli.run_shell(Namespace(switch="p0l0", words=[]))
    assert (became[0]["HOME"], "IPYTHONDIR" in became[0]) == (pwd.getpwuid(0).pw_dir, False)

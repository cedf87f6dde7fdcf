"""A learning switch: the native engine, digests and idle entries over P4Runtime, and its controller."""

from __future__ import annotations

import queue
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import text_format

from p4c.frontend import compile_program
from switch.p4rt.bindings import p4info_pb2, p4runtime_pb2 as p4rt
from tests.helpers.p4.stub import P4RuntimeStub
from tests.helpers.waiting import eventually

WAIT_S = 30
PORTS = (1, 2, 3)
BROADCAST = 1


class LearningController:
    """Enters each sender that it is told, and removes those that are idle."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address)
        self.stub = P4RuntimeStub(self.channel)
        self.requests: queue.Queue[Any] = queue.Queue()
        self.responses = self.stub.StreamChannel(iter(self.requests.get, None), timeout=WAIT_S)
        self.port_of: dict[bytes, bytes] = {}
        arbitration = p4rt.MasterArbitrationUpdate(device_id=1, election_id=p4rt.Uint128(low=1))
        self.requests.put(p4rt.StreamMessageRequest(arbitration=arbitration))
        assert next(self.responses).arbitration.status.code == 0
        compiled = compile_program(Path(__file__).parent / "learning.p4")
        config = p4rt.ForwardingPipelineConfig(p4_device_config=compiled.json_text.encode())
        self.info: p4info_pb2.P4Info = text_format.Parse(compiled.p4info_text, config.p4info)
        self.stub.SetForwardingPipelineConfig(
            p4rt.SetForwardingPipelineConfigRequest(
                device_id=1, election_id=p4rt.Uint128(low=1), action="VERIFY_AND_COMMIT", config=config
            )
        )
        digest = p4rt.DigestEntry(digest_id=self.info.digests[0].preamble.id)
        digest.config.max_timeout_ns, digest.config.ack_timeout_ns = 1_000_000, 60 * 1_000_000_000
        flood = p4rt.Entity()
        group = flood.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = BROADCAST
        for port in PORTS:
            group.replicas.add(egress_port=port, instance=1)
        self.write("INSERT", p4rt.Entity(digest_entry=digest), flood)

    def write(self, kind: str, *entities: Any) -> None:
        request = p4rt.WriteRequest(device_id=1, election_id=p4rt.Uint128(low=1))
        for entity in entities:
            request.updates.add(type=kind, entity=entity)
        self.stub.Write(request)

    def entries(self, address: bytes, timeout_ns: int = 0) -> list[Any]:
        """The sender, and the receiver that it is as well."""
        made = []
        for table, name in zip(self.info.tables, ("NoAction", "I.forward"), strict=True):
            entry = p4rt.TableEntry(table_id=table.preamble.id)
            entry.match.add(field_id=1).exact.value = address
            action = next(a for a in self.info.actions if a.preamble.name == name)
            entry.action.action.action_id = action.preamble.id
            if action.params:
                entry.action.action.params.add(param_id=1, value=self.port_of[address])
            else:
                entry.idle_timeout_ns = timeout_ns
            made.append(p4rt.Entity(table_entry=entry))
        return made

    def step(self) -> bytes:
        """Does what the next notification asks for; the address that it was about."""
        told = next(self.responses)
        if told.HasField("digest"):
            (one,) = told.digest.data
            address, port = (member.bitstring for member in one.struct.members)
            self.port_of[address] = port
            self.write("INSERT", *self.entries(address))
            ack = p4rt.DigestListAck(digest_id=told.digest.digest_id, list_id=told.digest.list_id)
            self.requests.put(p4rt.StreamMessageRequest(digest_ack=ack))
            return bytes(address)
        (entry,) = told.idle_timeout_notification.table_entry
        address = bytes(entry.match[0].exact.value)
        assert entry.idle_timeout_ns == 1_000_000
        self.write("DELETE", *self.entries(address))
        return address

    def close(self) -> None:
        self.requests.put(None)
        self.channel.close()


A, B = b"\x0a", b"\x0b"


def frame(source: bytes, destination: bytes) -> bytes:
    return destination.rjust(6, b"\0") + source.rjust(6, b"\0") + b"\x88\xb5" + bytes(46)


def test_a_controller_learns_and_forgets_without_a_network(native: Any) -> None:
    device = native.devices.get(1)
    sent = dict.fromkeys(PORTS, 0)

    def arrives(port: int, data: bytes, at: set[int]) -> None:
        """The frame leaves by these ports and no others."""
        device.engine.receive(port, data, device.data_plane.now_ns())
        for where in at:
            sent[where] += 1

        def left() -> dict[int, int]:
            return {number: counters.tx_packets for number, counters in device.port_counters().items()}

        eventually(lambda: left() == sent, "the frame leaves by these ports")

    with closing(LearningController(f"127.0.0.1:{native.port}")) as controller:
        arrives(1, frame(A, B), {2, 3})
        assert (controller.step(), controller.port_of) == (A, {A: b"\x01"})
        arrives(2, frame(B, A), {1})
        assert (controller.step(), controller.port_of[B]) == (B, b"\x02")
        arrives(1, frame(A, B), {2})
        controller.write("MODIFY", controller.entries(A, 1_000_000)[0])
        assert controller.step() == A
        arrives(2, frame(B, A), {1, 3})


def test_a_device_without_a_primary_drops_what_it_has_to_tell(native: Any) -> None:
    device = native.devices.get(1)
    with closing(LearningController(f"127.0.0.1:{native.port}")) as controller:
        controller.responses.cancel()
        arbiter = native.server._streams.arbiter(device)
        eventually(lambda: arbiter.primaries() == [], "the controller is gone")
        device.engine.receive(1, frame(A, B), device.data_plane.now_ns())
        eventually(lambda: device.port_counters()[2].tx_packets == 1, "the frame leaves")
        eventually(lambda: device.store.digests.next_ns is None, "the digest is dropped")
    with closing(LearningController(f"127.0.0.1:{native.port}")) as controller:
        device.engine.receive(1, frame(A, B), device.data_plane.now_ns())
        assert controller.step() == A

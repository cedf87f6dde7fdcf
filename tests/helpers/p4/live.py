"""A live P4Runtime switch on veth pairs, behind the methods of `switch.engine` that a packet test needs."""

import itertools
import queue
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import grpc

from controller.entries import DefaultEntry, Entity, GroupEntry, MeterEntry, SelectorGroup, SelectorMember, TableEntry
from controller.items import encode
from p4c.entries import ActionCall, Entry, GroupRef
from switch.engine import CounterValue, MeterConfig, PortConfig, Transmitted
from switch.p4rt.bindings import p4runtime_pb2
from switch.p4rt.p4info import parse_p4info_text
from tests.helpers.p4.stub import P4RuntimeStub
from tests.helpers.p4.wires import Namespace, Wires

DEVICE = 1
SETTLE_S = 10  # at most


class LiveSwitch:
    """Device 1 of a process that a subclass starts, with ports 1…n, loaded with the program and its P4Info."""

    def __init__(self, program_json: bytes, p4info_text: str, ports: Sequence[int] = (1, 2, 3, 4)) -> None:
        self._json = program_json
        self._names = parse_p4info_text(p4info_text)
        self.p4info = self._names.message
        self._ports = ports
        self._injected = self._collected = 0
        self._close = ExitStack()
        try:
            self.namespace = self._close.enter_context(Namespace())
            self.wires = Wires(self.namespace, ports)
            self._close.callback(self.wires.close)
            channel = self._close.enter_context(grpc.insecure_channel(self._start(ports)))
            grpc.channel_ready_future(channel).result(timeout=20)
            self.stub = P4RuntimeStub(channel)
            self.become_primary()
            self.load()
        except BaseException:
            self._close.close()
            raise

    def _start(self, ports: Sequence[int]) -> str:
        """Start the process and see to its end; the address of its P4Runtime server."""
        raise NotImplementedError

    def close(self) -> None:
        self._close.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def become_primary(self) -> None:
        requests: queue.SimpleQueue[p4runtime_pb2.StreamMessageRequest | None] = queue.SimpleQueue()
        self._close.callback(requests.put, None)
        arbitration = p4runtime_pb2.StreamMessageRequest()
        arbitration.arbitration.device_id = DEVICE
        arbitration.arbitration.election_id.low = 1
        requests.put(arbitration)
        self._stream: Iterator[p4runtime_pb2.StreamMessageResponse] = self.stub.StreamChannel(iter(requests.get, None))
        assert next(self._stream).arbitration.status.code == 0

    def load(self, program: object = None) -> None:
        """Push the pipeline (again), which empties tables and externs. The argument is for the shape of `Engine`."""
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=DEVICE)
        request.election_id.low = 1
        request.action = p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(self.p4info)
        request.config.p4_device_config = self._json
        self.stub.SetForwardingPipelineConfig(request)
        self._handles = itertools.count(1)
        self._entries: dict[int, Entity] = {}
        self._injected = self._collected = 0

    # --- what a packet test writes ---

    def _find(self, kind: str, name: str) -> Any:
        found = [item for item in getattr(self.p4info, kind) if name in (item.preamble.name, item.preamble.alias)]
        assert len(found) == 1, f"{kind}: {name}"
        return found[0]

    def _write(self, kind: int, entity: Entity) -> None:
        request = p4runtime_pb2.WriteRequest(device_id=DEVICE)
        request.election_id.low = 1
        request.updates.add(type=kind).entity.MergeFromString(encode(self._names, entity).body)
        self.stub.Write(request)

    def insert_entry(self, table: str, entry: Entry) -> int:
        fields = (field.name for field in self._find("tables", table).match_fields)
        match, action = tuple(zip(fields, entry.matches, strict=True)), entry.action
        if isinstance(action, GroupRef):
            entity: Entity = GroupEntry(table, match, action.group_id)
        else:
            assert isinstance(action, ActionCall), action
            entity = TableEntry(table, match, action.name, action.args)
        self._write(p4runtime_pb2.Update.INSERT, entity)
        handle = next(self._handles)
        self._entries[handle] = entity
        return handle

    def delete_entry(self, table: str, handle: int) -> None:
        self._write(p4runtime_pb2.Update.DELETE, self._entries.pop(handle))

    def set_default_action(self, table: str, action: ActionCall) -> None:
        self._write(p4runtime_pb2.Update.MODIFY, DefaultEntry(table, action.name, action.args))

    def set_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        self._write(p4runtime_pb2.Update.INSERT, SelectorMember(profile, member_id, action.name, action.args))

    def set_group(self, profile: str, group_id: int, members: Sequence[tuple[int, int]]) -> None:
        assert all(weight == 1 for _, weight in members), "the controller's groups have members of one weight"
        numbers = tuple(member for member, _ in members)
        self._write(p4runtime_pb2.Update.INSERT, SelectorGroup(profile, group_id, numbers, len(numbers)))

    def set_meter(self, name: str, index: int, config: MeterConfig) -> None:
        self._write(p4runtime_pb2.Update.MODIFY, MeterEntry(name, index, config))

    def read_counter(self, name: str, index: int) -> CounterValue:
        request = p4runtime_pb2.ReadRequest(device_id=DEVICE)
        counter = request.entities.add().counter_entry
        counter.counter_id = self._find("counters", name).preamble.id
        counter.index.index = index
        (entity,) = next(self.stub.Read(request)).entities
        return CounterValue(entity.counter_entry.data.packet_count, entity.counter_entry.data.byte_count)

    # --- packets: the clock is the wall's, so times are ignored ---

    def configure_port(self, port: int, config: PortConfig, now_ns: int) -> None:
        assert config == PortConfig(), "queue rates and depths of BMv2 are set with cli()"

    def receive(self, port: int, frame: bytes, now_ns: int) -> None:
        self.wires.send(port, frame)
        self._injected += 1

    def next_event_ns(self) -> int | None:
        return None if self._settled() else 0

    def advance(self, now_ns: int) -> list[Transmitted]:
        """Everything that comes out until nothing is left inside, in order within each port."""
        found = self.wires.drain()
        until = time.monotonic() + SETTLE_S
        while not self._settled(len(found)) and time.monotonic() < until:
            found += self.wires.collect(bool, 0.005)
        self._collected += len(found)
        return [Transmitted(now_ns, port, frame) for port, frame in found]

    def _settled(self, collected: int = 0) -> bool:
        """By the program's own counters: all that was injected was received, and sent and collected, or dropped. Beside
        a drop an answer may be sent."""
        if self._injected == 0:
            return True
        if self._total("received") != self._injected:
            return False
        sent = self._total("sent")
        if sent != self._collected + collected:
            return False
        if sent == self._injected:
            return True
        drops = [c.preamble.alias for c in self.p4info.counters if c.preamble.alias.endswith("_drops")]
        ended = sent + sum(map(self._total, drops))
        if any(c.preamble.alias == "returned" for c in self.p4info.counters):
            return ended >= self._injected  # a packet without a route counts as dropped, and as sent if it goes back
        return ended == self._injected + self._total("time_exceeded")

    def _total(self, name: str) -> int:
        request = p4runtime_pb2.ReadRequest(device_id=DEVICE)
        counter_id = self._find("counters", name).preamble.id
        for port, traffic_class in itertools.product(self._ports, range(8)):
            cell = request.entities.add().counter_entry
            cell.counter_id, cell.index.index = counter_id, port * 8 + traffic_class
        answers = self.stub.Read(request)
        return sum(entity.counter_entry.data.packet_count for answer in answers for entity in answer.entities)

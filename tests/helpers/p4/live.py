"""A live P4Runtime switch on veth pairs, behind the methods of `switch.engine` that a packet test needs."""

import itertools
import queue
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf import text_format

from p4c.entries import ActionCall, Entry, EntryAction, Exact, GroupRef, Lpm, MemberRef
from switch.engine import CounterValue, MeterConfig, PortConfig, Transmitted
from switch.p4rt.bindings import p4info_pb2, p4runtime_pb2
from tests.helpers.p4.stub import P4RuntimeStub
from tests.helpers.p4.wires import Namespace, Wires

DEVICE = 1
SETTLE_S = 10  # at most


class LiveSwitch:
    """Device 1 of a process that a subclass starts, with ports 1…n, loaded with the program and its P4Info."""

    def __init__(self, program_json: bytes, p4info_text: str, ports: Sequence[int] = (1, 2, 3, 4)) -> None:
        self._json = program_json
        self.p4info = text_format.Parse(p4info_text, p4info_pb2.P4Info())
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
        self._injected = self._collected = 0

    # --- what a packet test writes ---

    def _find(self, kind: str, name: str) -> Any:
        found = [item for item in getattr(self.p4info, kind) if name in (item.preamble.name, item.preamble.alias)]
        assert len(found) == 1, f"{kind}: {name}"
        return found[0]

    def _write(self, kind: int, fill: p4runtime_pb2.Entity) -> None:
        request = p4runtime_pb2.WriteRequest(device_id=DEVICE)
        request.election_id.low = 1
        request.updates.add(type=kind).entity.CopyFrom(fill)
        self.stub.Write(request)

    def _action(self, call: ActionCall) -> p4runtime_pb2.Action:
        info = self._find("actions", call.name)
        message = p4runtime_pb2.Action(action_id=info.preamble.id)
        for parameter, value in zip(info.params, call.args, strict=True):
            message.params.add(param_id=parameter.id, value=value.to_bytes((parameter.bitwidth + 7) // 8, "big"))
        return message

    def _table_action(self, action: EntryAction) -> p4runtime_pb2.TableAction:
        if isinstance(action, GroupRef):
            return p4runtime_pb2.TableAction(action_profile_group_id=action.group_id)
        if isinstance(action, MemberRef):
            return p4runtime_pb2.TableAction(action_profile_member_id=action.member_id)
        return p4runtime_pb2.TableAction(action=self._action(action))

    def insert_entry(self, table: str, entry: Entry) -> int:
        info = self._find("tables", table)
        entity = p4runtime_pb2.Entity()
        message = entity.table_entry
        message.table_id = info.preamble.id
        for field, match in zip(info.match_fields, entry.matches, strict=True):
            width = (field.bitwidth + 7) // 8
            if isinstance(match, Exact):
                message.match.add(field_id=field.id).exact.value = match.value.to_bytes(width, "big")
            elif isinstance(match, Lpm) and match.prefix_len:
                lpm = message.match.add(field_id=field.id).lpm
                lpm.value, lpm.prefix_len = match.value.to_bytes(width, "big"), match.prefix_len
            else:
                assert isinstance(match, Lpm), match
        message.action.CopyFrom(self._table_action(entry.action))
        self._write(p4runtime_pb2.Update.INSERT, entity)
        return next(self._handles)

    def set_default_action(self, table: str, action: ActionCall | None) -> None:
        entity = p4runtime_pb2.Entity()
        entity.table_entry.table_id = self._find("tables", table).preamble.id
        entity.table_entry.is_default_action = True
        if action is not None:
            entity.table_entry.action.action.CopyFrom(self._action(action))
        self._write(p4runtime_pb2.Update.MODIFY, entity)

    def set_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        entity = p4runtime_pb2.Entity()
        member = entity.action_profile_member
        member.action_profile_id = self._find("action_profiles", profile).preamble.id
        member.member_id = member_id
        member.action.CopyFrom(self._action(action))
        self._write(p4runtime_pb2.Update.INSERT, entity)

    def set_group(self, profile: str, group_id: int, members: Sequence[tuple[int, int]]) -> None:
        entity = p4runtime_pb2.Entity()
        group = entity.action_profile_group
        group.action_profile_id = self._find("action_profiles", profile).preamble.id
        group.group_id = group_id
        group.max_size = len(members)
        for member_id, weight in members:
            group.members.add(member_id=member_id, weight=weight)
        self._write(p4runtime_pb2.Update.INSERT, entity)

    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None:
        entity = p4runtime_pb2.Entity()
        meter = entity.meter_entry
        meter.meter_id = self._find("meters", name).preamble.id
        meter.index.index = index
        if config is not None:
            meter.config.cir, meter.config.cburst = config.cir, config.cburst
            meter.config.pir, meter.config.pburst = config.pir, config.pburst
        self._write(p4runtime_pb2.Update.MODIFY, entity)

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
        """By the program's own counters: all that was injected was received, and sent and collected, or dropped."""
        if self._injected == 0:
            return True
        if self._total("received") != self._injected:
            return False
        sent = self._total("sent")
        if sent != self._collected + collected:
            return False
        drops = [c.preamble.alias for c in self.p4info.counters if c.preamble.alias.endswith("_drops")]
        return sent == self._injected or sent + sum(map(self._total, drops)) == self._injected

    def _total(self, name: str) -> int:
        request = p4runtime_pb2.ReadRequest(device_id=DEVICE)
        counter_id = self._find("counters", name).preamble.id
        for port, traffic_class in itertools.product(self._ports, range(8)):
            cell = request.entities.add().counter_entry
            cell.counter_id, cell.index.index = counter_id, port * 8 + traffic_class
        answers = self.stub.Read(request)
        return sum(entity.counter_entry.data.packet_count for answer in answers for entity in answer.entities)

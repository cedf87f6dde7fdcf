"""A live `simple_switch_grpc` on veth pairs, behind the methods of `switch.engine` that a packet test needs."""

from __future__ import annotations

import itertools
import queue
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import grpc
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

from switch.engine import (
    ActionCall,
    CounterValue,
    Entry,
    EntryAction,
    Exact,
    GroupRef,
    Lpm,
    MemberRef,
    MeterConfig,
    PortConfig,
    Transmitted,
)
from tests.p4.wires import Namespace, Wires

DEVICE = 1
QUIET_S = 0.15  # BMv2 forwards in well under a millisecond; this is what silence means


class Bmv2:
    """One switch with ports 1…n, eight priority queues, loaded with `program_json` and `p4info_text`."""

    def __init__(self, program_json: bytes, p4info_text: str, ports: Sequence[int] = (1, 2, 3, 4)) -> None:
        self._close = ExitStack()
        try:
            self._start(program_json, p4info_text, ports)
        except BaseException:
            self._close.close()
            raise

    def _start(self, program_json: bytes, p4info_text: str, ports: Sequence[int]) -> None:
        directory = Path(self._close.enter_context(tempfile.TemporaryDirectory(prefix="bmv2-")))
        self.namespace = self._close.enter_context(Namespace())
        self.wires = Wires(self.namespace, ports)
        self._close.callback(self.wires.close)
        address = f"unix:{directory}/grpc"
        interfaces = [word for port in ports for word in ("-i", f"{port}@s{port}")]
        command = self.namespace.command(
            *("simple_switch_grpc", "--no-p4", "--device-id", str(DEVICE), *interfaces),
            *(
                "--notifications-addr",
                f"ipc://{directory}/notifications",
                "--log-file",
                f"{directory}/log",
                "-L",
                "warn",
            ),
            *("--thrift-port", "9090", "--", "--grpc-server-addr", address, "--priority-queues", "8"),
            *("--drop-port", "511"),
        )
        log = self._close.enter_context((directory / "stdout").open("w"))
        self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        self._close.callback(self.process.wait)
        self._close.callback(self.process.kill)
        channel = self._close.enter_context(grpc.insecure_channel(address))
        grpc.channel_ready_future(channel).result(timeout=20)
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        self._become_primary()
        self.p4info = text_format.Parse(p4info_text, p4info_pb2.P4Info())
        self._json = program_json
        self._moving = False
        self.load()

    def _become_primary(self) -> None:
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

    def close(self) -> None:
        self._close.close()

    def __enter__(self) -> Bmv2:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def cli(self, *commands: str) -> str:
        """Thrift, for what P4Runtime has no word for: queue rates and depths, registers."""
        return self.namespace.run("simple_switch_CLI", "--thrift-port", "9090", text="\n".join(commands) + "\n")

    # --- what a packet test writes ---

    def _find(self, kind: str, name: str) -> object:
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
        self._moving = True

    def next_event_ns(self) -> int | None:
        return 0 if self._moving else None

    def advance(self, now_ns: int) -> list[Transmitted]:
        """Whatever comes out until it has been quiet for a while, in order within each port."""
        found: list[tuple[int, bytes]] = []
        while self._moving:
            more = self.wires.collect(bool, QUIET_S)
            self._moving = bool(more)
            found += more
        return [Transmitted(now_ns, port, frame) for port, frame in found]

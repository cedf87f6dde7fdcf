"""A P4Runtime server over an engine that only remembers: tests see exactly what reaches the data plane."""

import asyncio
import contextlib
import itertools
import queue
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.protobuf import text_format
from google.rpc import status_pb2

from p4c import model
from p4c.entries import ActionCall, Entry, Exact
from switch.config import DeviceConfig, PortSpec
from switch.device import Devices, Lateness
from switch.engine import CounterValue, EngineError, NoRoomError, PortCounters
from switch.native.dataplane import NativeDataPlane
from switch.p4rt.bindings import p4info_pb2, p4runtime_pb2 as p4rt
from switch.p4rt.pipeline import PipelineCache
from switch.p4rt.server import P4RuntimeServer
from switch.p4rt.store import EntityStore
from tests.helpers.p4.stub import P4RuntimeStub

P4INFO_TEXT = (Path(__file__).parent / "kinds.p4info.txtpb").read_text()
WAIT_S = 10


def load_program(device_config: bytes):
    """In place of BMv2 JSON the tests' device config is P4Info text: the program then agrees with it."""
    if not device_config.startswith(b"#"):
        raise ValueError("is not a program")
    info = text_format.Parse(device_config.decode(), p4info_pb2.P4Info())
    actions = {
        a.preamble.id: SimpleNamespace(
            name=a.preamble.name, parameters=[SimpleNamespace(width_bits=p.bitwidth) for p in a.params]
        )
        for a in info.actions
    }
    profiles = {
        p.preamble.id: SimpleNamespace(name=p.preamble.name, has_groups=p.with_selector) for p in info.action_profiles
    }

    def match(field):
        kind = p4info_pb2.MatchField.MatchType.Name(field.match_type).lower()
        return "ternary" if kind == "optional" else kind  # as in BMv2 JSON

    def table(item):
        const = item.is_const_table
        entries = (
            tuple(Entry((Exact(d),), ActionCall("ingress.set_class", (d % 8,))) for d in (10, 46)) if const else ()
        )
        default = SimpleNamespace(action=actions[16777220], args=(1,), const=True) if const else None
        return SimpleNamespace(
            name=item.preamble.name,
            keys=[SimpleNamespace(name=f.name, match=match(f), width_bits=f.bitwidth) for f in item.match_fields],
            actions=[actions[r.id] for r in item.action_refs],
            entries=entries,
            const_entries=const,
            default=default,
            profile=profiles.get(item.implementation_id),
            counter=next((c for c in info.direct_counters if c.preamble.id in item.direct_resource_ids), None),
            meter=next((m for m in info.direct_meters if m.preamble.id in item.direct_resource_ids), None),
        )

    def arrays(items, direct):
        found = [SimpleNamespace(name=i.preamble.name, size=i.size, direct=False) for i in items]
        return found + [SimpleNamespace(name=i.preamble.name, size=0, direct=True) for i in direct]

    return SimpleNamespace(
        tables=[table(t) for t in info.tables],
        profiles=list(profiles.values()),
        learn_lists=[],
        value_sets=[SimpleNamespace(name=v.preamble.name) for v in info.value_sets],
        counters=arrays(info.counters, info.direct_counters),
        meters=arrays(info.meters, info.direct_meters),
        registers=[
            SimpleNamespace(name=r.preamble.name, size=r.size, width_bits=r.type_spec.bitstring.bit.bitwidth)
            for r in info.registers
        ],
    )


class RememberingEngine:
    """Keeps what it is told, and refuses to be told nonsense."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.program = None
        self.entries, self.defaults, self.members, self.groups = {}, {}, {}, {}
        self.counters, self.direct_counters, self.meters, self.direct_meters, self.registers = {}, {}, {}, {}, {}
        self.multicast, self.clones, self.value_sets = {}, {}, {}
        self.handles = itertools.count(1000)

    def load(self, program):
        self.reset()
        self.program = program
        for table in program.tables:
            for handle, entry in enumerate(table.entries):
                self.entries[table.name, handle] = entry

    def insert_entry(self, table, entry):
        if entry.matches and entry.matches[0] == Exact(0xBAD):
            raise NoRoomError(f"table {table}: the data plane has no room")
        if entry.matches and entry.matches[0] == Exact(0xBAE):
            raise EngineError(f"table {table}: the data plane is broken")
        handle = next(self.handles)
        self.entries[table, handle] = entry
        return handle

    def modify_entry(self, table, handle, action):
        old = self.entries[table, handle]
        self.entries[table, handle] = Entry(old.matches, action, old.priority)

    def delete_entry(self, table, handle):
        del self.entries[table, handle]

    def set_default_action(self, table, action):
        self.defaults[table] = action

    def set_member(self, profile, member_id, action):
        self.members[profile, member_id] = action

    def delete_member(self, profile, member_id):
        del self.members[profile, member_id]

    def set_group(self, profile, group_id, members):
        assert all((profile, member) in self.members for member, _ in members)
        self.groups[profile, group_id] = tuple(members)

    def delete_group(self, profile, group_id):
        del self.groups[profile, group_id]

    def read_counter(self, name, index):
        return self.counters.get((name, index), CounterValue(0, 0))

    def write_counter(self, name, index, value):
        self.counters[name, index] = value

    def read_direct_counter(self, table, handle):
        return self.direct_counters.get((table, handle), CounterValue(0, 0))

    def write_direct_counter(self, table, handle, value):
        self.direct_counters[table, handle] = value

    def set_meter(self, name, index, config):
        self.meters[name, index] = config

    def set_direct_meter(self, table, handle, config):
        self.direct_meters[table, handle] = config

    def read_register(self, name, index):
        return self.registers.get((name, index), 0)

    def write_register(self, name, index, value):
        self.registers[name, index] = value

    def set_value_set(self, name, members):
        self.value_sets[name] = list(members)

    def set_multicast_group(self, group_id, replicas):
        self.multicast[group_id] = tuple(replicas)

    def delete_multicast_group(self, group_id):
        del self.multicast[group_id]

    def set_clone_session(self, session_id, replicas, truncate_bytes, class_of_service=0):
        self.clones[session_id] = (tuple(replicas), truncate_bytes, class_of_service)

    def delete_clone_session(self, session_id):
        del self.clones[session_id]

    def configure_port(self, port, config, now_ns):
        pass

    def port_counters(self, port, now_ns):
        return PortCounters()


class RememberingDataPlane:
    def __init__(self):
        self.engines, self.packet_ins, self.packets_out, self.prepared, self.running = {}, {}, [], [], {}

    def now_ns(self):
        return time.monotonic_ns()

    def lateness(self):
        return Lateness(0, 0, ())

    def prepare(self, program):
        self.prepared.append(program)

    def create(self, config, packet_in):
        self.packet_ins[config.device_id] = packet_in
        self.engines[config.device_id] = RememberingEngine()
        return self.engines[config.device_id]

    def destroy(self, device_id):
        del self.engines[device_id]

    def set_running(self, device_id, running):
        self.running[device_id] = running

    def packet_out(self, device_id, frame):
        self.packets_out.append((device_id, frame))

    def close(self):
        pass


class Stream:
    """A StreamChannel as a client sees it."""

    def __init__(self, stub, device_id=1, election_id=None, role=None):
        self.requests: queue.Queue[Any] = queue.Queue()
        self.call = stub.StreamChannel(iter(self.requests.get, None))
        self.device_id = device_id
        if election_id is not None:
            self.arbitrate(election_id, role)

    def arbitrate(self, election_id, role=None, device_id=None):
        request = p4rt.StreamMessageRequest()
        request.arbitration.device_id = device_id or self.device_id
        if election_id != "unset":
            request.arbitration.election_id.low = election_id
            request.arbitration.election_id.SetInParent()
        if role is not None:
            request.arbitration.role.name = role
        self.requests.put(request)

    def next(self):
        return next(self.call)

    def code(self):
        """The status with which the server ended the stream."""
        with contextlib.suppress(grpc.RpcError):
            for _ in self.call:
                pass
        return self.call.code().name, self.call.details()

    def close(self):
        self.requests.put(None)
        self.call.cancel()


class Client:
    """One channel to the server, with the few calls that tests repeat."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(
            address, options=[("grpc.max_metadata_size", 1 << 20), ("grpc.use_local_subchannel_pool", 1)]
        )
        self.stub = P4RuntimeStub(self.channel)
        self.streams = []

    def stream(self, *args, **kwargs):
        stream = Stream(self.stub, *args, **kwargs)
        self.streams.append(stream)
        return stream

    def primary(self, device_id=1, election_id=1):
        stream = self.stream(device_id, election_id)
        assert stream.next().arbitration.status.code == 0
        return stream

    def set_pipeline(
        self, device_id=1, election_id=1, action="VERIFY_AND_COMMIT", device_config=None, cookie=None, info=P4INFO_TEXT
    ):
        request = p4rt.SetForwardingPipelineConfigRequest(device_id=device_id)
        request.election_id.low = election_id
        request.action = p4rt.SetForwardingPipelineConfigRequest.Action.Value(action)
        text_format.Parse(info, request.config.p4info)
        request.config.p4_device_config = P4INFO_TEXT.encode() if device_config is None else device_config
        if cookie is not None:
            request.config.cookie.cookie = cookie
        return self.stub.SetForwardingPipelineConfig(request)

    def write(self, *updates, device_id=1, election_id=1, **kwargs):
        request = p4rt.WriteRequest(device_id=device_id, **kwargs)
        request.election_id.low = election_id
        for update in updates:
            request.updates.add().CopyFrom(
                text_format.Parse(update, p4rt.Update()) if isinstance(update, str) else update
            )
        return self.stub.Write(request)

    def read(self, *entities, device_id=1):
        request = p4rt.ReadRequest(device_id=device_id)
        for entity in entities:
            text_format.Parse(entity, request.entities.add())
        return [entity for response in self.stub.Read(request) for entity in response.entities]

    def close(self):
        for stream in self.streams:
            stream.close()
        self.channel.close()


class Harness:
    """A server with devices 1 and 2 in a thread of its own."""

    def __init__(self, data_plane=None, loader=None, ports=2):
        self.data_plane: Any = data_plane or RememberingDataPlane()
        self.devices = Devices(self.data_plane)
        for device_id in (1, 2):
            self.devices.add(DeviceConfig(device_id, f"s{device_id}", ports=tuple(map(PortSpec, range(1, ports + 1)))))
        self.loop = asyncio.new_event_loop()
        spare: Any = RememberingEngine
        self.server = P4RuntimeServer(self.devices, loader or load_program, spare)
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.port = self.run(self.server.start("127.0.0.1:0"))
        self.clients = []

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WAIT_S)

    def client(self):
        client = Client(f"127.0.0.1:{self.port}")
        self.clients.append(client)
        return client

    def ready(self):
        """A client that is primary of device 1, whose pipeline is loaded, and its stream."""
        client = self.client()
        stream = client.primary()
        client.set_pipeline()
        return client, stream

    def refused(self, method, data):
        """The error of a call with these bytes, for a client with gRPC's default limits."""
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            call = channel.unary_stream if method == "Read" else channel.unary_unary
            with pytest.raises(grpc.RpcError) as raised:
                list(call(f"/p4.v1.P4Runtime/{method}")(data, timeout=30))
        return raised.value

    def close(self):
        for client in self.clients:
            client.close()
        self.run(self.server.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(WAIT_S)
        self.loop.close()
        self.devices.close()


@pytest.fixture
def harness():
    harness = Harness()
    yield harness
    harness.close()


@pytest.fixture
def native():
    """A server over native engines with three ports and no interfaces, for real programs."""
    harness = Harness(NativeDataPlane(), model.load_program, ports=3)
    yield harness
    harness.close()


@pytest.fixture
def engine(harness):
    """Device 1's data plane."""
    return harness.data_plane.engines[1]


@pytest.fixture
def client(harness):
    """Primary of device 1, with the pipeline loaded."""
    return harness.ready()[0]


@pytest.fixture
def store():
    """The control plane's picture without any gRPC."""
    config = p4rt.ForwardingPipelineConfig(p4_device_config=P4INFO_TEXT.encode())
    text_format.Parse(P4INFO_TEXT, config.p4info)
    pipeline = PipelineCache(load_program).read(config.SerializeToString())
    engine: Any = RememberingEngine()
    engine.load(pipeline.program)
    return EntityStore(pipeline, engine)


@pytest.fixture
def errors_of():
    """The p4.v1.Error list of a failed Write or Read as (code name, message)."""

    def errors_of(rpc_error):
        metadata = dict(rpc_error.trailing_metadata())
        status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
        assert status.code == grpc.StatusCode.UNKNOWN.value[0]
        errors = []
        for detail in status.details:
            error = p4rt.Error()
            assert detail.Unpack(error)
            errors.append((error.canonical_code, error.message))
        return errors

    return errors_of

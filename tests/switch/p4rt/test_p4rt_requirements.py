"""Requirements of the specification that no other file here is about; `docs/reference/p4runtime.md` has them all."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from p4c.entries import ActionCall
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.store import EntityStore
from switch.stf.programs import ENGINES
from tests.helpers.p4.made import Made, pipeline_of, write

HERE = Path(__file__).parent
HOSTS, SELECTOR = 33554433, 285212673  # of kinds.p4info.txtpb
LOCAL = """direct_meter<bit<8>>(MeterType.packets) colours; action paint() { colours.read(hdr.h.b); }
table t { key = { hdr.h.a: exact; } actions = { paint; NoAction; } meters = colours; size = 8; }
action_selector(HashAlgorithm.crc16, 16, 16) paths; action go(bit<9> port) { s.egress_spec = port; }
table g { key = { hdr.h.a: exact; hdr.h.b: selector; } actions = { go; NoAction; } implementation = paths; size = 8; }
"""


def update(kind: str, entity: str) -> str:
    return f"type: {kind} entity {{ {entity} }}"


def forward(port: int) -> str:
    return f'action {{ action_id: 16777217 params {{ param_id: 1 value: "\\{port:03o}" }} }}'


def host(mac: int = 2, port: int = 1) -> str:
    match = f'match {{ field_id: 1 exact {{ value: "\\{mac:03o}" }} }}'
    return f"table_entry {{ table_id: {HOSTS} {match} action {{ {forward(port)} }} }}"


def group(members: str = "") -> str:
    return f"action_profile_group {{ action_profile_id: {SELECTOR} group_id: 1 max_size: 4 {members} }}"


def store_of(made: Made, engine: str) -> EntityStore:
    return EntityStore(pipeline_of(made.compiled), made.engine(engine))


def entry(store: EntityStore, table: str, a: int) -> Any:
    made = p4rt.TableEntry(table_id=store.pipeline.p4info.table(table).id)
    made.match.add(field_id=1).exact.value = bytes([a])
    return made


def refused(call: Any, message: Any) -> str:
    with pytest.raises(grpc.RpcError) as raised:
        list(call(message) if call._method.endswith(b"Read") else [call(message)])
    return str(raised.value.code().name)


def test_a_backup_and_a_stranger_may_read(harness: Any) -> None:
    client, _ = harness.ready()
    client.write(update("INSERT", host()))
    backup = harness.client()
    backup.stream(1, 0).next()
    for reader in (backup, harness.client()):
        assert len(reader.read("table_entry { }")) > 0


def test_an_unknown_device_is_not_found(harness: Any) -> None:
    client, _ = harness.ready()
    for call, message in (
        (client.stub.Write, p4rt.WriteRequest(device_id=9)),
        (client.stub.Read, p4rt.ReadRequest(device_id=9)),
        (client.stub.SetForwardingPipelineConfig, p4rt.SetForwardingPipelineConfigRequest(device_id=9)),
        (client.stub.GetForwardingPipelineConfig, p4rt.GetForwardingPipelineConfigRequest(device_id=9)),
    ):
        assert refused(call, message) == "NOT_FOUND"


def test_a_role_with_a_config_is_refused(harness: Any) -> None:
    client = harness.client()
    stream = client.stream(1)
    request = p4rt.StreamMessageRequest()
    request.arbitration.device_id, request.arbitration.role.name = 1, "lab"
    request.arbitration.role.config.type_url = "x"
    stream.requests.put(request)
    assert stream.code()[0] == "INVALID_ARGUMENT"


def test_capabilities_tell_a_version(harness: Any) -> None:
    version = harness.client().stub.Capabilities(p4rt.CapabilitiesRequest()).p4runtime_api_version
    assert re.fullmatch(r"1\.\d+\.\d+", version)


def test_writes_at_once_end_as_one_after_the_other(harness: Any) -> None:
    client, _ = harness.ready()
    client.write(*(update("INSERT", host(mac)) for mac in range(1, 5)))

    def modify(port: int) -> None:
        for _ in range(10):
            client.write(*(update("MODIFY", host(mac, port=port)) for mac in range(1, 5)))

    def read(_: int) -> set[bytes]:
        entries = [found.table_entry for found in harness.client().read("table_entry { table_id: 33554433 }")]
        return {found.action.action.params[0].value for found in entries if found.match}

    with ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(modify, port) for port in range(1, 5)]
        assert {len(ports) for ports in pool.map(read, range(20))} == {1}, "each Read saw whole Writes"
        for one in writing:
            one.result()


def test_packets_keep_their_order(harness: Any) -> None:
    _, stream = harness.ready()
    for number in range(50):
        harness.data_plane.packet_ins[1](bytes([0, 0, number]))
    assert [stream.next().packet.payload for _ in range(50)] == [bytes([number]) for number in range(50)]
    for number in range(50):
        packet = p4rt.PacketOut(payload=bytes([number]))
        for field in (1, 2):
            packet.metadata.add(metadata_id=field, value=b"\0")
        stream.requests.put(p4rt.StreamMessageRequest(packet=packet))
    stream.requests.put(p4rt.StreamMessageRequest())  # an error comes back, so those before have been handled
    assert stream.next().WhichOneof("update") == "error"
    assert [frame[-1] for _, frame in harness.data_plane.packets_out] == list(range(50))


def test_a_group_may_be_empty(client: Any, engine: Any) -> None:
    member = f"action_profile_member {{ action_profile_id: {SELECTOR} member_id: 1 {forward(5)} }}"
    client.write(update("INSERT", member), update("INSERT", group()))
    client.write(update("MODIFY", group("members { member_id: 1 weight: 2 }")))
    assert engine.groups["ingress.ecmp_selector", 1] == ((1, 2),)
    client.write(update("MODIFY", group()))
    assert engine.groups["ingress.ecmp_selector", 1] == ()
    assert engine.members["ingress.ecmp_selector", 1] == ActionCall("ingress.forward", (5,))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_member_changes_while_it_is_in_use(engine: str, tmp_path: Path) -> None:
    made = Made(tmp_path, local=LOCAL, ingress="g.apply();")
    store = store_of(made, engine)
    profile, go = store.pipeline.p4info.profile("paths").id, store.pipeline.p4info.action("go").id

    def one(port: int) -> Any:
        entity = p4rt.Entity()
        entity.action_profile_member.action_profile_id, entity.action_profile_member.member_id = profile, 7
        entity.action_profile_member.action.action_id = go
        entity.action_profile_member.action.params.add(param_id=1, value=bytes([port]))
        return entity

    paths = p4rt.ActionProfileGroup(action_profile_id=profile, group_id=3, max_size=4)
    paths.members.add(member_id=7, weight=1)
    row = entry(store, "g", 5)
    row.action.action_profile_group_id = 3
    write(store, "INSERT", one(2), p4rt.Entity(action_profile_group=paths), p4rt.Entity(table_entry=row))
    assert made.sent("0500", store.engine) == [(2, "0500")]  # type: ignore[arg-type]
    write(store, "MODIFY", one(3))
    assert made.sent("0500", store.engine) == [(3, "0500")]  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_direct_meter_colours_the_traffic_of_its_entry(engine: str, tmp_path: Path) -> None:
    """RFC 2698: at one instant as many packets are green as the committed burst holds, then yellow up to the peak."""
    made = Made(tmp_path, local=LOCAL, ingress="t.apply();")
    store = store_of(made, engine)
    for a in (5, 6):
        row = entry(store, "t", a)
        row.action.action.action_id = store.pipeline.p4info.action("paint").id
        if a == 5:
            row.meter_config.cir, row.meter_config.cburst, row.meter_config.pir, row.meter_config.pburst = 1, 2, 1, 4
        write(store, "INSERT", p4rt.Entity(table_entry=row))
    colours = [made.sent("05ff", store.engine)[0][1] for _ in range(6)]  # type: ignore[arg-type]
    assert colours == ["0500", "0500", "0501", "0501", "0502", "0502"]
    assert made.sent("06ff", store.engine) == [(1, "0600")]  # type: ignore[arg-type]


def test_the_page_names_tests_that_exist() -> None:
    page = (HERE.parents[2] / "docs" / "reference" / "p4runtime.md").read_text()
    cited = re.findall(r"(\w+): `(\w+)`", page)
    assert len(cited) > 60
    for file, part in cited:
        assert re.search(rf"def test_\w*{part}", (HERE / f"test_p4rt_{file}.py").read_text()), (file, part)
    assert all((HERE / name).exists() for name in re.findall(r"golden/\w+\.txt", page))

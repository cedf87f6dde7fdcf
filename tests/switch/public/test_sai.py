"""SAI P4, the model of SONiC switches: its instantiations compile, load with their own P4Info, and route a packet.

The P4Info is p4c's, as sonic-pins keeps it. The packet's right answer is that of an IPv4 router (RFC 1812).
"""

import ipaddress
from typing import Any

import pytest
from google.protobuf import text_format
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from p4c import compile_program
from p4c.model import load_program
from switch.engine import PortConfig
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.pipeline import ForwardingPipeline, PipelineCache
from switch.p4rt.store import EntityStore
from switch.stf.programs import ENGINES, make_engine
from tests.helpers.p4.made import read, write
from tests.switch.public.checkouts import checkout

ROUTER, NEIGHBOUR, HOST = "02:aa:bb:cc:dd:01", "02:aa:bb:cc:dd:02", "02:aa:bb:cc:dd:03"


def pipeline(name: str) -> ForwardingPipeline:
    folder = checkout("sonic-pins") / "sai_p4" / "instantiations" / "google"
    config = p4rt.ForwardingPipelineConfig()
    text_format.Parse((folder / f"{name}.p4info.pb.txt").read_text(), config.p4info, allow_unknown_field=True)
    config.p4_device_config = compile_program(folder / f"{name}.p4").json_text.encode()
    return PipelineCache(load_program).read(config.SerializeToString())


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def entity(made: ForwardingPipeline, table: str, keys: dict[str, Any], action: str, **params: bytes) -> Any:
    """A table entry by its names. A key is bytes, or bytes and the length of a prefix."""
    info = made.p4info.table(table)
    called = made.p4info.action(action)
    entry = p4rt.TableEntry(table_id=info.id)
    for name, value in keys.items():
        match = entry.match.add(field_id=next(f.id for f in info.fields if f.name == name))
        if isinstance(value, tuple):
            match.lpm.value, match.lpm.prefix_len = value
        else:
            match.exact.value = value
    entry.action.action.action_id = called.id
    for param in called.params:
        entry.action.action.params.add(param_id=param.id, value=params[param.name])
    return p4rt.Entity(table_entry=entry)


def route(made: ForwardingPipeline) -> list[Any]:
    """10.1.0.0/16 by port 3, through the objects that SAI has for it, in the order of their references."""
    neighbour = ipaddress.ip_address("fe80::2").packed
    return [
        entity(
            made, "router_interface_table", {"router_interface_id": b"rif-3"}, "unicast_set_port_and_src_mac",
            port=b"3", src_mac=mac(ROUTER),
        ),
        entity(
            made, "neighbor_table", {"router_interface_id": b"rif-3", "neighbor_id": neighbour}, "set_dst_mac",
            dst_mac=mac(NEIGHBOUR),
        ),
        entity(
            made, "nexthop_table", {"nexthop_id": b"nexthop-1"}, "set_ip_nexthop",
            router_interface_id=b"rif-3", neighbor_id=neighbour,
        ),
        entity(
            made, "ipv4_table", {"vrf_id": b"", "ipv4_dst": (ipaddress.ip_address("10.1.0.0").packed, 16)},
            "set_nexthop_id", nexthop_id=b"nexthop-1",
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["middleblock", "tor", "fabric_border_router"])
def test_a_routed_packet_leaves_as_from_a_router(name: str, engine: str) -> None:
    made = pipeline(name)
    switch = make_engine(engine)
    switch.load(made.program)
    for port in range(1, 5):
        switch.configure_port(port, PortConfig(), 0)
    store = EntityStore(made, switch)
    entries = route(made)
    write(store, "INSERT", *entries)
    assert read(store, *entries) == entries, "names are read as they were written"
    packet = IP(src="10.2.0.1", dst="10.1.2.3", ttl=64) / UDP(sport=1, dport=2) / b"payload"
    switch.receive(2, bytes(Ether(src=HOST, dst=ROUTER) / packet), 0)
    (out,) = switch.advance(0)
    packet.ttl = 63
    assert out.port == 3
    assert out.frame == bytes(Ether(src=ROUTER, dst=NEIGHBOUR) / packet)
    switch.receive(2, bytes(Ether(src=HOST, dst=ROUTER) / IP(src="10.2.0.1", dst="10.9.9.9") / UDP()), 0)
    assert list(switch.advance(0)) == [], "no route"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_wan_box_loads(engine: str) -> None:
    make_engine(engine).load(pipeline("wbb").program)

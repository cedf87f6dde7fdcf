"""The computed entries, followed packet by packet: they lead where the plan says and hold what p4/README.md asks."""

from dataclasses import replace
from ipaddress import IPv6Address
from typing import Any

import pytest

from controller.counting import CLASSES_PER_PORT, cells, counted
from controller.entries import DefaultEntry, GroupEntry, MeterEntry, SelectorGroup, SelectorMember, TableEntry
from controller.items import compare, decode, encode
from controller.tables import ROCE, TRIMMABLE, tables
from controller.words import line, match
from p4c.entries import Exact, Lpm, Range
from switch.engine import MeterConfig
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import P4RuntimeError
from switch.p4rt.p4info import parse_p4info_text
from topo.address import host_address
from topo.graph import PortRef, link_at, peer, port_count, towards_host
from topo.node import Host, Switch
from topo.path import hops, path_da, paths
from topo.plan import Plan
from topo.planfile import load_plan


@pytest.fixture(scope="module", params=["tiny", "lab"])
def plan(request):
    return load_plan(request.param)


@pytest.fixture(scope="module")
def p4infos(pytestconfig):
    golden = pytestconfig.rootpath / "p4" / "golden"
    return {role: parse_p4info_text((golden / f"{role}.p4info.txtpb").read_text()) for role in ("leaf", "spine")}


def rows(plan: Plan, switch: Switch) -> list[Any]:
    """The entries, whatever they match on."""
    return list(tables(plan, switch))


class Lookup:
    """One switch's entries by table, with longest prefix match: no more than a reader of the tables would do."""

    def __init__(self, entities):
        self.entities = entities
        self.exact: dict[Any, Any] = {}
        self.lpm: dict[str, list[Any]] = {}
        self.groups = {e.group_id: e.members for e in entities if isinstance(e, SelectorGroup)}
        self.members = {e.member_id: e.args[0] for e in entities if isinstance(e, SelectorMember)}
        for entity in entities:
            if not isinstance(entity, TableEntry | GroupEntry):
                continue
            values: Any = tuple(match for _, match in entity.match)
            if all(isinstance(m, Exact) for m in values):
                self.exact[entity.table, tuple(m.value for m in values)] = entity
            else:
                (match,) = values
                self.lpm.setdefault(entity.table, []).append((match, entity))

    def longest(self, table, address):
        found = [
            (match.prefix_len, entity)
            for match, entity in self.lpm.get(table, [])
            if isinstance(match, Lpm) and address >> 128 - match.prefix_len == match.value >> 128 - match.prefix_len
        ]
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def forward(self, address, hash_value=0):
        """(address as it leaves, port) of a packet to `address`, or None: as p4/README.md describes the pipeline."""
        sid = self.longest("my_sid", address)
        hop = None
        if sid is not None:
            shift = 32 if sid.action == "end_un_ua" else 16
            address = address >> 96 << 96 | (address << shift & (1 << 96) - 1)
            hop = sid.args[0] if sid.args else None
        if hop is None:
            route = self.longest("ipv6_route", address)
            if route is None or route.action == "drop_unknown_usid":
                return None
            hop = route.args[0]
            if route.action == "set_ecmp_group":
                members = self.groups[self.exact["ecmp", (hop,)].group_id]
                if not members:
                    return None
                hop = self.members[members[(hash_value >> route.args[1]) % len(members)]]
        adjacency = self.exact["next_hop", (hop,)]
        return address, adjacency.args


def mac(text):
    return int(text.replace(":", ""), 16)


def test_every_path_of_every_pair_of_hosts_is_forwarded_as_the_plan_says(plan):
    lookups = {switch.name: Lookup(tables(plan, switch)) for switch in plan.switches()}
    for source in plan.hosts():
        for destination in plan.hosts():
            for path in paths(plan, source, destination):
                address = int(path_da(plan, path))
                for hop in hops(plan, path):
                    address, (port, own, other) = lookups[hop.switch.name].forward(address)
                    assert (address, port) == (int(hop.da_out), hop.port_out)
                    ref = PortRef(hop.switch, hop.port_out)
                    assert (own, other) == (mac(ref.mac), mac(peer(plan, ref).mac))
                assert peer(plan, ref).node == destination


def test_adjacency_usids_leave_by_their_port_alone_and_behind_the_own_usid(plan):
    for switch in plan.switches():
        lookup = Lookup(tables(plan, switch))
        for entity in lookup.entities:
            if isinstance(entity, TableEntry) and entity.action in ("end_ua", "end_un_ua"):
                ((_, match),) = entity.match
                assert isinstance(match, Lpm)
                behind = 0x1234 << (128 - match.prefix_len - 16)
                address, (port, _, _) = lookup.forward(match.value | behind)
                assert port == entity.args[0]
                assert address == int(plan.usid_block.network_address) | 0x1234 << 80


def walk_plain(plan, lookups, source, destination, hash_value):
    """The hosts' own addresses through the fabric; the switches crossed, or None when dropped."""
    ref = peer(plan, PortRef(source, 1))
    address, crossed = int(host_address(plan, destination)), []
    while not isinstance(ref.node, Host):
        crossed.append(ref.node.name)
        assert len(crossed) <= 3
        forwarded = lookups[ref.node.name].forward(address, hash_value)
        if forwarded is None:
            return None
        address, (port, _, _) = forwarded
        ref = peer(plan, PortRef(ref.node, port))
    assert ref.node == destination
    assert address == int(host_address(plan, destination))
    return crossed


def test_plain_addresses_reach_their_host_over_every_spine(plan):
    for variant in (plan, plan.single_plane()):
        lookups = {switch.name: Lookup(tables(variant, switch)) for switch in variant.switches()}
        first, last = Host(0), Host(variant.host_count - 1)
        via = {walk_plain(variant, lookups, first, last, value)[1] for value in range(variant.spines)}
        assert via == {f"p0s{index}" for index in range(variant.spines)}
        assert walk_plain(variant, lookups, first, Host(1), 0) == ["p0l0"]


def test_neighbouring_spines_choose_a_core_by_different_bits_of_the_hash():
    """By hand: of nine spines with two cores each, the first and the ninth decide by bit 8, the second by bit 9."""
    plan = load_plan("pods", {"fabric.spines": "18", "fabric.cores": "18"})
    far = int(host_address(plan, Host(plan.host_count - 1)))
    way_up = plan.leaves // 2 + 1  # behind the ports to the leaves of its pod
    for name, hashes in (("p0s0", (0x2FF, 0x100)), ("p0s1", (0x1FF, 0x200)), ("p0s8", (0x2FF, 0x100))):
        spine = Lookup(tables(plan, plan.switch_node(name)))
        ports = [port for _, (port, _, _) in (spine.forward(far, hash_value) for hash_value in hashes)]
        assert ports == [way_up, way_up + 1], name


def test_after_reconvergence_no_flow_uses_a_dead_link_and_without_any_spine_it_is_dropped(plan):
    plan = plan.single_plane()
    dead = [("p0s0", "p0l0"), ("p0l1", "p0s1")]
    lookups = {s.name: Lookup(tables(plan, s, dead_links=dead)) for s in plan.switches()}
    for value in range(12):
        crossed = walk_plain(plan, lookups, Host(0), Host(plan.hosts_per_leaf), value)
        if plan.spines == 2:  # l0 only reaches s1 and l1 only reaches s0
            assert crossed is None
        else:
            assert crossed[1] not in ("p0s0", "p0s1")


def test_the_baseline_plan_has_no_segments_and_marks_ecn_on_the_last_hop_too(plan):
    plan = plan.single_plane()
    for switch in plan.switches():
        entities = rows(plan, switch)
        assert not [e for e in entities if isinstance(e, TableEntry) and e.table == "my_sid"]
        marked = {
            e.match[0][1].value
            for e in entities
            if getattr(e, "table", "") == "ecn_profile" and e.match[1][1].value == ROCE
        }
        assert marked == set(range(1, port_count(plan, switch) + 1))


def test_thresholds_are_packets_of_the_mtu_and_ordered_below_the_queue(plan):
    for switch in plan.switches():
        limits = {
            (e.match[0][1].value, e.match[1][1].value): (e.action, *e.args)
            for e in rows(plan, switch)
            if getattr(e, "table", "") == "queue_limit"
        }
        for port in range(1, port_count(plan, switch) + 1):
            ref = PortRef(switch, port)
            action, trim, patience_us = limits[port, TRIMMABLE]
            drop_action, drop, _ = limits[port, 0]
            multiple = plan.queues.trim_lasthop if towards_host(plan, ref) else plan.queues.trim
            assert action == "trim_beyond"
            assert drop_action == "drop_beyond"
            assert trim == max(1, round(multiple * plan.plane_bdp_bytes / plan.frame_bytes_max))
            assert trim < drop < plan.depth_packets
            drain_us = drop * plan.frame_bytes_max * 8e6 / link_at(plan, ref).rate_bps
            assert patience_us >= max(10_000, int(drain_us))


def test_without_trimming_trimmable_data_is_dropped_like_the_rest(plan):
    plan = replace(plan, trimming=replace(plan.trimming, enabled=False))
    actions = {e.action for e in tables(plan, plan.switch_node("p0l0")) if isinstance(e, TableEntry)}
    assert "trim_beyond" not in actions
    assert "drop_beyond" in actions


def test_the_trimmed_share_is_a_rate_of_trimmed_packets(plan):
    entries = rows(plan, plan.switch_node("p0l0"))
    cells = [e for e in entries if isinstance(e, MeterEntry) and e.meter == "trimmed_meter"]
    assert len(cells) == port_count(plan, plan.switch_node("p0l0"))
    for cell in cells:
        bits_per_s = cell.config.cir * 8 * plan.trimming.size_bytes
        assert bits_per_s == pytest.approx(plan.trimming.share * plan.links.host_rate_bps, rel=0.01)


def test_no_two_entries_of_a_switch_have_the_same_key_and_all_fit_the_p4info(plan, p4infos):
    for switch in plan.switches():
        entities = tables(plan, switch)
        encoded = [encode(p4infos[switch.role], entity) for entity in entities]
        assert len({(item.kind, item.key) for item in encoded}) == len(entities)
        for item in encoded:
            assert decode(p4infos[switch.role], item.body) == item
            assert getattr(decode(p4infos[switch.role], item.body), "entity", None) == item.entity


def test_a_comparison_finds_what_is_missing_different_and_unexpected(p4infos):
    plan = load_plan("tiny")
    info = p4infos["leaf"]
    wanted = [encode(info, e) for e in tables(plan, plan.switch_node("p0l0"))]
    present = [item.body for item in wanted]
    assert len(compare(info, wanted, present)) == 0
    assert len(compare(info, wanted, reversed(present))) == 0

    other = TableEntry("host_facing", (("egress_port", Exact(9)),), "mark_last_hop", (1,))
    changed = DefaultEntry("trim_profile", "trim_to", (200, 20, 7))
    rest: list[Any] = [item for item in wanted if getattr(item.entity, "table", "") != "trim_profile"]
    without = [item.body for item in rest[1:]]
    changes = compare(info, wanted, [*without, encode(info, other).body, encode(info, changed).body])
    assert [line(info, item.entity) for item in changes.insert] == [
        "dscp_to_class dscp=0 → set_class(traffic_class=0, priority=0)"
    ]
    assert [line(info, found.entity) for found, _ in changes.modify] == [
        "trim_profile default → trim_to(size_bytes=200, dscp=20, priority=7)"
    ]
    assert [line(info, item.entity) for item in changes.delete] == ["host_facing egress_port=9 → mark_last_hop(dscp=1)"]


def test_lines_show_addresses_as_addresses(p4infos):
    plan = load_plan("tiny")
    lines = [line(p4infos["leaf"], e) for e in tables(plan, plan.switch_node("p0l0"))]
    assert "my_sid dst_addr=fcbb:bbbb:1000::/48 → end_un()" in lines
    assert any("src_mac=02:10:00:00:00:01" in text for text in lines)
    assert str(IPv6Address("fcbb:bbbb:2001::")) in "".join(lines)
    ranked = TableEntry("dscp_to_class", (("dscp", Exact(10)),), "set_class", (1, 0), priority=3)
    assert line(p4infos["leaf"], ranked).startswith("dscp_to_class dscp=10 priority=3 → ")
    assert [match(Range(0, high), 16) for high in (65_534, 65_535)] == ["0..65534", ""]


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        (TableEntry("nat", (), "drop"), "no table 'nat' in the P4Info; tables: .*my_sid"),
        (TableEntry("my_sid", (("dst", Lpm(0, 1)),), "end_un"), "no match field 'dst'; fields: dst_addr"),
        (TableEntry("my_sid", (), "set_class", (1, 1)), "my_sid: no action 'set_class'; actions: .*end_un"),
        (MeterEntry("trim", 1, MeterConfig(1, 1, 1, 1)), "no meter 'trim'.*trimmed_meter"),
    ],
)
def test_a_p4info_that_lacks_something_is_refused_by_name(p4infos, entity, message):
    with pytest.raises(P4RuntimeError, match=message):
        encode(p4infos["leaf"], entity)


def test_counters_are_read_of_each_class_of_each_port_of_a_switch_and_of_no_other(plan, p4infos):
    switch = next(iter(plan.switches()))
    p4info = p4infos[switch.program]
    own = range(CLASSES_PER_PORT, (port_count(plan, switch) + 1) * CLASSES_PER_PORT)
    asked = [p4rt.Entity.FromString(body).counter_entry for body in cells(plan, switch, p4info)]
    assert sorted((entry.counter_id, entry.index.index) for entry in asked) == sorted(
        (number, index) for number in p4info.counters for index in own
    )
    read: list[tuple[str, int]] = []

    def count(counter: str, first: int, count: int) -> list[int]:
        read.extend((counter, index) for index in range(first, first + count))
        odd = {"sent": 1, "received": 0}.get(counter.rpartition(".")[2])
        return [int(index % 2 == odd) for index in range(first, first + count)]

    found = counted(plan, switch, p4info, count)
    assert sorted(read) == sorted((counter.name, index) for counter in p4info.counters.values() for index in own)
    assert sorted(found) == list(range(1, port_count(plan, switch) + 1))
    counts = {(cell.sent, cell.received) for classes in found.values() for cell in classes.values()}
    assert counts == {(1, 0), (0, 1)}

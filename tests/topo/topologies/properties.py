"""Properties of every topology: uSID lists walk the graph to their hosts, EVs name paths, tables lead there and hold no
more. Each is a function of a plan that fails where it does not hold.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import IPv6Address
from itertools import pairwise, product

from controller.entries import Entity, GroupEntry, SelectorGroup, SelectorMember, TableEntry
from controller.tables import tables
from p4c.entries import Lpm
from topo.address import host_address, nic_usid, switch_usid, usid_address
from topo.graph import PortRef, device_id, link_at, link_between, links, peer, port_count, port_towards, ports
from topo.node import Host, Node, Switch
from topo.path import crossed, evs, hops, path_count, path_da, path_of_ev, paths, probe_there_and_back, probe_ways, walk
from topo.plan import Plan
from topo.planfile import check_plan, parse_document, plan_document


def pairs(plan: Plan) -> list[tuple[Host, Host]]:
    return [(one, other) for one in plan.hosts() for other in plan.hosts()]


def every_usid_list_walks_the_graph_to_its_host(plan: Plan) -> None:
    for source, destination in pairs(plan):
        for path in paths(plan, source, destination):
            entered = walk(plan, source, path.plane, path_da(plan, path))
            assert entered[-1] == PortRef(destination, path.plane + 1)
            journey = hops(plan, path)
            assert [PortRef(hop.switch, hop.port_in) for hop in journey] == entered[:-1]
            assert all(before.da_out == after.da_in for before, after in pairwise(journey))
            assert journey[-1].da_out == usid_address(plan, [nic_usid(plan.downlink_of(destination))])
            assert len(path.switches) <= crossed(plan, source, destination) <= plan.topology.longest_path_switches


def every_ev_names_one_path_and_each_pair_has_as_many_in_a_plane(plan: Plan) -> None:
    for source, destination in pairs(plan):
        found = list(evs(plan, source, destination))
        assert len({ev for ev, _ in found}) == len(found)
        assert all(path_of_ev(plan, source, destination, ev) == path for ev, path in found)
        distinct = {path.ev for _, path in found}
        assert {path.ev for path in paths(plan, source, destination)} == distinct
        assert max(Counter(path.plane for _, path in found).values()) <= plan.topology.evs_per_plane
        assert len(distinct) <= path_count(plan, local=len(found[0][1].switches) == 1)


def ports_cables_and_names_are_one_graph(plan: Plan) -> None:
    check_plan(plan)
    refs = [ref for node in plan.nodes() for ref in ports(plan, node)]
    assert all(peer(plan, peer(plan, ref)) == ref and peer(plan, ref).plane == ref.plane for ref in refs)
    assert all({link_at(plan, ref).a, link_at(plan, ref).b} == {ref, peer(plan, ref)} for ref in refs)
    assert all(link_between(plan, ref.node, peer(plan, ref).node) == link_at(plan, ref) for ref in refs)
    assert all(port_towards(plan, ref.node, peer(plan, ref).node) == ref.port for ref in refs)
    wired = {(ref.node, peer(plan, ref).node) for ref in refs}
    assert all(plan.topology.wired(*pair) == (pair in wired) for pair in product(plan.nodes(), repeat=2))
    cables = list(links(plan))
    assert sorted(map(str, refs)) == sorted(str(end) for link in cables for end in (link.a, link.b))
    assert len({link.name for link in cables}) == len(cables)
    assert [device_id(plan, switch) for switch in plan.switches()] == list(range(1, plan.switch_count + 1))
    assert len({ref.mac for ref in refs}) == len({ref.interface for ref in refs}) == len(refs)
    assert len({switch_usid(switch) for switch in plan.switches()}) == plan.switch_count
    assert {plan.node(node.name) for node in plan.nodes()} == set(plan.nodes())
    places = [(plan.leaf_of(host), plan.downlink_of(host)) for host in plan.hosts()]
    assert [plan.host_at(*place) for place in places] == list(plan.hosts())
    assert Counter(leaf for leaf, _ in places) == {n: plan.topology.hosts_under(n) for n in range(plan.leaves)}


def a_plan_of_any_shape_is_written_and_read_back(plan: Plan) -> None:
    assert parse_document(plan_document(plan)) == plan


def probes_turn_back_where_they_say_and_cover_every_cable(plan: Plan) -> None:
    """Each probe crosses the cables of its way there and back, and no others. All hosts together probe every cable."""
    probed: set[frozenset[Node]] = set()
    for host in plan.hosts():
        for plane in range(plan.planes):
            ways = probe_ways(plan, host, plane)
            assert len(set(ways)) == len(ways)
            for way in ways:
                port, da = probe_there_and_back(plan, host, way)
                entered = walk(plan, host, plane, da)
                assert entered[-1] == PortRef(host, port)
                assert [ref.node for ref in entered] == [*way, *reversed(way[:-1]), host]
                assert way[:-1] == () or way[:-1] in ways  # losses before the last cable are known
                nodes: list[Node] = [host, *way]
                probed.add(frozenset(nodes[-2:]))
    assert probed == {frozenset((link.a.node, link.b.node)) for link in links(plan)}


def prefix(row: TableEntry) -> Lpm:
    ((_, match),) = row.match
    assert isinstance(match, Lpm)
    return match


def rows_of(rows: Sequence[Entity], table: str) -> list[TableEntry]:
    return [row for row in rows if isinstance(row, TableEntry) and row.table == table]


def covers(match: Lpm, address: int) -> bool:
    return match.value >> (128 - match.prefix_len) == address >> (128 - match.prefix_len)


def within(plan: Plan, row: TableEntry) -> bool:
    """Whether a route is for a uSID."""
    return IPv6Address(prefix(row).value) in plan.usid_block


def routed(rows: Sequence[Entity], address: int) -> tuple[frozenset[int], object]:
    """The ports that a switch's entries send an address to, by longest prefix, and the entry that says so."""
    groups = {row.group_id: row.members for row in rows if isinstance(row, SelectorGroup)}
    members = {row.member_id: row.args[0] for row in rows if isinstance(row, SelectorMember)}
    best: tuple[int, TableEntry] | None = None
    for row in rows_of(rows, "ipv6_route"):
        length = prefix(row).prefix_len
        if covers(prefix(row), address) and (best is None or length > best[0]):
            best = length, row
    assert best is not None
    row = best[1]
    if row.action == "set_ecmp_group":
        return frozenset(members[member] for member in groups[row.args[0]]), row.match
    return frozenset(row.args), row.match


def plain_routes_lead_every_packet_to_its_host_and_none_is_unused(plan: Plan) -> None:
    """All ways of ECMP, walked as a hash could choose them; so each plain route of each switch is met."""
    met: dict[Switch, set[object]] = {}
    entries = {switch: tables(plan, switch) for switch in plan.switches()}
    for source, destination in pairs(plan):
        address = int(IPv6Address(host_address(plan, destination)))
        for plane in range(plan.planes):
            front = {peer(plan, PortRef(source, plane + 1)).node}
            for _ in range(plan.topology.longest_path_switches):
                following = set()
                for node in front:
                    if isinstance(node, Switch):
                        out, entry = routed(entries[node], address)
                        met.setdefault(node, set()).add(entry)
                        following |= {peer(plan, PortRef(node, port)).node for port in out}
                    else:
                        assert node == destination
                        following.add(node)
                front = following
            assert front == {destination}
    for switch in plan.switches():
        plain = {row.match for row in rows_of(entries[switch], "ipv6_route") if not within(plan, row)}
        assert plain == met[switch]
        rows = entries[switch]
        groups = {row.group_id for row in rows if isinstance(row, GroupEntry)}
        assert groups == {r.args[0] for r in rows if isinstance(r, TableEntry) and r.action == "set_ecmp_group"}


def every_usid_list_is_followed_by_the_tables_alone(plan: Plan) -> None:
    """Each switch takes its own uSID, and has one route per neighbour for the next; some list goes by each of them.

    Entries for adjacencies (End.uA) are for programs that name a port; no path does.
    """
    entries = {switch: tables(plan, switch) for switch in plan.switches()}
    used: dict[Switch, set[object]] = {switch: set() for switch in entries}
    for source, destination in pairs(plan):
        for path in paths(plan, source, destination):
            address, here = int(path_da(plan, path)), peer(plan, PortRef(source, path.port))
            for switch in path.switches:
                assert here.node == switch
                own = [row for row in rows_of(entries[switch], "my_sid") if row.action == "end_un"]
                assert [covers(prefix(row), address) for row in own] == [True]
                address = address >> 96 << 96 | address << 16 & (1 << 96) - 1
                (port,), entry = routed(entries[switch], address)
                used[switch].add(entry)
                here = peer(plan, PortRef(switch, port))
            assert here == PortRef(destination, path.port)
    for switch, rows in entries.items():
        inside = {r.match for r in rows_of(rows, "ipv6_route") if within(plan, r) and r.action == "set_next_hop"}
        assert inside == used[switch]
        assert len(inside) == port_count(plan, switch)
        refused = [row for row in rows_of(rows, "ipv6_route") if row.action == "drop_unknown_usid"]
        assert [int(plan.usid_block.network_address)] == [prefix(row).value for row in refused]


def plain_routes_go_where_ways_go(plan: Plan) -> None:
    """The ports towards a leaf are those by which some way leads there, at every switch: none is left out."""
    led: dict[tuple[Switch, int], set[int]] = {}
    for plane in range(plan.planes):
        for source, goal in product(range(plan.leaves), repeat=2):
            for way in plan.topology.ways(plane, source, goal) if source != goal else ():
                for one, following in pairwise(way.switches):
                    led.setdefault((one, goal), set()).add(port_towards(plan, one, following))
    for switch in plan.switches():
        for goal in range(plan.leaves):
            assert list(plan.topology.next_ports(switch, goal)) == sorted(led.get((switch, goal), ()))


PROPERTIES: dict[str, Callable[[Plan], None]] = {
    holds.__name__: holds
    for holds in (
        every_usid_list_walks_the_graph_to_its_host, every_ev_names_one_path_and_each_pair_has_as_many_in_a_plane,
        ports_cables_and_names_are_one_graph, a_plan_of_any_shape_is_written_and_read_back,
        probes_turn_back_where_they_say_and_cover_every_cable,
        plain_routes_lead_every_packet_to_its_host_and_none_is_unused, every_usid_list_is_followed_by_the_tables_alone,
        plain_routes_go_where_ways_go,
    )
}  # fmt: skip

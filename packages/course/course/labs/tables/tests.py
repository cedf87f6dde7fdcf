"""Lab 3: static tables from a plan. Rows are compared with the controller's, and packets go through them."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from common.seeds import Purpose, derive
from controller import DirectControl, compiled_pipelines
from course.box.box import BoxError
from course.exercise import Exercise, StudentWork, Test
from course.labs.tables.rows import TableRow, installed, others, student_rows
from course.labs.usids.naming import named
from course.labs.usids.questions import BLOCKS, plan_text
from course.result import Gate, TestOutcome, judged
from running.tracing import Explanation, Journey, data_frame, follow, outer_destination
from switch import PortConfig
from switch.p4rt import BatchError, P4RuntimeError
from switch.reference import ReferenceEngine, Trace
from topo import Host, Plan, Switch, leaf, spine
from topo.address import nic_usid, switch_usid, usid_address
from topo.fault import Fault
from topo.graph import PortRef, peer, ports
from topo.path import Path, paths

# Packets of lab 3: through the lab's P4 programs in reference interpreters that hold a student's rows.
STEP_NS = 1_000_000_000  # between two packets through one switch: its queues are empty again


class StudentSwitches:
    """The switches of a plan with a student's rows beside the controller's own; an explainer for `follow`."""

    def __init__(self, plan: Plan, rows: Mapping[Switch, Sequence[TableRow]], name: str) -> None:
        self._plan, self._rows, self._name = plan, rows, name
        self._engines: dict[Switch, tuple[ReferenceEngine, Trace]] = {}
        self._now_ns = 0

    def _made(self, switch: Switch) -> tuple[ReferenceEngine, Trace]:
        """The engine of a switch, made when its first packet comes. BoxError for rows that it refuses."""
        if switch not in self._engines:
            trace = Trace()
            engine = ReferenceEngine(seed=0, trace=trace)
            own = [row.entity for row in self._rows[switch]]
            try:
                pipeline = compiled_pipelines()[switch.program]
                DirectControl(engine, pipeline).install([*others(self._plan, switch), *own])
            except (BatchError, P4RuntimeError) as error:
                raise BoxError(f"{self._name}: {switch} refuses the rows: {error}") from error
            for ref in ports(self._plan, switch):
                engine.configure_port(ref.port, PortConfig(), 0)
            self._engines[switch] = engine, trace
        return self._engines[switch]

    def faults(self) -> Sequence[Fault]:
        return ()

    def explain(self, switch: Switch, port: int, frame: bytes) -> Explanation:
        engine, trace = self._made(switch)
        trace.steps.clear()
        self._now_ns += STEP_NS
        engine.receive(port, frame, self._now_ns)
        sent = [(item.port, item.frame) for item in engine.advance(self._now_ns)]
        return Explanation([json.loads(step.json()) for step in trace.steps], trace.text(), sent)


def some_paths(plan: Plan, rng: Random, count: int) -> list[Path]:
    """Paths between drawn pairs of hosts, of two leaves and of one, that use every plane and spine."""
    hosts = list(plan.hosts())
    apart = [(a, b) for a in hosts for b in hosts if plan.leaf_of(a) != plan.leaf_of(b)]
    beside = [(a, b) for a in hosts for b in hosts if a != b and plan.leaf_of(a) == plan.leaf_of(b)]
    chosen = list(paths(plan, *rng.choice(apart)))
    every = [path for pairs in (apart, beside) for pair in rng.sample(pairs, 6) for path in paths(plan, *pair)]
    return chosen + rng.sample(every, max(0, min(len(every), count - len(chosen))))


def journey(plan: Plan, switches: StudentSwitches, path: Path) -> Journey:
    """A packet on a path."""
    return follow(plan, switches, path, data_frame(plan, path, 64))


def ended(journey: Journey, destination: Host) -> str:
    """Where a packet ended that has not arrived, in words."""
    if journey.reached is not None:
        return f"it reached {journey.reached} instead of {destination}"
    if not journey.hops:
        return "it never left"
    last = journey.hops[-1]
    if last.port_out is not None:
        return f"{last.switch} sent it to port {last.port_out}, which leads nowhere"
    return f"{last.switch} dropped it: no row of it leads on to {outer_destination(last.frame_in)}"


SHAPES = ((2, 3, 2, 3), (2, 4, 3, 2), (3, 4, 2, 3), (3, 3, 2, 4), (2, 4, 2, 3), (3, 4, 3, 2))
"""Planes, leaves, spines, hosts per leaf: in no shape are leaves and spines as many, or hosts and spines."""
PATHS, UNKNOWN = 40, 12
Rows = Mapping[Switch, list[TableRow]]


def drawn(seed: int, name: str, shape: tuple[int, int, int, int] | None = None) -> Plan:
    """A plan of a seed."""
    rng = Random(derive(seed, Purpose.LESSON, f"{name} plan"))
    return Plan(name, *(shape or rng.choice(SHAPES)), usid_block=ipaddress.IPv6Network(rng.choice(BLOCKS)))


def own_plan(seed: int) -> Plan:
    """The plan that the student sees."""
    return drawn(seed, "tables")


def rows_of(work: StudentWork, plan: Plan) -> Rows:
    """The student's rows for a plan, asked once per check."""

    def ask() -> Rows:
        with work.box() as box:
            return student_rows(box, plan, work.path.name)

    return work.once(f"rows of {plan.name}", ask)


def look(plan: Plan) -> tuple[str, ...]:
    return ("./lab topo draw mylab/tables.toml", f"./lab topo show mylab/tables.toml  # {plan.leaves} leaves per plane")


def well_formed(work: StudentWork) -> TestOutcome:
    rows = rows_of(work, own_plan(work.seed))
    count = sum(len(own) for own in rows.values())
    twice = [(switch, row) for switch, own in rows.items() for row in own if sum(keyed(row, o) for o in own) > 1]
    told = f"{count} rows for {len(rows)} switches"
    if twice:
        told += f"; {twice[0][0]} has two rows for {twice[0][1].match} in {twice[0][1].table}"
    gates = (Gate("rows", count, 1), Gate("rows with the same match", len(twice), 0, at_most=True))
    advice = "rows returns an empty list" if not count else "a table holds one row for each match"
    return judged("rows returns rows that a switch can hold", told, gates, look(own_plan(work.seed)), advice)


def keyed(first: TableRow, other: TableRow) -> bool:
    """Whether two rows of a switch have one place in a table."""
    return (first.table, first.match) == (other.table, other.match)


def compared(
    work: StudentWork,
    plan: Plan,
    expected: str,
    chosen: Callable[[TableRow], bool],
    cause: Callable[[Switch, TableRow, list[TableRow]], str],
) -> TestOutcome:
    """Whether every switch has the controller's rows of a kind; the first that is missing or wrong, and why."""
    rows, right, wanted, first = rows_of(work, plan), 0, 0, ""
    for switch, own in rows.items():
        for row in filter(chosen, installed(plan, switch)):
            wanted += 1
            right += row in own
            if row not in own and not first:
                first = f"{switch}: {cause(switch, row, own)}"
    told = f"{right} of {wanted} rows are right"
    return judged(expected, told, (Gate("right rows", right, wanted),), look(plan), first)


def own_usids(work: StudentWork) -> TestOutcome:
    plan = own_plan(work.seed)

    def cause(switch: Switch, row: TableRow, own: list[TableRow]) -> str:
        others = [candidate for candidate in own if candidate.table == "my_sid"]
        if not others:
            return "no row in my_sid: it would never shift, and look up its own uSID among its neighbours"
        why = length(others[0]) or "a leaf has 0x1000 + plane × 512 + leaf, a spine 0x2000 + plane × 256 + spine"
        return f"my_sid has {others[0].match}, {whose(plan, others[0])}; {why}"

    return compared(
        work, plan, "every switch knows its own uSID: one row in my_sid", lambda row: row.table == "my_sid", cause
    )


def length(row: TableRow) -> str:
    """The complaint about the length of a prefix, or ""."""
    if isinstance(row.match, int) or row.match.prefixlen == 48:
        return ""
    return f"a prefix is /48, the block's 32 bits and one uSID's 16, and not /{row.match.prefixlen}"


def whose(plan: Plan, row: TableRow) -> str:
    """The owner of the uSID in a prefix, in words."""
    assert not isinstance(row.match, int)
    if not row.match.subnet_of(plan.usid_block):
        return f"which is outside the plan's block {plan.usid_block}"
    return named(plan, int(row.match.network_address) >> 80 & 0xFFFF)


def is_neighbour(row: TableRow) -> bool:
    return row.action == "set_next_hop"


def neighbours(work: StudentWork) -> TestOutcome:
    plan = own_plan(work.seed)

    def cause(switch: Switch, row: TableRow, own: list[TableRow]) -> str:
        routes = [candidate for candidate in own if is_neighbour(candidate)]
        other = peer(plan, PortRef(switch, row.argument or 1)).node
        at = next((candidate for candidate in routes if candidate.match == row.match), None)
        if at is not None:
            order = "hosts first, then spines" if switch.role == "leaf" else "leaves in their order"
            where = f"the uSID of {other} leads to port {at.argument}, and {other} is at another"
            return f"{where}: ports count from 1, {order}"
        same = next((candidate for candidate in routes if candidate.argument == row.argument), None)
        if same is None:
            return f"no row leads to port {row.argument}, where {other} is"
        why = length(same) or (
            f"the uSID of a NIC is 0x3000 + downlink, and {other} is at downlink {plan.downlink_of(other)}"
            if isinstance(other, Host)
            else f"the uSID of {other} has to be there"
        )
        return f"port {row.argument} leads to {other}, and your row for it has {same.match}, {whose(plan, same)}: {why}"

    return compared(work, plan, "a row leads to each neighbour's uSID, out of its port", is_neighbour, cause)


def unknown(work: StudentWork) -> TestOutcome:
    """uSIDs without an owner and of switches that are no neighbours: dropped, and counted as such."""
    plan, rng = own_plan(work.seed), work.rng("unknown")
    switches = StudentSwitches(plan, rows_of(work, plan), work.path.name)
    dropped, counted, first = 0, 0, ""
    for path in some_paths(plan, rng, UNKNOWN)[:UNKNOWN]:
        usids = [switch_usid(leaf(path.plane, plan.leaf_of(path.source))), rng.choice(strangers(plan, path.plane))]
        frame = bytearray(data_frame(plan, path, 64))
        frame[38:54] = usid_address(plan, usids).packed
        port = plan.downlink_of(path.source) + 1
        here = leaf(path.plane, plan.leaf_of(path.source))
        told = switches.explain(here, port, bytes(frame))
        dropped += not told.sent
        right = not told.sent and any(step.get("action", "").endswith("drop_unknown_usid") for step in told.steps)
        counted += right
        if not right and not first:
            what = f"{here} got uSID {usids[1]:#06x}, {named(plan, usids[1])}"
            sent = f"and sent it to port {told.sent[0][0]}" if told.sent else "and dropped it without counting it"
            first = f"{what}, {sent}: the block itself, /32, needs a row with drop_unknown_usid"
    rows = rows_of(work, plan)
    block = TableRow("ipv6_route", plan.usid_block, "drop_unknown_usid")
    have = sum(block in own for own in rows.values())
    gates = (Gate("dropped and counted", counted, UNKNOWN), Gate("switches with the row", have, len(rows)))
    told_of = f"{dropped} of {UNKNOWN} packets to unknown uSIDs were dropped, {counted} counted as unknown"
    missing = next((switch for switch, own in rows.items() if block not in own), None)
    advice = first or f"{missing} has no row with drop_unknown_usid for the block {plan.usid_block}"
    return judged("what is no neighbour's uSID is dropped, and counted as unknown", told_of, gates, look(plan), advice)


def strangers(plan: Plan, plane: int) -> list[int]:
    """uSIDs that no leaf of a plane has as neighbours."""
    other = (plane + 1) % plan.planes
    return [switch_usid(spine(other, 0)), switch_usid(leaf(plane, 99)), nic_usid(plan.hosts_per_leaf), 0x4444]


def last_hop(work: StudentWork) -> TestOutcome:
    plan = own_plan(work.seed)
    rows = rows_of(work, plan)
    right = surplus = wanted = 0
    first = ""
    for switch, own in rows.items():
        have = {row.match: row for row in own if row.table == "host_facing"}
        for ref in ports(plan, switch):
            other, row = peer(plan, ref).node, have.pop(ref.port, None)
            host = isinstance(other, Host)
            wanted += host
            right += host and row is not None and row.argument == plan.dscp.trimmed_lasthop
            surplus += not host and row is not None
            if host and row is None:
                first = first or f"{switch} has no row for port {ref.port}, where {other} is"
            elif host and row is not None and row.argument != plan.dscp.trimmed_lasthop:
                first = first or f"{switch} marks with DSCP {row.argument}; the plan says last_hop_dscp"
            elif row is not None:
                first = first or f"{switch} has a row for port {ref.port}, where {other} is: there is no last hop"
        surplus += len(have)
        if have:
            first = first or f"{switch} has a row for port {next(iter(have))}, which it doesn't have"
    gates = (Gate("ports to hosts", right, wanted), Gate("other ports", surplus, 0, at_most=True))
    told = f"{right} of {wanted} ports to hosts have a row in host_facing, and {surplus} other ports"
    return judged("packets that are trimmed towards a host are marked as such", told, gates, look(plan), first)


def arrives(work: StudentWork) -> TestOutcome:
    plan = own_plan(work.seed)
    chosen = some_paths(plan, work.rng("paths"), PATHS)
    switches = StudentSwitches(plan, rows_of(work, plan), work.path.name)
    arrived, first = 0, ""
    for path in chosen:
        trip = journey(plan, switches, path)
        arrived += trip.reached == path.destination
        if trip.reached != path.destination and not first:
            via = "under one leaf" if path.spine is None else f"spine {path.spine}"
            first = f"{path.source} to {path.destination}, plane {path.plane}, {via}: {ended(trip, path.destination)}"
    told = f"{arrived} of {len(chosen)} packets arrived"
    return judged("packets arrive by every path", told, (Gate("arrived", arrived, len(chosen)),), look(plan), first)


def surplus_rows(plan: Plan, rows: Rows) -> Iterator[tuple[Switch, TableRow]]:
    """Rows that the controller would not install."""
    for switch, own in rows.items():
        wanted = installed(plan, switch)
        yield from ((switch, row) for row in own if row not in wanted)


def nothing_more(work: StudentWork) -> TestOutcome:
    plan = own_plan(work.seed)
    surplus = list(surplus_rows(plan, rows_of(work, plan)))
    told = f"{len(surplus)} rows are not of the plan" if surplus else "every row is of the plan"
    advice = f"{surplus[0][0]} has {surplus[0][1]}: a table is small, and holds neighbours only" if surplus else ""
    gate = Gate("rows too many", len(surplus), 0, at_most=True)
    return judged("no switch holds a row that it doesn't need", told, (gate,), look(plan), advice)


def another(work: StudentWork) -> TestOutcome:
    """Plans of other sizes, the production fabric's planes among them."""
    rng = work.rng("others")
    sizes = [(4, rng.choice((5, 6)), rng.choice((3, 4)), 2), (1, 2, 5, rng.choice((3, 4))), (8, 2, 1, 1)]
    right, first = 0, ""
    for number, shape in enumerate(sizes):
        plan = drawn(work.seed, f"other-{number}", shape)
        rows = rows_of(work, plan)
        wrong = [(switch, row) for switch, own in rows.items() for row in set(own) ^ set(installed(plan, switch))]
        right += not wrong
        if wrong and not first:
            switch, row = min(wrong, key=lambda entry: (entry[0].name, str(entry[1])))
            kind = "lacks" if row in installed(plan, switch) else "has"
            words = f"{plan.planes} planes, {plan.leaves} leaves, {plan.spines} spines, {plan.hosts_per_leaf} hosts"
            first = f"{words} per leaf: {switch} {kind} {row}: nothing of one plan may be in the code"
    told = f"{right} of {len(sizes)} other plans have exactly their rows"
    return judged("the same code serves other plans", told, (Gate("plans", right, len(sizes)),), (), first)


def grown(work: StudentWork) -> TestOutcome:
    """A spine and a leaf more per plane: rows that are installed stay as they are."""
    plan = own_plan(work.seed)
    larger = replace(plan, name="grown", leaves=plan.leaves + 1, spines=plan.spines + 1)
    before, after = rows_of(work, plan), rows_of(work, larger)
    changed = [(switch, row) for switch, own in before.items() for row in own if row not in after[switch]]
    total = sum(len(own) for own in before.values())
    fresh = sum(len(own) for own in after.values()) - total
    due = sum(len(installed(of, switch)) * sign for of, sign in ((larger, 1), (plan, -1)) for switch in of.switches())
    told = f"{total - len(changed)} of {total} rows stayed, {fresh} were added"
    advice = f"{changed[0][0]} lost {changed[0][1]}: numbers must not depend on how many there are" if changed else ""
    gates = (Gate("rows that stayed", total - len(changed), total), Gate("rows added", fresh, due))
    return judged(
        "a fabric that grows only adds rows", told, gates, (), advice or f"{due} rows are needed for what is new"
    )


LAB = Exercise(
    name="tables",
    title="Static tables from a plan",
    minutes=90,
    tests=(
        Test("form", "rows that a switch can hold", 1, well_formed, "own"),
        Test("own", "each switch knows its own uSID", 1, own_usids),
        Test("neighbours", "each neighbour's uSID leads to its port", 3, neighbours),
        Test("unknown", "unknown uSIDs are dropped and counted", 2, unknown),
        Test("last-hop", "the last hop is marked", 1, last_hop),
        Test("surplus", "nothing that isn't needed", 1, nothing_more),
        Test("arrive", "packets arrive by every path", 2, arrives),
        Test("another", "another plan without another line", 2, another),
        Test("grown", "a fabric that grows only adds rows", 2, grown),
    ),
    extra=lambda seed: {"tables.toml": plan_text(own_plan(seed))},
)

"""Signs in the answers of tools: for each kind a function that finds it, without knowing what is hidden."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from operations.incident import tables
from topo import Host, Plan, Switch
from topo.graph import Link, PortRef, link_at, links, peer

LOST_MIN, LOST_SHARE = 8, 0.01
"""Fewer lost packets, or a smaller share, are within the fabric's specification, or still on their way."""
CHANGES_MIN = 2  # of a carrier between two looks, or since the beginning and one is not enough
STALL_NS, STALLS_MIN = 100_000_000, 2
MARKS_MIN, MARKS_TIMES = 20, 5
MARKED_SHARE, USED_SHARE = 0.15, 0.6
"""A port that marks so large a share of its data has a queue all the time. Such a port uses its whole rate, and so more
than this share of the rate that it reports."""
DATA_CLASSES = ("no-trim", "trimmable", "retransmit")


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that the answers show."""

    component: str
    kind: str
    sentence: str


@dataclass
class CollectedAnswers:
    """Everything that was answered so far, by tool."""

    plan: Plan
    tickets: Sequence[str] = ()
    virtual_time: bool = True
    """Whether the tables are those of virtual time: switches on real links have more patience."""
    looks: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    """`inspect`: nodes by name, a dictionary per command."""
    counts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """`counters`: rows by interface, of the newest command that held each."""
    readings: int = 0
    data: dict[str, int] = field(default_factory=dict)
    """Data packets sent, by interface, of the same commands."""
    watched_s: dict[str, float] = field(default_factory=dict)
    """For how long each interface was counted; 0: since the beginning."""
    entries: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    logs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    paths: list[dict[str, Any]] = field(default_factory=list)

    def take(self, tool: str, answer: Mapping[str, Any]) -> None:
        """One more answer."""
        if tool == "inspect":
            self.looks.append({node["node"]: {**node, "at_s": answer["at_s"]} for node in answer["nodes"]})
        elif tool == "counters":
            self.readings += 1
            self.counts |= {row["IFACE"]: {**row, "reading": self.readings} for row in answer["ports"]}
            self.data |= {row["IFACE"]: 0 for row in answer["ports"]}
            self.watched_s |= {row["IFACE"]: answer["watched_s"] for row in answer["ports"]}
            for row in answer["classes"]:
                self.data[row["IFACE"]] += row["TX"] if row["CLASS"] in DATA_CLASSES else 0
        elif tool == "tables":
            self.entries[answer["node"]] = answer["entries"]
        elif tool == "log":
            self.logs[answer["node"]] = answer["lines"]
        elif tool == "paths":
            self.paths.append(dict(answer))

    def looks_at(self, ref: PortRef) -> list[dict[str, Any]]:
        """The reports of a port's node about it, the oldest first."""
        reports = [look[ref.node.name] for look in self.looks if ref.node.name in look]
        return [node["interfaces"][ref.port - 1] for node in reports]

    def cables(self) -> Iterator[tuple[Link, list[dict[str, Any]], list[dict[str, Any]]]]:
        """Each cable that was looked at, with what its lower and its upper end reported."""
        for link in links(self.plan):
            lower, upper = self.looks_at(link.a), self.looks_at(link.b)
            if lower or upper:
                yield link, lower, upper


def name(link: Link) -> str:
    """A cable as a component."""
    return f"{link.a.node}-{link.b.node}"


def dead_cables(seen: CollectedAnswers) -> Iterator[Sign]:
    for link, lower, upper in seen.cables():
        dark = bool(lower and upper) and all(report["state"] == "down" for report in (*lower, *upper))
        if dark and upper[-1]["carrier_changes"] == 1:
            yield Sign(name(link), "dead-cable", f"both ends of {link.name} report no carrier")


def dark_nics(seen: CollectedAnswers) -> Iterator[Sign]:
    for link, lower, upper in seen.cables():
        if not (isinstance(link.a.node, Host) and lower and upper):
            continue
        one_end = lower[-1]["state"] == "down" and upper[-1]["state"] == "up"
        if lower[-1]["state"] == "off" or one_end:  # on real links the other end loses its carrier
            sentence = f"{link.a.interface} is {lower[-1]['state']}, and {link.b.interface} at the other end is up"
            sentence = sentence if one_end else f"{link.a.interface} is switched off at {link.a.node}"
            yield Sign(f"{link.a.node}.p{link.a.port - 1}", "nic-port-down", sentence)


def flapping_cables(seen: CollectedAnswers) -> Iterator[Sign]:
    for link, lower, upper in seen.cables():
        for reported in (lower, upper):
            if len(reported) > 1:
                changes = reported[-1]["carrier_changes"] - reported[0]["carrier_changes"]
                if changes >= CHANGES_MIN:
                    sentence = f"{link.name} changed its carrier {changes} times between two looks"
                    yield Sign(name(link), "flapping-cable", sentence)
                    break


def wrong_rates(seen: CollectedAnswers) -> Iterator[Sign]:
    for link, lower, upper in seen.cables():
        reported = [report["rate_bps"] for report in (*lower[-1:], *upper[-1:])]
        if reported and all(rate_bps != link.rate_bps for rate_bps in reported):
            sentence = f"{link.name} runs at {reported[0] / 1e6:g} Mb/s, and the plan says {link.rate_bps / 1e6:g}"
            yield Sign(name(link), "wrong-rate", sentence)


def rebooting_switches(seen: CollectedAnswers) -> Iterator[Sign]:
    for node in seen.plan.switches():
        looks = [look[node.name] for look in seen.looks if node.name in look]
        if len(looks) < 2:
            continue
        between_s = looks[-1]["at_s"] - looks[0]["at_s"]
        if looks[-1]["up_s"] < looks[0]["up_s"] + between_s - 0.5:
            sentence = (
                f"{node} has run for {looks[-1]['up_s']:g} s, and {between_s:g} s earlier it had run for"
                f" {looks[0]['up_s']:g} s: it has started again"
            )
            yield Sign(node.name, "rebooting-switch", sentence)


def losses(seen: CollectedAnswers) -> Iterator[Sign]:
    """Between two switches: packets that one end has sent and the other has not received."""
    unsteady = {sign.component for find in (flapping_cables, dead_cables) for sign in find(seen)}
    restarted = {sign.component for sign in rebooting_switches(seen)}
    for link in links(seen.plan):
        if isinstance(link.a.node, Host) or name(link) in unsteady or {link.a.node.name, link.b.node.name} & restarted:
            continue
        for near, far in ((link.a, link.b), (link.b, link.a)):
            sent, came = (seen.counts.get(ref.interface) for ref in (near, far))
            if sent is None or came is None or sent["reading"] != came["reading"]:
                continue
            missing = sent["TX_OK"] - came["RX_OK"] - came["DROPS"].get("port_down", 0)
            if missing >= max(LOST_MIN, LOST_SHARE * sent["TX_OK"]):
                sentence = (
                    f"{near.interface} sent {sent['TX_OK']:,} packets and {far.interface} received"
                    f" {came['RX_OK']:,}: {missing / sent['TX_OK']:.1%} are missing"
                )
                yield Sign(f"{near.node}>{far.node}", "one-way-loss", sentence)


def slow_ports(seen: CollectedAnswers) -> Iterator[Sign]:
    """A port that always has a queue and sends less than its rate; or one that marks many packets at fewer data packets
    than the ports with the same load, which mark few.

    Those are the ports from one leaf's number to spines, or from spines to one leaf's number, in every plane.
    """
    known = {sign.component for sign in wrong_rates(seen)}
    alike: dict[tuple[str, int], list[tuple[PortRef, dict[str, Any]]]] = {}
    for link in links(seen.plan):
        if isinstance(link.a.node, Switch) and isinstance(link.b.node, Switch):
            for ref in (link.a, link.b):
                if ref.interface in seen.counts and isinstance(ref.node, Switch):
                    key = (ref.node.role, link.a.node.index)
                    alike.setdefault(key, []).append((ref, seen.counts[ref.interface]))
    for group in alike.values():
        marks = sorted(row["ECN_MARKED"] or 0 for _, row in group)
        usual = marks[len(marks) // 2]
        sent = sorted(seen.data[ref.interface] for ref, _ in group)
        for ref, row in group:
            many = (row["ECN_MARKED"] or 0) >= max(MARKS_MIN, MARKS_TIMES * usual)
            busy = seen.data[ref.interface] >= sent[len(sent) // 2]
            queued, used = _queued(seen, ref, row)
            if (queued or (many and not busy)) and name(link_at(seen.plan, ref)) not in known:
                sentence = f"{ref.interface} marked {row['ECN_MARKED']:,} of {row['TX_OK']:,} packets; "
                sentence += (
                    f"its queue never empties, and it uses {used:.0%} of its rate"
                    if queued
                    else f"a port with the same load marks {usual:,}"
                )
                yield Sign(f"{ref.node}>{peer(seen.plan, ref).node}", "slow-port", sentence)


def _queued(seen: CollectedAnswers, ref: PortRef, row: Mapping[str, Any]) -> tuple[bool, float]:
    """Whether a port had a queue all the time and sent less than its rate; the share of its rate that data took."""
    data, watched_s = seen.data[ref.interface], seen.watched_s[ref.interface]
    if not watched_s:
        return False, 0.0
    used = 8 * data * seen.plan.packets.pmtu_bytes / (watched_s * link_at(seen.plan, ref).rate_bps)
    return (row["ECN_MARKED"] or 0) >= max(MARKS_MIN, MARKED_SHARE * data) and used < USED_SHARE, used


def wrong_tables(seen: CollectedAnswers) -> Iterator[Sign]:
    """Entries of a switch that differ from the plan's."""
    for node, entries in seen.entries.items():
        switch = seen.plan.switch_node(node)
        held = {row["table"] for row in entries}
        differing = [
            row
            for row in tables.differing(seen.plan, switch, entries, virtual_time=seen.virtual_time)
            if row[0] in held
        ]
        for table, match, want, have in differing[:1]:
            if table == tables.LIMITS:
                kind = "no-trimming" if have.startswith(tables.DROPS) else "wrong-threshold"
            else:
                kind = "wrong-entry" if have else "missing-entry"
            sentence = f"{table} of {node} has {have or 'nothing'} for {match}, and the plan has {want}"
            yield Sign(node, kind, sentence)


def late_hosts(seen: CollectedAnswers) -> Iterator[Sign]:
    for host, lines in seen.logs.items():
        stalls = [line["late_ns"] for line in lines if line["kind"] == "stall" and line["late_ns"] >= STALL_NS]
        if len(stalls) >= STALLS_MIN:
            sentence = f"{host} was not run {len(stalls)} times, for up to {max(stalls) / 1e9:.2f} s"
            yield Sign(host, "late-host", sentence)


def denied_paths(seen: CollectedAnswers) -> Iterator[Sign]:
    hosts: dict[str, str] = {}
    for answer in seen.paths:
        denied = [path["via"] for path in answer["paths"] if path["state"] == "denied" and path["via"]]
        without = [via for via in denied if not any(ticket.startswith(f"{via} ") for ticket in seen.tickets)]
        if without:
            hosts.setdefault(answer["source"], f"{answer['source']} denies its paths by {without[0]} without a ticket")
    for host, sentence in hosts.items():
        yield Sign(host, "denied-path", sentence)


def swapped_cables(seen: CollectedAnswers) -> Iterator[Sign]:
    """Two spines that drop what comes from one leaf, because it is for another switch."""
    for plane in range(seen.plan.planes):
        for index in range(seen.plan.leaves):
            lost = [link for link in links(seen.plan) if link.a.node == Switch(plane, "leaf", index)]
            lost = [link for link in lost if _unknown(seen, link.b) >= 1 and isinstance(link.b.node, Switch)]
            if len(lost) == 2:
                spines = " and ".join(str(link.b.node) for link in lost)
                sentence = f"{spines} drop packets of {lost[0].a.node} for uSIDs that they do not know"
                yield Sign(name(lost[0]), "swapped-cables", sentence)


def _unknown(seen: CollectedAnswers, ref: PortRef) -> int:
    return int(seen.counts.get(ref.interface, {}).get("DROPS", {}).get("unknown_usid", 0))


FINDERS: tuple[Callable[[CollectedAnswers], Iterable[Sign]], ...] = (
    dead_cables,
    dark_nics,
    flapping_cables,
    wrong_rates,
    rebooting_switches,
    losses,
    slow_ports,
    wrong_tables,
    late_hosts,
    denied_paths,
    swapped_cables,
)


def findings(seen: CollectedAnswers) -> list[Sign]:
    """Everything that the answers show."""
    return [sign for find in FINDERS for sign in find(seen)]

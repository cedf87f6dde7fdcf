"""A run as a trace: hosts and switches as processes, events as spans, instants and counters.

Journals and the packet log are read line by line, each file once. What is kept is the last value of every counter.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.exporting import chrome_trace as trace
from common.journal import Line
from judging import fault_spans, mapped
from judging.journal import scan
from topo import Host, parse_node, tier

LAB = "lab"
"""The process of what no node did: phases, faults, the controller."""
COUNTED = {"trims": "trims", "retransmits": "retransmissions", "rto": "timeouts"}
"""Totals of queue pairs whose rises are instants, with the instants' names."""
DROPS = "drop_"
MOMENTS: Mapping[str, Callable[[Line], str]] = {
    "ev": lambda line: f"EV {line['ev']} {line.get('old')} → {line['new']}",
    "qp": lambda line: f"QP {line['qp']} {line['old']} → {line['new']}",
    "plane": lambda line: f"plane {line['plane']} {line['state']}",
    "link": lambda line: f"link {line['a']}-{line['b']} {line['state']}",
    "port": lambda line: f"port {line['port']}",
    "switch": lambda line: f"switch {line['state']}",
    "tables": lambda line: f"tables {line['action']}",
    "workload": lambda line: f"workload {line['name']} {line['state']}",
    "error": lambda line: f"error: {line['message']}",
}
"""Lines that are instants, with the instants' names."""


class Converter:
    """Journal lines in, events out. Lines of one node must come in order of time."""

    def __init__(self) -> None:
        self.unreadable = 0
        """Lines of a known kind that lack what their kind must have."""
        self._tracks = trace.Tracks()
        self._last: dict[tuple[Any, ...], Any] = {}
        self._faults: list[Line] = []
        self._phases: dict[str, int] = {}
        self._end_ns = 0

    def events(self, files: Iterable[Path]) -> Iterator[str]:
        """The events of all journal files."""
        for path in files:
            for _, _, line in scan(mapped(path), path):
                self._end_ns = max(self._end_ns, line["t_ns"])
                try:
                    yield from self._of(line)
                except (KeyError, TypeError, ValueError):
                    self.unreadable += 1
        yield from self._of_faults()
        for name, start_ns in self._phases.items():
            yield from self.overlapping(LAB, "phases", name, start_ns, self._end_ns, "phase", {"state": "unfinished"})

    # Places of events, which packet logs use as well.

    def place(self, node: str, thread: str) -> tuple[int, int, list[str]]:
        """Process and thread of a node's track, and the events that introduce them."""
        pid, first = self._tracks.process(node, order(node))
        tid, second = self._tracks.thread(pid, thread)
        return pid, tid, [*first, *second]

    def overlapping(
        self, node: str, thread: str, name: str, start_ns: int, stop_ns: int, category: str, told: trace.Arguments
    ) -> list[str]:
        """A span of a node that may overlap others."""
        pid, tid, made = self.place(node, thread)
        number = self._tracks.span()
        return [*made, *trace.overlapping(name, pid, tid, start_ns, stop_ns, category, told, number)]

    def instant(self, node: str, thread: str, name: str, t_ns: int, category: str, told: trace.Arguments) -> list[str]:
        """A moment of a node; a fault is drawn over all nodes."""
        pid, tid, made = self.place(node, thread)
        return [*made, trace.instant(name, pid, tid, t_ns, category, told, everywhere=category == "fault")]

    def counter(self, node: str, name: str, t_ns: int, values: Mapping[str, int | float]) -> list[str]:
        """The values of a counter of a node; none when they are those of last time."""
        if self._last.get((node, name)) == values:
            return []
        self._last[node, name] = dict(values)
        pid, made = self._tracks.process(node, order(node))
        return [*made, trace.counter(name, pid, t_ns, values)]

    # Lines by kind.

    def _of(self, line: Line) -> list[str]:
        kind, node, t_ns = str(line["kind"]), str(line["node"]), int(line["t_ns"])
        if kind == "sample":
            return self._of_sample(node, t_ns, line)
        if kind == "step":
            return self._of_step(node, t_ns, line)
        if kind == "transfer" or (kind == "message" and line["state"] == "sent"):
            return self._of_message(node, line)
        if kind == "repair":
            title = f"repair of {int(line['packets'])} packets to {line['peer']}"
            return self.overlapping(node, "repairs", title, int(line["sent_ns"]), t_ns, "repair", rest(line))
        if kind == "stall":
            return self.overlapping(node, "stalls", "stall", t_ns - int(line["late_ns"]), t_ns, "stall", rest(line))
        if kind == "phase":
            return self._of_phase(t_ns, line)
        if kind == "fault":
            self._faults.append(line)
            return []
        if kind in MOMENTS:
            place = node if is_node(node) else LAB
            return self.instant(place, f"{kind} events", MOMENTS[kind](line), t_ns, kind, rest(line))
        return []

    def _of_message(self, node: str, line: Line) -> list[str]:
        """A span whose name is the same for all messages with a peer: Perfetto draws a track per name."""
        start_ns, stop_ns = int(line["start_ns"]), int(line["end_ns"])
        title, thread = f"messages, peer {line['peer']}", f"messages of {line['workload']}"
        return self.overlapping(node, thread, title, start_ns, stop_ns, "message", rest(line))

    def _of_step(self, node: str, t_ns: int, line: Line) -> list[str]:
        total_ns, waited_ns = int(line["total_ns"]), int(line["comm_ns"])
        pid, tid, made = self.place(node, f"steps of {line['workload']}")
        name = f"step {int(line['step'])}"
        return [
            *made,
            trace.slice_(name, pid, tid, t_ns - total_ns, total_ns, "step", rest(line)),
            trace.slice_("communication", pid, tid, t_ns - waited_ns, waited_ns, "communication", {}),
        ]

    def _of_phase(self, t_ns: int, line: Line) -> list[str]:
        name = str(line["name"])
        if line["state"] == "start":
            self._phases[name] = t_ns
            return []
        start_ns = self._phases.pop(name, t_ns)
        return self.overlapping(LAB, "phases", name, start_ns, t_ns, "phase", {})

    def _of_faults(self) -> Iterator[str]:
        """A span per fault, and an instant where it begins and ends."""
        self._faults.sort(key=lambda line: int(line["t_ns"]))
        for fault in fault_spans(self._faults):
            told = {"target": fault.target, **fault.arguments, "by_hand": fault.by_hand}
            end_ns = self._end_ns if fault.stop_ns is None else fault.stop_ns
            yield from self.overlapping(LAB, "faults", fault.title, fault.start_ns, end_ns, "fault span", told)
            yield from self.instant(LAB, "fault events", f"{fault.title}: begin", fault.start_ns, "fault", told)
            if fault.stop_ns is not None:
                yield from self.instant(LAB, "fault events", f"{fault.title}: end", fault.stop_ns, "fault", told)

    def _of_sample(self, node: str, t_ns: int, line: Line) -> list[str]:
        _, made = self._tracks.process(node, order(node))
        for qp in line.get("qps", ()):
            title = f"QP {qp['qp']} to {qp.get('peer')}"
            for field, name in COUNTED.items():
                made += self._rise(node, title, name, t_ns, int(qp.get(field, 0)))
            windows = {field: int(qp[field]) for field in ("cwnd_bytes", "inflight_bytes") if field in qp}
            if windows:
                made += self.counter(node, f"{title} window", t_ns, windows)
        for port in line.get("ports", ()):
            title = f"port {port['port']}"
            for field in (field for field in port if field.startswith(DROPS)):
                if field != "drop_trimmed_share":
                    name = f"drops: {field.removeprefix(DROPS).replace('_', ' ')}"
                    made += self._rise(node, title, name, t_ns, int(port[field]))
            if "queue_packets" in port:
                values = {"packets": int(port["queue_packets"]), "bytes": int(port["queue_bytes"])}
                made += self.counter(node, f"{title} queue", t_ns, values)
        return made

    def _rise(self, node: str, track: str, name: str, t_ns: int, total: int) -> list[str]:
        """An instant when a total has risen, with by how much. A total that fell belongs to a new counter."""
        before = self._last.get((node, track, name), 0)
        self._last[node, track, name] = total
        count = total - before if total >= before else total
        if not count:
            return []
        return self.instant(node, track, name, t_ns, name.partition(":")[0], {"count": count, "total": total})


def order(node: str) -> int:
    """Where a process is drawn: the lab, hosts by number, switches by plane, leaves before spines."""
    if not is_node(node):
        return 0
    parsed = parse_node(node)
    if isinstance(parsed, Host):
        return 1 + parsed.index
    return 1_000_000 * (1 + parsed.plane) + 100_000 * (tier(parsed) - 1) + parsed.index


def is_node(name: str) -> bool:
    """Whether a journal's node is a host or a switch."""
    try:
        parse_node(name)
    except ValueError:
        return False
    return True


def rest(line: Line) -> dict[str, Any]:
    """The fields of a line's kind."""
    return {key: value for key, value in line.items() if key not in ("t_ns", "node", "kind")}

"""Totals of the counters of queue pairs, host ports and switch ports, over a span or the whole run."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from judging.arrays import np
from judging.measures.goodput import QP_FIELDS, at, totals
from judging.run import Run, Span

__all__ = ["other_packets", "qp_totals", "switch_drops"]


def qp_totals(run: Run, span: Span | None = None) -> dict[str, int]:
    """Sums over all QPs of all hosts of the counters that a reader asks about first, without those that no QP has."""
    span = span or Span("run", 0, run.end_ns)
    edges = np.array([span.start_ns, span.stop_ns], dtype=float)
    by_field: dict[str, float] = {}
    for host in run.agent_samples:
        counted = totals(run, host)
        for field, sums in counted.qps.items():
            first, last = at(counted.times, sums, edges)
            by_field[field] = by_field.get(field, 0.0) + last - first
    return {field: round(by_field[field]) for field in QP_FIELDS if field in by_field}


COUNTED = ("data_packets", "retransmits", "probes", "sacks_sent", "nacks_sent")
"""Packets of a host that its queue pairs count. "probes" are reliability probes; EV probes are of no queue pair."""


def other_packets(run: Run) -> int | None:
    """Packets that hosts sent and no queue pair counts: EV probes, port status updates, answers to both, and the
    acknowledgements of whole messages. None where these are not known: under other transports than MRC, and where a
    program closed a queue pair between samples. Packets that a port had not sent when it went down are missing."""
    count = 0
    for samples in run.agent_samples.values():
        last = {qp["qp"]: qp for line in samples for qp in line["qps"]}
        living = {qp["qp"] for qp in samples[-1]["qps"]}
        if any("sacks_sent" not in qp or (number not in living and "peer" not in qp) for number, qp in last.items()):
            return None
        sent = sum(int(port.get("tx_packets", 0)) for port in samples[-1]["ports"])
        count += max(0, sent - sum(int(qp.get(field, 0)) for qp in last.values() for field in COUNTED))
    return count if any(line["qps"] for samples in run.agent_samples.values() for line in samples) else None


# A packet that a switch received and neither sent nor lost in these ways was dropped by its P4 program. A port that is
# down also counts packets that it never received, so with such faults the result is a lower bound.
MANAGED = ("drop_queue_full", "drop_port_down", "drop_wiped", "drop_no_port", "drop_passes", "drop_headroom")
AFTER_RECEIVING = (*MANAGED, "drop_trimmed_share", "queue_packets")
COUNTED_ELSEWHERE = ("drop_loss", "drop_no_program", "drop_socket")
"""The other drops of a port: lost after it was counted as sent, or before it was counted as received."""


def last_ports(run: Run) -> Iterator[Collection[Mapping[str, Any]]]:
    """The last counters of every port, switch by switch. A sample without a port not met yet ends the search: samples
    tell of every port of a switch."""
    for samples in run.switch_samples.values():
        last: dict[Any, Mapping[str, Any]] = {}
        for line in reversed(samples):
            fresh = {port["port"]: port for port in line["ports"] if port["port"] not in last}
            if not fresh:
                break
            last |= fresh
        yield last.values()


def switch_drops(run: Run) -> Counter[str]:
    """Packets dropped by switches in the whole run, by reason: traffic managers, and P4 programs (`drop_program`)."""
    read = (*MANAGED, *COUNTED_ELSEWHERE) if run.switch_samples else ()  # a sample leaves them out where they are 0
    drops: Counter[str] = Counter(dict.fromkeys(read, 0))
    for ports in last_ports(run):
        for port in ports:
            drops.update({field: int(value) for field, value in port.items() if field.startswith("drop_")})
        received, sent = (sum(int(port.get(field, 0)) for port in ports) for field in ("rx_packets", "tx_packets"))
        otherwise = sum(int(port.get(field, 0)) for port in ports for field in AFTER_RECEIVING)
        drops["drop_program"] += max(0, received - sent - otherwise)
    return drops


PAUSES = ("pause_sent", "paused_ns", "pause_watchdog", "pause_ignored")


def switch_pauses(run: Run) -> Counter[str]:
    """The switches' flow-control counters over the whole run, summed over all ports; empty without flow control."""
    sums: Counter[str] = Counter()
    for port in (port for ports in last_ports(run) for port in ports):
        sums.update({field: int(port.get(field, 0)) for field in PAUSES})
    return +sums


def host_socket_drops(run: Run) -> dict[str, int]:
    """Packets that a host's kernel lost before its agent read them, by host."""
    last = {host: samples[-1]["ports"] for host, samples in run.agent_samples.items() if samples}
    return {host: sum(int(port.get("drop_socket", 0)) for port in ports) for host, ports in last.items()}


def queue_pairs(run: Run) -> int:
    """How many queue pairs all hosts together ever had."""
    return sum(len({qp["qp"] for line in lines for qp in line["qps"]}) for lines in run.agent_samples.values())

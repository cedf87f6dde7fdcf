"""The counters of a lab that is up, as metrics: ports of switches, ports and queue pairs of hosts, faults."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cli.metrics.exposition import ExposedMetric
from running.view import LabView
from running.view.port_rows import RX_DROPS, TX_DROPS
from topo import Switch
from topo.graph import PortRef

NANO = 1e-9
MANAGER_CAUSES = tuple(name.removeprefix("drop_") for name in (*RX_DROPS, *TX_DROPS))
"""Why the traffic manager of a switch may drop packets."""
PORT_FIELDS = {
    "rx_packets": ("receive_packets_total", "Packets received by a host's port."),
    "rx_bytes": ("receive_bytes_total", "Bytes of Ethernet frames received by a host's port."),
    "tx_packets": ("transmit_packets_total", "Packets sent by a host's port."),
    "tx_bytes": ("transmit_bytes_total", "Bytes of Ethernet frames sent by a host's port."),
}
QP_COUNTERS = {
    "acked_bytes": ("acknowledged_bytes_total", "Payload bytes that the peer has acknowledged."),
    "data_packets": ("data_packets_total", "Data packets sent, retransmissions included."),
    "retransmits": ("retransmissions_total", "Data packets sent again."),
    "rto": ("timeouts_total", "Retransmission timeouts."),
    "trims": ("trims_total", "NACKs for trimmed packets."),
    "ecn": ("ecn_echoes_total", "SACKs that echo a congestion mark."),
    "nacks": ("nacks_total", "NACKs received."),
    "received_bytes": ("received_bytes_total", "Payload bytes received."),
}
QP_GAUGES = {
    "cwnd_bytes": ("window_bytes", "Congestion window.", 1.0),
    "inflight_bytes": ("inflight_bytes", "Bytes sent and not acknowledged.", 1.0),
    "rtt_ns": ("rtt_seconds", "Round-trip time, smoothed.", NANO),
    "evs_out": ("evs_out", "EVs that are out of rotation.", 1.0),
    "pending": ("pending_writes", "Writes posted and not completed.", 1.0),
}


def collect(
    lab: LabView,
    chosen: Sequence[PortRef],
    rows: Sequence[Mapping[str, Any]],
    causes: Mapping[str, Sequence[str] | None],
) -> list[ExposedMetric]:
    """Everything as it is now, with the rows of `./lab counters` for these ports of switches. An agent that does not
    answer is down. `causes`: by P4 switch, why its program may drop packets; None for a switch that runs no program."""
    info = ExposedMetric("mrclab_lab_info", "gauge", "The lab that is up, by name and plan.")
    info.add(1, lab=lab.name, plan=lab.plan.name)
    faults = ExposedMetric("mrclab_faults", "gauge", "Faults in force.")
    faults.add(len(lab.faults()))
    hosts = list(lab.plan.hosts())
    counters = {host.name: lab.agent_counters(host) for host in hosts}
    return [info, faults, *switch_metrics(chosen, rows, causes), *host_metrics(counters)]


def switch_metrics(
    chosen: Iterable[PortRef], rows: Iterable[Mapping[str, Any]], causes: Mapping[str, Sequence[str] | None]
) -> list[ExposedMetric]:
    """Metrics of switches from the rows of `./lab counters`, with `causes` as for `collect`.

    A switch that is down has no counters of its program. Drops are there from the start, so that a rate sees the first.
    """
    state = ExposedMetric("mrclab_switch_up", "gauge", "Whether a P4 switch runs its program.")
    for name, known in causes.items():
        state.add(int(known is not None), switch=name)
    head = "mrclab_switch_port"
    received = ExposedMetric(f"{head}_receive_packets_total", "counter", "Packets that came by a switch port.")
    sent = ExposedMetric(f"{head}_transmit_packets_total", "counter", "Packets that left by a switch port.")
    dropped = ExposedMetric(f"{head}_drop_packets_total", "counter", "Packets dropped at a switch port, by cause.")
    trimmed = ExposedMetric(
        f"{head}_trim_packets_total", "counter", "Packets trimmed on their way out of a switch port."
    )
    marked = ExposedMetric(
        f"{head}_ecn_marked_packets_total", "counter", "Packets marked on their way out of a switch port."
    )
    waiting = ExposedMetric(f"{head}_queue_packets", "gauge", "Packets that wait at a switch port.")
    for ref, row in zip(chosen, rows, strict=True):
        assert isinstance(ref.node, Switch)
        labels = {"switch": ref.node.name, "plane": ref.node.plane, "port": ref.port, "peer": row["PEER"]}
        columns = [(received, "RX_OK"), (sent, "TX_OK")]
        program = causes.get(ref.node.name, ())
        if program is not None:
            columns += [(trimmed, "TRIM_PKTS"), (marked, "ECN_MARKED")]
        for metric, column in columns:
            metric.add(row[column], **labels)
        managed = MANAGER_CAUSES if "QUEUE" in row else ()
        for cause, count in {**dict.fromkeys((*managed, *(program or ())), 0), **row["DROPS"]}.items():
            dropped.add(count, **labels, cause=cause)
        if "QUEUE" in row:
            waiting.add(row["QUEUE"], **labels)
    return [state, received, sent, dropped, trimmed, marked, waiting]


def host_metrics(counters: Mapping[str, Mapping[str, Any] | None]) -> list[ExposedMetric]:
    """Metrics of hosts from what their agents count; None for an agent that does not answer."""
    up = ExposedMetric("mrclab_agent_up", "gauge", "Whether the host's agent answers.")
    ports = {
        name: ExposedMetric(f"mrclab_host_port_{title}", "counter", told) for name, (title, told) in PORT_FIELDS.items()
    }
    port_up = ExposedMetric("mrclab_host_port_up", "gauge", "Whether a host's port has carrier and is enabled.")
    totals = {name: ExposedMetric(f"mrclab_qp_{title}", "counter", told) for name, (title, told) in QP_COUNTERS.items()}
    gauges = {name: ExposedMetric(f"mrclab_qp_{title}", "gauge", told) for name, (title, told, _) in QP_GAUGES.items()}
    for host, told in counters.items():
        up.add(int(told is not None), host=host)
        for port in told["ports"] if told is not None else ():
            labels = {"host": host, "plane": port["plane"], "port": port["port"]}
            if "up" in port:
                port_up.add(int(port["up"]), **labels)
            for name, metric in ports.items():
                if name in port:
                    metric.add(port[name], **labels)
        for qp in told["qps"] if told is not None else ():
            labels = {"host": host, "peer": str(qp.get("peer")), "qp": qp["qp"], "workload": str(qp.get("workload"))}
            for name, metric in totals.items():
                if name in qp:
                    metric.add(qp[name], **labels)
            for name, metric in gauges.items():
                if qp.get(name) is not None:
                    metric.add(qp[name] * QP_GAUGES[name][2], **labels)
    return [up, port_up, *ports.values(), *totals.values(), *gauges.values()]

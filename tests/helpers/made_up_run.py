"""A made-up run: four hosts in a training loop on two planes, with one link fault, as its agents would journal it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from judging import checks
from judging.run import Run

Line = dict[str, Any]
SECOND = 1_000_000_000
HOSTS = ("h0", "h1", "h2", "h3")
PLANES = 2
RATE = 8_000_000  # bit/s a port


def own_checks() -> list[checks.Check]:
    return [*checks.always(), checks.faults_happened(1), checks.fault_cost(), checks.drift()]


def samples(
    dip: float, plane_skew: float, trims: int, socket_drops: int, waiting: float
) -> Iterator[tuple[float, str, dict[str, Any]]]:
    """What one agent counts every 100 ms: (time, kind, fields)."""
    acked = 0.0
    sent = [0.0] * PLANES
    for tick in range(241):
        t_s = tick / 10
        share = dip if 14 < t_s <= 16 else 1.0
        if tick:
            acked += RATE * PLANES * 0.8 * share / 8 / 10
            for plane in range(PLANES):
                skew = 1 + plane_skew * (1 if plane else -1)
                sent[plane] += RATE * 0.85 * share * skew / 8 / 10
        counters = {
            "acked_bytes": round(acked),
            "data_packets": tick,
            "retransmits": 3 * (t_s > 14),
            "rto": 0,
            "trims": trims if tick else 0,
        }
        qps = [{"qp": 1, "peer": "h1", **counters}]
        ports = [
            {"port": plane + 1, "plane": plane, "tx_bytes": round(sent[plane]), "drop_socket": socket_drops}
            for plane in range(PLANES)
        ]
        yield t_s, "sample", {"ports": ports, "qps": qps}
        waited_ns = round(waiting * tick * SECOND / 10)
        yield t_s, "cpu", {"process_ns": 0, "wall_ns": tick * SECOND // 10, "wait_ns": waited_ns}


def made_up_lines(
    dip: float = 1.0,
    plane_skew: float = 0.0,
    slow_step_ns: int = 0,
    wrong_bytes: int = 0,
    qp_error: bool = False,
    socket_drops: int = 0,
    waiting: float = 0.03,
    differences: int = 0,
    heals: bool = True,
    trims: int = 0,
    vanished: int = 0,
    halts_s: float = 99.0,
    changed: dict[str, Any] | None = None,
) -> list[Line]:
    """Warm-up 0–2 s, reference 2–12 s, faults 12–22 s, heal 22–24 s; the link is down 14–16 s.

    `dip` is the share of the usual goodput while the link is down, `halts_s` when the last step ends, `vanished` what a
    switch received and never sent, `changed` what differs from the usual options.
    """
    lines: list[Line] = []

    def add(t_s: float, node: str, kind: str, **fields: Any) -> None:
        lines.append({"t_ns": round(t_s * SECOND), "node": node, "kind": kind, **fields})

    add(0, "runner", "process", role="runner", pid=1)
    options = {"scenario": "made-up", "plan": "tiny", "transport": "mrc", "seed": 7, "base_rtt_ns": 50_000_000}
    shape = {"fabric": {"planes": PLANES, "leaves": 2, "spines": 2}}
    rates = {"port_rate_bps": RATE, "host_rate_bps": RATE * PLANES, "hardware_rate_bps": 10**11}
    add(0, "runner", "options", **{**options, **shape, **rates, **(changed or {})})
    for name, start, stop in (("warmup", 0, 2), ("reference", 2, 12), ("faults", 12, 22), ("heal", 22, 24)):
        add(start, "runner", "phase", name=name, state="start")
        add(stop, "runner", "phase", name=name, state="stop")
    add(14, "runner", "fault", verb="link-down", target="p0l0-p0s1", state="begin", arguments={})
    add(16, "runner", "fault", verb="link-down", target="p0l0-p0s1", state="end", arguments={})
    for host in HOSTS:
        add(0, host, "process", role="agent", pid=2)
        add(0, host, "workload", name="main", state="start", options={})
        for t_s, kind, fields in samples(dip, plane_skew, trims, socket_drops, waiting):
            add(t_s, host, kind, **fields)
        for step in range(23):
            if 1.0 + step > halts_s:
                break
            slow, t_s = slow_step_ns * (step == 14), 1.0 + step + (step >= 14) * slow_step_ns / SECOND
            timing = {"compute_ns": SECOND // 3, "comm_ns": 2 * SECOND // 3 + slow, "total_ns": SECOND + slow}
            add(t_s, host, "step", workload="main", rank=0, step=step, bytes=1_000_000, verified=True, **timing)
        result = {"messages_posted": 9, "messages_completed": 9, "bytes_verified": 10**7, "bytes_wrong": wrong_bytes}
        add(24, host, "workload", name="main", state="stop", result=result)
    path = {"qp": 1, "peer": "h1", "ev": 49153, "plane": 0, "via": "p0s1", "cause": "loss"}
    add(14.1, "h0", "ev", **path, old="GOOD", new="ASSUMED_BAD")
    if heals:
        add(16.3, "h0", "ev", **path, old="ASSUMED_BAD", new="GOOD")
    if qp_error:
        add(15, "h2", "qp", qp=1, peer="h3", old="rts", new="error", cause="retry exceeded")
    switch_port = {"port": 1, "rx_packets": 11 + vanished, "tx_packets": 9, "drop_port_down": 2, "drop_socket": 0}
    add(23, "p0l0", "sample", device="p0l0", ports=[switch_port])
    add(24, "controller", "tables", action="verify", written=0, differences=differences)
    return sorted(lines, key=lambda line: int(line["t_ns"]))


@pytest.fixture
def made_up() -> Callable[..., Run]:
    return lambda **changes: Run(made_up_lines(**changes))

"""Figure 15: NCCL's sendrecv among 42K GPUs, here among 8."""

from collections.abc import Sequence
from dataclasses import replace

from judging import SECOND_NS, Run
from paper import profile
from paper.breaking import single_path
from paper.cluster import B
from paper.figure import Measured, Part
from paper.parameters import MRC
from scenarios import SAMPLE_S, Phase, Workload

SIZES = (32, 64, 128, 256)  # MB that are run here
MB = 1 << 20
RING = replace(B, hosts_per_leaf=4)
PROFILE = profile.load("cx8")
CALL_NS = PROFILE.collective["call_ns"]


def sendrecv(size_mb: int, short: bool, patience: int = 3) -> Part:
    """Every NIC sends one message to the next and receives one; the run may take `patience` times the line's time."""
    size = MB if short else size_mb * MB
    length_ns = patience * size * 8 * SECOND_NS // (RING.planes * RING.links.host_rate_bps)
    length_s = length_ns / SECOND_NS / RING.pace
    options = {"size": size, "messages": 1, "depth": 1, "shift": 1, **PROFILE.message}

    def measure(run: Run) -> Measured:
        began_ns = run.phases["faults"].start_ns
        ends_ns = [int(line["t_ns"]) for line in run.kind("workload") if line["state"] == "stop"]
        # A call costs the host its time before the message is posted, when nothing else happens.
        network_ns = max(ends_ns) - began_ns if ends_ns else 0
        rates = {"rate": size * 8 / (network_ns + CALL_NS), "network": size * 8 / network_ns} if ends_ns else None
        return Measured(rates or {"rate": 0.0, "network": 0.0})

    return Part(
        name=f"mrc-{size_mb}",
        plan=RING,
        transport=MRC,
        workloads=[Workload("permutation", options, phase="faults")],
        phases=[Phase("warmup", 0.1), Phase("faults", length_s)],
        measure=measure,
        sample_s=max(length_s / 10, SAMPLE_S),
    )


def parts(short: bool) -> Sequence[Part]:
    return [*(sendrecv(size, short) for size in SIZES), single_path(sendrecv(SIZES[0], short, 12))]

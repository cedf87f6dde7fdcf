"""Figure 15: NCCL's sendrecv among 42K GPUs, here among 8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judging import SECOND_NS, Run
from paper import profile, readings
from paper.breaking import KNOBS, SINGLE_PATH, single_path
from paper.cluster import B
from paper.figure import Chart, Experiment, Failing, Figure, Measured, PaperCurve, Part
from paper.parameters import MRC
from scenarios import SAMPLE_S, Phase, Workload

SIZES = (32, 64, 128, 256)  # MB that are run here
MB = 1 << 20
RING = replace(B, hosts_per_leaf=4)
READ = readings.of("15")
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


FIGURE = Figure(
    name="15",
    title="sendrecv of neighbours",
    caption=(
        "Every NIC of a ring sends one message to the next and receives one; its size over the time until the last"
        " has it. The paper's ring has 42K GPUs, this one 8 NICs of cluster B. A call costs the host what the"
        f" device profile {PROFILE.name} says."
    ),
    parts=parts,
    quantities=tuple(
        READ.quantity(
            f"{size} MB",
            f"mrc-{size}:rate",
            "message size over the time until the last NIC has its own, and the host's call",
            calibrates=PROFILE.calibrates("15", f"{size} MB"),
            fails=Failing(f"{KNOBS[SINGLE_PATH]}, {SIZES[0]} MB", f"mrc-{SIZES[0]}-{SINGLE_PATH}:rate"),
        )
        for size in SIZES
    ),
    charts=(
        Chart(
            x="MB",
            y="Gb/s a NIC",
            ours={},
            points={"MRC": [(size, f"mrc-{size}:rate") for size in SIZES]},
            paper=[PaperCurve("MRC", [(int(name.split()[0]), read.value) for name, read in READ.items()])],
            logarithmic=True,
        ),
    ),
    experiments=tuple(Experiment("a call costs nothing", f"{size} MB", f"mrc-{size}:network") for size in SIZES),
    compression="Time is not compressed; sizes end at 256 MB, the paper's at 2 GB.",
)

"""Figure 15: NCCL's sendrecv among 42K GPUs; the network's part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judging.run import SECOND_NS, Run
from paper.cluster import JOB
from paper.figure import Chart, Figure, Measured, PaperCurve, Part, Quantity
from paper.parameters import MRC
from scenarios.scenario import SAMPLE_S, Phase, Workload

PAPER = {32: 676, 64: 695}
MB = 1 << 20
RING = replace(JOB, hosts_per_leaf=4)
REST = {128: 702, 256: 733, 512: 747, 1024: 750, 2048: 751}


def sendrecv(size_mb: int, short: bool) -> Part:
    """Every NIC sends one message to the next and receives one."""
    size = MB if short else size_mb * MB
    length_ns = 3 * size * 8 * SECOND_NS // (RING.planes * RING.links.host_rate_bps)
    length_s = length_ns / SECOND_NS / RING.pace

    def measure(run: Run) -> Measured:
        began_ns = run.phases["faults"].start_ns
        ends_ns = [int(line["t_ns"]) for line in run.kind("workload") if line["state"] == "stop"]
        return Measured({"rate": size * 8 / (max(ends_ns) - began_ns)})

    return Part(
        name=f"mrc-{size_mb}",
        plan=RING,
        transport=MRC,
        workloads=[Workload("permutation", {"size": size, "messages": 1, "depth": 1, "shift": 1}, phase="faults")],
        phases=[Phase("warmup", 0.1), Phase("faults", length_s)],
        measure=measure,
        sample_s=max(length_s / 10, SAMPLE_S),
    )


def parts(short: bool) -> Sequence[Part]:
    return [sendrecv(size, short) for size in PAPER]


FIGURE = Figure(
    name="15",
    title="sendrecv, the network's part",
    caption=(
        "Every NIC of a ring sends one message to the next and receives one; its size over the time until the last"
        " has it. The paper's ring has 42K GPUs, this one 8 NICs of 4 planes of 200 Gb/s."
    ),
    parts=parts,
    quantities=(
        *(
            Quantity(
                f"{size} MB",
                paper,
                "Gb/s",
                f"mrc-{size}:rate",
                "message size over the time until the last NIC has its own",
            )
            for size, paper in PAPER.items()
        ),
        Quantity(
            "rise from 32 MB to 2 GB",
            751 / 676,
            "",
            None,
            "",
            why=(
                "The paper's curve still rises beyond 64 MB, by 8 %. A message of 32 MB takes 25 round trips of the"
                " network, so the network's own share of that rise is 2 to 4 %; the rest (some 35 µs a message) is"
                " software, which is not modelled."
            ),
        ),
    ),
    charts=(
        Chart(
            x="MB",
            y="Gb/s a NIC",
            ours={},
            points={"MRC": [(size, f"mrc-{size}:rate") for size in PAPER]},
            paper=[PaperCurve("MRC", list((PAPER | REST).items()))],
            logarithmic=True,
        ),
    ),
    compression="Time is not compressed; sizes end at 64 MB.",
)

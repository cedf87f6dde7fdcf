"""Figures 16 and 17 alike: a collective of 64 NICs while every NIC loses packets at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from judging.run import Run
from paper.cluster import C
from paper.figure import Chart, Measured, PaperCurve, Part, Quantity
from paper.parameters import MRC, PFC_DCQCN, PFC_DCQCN_16QP
from paper.whys import GO_BACK, REPAIR
from running.transport_choice import TransportChoice
from scenarios.scenario import Phase, TimedFault, Workload
from topo.plan import Plan

MB = 1 << 20
LOSSES = (0.0, 0.1, 1.0)  # percent
TRANSPORTS: Mapping[str, TransportChoice] = {"MRC": MRC, "RoCE 1 QP": PFC_DCQCN, "RoCE 16 QP": PFC_DCQCN_16QP}
"""As the paper's table 1 has cluster C. Its RoCE is lossless by PFC, but for the losses that the figures add."""
SAMPLES = 1
"""Of the hosts' counters in a whole run: the figures look at the collective's own times only, and to write and read the
counters of 64,512 queue pairs took half of a run's time."""
SLACK = 6.0
"""A run may take so many times as long as the paper's rate says before it is broken off, and counts as unfinished."""
SHORT = replace(C, leaves=2, spines=2, hosts_per_leaf=2)
SHORT_BYTES = 1 << 16
SEGMENT = 32_768  # bytes of a collective's writes
LEAST_GBPS = 0.5
"""What the paper's axis shows as 0 stands for less than this."""

Table = Mapping[tuple[str, float], Mapping[int, float]]
"""The paper's Gb/s by size in MB, for each transport and loss in percent."""


def table(sizes: Sequence[int], columns: Mapping[tuple[str, float], Sequence[float]]) -> Table:
    """A column of the paper's figure for each transport and loss."""
    return {key: dict(zip(sizes, column, strict=True)) for key, column in columns.items()}


def part_name(transport: str, loss: float, size_mb: int) -> str:
    """The name of a run, as in "mrc-0.1-8"."""
    return f"{transport.lower().replace(' ', '-')}-{loss:g}-{size_mb}"


def busbw_gbps(run: Run, factor: float) -> float:
    """nccl-tests' bus bandwidth of the last round: size over the time until the last rank has everything, times the
    collective's factor.

    0 when a rank did not finish.
    """
    steps = [line for line in run.kind("step") if line["verified"]]
    last = max((int(line["step"]) for line in steps), default=0)
    if len(steps) < int(run.options["hosts"]) * (last + 1):
        return 0.0
    earlier = [int(line["t_ns"]) for line in steps if int(line["step"]) < last]
    began_ns = max(earlier, default=run.phases["faults"].start_ns)
    length_ns = max(int(line["t_ns"]) for line in steps) - began_ns
    return int(steps[0]["bytes"]) * 8 * factor / length_ns


def measure(factor: float, run: Run) -> Measured:
    return Measured({"busbw": busbw_gbps(run, factor)})


def lossy(plan: Plan, percent: float) -> list[TimedFault]:
    """Every NIC port loses this share of what it sends, so that a packet can be lost once on its way."""
    if not percent:
        return []
    return [
        TimedFault(
            0.0, "loss", f"{host}>p{plane}l{plan.leaf_of(host)}", value=percent, seed=1 + host.index, phase="warmup"
        )
        for host in plan.hosts()
        for plane in range(plan.planes)
    ]


def part(
    kind: str,
    factor: float,
    transport: str,
    loss: float,
    size_mb: int,
    paper_gbps: float,
    short: bool = False,
    *,
    knob: str = "",
    rounds: int = 1,
    settings: Mapping[str, Any] = MappingProxyType({}),
    other: TransportChoice | None = None,
) -> Part:
    """One collective of this size, once; it begins with idle lines and with every queue pair new.

    The short form has four hosts and little data under the same name. Experiments have the name of their `knob` behind
    the name of the run, and other `rounds`, of which the last is measured, other `settings` of the transport, or an
    `other` transport.
    """
    usual = TRANSPORTS[transport] if other is None else other
    choice = replace(usual, name=usual.name + knob, settings={**usual.settings, **settings}) if settings else usual
    plan, size = (SHORT, SHORT_BYTES) if short else (C, size_mb * MB)
    expected_s = size_mb * MB * 8 * factor / (max(paper_gbps, LEAST_GBPS) * 1e9)
    length_s = rounds * SLACK * expected_s / plan.pace
    options = {"size": size, "rounds": rounds, "qps": choice.queue_pairs, "segment": SEGMENT}
    return Part(
        name=part_name(transport, loss, size_mb) + knob,
        plan=plan,
        transport=choice,
        workloads=[Workload(kind, options, phase="faults")],
        phases=[Phase("warmup", 0.1), Phase("faults", length_s)],
        faults=lossy(plan, loss),
        measure=partial(measure, factor),
        sample_s=length_s / SAMPLES,
    )


def parts(kind: str, factor: float, paper: Table, sizes: Sequence[int], short: bool) -> list[Part]:
    """All runs of a figure, the smallest first, also of sizes for which the paper has no number."""
    return [
        part(kind, factor, transport, loss, size, column[max(known for known in column if known <= size)], short)
        for size in sizes
        for (transport, loss), column in paper.items()
    ]


def quantities(paper: Table, sizes: Sequence[int], lossless: str) -> list[Quantity]:
    """A quantity a run of which the paper has a number. `lossless` says why runs without loss differ; why others do is
    the same for all collectives."""
    return [
        Quantity(
            f"{transport}, {loss:g} % loss, {size} MB",
            column[size],
            "Gb/s",
            f"{part_name(transport, loss, size)}:busbw",
            "nccl-tests' bus bandwidth of one collective, until the last of 64 ranks has everything",
            scale=max(column[size], 1.0),
            why=lossless if not loss else REPAIR if transport == "MRC" else GO_BACK,
        )
        for (transport, loss), column in paper.items()
        for size in sizes
        if size in column
    ]


def charts(paper: Table, sizes: Sequence[int]) -> list[Chart]:
    """A chart for each loss."""
    return [
        Chart(
            x="MB",
            y="bus bandwidth, Gb/s",
            ours={},
            points={
                transport: [(size, f"{part_name(transport, own, size)}:busbw") for size in sizes]
                for transport, own in paper
                if own == loss
            },
            paper=[
                PaperCurve(transport, [(size, max(gbps, LEAST_GBPS)) for size, gbps in column.items()])
                for (transport, own), column in paper.items()
                if own == loss
            ],
            title=f"{loss:g} % loss on every NIC",
            logarithmic=True,
        )
        for loss in LOSSES
    ]

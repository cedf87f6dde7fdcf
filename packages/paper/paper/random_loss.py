"""Figures 16 and 17 alike: a collective of 64 NICs while every NIC loses packets at random."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from judging import Run
from paper import profile, readings
from paper.cluster import C
from paper.figure import Chart, Failing, Measured, Order, PaperCurve, Part, Quantity
from paper.parameters import MRC, REAL_TIME, REAL_TIME_16QP, for_roce
from running.transport_choice import TransportChoice
from scenarios import Load, Phase, TimedFault, Workload
from topo import Plan

MB = 1 << 20
RANKS = 64
SIZES = {0.0: (2, 4, 8, 16, 32, 64), 0.1: (2, 4, 8, 16, 32), 1.0: (2, 4, 8, 16, 32)}  # MB, by loss in percent
LOSSES = tuple(SIZES)
TRANSPORTS: Mapping[str, TransportChoice] = {"MRC": MRC, "RoCE 1 QP": REAL_TIME, "RoCE 16 QP": REAL_TIME_16QP}
"""As the paper's table 1 has cluster C. Its RoCE is lossless by PFC, but for the losses that the figures add."""
SAMPLES = 1
"""Of the hosts' counters in a whole run: the figures look at the collective's own times only, and to write and read the
counters of 64,512 queue pairs took half of a run's time."""
SLACK = 6.0
"""A run may take so many times as long as the paper's rate says before it is broken off, and counts as unfinished."""
ROUNDS_MB = 8
"""A run with losses has rounds of so much data in all, and one round of what is larger."""
SHORT = replace(C, leaves=2, spines=2, hosts_per_leaf=2)
SHORT_BYTES = 1 << 16
SEGMENT = 32_768  # bytes of a collective's writes without a device profile
PROFILE = profile.load("pollara")
SEEDS = range(2, 21)  # other places in the hash, and other losses
FEW_PAIRS = 2
LEAST_GBPS = 0.5
"""A point at 0 of the paper's axis stands for less than this."""

Table = Mapping[tuple[str, float], Mapping[int, float]]
"""The paper's Gb/s by size in MB, for each transport and loss in percent."""


def table(figure: str) -> Table:
    """The curves of the paper's figure, for each transport and loss."""
    return {
        (transport, loss): readings.curve(figure, f"{transport}, {loss:g} % loss")
        for loss in LOSSES
        for transport in TRANSPORTS
    }


def part_name(transport: str, loss: float, size_mb: int) -> str:
    """The name of a run, as in "mrc-0.1-8"."""
    return f"{transport.lower().replace(' ', '-')}-{loss:g}-{size_mb}"


def quantity_name(transport: str, loss: float, size_mb: int) -> str:
    """The name of a quantity, as in "MRC, 0.1 % loss, 8 MB"."""
    return f"{transport}, {loss:g} % loss, {size_mb} MB"


def busbw_gbps(run: Run, factor: float) -> float:
    """nccl-tests' bus bandwidth: size over the mean time of a round, until the last rank has everything, times the
    collective's factor.

    0 when a rank did not finish a round that others have begun.
    """
    steps = [line for line in run.kind("step") if line["verified"]]
    rounds = 1 + max((int(line["step"]) for line in steps), default=0)
    if len(steps) < int(run.options["hosts"]) * rounds:
        return 0.0
    length_ns = max(int(line["t_ns"]) for line in steps) - run.phases["faults"].start_ns
    return int(steps[0]["bytes"]) * 8 * factor * rounds / length_ns


def measure(factor: float, run: Run) -> Measured:
    return Measured({"busbw": busbw_gbps(run, factor)})


def lossy(plan: Plan, percent: float, seed: int) -> list[TimedFault]:
    """Every NIC port loses this share of what arrives at it, as the paper's program on every NIC does."""
    if not percent:
        return []
    first = 1 + (seed - 1) * plan.host_count
    return [
        TimedFault(
            0.0, "loss", f"p{plane}l{plan.leaf_of(host)}>{host}", value=percent, seed=first + host.index, phase="warmup"
        )
        for host in plan.hosts()
        for plane in range(plan.planes)
    ]


def ranks(plan: Plan, *, by_rail: bool) -> tuple[str, ...]:
    """The names of all hosts in the order of their ranks.

    The clusters have nodes of as many GPUs as a leaf has hosts. By rail, as such nodes are cabled, GPU i of every node
    is under leaf i, and ranks count through the GPUs of a node first, so that each hop of a ring crosses a spine.
    Otherwise neighbouring ranks are under the same leaf.
    """
    names, under = [str(host) for host in plan.hosts()], plan.hosts_per_leaf
    return tuple(name for node in range(under) for name in names[node::under]) if by_rail else tuple(names)


@dataclass(frozen=True, slots=True)
class LossyCollective:
    """A figure of a collective: the figure's name, the workload, and nccl-tests' bus bandwidth over size a time."""

    figure: str
    kind: str
    factor: float

    @property
    def paper(self) -> Table:
        """The paper's points."""
        return table(self.figure)

    def part(
        self,
        transport: str,
        loss: float,
        size_mb: int,
        short: bool = False,
        *,
        knob: str = "",
        settings: Mapping[str, Any] = MappingProxyType({}),
        by_rail: bool = True,
        profiled: bool = True,
        cluster: Plan = C,
        seed: int = 1,
    ) -> Part:
        """One collective of this size; it begins with idle lines and with every queue pair new.

        With losses small ones go through several rounds, as chance decides each. The short form has four hosts and
        little data under the same name. Experiments have the name of their `knob` behind the name of the run, and other
        `settings` of the transport, neighbouring ranks under one leaf, no device profile, or another `cluster`.
        """
        usual = TRANSPORTS[transport]
        if profiled:
            usual = PROFILE.transport(usual)
        choice = replace(usual, name=usual.name + knob, settings={**usual.settings, **settings})
        plan, size = (SHORT, SHORT_BYTES) if short else (cluster, size_mb * MB)
        plan = for_roce(plan) if choice.agent == "roce" else plan
        column = self.paper[transport, loss]
        paper_gbps = column.get(size_mb) or column[max(known for known in column if known < size_mb)]
        expected_s = size_mb * MB * 8 * self.factor / (max(paper_gbps, LEAST_GBPS) * 1e9)
        rounds = max(1, ROUNDS_MB // size_mb) if loss else 1
        length_s = rounds * SLACK * expected_s / plan.pace
        host = PROFILE.host(transport) if profiled else {"segment": SEGMENT}
        pairs = choice.queue_pairs
        if profiled and (pairs := self.queue_pairs(transport)) < choice.queue_pairs:
            host = {**host, "split": False}
        options = {"size": size, "rounds": rounds, "qps": pairs, **host}
        return Part(
            name=part_name(transport, loss, size_mb) + knob + ("" if seed == 1 else f"-seed-{seed}"),
            plan=plan,
            transport=choice,
            workloads=[Workload(self.kind, options, ranks=ranks(plan, by_rail=by_rail), phase="faults")],
            phases=[Phase("warmup", 0.1), Phase("faults", length_s)],
            faults=lossy(plan, loss, seed),
            measure=partial(measure, self.factor),
            sample_s=length_s / SAMPLES,
            seed=seed,
            again=seed != 1,
            load=Load(rounds * expected_s / plan.pace, round(rounds * size * self.factor * plan.host_count)),
        )

    def queue_pairs(self, transport: str) -> int:
        """Of each pair of ranks. An all-to-all on sixteen, 64,512 in all, takes seven times as long to run: there RoCE
        has as many as a chunk has slices, one for each."""
        pairs = TRANSPORTS[transport].queue_pairs
        slices = int(PROFILE.collective["slices"])
        return min(pairs, slices) if self.kind == "all_to_all" else pairs

    def parts(self, short: bool) -> list[Part]:
        """The runs, the smallest first, those with other seeds, and the smallest without a device profile."""
        wanted = sorted((size, loss) for loss, sizes in SIZES.items() for size in sizes)
        once = [self.part(transport, loss, size, short) for size, loss in wanted for transport in TRANSPORTS]
        again = [
            self.part(transport, loss, size, short, seed=seed)
            for size, loss in wanted
            for transport in TRANSPORTS
            for seed in self.seeds(transport, loss, size)
        ]
        bare = [
            self.part(transport, loss, SIZES[loss][0], short, knob="-bare", profiled=False)
            for transport in list(TRANSPORTS)[:2]
            for loss in LOSSES
        ]
        return once + again + bare

    def seeds(self, transport: str, loss: float, size_mb: int) -> Sequence[int]:
        """The other seeds of a run that hangs on the hash: RoCE on few queue pairs. A row from which the profile was
        set keeps the run that it was set to."""
        if TRANSPORTS[transport].agent == "mrc" or self.queue_pairs(transport) > FEW_PAIRS:
            return ()
        return () if PROFILE.calibrates(self.figure, quantity_name(transport, loss, size_mb)) else SEEDS

    def quantities(self, reasons: Mapping[str, str]) -> list[Quantity]:
        """A quantity per run, or per run and seeds. One without loss must fail if a thousandth is lost, or else if
        neighbouring ranks are under one leaf; one with losses must fail if nothing is lost. `reasons` are by what
        quantities' names begin with, as in "MRC, 0.1 % loss"."""
        return [
            self.quantity(name, transport, loss, size, reasons.get(name.rpartition(", ")[0], ""))
            for loss, sizes in SIZES.items()
            for transport in TRANSPORTS
            for size in sizes
            if (name := quantity_name(transport, loss, size)) in readings.of(self.figure)
        ]

    def quantity(self, name: str, transport: str, loss: float, size: int, why: str) -> Quantity:
        """The quantity of one run, or of all runs of its seeds."""
        part, seeds = part_name(transport, loss, size), self.seeds(transport, loss, size)
        how = "nccl-tests' bus bandwidth of one collective, until the last of 64 ranks has everything"
        return readings.of(self.figure).quantity(
            name,
            f"{part}:busbw",
            f"{how}; median of {1 + len(seeds)} seeds" if seeds else how,
            seeds=(f"{part}:busbw", *(f"{part}-seed-{seed}:busbw" for seed in seeds)) if seeds else (),
            calibrates=PROFILE.calibrates(self.figure, name),
            fails=self.failing(transport, loss, size),
            why=why,
        )

    def failing(self, transport: str, loss: float, size: int) -> Failing:
        """The run with another loss, of the same size or of the largest that there is."""
        other = 0.0 if loss else LOSSES[1]
        same = min(size, max(SIZES[other]))
        knob = f"{other:g} % loss" if same == size else f"{other:g} % loss, {same} MB"
        return Failing(knob, f"{part_name(transport, other, same)}:busbw")

    def orders(self) -> list[Order]:
        """MRC against RoCE, on one and on sixteen queue pairs, at every loss and size."""
        known = readings.of(self.figure)
        pairs = [
            (quantity_name("MRC", loss, size), quantity_name(roce, loss, size))
            for loss, sizes in SIZES.items()
            for roce in list(TRANSPORTS)[1:]
            for size in sizes
        ]
        return [Order(*pair) for pair in pairs if all(name in known for name in pair)]

    def charts(self) -> list[Chart]:
        """A chart for each loss."""
        return [
            Chart(
                x="MB",
                y="bus bandwidth, Gb/s",
                ours={},
                points={
                    transport: [(size, f"{part_name(transport, loss, size)}:busbw") for size in SIZES[loss]]
                    for transport in TRANSPORTS
                },
                paper=[PaperCurve(transport, list(self.paper[transport, loss].items())) for transport in TRANSPORTS],
                title=f"{loss:g} % loss on every NIC",
                logarithmic=True,
            )
            for loss in LOSSES
        ]

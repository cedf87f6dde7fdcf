"""The runs of the comparison, each made and measured in this process: latency, collisions, a lost switch per tier."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judging.run import Run
from paper import measuring, profile
from paper.clock import SHOWN, Clock
from paper.figure import Measured, Part
from paper.parameters import MRC, mrc
from paper.shape.fabrics import FABRICS, ComparedFabric
from paper.streams import one_at_a_time
from running.choices import Choices
from running.spec import RunSpec
from running.transport_choice import TransportChoice
from scenarios.places import shift_to_other_leaf
from scenarios.scenario import Phase, Workload
from studies.sweeping.perform import made

SINGLE_PATH = mrc({"selection": "single_path"})
SEEDS, SEEDS_SHORT = 5, 2
LENGTH, LENGTH_SHORT = 60.0, 20.0  # round trips
WRITES = 20
WRITE_BYTES, DEPTH = 262_144, 8
LOST_AT, SETTLED = 0.3, 0.6  # of the length: when a switch is lost, and from when on the loss is over
AFFECTED, CUT_OFF = 0.95, 0.02  # a host that sends less than this share of its rate before


@dataclass(frozen=True, slots=True)
class Lost:
    """After a switch of a tier was lost: the share of all goodput that is kept, hosts that lose some, and all."""

    tier: str
    kept: float
    affected: int
    cut_off: int


@dataclass(frozen=True, slots=True)
class Found:
    """All that is measured of a fabric. Latencies in µs; rates as shares."""

    fabric: ComparedFabric
    latency_us: dict[str, float]
    sprayed: float  # of the line rate, of all hosts together
    single: Sequence[float]  # of the rate of its path, each flow of each seed
    lost: Sequence[Lost]


Tell = Callable[[str], None]


def compare(short: bool, scratch: Path, tell: Tell) -> list[Found]:
    """Both fabrics, run by run; `scratch` is a folder for journals, which are not kept."""
    return [found(fabric, short, scratch, tell) for fabric in FABRICS]


def found(fabric: ComparedFabric, short: bool, scratch: Path, tell: Tell) -> Found:
    """One fabric."""

    def measured(part: Part) -> Measured:
        tell(f"{fabric.name}: {part.name}")
        return perform(part, scratch)

    seeds = range(1, 1 + (SEEDS_SHORT if short else SEEDS))
    latency_us = {way: measured(latency(fabric, way)).numbers["half"] for way in fabric.peers}
    whole = measured(permutation(fabric, "all paths", MRC, short, 1))
    single = [measured(permutation(fabric, f"single paths, seed {seed}", SINGLE_PATH, short, seed)) for seed in seeds]
    port_share = 1 / fabric.plan.planes  # a single path is in one plane
    flows = [value / port_share for one in single for name, value in one.numbers.items() if name != "all"]
    lost = [
        lost_of(tier, whole, measured(permutation(fabric, f"{tier} lost", MRC, short, 1, tier))) for tier in fabric.lost
    ]
    return Found(fabric, latency_us, whole.numbers["all"], flows, lost)


def perform(part: Part, scratch: Path) -> Measured:
    """One run in virtual time, measured."""
    spec = RunSpec(
        part.scenario("shape"),
        Choices(replace(part.transport, payload="counted"), part.plan, part.seed, world="simulated"),
    )
    with tempfile.TemporaryDirectory(prefix="shape-", dir=scratch) as folder:
        return part.measure(Run.open(made(spec, Path(folder))))


def latency(fabric: ComparedFabric, way: str) -> Part:
    """2-byte writes from one idle host to another, one at a time."""
    clock = Clock.round_trips(fabric.plan)
    return Part(
        name=f"latency, {way}",
        plan=fabric.plan,
        transport=MRC,
        workloads=[one_at_a_time("h0", fabric.peers[way], WRITES, SHOWN, profile.load("cx8").message)],
        phases=[Phase(SHOWN, clock.lab_s(4 * WRITES))],
        measure=lambda run: Measured({"half": measuring.half_completion_us(run, "main")}),
    )


def permutation(
    fabric: ComparedFabric, name: str, transport: TransportChoice, short: bool, seed: int, tier: str | None = None
) -> Part:
    """Every host writes to the one half the fabric away; with `tier`, a switch of it is lost on the way."""
    plan = fabric.plan
    clock, length = Clock.round_trips(plan, short=short), LENGTH_SHORT if short else LENGTH
    shift = max(shift_to_other_leaf(plan), plan.host_count // 2)
    hosts = [host.name for host in plan.hosts()]
    line_gbps = plan.planes * plan.links.host_rate_bps / 1e9

    def measure(run: Run) -> Measured:
        begin = 0.0 if tier is None else SETTLED * length
        numbers = {host: measuring.rate(run, clock, begin, length, [host]) / line_gbps for host in hosts}
        return Measured({**numbers, "all": sum(numbers.values()) / len(hosts)})

    faults = [] if tier is None else [clock.fault(LOST_AT * length, "switch-stop", fabric.lost[tier])]
    options = {"size": WRITE_BYTES, "depth": DEPTH, "qps": 1, "messages": 0, "shift": shift}
    return Part(
        name, plan, transport, [Workload("permutation", options)], clock.phases(length), measure, faults, seed=seed
    )


def lost_of(tier: str, before: Measured, after: Measured) -> Lost:
    """A tier's loss from the same permutation without it and with it."""
    hosts = [name for name in before.numbers if name != "all"]
    shares = [after.numbers[host] / before.numbers[host] for host in hosts]
    return Lost(
        tier,
        after.numbers["all"] / before.numbers["all"],
        sum(share < AFFECTED for share in shares),
        sum(share < CUT_OFF for share in shares),
    )


def steps(short: bool) -> Iterator[str]:
    """The names of all runs, for a reader who waits."""
    for fabric in FABRICS:
        yield from (f"latency, {way}" for way in fabric.peers)
        yield "all paths"
        yield from (f"single paths, seed {seed}" for seed in range(1, 1 + (SEEDS_SHORT if short else SEEDS)))
        yield from (f"{tier} lost" for tier in fabric.lost)

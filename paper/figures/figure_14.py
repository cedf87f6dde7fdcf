"""Figure 14: a flow leaves a path by ECN alone when another flow is confined to it."""

from __future__ import annotations

from collections.abc import Sequence

from judging.run import Run
from paper import measuring
from paper.clock import Clock
from paper.cluster import B_ONE_PLANE
from paper.figure import Chart, Experiment, Figure, Measured, PaperCurve, Part, Quantity
from paper.parameters import MRC
from paper.streams import stream
from paper.whys import REST
from running.transport_choice import TransportChoice, transport

FACTOR = 5_000
BEFORE_S, END_S = 5.0, 20.0
SHOWN_FROM_S = 60.0  # the paper's axis at our beginning: flow 2 is pinned at 65 s
RESTS = (4, 16, 64, 256)  # packets of a queue pair that a mark keeps an EV out, in experiments
EV_A, EV_B = 0x0000_C000, 0x0000_C001


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.compressed(B_ONE_PLANE, FACTOR * (4 if short else 1))

    def measure(run: Run) -> Measured:
        late = BEFORE_S + 4.0
        on_a, on_b = (measuring.path_rate(run, clock, "h0", ev, late, END_S) for ev in (EV_A, EV_B))
        before = measuring.rate(run, clock, 0, BEFORE_S)
        after = measuring.rate(run, clock, late, END_S)
        points = measuring.path_curve(run, clock, "h0", EV_A, 0, END_S, 2 * clock.sample, 0.0)
        usual = measuring.path_rate(run, clock, "h0", EV_A, 0, BEFORE_S)
        moved = [place for place, value in points if place > BEFORE_S and value < usual / 2]
        numbers = {
            "share on B": on_b / (on_a + on_b),
            "kept": after / before,
            "moved after": (moved[0] - BEFORE_S) * clock.unit_ns / 1e9 if moved else END_S,
        }
        curves = {
            name: measuring.path_curve(run, clock, "h0", ev, 0, END_S, 2 * clock.sample, SHOWN_FROM_S)
            for name, ev in (("A", EV_A), ("B", EV_B))
        }
        return Measured(numbers, curves)

    def run(name: str, transport: TransportChoice) -> Part:
        return Part(
            name=name,
            plan=B_ONE_PLANE,
            transport=transport,
            workloads=[stream("h0", "h2", name="flow1"), stream("h4", "h3", name="flow2")],
            phases=clock.phases(END_S),
            # Flow 2 loses its other path, and nobody tells flow 1.
            faults=[clock.fault(BEFORE_S, "link-down", "p0l2-p0s1")],
            measure=measure,
            sample_paths=True,
        )

    resting = [run(f"rest-{packets}", transport("mrc", {"ev_rest_packets": packets})) for packets in RESTS]
    return [run("mrc", MRC), *resting]


FIGURE = Figure(
    name="14",
    title="A flow moves away from a busy path by ECN",
    caption=(
        "One plane of cluster B with two spines, so two EVs. Flow 1 and flow 2 come from different leaves to two"
        " hosts under one leaf. At 65 s flow 2 loses its path over the second spine and is confined to EV-A, which"
        " it fills. Only ECN marks tell flow 1 to use EV-B."
    ),
    parts=parts,
    quantities=(
        Quantity(
            "flow 1's share on EV-B",
            1,
            "of its packets",
            "mrc:share on B",
            "from 4 s after the pinning to the end",
            why=REST,
        ),
        Quantity(
            "both flows' rate kept", 1, "of before", "mrc:kept", "payload of both flows, after over before", why=REST
        ),
        Quantity(
            "flow 1 moves after",
            4,
            "s",
            "mrc:moved after",
            "until a sample has less than half of the usual load on EV-A; to the end if none has",
            why=REST,
        ),
    ),
    charts=(
        Chart(
            x="seconds of the paper",
            y="flow 1 on the path, Gb/s",
            ours={"mrc:A": "EV-A", "mrc:B": "EV-B"},
            paper=[
                PaperCurve("EV-A", [(61, 48), (64, 48), (71, 0), (76, 0), (79, 0)]),
                PaperCurve("EV-B", [(61, 48), (64, 48), (71, 96), (76, 96), (79, 96)]),
            ],
        ),
    ),
    experiments=tuple(
        Experiment(f"a marked EV rests for {packets} packets of its queue pair", quantity, f"rest-{packets}:{number}")
        for packets in RESTS
        for quantity, number in (
            ("flow 1's share on EV-B", "share on B"),
            ("both flows' rate kept", "kept"),
            *((("flow 1 moves after", "moved after"),) if packets == RESTS[-1] else ()),
        )
    ),
    compression=(
        f"The paper's seconds are shortened {FACTOR:,} times; time before is cut away. The paper's points are its"
        " statement"
        " (flow 1 moves to EV-B, no loss of performance), drawn at half and all of the line."
    ),
)

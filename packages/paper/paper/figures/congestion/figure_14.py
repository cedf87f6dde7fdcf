"""Figure 14: a flow leaves a path by ECN alone when another flow is confined to it."""

from collections.abc import Sequence
from dataclasses import replace

from judging import Run
from paper import measuring
from paper.breaking import IN_FRAMES, host_in_frames
from paper.clock import Clock
from paper.cluster import B_ONE_PLANE
from paper.figure import Measured, Part
from paper.parameters import mrc
from paper.streams import stream
from running.transport_choice import TransportChoice
from scenarios import Phase
from topo import Plan

FACTOR = 5_000
BEFORE_S, END_S = 5.0, 20.0
SHOWN_FROM_S = 64.0  # the paper's axis at our beginning: flow 2 begins at 69 s
SECOND = "second"  # the phase in which flow 2 begins
EV_A, EV_B = 0x0000_C000, 0x0000_C001
SEED = 1
"""With which flow 1 begins on EV-A."""
PATHS = {"evs_active": 1, "evs_backup": 1}
SKIPS = {"passed over once": 0, "rested for 16 packets": 16, "rested for 256 packets": 256}


def parts(short: bool) -> Sequence[Part]:
    skipping = [
        two_flows(short, f"rest-{packets}", mrc({**PATHS, "congested_ev": "skip", "ev_rest_packets": packets}))
        for packets in SKIPS.values()
    ]
    return [
        two_flows(short, "mrc", mrc(PATHS)),
        *skipping,
        two_flows(short, "oblivious", mrc({**PATHS, "selection": "oblivious"})),
        two_flows(short, f"mrc-{IN_FRAMES}", mrc(PATHS), host_in_frames(B_ONE_PLANE)),
    ]


def two_flows(short: bool, name: str, transport: TransportChoice, plan: Plan = B_ONE_PLANE) -> Part:
    """Flow 1 alone, and then with flow 2 on its path."""
    clock = Clock.compressed(plan, FACTOR * (4 if short else 1))
    lead, shown = clock.phases(BEFORE_S)

    def measure(run: Run) -> Measured:
        late = BEFORE_S + 4.0
        on_a, on_b = (measuring.path_rate(run, clock, "h0", ev, late, END_S) for ev in (EV_A, EV_B))
        usual, idle = (measuring.path_rate(run, clock, "h0", ev, 0, BEFORE_S) for ev in (EV_A, EV_B))
        points = measuring.path_curve(run, clock, "h0", EV_A, END_S, 0.0)
        moved = [place for place, value in points if place > BEFORE_S and value < usual / 2]
        numbers = {
            "share on B before": idle / (usual + idle),
            "share on B": on_b / (on_a + on_b),
            "kept": measuring.rate(run, clock, late, END_S) / (2 * measuring.rate(run, clock, 0, BEFORE_S)),
            "moved after": (moved[0] - BEFORE_S) * clock.unit_ns / 1e9 if moved else END_S,
        }
        curves = {
            name: measuring.path_curve(run, clock, "h0", ev, END_S, SHOWN_FROM_S)
            for name, ev in (("A", EV_A), ("B", EV_B))
        }
        return Measured(numbers, curves)

    second = replace(stream("h4", "h3", name="flow2", qps=1), phase=SECOND)
    return Part(
        name=name,
        plan=plan,
        transport=transport,
        workloads=[stream("h0", "h2", name="flow1", qps=1), second],
        phases=[lead, shown, Phase(SECOND, clock.lab_s(END_S - BEFORE_S))],
        # Flow 2 has no other path than EV-A's, and nobody tells flow 1.
        faults=[clock.fault(0.0, "link-down", "p0l2-p0s1")],
        measure=measure,
        sample_paths=True,
        seed=SEED,
    )

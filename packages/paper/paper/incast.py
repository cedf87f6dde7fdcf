"""An incast of seven beside a victim flow, on cluster D: the run of figures 18 and 21, for any transport.

The paper says that both receivers are in one rack. The eight senders are in the other three, so that every flow
crosses a spine, and no two of them share a NIC.
"""

from judging import Run
from paper import measuring
from paper.clock import Clock
from paper.cluster import D
from paper.figure import Measured, Part
from paper.parameters import for_roce
from paper.streams import DEPTH, SIZE, stream
from running.transport_choice import TransportChoice
from scenarios import Workload
from topo import Plan

RECEIVER, VICTIM_RECEIVER = "h0", "h1"
SENDERS = ("h4", "h8", "h12", "h5", "h9", "h13", "h6")  # from the three racks in turn
VICTIM_SENDER = "h10"
SHORT_SECOND = 1  # round trips to a second of the paper, in a short form
LENGTH_S = 30


def seven_to_one(
    name: str, transport: TransportChoice, qps: int, second: int, seed: int = 1, *, cluster: Plan = D
) -> Part:
    """Numbers: the victim's mean and lowest sample, the mean of each incast flow, least and most of them.

    `second` round trips stand for a second of the paper, which is a sample of its figures.
    """
    clock = Clock.round_trips(cluster, second, second == SHORT_SECOND)
    options = {"size": SIZE, "depth": DEPTH, "qps": qps, "messages": 0}

    def measure(run: Run) -> Measured:
        victim = measuring.curve(run, clock, 0, LENGTH_S, 1, [VICTIM_SENDER])
        flows = sorted(measuring.rate(run, clock, 0, LENGTH_S, [sender]) for sender in SENDERS)
        numbers = {
            "victim": measuring.rate(run, clock, 0, LENGTH_S, [VICTIM_SENDER]),
            "victim lowest": measuring.lowest(victim, 0, LENGTH_S),
            "flow mean": measuring.mean(flows),
            "flow least": flows[0],
            "flow most": flows[-1],
        }
        curves = {sender: measuring.curve(run, clock, 0, LENGTH_S, 1, [sender]) for sender in SENDERS}
        return Measured(numbers, {**curves, "victim": victim})

    return Part(
        name=name,
        plan=for_roce(cluster) if transport.agent == "roce" else cluster,
        transport=transport,
        workloads=[
            stream(VICTIM_SENDER, VICTIM_RECEIVER, qps=qps, name="victim"),
            Workload("incast", options, ranks=(RECEIVER, *SENDERS), name="incast"),
        ],
        phases=clock.phases(LENGTH_S),
        measure=measure,
        seed=seed,
    )

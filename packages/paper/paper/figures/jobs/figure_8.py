"""Figure 8: a T1 switch stops forwarding under a job, and is rebooted twelve minutes later."""

from __future__ import annotations

from collections.abc import Sequence

from judging import SECOND_NS, Run
from paper import measuring, production
from paper.breaking import setting
from paper.clock import Clock
from paper.cluster import PRODUCTION
from paper.figure import Measured, Part
from paper.job import failed_qps
from paper.parameters import MRC

UNIT, SHORT_UNIT = 10, 5  # round trips
STOPPED, BACK, END = 2.0, 10.0, 12.0
T1 = "p1s77"
PAPER_SAMPLE_S = 60.0
MRC_EVS = 128  # in rotation


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.round_trips(PRODUCTION, SHORT_UNIT if short else UNIT)

    def measure(run: Run) -> Measured:
        stopped_ns, back_ns = clock.run_ns(run, STOPPED), clock.run_ns(run, BACK)
        peers = production.queue_pairs(run)
        crossing = {key for key, peer in peers.items() if production.across(key[0], peer)}
        hit = production.hit(run, stopped_ns, back_ns) & crossing
        lost = production.lost_packets(run, stopped_ns - PRODUCTION.base_rtt_ns, back_ns)
        lengths = production.rounds(run, clock)
        usual = measuring.median(length for end, length in lengths if 0 <= end < STOPPED)
        failure_s = production.longer_s(clock, lengths, usual, STOPPED, STOPPED + 2)
        return_s = production.longer_s(clock, lengths, usual, BACK, END)
        numbers = {
            "share hit": len(hit) / len(crossing),
            "lost a queue pair hit": lost / max(1, len(hit)),
            "sample at the failure": 1 - failure_s / PAPER_SAMPLE_S,
            "sample at the return": 1 - return_s / PAPER_SAMPLE_S,
            "round trips longer": failure_s * SECOND_NS / PRODUCTION.base_rtt_ns,
            "failed": failed_qps(run),
            "hit late": len(production.hit(run, (stopped_ns + back_ns) // 2, back_ns) & crossing),
        }
        shown = [(end, usual / length) for end, length in lengths if end >= 0]
        return Measured(numbers, {"rate": shown})

    run = Part(
        name="mrc",
        plan=PRODUCTION,
        transport=MRC,
        workloads=[production.all_to_all()],
        phases=production.phases(clock, END),
        faults=[clock.fault(STOPPED, "switch-crash", T1, until=BACK)],
        measure=measure,
    )
    return [run, setting(run, "half", {"evs_active": MRC_EVS // 2})]

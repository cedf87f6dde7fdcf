"""Figure 8: a T1 switch stops forwarding under a job, and is rebooted twelve minutes later."""

from __future__ import annotations

from collections.abc import Sequence

from judging import SECOND_NS, Run
from paper import measuring, production, readings
from paper.breaking import setting
from paper.clock import Clock
from paper.cluster import PRODUCTION
from paper.figure import Chart, Failing, Figure, Measured, PaperCurve, Part
from paper.job import NO_SILENCE, failed_qps
from paper.parameters import MRC

UNIT, SHORT_UNIT = 10, 5  # round trips
STOPPED, BACK, END = 2.0, 10.0, 12.0
T1 = "p1s77"
PAPER_SAMPLE_S = 60.0
MRC_EVS = 128  # in rotation
READ = readings.of("8")
DIP = READ["job's rate in the minute of the failure"].value


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


FIGURE = Figure(
    name="8",
    title="A T1 switch stops forwarding, and is rebooted",
    caption=(
        "Rounds of an all-to-all on 8 NICs with all 512 paths of a production fabric. A T1 of one plane stops"
        " forwarding at 2 while its links stay up, loses its tables, and is back at 10."
    ),
    parts=parts,
    quantities=(
        READ.quantity(
            "queue pairs hit",
            "mrc:share hit",
            "of the queue pairs across T1s, those that gave up a path for a loss",
            fails=Failing("half as many EVs in rotation", "mrc-half:share hit"),
        ),
        READ.quantity(
            "packets lost per NIC",
            None,
            why=(
                "A queue pair that is hit loses one packet (1.0 in the mean here), so the number follows from how many"
                " queue pairs a NIC has across T1s, which the paper does not say: 31 if each hit one loses one."
            ),
        ),
        READ.quantity(
            "queue pairs failed", "mrc:failed", "that went to the error state", scale=1, powerless=NO_SILENCE
        ),
        READ.quantity(
            "job's rate in the minute of the failure",
            "mrc:sample at the failure",
            "what a sample of 60 real seconds would show, from how much longer the rounds took",
            unreachable=(
                "The failure costs the job's rounds about three round trips in all, 50 µs, which no one-minute sample"
                " can show. The paper's sample lacks eleven seconds. The loss does not explain them: a queue pair loses"
                " one packet and retransmits it on another path. Waiting for the slowest rank does not either, because"
                " the rounds here wait as well. The cause of such a pause lies above the transport."
            ),
        ),
        READ.quantity(
            "job's rate in the minute of the return",
            "mrc:sample at the return",
            "the same",
            powerless="A run lasts microseconds, which a one-minute sample cannot show.",
        ),
    ),
    charts=(
        Chart(
            x=f"units of {UNIT} round trips",
            y="job's rate, of before",
            ours={"mrc:rate": "MRC"},
            paper=[PaperCurve("MRC", [(0.5, 1), (1.5, 1), (2.5, DIP), (3.5, 1), (6, 1), (8, 1), (10.5, 1), (11.5, 1)])],
        ),
    ),
    compression=(
        f"Time is in units of {UNIT} base round trips, about 0.1 ms. The paper's samples, a minute each, are drawn at"
        " these units, so that the curve's dip, of three units, looks as wide as the paper's. A sample of a minute"
        " would show nothing of it: the table has that."
    ),
)

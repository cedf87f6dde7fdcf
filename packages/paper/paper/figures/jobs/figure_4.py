"""Figure 4: what a job loses when it starts on a fabric with bad links, without a denylist."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, readings
from paper.breaking import OBLIVIOUS, fails, oblivious
from paper.figure import Chart, Figure, Measured, Part
from paper.job import SMALL, clock, hit_qps, job, lost_packets, qps
from scenarios import TimedFault

LENGTH = 3.0
READ = readings.of("4")
BAD_LINKS = tuple(f"p{plane}l0-p{plane}s{spine}" for plane, spine in ((0, 3), (1, 7), (2, 11), (3, 15)))


def parts(short: bool) -> Sequence[Part]:
    time = clock(short)
    faults = [TimedFault(0.0, "blackhole", link, phase="warmup") for link in BAD_LINKS]

    def measure(run: Run) -> Measured:
        late = [line for line in run.kind("repair") if line["sent_ns"] > time.run_ns(run, 1.0)]
        numbers = {
            "lost a QP": lost_packets(run) / len(qps(run)),
            "hit": len(hit_qps(run)) / len(qps(run)),
            "late": sum(int(line["packets"]) for line in late) / len(qps(run)),
        }
        return Measured(numbers, {"rate": measuring.curve(run, time, -1.5, LENGTH, 2 * time.sample)})

    run = job(time, LENGTH, faults, measure)
    return [run, oblivious(run)]


FIGURE = Figure(
    name="4",
    title="Losses at the start of a job",
    caption=SMALL
    + " Four of 128 links above the leaves lose everything silently from before the job starts (how many did so in the"
    " paper is not said: assumed).",
    parts=parts,
    quantities=(
        READ.quantity(
            "lost packets per QP at the start, at most",
            "job:lost a QP",
            "packets taken for lost over queue pairs that sent",
            at_most=True,
            fails=fails("lost a QP", OBLIVIOUS, "job"),
        ),
        READ.quantity(
            "lost packets per QP later",
            "job:late",
            "of packets sent a unit of time after the start or later",
            scale=5,
            fails=fails("late", OBLIVIOUS, "job"),
        ),
        READ.quantity(
            "losses per NIC in the steady state",
            None,
            why=(
                "This number is an input, not an outcome: it comes from bit errors and flaps of many links. A run has"
                " under a million packets."
            ),
        ),
    ),
    charts=(Chart("units of 20 round trips after the start", "all NICs, Gb/s", {"job:rate": "MRC"}),),
    compression="The first minutes of the paper are the first round trips here: paths are abandoned within them.",
)

"""Figure 4: what a job loses when it starts on a fabric with bad links, without a denylist."""

from collections.abc import Sequence

from judging import Run
from paper import measuring
from paper.breaking import oblivious
from paper.figure import Measured, Part
from paper.job import clock, hit_qps, job, lost_packets, qps
from scenarios import TimedFault

LENGTH = 3.0
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

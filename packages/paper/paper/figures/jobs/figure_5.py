"""Figure 5: links between leaves and spines that flap all the time under a job."""

from collections.abc import Sequence

from judging import Run
from paper import measuring
from paper.breaking import oblivious
from paper.cluster import JOB
from paper.figure import Measured, Part
from paper.job import clock, failed_qps, job

CALM, LENGTH = 2.0, 6.0
FLAPS = 8


def parts(short: bool) -> Sequence[Part]:
    time = clock(short)
    step = (LENGTH - CALM) / FLAPS
    faults = [
        time.fault(
            CALM + n * step,
            "link-down",
            f"p{n % JOB.planes}l{n % 2}-p{n % JOB.planes}s{n}",
            until=CALM + (n + 0.8) * step,
        )
        for n in range(FLAPS)
    ]

    def measure(run: Run) -> Measured:
        calm, flapping = measuring.rate(run, time, 0, CALM), measuring.rate(run, time, CALM, LENGTH)
        numbers = {"kept": flapping / calm, "failed": float(failed_qps(run))}
        return Measured(numbers, {"rate": measuring.curve(run, time, 0, LENGTH, 2 * time.sample)})

    run = job(time, LENGTH, faults, measure)
    return [run, oblivious(run)]

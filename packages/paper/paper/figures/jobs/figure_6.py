"""Figures 6 and 7: a transceiver of a leaf flaps and takes a port from each of three NICs."""

from collections.abc import Sequence

from judging import Run
from paper import measuring
from paper.breaking import kept, without_faults
from paper.figure import Measured, Part
from paper.job import clock, failed_qps, job

DOWN, UP, LENGTH = 2.0, 4.0, 6.0


def parts(short: bool) -> Sequence[Part]:
    time = clock(short)

    def measure(run: Run) -> Measured:
        before = measuring.rate(run, time, 0, DOWN)
        numbers = {
            "kept": measuring.rate(run, time, DOWN + 0.5, UP) / before,
            "after": measuring.rate(run, time, UP + 0.5, LENGTH) / before,
            "failed": float(failed_qps(run)),
        }
        points = [(x, y / before) for x, y in measuring.curve(run, time, 0, LENGTH, 2 * time.sample)]
        return Measured(numbers, {"rate": points})

    faults = [time.fault(DOWN, "link-down", f"h{host}-p0l0", until=UP) for host in range(2)]
    run = job(time, LENGTH, faults, measure)
    return [run, kept(run), without_faults(run)]

"""Figures 6 and 7: a transceiver of a leaf flaps and takes a port from each of three NICs."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, readings
from paper.breaking import KEPT, WHOLE, fails, kept, whole
from paper.figure import Chart, Figure, Measured, PaperCurve, Part
from paper.job import NO_SILENCE, SMALL, clock, failed_qps, job

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
    return [run, kept(run), whole(run)]


READ = readings.of("6")
LOW = READ["goodput kept"].value
FIGURE = Figure(
    name="6",
    title="6 and 7: a T0 transceiver flaps under a job",
    caption=SMALL
    + " Two hosts under one leaf lose their port in one of four planes from 2 to 4; the paper's transceiver took four"
    " links of three active nodes. The ring goes at the pace of its slowest NIC.",
    parts=parts,
    quantities=(
        READ.quantity(
            "goodput kept",
            "job:kept",
            "payload of all hosts, half a unit after the failure on; ours never computes, the paper's job does",
            fails=fails("kept", WHOLE, "job"),
        ),
        READ.quantity(
            "goodput after", "job:after", "the same, half a unit after the return on", fails=fails("after", KEPT, "job")
        ),
        READ.quantity(
            "queue pairs failed", "job:failed", "queue pairs that went to ERROR", scale=1, powerless=NO_SILENCE
        ),
    ),
    charts=(
        Chart(
            x="units of 20 round trips; the paper's minute is 2 to 4",
            y="goodput over that before",
            ours={"job:rate": "MRC"},
            paper=[PaperCurve("MRC", [(1, 1.0), (3, LOW), (3.7, LOW), (5, 1.0)])],
        ),
    ),
    compression="The paper's minute of flapping takes 40 round trips.",
)

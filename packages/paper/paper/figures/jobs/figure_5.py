"""Figure 5: links between leaves and spines that flap all the time under a job."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, readings
from paper.breaking import OBLIVIOUS, fails, oblivious
from paper.cluster import JOB
from paper.figure import Chart, Figure, Measured, Part
from paper.job import NO_SILENCE, SMALL, clock, failed_qps, job

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


READ = readings.of("5")
FIGURE = Figure(
    name="5",
    title="T0–T1 links flap under a job",
    caption=SMALL
    + " From 2 on a link above a leaf goes down every 10 round trips for 8, one at a time: 8 of 128 links.",
    parts=parts,
    quantities=(
        READ.quantity(
            "goodput kept while links flap",
            "job:kept",
            "payload of all hosts; the paper: negligible impact",
            fails=fails("kept", OBLIVIOUS, "job"),
        ),
        READ.quantity(
            "queue pairs failed", "job:failed", "queue pairs that went to ERROR", scale=1, powerless=NO_SILENCE
        ),
    ),
    charts=(Chart("units of 20 round trips", "all NICs, Gb/s", {"job:rate": "MRC"}),),
    compression=(
        "The paper has 4.2 flaps a minute among some hundred thousand links; here a link of 128 flaps every 10 round"
        " trips, which is far more for each queue pair."
    ),
    source="text and figure 5 of arXiv:2605.04333; the impact is given in words only",
)

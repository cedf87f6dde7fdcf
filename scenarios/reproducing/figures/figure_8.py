"""Figure 8: a spine stops forwarding under a job, and later comes back from a reboot."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.judging.run import Run
from scenarios.reproducing import measuring
from scenarios.reproducing.figure import Chart, Figure, Measured, Part, Quantity
from scenarios.reproducing.job import SMALL, clock, failed_qps, hit_qps, job, qps

DOWN, UP, LENGTH = 2.0, 4.0, 6.0
MINUTE_S = 60.0  # the paper's sample


def parts(short: bool) -> Sequence[Part]:
    time = clock(short)

    def measure(run: Run) -> Measured:
        before = measuring.rate(run, time, 0, DOWN)
        lost = measuring.deficit_bits(run, time, DOWN, DOWN + 1, before)
        numbers = {
            "hit": len(hit_qps(run)) / len(qps(run)),
            "minute": measuring.sample_gbps(before, lost, MINUTE_S) / before,
            "return": measuring.rate(run, time, UP, LENGTH) / before,
            "failed": float(failed_qps(run)),
        }
        points = [(x, y / before) for x, y in measuring.curve(run, time, 0, LENGTH, 2 * time.sample)]
        return Measured(numbers, {"rate": points})

    return [job(time, LENGTH, [time.fault(DOWN, "switch-stop", "p0s0", until=UP)], measure)]


FIGURE = Figure(
    name="8",
    title="A T1 stops forwarding under a job, and is rebooted",
    caption=SMALL + " A spine stops forwarding at 2, with its links up, and forwards again at 4.",
    parts=parts,
    quantities=(
        Quantity(
            "queue pairs hit",
            0.25,
            "of all",
            "job:hit",
            "queue pairs that gave a path up, over those that sent",
            why=(
                "Of four neighbours in this ring two are under one leaf, and their queue pairs never cross a spine. Of"
                " the 16 that do, 3 were hit, where a quarter would be 4."
            ),
        ),
        Quantity(
            "goodput of the minute",
            10.1 / 12.4,
            "of before",
            "job:minute",
            "what a sample of 60 real seconds would show: the rate before less the bits that the failure cost",
            why=(
                "Here the failure costs a ring of 4 NICs some round trips, and 60 s hide them. The paper's dip is 11"
                " s of full rate for a loss that its own transport mends in microseconds, so the job stood still for"
                " other reasons than the network (the paper does not say which); no network model has them."
            ),
        ),
        Quantity(
            "goodput when it returns",
            1,
            "of before",
            "job:return",
            "payload of all hosts from the return on; no dip in the paper",
        ),
        Quantity("queue pairs failed", 0, "", "job:failed", "queue pairs that went to ERROR", scale=1),
        Quantity(
            "packets dropped",
            580_000,
            "packets",
            None,
            "",
            why="A sum over 75K NICs; how many packets a second these sent is not said, so it cannot be normalised.",
        ),
    ),
    charts=(
        Chart(
            x="units of 20 round trips",
            y="goodput over that before",
            ours={"job:rate": "MRC"},
        ),
    ),
    compression="The paper's twelve minutes between failure and reboot take 40 round trips.",
)

"""Figure 9a: links between a NIC and its leaves go down one by one and come back."""

from __future__ import annotations

from collections.abc import Sequence

from judging import Run
from paper import measuring, readings
from paper.breaking import KEPT, SINGLE_PATH, fails, kept, single_path
from paper.clock import Clock
from paper.cluster import B
from paper.explanations import FIRMWARE
from paper.figure import Chart, Experiment, Figure, Measured, PaperCurve, Part
from paper.pair import DILUTED, pair

STEP_ROUND_TRIPS = 60
SETTLE = 0.25  # of a step: what a plateau's mean leaves out after each change
DOWN = 7
READ = readings.of("9a")
PAPER_GBPS = [READ[f"{8 - i} links"].value for i in range(DOWN)]  # with 0 to 6 of 8 links down


def parts(short: bool) -> Sequence[Part]:
    clock = Clock.round_trips(B, 12 if short else STEP_ROUND_TRIPS)
    length = 2 * DOWN + 1

    def measure(run: Run) -> Measured:
        steps = [measuring.rate(run, clock, step + SETTLE, step + 1) for step in range(length)]
        numbers = {f"down {i}": steps[i] for i in range(DOWN + 1)}
        numbers["symmetric"] = max(abs(steps[i] - steps[2 * DOWN - i]) for i in range(DOWN))
        numbers["first dip"] = dip_s(run, clock, 1)
        numbers["dip"] = max(dip_s(run, clock, 1 + i) for i in range(1, DOWN))
        return Measured(numbers, {"rate": measuring.curve(run, clock, 0, length, clock.sample * 2)})

    def losing(name: str, verb: str, port: str) -> Part:
        faults = [clock.fault(1 + i, verb, port.format(i), until=2 * DOWN - i) for i in range(DOWN)]
        return pair(clock, length, faults, measure, name=name)

    run = losing("mrc", "port-down", "h0.p{}")
    return [run, losing("silent", "blackhole", "h0-p{}l0"), single_path(run), kept(run)]


def dip_s(run: Run, clock: Clock, at: float) -> float:
    """How long after a failure the rate stays below half of the plateau that follows, real seconds."""
    plateau = measuring.rate(run, clock, at + SETTLE, at + 1)
    points = measuring.curve(run, clock, at, at + 1, clock.sample)
    low = [place for place, value in points if value < plateau / 2]
    return len(low) * clock.sample * clock.unit_ns / 1e9


FIGURE = Figure(
    name="9a",
    title="NIC–T0 links down one by one, and back",
    caption=(
        "Two hosts of cluster B write to each other both ways on 4 queue pairs. The first host loses a port a step"
        " until one of eight is left, then gets them back in reverse order. Rates are payload of both directions"
        " together."
    ),
    parts=parts,
    quantities=(
        *(
            READ.quantity(
                f"{8 - i} links",
                f"mrc:down {i}",
                "mean of the last three quarters of the step",
                fails=fails(f"down {i}", SINGLE_PATH),
            )
            for i in range(DOWN)
        ),
        READ.quantity(
            "1 link, mean",
            "mrc:down 7",
            "the same; the paper's rate swings between 0 and 268",
            unreachable="The paper's NIC is unstable with its last link; here the last link stays full. " + FIRMWARE,
        ),
        READ.quantity(
            "down and up differ by",
            "mrc:symmetric",
            "largest difference of two steps with as many links",
            scale=191,
            fails=fails("symmetric", KEPT),
        ),
        READ.quantity(
            "dip at the first failure",
            "mrc:first dip",
            "time below half of the next plateau",
            scale=0.22,
            powerless=DILUTED,
        ),
        READ.quantity("dip at a later failure", "mrc:dip", "the longest such time", unreachable=FIRMWARE),
    ),
    charts=(
        Chart(
            x="step: a link goes down at 1 to 7, one comes back at 8 to 14",
            y="both directions, Gb/s",
            ours={"mrc:rate": "MRC"},
            paper=[
                PaperCurve(
                    "MRC",
                    [
                        *((i + 0.6, gbps) for i, gbps in enumerate(PAPER_GBPS)),
                        *((2 * DOWN - i + 0.6, gbps) for i, gbps in reversed(list(enumerate(PAPER_GBPS)))),
                    ],
                )
            ],
        ),
    ),
    experiments=(
        Experiment("links take every packet silently, no NIC loses carrier", "dip at a later failure", "silent:dip"),
        Experiment("the same", "1 link, mean", "silent:down 7"),
    ),
    compression=(
        f"A step of the paper, some seconds, takes {STEP_ROUND_TRIPS} base round trips: a window settles in a few of"
        " them, and"
        " more would repeat what is there."
    ),
)

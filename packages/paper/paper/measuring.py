"""Measures of a run for figures: rates over stretches of time and what a sample of the paper's length would show."""

from collections.abc import Iterable, Sequence

from judging import SECOND_NS, Run, Span
from judging.arrays import Floats, np
from judging.measures import goodput
from paper.clock import Clock
from paper.figure import Points
from paper.parameters import PMTU_BYTES

__all__ = ["rate"]

GBPS = 1e9


def rate(run: Run, clock: Clock, start: float, stop: float, hosts: Sequence[str] | None = None) -> float:
    """Acknowledged payload of all (or these) hosts together, Gb/s, between two instants in units of the clock."""
    return goodput.over(run, Span("", clock.run_ns(run, start), clock.run_ns(run, stop)), hosts) / GBPS


def curve(
    run: Run, clock: Clock, start: float, stop: float, width: float, hosts: Sequence[str] | None = None
) -> Points:
    """The same as bins of this width: (middle in units, Gb/s)."""
    span = Span("", clock.run_ns(run, start), clock.run_ns(run, stop))
    centres, rates = goodput.series(run, max(1, round(width * clock.unit_ns)), span, hosts)
    shift = run.start_ns / SECOND_NS
    return [
        (round(clock.units(run, (centre + shift) * SECOND_NS), 6), round(value / GBPS, 4))
        for centre, value in zip(centres, rates, strict=True)
    ]


def deficit_bits(run: Run, clock: Clock, at: float, until: float, steady_gbps: float) -> float:
    """The cost of a transient: bits that the steady rate would have carried from `at` to `until`, and that were not."""
    length_s = (until - at) * clock.unit_ns / SECOND_NS
    return max(0.0, steady_gbps * GBPS * length_s - rate(run, clock, at, until) * GBPS * length_s)


def sample_gbps(steady_gbps: float, missing_bits: float, sample_s: float) -> float:
    """The rate that a sample of `sample_s` real seconds shows when a transient within it cost so many bits.

    A transient lasts round trips, however long the paper's phases last; so it is not compressed with them.
    """
    return max(0.0, steady_gbps - missing_bits / sample_s / GBPS)


def lowest(points: Points, start: float, stop: float) -> float:
    """The lowest value of a curve between two places of its axis."""
    return min(value for place, value in points if start <= place <= stop)


def half_completion_us(run: Run, workload: str) -> float:
    """Half of the time from posting a write to its completion, µs: the mean of a workload of one write at a time.

    0 when no rank has ended, or none has sent anything.
    """
    for line in run.kind("workload"):
        if line.get("name") == workload and line.get("state") == "stop" and line["result"]["messages_completed"]:
            return float(line["result"]["duration_ns"] / line["result"]["messages_completed"] / 2000)
    return 0.0


def mean(values: Iterable[float]) -> float:
    """The mean; 0 of nothing."""
    numbers = list(values)
    return float(np.mean(numbers)) if numbers else 0.0


def median(values: Iterable[float]) -> float:
    """The median; 0 of nothing."""
    numbers = list(values)
    return float(np.median(numbers)) if numbers else 0.0


def queue_curve(run: Run, clock: Clock, switch: str, port: int) -> Points:
    """The queue at a switch's port: (instant in units, bytes) for each sample."""
    return [
        (round(clock.units(run, float(line["t_ns"])), 6), float(row["queue_bytes"]))
        for line in run.switch_samples.get(switch, ())
        for row in line["ports"]
        if int(row["port"]) == port
    ]


def path_totals(run: Run, host: str, ev: int) -> tuple[Floats, Floats]:
    """When a host's counters were sampled (ns), and the packets that it had sent by this EV until then."""
    samples = [line for line in run.agent_samples.get(host, []) if "paths" in line]
    times = np.array([float(line["t_ns"]) for line in samples])
    return times, np.array([float(line["paths"].get(str(ev), line["paths"].get(ev, 0))) for line in samples])


def path_rates(run: Run, clock: Clock, host: str, ev: int, edges: Floats) -> Floats:
    """Payload that a host sent by one EV between each two edges (units), Gb/s, taking all packets as full."""
    times, totals = path_totals(run, host, ev)
    when = np.array([clock.run_ns(run, edge) for edge in edges], dtype=float)
    return np.diff(goodput.at(times, totals, when)) * PMTU_BYTES * 8 / (np.diff(edges) * clock.unit_ns)


def path_rate(run: Run, clock: Clock, host: str, ev: int, start: float, stop: float) -> float:
    """The same between two instants."""
    return float(path_rates(run, clock, host, ev, np.array([start, stop]))[0])


def path_curve(run: Run, clock: Clock, host: str, ev: int, stop: float, shift: float) -> Points:
    """The same as bins of two samples, from the axis' beginning on; `shift` is added to it."""
    width = 2 * clock.sample
    edges = np.arange(0, stop, width)
    rates = path_rates(run, clock, host, ev, edges)
    return [
        (round(float(left + width / 2 + shift), 6), round(float(value), 4))
        for left, value in zip(edges[:-1], rates, strict=True)
    ]


def left_after_s(run: Run, host: str, ev: int, since_ns: int) -> float:
    """How long after an instant the last of a host's queue pairs gave an EV up, real seconds; the rest if none did."""
    left: dict[int, int] = {}
    for line in run.kind("ev"):
        given_up = line["node"] == host and int(line["ev"]) == ev and str(line["new"]).upper() == "ASSUMED_BAD"
        if given_up and line["t_ns"] >= since_ns:
            left.setdefault(int(line["qp"]), int(line["t_ns"]))
    return (max(left.values(), default=run.end_ns) - since_ns) / SECOND_NS

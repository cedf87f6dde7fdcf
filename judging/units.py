"""Lengths of time for readers: in the unit that suits them."""

__all__ = ["SECOND_NS", "brief", "lasting"]

SECOND_NS, MILLISECOND_NS, MICROSECOND_NS = 1_000_000_000, 1_000_000, 1_000


def unit(pace: float) -> tuple[str, int]:
    """The unit in which a report tells time, and its nanoseconds: seconds in lab time, microseconds at real rates.

    `pace` is how many seconds of the run one second of lab time takes (`topo.plan.Plan.pace`).
    """
    if pace >= 0.01:
        return "s", SECOND_NS
    return ("ms", MILLISECOND_NS) if pace >= 0.001 else ("µs", MICROSECOND_NS)


def lasting(ns: float, pace: float, digits: int = 1) -> str:
    """A length in that unit, with so many digits where the unit is the second."""
    name, unit_ns = unit(pace)
    return f"{ns / unit_ns:.{digits if unit_ns == SECOND_NS else 0}f} {name}"


def brief(ns: float) -> str:
    """Milliseconds; microseconds where that is less than one."""
    return f"{ns / MICROSECOND_NS:.1f} µs" if 0 < abs(ns) < MILLISECOND_NS else f"{ns / MILLISECOND_NS:.0f} ms"

"""Is there enough evidence? One rule for every figure that a check compares with a limit, in round trips and packets.

A figure is known to within an error that follows from what it was measured on:

| figure | error, as a share |
|---|---|
| a rate over a span | a round trip's worth: bytes under way at its beginning count, those at its end do not |
| a share of packets that take planes in turn | a packet more or less for each queue pair |
| a rate seen message by message | the largest of the lines in which receivers count whole messages |
| what faults cost | the spread of quiet laps, and what stalls may have taken (`judging.measures.cost`) |

The figure is false only when it misses its limit by more than the error, true only when it keeps the limit and the
error is no greater than the limit; in between, the evidence does not say.
"""

from judging.run import Run

__all__ = ["base_rtt_ns", "doubt", "holds", "rate_error"]

REPAIR_ROUND_TRIPS = 2
"""The most that one fault costs a sound transport: a round trip until the acknowledgement is missing, a quarter and a
spread of round trips until that of a later packet proves the loss (`endpoint/mrc/loss/reorder.py`; measured: 1.4 in
all), and half a round trip for the copy."""
TAIL_ROUND_TRIPS = 1
"""More in a training loop, whose hosts wait for the last packets of messages, when nothing later is sent that could
show the loss: the sender asks as soon as the packet is overdue, and waits for the answer (`endpoint/mrc/retry.py`)."""


def base_rtt_ns(run: Run) -> int:
    """The run's base round trip; 0 for a journal that does not say."""
    return int(run.options.get("base_rtt_ns") or 0)


def rate_error(run: Run, *lengths_ns: int) -> float:
    """The error of a rate over a span of this length, as a share; for a quotient of rates, give both lengths."""
    return sum(base_rtt_ns(run) / length_ns if length_ns > 0 else 1.0 for length_ns in lengths_ns)


def share_error(packets: float, queue_pairs: int) -> float:
    """The error of the share of a plane that so many packets of so many queue pairs took in turn."""
    return queue_pairs / packets if packets > 0 else 1.0


def repair_round_trips(run: Run) -> int:
    """The highest allowed mean cost of a burst of faults in this run, in round trips."""
    return REPAIR_ROUND_TRIPS + (TAIL_ROUND_TRIPS if run.kind("step") else 0)


def holds(off: float, limit: float, error: float) -> bool | None:
    """Whether a figure that is `off` keeps `limit`, and is known to within `error`. None: the evidence does not say."""
    if off - error > limit:
        return False
    if off <= limit and error <= limit:
        return True
    return None


def doubt(holds: bool | None, error: float, what: str = "") -> str:
    """Words for the reason of a finding that is unknown for want of evidence; `what` names the cause."""
    return f"; known to within {error:.1%}: {what or 'the phase is short'}" if holds is None else ""

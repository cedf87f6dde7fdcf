"""Is there enough evidence? One rule for every figure that a check compares with a limit, in round trips and packets.

A figure is known to within an error that follows from what it was measured on:

| figure | error, as a share |
|---|---|
| a rate over a span | a round trip's worth: bytes under way at its beginning count, those at its end do not |
| a share of packets that take planes in turn | a packet more or less for each queue pair |
| a rate seen message by message | the largest of the lines in which receivers count whole messages |
| a step's time | by how much the steps of the reference differ, and a round trip |
| anything after a fault | `REPAIR_ROUND_TRIPS` for each burst of faults, which no transport can save |
| the same in a training loop | `TAIL_ROUND_TRIPS` more: its hosts wait for the last packets of messages |

The figure is false only when it misses its limit by more than the error, true only when it keeps the limit and the
error is no greater than the limit; in between, the evidence does not say.
"""

from __future__ import annotations

from collections.abc import Sequence

from judging.run import Run, Span

REPAIR_ROUND_TRIPS = 3
"""What one fault costs a sound transport: a round trip until the acknowledgement is missing, a second until that of a
packet sent a round trip later shows that it will not come (`endpoint/mrc/loss/reorder.py`), a third for the copy."""
TAIL_ROUND_TRIPS = 2
"""What the loss of a message's last packet costs beyond that, when nothing later is sent that could show it: a round
trip of silence until the sender asks, and one until the answer (`endpoint/mrc/retry.py`). Measured on real links with
messages of a few packets: a loss is noticed after 3.6 to 4.6 round trips, instead of 2, and repaired one later."""
STEPS_MIN = 3
"""Whole training steps of the reference, to see by how much they differ by themselves."""


def base_rtt_ns(run: Run) -> int:
    """The run's base round trip; 0 for a journal that does not say."""
    return int(run.options.get("base_rtt_ns") or 0)


def rate_error(run: Run, *lengths_ns: int) -> float:
    """The error of a rate over a span of this length, as a share; for a quotient of rates, give both lengths."""
    return sum(base_rtt_ns(run) / length_ns if length_ns > 0 else 1.0 for length_ns in lengths_ns)


def pieces_error(run: Run, pieces: Sequence[Span]) -> float:
    """The error of a rate over what stalls have left of a span, as a share: a round trip's worth for each piece. Of
    nothing, nothing is known."""
    return max(1, len(pieces)) * rate_error(run, sum(piece.length_ns for piece in pieces))


def share_error(packets: float, queue_pairs: int) -> float:
    """The error of the share of a plane that so many packets of so many queue pairs took in turn."""
    return queue_pairs / packets if packets > 0 else 1.0


def repair_round_trips(run: Run) -> int:
    """What a burst of faults may cost in this run, in round trips."""
    return REPAIR_ROUND_TRIPS + (TAIL_ROUND_TRIPS if run.kind("step") else 0)


def repair_share(run: Run, length_ns: int, bursts: int, round_trips: int = REPAIR_ROUND_TRIPS) -> float:
    """The share of a time that repairing so many bursts of faults takes, at so many round trips each."""
    return bursts * round_trips * base_rtt_ns(run) / length_ns if length_ns > 0 else 1.0


def holds(off: float, limit: float, error: float, repair: float = 0.0) -> bool | None:
    """Whether a figure that is `off` keeps `limit`, or `repair` if that is more, and is known to within `error`.

    None: the evidence does not say.
    """
    allowed = max(limit, repair)
    if off - error > allowed:
        return False
    if off <= allowed and error <= limit:
        return True
    return None


def doubt(found: bool | None, error: float, what: str = "") -> str:
    """Words for the reason of a finding that is unknown for want of evidence; `what` names the cause."""
    return f"; known to within {error:.1%}: {what or 'the phase is short'}" if found is None else ""

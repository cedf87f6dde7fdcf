"""The states of an entropy value and every transition between them, as one table (OCP MRC figure 5, paper §2.1).

The table is complete for signals from the network: a signal that means nothing in a state keeps it. What only the
transport itself or a controller does is legal in few states, and anywhere else raises `IllegalTransition` and changes
nothing. The floor on active EVs is not in the table: the caller that applies LOSS passes LOSS_AT_FLOOR instead.
"""

from enum import Enum
from typing import Final

from endpoint.nic.wire import NackReason


class EvState(Enum):
    """OCP MRC figure 5."""

    GOOD = "good"
    """Used for transmission."""
    SKIP = "skip"
    """Met congestion: sits out its next turn."""
    ASSUMED_BAD = "assumed_bad"
    """Lost a packet without a trim: not used; probed in the background."""
    DENIED = "denied"
    """Taken out by a controller; only a controller brings it back."""


class EvCause(Enum):
    """An event that may change the state of an EV."""

    ECN = "ecn"
    """A SACK with SKIP_ONCE: a packet was marked on its way."""
    TRIM = "trim"
    """A NACK with reason TRIMMED: a queue inside the fabric was full."""
    TRIM_LASTHOP = "trim_lasthop"
    """A NACK with reason TRIMMED_LASTHOP: incast at the receiver, which is no fault of the path."""
    ALWAYS_SKIP = "always_skip"
    """A SACK with ALWAYS_SKIP: the receiver wants this EV left alone."""
    LOSS = "loss"
    """A packet vanished without a trim."""
    LOSS_AT_FLOOR = "loss_at_floor"
    """A packet vanished, but too few EVs are left to give this one up."""
    LATE_ACK = "late_ack"
    """The packet that was taken for lost has arrived after all."""
    TURN = "turn"
    """The rotation came to a resting EV and passes over it this once."""
    PROBED = "probed"
    """Enough probes in a row came back, the last one unmarked."""
    PROBED_MARKED = "probed_marked"
    """Enough probes in a row came back, the last one marked."""
    DENY = "deny"
    ALLOW = "allow"


TRIM_CAUSES: dict[int, EvCause] = {NackReason.TRIMMED: EvCause.TRIM, NackReason.TRIMMED_LASTHOP: EvCause.TRIM_LASTHOP}
"""By the reason of a NACK."""
MARK_CAUSES: Final = (EvCause.ECN, EvCause.ECN, EvCause.ALWAYS_SKIP, EvCause.ECN)
"""By the path mark of a SACK."""


class IllegalTransition(Exception):  # noqa: N818
    """This cause cannot occur in this state; nothing was changed."""


_G, _S, _B, _D = EvState.GOOD, EvState.SKIP, EvState.ASSUMED_BAD, EvState.DENIED

TRANSITIONS: dict[tuple[EvState, EvCause], EvState] = {
    (_G, EvCause.ECN): _S,
    (_G, EvCause.TRIM): _S,
    (_G, EvCause.TRIM_LASTHOP): _G,
    (_G, EvCause.ALWAYS_SKIP): _B,
    (_G, EvCause.LOSS): _B,
    (_G, EvCause.LOSS_AT_FLOOR): _S,
    (_G, EvCause.LATE_ACK): _G,
    (_G, EvCause.PROBED): _G,
    (_G, EvCause.PROBED_MARKED): _S,
    (_G, EvCause.DENY): _D,
    (_S, EvCause.ECN): _S,
    (_S, EvCause.TRIM): _S,
    (_S, EvCause.TRIM_LASTHOP): _S,
    (_S, EvCause.ALWAYS_SKIP): _B,
    (_S, EvCause.LOSS): _B,
    (_S, EvCause.LOSS_AT_FLOOR): _S,
    (_S, EvCause.LATE_ACK): _S,
    (_S, EvCause.TURN): _G,
    (_S, EvCause.PROBED): _G,
    (_S, EvCause.PROBED_MARKED): _S,
    (_S, EvCause.DENY): _D,
    (_B, EvCause.ECN): _B,
    (_B, EvCause.TRIM): _B,
    (_B, EvCause.TRIM_LASTHOP): _B,
    (_B, EvCause.ALWAYS_SKIP): _B,
    (_B, EvCause.LOSS): _B,
    (_B, EvCause.LOSS_AT_FLOOR): _B,
    (_B, EvCause.LATE_ACK): _G,
    (_B, EvCause.PROBED): _G,
    (_B, EvCause.PROBED_MARKED): _S,
    (_B, EvCause.DENY): _D,
    (_D, EvCause.ECN): _D,
    (_D, EvCause.TRIM): _D,
    (_D, EvCause.TRIM_LASTHOP): _D,
    (_D, EvCause.ALWAYS_SKIP): _D,
    (_D, EvCause.LOSS): _D,
    (_D, EvCause.LOSS_AT_FLOOR): _D,
    (_D, EvCause.LATE_ACK): _D,
    (_D, EvCause.PROBED): _D,
    (_D, EvCause.PROBED_MARKED): _D,
    (_D, EvCause.DENY): _D,
    (_D, EvCause.ALLOW): _G,
}

SENDABLE: Final = frozenset({EvState.GOOD, EvState.SKIP})


def transition(state: EvState, cause: EvCause) -> EvState:
    """The state after `cause`. Raises `IllegalTransition`."""
    try:
        return TRANSITIONS[state, cause]
    except KeyError:
        raise IllegalTransition(f"an EV in state {state.name} cannot undergo {cause.name}") from None

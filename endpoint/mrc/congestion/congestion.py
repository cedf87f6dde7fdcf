"""Congestion control: how many bytes a QP may have in flight, and how fast they go out.

An algorithm is one file, and one line of names (`endpoint.mrc.algorithms`).
"""

from typing import Any, ClassVar, Self

from mypy_extensions import mypyc_attr

from endpoint.mrc.congestion.cc_profile import PathTraits
from endpoint.mrc.congestion.granter import CreditGranter
from endpoint.mrc.parameter import Parameter, Values
from endpoint.mrc.paths.signals import Signals


@mypyc_attr(allow_interpreted_subclasses=True)
class Congestion(Signals):
    """One QP's window. Sizes are payload bytes, delays ns; `now_ns` never goes back.

    `shared` is one dictionary for all QPs of the host: an algorithm that is not per QP keeps its state there.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        self.window_bytes = path.mtu_bytes
        """Bytes that may be in flight now. One packet always may."""
        self.pacing_bps = 0
        """Bits per second of frames at most; 0: as fast as the ports go."""
        self.ports_open = -1
        """Bit n - 1 says that the QP may send data on port n now, new or again: an algorithm per plane closes ports."""

    @classmethod
    def make(cls, path: PathTraits, values: Values, shared: dict[str, Any]) -> Self:
        """An instance from the checked values of its parameters."""
        return cls(path, values, shared)

    @classmethod
    def receiver(cls, path: PathTraits, values: Values) -> CreditGranter | None:
        """The receiving side of a host whose setting names this algorithm; None: receivers grant nothing."""
        return None

    def on_credit(self, now_ns: int, granted_bytes: int, inflight_bytes: int) -> None:
        """The receiver granted so many bytes more (`endpoint.mrc.congestion.granter`)."""

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        """`acked_bytes` were newly acknowledged, perhaps none; `marked` is of the packet that caused the SACK, and so
        is `rtt_ns`, None if copies of that packet cannot be told apart."""

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        """A packet of `size` bytes was trimmed, wherever."""

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        """A packet vanished: a path failure where switches trim, else perhaps congestion."""

    def on_timeout(self, now_ns: int, lost_bytes: int) -> None:
        """The retransmission timer fired for so many bytes: nothing was heard for long."""

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: no period of the algorithm has passed meanwhile."""

    def on_penalty(self, penalty: int) -> None:
        """The receiver's penalty, 0 to 127 (`endpoint.mrc.paths.penalty`)."""

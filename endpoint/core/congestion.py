"""Congestion control: how many bytes a QP may have in flight. An algorithm is one file and one line below."""

from __future__ import annotations

from typing import Protocol

from endpoint.core.config import ConfigError
from endpoint.core.fixed_window import FixedWindow
from endpoint.core.nscc import Nscc


class Congestion(Protocol):
    """One QP's window. Sizes are payload bytes, delays ns; `now_ns` never goes back."""

    window_bytes: int
    """What may be in flight now. One packet may always be."""

    def __init__(self, *, base_rtt_ns: int, bdp_bytes: int, mtu_bytes: int, jitter_ns: int, trimming: bool) -> None: ...

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        """`acked_bytes` were newly acknowledged by a SACK; `rtt_ns` and `marked` are of the packet that caused it."""

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        """A packet of `size` bytes was trimmed, wherever."""

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        """A packet vanished: a path failure where switches trim, else perhaps congestion."""

    def on_timeout(self, now_ns: int) -> None:
        """The retransmission timer fired: nothing was heard for long."""

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: no period of the algorithm has passed meanwhile."""

    def on_penalty(self, penalty: int) -> None:
        """The receiver's penalty, 0 to 127 (`endpoint.core.penalty`)."""


ALGORITHMS: dict[str, type[Congestion]] = {"nscc": Nscc, "fixed_window": FixedWindow}


def find_congestion(name: str) -> type[Congestion]:
    """The algorithm of that name. Raises `ConfigError`."""
    if name not in ALGORITHMS:
        raise ConfigError(f"there is no congestion control {name!r}; valid: {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]

"""Signals that every algorithm may hear: the fate of each packet, changes beside packets, and a timer.

The three seams (path selection, congestion control, loss detection) share these methods. None of them does anything
until a class overrides it, and a method that no algorithm of a queue pair overrides is never called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from endpoint.nic.config import NEVER

if TYPE_CHECKING:
    from endpoint.mrc.paths.ev_set import EvPath
    from endpoint.nic.scheduler import Agenda


@mypyc_attr(allow_interpreted_subclasses=True)
class Signals:
    """The signals of one queue pair to its algorithms. `path` is the EV's `EvPath`: `path.ev`, `path.plane.number`.

    Times are ns of the network's clock, which never goes back; sizes are payload bytes.
    """

    _due_ns: int = NEVER
    _agenda: Agenda | None = None

    @property
    def due_ns(self) -> int:
        """When `on_timer` is called: set it at any time, to NEVER for not at all. The call sets it to NEVER first."""
        return self._due_ns

    @due_ns.setter
    def due_ns(self, due_ns: int) -> None:
        self._due_ns = due_ns
        if self._agenda is not None:
            self._agenda.arm(due_ns)

    def attach(self, agenda: Agenda) -> None:
        """From now on the timer runs, by the queue pair's deadline."""
        self._agenda = agenda
        agenda.arm(self._due_ns)

    def on_timer(self, now_ns: int) -> None:
        """`due_ns` has come. Packets that may go now leave at once."""

    def on_packet_sent(self, now_ns: int, path: EvPath, size: int) -> None:
        """A packet leaves on this EV, for the first time or again."""

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        """A packet sent on this EV has arrived. `rtt_ns` is None unless the packet caused the acknowledgement and
        was sent once; `marked` is its ECN mark. `size` is 0 for a packet that was acknowledged before, or whose bytes
        are under way no more because it had counted as lost on this EV."""

    def on_packet_trimmed(self, now_ns: int, path: EvPath, size: int, last_hop: bool) -> None:
        """A switch trimmed a packet sent on this EV; `last_hop`: towards the receiving host, where all paths meet."""

    def on_packet_lost(self, now_ns: int, path: EvPath, size: int, proved: bool) -> None:
        """A packet sent on this EV counts as lost; `proved` by loss detection, otherwise by the timeout."""

    def on_packet_withdrawn(self, now_ns: int, path: EvPath, size: int) -> None:
        """A packet sent on this EV is under way no more, which says nothing of the path: it was a copy and the original
        has arrived by another EV, or the peer lacked something and refused the packet."""

    def on_retransmission_timeout(self, now_ns: int) -> None:
        """Nothing was heard for the whole timeout; the losses that follow from it have been told."""

    def on_ports_changed(self, now_ns: int, ports: int) -> None:
        """The ports that are up at both ends have changed: bit n - 1 of `ports` is port n."""

    def on_probe_answered(self, now_ns: int, path: EvPath, rtt_ns: int, marked: bool) -> None:
        """A reliability probe on this EV came back."""

    def hears(self, name: str) -> bool:
        """Whether this object's class overrides the method of that name."""
        return overrides(type(self), name)

    def listener(self) -> Signals:
        """The object that hears the signals; a guard sends another one than itself."""
        return self


def overrides(kind: type, name: str) -> bool:
    """Whether a class has its own form of a method of `Signals`."""
    return getattr(kind, name) is not getattr(Signals, name)

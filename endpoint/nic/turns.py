"""What a host asks its transport in every turn, by direct calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from endpoint.transport import Event, Transport


class Turns:
    """A part of `endpoint.transport.Transport`, which says what each call does.

    A base class and no protocol, so that compiled code calls it directly and hands numbers over as they are.
    """

    def receive(self, port: int, frames_in: Sequence[bytes | memoryview], now_ns: int) -> bool:
        raise NotImplementedError

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        raise NotImplementedError

    def next_timer_ns(self) -> int | None:
        raise NotImplementedError

    def timers_ns(self) -> tuple[int, int]:
        raise NotImplementedError

    def handle_timer(self, now_ns: int) -> None:
        raise NotImplementedError

    def events_waiting(self) -> bool:
        raise NotImplementedError

    def next_event(self) -> Event | None:
        raise NotImplementedError


class OtherTurns(Turns):
    """Those of a transport that is built on no `endpoint.nic.nic.Nic`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def receive(self, port: int, frames_in: Sequence[bytes | memoryview], now_ns: int) -> bool:
        return self._transport.receive(port, frames_in, now_ns)

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        return self._transport.packets_to_send(now_ns, limit)

    def next_timer_ns(self) -> int | None:
        return self._transport.next_timer_ns()

    def timers_ns(self) -> tuple[int, int]:
        return self._transport.timers_ns()

    def handle_timer(self, now_ns: int) -> None:
        self._transport.handle_timer(now_ns)

    def events_waiting(self) -> bool:
        return self._transport.events_waiting()

    def next_event(self) -> Event | None:
        return self._transport.next_event()

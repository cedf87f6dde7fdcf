"""What a host asks its transport in every turn, by direct calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from endpoint.transport import Event


@mypyc_attr(allow_interpreted_subclasses=True)
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

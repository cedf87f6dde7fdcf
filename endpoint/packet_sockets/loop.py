"""The loop of a process that is the NIC of one host or several: turns of all hosts, then one wait for all of them.

Waking a process costs tens of microseconds in cold caches, several times what a frame costs in a warm loop. So hosts
share a process, and a process wakes for the frames of all its hosts together. `select` is the wait because its timeout
has microseconds (`epoll`'s are milliseconds). It takes no descriptor above 1023, so everything else hangs on two epoll
descriptors, which are opened first: the data of all ports, and all others.
"""

import select
import time
from collections.abc import Callable, Iterable
from typing import Protocol

# While frames keep coming the loop does not wait; other descriptors are then looked at this often.
_GLANCE_NS = 1_000_000
_WAIT_MAX_NS = 3600 * 1_000_000_000  # `select` cannot express every deadline that a request may set
NEVER = 1 << 62
IDLE, BUSY, MORE = 0, 1, 2
"""Results of a turn: there was nothing to do; frames were moved; more of them wait."""


class Served(Protocol):
    """A host that the loop gives turns: `endpoint.packet_sockets.driver.Driver`."""

    deadline_ns: int
    """When it wants a turn at the latest; NEVER for never."""

    def data_descriptors(self) -> Iterable[int]:
        """Its sockets of data: readable when a frame is there."""

    def turn(self) -> int:
        """IDLE, BUSY or MORE."""

    def note_lateness(self, before_ns: int, now_ns: int, idle_ns: int, slept: bool, moderation_ns: int) -> None:
        """The loop last looked at `before_ns`; it did not work for `idle_ns` since, waiting for frames if `slept`."""

    def woken(self, descriptor: int) -> None:
        """Its socket of data is readable, with a frame or an error."""

    def fail(self, error: Exception) -> None:
        """Its turn has raised this. An error from this method ends the loop."""


class Loop:
    """`run` serves the hosts that were added until `stop`.

    `moderation_ns` is what NICs call interrupt moderation: after a turn that moved frames the loop sleeps that long,
    any arrival, and then takes all of them at once. After an idle turn the next frame wakes it at once.
    """

    def __init__(self, moderation_ns: int = 0, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.clock = clock
        self._moderation_ns = moderation_ns
        self._others, self._data = select.epoll(), select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._writers: dict[int, Callable[[], None]] = {}
        self._watched: dict[int, int] = {}
        self._hosts: tuple[Served, ...] = ()
        self._owners: dict[int, Served] = {}
        self._soon: list[Callable[[], None]] = []
        self._stopped = False

    def add(self, host: Served) -> None:
        """Give a host turns."""
        self._hosts = (*self._hosts, host)
        for descriptor in host.data_descriptors():
            self._owners[descriptor] = host
            self._data.register(descriptor, select.EPOLLIN)

    def remove(self, host: Served) -> None:
        """To be said before the host closes its sockets. A host that is not there is left out."""
        self._hosts = tuple(other for other in self._hosts if other is not host)
        for descriptor in [descriptor for descriptor, owner in self._owners.items() if owner is host]:
            del self._owners[descriptor]
            self._data.unregister(descriptor)

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call back from the loop whenever the descriptor is readable."""
        self._readers[descriptor] = callback
        self._watch(descriptor)

    def remove_reader(self, descriptor: int) -> None:
        """To be said before the descriptor is closed: its number may be another file's then."""
        self._readers.pop(descriptor, None)
        self._watch(descriptor)

    def add_writer(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call back from the loop whenever the descriptor takes bytes."""
        self._writers[descriptor] = callback
        self._watch(descriptor)

    def remove_writer(self, descriptor: int) -> None:
        self._writers.pop(descriptor, None)
        self._watch(descriptor)

    def _watch(self, descriptor: int) -> None:
        events = select.EPOLLIN if descriptor in self._readers else 0
        events |= select.EPOLLOUT if descriptor in self._writers else 0
        before = self._watched.pop(descriptor, 0)
        if events:
            self._watched[descriptor] = events
            (self._others.modify if before else self._others.register)(descriptor, events)
        elif before:
            self._others.unregister(descriptor)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back when the present callback or turn is over."""
        self._soon.append(callback)

    def stop(self) -> None:
        """Make `run` return after the turn that it is in."""
        self._stopped = True

    def close(self) -> None:
        self._others.close()
        self._data.close()

    def run(self) -> None:
        """Serve the hosts until `stop` is called."""
        clock, moderation_ns = self.clock, self._moderation_ns
        glance_ns = clock() + _GLANCE_NS
        now_ns, cpu_ns, slept = clock(), time.thread_time_ns(), False
        while not self._stopped:
            before_ns, now_ns = now_ns, clock()
            before_cpu_ns, cpu_ns = cpu_ns, time.thread_time_ns()
            # The turn's own work is no lateness: with full ports a turn is always behind its deadline.
            idle_ns = now_ns - before_ns - (cpu_ns - before_cpu_ns)
            late = idle_ns > moderation_ns
            moved, deadline_ns = IDLE, NEVER
            for host in self._hosts:
                try:
                    if late:
                        host.note_lateness(before_ns, now_ns, idle_ns, slept, moderation_ns)
                    moved |= host.turn()
                except Exception as error:
                    host.fail(error)
                deadline_ns = min(deadline_ns, host.deadline_ns)
            slept = False
            if self._stopped:
                return
            if moved & MORE:
                if now_ns < glance_ns:
                    continue
                self._wait(0, with_data=False)
            elif moved and moderation_ns:
                self._wait(now_ns + moderation_ns - clock(), with_data=False)
            else:
                # Timers that became due meanwhile are served in the next turn, which comes at once.
                self._wait(deadline_ns - clock(), with_data=True)
                slept = True
            glance_ns = clock() + _GLANCE_NS

    def _wait(self, wait_ns: int, *, with_data: bool) -> None:
        """Wait until a descriptor is readable or `wait_ns` is over. Frames are left to the turns."""
        timeout_s = min(max(0, wait_ns), _WAIT_MAX_NS) / 1e9
        readable = select.select([self._others, self._data] if with_data else [self._others], [], [], timeout_s)[0]
        if self._data in readable:
            for descriptor, _ in self._data.poll(0):
                self._owners[descriptor].woken(descriptor)
        if self._others in readable:
            for descriptor, events in self._others.poll(0):
                if events & ~select.EPOLLOUT and (callback := self._readers.get(descriptor)):
                    callback()
                if events & ~select.EPOLLIN and (callback := self._writers.get(descriptor)):
                    callback()
        while self._soon:
            self._soon.pop()()

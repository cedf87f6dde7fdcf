"""Two hosts back to back in one thread, with real uverbs sockets: no root needed. Frames cross in memory."""

from __future__ import annotations

import itertools
import json
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mrclab
from benchmarks.rig.profiles import profile as profile_data
from common import uverbs
from endpoint import HostNic, factory
from endpoint import profile as profiles
from endpoint.uverbs import UverbsServer
from mrclab import SendWR

_numbers = itertools.count()
_OUTER_DESTINATION = slice(14 + 24, 14 + 40)
"""In a frame, behind Ethernet's header and IPv6's first 24 bytes."""


class Rig:
    """`names` are the hosts' names: of this process only, since a network namespace has one socket of a name."""

    def __init__(self, transport: str = "mrc", limits: uverbs.ProgramLimits | None = None, **settings: Any) -> None:
        self.names = [f"t{os.getpid()}x{next(_numbers)}", f"t{os.getpid()}x{next(_numbers)}"]
        self.lines: list[dict[str, Any]] = []
        self.lose_every = 0
        """Every so many frames one is lost; 0: none."""
        self.sent = self.lost = 0
        self._readers: dict[int, Callable[[], None]] = {}
        self._wake, self._woken = os.pipe()
        self._stop = False
        self.nics: list[Any] = []  # tests look into them
        self.servers: list[UverbsServer] = []
        self.hosts = [self._host(number, transport, limits, settings) for number in range(2)]
        self.failure: BaseException | None = None
        self.turns = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _host(
        self, number: int, transport: str, limits: uverbs.ProgramLimits | None, settings: dict[str, Any]
    ) -> HostNic:
        data = profile_data(number, rate_bps=1_000_000_000, evs_per_plane=4)
        rows = [(row["port"], row["usid_address"]) for row in data["ports"]]
        data["self_probes"] = [{"target": f"p{port}l{number}", "port": port, "da": address} for port, address in rows]
        text = json.dumps(data)
        for old, new in zip(("h0", "h1"), self.names, strict=True):
            text = text.replace(f'"{old}"', f'"{new}"')
        profile = profiles.parse(json.loads(text))
        now_ns = time.monotonic_ns()
        nic = factory.make(transport, profile, 1, settings, now_ns)

        def journal(t_ns: int, kind: str, fields: Any) -> None:
            self.lines.append({"t_ns": t_ns, "node": profile.host, "kind": kind, **fields})

        host = HostNic(profile, nic, journal, clock=time.monotonic_ns, now_ns=now_ns)
        server = UverbsServer(profile, nic, transport, self, journal=journal, clock=time.monotonic_ns, limits=limits)
        host.guest = server
        self.nics.append(nic)
        self.servers.append(server)
        return host

    # common.server.Readers

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        self._readers[descriptor] = callback

    def remove_reader(self, descriptor: int) -> None:
        self._readers.pop(descriptor, None)

    # the loop

    def _run(self) -> None:
        try:
            while not self._stop:
                self._turn()
        except BaseException as error:
            self.failure = error

    def _turn(self) -> None:
        self.turns += 1
        moved = False
        for number, host in enumerate(self.hosts):
            now_ns = time.monotonic_ns()
            due_ns = host.next_timer_ns()
            if due_ns is not None and due_ns <= now_ns:
                host.handle_timer(now_ns)
            for port, frame in host.packets_to_send(now_ns, 64):
                moved = True
                self.sent += 1
                if self.lose_every and self.sent % self.lose_every == 0:
                    self.lost += 1
                else:
                    back = frame[_OUTER_DESTINATION] in self.nics[number].arrivals
                    self.hosts[number if back else 1 - number].receive(port, [frame], time.monotonic_ns())
        due = [due_ns for host in self.hosts if (due_ns := host.next_timer_ns()) is not None]
        wait_s = 0.0 if moved else max(0.0, min(0.2, (min(due) - time.monotonic_ns()) / 1e9))
        for descriptor in select.select([*self._readers, self._wake], [], [], wait_s)[0]:
            if callback := self._readers.get(descriptor):
                callback()

    def close(self) -> None:
        self._stop = True
        os.write(self._woken, b"x")
        self._thread.join(10)
        for host in self.hosts:
            host.close(time.monotonic_ns())
        os.close(self._wake)
        os.close(self._woken)
        if self.failure is not None:
            raise self.failure


class End:
    """One program's end of one connection."""

    def __init__(self, host: str, length: int = 1 << 20, cqe: int = 256, **attributes: int) -> None:
        self.context = mrclab.Context(host, program="test")
        self.mr = self.context.reg_mr(length)
        self.cq = self.context.create_cq(cqe)
        self.qp = self.context.create_qp(self.cq, **attributes)

    def write(self, to: End, wr_id: int, offset: int, length: int, imm_data: int | None = None) -> None:
        self.qp.post_send(SendWR(wr_id, self.mr, offset, length, to.mr.addr + offset, to.mr.rkey, imm_data))


@contextmanager
def rig(transport: str = "mrc", limits: uverbs.ProgramLimits | None = None, **settings: Any) -> Iterator[Rig]:
    made = Rig(transport, limits, **settings)
    try:
        yield made
    finally:
        made.close()

"""The agents: one process is the NIC of several hosts, each in its network namespace, and runs their workloads."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from common.interrupts import ending
from common.journal import Journal
from common.linux.netns import entered
from common.server import ControlServer, Reply
from endpoint import factory, prober
from endpoint import profile as profiles
from endpoint.host import SAMPLE_INTERVAL_NS, HostNic
from endpoint.nic.dialect import UDP_PORTS
from endpoint.packet_sockets.driver import RING_BYTES, Driver
from endpoint.packet_sockets.loop import Loop
from endpoint.packet_sockets.stackguard import StackGuard
from endpoint.uverbs.server import UverbsServer

LINE_BYTES_MAX = 16 << 20
"""The longest request: offers of many queue pairs, and denylists, are long."""
_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_STALLS_A_ROUND_TRIP = 4  # every host is late by less than a quarter of a base round trip now and then
_WORTHWHILE_NS = 1_000_000  # a sleep of less than this saves too few wake-ups to be worth its delay


@dataclass(frozen=True, slots=True)
class HostFiles:
    """A host's NIC profile, control socket and journal, and the name of its network namespace ("": the caller's)."""

    profile: str
    socket: str
    journal: str
    netns: str = ""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of `python -m endpoint agent`: hosts, transport and its settings, seed, receive ring per port."""

    hosts: Sequence[HostFiles]
    journal_bytes: int = 0
    """Above 0: each journal is two files of at most so many bytes each."""
    sample_ns: int = SAMPLE_INTERVAL_NS
    transport: str = "mrc"
    seed: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    ring_bytes: int = RING_BYTES
    moderation_ns: int | None = None
    exit_with_parent: bool = False


def run(options: AgentOptions) -> int:
    """Run until a signal, or the operation `shutdown` of the last host; undo everything on the way out.

    A host that an error ends leaves the others running; the exit status is 1 then.
    """
    if options.exit_with_parent and not _die_with_parent():
        return 0
    nic_profiles = [profiles.load(files.profile) for files in options.hosts]
    moderation_ns = options.moderation_ns
    with contextlib.ExitStack() as stack:
        loop = Loop(min(map(_moderation_ns, nic_profiles)) if moderation_ns is None else moderation_ns)
        stack.callback(loop.close)
        agents: list[_Agent] = []

        def ended() -> None:
            if all(agent.ended for agent in agents):
                loop.stop()

        for files, profile in zip(options.hosts, nic_profiles, strict=True):
            agents.append(_Agent(options, files, profile, loop, ended))
            stack.callback(agents[-1].close)
            agents[-1].start()
        _wake_on_signals(loop, stack)
        for agent in agents:
            print(f"ready host={agent.name} socket={agent.files.socket} pid={os.getpid()}", flush=True)
        # All that exists now stays: the collector need not look at it again and again. Packets are made and dropped by
        # the thousand without cycles; looking after every 700 objects would cost about 5 % of a packet's time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        _keep_memory()
        loop.run()
    return int(any(agent.failed for agent in agents))


class _Agent:
    """One host of the process; `on_end` is called when it has ended."""

    def __init__(
        self,
        options: AgentOptions,
        files: HostFiles,
        profile: profiles.NicProfile,
        loop: Loop,
        on_end: Callable[[], None],
    ) -> None:
        self.files = files
        self.name = profile.host
        self.ended = self.failed = False
        self._options = options
        self._profile = profile
        self._loop = loop
        self._on_end = on_end
        self._stack = contextlib.ExitStack()
        # A full disk must not end a NIC: lines that it does not take are counted, and make a run unknown.
        self._journal = Journal(files.journal, profile.host, bytes_max=options.journal_bytes, lossy=True)
        self._stack.callback(self._journal.close)
        self._started_ns = time.monotonic_ns()
        self._journal.write_process("agent")

    def start(self) -> None:
        """Open the ports and sockets. An error is journalled and raised."""
        try:
            with self._home():
                self._start(self._stack)
        except Exception as error:
            self._journal_error(error)
            raise

    def close(self) -> None:
        """Undo everything; a second time nothing happens."""
        with self._home():
            self._stack.close()
        self.ended = True
        self._on_end()

    def _home(self) -> contextlib.AbstractContextManager[None]:
        return entered(self.files.netns) if self.files.netns else contextlib.nullcontext()

    def _start(self, stack: contextlib.ExitStack) -> None:
        options, profile, journal = self._options, self._profile, self._journal
        data_ports = (profile.udp_port, *UDP_PORTS)
        transport = factory.make(options.transport, profile, options.seed, options.settings, time.monotonic_ns())
        driver = self._driver = Driver(
            self._loop,
            profile.ports,
            profile.mtu,
            data_udp_ports=data_ports,
            probe_udp_ports=(prober.UDP_PORT,),
            ring_bytes=options.ring_bytes,
            stall_ns=profile.base_rtt_ns // _STALLS_A_ROUND_TRIP,
            mac_control=bool(profile.pfc_classes),
        )
        stack.callback(driver.close)
        interfaces = [port.interface for port in profile.ports]
        stack.enter_context(StackGuard(interfaces, (*data_ports, prober.UDP_PORT)))
        host = self._host = HostNic(
            profile,
            transport,
            journal.write_at,
            transport_name=options.transport,
            clock=time.monotonic_ns,
            port_counts=lambda: {number: counts._asdict() for number, counts in driver.counts().items()},
            on_shutdown=lambda: self._loop.call_soon(self.close),
            now_ns=time.monotonic_ns(),
            sample_ns=options.sample_ns,
            lost=lambda: journal.lost,
        )
        host.on_sample = self._write_cpu
        host.sample_packets(str(options.settings.get("dialect", "")))
        stack.callback(lambda: host.close(time.monotonic_ns()))
        server = ControlServer(
            Path(self.files.socket), driver, self._control, line_bytes_max=LINE_BYTES_MAX, forget=host.forget
        )
        stack.callback(server.close)
        host.guest = UverbsServer(
            profile, transport, options.transport, driver, journal=journal.write_at, clock=time.monotonic_ns
        )
        driver.serve(host, self._fail)

    def _control(self, request: Mapping[str, Any], reply: Reply) -> None:
        self._host.control(request, time.monotonic_ns(), reply)

    def _write_cpu(self, now_ns: int) -> None:
        wall_ns = now_ns - self._started_ns
        spent = {"process_ns": time.process_time_ns(), "wall_ns": wall_ns, "late_ns": self._driver.late_ns}
        waited = waited_ns()
        self._journal.write_at(now_ns, "cpu", spent if waited is None else {**spent, "wait_ns": waited})

    def _fail(self, error: Exception) -> None:
        """Something of this host has raised an error: the host ends, the others of the process go on."""
        self.failed = True
        self._journal_error(error)
        traceback.print_exception(error)
        self.close()

    def _journal_error(self, error: Exception) -> None:
        self._journal.write("error", message=f"{type(error).__name__}: {error}", fatal=True)


def _wake_on_signals(loop: Loop, stack: contextlib.ExitStack) -> None:
    """A signal wakes the loop through a descriptor; nothing is done inside the handler. All but SIGCONT end it:
    a stopped process that goes on would wait for its next timer longer by the length of the stop, because Linux
    begins `select` again with the time that was left when it was interrupted.
    """
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for number in (signal.SIGINT, *ending(), signal.SIGCONT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def heard() -> None:
        if set(os.read(read, 1024)) != {signal.SIGCONT}:
            loop.stop()

    loop.add_reader(read, heard)

    def undo() -> None:
        signal.set_wakeup_fd(-1)
        os.close(read)
        os.close(write)

    stack.callback(undo)


def _moderation_ns(profile: profiles.NicProfile) -> int:
    """A sixteenth of the base round trip, half of what pacing may run ahead; none where it would save nothing."""
    moderation_ns = min(profile.base_rtt_ns // 16, profile.jitter_ns)
    return moderation_ns if moderation_ns >= _WORTHWHILE_NS else 0


@cache
def _schedstat() -> int:
    return os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC)


def waited_ns() -> int | None:
    """How long this thread has been ready to run without a processor, since it began; None where Linux does not say.

    The second number of schedstat (Documentation/scheduler/sched-stats.rst).
    """
    try:
        return int(os.pread(_schedstat(), 256, 0).split()[1])
    except (OSError, IndexError, ValueError):
        return None


def _keep_memory() -> None:
    """Have the C library keep memory that is freed: large arrays of workloads come and go with each round, and asking
    the kernel for them again costs a page fault per 4 KiB."""
    libc = ctypes.CDLL(None)
    libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
    libc.mallopt(_M_TRIM_THRESHOLD, 1 << 30)


def _die_with_parent() -> bool:
    """Ask the kernel for SIGTERM when the parent ends; False if it has ended already."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    return os.getppid() == parent and parent != 1

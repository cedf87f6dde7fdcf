"""The agent: one process in each host's network namespace that is that host's NIC and runs its workloads."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from common.journal import Journal
from common.server import ControlServer, Reply
from endpoint import factory, prober
from endpoint import profile as profiles
from endpoint.host import SAMPLE_INTERVAL_NS, HostNic
from endpoint.nic.dialect import UDP_PORTS
from endpoint.packet_sockets.driver import RING_BYTES, Driver
from endpoint.packet_sockets.stackguard import StackGuard
from endpoint.uverbs.server import UverbsServer

LINE_BYTES_MAX = 16 << 20
"""The longest request: offers of many queue pairs, and denylists, are long."""
_PR_SET_PDEATHSIG = 1
_STALLS_A_ROUND_TRIP = 4  # every host is late by less than a quarter of a base round trip now and then
_WORTHWHILE_NS = 1_000_000  # a sleep of less than this saves too few wake-ups to be worth its delay


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of `python -m endpoint agent`: files, transport and its settings, seed, receive ring per port."""

    profile: str
    socket: str
    journal: str
    journal_bytes: int = 0
    """Above 0: the journal is two files of at most so many bytes each."""
    sample_ns: int = SAMPLE_INTERVAL_NS
    transport: str = "mrc"
    seed: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    ring_bytes: int = RING_BYTES
    moderation_ns: int | None = None
    exit_with_parent: bool = False


def run(options: AgentOptions) -> int:
    """Run until SIGTERM, SIGINT or the `shutdown` operation. Everything that was started is undone on the way out."""
    if options.exit_with_parent and not _die_with_parent():
        return 0
    profile = profiles.load(options.profile)
    # A full disk must not end a NIC: lines that it does not take are counted, and make a run unknown.
    journal = Journal(options.journal, profile.host, bytes_max=options.journal_bytes, lossy=True)
    started_ns = time.monotonic_ns()
    journal.write_process("agent")
    with contextlib.ExitStack() as stack:
        stack.callback(journal.close)
        try:
            agent = _Agent(options, profile, journal, stack)
            agent.run(started_ns)
        except Exception as error:
            journal.write("error", message=f"{type(error).__name__}: {error}", fatal=True)
            if isinstance(error, (OSError, ValueError)):
                raise
            traceback.print_exc()
            return 1
    return 0


class _Agent:
    def __init__(
        self, options: AgentOptions, profile: profiles.NicProfile, journal: Journal, stack: contextlib.ExitStack
    ) -> None:
        self._journal = journal
        data_ports = (profile.udp_port, *UDP_PORTS)
        transport = factory.make(options.transport, profile, options.seed, options.settings, time.monotonic_ns())
        self._driver = Driver(
            profile.ports,
            profile.mtu,
            data_udp_ports=data_ports,
            probe_udp_ports=(prober.UDP_PORT,),
            ring_bytes=options.ring_bytes,
            moderation_ns=_moderation_ns(profile) if options.moderation_ns is None else options.moderation_ns,
            stall_ns=profile.base_rtt_ns // _STALLS_A_ROUND_TRIP,
            mac_control=bool(profile.pfc_classes),
        )
        stack.callback(self._driver.close)
        interfaces = [port.interface for port in profile.ports]
        stack.enter_context(StackGuard(interfaces, (*data_ports, prober.UDP_PORT)))
        self._host = HostNic(
            profile,
            transport,
            journal.write_at,
            transport_name=options.transport,
            clock=time.monotonic_ns,
            port_counts=lambda: {number: asdict(counts) for number, counts in self._driver.counts().items()},
            on_shutdown=self._driver.stop,
            now_ns=time.monotonic_ns(),
            sample_ns=options.sample_ns,
            lost=lambda: journal.lost,
        )
        self._host.sample_packets(str(options.settings.get("dialect", "")))
        stack.callback(lambda: self._host.close(time.monotonic_ns()))
        server = ControlServer(
            Path(options.socket), self._driver, self._control, line_bytes_max=LINE_BYTES_MAX, forget=self._host.forget
        )
        stack.callback(server.close)
        self._host.guest = UverbsServer(
            profile, transport, options.transport, self._driver, journal=journal.write_at, clock=time.monotonic_ns
        )
        self._wake_on_signals(stack)
        print(f"ready host={profile.host} socket={options.socket} pid={os.getpid()}", flush=True)

    def run(self, started_ns: int) -> None:
        def write_cpu(now_ns: int) -> None:
            wall_ns = now_ns - started_ns
            spent = {"process_ns": time.process_time_ns(), "wall_ns": wall_ns, "late_ns": self._driver.late_ns}
            waited = waited_ns()
            self._journal.write_at(now_ns, "cpu", spent if waited is None else {**spent, "wait_ns": waited})

        self._host.on_sample = write_cpu
        # What exists now stays: the collector need not look at it again and again. Packets are made and dropped by the
        # thousand without cycles; looking after every 700 objects would cost about 5 % of a packet's time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        self._driver.run(self._host)

    def _control(self, request: Mapping[str, Any], reply: Reply) -> None:
        self._host.control(request, time.monotonic_ns(), reply)

    def _wake_on_signals(self, stack: contextlib.ExitStack) -> None:
        """A signal wakes the loop through a descriptor; nothing is done inside the handler. All but SIGCONT end it:
        a stopped process that goes on would wait for its next timer longer by the length of the stop, because Linux
        begins `select` again with the time that was left when it was interrupted.
        """
        read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

        def heard() -> None:
            if set(os.read(read, 1024)) != {signal.SIGCONT}:
                self._driver.stop()

        self._driver.add_reader(read, heard)

        def undo() -> None:
            signal.set_wakeup_fd(-1)
            os.close(read)
            os.close(write)

        stack.callback(undo)


def _moderation_ns(profile: profiles.NicProfile) -> int:
    """A sixteenth of the base round trip, half of what pacing may run ahead; none where it would save nothing."""
    moderation_ns = min(profile.base_rtt_ns // 16, profile.jitter_ns)
    return moderation_ns if moderation_ns >= _WORTHWHILE_NS else 0


def waited_ns() -> int | None:
    """How long this thread has been ready to run without a processor, since it began; None where Linux does not say.

    The second number of schedstat (Documentation/scheduler/sched-stats.rst).
    """
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None


def _die_with_parent() -> bool:
    """Ask the kernel for SIGTERM when the parent ends; False if it has ended already."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    return os.getppid() == parent and parent != 1

"""The simulated world: the same endpoints, the same compiled programs and the same plan, in virtual time.

No root and no network: hosts and switches take the clock as an argument, in one process. Programs of a scenario are
processes beside it, for which the clock waits. A seed repeats a run to the last packet.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, assert_never

from common import uverbs
from common.files import named, open_growing
from common.interrupts import held_back
from common.journal import Journal
from endpoint import Decoder, HostNic, factory
from endpoint.nic import dialect
from endpoint.nic.dialect import Dialect
from endpoint.uverbs import ANSWER_S, ProgramStuckError, SteppedUverbs
from running.directory import RunDirectory
from running.transport_choice import TransportChoice
from running.worlds.host import SimulatedHost
from running.worlds.profiles import HostProfiles
from running.worlds.virtual_time import MakeFabric, SimulatedFabric, VirtualTime
from running.worlds.world import Process
from switch import NO_PORT, Fabric, Fate, NodeKind, PacketRecord, in_order
from switch.native import NativeFabric
from topo import Host, Node, Plan, Switch
from topo.address import host_address
from topo.fault import (
    ActiveFaults,
    CarrierChange,
    Change,
    DenialChange,
    PortChange,
    Provisioning,
    RoutingChange,
    SwitchChange,
)
from topo.graph import PortRef, peer, ports

# docs/contracts.md ("Packet log") is the format. Lines are written as the run goes on, in order of time, so that memory
# holds no more than what happened since the last look.
Line = dict[str, Any]

FORMAT, VERSION = "mrclab packet log", 1
LOOKS = 256  # in the recorded stretch: how often lines are written


class PacketLog:
    """Writes what a fabric records to a file. `switches` and `hosts` are in the order of their numbers there."""

    def __init__(
        self,
        plan: Plan,
        fabric: Fabric,
        switches: Iterable[Switch],
        hosts: Iterable[Host],
        path: Path,
        dialect: Dialect,
        start_ns: int,
        stop_ns: int,
    ) -> None:
        """Raises OSError when there is no room for the file, or there is one."""
        fabric.record_packets(start_ns, stop_ns)
        self._fabric = fabric
        names = {host_address(plan, host).packed: host.name for host in plan.hosts()}
        trimmed = (plan.dscp.trimmed, plan.dscp.trimmed_lasthop)
        self._decode = Decoder(names, trimmed, plan.packets.udp_port, dialect).fields
        nodes: dict[tuple[NodeKind, int], Node] = {(NodeKind.SWITCH, i): node for i, node in enumerate(switches)}
        nodes |= {(NodeKind.HOST, i): node for i, node in enumerate(hosts)}
        self._names = {at: str(node) for at, node in nodes.items()}
        self._numbers = {name: at for at, name in self._names.items()}
        self._peers = {(*at, ref.port): peer(plan, ref) for at, node in nodes.items() for ref in ports(plan, node)}
        self._waiting: list[PacketRecord] = []  # later than what is written
        self._under_way: dict[tuple[NodeKind, int, int, int], int] = {}  # node, port and time of arrival -> packet
        self._packets = 0
        self._lines = 0
        self.start_ns, self.stop_ns = start_ns, stop_ns
        self._file = path.open("x", encoding="utf-8")
        self._write({"format": FORMAT, "version": VERSION, "start_ns": self.start_ns, "stop_ns": self.stop_ns})

    @property
    def look_ns(self) -> int:
        """How much time may pass between two calls of `write`."""
        return max((self.stop_ns - self.start_ns) // LOOKS, 1)

    def write(self, before_ns: int) -> None:
        """Everything before this time, which the fabric has reached. OSError names the file."""
        with named(self._file.name), held_back():  # or `close` would not know which lines there are
            self._waiting += self._fabric.take_records()
            ready = in_order(record for record in self._waiting if record.t_ns < before_ns)
            self._waiting = [record for record in self._waiting if record.t_ns >= before_ns]
            for record in ready:
                self._write(self._line(record))
            self._lines += len(ready)
            self._file.flush()

    def close(self, now_ns: int) -> None:
        """Write what is left, also of a run that was broken off, and how many lines there are."""
        self.write(now_ns + 1)
        with named(self._file.name):
            self._write({"end_ns": min(now_ns, self.stop_ns), "lines": self._lines})
            self._file.close()

    def _line(self, record: PacketRecord) -> Line:
        there = self._peers.get((record.kind, record.node, record.port))
        sent = record.fate in (Fate.SENT, Fate.LOST)
        return {
            "t_ns": record.t_ns,
            "node": self._names[record.kind, record.node],
            "fate": record.fate.name.lower(),
            "packet": self._number(record, there),
            "port_in": None if record.port_in == NO_PORT else record.port_in,
            "port": None if record.port == NO_PORT else record.port,
            "to": None if there is None else str(there.node),
            "queued_ns": record.queued_ns,
            "arrives_ns": record.arrives_ns if sent else None,
            "depth": record.depth,
            "priority": record.priority,
            "bytes": record.length,
            "bytes_in": record.length_in,
            **self._decode(record.head),
        }

    def _number(self, record: PacketRecord, there: PortRef | None) -> int:
        """The packet's number: the one it had at the place before, where the log has seen it."""
        came = (record.kind, record.node, record.port_in, record.queued_ns)
        number = self._under_way.pop(came, None)
        if number is None:
            self._packets = number = self._packets + 1
        if record.fate is Fate.SENT and there is not None:
            self._under_way[(*self._numbers[str(there.node)], there.port, record.arrives_ns)] = number
        return number

    def _write(self, line: Line) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")


END_S = 30.0
"""Real time that a process may take to end, once it was asked to."""
QUIET_S = 60.0
COMPUTING = 0.01
"""A process without a NIC that uses less than this share of a processor for `QUIET_S` of real time hangs."""


class SteppedProcess:
    """`running.worlds.world.Process`. Its output goes to a file."""

    def __init__(self, host: str, argv: Sequence[str], log: Path, entrance: SteppedUverbs, settle: Callable[[], None]):
        """`settle` serves the programs that run, before anything is said of them. OSError if it cannot be started."""
        self._settle = settle
        self._place, theirs = entrance.admit(log.stem)
        # The kernel ends the process with this one, however this one ends.
        words = ["setpriv", "--pdeathsig", "TERM", "--", *argv]
        environment = {**os.environ, uverbs.STEPPED: f"{theirs.fileno()}:{host}"}
        with theirs, os.fdopen(open_growing(log, emptied=True), "wb") as output:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=[theirs.fileno()],
            )

    def poll(self) -> int | None:
        """Its exit status; None while it runs. One that has closed its NIC needs no more virtual time to end, and is
        waited for as long as it computes. ProgramStuckError when it does not."""
        self._settle()
        while self._place.gone:
            before_s = computed_s(self._process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(QUIET_S)
            if computed_s(self._process.pid) - before_s < COMPUTING * QUIET_S:
                raise ProgramStuckError(
                    f"program {self._place.name} has no NIC any more, and neither ended nor computed for {QUIET_S:g} s:"
                    " virtual time cannot go on (docs/uverbs.md)"
                )
        return None

    def terminate(self) -> None:
        self._process.terminate()

    def end(self) -> None:
        """Make sure that it is gone."""
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def computed_s(pid: int) -> float:
    """Processor time of a process, its children, and so on; those that have ended count as well (proc(5))."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return 0.0
    own_s = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own_s + sum(computed_s(int(child)) for child in " ".join(lists).split())


USUAL_GC_THRESHOLDS = gc.get_threshold()


@contextmanager
def collecting() -> Iterator[None]:
    """Look for garbage seldom, while a world is made and run. A world's objects stay, and those of a run are freed by
    their references: 200,000 packets left no cycle behind. The usual search for cycles takes 6 % of a run's time with a
    thousand hosts, and a third of the time to make them."""
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*USUAL_GC_THRESHOLDS)
        gc.collect(1)  # a world is full of cycles


class SimulatedWorld:
    """`running.worlds.world.World` in virtual time, from 0 on."""

    lossy: ClassVar = False
    """Whether time goes on when the disk takes no line of a journal."""

    def __init__(
        self,
        plan: Plan,
        transport: TransportChoice,
        seed: int,
        directory: RunDirectory,
        tell: Callable[[str], None],
        make_fabric: MakeFabric | None = None,
        *,
        answer_s: float = ANSWER_S,
    ) -> None:
        """`answer_s` is how much real time a program may take between two waits.

        Where the transport's payload is counted, the fabric that `make_fabric` makes must allow this.
        """
        self._answer_s = answer_s
        self.plan = plan
        self.active = ActiveFaults(plan, self)
        tell(f"simulating {plan.switch_count} switches and {plan.host_count} hosts in virtual time")
        made = make_fabric or partial(NativeFabric, counted=transport.counted)
        self.fabric = SimulatedFabric(plan, seed, made, self._owns, transport.programs())
        self.time = self._time()
        self._directory = directory
        self._processes: list[SteppedProcess] = []
        self._switch_journal = Journal(directory.journal("switches"), "switches", self.now_ns, lossy=self.lossy)
        self._journals: list[Journal] = [self._switch_journal]
        self._profiles = HostProfiles(plan)
        self._hosts = {
            host: SimulatedHost(host, number, self.time, self.fabric.fabric, plan.pace)
            for host, number in self.fabric.host_numbers.items()
            if self._owns(host)
        }
        for host, simulated in self._hosts.items():
            simulated.attach(*self._nic(host, simulated.clock, transport, seed, directory))
        numbers = self.fabric.host_numbers
        residents = {
            numbers[host]: resident.virtual for host, resident in self._hosts.items() if resident.virtual is not None
        }
        self.time.settle(residents, self._settle)
        self._packet_log: PacketLog | None = None
        self._sample_interval_ns = self._sample_due_ns = 0
        self._dialect_text = str(transport.settings.get("dialect", ""))
        self._dialect = dialect.named(self._dialect_text)
        self.clients: Mapping[str, SimulatedHost] = {host.name: simulated for host, simulated in self._hosts.items()}

    def _owns(self, node: Node) -> bool:
        """Whether a node is this process's: all are, where one process runs the world."""
        return True

    def _time(self) -> VirtualTime:
        return VirtualTime(self.fabric.fabric, self.plan.base_rtt_ns)

    def _nic(
        self, host: Host, clock: Callable[[], int], transport: TransportChoice, seed: int, directory: RunDirectory
    ) -> tuple[HostNic, SteppedUverbs]:
        own = self._profiles.of(host)
        journal = Journal(directory.journal(host.name), host.name, clock, lossy=self.lossy)
        self._journals.append(journal)
        journal.write_process("agent", pid=0, realtime_ns=0)
        nic = factory.make(transport.agent, own, seed, transport.settings, 0, counted=transport.counted)
        edged = transport.edged(nic)
        made = HostNic(own, edged, journal.write_at, transport_name=transport.agent, clock=clock, now_ns=0)
        entrance = SteppedUverbs(own, nic, transport.agent, journal=journal.write_at, answer_s=self._answer_s)
        return made, entrance

    # running.worlds.world.World

    def now_ns(self) -> int:
        return self.time.now_ns

    def wait_until(self, t_ns: int) -> None:
        while self._sample_interval_ns and self._sample_due_ns <= t_ns:
            self._run_until(self._sample_due_ns)
            self._journal_switches()
            self._sample_due_ns += self._sample_interval_ns
        self._run_until(t_ns)

    def sample_switches(self, interval_ns: int) -> None:
        self._sample_interval_ns = interval_ns
        self._sample_due_ns = self.time.now_ns + interval_ns

    def _run_until(self, t_ns: int) -> None:
        log = self._packet_log
        if log is not None:  # the log is written piece by piece while it grows
            while (look_ns := max(self.time.now_ns, log.start_ns) + log.look_ns) < min(t_ns, log.stop_ns):
                self.time.run_until(look_ns)
                log.write(look_ns)
        self.time.run_until(t_ns)
        if log is not None:
            log.write(t_ns)

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        for switch in self.fabric.switches.values():
            switch.reconverge(dead_links)

    def verify(self) -> int:
        return sum(switch.differences() for switch in self.fabric.switches.values())

    def sample_packets(self) -> None:
        """Have every host sample packets, as on real links they always do."""
        for simulated in self._hosts.values():
            simulated.nic.sample_packets(self._dialect_text)

    def record_packets(self, start_ns: int, stop_ns: int, path: Path) -> None:
        self.sample_packets()
        fabric = self.fabric
        switches, hosts = self.plan.switches(), fabric.host_numbers
        self._packet_log = PacketLog(self.plan, fabric.fabric, switches, hosts, path, self._dialect, start_ns, stop_ns)

    def spawn(self, host: str, argv: Sequence[str], log: str) -> Process:
        """The process computes in no time at all: time stands still until it waits in a call of `mrclab`."""
        simulated = next(simulated for node, simulated in self._hosts.items() if node.name == host)
        simulated.nic.guest = simulated.uverbs  # not before: a guest is asked after every packet
        log_file = self._directory.log(log)
        log_file.parent.mkdir(exist_ok=True)
        process = SteppedProcess(host, argv, log_file, simulated.uverbs, self._settle)
        self._processes.append(process)
        return process

    def reach(self, host: str, other: str, *, front_end: bool) -> str:
        return other

    def listens(self, host: str) -> bool:
        return True

    def _settle(self) -> None:
        """Serve the programs that run, in the order of their hosts, until all of them wait."""
        for host in self._hosts.values():
            host.settle()

    def _journal_switches(self) -> None:
        for node, switch in self.fabric.switches.items():
            self._journal_switch(node, switch.sample())

    def _journal_switch(self, node: Switch, rows: list[dict[str, int]]) -> None:
        self._switch_journal.write("sample", node=node.name, device=node.name, ports=rows)

    def is_up(self, *, settled: bool = False) -> bool:
        return True

    def close(self) -> None:
        """Ends every program and NIC, and journals what the switches counted: their totals, once."""
        for process in self._processes:
            process.end()
        for host in self._hosts.values():
            host.nic.close(self.time.now_ns)
        self._journal_switches()
        for journal in self._journals:
            journal.close()
        if self._packet_log is not None:
            self._packet_log.close(self.time.now_ns)
        self.fabric.fabric.close()

    # topo.fault.FaultableFabric

    def refusal(self, change: Change) -> str | None:
        return None

    def carry_out(self, change: Change) -> None:
        match change:
            case PortChange(ref=ref):
                self.fabric.set_port(ref, change.state)
                if isinstance(ref.node, Host) and ref.node in self._hosts:
                    self._hosts[ref.node].set_port(ref.port, change.state)
            case SwitchChange() if change.switch in self.fabric.switches:
                self.fabric.switches[change.switch].set_state(change.state)
            case Provisioning() if change.switch in self.fabric.switches:
                self.fabric.switches[change.switch].provision()
            case DenialChange() if change.host in self._hosts:
                self._hosts[change.host].set_denied(change)
            case SwitchChange() | Provisioning() | DenialChange():
                pass  # another process has this switch or host
            case CarrierChange():
                pass  # a cable has no light here: the ports at its ends have been told already
            case RoutingChange():
                pass  # tables are static; the runner plays the baseline's routing protocol
            case _:
                assert_never(change)

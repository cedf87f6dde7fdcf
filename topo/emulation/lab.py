"""The running lab: up, down, look things up, start processes in it, inject faults and undo them."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from topo.emulation import hosts, labname, namespace, process, state
from topo.emulation.bmv2 import Bmv2Driver
from topo.emulation.doctor import missing_programs
from topo.emulation.driver import LabSite, Progress, SwitchDriver
from topo.emulation.embedded import EmbeddedDriver
from topo.emulation.faults import LabFabric, LabRecord
from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.emulation.linux import LinuxDriver
from topo.emulation.state import LabError, LabRunningError, LabState, NoLabError
from topo.emulation.wiring import steer_commands, unsteer_commands
from topo.fault import ActiveFaults
from topo.graph import PortRef, port_count, ports
from topo.node import Host, Node, Switch
from topo.path import Path as FabricPath
from topo.plan import Plan, SwitchKind
from topo.planfile import check_plan

DRIVERS: Mapping[SwitchKind, type[SwitchDriver]] = {
    "embedded": EmbeddedDriver,
    "bmv2": Bmv2Driver,
    "linux": LinuxDriver,
}
"""The kinds of switch that a lab can start, by the name in a plan."""
PORTS_MAX = 509
EMULATED_SWITCHES_MAX = 1000  # the paper plan has 6,144: for drawing and counting only

_SWITCH_GRACE_S = 15.0  # a switch process closes up to a thousand packet sockets, and the kernel is slow at each

Provision = Callable[["Lab", Sequence[Switch]], object]


def _silent(what: str, done: int, total: int) -> None:
    """A progress callback that does nothing."""


class Lab:
    """A lab on this machine. Make one with `Lab.up`, or join a running one with `Lab.attach`.

    Both mean the lab of this name, by default the chosen one (`topo.emulation.labname`).
    """

    def __init__(self, record: LabState, provision: Provision | None = None, journals: Path | None = None) -> None:
        self.record = record
        self.name = LabName(record.name)
        self.root = self.name.root
        self.plan = record.plan
        self._provision = provision
        self._processes: list[subprocess.Popen[bytes]] = []
        bound = bool(record.run) and record.pid == os.getpid()
        site = LabSite(record.plan, self.root, record.token, record.details, journals, self.name, bound)
        self.site = site
        kinds = {record.plan.kind_of(switch) for switch in record.plan.switches()}
        self.drivers = {kind: DRIVERS[kind](site) for kind in DRIVERS if kind in kinds}
        self.active = active = ActiveFaults(site.plan, LabFabric(site, self.driver, self.provision), LabRecord(site))
        self.inject, self.undo, self.heal, self.faults = active.inject, active.undo, active.heal, active.faults

    # --- life cycle ---------------------------------------------------------------------------------------

    @classmethod
    def up(
        cls,
        plan: Plan,
        *,
        provision: Provision | None = None,
        progress: Progress | None = None,
        journals: Path | None = None,
        name: LabName | None = None,
        run: str = "",
        sealed: bool = False,
    ) -> Lab:
        """Build and start everything, or leave nothing behind. LabRunningError when this lab is there already, unless
        it is abandoned.

        `provision(lab, switches)` installs the P4 tables of these switches; also after a reboot. Without it P4
        switches stay empty. `journals` is a directory for the switch process's journal and the faults'. `run` is the
        scenario that the lab is for, if it is for one. `sealed`: no other process may attach, because the lab's faults
        are hidden.
        """
        name = name or labname.chosen()
        root = name.root
        _check(plan)
        with state.locked(root):
            existing = state.read_record(root)
            if existing is not None and not existing.abandoned:
                raise LabRunningError(there_already(existing))
            if existing is not None:
                _tear_down(root, keep_lock=True)
            record = state.new_record(plan, secrets.token_hex(8), name, run, sealed=sealed)
            foreign = [name for name in record.namespaces if namespace.exists(name)]
            if foreign:
                raise LabError(
                    f"network namespaces {', '.join(foreign[:5])}{' …' if len(foreign) > 5 else ''} exist and are not"
                    " this lab's: rename or delete them (ip netns del NAME)"
                )
            if journals is not None:
                record.details["journals"] = str(journals)
            state.write_record(record, root)  # from here on `down` knows what to remove
            try:
                lab = cls(record, provision, journals)
                lab._build(progress or _silent)
            except BaseException:
                _tear_down(root)
                raise
            return lab

    @classmethod
    def attach(cls, *, provision: Provision | None = None, name: LabName | None = None) -> Lab:
        """The running lab, from any process. LabError when there is none, or when it is sealed."""
        name = name or labname.chosen()
        record = state.read_record(name.root)
        if record is None:
            raise NoLabError(state.none_running(name))
        if record.phase != "running":
            raise LabError(
                f"{name.describe()} is not ready: {record.describe()}; `down{name.option()}` removes what there is"
            )
        if record.sealed:
            raise LabError(
                f"{name.describe()} is an incident: its faults are hidden, and it has its own tools"
                " (./lab incident --help); `./lab incident end` ends it"
            )
        journals = record.details.get("journals")
        return cls(record, provision, Path(journals) if journals else None)

    def is_up(self, *, settled: bool = False) -> bool:
        """Whether this lab is still on record: another process may have taken it down, or brought up another lab.

        `settled` waits for whoever is changing the lab, such as a `down`, which takes the record away at its end.
        """
        if settled:
            with state.locked(self.root, wait=True):
                return self.is_up()
        remains = state.read_remains(self.root)
        return remains is not None and remains.token == self.record.token

    def down(self) -> None:
        """End this lab unless another process does so; reap the processes started through this object."""
        with state.locked(self.root, wait=True):
            if self.is_up():
                _tear_down(self.root)
        for popen in self._processes:
            popen.wait()  # it has ended; this only reaps it

    def _build(self, progress: Progress) -> None:
        from topo.emulation.network import network  # Mininet: slow to import, and `attach` does without

        plan = self.plan
        (self.root / "logs").mkdir(mode=0o700)  # of the owner's programs: not for other users
        (self.root / "agents").mkdir(mode=0o755)  # the page's server, which has no rights, reads the journals
        network(plan, self.name).create(progress)
        for index, host in enumerate(plan.hosts(), 1):
            hosts.configure(self.site, host)
            progress("hosts", index, plan.host_count)
        hosts.write_profiles(self.site)
        for kind, driver in self.drivers.items():
            driver.start([switch for switch in plan.switches() if plan.kind_of(switch) == kind], progress)
        hosts.check_links(self.site)
        state.write_record(self.record, self.root)  # the drivers have added their details
        self.provision([switch for switch in plan.switches() if self.p4runtime(switch)])
        self.record.phase = "running"
        state.write_record(self.record, self.root)

    def provision(self, switches: Sequence[Switch]) -> None:
        """Install the static tables of these P4 switches, by the function given to `up` or `attach`."""
        if self._provision is not None and switches:
            self._provision(self, switches)

    # --- where things are -----------------------------------------------------------------------------------

    @property
    def controller_journal(self) -> Path | None:
        """The file in which the controller journals what it does, in a lab with journals."""
        return None if self.site.journals is None else self.site.journals / "controller.jsonl"

    def driver(self, switch: Switch) -> SwitchDriver:
        """The driver of this switch's kind."""
        return self.drivers[self.plan.kind_of(switch)]

    def netns(self, node: Node) -> Path:
        """The path of a node's network namespace."""
        return namespace.path_of(self.name.netns(node))

    def profile(self, host: Host) -> Path:
        """The path of a host's NIC profile."""
        return self.root / "profiles" / f"{host}.json"

    def agent_socket(self, host: Host) -> Path:
        """Where a host's agent must listen for control."""
        return self.root / "agents" / f"{host}.sock"

    def p4runtime(self, switch: Switch) -> tuple[str, int] | None:
        """(gRPC target, device id), or None for a switch without P4Runtime. LabError for another user's lab."""
        self._check_owner()
        return self.driver(switch).p4runtime(switch)

    @property
    def switch_control(self) -> str | None:
        """HOST:PORT of the embedded switches' control socket, if there are any. LabError when it has ended, and for
        another user's lab."""
        self._check_owner()
        driver = self.drivers.get("embedded")
        return driver.control_address if isinstance(driver, EmbeddedDriver) else None

    @property
    def closed(self) -> str:
        """Why the switches do not answer this user; "" for root, and for the user who called sudo."""
        sockets = [self.root / name for name in ("switch", "bmv2") if (self.root / name).exists()]
        if all(os.access(folder, os.X_OK) for folder in sockets):
            return ""
        owner = self.record.owner
        those = "root" if owner == "root" else f"{owner} and root"
        return (
            f"{self.name.describe()} belongs to {owner}, and its switches answer {those} only: call this command with"
            " sudo, or bring up a lab of your own with --name"
        )

    def _check_owner(self) -> None:
        if why := self.closed:
            raise LabError(why)

    def check_switches(self) -> None:
        """LabError when the process of the embedded switches has ended: nothing is forwarded then."""
        driver = self.drivers.get("embedded")
        if isinstance(driver, EmbeddedDriver):
            driver.check()

    def counters(self, node: Node) -> dict[int, dict[str, int]]:
        """Per port rx_packets, rx_bytes, tx_packets, tx_bytes of the interface since it was made."""
        by_name = hosts.interface_counters(self.name.netns(node))
        return {ref.port: by_name[ref.interface] for ref in ports(self.plan, node)}

    def carrier(self, ref: PortRef) -> bool:
        """Whether both a port and its cable are up."""
        with namespace.entered(self.name.netns(ref.node)):
            return namespace.carrier(ref.interface)

    # --- processes ------------------------------------------------------------------------------------------

    def popen(self, node: Node, argv: Sequence[str], log: str | Path | None = None) -> subprocess.Popen[bytes]:
        """A process in a node's namespace, output in the file `log` or the lab's log of that name; `down` ends it."""
        name = log or f"{node}-{Path(argv[0]).name}"
        path = name if isinstance(name, Path) else self.root / "logs" / f"{name}.log"
        netns, bound = self.netns(node), self.site.bound
        popen = process.spawn(argv, token=self.record.token, log=path, netns=netns, bound=bound)
        self._processes.append(popen)
        return popen

    def run(self, node: Node, argv: Sequence[str], timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """A command in a node's namespace, to its end."""
        words = ["nsenter", f"--net={self.netns(node)}", *argv]
        return subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=False)

    def start_agents(self, hosts_: Sequence[Host], argv: Sequence[str]) -> tuple[subprocess.Popen[bytes], Path]:
        """The agents of some hosts in one process, which must listen on the `agent_socket` of each; and its log."""
        log = self.root / "logs" / f"agents-{hosts_[0]}.log"
        started = process.spawn(argv, token=self.record.token, log=log, bound=self.site.bound, device=True)
        self._processes.append(started)
        return started, log

    # --- kernel paths -----------------------------------------------------------------------------------------

    def steer(self, path: FabricPath) -> None:
        """The kernel of the path's source sends everything for its destination along it, until `unsteer`. LabError when
        the plan has no SRv6."""
        if self.plan.encapsulation != "srv6":
            raise LabError(f"plan {self.plan.name!r} has no SRv6: there is no uSID list to steer by")
        namespace.run_ip(steer_commands(self.plan, path), self.name.netns(path.source))

    def unsteer(self, source: Host, destination: Host) -> None:
        """Undo `steer`; nothing happens when nothing was steered."""
        namespace.run_ip(unsteer_commands(self.plan, source, destination), self.name.netns(source), force=True)

    # --- status -----------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """What `status --format json` prints."""
        plan, record, closed = self.plan, self.record, self.closed
        silent = [
            name
            for kind, driver in self.drivers.items()
            if not closed
            for name in driver.alive([s for s in plan.switches() if plan.kind_of(s) == kind])
        ]
        missing = [name for name in record.namespaces if not namespace.exists(name)]
        return {
            "name": record.name,
            "phase": record.phase,
            "plan": plan.name,
            "owner": record.owner,
            "run": record.run,
            "hosts": plan.host_count,
            "switches": plan.switch_count,
            "started_by": {"pid": record.pid, "command": record.command, "alive": record.starter_alive},
            "started_realtime_ns": record.started_realtime_ns,
            "closed": closed,
            "processes": len(process.find(record.token)) if record.token else None,
            "switches_silent": silent,
            "namespaces_missing": missing,
            "sealed": record.sealed,
            "faults": [f"{f.verb} {f.target}" + ("" if f.value is None else f" {f.value:g}") for f in self.faults()],
            "switch_control": None if silent or closed else self.switch_control,
        }


def there_already(existing: LabState) -> str:
    """Why a lab of this name cannot come up, and what can be done."""
    name = LabName(existing.name)
    which = "a lab" if name == DEFAULT_LAB else f"a lab of the name {name}"
    return f"{which} is there already: {existing.describe()}; `down{name.option()}` ends it, `--name` makes another"


def down(name: LabName | None = None, *, wait: bool = False) -> bool:
    """End a lab, by default the chosen one, from any state and process; labs of other names stay as they are.

    False: there was none. LabError while an `up` is at work.

    Ends every process that carries the lab's token or sits in one of its namespaces, deletes the namespaces, and
    with them every link, then the files.
    """
    root = (name or labname.chosen()).root
    if not root.exists():
        return False
    with state.locked(root, wait=wait):
        there_was_one = state.read_remains(root) is not None
        _tear_down(root)
        return there_was_one


def _tear_down(root: Path, *, keep_lock: bool = False) -> None:
    """`down`, for a caller that holds the lock."""
    remains = state.read_remains(root)
    if remains is None:
        state.remove(root, keep_lock=keep_lock)
        return
    ours = process.ancestry(os.getpid())
    names = [name for name in remains.namespaces if namespace.exists(name)]
    for _ in range(3):  # a process found may have been starting another
        targets = {*process.find(remains.token), *namespace.pids(names)} - ours
        if not targets:
            break
        switches = targets & {remains.switch_pid}
        left = process.end(targets - switches)  # agents first, while they still have a fabric
        left += process.end(switches, _SWITCH_GRACE_S)
        if left:
            raise LabError(f"processes {left} do not end even by SIGKILL: the kernel holds them; try `down` later")
    for name in names:
        namespace.delete(name)
    state.remove(root, keep_lock=keep_lock)


def _check(plan: Plan) -> None:
    check_plan(plan)
    if plan.switch_count > EMULATED_SWITCHES_MAX:
        raise LabError(
            f"plan {plan.name!r} has {plan.switch_count} switches: it is for showing (`./lab topo show PLAN`), not for"
            f" running; the most that `up` takes is {EMULATED_SWITCHES_MAX}"
        )
    most_ports = max(port_count(plan, switch) for switch in plan.switches())
    if most_ports > PORTS_MAX:
        raise LabError(
            f"plan {plan.name!r} has switches of {most_ports} ports: P4 switches number {PORTS_MAX} (v1model: 9"
            " bits, of which 510 is the CPU's and 511 drops)"
        )
    if os.geteuid() != 0:
        raise LabError("`up` needs root: it makes network namespaces and links")
    missing = missing_programs()
    if missing:
        raise LabError("\n".join(f"{finding.name} is missing: {finding.cost}. {finding.remedy}" for finding in missing))

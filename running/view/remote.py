"""A lab in virtual time that another process keeps: `./lab up PLAN --world simulated`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.client import ControlClient, ControlRefusedError, ControlTimeoutError
from common.plain_file import followed
from running.directory import RUNS, RunDirectory
from running.view import kept
from running.view.lab_view import Crossing, LabView
from topo import Host, Node, Plan
from topo.emulation import LabError, LabRunningError, labname, state
from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.graph import PortRef

if TYPE_CHECKING:
    from running.view.real import RealLab

REMOTE: list[str] = []
"""Methods of `VirtualLab` that the process of a lab calls for others."""

LOOK_S, ANSWER_S, TICK_S = 0.02, 30.0, 0.0001


def _remote(name: str) -> Any:
    """A method of `VirtualLab` that the process of the lab calls."""
    REMOTE.append(name)

    def method(lab: RemoteLab, *arguments: Any) -> Any:
        from running.view.wire import decoded, encoded

        return decoded(lab.ask(name, arguments=encoded(arguments)), lab.plan)

    return method


class RemoteLab(LabView):
    """`LabView` of the lab of a folder. Its time passes in commands, and stands still when they are interrupted."""

    virtual_time = True

    def __init__(self, name: LabName, folder: Path) -> None:
        self.name, self.root = name.text, folder

    @cached_property
    def plan(self) -> Plan:  # type: ignore[override]
        return RunDirectory(self.root).plan()

    def ask(self, op: str, **arguments: Any) -> Any:
        """One request. LabError when the lab has ended."""
        try:
            return kept.ask(self.root, op, **arguments)
        except kept.KeeperGoneError as error:
            raise LabError(f"the lab in {self.root} has ended, or its process was killed ({error})") from None

    def clock(self) -> dict[str, int]:
        """`now_ns`, and `until_ns`, when time will stand still: no later than now in a lab that is paused."""
        reply: dict[str, int] = self.ask("clock")
        return reply

    def now_ns(self) -> int:
        return self.clock()["now_ns"]

    def step(self, seconds: float) -> dict[str, int]:
        """Let time pass, without waiting for it, until `end_ns` at least; 0 stops it."""
        reply: dict[str, int] = self.ask("step", seconds=seconds)
        return reply

    def pass_time(self, seconds: float) -> None:
        pause, end_ns = threading.Event(), self.step(seconds)["end_ns"]
        try:
            while (clock := self.clock())["now_ns"] < end_ns:
                if clock["until_ns"] < end_ns:
                    raise LabError("the lab was paused by another command, or its time cannot go on (server.log)")
                pause.wait(LOOK_S)
        except KeyboardInterrupt:
            self.step(0)
            raise

    def is_up(self, *, settled: bool = False) -> bool:
        return ControlClient.listens(self.root / kept.SOCKET)

    def end(self) -> None:
        """Take the lab down; its journals stay in its folder."""
        self.ask("end")

    def status(self) -> dict[str, Any]:
        """The lab as `status --format json` prints it."""
        plan, clock = self.plan, self.clock()
        return {
            "name": self.name,
            "phase": "running",
            "plan": plan.name,
            "world": "simulated",
            "hosts": plan.host_count,
            "switches": plan.switch_count,
            **clock,
            "folder": str(self.root),
            "faults": [fault.describe() for fault in self.faults()],
        }

    states = _remote("states")
    programs = _remote("programs")
    managers = _remote("managers")
    held = _remote("held")
    explain = _remote("explain")
    record = _remote("record")
    recorded = _remote("recorded")
    faults = _remote("faults")
    inject = _remote("inject")
    undo = _remote("undo")

    def port_counters(self, node: Node) -> Mapping[int, Mapping[str, int]]:
        return {row["port"]: row for row in RemoteHost(self, node.name).call("counters")["ports"]}

    def agent_counters(self, host: Host) -> Mapping[str, Any] | None:
        told: Mapping[str, Any] = RemoteHost(self, host.name).call("counters")
        return told

    def crossing(self, near: PortRef, seconds: float) -> Iterable[Crossing]:
        (crossed,) = self.captured([near], seconds)
        return crossed

    def captured(self, ends: Sequence[PortRef], seconds: float) -> list[list[Crossing]]:
        """`crossing` for several ends of cables at the same time."""
        self.record(seconds)
        self.pass_time(seconds)
        return [self.recorded(end) for end in ends]

    def agents(self) -> Mapping[str, RemoteHost]:
        return {host.name: RemoteHost(self, host.name) for host in self.plan.hosts()}

    def heal(self) -> None:
        """Undo every fault in force, the last one first."""
        for fault in reversed(self.faults()):
            self.undo(fault)


class RemoteHost:
    """The client of a host's control operations; time passes until they are answered."""

    def __init__(self, lab: RemoteLab, host: str) -> None:
        self._lab, self._host = lab, host

    def send(self, op: str, **arguments: Any) -> int:
        """`endpoint.group.AgentClient`."""
        return int(self._lab.ask("send", host=self._host, request=op, arguments=arguments))

    def result(self, ident: int, timeout_s: float | None = None) -> Any:
        """`endpoint.group.AgentClient`; `timeout_s` is of lab time."""
        limit_s, waited_s, tick_s = ANSWER_S if timeout_s is None else timeout_s, 0.0, TICK_S
        while (answer := self._lab.ask("take", host=self._host, ident=ident)) is None:
            if waited_s >= limit_s:
                raise ControlTimeoutError(f"{self._host} did not answer within {limit_s:g} s of lab time", limit_s)
            self._lab.pass_time(tick_s)
            waited_s, tick_s = waited_s + tick_s, tick_s * 2
        if not answer["ok"]:
            raise ControlRefusedError(answer["error"])
        return answer["result"]

    def call(self, op: str, **arguments: Any) -> Any:
        """One operation and its result."""
        return self.result(self.send(op, **arguments))

    def close(self) -> None:
        """Nothing is open."""


def _place(name: LabName) -> Path:
    return RUNS / ("up" if name == DEFAULT_LAB else f"up.{name}")


def find(name: LabName | None = None) -> RemoteLab | None:
    """The lab in virtual time of this name, by default the chosen one, that was brought up from this folder."""
    name = name or labname.chosen()
    ours, _ = kept.folders(_place(name))
    return next((RemoteLab(name, followed(folder)) for folder in reversed(kept.living(ours))), None)


def up_here() -> list[RemoteLab]:
    """All labs in virtual time that were brought up from this folder, by this user or root."""
    folders = [folder for place in sorted(RUNS.glob("up*")) for folder in kept.living(kept.folders(place)[0])]
    return [RemoteLab(LabName(folder.parent.name.partition(".")[2] or DEFAULT_LAB.text), folder) for folder in folders]


def attached() -> RemoteLab | RealLab:
    """The chosen lab, in virtual time or on real links. NoLabError when there is none."""
    if (kept_lab := find()) is not None:
        return kept_lab
    from running.view.real import RealLab  # late: a look at labs in virtual time needs no links
    from topo.emulation import Lab

    return RealLab(Lab.attach())


def up(plan: Plan, seed: int = 1, choice: str | None = None) -> RemoteLab:
    """Bring the chosen lab up in virtual time, in a process that stays; `choice` is a transport's name. LabRunningError
    when it is there already, ValueError for a transport that the plan is none for."""
    from running.transport_choice import transport  # late: who looks for a lab needs no endpoint

    name = labname.chosen()
    if find(name) is not None or state.read_record(name.root) is not None:
        raise LabRunningError(
            f"{name.describe()} is there already: `down{name.option()}` ends it, `--name` makes another"
        )
    choice = choice or ("mrc" if plan.encapsulation != "none" else "roce-pfc" if plan.pfc.enabled else "roce")
    transport(choice).check_fits(plan)
    directory = RunDirectory.create(followed(RUNS), _place(name).name, seed)
    directory.write_plan(plan)
    directory.write_options(
        {"scenario": "up", "world": "simulated", "plan": plan.name, "transport": choice, "seed": seed}
    )
    try:
        kept.start("running.view.virtual_keeper", directory.path, {"seed": seed, "transport": choice})
    except RuntimeError as error:
        raise LabError(f"the lab did not come up: {error}") from None
    return RemoteLab(name, directory.path)

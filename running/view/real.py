"""A lab on real links, looked at through its switches' sockets, its agents and its network namespaces."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from common.client import ControlClient, ControlError
from running.view.lab_view import Crossing, LabView, Managers
from topo import Host, Node, Switch
from topo.emulation import Lab, namespace
from topo.fault import Fault, switch_state
from topo.graph import PortRef

if TYPE_CHECKING:
    from controller import Cells
    from running.tracing import Explanation

AGENT_TIMEOUT_S = 3.0
HEAD_BYTES = 256


class RealLab(LabView):
    """`LabView` of a lab that is up on this machine."""

    virtual_time = False

    def __init__(self, lab: Lab) -> None:
        self.lab, self.plan, self.name, self.root = lab, lab.plan, lab.name.text, lab.root

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def pass_time(self, seconds: float) -> None:
        threading.Event().wait(seconds)

    def is_up(self, *, settled: bool = False) -> bool:
        return self.lab.is_up(settled=settled)

    def states(self, nodes: Collection[Node]) -> Mapping[str, str]:
        silent, faults = set(self.lab.status()["switches_silent"]), self.faults()
        states: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, Switch):
                states[node.name] = "silent" if node.name in silent else switch_state(faults, node)
            else:
                state = "running" if namespace.exists(self.lab.name.netns(node)) else "gone"
                states[node.name] = state + (", with an agent" if self.lab.agent_socket(node).exists() else "")
        return states

    def facts(self, node: Node) -> Mapping[str, Any]:
        return {"namespace": str(self.lab.netns(node))}

    def programs(self, switches: Collection[Switch]) -> Mapping[str, Cells | None]:
        from controller import addresses, compiled_pipelines, read_counters

        where = addresses(self.lab, switches)
        counters = read_counters(self.plan, where, compiled_pipelines()) if where else {}
        return {name: counters.get(name) for name in where}

    def managers(self) -> Managers:
        if self.lab.switch_control is None:
            return {}
        with ControlClient(self.lab.switch_control) as client:
            names = {str(device["device_id"]): str(device["name"]) for device in client.call("devices")}
            counted = client.call("counters")
        return {names[number]: {int(port): row for port, row in rows.items()} for number, rows in counted.items()}

    def port_counters(self, node: Node) -> Mapping[int, Mapping[str, int]]:
        return self.lab.counters(node)

    def agent_counters(self, host: Host) -> Mapping[str, Any] | None:
        try:
            with ControlClient(self.lab.agent_socket(host), AGENT_TIMEOUT_S) as client:
                told: dict[str, Any] = client.call("counters")
        except ControlError:
            return None
        return told

    def held(self, switch: Switch) -> list[dict[str, str]]:
        from controller import ClientError, DirectControl, addresses, compiled_pipelines, read_switch
        from running.view.entries import entry_rows
        from switch.reference import ReferenceEngine

        pipeline = compiled_pipelines()[switch.program]
        try:
            items = [read_switch(*where, pipeline.p4info) for where in addresses(self.lab, [switch]).items()]
        except ClientError:
            return []  # it has no program now
        control = DirectControl(ReferenceEngine(seed=0), pipeline)
        control.install(item.entity for each in items for item in each)
        return entry_rows(control.store)

    def explain(self, switch: Switch, port: int, frame: bytes) -> Explanation:
        from running.tracing import Explanation, no_program

        kind, place = self.plan.kind_of(switch), self.lab.p4runtime(switch)
        if kind != "embedded" or place is None or self.lab.switch_control is None:
            raise ValueError(f"{switch} is a {kind} switch: only embedded ones can explain themselves")
        with ControlClient(self.lab.switch_control) as client:
            if not {device["device_id"]: device["program"] for device in client.call("devices")}.get(place[1]):
                return no_program(switch)
            answer = client.call("trace", device=place[1], port=port, frame=frame.hex())
        sent = [(int(item["port"]), bytes.fromhex(item["frame"])) for item in answer["sent"]]
        return Explanation(answer["steps"], answer["text"], sent)

    def crossing(self, near: PortRef, seconds: float) -> Iterable[Crossing]:
        with namespace.entered(self.lab.name.netns(near.node)):
            tap = namespace.Tap(near.interface)
        with closing(tap):
            for t_ns, out, frame in tap.frames(seconds):
                yield t_ns, out, len(frame), frame[:HEAD_BYTES]

    def agents(self) -> Mapping[str, ControlClient]:
        from running.worlds import running_agents

        return running_agents(self.lab)

    def faults(self) -> list[Fault]:
        return self.lab.faults()

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        return self.lab.inject(verb, target, value, seed)

    def undo(self, fault: Fault) -> None:
        self.lab.undo(fault)

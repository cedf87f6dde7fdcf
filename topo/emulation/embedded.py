"""The embedded switch: one `python -m switch serve` process holds every switch of this kind (docs/contracts.md)."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from common.client import ControlClient, ControlError
from common.files import write_json
from common.giving import give, sudo_caller
from common.interpreter import python
from topo.emulation import namespace, process
from topo.emulation.driver import LabSite, Progress, SwitchDriver
from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.emulation.state import LabError
from topo.fault import PortState, SwitchState
from topo.graph import PortRef, device_id, link_at, port_queues, ports, towards_host
from topo.node import Switch
from topo.pfc import jitter_ns, port_settings
from topo.plan import Plan

READY_TIMEOUT_S = 600.0  # the first start compiles C: two minutes on emulated processors, for the runtime alone
SAMPLE_ROUND_TRIPS = 8  # between samples of counters: one of 32 switches costs as much as 50 packets
SAMPLE_NS_MIN = 200_000_000
TURNS_A_ROUND_TRIP = 32  # of the switch process, each of which moves all that is due
TURN_NS_MIN = 100_000  # less than that saves no wake-ups
_POLL_S = 0.005


def serve_config(
    plan: Plan, switches: Sequence[Switch], folder: Path, journal: str | None = None, name: LabName = DEFAULT_LAB
) -> dict[str, Any]:
    """The configuration of one process for these switches, whose sockets are in `folder`."""
    config: dict[str, Any] = {"grpc": f"unix:{folder / 'grpc'}", "control": f"unix:{folder / 'control'}", "devices": []}
    turn_ns = plan.base_rtt_ns // TURNS_A_ROUND_TRIP
    config["turn_ns"] = turn_ns if turn_ns >= TURN_NS_MIN else 0
    if journal:
        config |= {"journal": journal, "sample_interval_ns": max(SAMPLE_NS_MIN, SAMPLE_ROUND_TRIPS * plan.base_rtt_ns)}
    queues = [{"priority": q.priority, "depth_packets": q.depth_packets} for q in port_queues(plan)]
    for switch in switches:
        number = device_id(plan, switch)
        device_ports = [
            {
                "port": ref.port,
                "interface": ref.interface,
                "netns": str(namespace.path_of(name.netns(switch))),
                "rate_bps": link_at(plan, ref).rate_bps,
                "overhead_bytes": plan.links.wire_overhead_bytes,
                "delay_ns": wire_delay_ns(plan, ref, link_at(plan, ref).delay_ns),
                "queues": queues,
                **port_settings(plan, ref, 2 * jitter_ns(plan)),
            }
            for ref in ports(plan, switch)
        ]
        config["devices"].append({"device_id": number, "name": switch.name, "seed": number, "ports": device_ports})
    return config


def _give_to_owner(folder: Path) -> None:
    """Let the user who called sudo use these sockets too: `counters` and `trace` then need no root."""
    if user := sudo_caller():
        for path in (*folder.iterdir(), folder):
            give(user, path)


def wire_delay_ns(plan: Plan, ref: PortRef, delay_ns: int) -> int:
    """A port's delay. A NIC cannot delay here, so the leaf's port towards the NIC has the delay of both directions.

    Every round trip, to another NIC or back to the same one, is then as long as the plan says.
    """
    return delay_ns + (plan.links.edge_delay_ns if towards_host(plan, ref) else 0)


class EmbeddedDriver(SwitchDriver):
    switch_bytes: ClassVar[int] = 330_000

    def __init__(self, site: LabSite) -> None:
        super().__init__(site)
        self._client: ControlClient | None = None

    def start(self, switches: Sequence[Switch], progress: Progress) -> None:
        plan, root = self.site.plan, self.site.root
        for done, switch in enumerate(switches, 1):
            with namespace.entered(self.site.netns(switch)):
                namespace.set_up(ref.interface for ref in ports(plan, switch))
            progress("switch ports", done, len(switches))
        journal = str(self.site.journals / "switch.jsonl") if self.site.journals else None
        config, ready, log = root / "switch.json", root / "switch-ready.json", root / "logs/switch.log"
        sockets = root / "switch"
        sockets.mkdir(mode=0o700)
        write_json(config, serve_config(plan, switches, sockets, journal, self.site.name))
        words = ["--config", str(config), "--ready-file", str(ready), "--allow-admin"]
        argv = python("-m", "switch", "serve", *words)
        started = process.spawn(argv, token=self.site.token, log=log, bound=self.site.bound, device=True)
        progress("switch process", 0, 1)
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not ready.exists():
            if started.poll() is not None or time.monotonic() > deadline:
                why = "ended" if started.poll() is not None else f"is not ready after {READY_TIMEOUT_S:.0f} s"
                raise LabError(f"the switch process {why}; {log} ends with:\n{process.log_tail(log)}")
            time.sleep(_POLL_S)
        progress("switch process", 1, 1)
        self.site.details["embedded"] = json.loads(ready.read_text())
        _give_to_owner(sockets)

    @property
    def control_address(self) -> str:
        """LabError when the process has ended."""
        return str(self._serving()["control"])

    def check(self) -> None:
        """LabError when the process has ended."""
        self._serving()

    @property
    def client(self) -> ControlClient:
        """LabError when there is no answer."""
        if self._client is None:
            try:
                self._client = ControlClient(self.control_address)
            except ControlError as error:
                raise self._gone(str(error)) from None
        return self._client

    def p4runtime(self, switch: Switch) -> tuple[str, int] | None:
        return str(self._serving()["grpc"]), device_id(self.site.plan, switch)

    def _serving(self) -> dict[str, Any]:
        """Where the process listens."""
        told: dict[str, Any] = self.site.details["embedded"]
        if process.without_memory(told["pid"]):
            raise self._gone("it has ended")
        return told

    def _gone(self, why: str) -> LabError:
        pid, log = self.site.details["embedded"]["pid"], self.site.root / "logs/switch.log"
        option = self.site.name.option()
        return LabError(
            f"process {pid} holds the embedded switches, and {why} ({log}): nothing is forwarded; `down{option}` and"
            f" `up{option}` make the lab again"
        )

    def set_port(self, ref: PortRef, state: PortState, before: PortState) -> None:
        old, new = asdict(before), asdict(state)
        changes = {name: value for name, value in new.items() if value != old[name]}
        if "delay_ns" in changes:
            changes["delay_ns"] = wire_delay_ns(self.site.plan, ref, state.delay_ns)
        if changes and isinstance(ref.node, Switch):
            self.client.call("port.set", device=device_id(self.site.plan, ref.node), port=ref.port, **changes)

    def set_switch(self, switch: Switch, state: SwitchState, before: SwitchState) -> None:
        device = device_id(self.site.plan, switch)
        if state == "crashed":
            self.client.call("device.crash", device=device)
        elif state == "stopped":
            self.client.call("device.stop", device=device)
        else:
            self.client.call("device.start", device=device)

    def alive(self, switches: Sequence[Switch]) -> list[str]:
        try:
            there = {device["name"] for device in self.client.call("devices")}
        except (ControlError, LabError):
            there = set()
        return [switch.name for switch in switches if switch.name not in there]

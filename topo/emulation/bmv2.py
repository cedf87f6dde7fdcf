"""BMv2: one `simple_switch_grpc` a switch, in the namespace of its ports, with P4Runtime on a Unix socket.

BMv2's queues can be set through Thrift only: depth in packets and rate in packets per second, for each priority. A
data queue's rate is the port's in full frames; the priority queue's in trimmed packets.

BMv2 stops reading all its ports while an interface that it has opened is down (libpcap waits for it). So BMv2
opens a macvlan in passthru mode on top of each port, `p0l0-bm3` on `p0l0-eth3`, which stays up when the cable goes.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

from topo.emulation import bmv2_process, namespace, process, tc
from topo.emulation.bmv2_process import PROGRAM
from topo.emulation.driver import Progress, SwitchDriver
from topo.emulation.state import LabError
from topo.fault import VERBS, CarrierChange, PortState, SwitchState
from topo.graph import PortRef, device_id, link_at, port_queues, ports
from topo.node import Switch
from topo.plan import PRIORITY_CONTROL, Plan

THRIFT_PORT_BASE = 9090


def queue_settings(plan: Plan, rate_bps: int) -> list[tuple[int, int, int]]:
    """(priority, depth in packets, rate in packets/s) of a port's queues at this line rate."""
    queues = []
    for queue in port_queues(plan):
        size = plan.trimming.size_bytes if queue.priority == PRIORITY_CONTROL else plan.frame_bytes_max
        rate_pps = max(1, round(rate_bps / 8 / (size + plan.links.wire_overhead_bytes)))
        queues.append((queue.priority, queue.depth_packets, rate_pps))
    return queues


def _macvlan(ref: PortRef) -> str:
    return f"{ref.node}-bm{ref.port}"


class Bmv2Driver(SwitchDriver):
    switch_bytes: ClassVar[int] = 33_000_000

    def start(self, switches: Sequence[Switch], progress: Progress) -> None:
        if not shutil.which(PROGRAM):
            raise LabError(
                f"the plan wants BMv2 switches, but {PROGRAM} is not on PATH: install p4lang-bmv2 (Ubuntu), build"
                " behavioral-model with PI, or set switch = 'embedded' in the plan"
            )
        self.site.details["bmv2"] = {"macvlan": True}
        for switch in switches:
            refs = list(ports(self.site.plan, switch))
            lines = [f"link add link {ref.interface} name {_macvlan(ref)} type macvlan mode passthru" for ref in refs]
            try:
                namespace.run_ip(lines, self.site.netns(switch))
            except namespace.IpError:
                self.site.details["bmv2"]["macvlan"] = False  # a kernel without it: then no port is switched off
            with namespace.entered(self.site.netns(switch)):
                namespace.set_up(["lo", *(ref.interface for ref in refs), *map(self._opened, refs)])
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._launch(switches, progress)

    def p4runtime(self, switch: Switch) -> tuple[str, int] | None:
        return f"unix:{self._grpc_path(switch)}", device_id(self.site.plan, switch)

    def set_port(self, ref: PortRef, state: PortState, before: PortState) -> None:
        if state.loss != before.loss:
            tc.set_loss(self.site.netns(ref.node), ref.interface, state.loss)
        if state.rate_bps != before.rate_bps and isinstance(ref.node, Switch) and self._pids(ref.node):
            # A crashed switch gets its rates when it starts again: those that are in force then.
            self._set_queues(ref.node, {ref.port: state.rate_bps})

    def refusal(self, change: CarrierChange) -> str | None:
        if change.on or self.site.details["bmv2"]["macvlan"]:
            return None
        links = [verb for verb in VERBS.values() if verb.target == "link" and "bmv2" in verb.kinds]
        others = ", ".join(verb.name for verb in links if not verb.switched_off)
        return (
            "BMv2 stops reading all its ports while one of its interfaces is down, and this kernel has no macvlan to"
            f" hide that from it; carrier stays with {others}"
        )

    def set_switch(self, switch: Switch, state: SwitchState, before: SwitchState) -> None:
        if state == "crashed":
            process.end(self._pids(switch))
        elif before == "crashed":
            self._launch([switch], lambda *_: None)
        if "stopped" in (state, before):
            interfaces = [ref.interface for ref in ports(self.site.plan, switch)]
            tc.set_stopped(self.site.netns(switch), interfaces, state == "stopped")

    def alive(self, switches: Sequence[Switch]) -> list[str]:
        inodes = process.namespaces(process.find(self.site.token))
        return [
            switch.name for switch in switches if namespace.path_of(self.site.netns(switch)).stat().st_ino not in inodes
        ]

    # --- one process per switch -------------------------------------------------------------------------------

    def _opened(self, ref: PortRef) -> str:
        """The interface that BMv2 reads and writes."""
        return _macvlan(ref) if self.site.details["bmv2"]["macvlan"] else ref.interface

    @property
    def _folder(self) -> Path:
        return self.site.root / "bmv2"

    def _grpc_path(self, switch: Switch) -> Path:
        return bmv2_process.grpc_path(self._folder, str(switch))

    def _thrift_port(self, switch: Switch) -> int:
        return THRIFT_PORT_BASE + device_id(self.site.plan, switch)

    def _pids(self, switch: Switch) -> list[int]:
        inside = set(namespace.pids([self.site.netns(switch)]))
        return [pid for pid in process.find(self.site.token) if pid in inside]

    def _argv(self, switch: Switch) -> list[str]:
        interfaces = [f"{ref.port}@{self._opened(ref)}" for ref in ports(self.site.plan, switch)]
        number = device_id(self.site.plan, switch)
        return bmv2_process.command(self._folder, str(switch), number, self._thrift_port(switch), interfaces)

    def _launch(self, switches: Sequence[Switch], progress: Progress) -> None:
        started = {}
        for switch in switches:
            self._grpc_path(switch).unlink(missing_ok=True)
            started[switch] = process.spawn(
                self._argv(switch),
                token=self.site.token,
                log=self.site.root / f"logs/{switch.name}.log",
                netns=namespace.path_of(self.site.netns(switch)),
                device=True,
            )
        progress("BMv2 switches", 0, len(started))
        with ThreadPoolExecutor(max_workers=4) as pool:
            ready = [pool.submit(self._finish, switch, popen) for switch, popen in started.items()]
            for done, future in enumerate(ready, 1):
                future.result()
                progress("BMv2 switches", done, len(started))

    def _finish(self, switch: Switch, popen: subprocess.Popen[bytes]) -> None:
        """Waits for both servers and sets the queues."""
        plan = self.site.plan
        rates_bps = {ref.port: link_at(plan, ref).rate_bps for ref in ports(plan, switch)}
        bmv2_process.wait_until_serving(
            popen,
            f"{PROGRAM} of {switch}",
            self._grpc_path(switch),
            self.site.root / f"logs/{switch.name}.log",
            lambda: self._set_queues(switch, rates_bps),
        )

    def _set_queues(self, switch: Switch, rates_bps: Mapping[int, int]) -> None:
        """Depth and rate of the queues of these ports, by their line rates."""
        with namespace.entered(self.site.netns(switch)), bmv2_process.connected(self._thrift_port(switch)) as thrift:
            for port, rate_bps in rates_bps.items():
                for settings in queue_settings(self.site.plan, rate_bps):
                    bmv2_process.set_queue(thrift, port, *settings)

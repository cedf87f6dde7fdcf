"""Kernel switches: `seg6local` with static routes. No P4 and no trimming: a second opinion on the forwarding.

Ports are paced by `tbf` where the kernel has it; there is no delay, no marking, one queue.
"""

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from topo.emulation import namespace, tc
from topo.emulation.driver import Progress, SwitchDriver
from topo.emulation.wiring import kernel_switch_port_commands, kernel_switch_routes
from topo.fault import PortState, SwitchState
from topo.graph import PortRef, link_at, ports
from topo.node import Switch

_WORKERS = 4


class LinuxDriver(SwitchDriver):
    switch_bytes: ClassVar[int] = 50_000

    def start(self, switches: Sequence[Switch], progress: Progress) -> None:
        with ThreadPoolExecutor(max_workers=_WORKERS) as pool:
            for done, _ in enumerate(pool.map(self._bring_up, switches), 1):
                progress("kernel switches", done, len(switches))

    def set_port(self, ref: PortRef, state: PortState, before: PortState) -> None:
        if state.loss != before.loss:
            tc.set_loss(self.site.netns(ref.node), ref.interface, state.loss)
        if state.rate_bps != before.rate_bps:
            namespace.run_ip([self._pace(ref, state.rate_bps)], self.site.netns(ref.node), tool="tc")

    def carrier_restored(self, ref: PortRef, state: SwitchState) -> None:
        if isinstance(ref.node, Switch) and state != "crashed":
            self._provision(ref.node)

    def set_switch(self, switch: Switch, state: SwitchState, before: SwitchState) -> None:
        if state == "crashed":
            namespace.run_ip(["route flush table main"], self.site.netns(switch))
        elif before == "crashed":
            self._provision(switch)
        if "stopped" in (state, before):
            interfaces = [ref.interface for ref in ports(self.site.plan, switch)]
            tc.set_stopped(self.site.netns(switch), interfaces, state == "stopped")

    def alive(self, switches: Sequence[Switch]) -> list[str]:
        return [switch.name for switch in switches if not namespace.exists(self.site.netns(switch))]

    def _bring_up(self, switch: Switch) -> None:
        plan = self.site.plan
        refs = list(ports(plan, switch))
        quiet = [
            line for ref in refs for line in tc.filter_commands(ref.interface, tc.NOISE_PREF, tc.multicast_program())
        ]
        namespace.run_ip(quiet, self.site.netns(switch), tool="tc")
        rates = [self._pace(ref, link_at(plan, ref).rate_bps) for ref in refs]
        namespace.run_ip(rates, self.site.netns(switch), tool="tc", force=True)  # a kernel without tbf: unpaced
        self._provision(switch, {ref.port for ref in refs})

    def _pace(self, ref: PortRef, rate_bps: int) -> str:
        plan = self.site.plan
        burst, limit = 2 * plan.frame_bytes_max, plan.depth_packets * plan.frame_bytes_max
        around = f" overhead {plan.links.wire_overhead_bytes}" if plan.links.wire_overhead_bytes else ""
        return f"qdisc replace dev {ref.interface} root tbf rate {rate_bps}bit burst {burst} limit {limit}{around}"

    def _provision(self, switch: Switch, up: Collection[int] | None = None) -> None:
        """Neighbours and routes of the ports in `up`, by default all that are up; a repetition changes nothing."""
        plan = self.site.plan
        if up is None:
            with namespace.entered(self.site.netns(switch)):
                up = {ref.port for ref in ports(plan, switch) if namespace.is_up(ref.interface)}
        lines = [*kernel_switch_port_commands(plan, switch, up), *kernel_switch_routes(plan, switch, up)]
        namespace.run_ip(lines, self.site.netns(switch))

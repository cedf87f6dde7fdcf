"""The faults in force on a running lab: inject, undo, and the difference applied to ports, switches and NICs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from common.client import ControlClient, ControlError
from common.journal import Journal
from topo.emulation import hosts, namespace, state, tc
from topo.emulation.driver import Site, SwitchDriver
from topo.emulation.state import LabError
from topo.fault import (
    VERBS,
    Fault,
    PortState,
    admin_down,
    denied_evs,
    healthy,
    make_fault,
    port_states,
    switch_state,
    transmitters,
)
from topo.graph import PortRef
from topo.node import Host, Switch


class FaultBoard:
    """Applies faults. What is in force is in `faults.json`: any process can undo it. Threads may share a board."""

    def __init__(
        self, site: Site, driver: Callable[[Switch], SwitchDriver], provision: Callable[[Sequence[Switch]], None]
    ) -> None:
        self.site = site
        self._driver = driver
        self._provision = provision
        self._lock = threading.Lock()

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        """Put a fault in force. LabError: it is already, or this kind of switch cannot do it; then nothing changed."""
        fault = make_fault(self.site.plan, verb, target, value, seed)
        with self._lock, state.faults_locked(self.site.root):
            before = state.read_faults(self.site.root)
            if fault in before:
                raise LabError(f"{verb} {fault.target} is in force already; undo it first")
            if verb == "drain":
                self._check_agents(fault)
            self._check_machine(fault)
            self._journal(fault, "begin")
            self._change(before, [*before, fault])
            if not VERBS[verb].lasting:
                self._change([*before, fault], before)
                self._journal(fault, "end")
        return fault

    def undo(self, fault: Fault) -> None:
        """End a fault; the others stay in force. LabError when it is not in force."""
        with self._lock, state.faults_locked(self.site.root):
            before = state.read_faults(self.site.root)
            if fault not in before:
                in_force = ", ".join(f"{f.verb} {f.target}" for f in before) or "none"
                raise LabError(f"{fault.verb} {fault.target} is not in force; faults in force: {in_force}")
            after = list(before)
            after.remove(fault)
            self._change(before, after)
            self._journal(fault, "end")

    def heal(self) -> None:
        """Undo every fault in force, the last one first."""
        for fault in reversed(state.read_faults(self.site.root)):
            self.undo(fault)

    # --- applying a difference ---------------------------------------------------------------------------------

    def _change(self, before: list[Fault], after: list[Fault]) -> None:
        """The record first when something is added, last when something goes: what is in force is always on record."""
        adding = len(after) > len(before)
        if adding:
            state.write_faults(after, self.site.root)
            self._change_ports(before, after)  # a switch knows that its port is down before the cable is
        self._change_carriers(before, after)
        if not adding:
            self._change_ports(before, after)
        self._change_switches(before, after)
        self._change_denylists(before, after)
        if not adding:
            state.write_faults(after, self.site.root)

    def _change_carriers(self, before: list[Fault], after: list[Fault]) -> None:
        plan = self.site.plan
        was, now = admin_down(plan, before), admin_down(plan, after)
        for ref in sorted(now - was, key=str):
            with namespace.entered(ref.node.name):
                namespace.set_down([ref.interface])
        for ref in sorted(was - now, key=str):
            with namespace.entered(ref.node.name):
                namespace.set_up([ref.interface])
            if isinstance(ref.node, Switch):
                self._driver(ref.node).carrier_restored(ref, switch_state(after, ref.node))
            else:
                hosts.restore_port(plan, ref)

    def _change_ports(self, before: list[Fault], after: list[Fault]) -> None:
        plan = self.site.plan
        was, now = port_states(plan, before), port_states(plan, after)
        for ref in sorted({*was, *now}, key=str):
            old, new = was.get(ref) or healthy(plan, ref), now.get(ref) or healthy(plan, ref)
            if old == new:
                continue
            if isinstance(ref.node, Host):
                self._set_host_port(ref, new, old)
            else:
                self._driver(ref.node).set_port(ref, new, old)

    def _set_host_port(self, ref: PortRef, new: PortState, old: PortState) -> None:
        if new.loss != old.loss:
            tc.set_loss(ref.node.name, ref.interface, new.loss)

    def _change_switches(self, before: list[Fault], after: list[Fault]) -> None:
        plan = self.site.plan
        names = {f.target for f in (*before, *after) if VERBS[f.verb].target == "switch"}
        for switch in sorted(plan.switch_node(name) for name in names):
            was, now = switch_state(before, switch), switch_state(after, switch)
            if was == now:
                continue
            driver = self._driver(switch)
            if was == "crashed":
                driver.set_switch(switch, "running", was)
                self._restore_ports(switch, before)
                if driver.p4runtime(switch):
                    self._provision([switch])
                was = "running"
            if was != now:
                driver.set_switch(switch, now, was)

    def _restore_ports(self, switch: Switch, faults: list[Fault]) -> None:
        """A fault on a cable outlives the crash of the switch that it hangs on."""
        plan = self.site.plan
        for ref, port_state in port_states(plan, faults).items():
            if ref.node == switch:
                self._driver(switch).set_port(ref, port_state, healthy(plan, ref))

    def _change_denylists(self, before: list[Fault], after: list[Fault]) -> None:
        """Adds to and takes from what each agent denies for reasons of its own."""
        plan = self.site.plan
        if {f for f in before if f.verb == "drain"} == {f for f in after if f.verb == "drain"}:
            return
        for host in plan.hosts():
            was, now = set(denied_evs(plan, host, before)), set(denied_evs(plan, host, after))
            path = self.site.root / "agents" / f"{host}.sock"
            if was == now or not path.exists():
                continue
            try:
                with ControlClient(path) as client:
                    denied = {(row["host"], row["ev"]) for row in client.call("denylist.get")["denied"]}
                    wanted = sorted((denied - was) | now)
                    client.call("denylist.set", denied=[{"host": name, "ev": ev} for name, ev in wanted])
            except ControlError as error:
                raise LabError(f"drain: the agent of {host} did not take its denylist: {error}") from None

    def _check_agents(self, fault: Fault) -> None:
        if not any((self.site.root / "agents" / f"{host}.sock").exists() for host in self.site.plan.hosts()):
            raise LabError(
                f"drain {fault.target}: no agent runs in any host, and draining is telling NICs to deny paths;"
                " start agents first, or use switch-stop"
            )

    def _check_machine(self, fault: Fault) -> None:
        if VERBS[fault.verb].target == "switch":
            return
        for ref in transmitters(self.site.plan, fault):
            if isinstance(ref.node, Switch) and (why := self._driver(ref.node).refusal(fault)):
                raise LabError(f"{fault.verb} {fault.target}: {ref.node}: {why}")

    def _journal(self, fault: Fault, which: str) -> None:
        if self.site.journals is None:
            return
        arguments: dict[str, Any] = {} if fault.value is None else {"value": fault.value}
        with closing(Journal(self.site.journals / "faults.jsonl", "lab")) as journal:
            journal.write("fault", verb=fault.verb, target=fault.target, state=which, arguments=arguments)

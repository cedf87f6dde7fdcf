"""The simulated world: the same endpoints, the same compiled programs and the same plan, in virtual time.

One process, no root, no sockets: hosts and switches take the clock as an argument, and this file is that clock and the
cables between them. A seed repeats a run to the last packet.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from random import Random
from typing import Any

from common.client import ControlError, ControlTimeoutError
from common.journal import Journal
from controller import compiled_pipelines
from controller.direct import DirectControl
from controller.tables import tables
from endpoint import factory, prober, profile
from endpoint.host import Host as HostNic
from scenarios.running.directory import RunDirectory
from scenarios.running.events import Events
from scenarios.running.transport import Transport
from switch.engine import PRIORITIES, PortConfig, QueueConfig
from switch.native.engine import NativeEngine
from topo import fault as faults
from topo.fault import Fault, PortState
from topo.graph import PortRef, link_at, peer, port_queues, ports
from topo.node import Host, Switch
from topo.plan import Plan
from topo.profile import nic_profile

BATCH_FRAMES = 64
TURNS_MAX = 10_000  # of one host at one instant: more means that its timers do not move
ETHERNET_BYTES, IPV6_BYTES = 14, 40
NEXT_HEADER_AT, NEXT_HEADER_IPV6, NEXT_HEADER_UDP = ETHERNET_BYTES + 6, 41, 17


def is_probe(frame: bytes) -> bool:
    """Whether a frame is the path prober's, by its (inner) UDP destination port."""
    offset = ETHERNET_BYTES
    if len(frame) > NEXT_HEADER_AT and frame[NEXT_HEADER_AT] == NEXT_HEADER_IPV6:
        offset += IPV6_BYTES
    udp = offset + IPV6_BYTES
    if len(frame) < udp + 4 or frame[offset + 6] != NEXT_HEADER_UDP:
        return False
    return bool(struct.unpack_from("!H", frame, udp + 2)[0] == prober.UDP_PORT)


class SimulatedHost:
    """A host's NIC on the event queue; also the client of its control operations."""

    def __init__(self, world: SimulatedWorld, node: Host, nic: HostNic) -> None:
        self.node = node
        self.nic = nic
        self._world = world
        self._events = world.events
        self._wake_ns: int | None = None
        self._answers: dict[int, dict[str, Any]] = {}
        self._sent = 0
        self._free_ns: dict[int, int] = {}  # when each port's cable is free again
        self.cables = {ref.port: (link_at(world.plan, ref), peer(world.plan, ref)) for ref in ports(world.plan, node)}
        self.states = {ref.port: faults.healthy(world.plan, ref) for ref in ports(world.plan, node)}
        self.loss = {ref.port: Random(0) for ref in ports(world.plan, node)}

    # endpoint.group.Client

    def send(self, op: str, **arguments: Any) -> int:
        self._sent += 1
        ident = self._sent
        # What crosses the control socket elsewhere is JSON: here too, so that both worlds see the same values.
        request = json.loads(json.dumps({"id": ident, "op": op, **arguments}))
        self.nic.control(request, self._events.now_ns, lambda answer: self._answers.update({ident: answer}))
        self.turn()
        return ident

    def result(self, ident: int, timeout_s: float | None = None) -> Any:
        """Lets virtual time pass until the answer is there."""
        limit_ns = self._events.now_ns + round((30.0 if timeout_s is None else timeout_s) * 1e9)
        while ident not in self._answers:
            next_ns = self._events.next_ns
            if next_ns is None or next_ns > limit_ns:
                raise ControlTimeoutError(f"{self.node} did not answer within its virtual time")
            self._events.step()
        answer = self._answers.pop(ident)
        if not answer["ok"]:
            raise ControlError(answer["error"])
        return answer["result"]

    # events

    def receive(self, port: int, frame: bytes) -> None:
        if not self.states[port].up:
            return
        if is_probe(frame):
            self.nic.receive_probes(port, [frame], self._events.now_ns)
        else:
            self.nic.receive(port, [frame], self._events.now_ns)
        self.turn()

    def set_state(self, port: int, state: PortState) -> None:
        changed = state.up != self.states[port].up
        if state.loss != self.states[port].loss:
            self.loss[port] = Random(state.loss_seed)
        self.states[port] = state
        if changed:
            self.nic.port_changed(port, state.up, self._events.now_ns)
            self.turn()

    def wake(self, due_ns: int) -> None:
        """One that an earlier one has overtaken is ignored: each would leave another behind it."""
        if due_ns == self._wake_ns:
            self._wake_ns = None
            self.turn()

    def turn(self) -> None:
        """Timers that are due, then frames that may leave, until neither is left; then sleep until the next."""
        now_ns = self._events.now_ns
        for _ in range(TURNS_MAX):
            deadline_ns = self.nic.next_timer_ns()
            due = deadline_ns is not None and deadline_ns <= now_ns
            if due:
                self.nic.handle_timer(now_ns)
            sent = self.nic.packets_to_send(now_ns, BATCH_FRAMES)
            for port, frame in sent:
                self._transmit(port, frame)
            if not sent and not due:
                break
        else:
            raise RuntimeError(f"{self.node} is never done at {now_ns} ns of virtual time")
        if deadline_ns is not None and (self._wake_ns is None or deadline_ns < self._wake_ns):
            self._wake_ns = deadline_ns
            self._events.at(deadline_ns, self.wake, deadline_ns)

    def _transmit(self, port: int, frame: bytes) -> None:
        state = self.states[port]
        if not state.up or (state.loss and self.loss[port].random() < state.loss):
            return
        link, other = self.cables[port]
        # Frames released together leave one after another: the cable is as fast as its rate, no faster.
        start_ns = max(self._events.now_ns, self._free_ns.get(port, 0))
        self._free_ns[port] = start_ns + len(frame) * 8_000_000_000 // link.rate_bps
        self._events.at(self._free_ns[port] + link.delay_ns, self._world.deliver, other, frame)


class SimulatedSwitch:
    """A native switch on the event queue."""

    def __init__(self, world: SimulatedWorld, node: Switch, seed: int) -> None:
        self.node = node
        self.engine = NativeEngine(seed=seed)
        self._control: DirectControl | None = None
        self._world = world
        self._events = world.events
        self._wake_ns: int | None = None
        self._peers = {ref.port: peer(world.plan, ref) for ref in ports(world.plan, node)}
        for ref in ports(world.plan, node):
            self.set_state(ref.port, faults.healthy(world.plan, ref))
        self.provision()

    def provision(self) -> None:
        """Program and static tables, as the controller installs them, without the wire between them."""
        self._control = DirectControl(self.engine, self._world.pipelines[self.node.role])
        self._control.install(tables(self._world.plan, self.node, virtual_time=True))

    def crash(self) -> None:
        self.engine.reset()
        self._control = None

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        if self._control is not None:
            self._control.install(tables(self._world.plan, self.node, dead_links=dead_links, virtual_time=True))

    def differences(self) -> int:
        """How many updates would bring the switch to the plan's tables: none, when nothing was changed."""
        if self._control is None:
            return 1
        return self._control.install(tables(self._world.plan, self.node, virtual_time=True))

    def counters(self) -> list[dict[str, int]]:
        """Every port's totals, as in a `sample` line."""
        now_ns = self._events.now_ns
        return [{"port": port, **asdict(self.engine.port_counters(port, now_ns))} for port in self._peers]

    def set_state(self, port: int, state: PortState) -> None:
        limits = {queue.priority: queue.depth_packets for queue in port_queues(self._world.plan)}
        queues = tuple(QueueConfig(depth_packets=limits.get(priority, 0)) for priority in range(PRIORITIES))
        config = PortConfig(
            up=state.up,
            rate_bps=state.rate_bps,
            delay_ns=state.delay_ns,
            loss=state.loss,
            loss_seed=state.loss_seed,
            queues=queues,
        )
        self.engine.configure_port(port, config, self._events.now_ns)
        self.turn()

    def receive(self, port: int, frame: bytes) -> None:
        self.engine.receive(port, frame, self._events.now_ns)
        self.turn()

    def wake(self, due_ns: int) -> None:
        """One that an earlier one has overtaken is ignored: each would leave another behind it."""
        if due_ns == self._wake_ns:
            self._wake_ns = None
            self.turn()

    def turn(self) -> None:
        for sent in self.engine.advance(self._events.now_ns):
            other = self._peers.get(sent.port)
            if other is not None:
                self._events.at(sent.t_ns, self._world.deliver, other, sent.frame)
        next_ns = self.engine.next_event_ns()
        if next_ns is not None and (self._wake_ns is None or next_ns < self._wake_ns):
            self._wake_ns = next_ns
            self._events.at(next_ns, self.wake, next_ns)


class SimulatedWorld:
    """`scenarios.running.world.World` in virtual time, from 0 on."""

    def __init__(
        self,
        plan: Plan,
        transport: Transport,
        seed: int,
        directory: RunDirectory,
        tell: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.pipelines = compiled_pipelines()
        self.events = Events()
        self._faults: list[Fault] = []
        self._touched: dict[PortRef, PortState] = {}
        self._switch_journal = Journal(directory.journal("switches"), "switches", lambda: self.events.now_ns)
        self._journals: list[Journal] = [self._switch_journal]
        tell(f"simulating {plan.switch_count} switches and {plan.host_count} hosts in virtual time")
        seeds = Random(seed)
        self._switches = {node: SimulatedSwitch(self, node, seeds.getrandbits(64)) for node in plan.switches()}
        self._hosts = {
            host: SimulatedHost(self, host, self._nic(host, transport, seed, directory)) for host in plan.hosts()
        }
        self._by_name = {host.name: simulated for host, simulated in self._hosts.items()}

    def _nic(self, host: Host, transport: Transport, seed: int, directory: RunDirectory) -> HostNic:
        own = profile.parse(nic_profile(self.plan, host))
        journal = Journal(directory.journal(host.name), host.name, lambda: self.events.now_ns)
        self._journals.append(journal)
        journal.write_process("agent", pid=0, realtime_ns=0)
        nic = factory.make(transport.agent, own, seed, transport.settings, 0)
        return HostNic(
            own,
            nic,
            journal.write_at,
            transport_name=transport.agent,
            clock=lambda: self.events.now_ns,
            now_ns=0,
        )

    def deliver(self, to: PortRef, frame: bytes) -> None:
        if isinstance(to.node, Host):
            self._hosts[to.node].receive(to.port, frame)
        else:
            self._switches[to.node].receive(to.port, frame)

    # scenarios.running.world.World

    @property
    def clients(self) -> Mapping[str, SimulatedHost]:
        return self._by_name

    def now_ns(self) -> int:
        return self.events.now_ns

    def wait_until(self, t_ns: int) -> None:
        self.events.run_until(t_ns)

    def inject(self, verb: str, target: str, value: float | None, seed: int) -> Fault:
        fault = faults.make_fault(self.plan, verb, target, value, seed)
        if fault.verb == "switch-reboot":
            self._switches[self.plan.switch_node(fault.target)].crash()
            self._switches[self.plan.switch_node(fault.target)].provision()
        elif fault.verb == "switch-crash":
            self._switches[self.plan.switch_node(fault.target)].crash()
        if faults.VERBS[fault.verb].lasting:
            self._faults.append(fault)
        self._apply()
        return fault

    def undo(self, fault: Fault) -> None:
        if fault not in self._faults:
            return
        self._faults.remove(fault)
        if fault.verb == "switch-crash":
            self._switches[self.plan.switch_node(fault.target)].provision()
        self._apply()

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        for switch in self._switches.values():
            switch.reconverge(dead_links)

    def verify(self) -> int:
        return sum(switch.differences() for switch in self._switches.values())

    def close(self) -> None:
        """Ends every NIC, and journals what the switches counted: their totals, once."""
        for host in self._hosts.values():
            host.nic.close(self.events.now_ns)
        for switch in self._switches.values():
            self._switch_journal.write(
                "sample", node=switch.node.name, device=switch.node.name, ports=switch.counters()
            )
        for journal in self._journals:
            journal.close()

    # faults

    def _apply(self) -> None:
        """Bring every port and switch to what the faults in force together mean."""
        wanted = faults.port_states(self.plan, self._faults)
        for ref in [*self._touched, *wanted]:
            state = wanted.get(ref) or faults.healthy(self.plan, ref)
            if self._touched.get(ref, faults.healthy(self.plan, ref)) == state:
                continue
            self._touched[ref] = state
            if isinstance(ref.node, Host):
                self._hosts[ref.node].set_state(ref.port, state)
            else:
                self._switches[ref.node].set_state(ref.port, state)
        for node, switch in self._switches.items():
            running = faults.switch_state(self._faults, node) == "running"
            switch.engine.set_running(running, self.events.now_ns)
        for host, simulated in self._hosts.items():
            denied = [{"host": other, "ev": ev} for other, ev in faults.denied_evs(self.plan, host, self._faults)]
            simulated.result(simulated.send("denylist.set", denied=denied))

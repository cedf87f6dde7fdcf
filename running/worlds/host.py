"""A host of the simulated world: its NIC in virtual time."""

import json
from collections.abc import Callable
from typing import Any

from common.client import ControlError, ControlTimeoutError
from endpoint import FAULTS, HostNic, VirtualHost, call
from endpoint.uverbs import SteppedUverbs
from running.worlds.virtual_time import VirtualTime
from switch import Fabric
from topo import Host
from topo.fault import DenialChange, PortState

ANSWER_S = 30.0  # of lab time, for a control operation


def answered(
    take: Callable[[], dict[str, Any] | Exception | None], host: str, time: VirtualTime, limit_s: float
) -> Any:
    """The result of an operation: lets virtual time pass until `take` gives the answer, or what was raised."""
    answer: dict[str, Any] | Exception | None = None

    def happened() -> bool:
        nonlocal answer
        answer = take()
        return answer is not None

    if not time.pass_until(happened, time.now_ns + round(limit_s * 1e9)):
        raise ControlTimeoutError(f"{host} did not answer within its virtual time", limit_s)
    if isinstance(answer, Exception):
        raise answer
    assert answer is not None
    if not answer["ok"]:
        raise ControlError(answer["error"])
    return answer["result"]


class SimulatedHost:
    """A host's NIC; also the client of its control operations (`endpoint.group.AgentClient`)."""

    def __init__(self, node: Host, number: int, time: VirtualTime, fabric: Fabric, pace: float) -> None:
        """`number` is the fabric's, `pace` the plan's. A NIC with this host's `clock` is attached before all else."""
        self.node = node
        self.nic: HostNic
        self.uverbs: SteppedUverbs
        self.virtual: VirtualHost | None = None
        """There once the NIC is."""
        self._number = number
        self._answer_s = ANSWER_S * pace
        self._time = time
        self._fabric = fabric
        self._up: dict[int, bool] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._sent = 0

    def clock(self) -> int:
        """The host's own time: ahead of the world's while the host lives through a turn."""
        return self._time.now_ns if self.virtual is None else max(self.virtual.now_ns, self._time.now_ns)

    def attach(self, nic: HostNic, entrance: SteppedUverbs) -> None:
        self.nic = nic
        self.uverbs = entrance
        self.virtual = VirtualHost(nic, self._number)

    # endpoint.group.AgentClient

    def send(self, op: str, **arguments: Any) -> int:
        self._sent += 1
        ident = self._sent
        # Requests become JSON and back, as on a control socket, so that both worlds see the same values.
        request = json.loads(json.dumps({"id": ident, "op": op, **arguments}))
        self.nic.control(request, self._time.now_ns, lambda answer: self._answers.update({ident: answer}))
        self._act()
        return ident

    def result(self, ident: int, timeout_s: float | None = None) -> Any:
        """Lets virtual time pass until the answer is there."""
        limit_s = self._answer_s if timeout_s is None else timeout_s
        return answered(lambda: self.take(ident), self.node.name, self._time, limit_s)

    def take(self, ident: int) -> dict[str, Any] | None:
        """The answer to an operation, once; None while there is none."""
        return self._answers.pop(ident, None)

    # programs

    def settle(self) -> None:
        """Serve the programs of this host that run until they wait, and send what they have posted."""
        if self.uverbs.settle(self._time.now_ns):
            self._act()

    # changes

    def set_port(self, port: int, state: PortState) -> None:
        """The NIC sees a carrier that comes or goes."""
        if state.up != self._up.get(port, True):
            self._up[port] = state.up
            self.nic.port_changed(port, state.up, self._time.now_ns)
            self._act()

    def set_denied(self, change: DenialChange) -> None:
        """Change which paths the NIC denies because of faults; the NIC's own reasons to deny stay apart."""
        rows = call(self, "denylist.get", owner=FAULTS)["denied"]
        call(self, "denylist.set", owner=FAULTS, denied=change.applied(rows))

    def _act(self) -> None:
        """Have the NIC act at once on a change that was made to it between turns."""
        assert self.virtual is not None
        frames = self.virtual.act(self._time.now_ns)
        self._time.wake(self._number)
        self._fabric.send(frames)

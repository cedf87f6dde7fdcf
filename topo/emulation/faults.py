"""The faults in force on a running lab: changes carried out on ports, switches and NICs."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal, assert_never

from common.client import ControlClient, ControlError
from common.journal import Journal
from common.terminal.standard_streams import write_error
from topo.emulation import hosts, namespace, state, tc
from topo.emulation.driver import LabSite, SwitchDriver
from topo.emulation.state import LabError
from topo.fault import CarrierChange, Change, DenialChange, Fault, PortChange, Provisioning, RoutingChange, SwitchChange
from topo.node import Host, Switch

DENIAL_OWNER = "faults"  # the owner, in agent control's `denylist.set`, of paths denied because of faults


def tell_of_dead(names: Sequence[str]) -> None:
    """Say on standard error that these hosts' agents have left their sockets behind, as a killed process does."""
    for name in names:
        write_error(f"mrclab: the agent of {name} has ended without removing its socket; it is left out")


class LabFabric:
    """Carries changes out on real links, switches and agents. It knows no verbs."""

    def __init__(
        self, site: LabSite, driver: Callable[[Switch], SwitchDriver], provision: Callable[[Sequence[Switch]], None]
    ) -> None:
        self.site = site
        self._driver = driver
        self._provision = provision

    # topo.fault.FaultableFabric

    def refusal(self, change: Change) -> str | None:
        scales = self.site.plan.queues.scale_with_rate
        match change:
            case CarrierChange(ref=ref) if isinstance(ref.node, Switch):
                why = self._driver(ref.node).refusal(change)
                return f"{ref.node}: {why}" if why else None
            case PortChange(state=state, before=before) if scales and state.rate_bps != before.rate_bps:
                return "queues.scale_with_rate works in virtual time only, where tables change with a port's rate"
            case DenialChange() if not any(map(ControlClient.listens, map(self._agent, self.site.plan.hosts()))):
                return "no agent runs in any host, and this fault is telling NICs to deny paths; start agents first"
        return None

    def carry_out(self, change: Change) -> None:
        match change:
            case PortChange():
                self._set_port(change)
            case CarrierChange():
                self._set_carrier(change)
            case SwitchChange():
                self._driver(change.switch).set_switch(change.switch, change.state, change.before)
            case Provisioning():
                if self._driver(change.switch).p4runtime(change.switch):
                    self._provision([change.switch])
            case DenialChange():
                self._set_denied(change)
            case RoutingChange():
                pass  # tables are static; the runner plays the baseline's routing protocol
            case _:
                assert_never(change)

    def _set_port(self, change: PortChange) -> None:
        ref = change.ref
        if isinstance(ref.node, Switch):
            self._driver(ref.node).set_port(ref, change.state, change.before)
        elif change.state.loss != change.before.loss:
            tc.set_loss(self.site.netns(ref.node), ref.interface, change.state.loss)

    def _set_carrier(self, change: CarrierChange) -> None:
        ref = change.ref
        with namespace.entered(self.site.netns(ref.node)):
            namespace.set_up([ref.interface], change.on)
        if not change.on:
            return
        if isinstance(ref.node, Switch):
            self._driver(ref.node).carrier_restored(ref, change.node)
        else:
            hosts.restore_port(self.site, ref)

    def _set_denied(self, change: DenialChange) -> None:
        """Change which paths an agent denies because of faults; the agent's own reasons to deny stay apart."""
        path = self._agent(change.host)
        try:
            client = ControlClient.of_living(path)
            if client is None:
                tell_of_dead([change.host.name] if path.exists() else [])
                return
            with client:
                rows = client.call("denylist.get", owner=DENIAL_OWNER)["denied"]
                client.call("denylist.set", owner=DENIAL_OWNER, denied=change.applied(rows))
        except ControlError as error:
            raise LabError(f"the agent of {change.host} did not take its denylist: {error}") from None

    def _agent(self, host: Host) -> Path:
        return self.site.root / "agents" / f"{host}.sock"


class LabRecord:
    """The faults in force, in `faults.json`, so that any process can undo them; and as lines of the lab's journal."""

    def __init__(self, site: LabSite) -> None:
        self.site = site
        self._lock = threading.Lock()

    @contextmanager
    def locked(self) -> Iterator[None]:
        with self._lock, state.faults_locked(self.site.root):
            yield

    def read(self) -> list[Fault]:
        return state.read_faults(self.site.root)

    def write(self, faults: Sequence[Fault]) -> None:
        state.write_faults(list(faults), self.site.root)

    def tell(self, fault: Fault, which: Literal["begin", "end"]) -> None:
        if self.site.journals is None:
            return
        with closing(Journal(self.site.journals / "faults.jsonl", "lab")) as journal:
            journal.write("fault", **fault.line(which))

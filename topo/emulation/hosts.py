"""Hosts of a running lab: addresses and routes of their kernels, NIC profiles, interface counters."""

from pathlib import Path

from topo.emulation import namespace
from topo.emulation.driver import LabSite
from topo.emulation.state import LabError
from topo.emulation.wiring import (
    host_commands,
    host_port_commands,
    host_route_commands,
    host_rule_commands,
    host_srv6_commands,
)
from topo.graph import PortRef, ports
from topo.node import Host
from topo.pfc import jitter_ns
from topo.profile import write_profile

_COUNTER_COLUMNS = {"rx_bytes": 0, "rx_packets": 1, "tx_bytes": 8, "tx_packets": 9}


def configure(site: LabSite, host: Host) -> None:
    """Addresses, routes, neighbours and rules of a host that Mininet has made."""
    plan, netns = site.plan, site.netns(host)
    with namespace.entered(netns):
        namespace.offloads_off(ref.interface for ref in ports(plan, host))
    namespace.run_ip([*host_commands(plan, host), *host_rule_commands(plan, host)], netns)
    if plan.encapsulation == "srv6":
        # Without seg6 in the kernel the NIC still works; only `steer` does not, and says so.
        namespace.run_ip(host_srv6_commands(plan, host), netns, force=True)


def restore_port(site: LabSite, ref: PortRef) -> None:
    """Put back the routes that the kernel forgot when the port was set down."""
    host = ref.node
    if not isinstance(host, Host):
        raise TypeError(f"{ref} is not a host's")
    plan, netns = site.plan, site.netns(host)
    with namespace.entered(netns):
        up = [other.port - 1 for other in ports(plan, host) if namespace.is_up(other.interface)]
    namespace.run_ip([*host_port_commands(plan, host, ref.port - 1), *host_route_commands(plan, host, up)], netns)
    if plan.encapsulation == "srv6":
        namespace.run_ip(host_srv6_commands(plan, host), netns, force=True)


def write_profiles(site: LabSite) -> None:
    """Each host's NIC profile (docs/contracts.md) under `site.root`/profiles."""
    (site.root / "profiles").mkdir(exist_ok=True)
    for host in site.plan.hosts():
        write_profile(site.plan, host, site.root / "profiles" / f"{host}.json", jitter_ns=jitter_ns(site.plan))


def check_links(site: LabSite) -> None:
    """Every port is there, up, with carrier, and takes the plan's MTU. LabError with the arithmetic."""
    plan = site.plan
    for node in plan.nodes():
        with namespace.entered(site.netns(node)):
            for ref in ports(plan, node):
                if not namespace.carrier(ref.interface):
                    raise LabError(f"{ref.interface} has no carrier: one of its ends was not set up")
                mtu = namespace.mtu(ref.interface)
                if mtu < plan.links.mtu_bytes:
                    raise LabError(
                        f"{ref.interface} has an MTU of {mtu}, but a packet of the plan needs {plan.links.mtu_bytes}:"
                        f" payload {plan.packets.pmtu_bytes} + headers {plan.overhead_bytes}, and room to spare"
                    )


def interface_counters(netns: str) -> dict[str, dict[str, int]]:
    """Packets and bytes of each interface in a namespace since it was made, from /proc/net/dev."""
    counters = {}
    with namespace.entered(netns):
        text = Path("/proc/thread-self/net/dev").read_text()
    for line in text.splitlines()[2:]:
        name, _, rest = line.partition(":")
        values = rest.split()
        counters[name.strip()] = {key: int(values[column]) for key, column in _COUNTER_COLUMNS.items()}
    return counters

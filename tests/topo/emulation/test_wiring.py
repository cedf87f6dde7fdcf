"""What is handed to others: commands for iproute2, configuration for the switch process, profiles for endpoints."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from endpoint import profile as endpoint_profile
from switch.config import parse_config
from tests.topo.topologies.shapes import LEAF_SPINES
from topo.emulation import tc, wiring
from topo.emulation.bmv2 import queue_settings
from topo.emulation.embedded import serve_config
from topo.fault import healthy
from topo.graph import PortRef, device_id, links, ports, towards_host
from topo.node import Host, leaf, spine
from topo.path import path_da, paths
from topo.plan import PRIORITY_CONTROL, PRIORITY_DATA
from topo.planfile import load_plan
from topo.profile import nic_profile, write_profile

SOCKETS = Path("/run/mrclab/switch")


@given(LEAF_SPINES)
def test_every_link_is_made_with_both_ends_in_their_namespaces(plan):
    pattern = re.compile(
        r"link add (\S+) netns (\S+) address (\S+) mtu (\d+)"
        r" type veth peer name (\S+) netns (\S+) address (\S+) mtu (\d+)"
    )
    lines = list(wiring.link_commands(plan))
    made = [m for line in lines if (m := pattern.fullmatch(line))]
    assert len(made) == len(lines)
    ends = {(m[1], m[2], m[3]) for m in made} | {(m[5], m[6], m[7]) for m in made}
    assert ends == {(end.interface, str(end.node), end.mac) for link in links(plan) for end in (link.a, link.b)}
    assert {m[4] for m in made} | {m[8] for m in made} == {str(plan.links.mtu_bytes)}


@given(LEAF_SPINES)
def test_the_switch_process_accepts_its_configuration(plan):
    config = parse_config(json.loads(json.dumps(serve_config(plan, [*plan.switches()], SOCKETS, "/tmp/switch.jsonl"))))
    assert [device.name for device in config.devices] == [switch.name for switch in plan.switches()]
    assert config.turn_ns * 32 <= plan.base_rtt_ns
    assert config.turn_ns or plan.base_rtt_ns < 3_200_000
    for device, switch in zip(config.devices, plan.switches(), strict=True):
        assert device.device_id == device_id(plan, switch)
        for spec, ref in zip(device.ports, ports(plan, switch), strict=True):
            assert (spec.port, spec.interface) == (ref.port, ref.interface)
            towards = towards_host(plan, ref)
            rate, delay = plan.links.fabric_rate_bps, plan.links.fabric_delay_ns
            if towards:
                rate, delay = plan.links.host_rate_bps, 2 * plan.links.host_delay_ns
            assert (spec.config.rate_bps, spec.config.delay_ns) == (rate, delay)
            assert spec.config.queues[PRIORITY_DATA].depth_packets == plan.depth_packets
            assert spec.config.queues[PRIORITY_CONTROL].depth_packets == plan.control_depth_packets


@pytest.mark.parametrize("name", ["tiny", "lab", "rack", "wide"])
@pytest.mark.parametrize("single_plane", [False, True])
def test_an_endpoint_accepts_its_profile(name, single_plane, tmp_path):
    plan = load_plan(name)
    plan = plan.single_plane() if single_plane else plan
    write_profile(plan, Host(1), tmp_path / "h1.json", jitter_ns=20_000_000)
    loaded = endpoint_profile.load(tmp_path / "h1.json")
    written = nic_profile(plan, Host(1), jitter_ns=20_000_000)
    assert loaded.host == "h1"
    assert loaded.base_rtt_ns == plan.base_rtt_ns
    assert len(loaded.ports) == plan.planes
    assert set(loaded.destinations) == set(written["destinations"])


def test_a_kernel_leaf_has_a_route_for_every_usid_and_prefix_that_it_forwards():
    plan = load_plan("tiny")
    lines = wiring.kernel_switch_routes(plan, leaf(1, 0), {1, 2, 3, 4})
    own = [line for line in lines if "seg6local" in line]
    assert own[2] == (
        "route replace fcbb:bbbb:1200::/48 encap seg6local action End flavors next-csid lblen 32 nflen 16"
        " dev p1l0-eth3 metric 1027"
    )
    assert len(own) == 4
    targets = {line.split()[2]: line.split("dev ")[1:] for line in lines if line not in own}
    assert targets == {
        "fcbb:bbbb:3000::/48": ["p1l0-eth1"], "fcbb:bbbb:3001::/48": ["p1l0-eth2"],
        "fcbb:bbbb:2100::/48": ["p1l0-eth3"], "fcbb:bbbb:2101::/48": ["p1l0-eth4"], "fd00::/48": ["p1l0-eth1"],
        "fd00:0:1::/48": ["p1l0-eth2"], "fd00:1::/32": ["p1l0-eth3 nexthop via fe80::1 ", "p1l0-eth4"],
    }  # fmt: skip


def test_a_kernel_switch_names_no_port_that_is_down():
    plan = load_plan("tiny")
    lines = wiring.kernel_switch_routes(plan, leaf(1, 0), {2, 4})
    assert not any("eth1" in line or "eth3" in line for line in lines)
    assert "route replace fd00:1::/32 nexthop via fe80::1 dev p1l0-eth4" in lines
    assert wiring.kernel_switch_routes(plan, leaf(1, 0), set()) == []
    assert wiring.host_route_commands(plan, Host(0), []) == []


def test_a_kernel_spine_routes_its_leaves_only_and_the_single_plane_has_no_usid_routes():
    plan = load_plan("tiny")
    targets = {line.split()[2] for line in wiring.kernel_switch_routes(plan, spine(0, 1), {1, 2})}
    assert targets == {"fcbb:bbbb:2001::/48", "fcbb:bbbb:1000::/48", "fcbb:bbbb:1001::/48", "fd00::/32", "fd00:1::/32"}
    single = plan.single_plane()
    assert not any(
        "fcbb" in line for one in single.switches() for line in wiring.kernel_switch_routes(single, one, range(9))
    )


def test_hosts_spread_over_all_planes_and_steering_names_one():
    plan = load_plan("lab")
    assert wiring.host_commands(plan, Host(5))[-1].count("nexthop via fe80::1 dev h5-p") == 4
    path = next(paths(plan, Host(5), Host(0)))
    (line,) = wiring.steer_commands(plan, path)
    assert f"segs {path_da(plan, path)} " in line
    assert f"dev {PortRef(Host(5), path.port).interface} " in line


def test_bmv2_queues_are_paced_in_full_frames_and_in_trimmed_packets_and_retransmissions_as_data():
    data, control = queue_settings(load_plan("lab"), 10_000_000)
    assert (data, control) == ((PRIORITY_DATA, 78, 287), (PRIORITY_CONTROL, 531, 9766))
    first, copies, _ = queue_settings(load_plan("lab", {"queues.retransmit_priority": "1"}), 10_000_000)
    assert copies == (1, *first[1:])


@pytest.mark.parametrize(("loss", "threshold"), [(0.0, 0), (0.25, 1 << 30), (0.5, 1 << 31)])
def test_the_loss_program_compares_one_random_word_with_its_share(loss, threshold):
    assert tc.loss_program(loss) == f"4,32 0 0 {0xFFFFF038},53 1 0 {threshold},6 0 0 4,6 0 0 {0xFFFFFFFF}"
    assert tc.loss_program(1.0) == "1,6 0 0 4", "total loss draws no lots"


def test_switches_of_every_kind_are_told_what_surrounds_a_frame() -> None:
    """By hand: at 10 Mb/s a second has room for 1,250,000 / (4352 + 24) full frames and / (128 + 24) trimmed ones."""
    plan = load_plan("tiny")
    plan = replace(plan, links=replace(plan.links, wire_overhead_bytes=24, nic_latency_ns=1_000_000))
    config = parse_config(json.loads(json.dumps(serve_config(plan, list(plan.switches()), SOCKETS))))
    ports_ = [spec.config for device in config.devices for spec in device.ports]
    assert {port.overhead_bytes for port in ports_} == {24}
    assert {port.delay_ns for port in ports_} == {5_000_000, 2 * 6_000_000}
    assert [rate for _, _, rate in sorted(queue_settings(plan, 10_000_000))] == [286, 8224]
    assert healthy(plan, PortRef(plan.host("h0"), 1)).overhead_bytes == 24

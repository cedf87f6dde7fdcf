"""One lab, looked at on real links and in virtual time, in its own process and from another: the same facts."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.traffic import Traffic
from controller import provision
from endpoint.group import WorkloadGroup
from running.directory import RunDirectory
from running.tracing import data_frame, follow
from running.transport_choice import transport
from running.view import LabView, RealLab, VirtualLab, described, find, journey_json, links_json, remote, rows_of, up
from running.view.answers import chosen_path, chosen_ports, near_end, packets_json
from running.worlds import SimulatedWorld
from topo.emulation.lab import Lab
from topo.emulation.labname import LabName
from topo.graph import links
from topo.planfile import load_plan

TINY = load_plan("tiny")
MESSAGES, SIZE = 3, 3 * TINY.packets.pmtu_bytes
PACKETS = MESSAGES * 3
NAME = LabName("viewed")


@pytest.fixture(params=["virtual", "remote", pytest.param("real", marks=pytest.mark.root)])
def view(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabView]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MRCLAB_NAME", NAME.text)
    if request.param == "virtual":
        directory = RunDirectory.create(tmp_path, "up", 1)
        with closing(SimulatedWorld(TINY, transport("mrc"), 1, directory, lambda _: None)) as world:
            yield VirtualLab(world)
    elif request.param == "remote":
        lab = up(TINY)
        yield lab
        lab.end()
    else:
        if os.geteuid() != 0:
            pytest.skip("needs root: builds network namespaces")
        made = Lab.up(TINY, provision=provision)
        try:
            with Traffic(RealLab(made)) as traffic:
                traffic.ensure_agents(None, {}, 1)
            yield RealLab(made)
        finally:
            made.down()


def written(view: LabView, source: str = "h0", destination: str = "h2") -> dict[str, Any]:
    """The end of a few writes, in order, so that no queue grows."""
    options = {"size": SIZE, "messages": MESSAGES, "depth": 1}
    clients = view.agents()
    group = WorkloadGroup(
        clients, name="writes", kind="write_bw", ranks=[source, destination], options=options, clock=view.now_ns
    )
    group.start()
    done = group.wait(60.0)
    view.pass_time(0.1)  # the last answers are under way
    group.remove()
    return done


def test_the_same_writes_are_counted_alike_in_every_world(view: LabView) -> None:
    assert written(view)["h2"]["result"]["bytes_verified"] == MESSAGES * SIZE
    rows = rows_of(view, chosen_ports(TINY, None))
    last = [
        row for row in rows["classes"] if row["IFACE"] in ("p0l1-eth1", "p1l1-eth1") and row["CLASS"] == "trimmable"
    ]
    assert sum(row["TX"] for row in last) == PACKETS
    assert not any(row["DROPS"] or row["TRIM_PKTS"] for row in rows["ports"])
    ports = {row["IFACE"]: row for row in rows["ports"]}
    for link in links(TINY):
        if link.a.interface in ports and link.b.interface in ports:
            assert ports[link.a.interface]["TX_OK"] == ports[link.b.interface]["RX_OK"], link.name
    assert all(row["QUEUE"] == 0 for row in rows["ports"])


def test_nodes_interfaces_and_faults_are_told_alike(view: LabView) -> None:
    nodes = {row["node"]: row for row in described(view, list(TINY.nodes()))}
    assert {row["state"] for row in nodes.values()} == {"running", "running, with an agent"}
    assert {one["state"] for row in nodes.values() for one in row["interfaces"]} == {"up"}
    fault = view.inject("link-down", "p0l0-p0s0")
    assert view.faults() == [fault]
    (leaf,) = described(view, [TINY.node("p0l0")])
    assert {one["peer"]: one["state"] for one in leaf["interfaces"]}["p0s0-eth1"] == "down"
    view.undo(fault)
    assert view.faults() == []
    crash = view.inject("switch-crash", "p0s1")
    assert described(view, [TINY.node("p0s1")])[0]["state"] in ("crashed", "silent")
    assert view.programs([TINY.switch_node("p0s1")]) == {"p0s1": None}
    assert view.held(TINY.switch_node("p0s1")) == []
    view.undo(crash)
    assert view.held(TINY.switch_node("p0s1")) != []


def test_a_packet_is_followed_through_the_tables_that_the_switches_hold(view: LabView) -> None:
    path = chosen_path(TINY, "h0", "h3", None)
    told = journey_json(path, follow(TINY, view, path, data_frame(TINY, path, 64), view.wired))
    assert told["reached"] == "h3"
    assert [hop["switch"] for hop in told["hops"]] == ["p0l0", "p0s0", "p0l1"]
    view.inject("link-down", "p0l0-p0s0")
    told = journey_json(path, follow(TINY, view, path, data_frame(TINY, path, 64), view.wired))
    assert (told["reached"], told["arrival"]) == (None, 0.0)


def test_captured_packets_are_those_that_counters_count(view: LabView) -> None:
    near = near_end(TINY, "p0l0-h0")
    group = WorkloadGroup(
        view.agents(), name="w", kind="write_bw", ranks=["h0", "h2"], options={"size": SIZE, "messages": 0},
        clock=view.now_ns,
    )  # fmt: skip
    group.start()
    crossed = packets_json(TINY, view.crossing(near, 0.3))
    assert {(w["src"], w["dst"]) for w in crossed if not w["out"] and w["op"].startswith("WRITE")} == {("h0", "h2")}
    assert [one["t_ns"] for one in crossed] == sorted(one["t_ns"] for one in crossed)
    counted = rows_of(view, [near])["ports"][0]["RX_OK"]
    assert 0 < sum(not one["out"] for one in crossed) <= counted


def test_probers_tell_of_every_link_in_every_world(view: LabView) -> None:
    for client in view.agents().values():
        client.result(client.send("prober.start", interval_ns=20_000_000, window=20, deny=False))
    view.pass_time(2.0)
    told = links_json(view, every=True)
    assert {frozenset((one["a"], one["b"])) for one in told} == {
        frozenset((link.a.node.name, link.b.node.name)) for link in links(TINY)
    }
    assert links_json(view) == []


def test_a_lab_in_virtual_time_is_found_by_its_name_from_its_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    lab = up(TINY)
    try:
        found = find()
        assert found is not None
        assert (found.root, found.plan) == (lab.root, TINY)
        assert find(LabName("other")) is None
        monkeypatch.chdir("/")
        assert remote.find() is None
    finally:
        lab.end()

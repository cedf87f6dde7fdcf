"""One lab, looked at on real links and in virtual time, in its own process and from another: the same facts."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from cli.traffic import Traffic
from common import unix_socket
from common.client import ControlClient, ControlError
from controller import provision
from endpoint.group import WorkloadGroup
from running.directory import RunDirectory
from running.tracing import data_frame, follow
from running.transport_choice import transport
from running.view import LabView, RealLab, VirtualLab, described, find, journey_json, links_json, remote, rows_of, up
from running.view.answers import chosen_path, chosen_ports, near_end, packets_json
from running.view.kept import SOCKET, KeeperGoneError, ask
from running.worlds import SimulatedWorld
from tests.helpers.stranger import NEEDS_ROOT, as_a_stranger, control_of_a_stranger
from tests.helpers.waiting import eventually
from topo.emulation import labname
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


Said = Callable[..., str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MRCLAB_NAME", "stepped")
    return tmp_path


@pytest.fixture
def lab() -> Iterator[Path]:
    made = up(load_plan("tiny"))
    yield made.root
    if (left := find()) is not None:
        left.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lab whose time no test lets pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("shared"))
        made = up(load_plan("tiny"))
    yield made.root
    made.end()


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*words: str, status: int = 0) -> str:
        capsys.readouterr()
        assert main(list(words)) == status, words
        told = capsys.readouterr()
        return told.err if status else told.out

    return run


def clock(folder: Path) -> dict[str, int]:
    told: dict[str, int] = ask(folder, "clock")
    return told


def test_what_needs_real_links_says_so_and_how_to_have_them(lab: Path, say: Said) -> None:
    how = "needs real links, and lab 'stepped' is in virtual time: ./lab down --name stepped, then ./lab up PLAN --name"
    for words in (
        ["exec", "h0", "--", "true"], ["shell"], ["launch", "--ranks", "h0,h1", "--", "true"], ["controller", "verify"]
    ):  # fmt: skip
        assert f"{words[0]} {how} stepped" in say(*words, status=2)


def test_an_idle_lab_says_that_nothing_was_captured(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "h0-p0l0", "h0-p1l0"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no packet crossed h0-p0l0, h0-p1l0 in 1 ms of lab time: --seconds S" in captured.err


def test_a_negative_step_is_named_as_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["step", "-5ms"])
    assert "TIME: must be a number with ns, us, ms or s, such as 10ms, and not negative (got '-5ms')" in " ".join(
        capsys.readouterr().err.split()
    )


def test_down_all_ends_labs_of_all_names(lab: Path, say: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRCLAB_NAME", "other")
    monkeypatch.setattr(labname, "named", list)  # root's labs on real links are others'
    say("up", "tiny", "--world", "simulated", "--seed", "3", "--transport", "mrc-cx8")
    assert "mrc-cx8 needs" not in say("status")
    other = find()
    assert other is not None
    options = json.loads((other.root / "options.json").read_text())
    assert (options["seed"], options["transport"]) == (3, "mrc-cx8")
    assert say("down", "--all").splitlines()[:2] == ["lab 'other' is down", "lab 'stepped' is down"]
    assert find() is None
    assert not (lab / SOCKET).exists()


def test_a_transport_that_the_plan_is_none_for_is_refused(here: Path, say: Said) -> None:
    up = ("up", "tiny", "--world", "simulated", "--transport")
    assert "transport roce needs ./lab up PLAN --single-plane" in say(*up, "roce", status=2)
    assert "valid are mrc, mrc-ocp" in say(*up, "nothing", status=2)


def test_commands_step_look_at_break_and_end_a_lab(here: Path, say: Said) -> None:
    assert "is up as stepped in virtual time, which stands still" in say("up", "tiny", "--world", "simulated")
    assert "it is 1.5 ms" in say("step", "1.5ms")
    say("traffic", "write_bw", "h0", "h2", "--background")
    say("step", "200ms")
    assert sum(row["RX_OK"] for row in json.loads(say("counters", "--format", "json"))["ports"]) > 10
    assert json.loads(say("inspect", "p0l0", "--format", "json"))["nodes"][0]["state"] == "running"
    assert "h2 receives" in say("trace", "h0", "h2")
    assert "src=h0 dst=h2" in say("capture", "h0-p0l0", "--seconds", "0.05")
    say("capture", "h0-p0l0", "p0l0-h0", "--seconds", "0.05", "--write", "way.pcapng")
    assert (here / "way.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    assert '{lab="stepped",plan="tiny"} 1' in say("metrics", "--once")
    assert '"h0" -- "p0l0"' in say("graph", "--load", "0.05")
    say("fault", "link-down", "p0l0-p0s0")
    status = json.loads(say("status", "--format", "json"))
    assert (status["world"], status["faults"]) == ("simulated", ["link-down p0l0-p0s0"])
    assert status["now_ns"] == status["until_ns"] > 350_000_000
    assert "undone" in say("undo")
    assert "0 wrong" in say("traffic", "stop", "all")
    folder = Path(status["folder"])
    assert "is there already" in say("up", "tiny", "--world", "simulated", status=2)
    assert "is there already, in virtual time" in say("up", "tiny", status=2)
    assert "is down" in say("down")
    assert not (folder / SOCKET).exists()
    assert "no lab of the name stepped was running" in say("down")
    assert "no lab in virtual time is up here" in say("step", "1ms", status=2)


def test_other_commands_look_at_a_lab_while_its_time_passes(lab: Path, say: Said) -> None:
    say("traffic", "write_bw", "h0", "h2", "--background")
    say("step", "3000s", "--background")
    first = clock(lab)
    assert "which passes until" in say("status")
    assert json.loads(say("counters", "--format", "json"))["ports"]
    eventually(lambda: clock(lab)["now_ns"] > first["now_ns"], "time passes")
    say("step", "0")
    stopped = clock(lab)
    assert stopped["now_ns"] >= stopped["until_ns"]
    assert clock(lab) == stopped


def test_ctrl_c_stops_the_time_and_leaves_the_lab(lab: Path, say: Said) -> None:
    say("traffic", "write_bw", "h0", "h2", "--background")  # an hour without traffic may pass in a second
    begun = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    begun.start()
    assert main(["step", "3600s"]) == 130
    assert clock(lab)["until_ns"] <= clock(lab)["now_ns"]
    assert clock(lab) == clock(lab)


def test_a_killed_lab_leaves_nothing_that_a_command_takes_for_a_lab(lab: Path, say: Said) -> None:
    kill(lab)
    assert find() is None
    assert not (lab / SOCKET).exists()
    with pytest.raises(KeeperGoneError):
        ask(lab, "clock")
    assert "tiny is up" in say("up", "tiny", "--world", "simulated")


def kill(folder: Path) -> None:
    """`kill -9` of the process that keeps a lab, and its end."""
    with unix_socket.connected(folder / SOCKET) as connection:
        pid, *_ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: find() is None, "the lab is gone")


def test_another_process_ends_a_lab_with_its_socket(lab: Path) -> None:
    words = [sys.executable, "-c", "import sys; from cli.main import main; sys.exit(main(['down']))"]
    assert subprocess.run(words, check=False, timeout=60).returncode == 0
    assert find() is None


@pytest.mark.parametrize(
    ("op", "arguments", "said"),
    [
        ("held", {"arguments": [{"node": "../../etc"}]}, "etc"),
        ("held", {"arguments": [{"__class__": "x"}]}, "no record '__class__'"),
        ("undo", {"arguments": []}, "a defect"),
        ("step", {"seconds": -1}, "a step must be between 0 and 3600 s"),
        ("step", {"seconds": 1e300}, "a step must be between 0 and 3600 s"),
        ("close", {}, "no operation 'close'"),
        ("send", {"host": "h9", "request": "ping", "arguments": {}}, "h9"),
    ],
)
def test_a_hostile_request_is_answered_and_the_lab_goes_on(shared: Path, op: str, arguments, said: str) -> None:
    with ControlClient(shared / SOCKET) as client, pytest.raises(ControlError, match=said):
        client.call(op, **arguments)
    assert clock(shared)["now_ns"] == 0


def test_the_socket_is_for_this_user_alone(shared: Path) -> None:
    assert (shared / SOCKET).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["10", "ms", "-1ms", "1e3s", "nan s", "10 ms", "١ms"])
def test_a_step_has_a_unit(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["step", "--", text])
    assert "must be a number with ns, us, ms or s" in capsys.readouterr().err


@NEEDS_ROOT
@pytest.mark.root
def test_a_lab_of_a_stranger_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="s-") as place:
        Path(place).chmod(0o1777)
        monkeypatch.chdir(place)
        folder = Path(place) / "runs" / "up.stepped" / "20991231-235959-1"
        with as_a_stranger():
            folder.mkdir(parents=True)
        with control_of_a_stranger(folder / SOCKET, {}) as asked:
            assert find() is None
            with pytest.raises(ControlError, match=r"must be a socket of root's or yours \(user 65534"):
                ask(folder, "clock")
        assert asked == []

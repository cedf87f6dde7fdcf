"""A killed agent leaves the file of its socket: commands step over the file, and tell it from a live agent's."""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.traffic import Traffic
from common.client import ControlError
from common.server import ControlServer, Reply, ThreadReaders
from running.view import RealLab
from running.worlds.agents import running_agents
from topo.emulation.driver import LabSite
from topo.emulation.faults import LabFabric
from topo.emulation.lab import Lab
from topo.emulation.labname import LabName
from topo.fault import DenialChange
from topo.node import Host
from topo.planfile import load_plan

PLAN = load_plan("tiny")
DEAD, LIVE, *_ = PLAN.hosts()


class Agent:
    """Answers as an agent does that knows one workload, and notes what it is asked."""

    def __init__(self, path: Path) -> None:
        self.asked: list[str] = []
        self.server = ControlServer(path, ThreadReaders(), self._answer, line_bytes_max=1 << 20)

    def _answer(self, request: Mapping[str, Any], reply: Reply) -> None:
        self.asked.append(request["op"])
        if request["op"] == "shutdown":
            reply({"id": request["id"], "ok": True, "result": {}})
            self.server.close()
            return
        reply({"id": request["id"], "ok": True, "result": {"state": "finished", "denied": []}})


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "agents").mkdir()
    return folder


@pytest.fixture
def lab(root: Path) -> Lab:
    fake = SimpleNamespace(name=LabName(), plan=PLAN, root=root, agent_socket=lambda host: root / f"agents/{host}.sock")
    return cast(Lab, fake)


def kill_agent(root: Path, host: Host) -> None:
    """The file that a process leaves which listened and was killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(root / "agents" / f"{host}.sock"))
        listener.listen()


@contextmanager
def live_agent(root: Path, host: Host) -> Iterator[Agent]:
    agent = Agent(root / "agents" / f"{host}.sock")
    try:
        yield agent
    finally:
        agent.server.close()


def test_a_dead_agent_is_left_out_and_named(lab: Lab, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kill_agent(root, DEAD)
    with live_agent(root, LIVE):
        clients = running_agents(lab)
        assert list(clients) == [LIVE.name]
        for client in clients.values():
            client.close()
    assert f"the agent of {DEAD} has ended without removing its socket" in capsys.readouterr().err


def test_a_socket_of_another_kind_is_no_dead_agent(lab: Lab, root: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(root / "agents" / f"{DEAD}.sock"))
        with pytest.raises(ControlError, match="no process answers"):
            running_agents(lab)


def test_traffic_is_stopped_around_a_dead_agent(lab: Lab, root: Path) -> None:
    kill_agent(root, DEAD)
    (root / "traffic").mkdir()
    asked = {"name": "job", "kind": "write_bw", "ranks": [DEAD.name, LIVE.name], "options": {}}
    (root / "traffic" / "job.json").write_text(json.dumps({**asked, "started_ns": 1}))
    with live_agent(root, LIVE) as agent, Traffic(RealLab(lab)) as traffic:
        (job,) = traffic.asked()
        assert traffic.stop(job).keys() == {LIVE.name}
        assert traffic.asked() == []
        assert traffic.end_agents() == 1
    assert agent.asked == ["workload.status", "workload.remove", "shutdown"]


def test_a_drain_steps_over_a_dead_agent_and_is_refused_where_all_are_dead(root: Path, capsys) -> None:
    kill_agent(root, DEAD)
    fabric = LabFabric(LabSite(PLAN, root, "token", {}), cast(Any, None), cast(Any, None))
    assert "no agent runs in any host" in (fabric.refusal(DenialChange(DEAD, frozenset(), frozenset())) or "")
    capsys.readouterr()
    with live_agent(root, LIVE) as agent:
        assert fabric.refusal(DenialChange(DEAD, frozenset(), frozenset())) is None
        for host in (DEAD, LIVE):
            fabric.carry_out(DenialChange(host, frozenset(), frozenset()))
    assert agent.asked == ["denylist.get", "denylist.set"]
    assert f"the agent of {DEAD} has ended without removing its socket" in capsys.readouterr().err

"""Agents as processes in two namespaces, driven as the runner drives them: control sockets, journals, signals."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from benchmarks.rig.namespaces import back_to_back, ip
from benchmarks.rig.profiles import profile as example
from common.client import ControlClient, ControlError
from endpoint.group import WorkloadGroup
from tests.helpers.agents import ROOT, AgentProcess, agents
from tests.helpers.waiting import eventually, ran
from topo.emulation.namespace import enter, entered, path_of

pytestmark = pytest.mark.root

PARENT = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
Pair = tuple[Sequence[AgentProcess], list[str]]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with agents(tmp_path_factory.mktemp("agents"), rate_bps=200_000_000) as started:
        yield started


def group(pair: Pair, kind: str, **options: object) -> WorkloadGroup:
    clients = {f"h{host}": agent.client for host, agent in enumerate(pair[0])}
    return WorkloadGroup(clients, name=kind, kind=kind, ranks=["h0", "h1"], options=options)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("write_bw", {"messages": 40, "size": 100_000, "qps": 2}),
        ("write_lat", {"messages": 50}),
        ("mix", {"messages": 100}),
        ("all_reduce", {"rounds": 3, "size": 200_000}),
        ("all_gather", {"rounds": 3, "size": 200_000}),
        ("all_to_all", {"rounds": 3, "size": 200_000}),
        ("training", {"steps": 3, "size": 100_000, "compute_ns": 5_000_000}),
    ],
)
def test_a_workload_runs_over_real_packets_and_every_byte_is_right(pair, kind, options):
    run = group(pair, kind, **options)
    at_ns = run.start()
    results = run.wait(30)
    for status in results.values():
        assert status["state"] == "finished", status
        assert status["result"]["bytes_wrong"] == status["result"]["messages_failed"] == 0
        assert len(status["result"]["table"]["columns"]) >= 5
    assert sum(status["result"]["bytes_verified"] for status in results.values()) > 0
    run.remove()
    for agent in pair[0]:
        lines = [line for line in agent.lines("workload") if line["name"] == kind]
        assert [line["state"] for line in lines] == ["start", "stop"]
        assert 0 <= lines[0]["t_ns"] - at_ns < 1_000_000_000
        assert lines[1]["result"] == results[lines[1]["node"]]["result"]


def test_the_journal_begins_with_the_process_and_samples_name_every_port_and_qp(pair):
    run = group(pair, "write_bw", size=50_000, messages=0)
    run.start()
    pair[0][0].client.call("sample", interval_ns=20_000_000, paths=True)

    def sampled() -> bool:
        return sum(bool(line["qps"]) and "paths" in line for line in pair[0][0].lines("sample")) >= 5

    eventually(sampled, "samples with a QP and its paths")
    run.stop()
    assert {status["state"] for status in run.wait(30).values()} == {"finished"}
    run.remove()
    pair[0][0].client.call("sample", interval_ns=100_000_000, paths=False)
    lines = pair[0][0].lines()
    assert lines[0]["kind"] == "process"
    assert lines[0]["role"] == "agent"
    assert lines[0]["pid"] == pair[0][0].process.pid
    assert {line["node"] for line in lines} == {"h0"}
    sample = [line for line in lines if line["kind"] == "sample" and line["qps"] and "paths" in line][-1]
    for port in sample["ports"]:
        assert {"plane", "tx_packets", "tx_bytes", "rx_packets", "rx_bytes", "drop_socket"} <= set(port)
    wanted = {"qp", "peer", "cwnd_bytes", "inflight_bytes", "rtt_ns", "acked_bytes", "data_packets", "retransmits"}
    assert wanted | {"rto", "trims", "ecn", "nacks", "skips", "probes"} <= set(sample["qps"][0])
    assert len(sample["paths"]) == 32
    cpu = [line for line in lines if line["kind"] == "cpu"]
    assert cpu[0]["process_ns"] <= cpu[-1]["process_ns"] <= cpu[-1]["wall_ns"]
    if Path("/proc/self/schedstat").exists():
        assert 0 < cpu[0]["wait_ns"] <= cpu[-1]["wait_ns"] <= cpu[-1]["wall_ns"]
    assert any(line["kind"] == "transfer" for line in pair[0][1].lines())


def test_an_agent_that_was_stopped_keeps_the_timers_that_were_due_later(pair):
    client, process = pair[0][0].client, pair[0][0].process
    client.call("sample", interval_ns=2_000_000_000, paths=False)

    def samples() -> list[int]:
        return [line["t_ns"] for line in pair[0][0].lines("sample")]

    count = len(samples())
    eventually(lambda: len(samples()) > count, "a sample to count from")
    count = len(samples())
    process.send_signal(signal.SIGSTOP)
    threading.Event().wait(1.5)  # the length of the stop
    process.send_signal(signal.SIGCONT)
    eventually(lambda: len(samples()) > count, "the next sample")
    before_ns, after_ns = samples()[count - 1 : count + 1]
    client.call("sample", interval_ns=100_000_000, paths=False)
    assert after_ns - before_ns < 3_400_000_000, "not later by the length of the stop"


def plane_states(agent: AgentProcess) -> list[str]:
    return [line["state"] for line in agent.lines("plane") if line["side"] == "local"]


def test_a_plane_that_goes_down_and_comes_back_costs_no_byte(pair):
    agents_pair, names = pair
    run = group(pair, "write_bw", size=100_000, messages=0, depth=8)
    run.start()

    def acked() -> int:
        return sum(qp["acked_bytes"] for qp in agents_pair[0].client.call("counters")["qps"])

    eventually(lambda: acked() > 1_000_000, "it runs")
    assert {status["state"] for status in run.wait(0.05).values()} == {"running"}  # a wait has an end
    ip("-n", names[1], "link", "set", "h1-p1", "down")
    before = acked()
    eventually(lambda: acked() > before + 3_000_000, "it goes on without the plane")
    ip("-n", names[1], "link", "set", "h1-p1", "up")
    # The kernel may report a short absence of carrier at the other end late or never; h1 knows of its own port at once.
    eventually(lambda: plane_states(agents_pair[1]) == ["down", "up"], "h1 journals its plane")
    before = acked()
    eventually(lambda: acked() > before + 1_000_000, "it goes on with it")
    run.stop()
    results = run.wait(30)
    run.remove()
    for status in results.values():
        assert status["state"] == "finished"
        assert status["result"]["bytes_wrong"] == 0
    assert results["h1"]["result"]["bytes_verified"] == results["h0"]["result"]["bytes"]


def test_the_denylist_is_set_and_read_back_and_keeps_packets_off_a_path(pair):
    client = pair[0][0].client
    denied = [{"host": "h1", "ev": ev} for ev in range(8)]  # all of plane 0
    client.call("denylist.set", denied=denied)
    assert client.call("denylist.get") == {"denied": denied}
    client.call("sample", interval_ns=20_000_000, paths=True)
    run = group(pair, "write_bw", size=50_000, messages=100)
    start_ns = run.start()
    run.wait(30)

    def used() -> set[str]:
        lines = [line for line in pair[0][0].lines("sample") if "paths" in line and line["t_ns"] > start_ns]
        return set().union(*(line["paths"] for line in lines))

    eventually(lambda: len(used()) == 24, "the other paths are used")
    assert not used() & {str(ev) for ev in range(8)}
    run.remove()
    client.call("denylist.set", denied=[])
    client.call("sample", interval_ns=100_000_000, paths=False)
    with pytest.raises(ControlError, match="names a destination's host and an EV of a path to it"):
        client.call("denylist.set", denied=[{"host": "h1", "ev": 77}])


def test_one_operation_can_be_sent_from_the_command_line(pair):
    def control(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "endpoint", "control", str(pair[0][0].socket), *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)

    assert json.loads(control("ping").stdout)["host"] == "h0"
    refused = control("workload.start", "name=nothing")
    assert refused.returncode == 2
    assert "there is no workload 'nothing'" in refused.stderr


def test_the_baseline_runs_the_same_workloads_on_one_port_without_encapsulation(tmp_path):
    with back_to_back(planes=1) as names, ExitStack() as stack:
        started = []
        for host, name in enumerate(names):
            data = example(host, planes=1, encapsulation="none", rate_bps=100_000_000)
            for destination in data["destinations"].values():
                for path in destination["paths"]:
                    path.update(da=destination["address"], via=None)
            started.append(AgentProcess(tmp_path, name, data, "--transport", "roce"))
            stack.callback(started[-1].close)
        for kind, options in (("write_bw", {"messages": 20, "qps": 4}), ("all_reduce", {"rounds": 2, "size": 100_000})):
            run = group((started, names), kind, **options)
            run.start()
            results = run.wait(30)
            run.remove()
            assert {status["state"] for status in results.values()} == {"finished"}
            assert sum(status["result"]["bytes_wrong"] for status in results.values()) == 0
            assert sum(status["result"]["bytes_verified"] for status in results.values()) > 0
        with pytest.raises(ControlError, match="has no self_probes in its profile"):
            started[0].client.call("prober.start")


def qdiscs(namespace: str) -> str:
    with entered(namespace):
        return subprocess.run(["tc", "qdisc", "show"], capture_output=True, text=True, check=True).stdout


def test_a_terminated_agent_leaves_nothing_behind_and_ends_its_workloads(tmp_path):
    with agents(tmp_path, planes=2) as (started, names):
        run = group((started, names), "write_bw", size=50_000, messages=0)
        run.start()
        eventually(lambda: len(started[1].lines("transfer")) > 0, "it runs")
        assert "clsact" in qdiscs(names[0])
        assert started[0].close() == 0
        assert not started[0].socket.exists()
        assert "clsact" not in qdiscs(names[0])
        stop = started[0].lines("workload")[-1]
        assert (stop["state"], stop["outcome"], stop["cause"]) == ("stop", "failed", "the agent ended")
        assert started[1].client.call("shutdown") == {}
        assert started[1].process.wait(10) == 0


def test_hosts_that_share_a_process_end_one_by_one(tmp_path):
    with back_to_back(planes=2) as names, ExitStack() as stack:
        words: list[str] = []
        for host, name in enumerate(names):
            (tmp_path / f"h{host}.json").write_text(json.dumps(example(host, planes=2)))
            words += ["--profile", f"h{host}.json", "--netns", name]
            words += ["--socket", f"h{host}.sock", "--journal", f"h{host}.jsonl"]
        process = subprocess.Popen(
            [sys.executable, "-m", "endpoint", "agent", *words, "--exit-with-parent"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        assert process.stdout is not None
        ready = [process.stdout.readline() for _ in names]
        assert [line.split()[1] for line in ready] == [b"host=h0", b"host=h1"]
        clients = {f"h{host}": ControlClient(tmp_path / f"h{host}.sock") for host in range(2)}
        run = WorkloadGroup(clients, name="bw", kind="write_bw", ranks=["h0", "h1"], options={"messages": 20})
        run.start()
        for status in run.wait(30).values():
            assert status["state"] == "finished"
            assert status["result"]["bytes_wrong"] == 0
        run.remove()
        assert all("clsact" in qdiscs(name) for name in names)
        assert clients["h1"].call("shutdown") == {}
        eventually(lambda: "clsact" not in qdiscs(names[1]), "h1 has ended")
        assert not (tmp_path / "h1.sock").exists()
        assert clients["h0"].call("ping")["host"] == "h0"
        assert process.poll() is None
        for host in range(2):
            lines = [json.loads(line) for line in (tmp_path / f"h{host}.jsonl").read_text().splitlines()]
            assert {line["node"] for line in lines} == {f"h{host}"}
            assert (lines[0]["kind"], lines[0]["pid"]) == ("process", process.pid)
        assert clients["h0"].call("shutdown") == {}
        assert process.wait(10) == 0
        assert "clsact" not in qdiscs(names[0])


def test_an_agent_process_needs_all_files_of_each_host(tmp_path):
    words = ["--profile", "a", "--profile", "b", "--socket", "a", "--journal", "a", "--journal", "b"]
    done = subprocess.run([sys.executable, "-m", "endpoint", "agent", *words], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert "--socket must be given once per --profile: 2 times (got 1)" in done.stderr


def test_an_agent_ends_with_its_parent_even_if_that_is_killed(tmp_path):
    with back_to_back(planes=1) as names:
        data = example(0, planes=1)
        (tmp_path / "h0.json").write_text(json.dumps(data))
        words = ["--profile", "h0.json", "--socket", "h0.sock", "--journal", "h0.jsonl", "--exit-with-parent"]
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, "-m", "endpoint", "agent", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            preexec_fn=lambda: enter(path_of(names[0])),
        )
        assert parent.stdout is not None
        assert parent.stdout.readline().startswith(b"ready ")
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(10)
        eventually(lambda: not (tmp_path / "h0.sock").exists(), "the agent cleaned up after its parent's death")
        eventually(lambda: "clsact" not in qdiscs(names[0]), "its filters are gone")


def failing_agent(tmp_path: Path, namespace: str, data: dict[str, object], *options: str) -> tuple[int, str]:
    (tmp_path / "bad.json").write_text(json.dumps(data))
    words = ["--profile", "bad.json", "--socket", "bad.sock", "--journal", "bad.jsonl", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "endpoint", "agent", *words]
    done = ran(command, preexec_fn=lambda: enter(path_of(namespace)), cwd=tmp_path, env=environment)
    return done.returncode, done.stderr


def test_an_agent_that_cannot_start_says_why_and_exits_with_2(tmp_path):
    with back_to_back(planes=1) as names:
        good = example(0, planes=1)
        status, complaint = failing_agent(tmp_path, names[0], {**good, "pmtu": 9000})
        assert status == 2
        assert "bad.json: profile.mtu is 4338, but pmtu 9000 + 132" in complaint
        status, complaint = failing_agent(tmp_path, names[0], example(0, planes=2))
        assert status == 2
        assert "cannot open interface h0-p1 of port 2" in complaint
        last = json.loads((tmp_path / "bad.jsonl").read_text().splitlines()[-1])
        assert last["kind"] == "error"
        assert last["fatal"] is True
        status, complaint = failing_agent(tmp_path, names[0], good, "--set", "speed=9")
        assert status == 2
        assert "speed" in complaint
        assert "clsact" not in qdiscs(names[0])


def test_a_full_disk_ends_no_agent_and_is_told_when_there_is_room_again(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], check=True)
    try:
        with agents(folder, rate_bps=200_000_000) as started:
            with (folder / "rest").open("wb", buffering=0) as rest, suppress(OSError):
                while rest.write(bytes(4096)):
                    pass
            assert not os.statvfs(folder).f_bavail
            client = started[0][0].client
            client.call("sample", interval_ns=20_000_000, paths=False)
            eventually(lambda: client.call("ping")["journal_lines_lost"] > 20, "lines that found no room", 30)
            run = group(started, "write_bw", size=100_000, messages=20)
            run.start()
            assert {status["state"] for status in run.wait(30).values()} == {"finished"}
            run.remove()
            (folder / "rest").unlink()

            def lines() -> list[bytes]:  # the full disk has cut one of the others
                return [line for line in started[0][0].journal.read_bytes().splitlines() if b'"kind":"lost"' in line]

            eventually(lambda: bool(lines()), "the line that tells of them", 30)
            assert json.loads(lines()[0])["lines"] > 20
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)

"""`python -m switch serve` as a process: readiness, shutdown, the parent's end, the journal, bad configurations."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from common.client import ControlClient
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from tests.helpers.switch_process import ready_words, stop
from tests.helpers.waiting import eventually, ran

WAIT_S = 20
DEVICES = [
    {"device_id": 1, "name": "one", "ports": [{"port": 1}, {"port": 2}]},
    {"device_id": 2, "name": "two", "ports": [{"port": 1}]},
]


def write_config(directory, **changes):
    path = directory / "switch.json"
    path.write_text(json.dumps({"grpc": "127.0.0.1:0", "control": "127.0.0.1:0", "devices": DEVICES, **changes}))
    return path


def command(config, *words):
    return [sys.executable, "-m", "switch", "serve", "--config", str(config), *map(str, words)]


@contextmanager
def running(config, *words):
    """(process, the ready line's words)."""
    process = subprocess.Popen(command(config, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, ready_words(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def control(address, op, **arguments):
    with ControlClient(address) as client:
        return client.call(op, **arguments)


def capabilities(address):
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(
            "/p4.v1.P4Runtime/Capabilities", response_deserializer=p4rt.CapabilitiesResponse.FromString
        )
        return call(b"", timeout=WAIT_S).p4runtime_api_version


def ended(pid):
    """Whether the process is gone or a zombie that only waits for its new parent."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_announces_itself_when_everything_answers_and_a_signal_ends_it_cleanly(tmp_path, number):
    ready_file = tmp_path / "ready.json"
    with running(write_config(tmp_path), "--ready-file", ready_file) as (process, ready):
        assert json.loads(ready_file.read_text()) == {**ready, "pid": process.pid}
        assert capabilities(ready["grpc"]) == "1.4.1"
        devices = control(ready["control"], "devices")
        assert [(d["device_id"], d["name"], d["state"], d["ports"]) for d in devices] == [
            (1, "one", "running", [1, 2]),
            (2, "two", "running", [1]),
        ]
        process.send_signal(number)
        assert process.wait(WAIT_S) == 0
        assert process.stderr.read() == ""
        assert not ready_file.exists()


def test_the_control_socket_can_shut_it_down_with_a_stream_open(tmp_path):
    config = write_config(tmp_path)
    with running(config, "--allow-admin") as (process, ready), grpc.insecure_channel(ready["grpc"]) as channel:
        request = p4rt.StreamMessageRequest()
        request.arbitration.device_id = 1
        request.arbitration.election_id.low = 1
        stream = channel.stream_stream(
            "/p4.v1.P4Runtime/StreamChannel",
            request_serializer=p4rt.StreamMessageRequest.SerializeToString,
            response_deserializer=p4rt.StreamMessageResponse.FromString,
        )
        done: list[Any] = []

        def requests():
            yield request
            eventually(lambda: bool(done), "the stream is still open")

        call = stream(requests())
        assert next(call).arbitration.status.code == 0
        control(ready["control"], "shutdown")
        assert process.wait(WAIT_S) == 0
        with pytest.raises(grpc.RpcError):
            next(call)
        done.append(True)


def test_it_ends_when_its_parent_is_killed(tmp_path):
    config = write_config(tmp_path)
    words = command(config, "--exit-with-parent")
    starter = f"import subprocess; p = subprocess.Popen({words!r}, stdout=subprocess.PIPE); "
    starter += "p.stdout.readline(); print(p.pid, flush=True); p.wait()"
    parent = subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        assert not ended(child)
        parent.kill()
        parent.wait()
        eventually(lambda: ended(child), "it outlived its parent")
    finally:
        parent.stdout.close()
        if not ended(child):
            os.kill(child, signal.SIGKILL)


def test_a_thread_that_started_it_may_end_without_ending_it(tmp_path):
    import threading

    config = write_config(tmp_path)
    started: list[subprocess.Popen[str]] = []
    thread = threading.Thread(
        target=lambda: started.append(
            subprocess.Popen(command(config, "--exit-with-parent"), stdout=subprocess.PIPE, text=True)
        )
    )
    thread.start()
    thread.join()
    (process,) = started
    try:
        assert capabilities(ready_words(process)["grpc"]) == "1.4.1"
    finally:
        stop(process)


def test_the_journal_tells_who_runs_how_long_and_what_happened_to_devices(tmp_path):
    journal = tmp_path / "switch.jsonl"
    config = write_config(tmp_path, journal=str(journal), sample_interval_ns=20_000_000)

    def lines(kind):
        read = [json.loads(text) for text in journal.read_text().splitlines()]
        return [line for line in read if line["kind"] == kind]

    with running(config, "--allow-admin") as (process, ready):
        eventually(lambda: len(lines("sample")) >= 2 and len(lines("cpu")) > 3, "no lines")
        for op in ("device.stop", "device.start", "device.crash", "device.start", "device.remove"):
            control(ready["control"], op, device=2)
        process.terminate()
        assert process.wait(WAIT_S) == 0
    (first,) = lines("process")
    assert json.loads(journal.read_text().splitlines()[0]) == first
    assert (first["role"], first["pid"], first["node"]) == ("switch", process.pid, "switches")
    sample = next(line for line in lines("sample") if line["node"] == "one")
    assert [port["port"] for port in sample["ports"]] == [1, 2]
    assert (sample["device"], sample["ports"][0]["tx_packets"]) == ("one", 0)
    assert len(lines("sample")) == 2, "a device whose counters stay writes nothing more"
    assert lines("cpu")[-1]["process_ns"] > 0
    states = [line["state"] for line in lines("switch") if line["node"] == "two"]
    assert states[:5] == ["stopped", "running", "crashed", "running", "removed"]


def test_the_last_counters_are_sampled_at_the_end(tmp_path):
    journal = tmp_path / "switch.jsonl"
    config = write_config(tmp_path, journal=str(journal), sample_interval_ns=3600 * 10**9)
    with running(config) as (process, _):
        process.terminate()
        assert process.wait(WAIT_S) == 0
    lines = [json.loads(text) for text in journal.read_text().splitlines()]
    assert [line["node"] for line in lines if line["kind"] == "sample"] == ["one", "two"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"devices": [{"device_id": 1, "ports": [{"port": 511}]}]},
            "devices[0].ports[0].port is 511; it must be an integer from 0 to 510",
        ),
        ({"grcp": "x"}, "grcp is no key here; valid: grpc, control, journal"),
        ({"devices": [{"device_id": 1, "ports": [{"port": 1, "interface": "absent-if0"}]}]}, "absent-if0"),
    ],
)
def test_a_bad_configuration_ends_it_with_one_line(tmp_path, changes, message):
    result = ran(command(write_config(tmp_path, **changes)), WAIT_S)
    assert result.returncode == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_without_a_c_compiler_it_says_so(tmp_path):
    own = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    result = ran(command(write_config(tmp_path)), WAIT_S, env={**os.environ, **own})
    assert result.returncode == 1
    assert result.stderr.startswith("switch serve: the native data plane cannot be built: ")


def test_a_taken_address_is_named_and_nothing_is_shared(tmp_path):
    with running(write_config(tmp_path)) as (_, ready):
        other = tmp_path / "other"
        other.mkdir()
        for key in ("grpc", "control"):
            config = write_config(other, **{key: ready[key]})
            result = subprocess.run(command(config), capture_output=True, text=True, timeout=WAIT_S, check=False)
            assert result.returncode == 1
            assert f"cannot listen on {ready[key]}" in result.stderr


def test_it_listens_on_loopback_unless_told_otherwise():
    from switch.config import ServeConfig

    assert ServeConfig().grpc.startswith("127.0.0.1:")
    assert ServeConfig().control.startswith("127.0.0.1:")

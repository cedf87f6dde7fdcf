"""The control socket, over a real socket, with native devices whose ports stay in memory."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.client import ControlClient, ControlError
from common.journal import Journal
from switch.config import DeviceConfig, PortSpec, SwitchConfigError
from switch.control import OPERATIONS, SwitchControl
from switch.device import Device, Devices
from switch.engine import EngineError, PortConfig
from switch.native.dataplane import NativeDataPlane
from switch.serve import _sampler


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "switch.jsonl"


@pytest.fixture
def client(journal: Path) -> Iterator[ControlClient]:
    devices = Devices(NativeDataPlane())
    devices.add(DeviceConfig(1, "p0l0", (PortSpec(1), PortSpec(2))))
    devices.add(DeviceConfig(2, "p0l1", (PortSpec(1),)))
    server = SwitchControl(devices, f"unix:{journal.parent / 'control'}", journal=Journal(journal, "switches"))
    with ControlClient(server.address) as client:
        yield client
    server.close()
    devices.close()


def test_ping_and_devices_tell_what_is_there(client: ControlClient) -> None:
    assert client.call("ping")["devices"] == 2
    first, second = client.call("devices")
    assert first == {"device_id": 1, "name": "p0l0", "state": "running", "program": None, "entries": 0, "ports": [1, 2]}
    assert second["ports"] == [1]


def test_a_port_is_changed_read_back_and_journalled(client: ControlClient, journal: Path) -> None:
    changed = client.call("port.set", device=1, port=2, rate_bps=10_000_000, loss=0.2, loss_seed=9, up=False)
    assert (changed["rate_bps"], changed["loss"], changed["up"]) == (10_000_000, 0.2, False)
    assert client.call("port.get", device=1, port=2) == changed
    queued = client.call("queue.set", device=1, port=2, priority=3, depth_packets=64)
    assert queued["queues"] == [{"priority": 3, "depth_packets": 64, "depth_bytes": 0, "rate_pps": 0}]
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [(line["kind"], line["node"], line["port"]) for line in lines] == [("port", "p0l0", 2)] * 2
    assert lines[0]["loss"] == 0.2


def test_counters_come_for_one_device_or_for_all(client: ControlClient) -> None:
    one = client.call("counters", device=1)
    assert set(one) == {"1", "2"}
    assert one["1"]["rx_packets"] == 0
    assert client.call("counters")["1"] == one


def test_a_device_stops_starts_crashes_and_is_replaced(client: ControlClient) -> None:
    assert client.call("device.stop", device=1)["state"] == "stopped"
    assert client.call("device.start", device=1)["state"] == "running"
    assert client.call("device.crash", device=1)["state"] == "stopped"
    client.call("device.remove", device=2)
    added = client.call("device.add", device={"device_id": 5, "name": "p1l0", "ports": [{"port": 4}]})
    assert added["ports"] == [4]
    assert [row["device_id"] for row in client.call("devices")] == [1, 5]


@pytest.mark.parametrize(
    ("op", "arguments", "message"),
    [
        ("port.paint", {}, "unknown op 'port.paint'; valid: ping, devices, port.get"),
        ("port.set", {"device": 3, "port": 1}, "no device 3; devices: 1 (p0l0), 2 (p0l1)"),
        ("port.set", {"device": 1, "port": 9}, "device p0l0: no port 9; it has [1, 2]"),
        ("port.set", {"device": 1, "port": 1, "loss": 2}, "port.loss is 2; it must be a number from 0 to 1"),
        ("port.set", {"device": 1, "port": 1, "speed": 2}, "port.set.speed is no key here; valid: device, port, up"),
        (
            "queue.set",
            {"device": 1, "port": 1, "priority": 8},
            "queue.priority is 8; it must be an integer from 0 to 7",
        ),
        ("device.add", {"device": {"device_id": 1}}, "device 1 (device1): the id or the name is taken"),
        ("trace", {"device": 1, "port": 1, "frame": "xyz"}, "frame: must be hex digits, not 'xyz'"),
        ("trace", {"device": 1, "port": 1, "frame": "00"}, "device p0l0: has no program"),
        ("shutdown", {}, "shutdown: this process does not offer it"),
    ],
)
def test_a_refusal_names_the_thing_and_the_valid_choices(client, op, arguments, message) -> None:
    with pytest.raises(ControlError) as refused:
        client.call(op, **arguments)
    assert message in str(refused.value)
    assert client.call("ping")["devices"] == 2


def test_without_leave_no_client_opens_interfaces_or_ends_the_process(tmp_path: Path) -> None:
    devices = Devices(NativeDataPlane())
    ended: list[bool] = []
    server = SwitchControl(devices, f"unix:{tmp_path / 'control'}", on_shutdown=lambda: ended.append(True), admin=False)
    with ControlClient(server.address) as client:
        for op, arguments in (("device.add", {"device": {"device_id": 9}}), ("device.remove", {"device": 1})):
            with pytest.raises(ControlError, match="switch serve --allow-admin"):
                client.call(op, **arguments)
        with pytest.raises(ControlError, match="switch serve --allow-admin"):
            client.call("shutdown")
        assert client.call("ping")["devices"] == 0
    server.close()
    devices.close()
    assert not ended


def test_every_operation_of_the_contract_is_served() -> None:
    text = (Path(__file__).parents[2] / "docs" / "contracts.md").read_text()
    table = text[text.index("| op | arguments |") : text.index("## Agent control")]
    named = {
        word.strip("`")
        for row in table.splitlines()[2:]
        if "|" in row
        for word in row.split("|")[1].replace(",", " ").split()
    }
    assert named - {""} == set(OPERATIONS)


ROUNDS = 300
WAIT_S = 20


@pytest.fixture
def devices() -> Iterator[Devices]:
    devices = Devices(NativeDataPlane())
    yield devices
    devices.close()


def add(devices: Devices, device_id: int = 1) -> Device:
    return devices.add(DeviceConfig(device_id, f"sw{device_id}", (PortSpec(1), PortSpec(2))))


def test_a_removed_device_is_refused_by_name(devices: Devices) -> None:
    device = add(devices)
    devices.remove(1)
    with pytest.raises(SwitchConfigError, match="device sw1: it has been removed"):
        device.port_counters()
    with pytest.raises(SwitchConfigError, match="device sw1: it has been removed"):
        device.configure_port(1, PortConfig())
    with pytest.raises(EngineError, match="the engine is closed"):
        device.engine.port_counters(1, 0)
    with pytest.raises(EngineError, match="no device has id 1"):
        devices.data_plane.packet_out(1, bytes(64))


def test_devices_are_refused_after_the_whole_table_is_closed() -> None:
    devices = Devices(NativeDataPlane())
    device = add(devices)
    devices.close()
    with pytest.raises(SwitchConfigError, match="device sw1: it has been removed"):
        device.port_counters()
    with pytest.raises(EngineError, match="the engine is closed"):
        device.engine.reset()


def test_devices_come_and_go_under_those_who_read_and_configure_them(devices: Devices) -> None:
    switch_interval_s = sys.getswitchinterval()
    done = threading.Event()
    answers: list[set[str]] = []

    def use(index: int) -> None:
        seen = answers[index]
        while not done.is_set():
            for device in devices:
                try:
                    device.port_counters()
                    device.configure_port(1, PortConfig(rate_bps=1000))
                    if index:  # as a caller that holds no lock
                        device.engine.port_counters(1, 0)
                    seen.add("answered")
                except (SwitchConfigError, EngineError) as error:
                    seen.add(str(error))

    threads = []
    for index in range(2):
        answers.append(set())
        threads.append(threading.Thread(target=use, args=(index,)))
        threads[-1].start()
    deadline = time.monotonic() + WAIT_S
    rounds = 0
    try:
        sys.setswitchinterval(1e-5)  # so that a removal falls between any two steps of a reader
        while rounds < ROUNDS or not all("answered" in seen for seen in answers):
            assert time.monotonic() < deadline, f"{rounds} rounds; the readers saw {answers}"
            rounds += 1
            for device_id in (1, 2):
                add(devices, device_id)
            for device_id in (1, 2):
                devices.remove(device_id)
    finally:
        sys.setswitchinterval(switch_interval_s)
        done.set()
        for thread in threads:
            thread.join(WAIT_S)
    assert not any(thread.is_alive() for thread in threads)
    refusals = {"the engine is closed", "device sw1: it has been removed", "device sw2: it has been removed"}
    for seen in answers:
        assert seen <= {"answered", *refusals}


def test_sampling_skips_a_device_that_went_meanwhile(devices: Devices, tmp_path) -> None:
    gone, left = add(devices, 1), add(devices, 2)
    devices.remove(1)

    class Stale(Devices):
        """As if the removal came between the list and the reading."""

        def __iter__(self) -> Iterator[Device]:
            return iter([gone, left])

    path = tmp_path / "switch.jsonl"
    stale = Stale(devices.data_plane)

    _sampler(stale, devices.data_plane, Journal(path, "switches"))()
    assert {line["node"] for line in map(json.loads, path.read_text().splitlines()) if line["kind"] == "sample"} == {
        "sw2"
    }

"""Devices that go while others read and configure them: refused by name, never a call into freed memory."""

import json
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from common.journal import Journal
from switch.config import DeviceConfig, PortSpec, SwitchConfigError
from switch.device import Device, Devices
from switch.engine import EngineError, PortConfig
from switch.native.dataplane import NativeDataPlane
from switch.serve import _sampler

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

"""The serve configuration: what it accepts, and that its errors name the key, the rule and the valid choices."""

import json
from typing import Any

import pytest

from switch.config import SwitchConfigError, changed_port, changed_queue, load_config, parse_config, parse_device
from switch.engine import PortConfig, QueueConfig

EXAMPLE: dict[str, Any] = {
    "grpc": "127.0.0.1:9559",
    "control": "127.0.0.1:9560",
    "journal": "switch.jsonl",
    "devices": [
        {
            "device_id": 1,
            "name": "p0l0",
            "cpu_port": 510,
            "seed": 1,
            "engine": "native",
            "ports": [
                {
                    "port": 1, "interface": "p0l0-eth1", "netns": "/run/netns/x", "rate_bps": 10_000_000,
                    "delay_ns": 1000, "queues": [{"priority": 0, "depth_packets": 64}],
                }
            ],
        }
    ],
}  # fmt: skip


def test_the_documented_example_is_accepted_whole():
    config = parse_config(EXAMPLE)
    (device,) = config.devices
    (port,) = device.ports
    assert (device.device_id, device.name, device.cpu_port, device.seed, device.engine) == (1, "p0l0", 510, 1, "native")
    assert (port.port, port.interface, port.netns) == (1, "p0l0-eth1", "/run/netns/x")
    assert port.config.rate_bps == 10_000_000
    assert port.config.delay_ns == 1000
    assert port.config.queues[0] == QueueConfig(depth_packets=64)
    assert port.config.queues[1] == QueueConfig()


def test_a_file_that_is_missing_or_not_json_is_refused_by_name(tmp_path):
    with pytest.raises(SwitchConfigError, match="cannot be read"):
        load_config(tmp_path / "absent.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(SwitchConfigError, match="is not JSON"):
        load_config(broken)
    broken.write_text(json.dumps(EXAMPLE))
    assert load_config(broken).devices[0].name == "p0l0"


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ({}, "device.device_id is missing; present: nothing; it must be an integer from 0 to"),
        ({"device_id": -1}, "device.device_id is -1; it must be an integer from 0 to"),
        ({"device_id": 1, "engine": "bmv2"}, "device.engine is 'bmv2'; it must be one of 'native'"),
        ({"device_id": 1, "prots": []}, "device.prots is no key here; valid: device_id, name, cpu_port"),
        (
            {"device_id": 1, "ports": [{"port": 511}]},
            r"device.ports\[0\].port is 511; it must be an integer from 0 to 510",
        ),
        ({"device_id": 1, "ports": [{"port": 1}, {"port": 1}]}, "must be distinct, but 1 occurs 2 times"),
        ({"device_id": 1, "ports": [{"port": 510}]}, "must be distinct, but 510"),
        (
            {"device_id": 1, "ports": [{"port": 1, "loss": 1.5}]},
            r"ports\[0\].loss is 1.5; it must be a number from 0 to 1",
        ),
        ({"device_id": 1, "ports": [{"port": 1, "up": 1}]}, "up is 1; it must be true or false"),
        (
            {"device_id": 1, "ports": [{"port": 1, "queues": [{"priority": 8}]}]},
            r"queues\[0\].priority is 8; it must be an integer from 0 to 7",
        ),
        (
            {"device_id": 1, "ports": [{"port": 1, "queues": [{}]}]},
            r"queues\[0\].priority is missing; present: nothing; it must be an integer from 0 to 7",
        ),
        ({"device_id": 1, "ports": [{"port": 1, "interface": ""}]}, "interface is ''; it must be a non-empty string"),
        ({"device_id": 1, "ports": [{"port": 1, "rate_bps": True}]}, "rate_bps is True; it must be an integer from 0"),
    ],
)
def test_a_bad_device_is_refused_with_the_key_and_the_rule(device, message):
    with pytest.raises(SwitchConfigError, match=message):
        parse_device(device)


def test_device_0_and_port_0_are_taken():
    """The P4Runtime specification reserves neither; PTF's suites use both (device 0, 0@veth0)."""
    device = parse_device({"device_id": 0, "ports": [{"port": 0}]})
    assert (device.device_id, device.ports[0].port) == (0, 0)


def test_two_devices_may_not_share_an_id_a_name_or_an_interface():
    first = EXAMPLE["devices"][0]
    with pytest.raises(SwitchConfigError, match="device_id must be distinct"):
        parse_config({"devices": [first, {**first, "name": "b", "ports": []}]})
    with pytest.raises(SwitchConfigError, match="name must be distinct"):
        parse_config({"devices": [first, {**first, "device_id": 2, "ports": []}]})
    with pytest.raises(SwitchConfigError, match="interface must be distinct"):
        parse_config({"devices": [first, {**first, "device_id": 2, "name": "b"}]})


@pytest.mark.parametrize("address", ["9559", "127.0.0.1:x", "127.0.0.1:65536", ":1", 9559])
def test_an_address_without_host_and_port_is_refused(address):
    with pytest.raises(SwitchConfigError, match=r'grpc is .*; it must be "HOST:PORT"'):
        parse_config({"grpc": address})


def test_port_and_queue_changes_keep_what_they_do_not_name():
    config = changed_port(PortConfig(rate_bps=5, delay_ns=7), {"loss": 1, "loss_seed": 9})
    assert (config.rate_bps, config.delay_ns, config.loss, config.loss_seed) == (5, 7, 1.0, 9)
    config = changed_queue(config, 7, {"depth_bytes": 10})
    config = changed_queue(config, 7, {"depth_packets": 3})
    assert config.queues[7] == QueueConfig(depth_packets=3, depth_bytes=10)
    assert config.loss == 1.0
    with pytest.raises(SwitchConfigError, match=r"port.speed is no key here; valid: up, rate_bps"):
        changed_port(config, {"speed": 1})

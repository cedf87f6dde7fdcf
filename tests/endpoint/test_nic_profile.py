"""The profile reader accepts what the contract shows and names what breaks a rule."""

import copy
import json

import pytest

from benchmarks.rig.profiles import profile as example
from endpoint import profile


def test_a_profile_as_in_the_contract_is_read_with_types(tmp_path):
    file = tmp_path / "h0.json"
    file.write_text(json.dumps(example(0)))
    nic = profile.load(file)
    assert nic.host == "h0"
    assert [port.plane for port in nic.ports] == [0, 1, 2, 3]
    assert nic.port(2).mac == bytes.fromhex("020000000001")
    assert nic.destinations["h1"].paths[8].port == 2
    assert str(nic.destinations["h1"].paths[0].da) == "fcbb:bbbb:3001::"


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (("version",), 2, "profile.version is 2"),
        (("encapsulation",), "vxlan", "profile.encapsulation is 'vxlan'; it must be one of 'srv6', 'none'"),
        (("ports",), [], "at least one port"),
        (("ports", 0, "mac"), "02:00", r"profile.ports\[0\].mac is '02:00'"),
        (("ports", 1, "port"), 1, "same port"),
        (("mtu",), 4200, r"pmtu 4096 \+ 132 bytes of headers and ICRC = 4228"),
        (("dscp", "control"), 64, "profile.dscp.control is 64; it must be an integer from 0 to 63"),
        (
            ("destinations", "h1", "paths", 0, "port"),
            9,
            r"h1.paths\[0\].port is 9; the profile's ports are \[1, 2, 3, 4\]",
        ),
        (("destinations", "h1", "paths", 1, "ev"), 0, "an EV names one path"),
        (("destinations", "h1", "address"), "10.0.0.1", "destinations.h1.address"),
    ],
)
def test_a_broken_rule_is_named_with_its_place(path, value, complaint):
    data = copy.deepcopy(example(0))
    target = data
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    with pytest.raises(profile.ProfileError, match=complaint):
        profile.parse(data)


def test_a_missing_field_is_named_with_what_is_there():
    data = example(0)
    del data["pmtu"]
    with pytest.raises(profile.ProfileError, match=r"profile.pmtu is missing; present: .*mtu"):
        profile.parse(data)


def test_a_missing_file_and_a_torn_file_are_profile_errors(tmp_path):
    with pytest.raises(profile.ProfileError, match=r"none.json: cannot be read: no such file"):
        profile.load(tmp_path / "none.json")
    torn = tmp_path / "torn.json"
    torn.write_text('{"version": 1,')
    with pytest.raises(profile.ProfileError, match="not JSON"):
        profile.load(torn)

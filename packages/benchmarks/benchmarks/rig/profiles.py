"""Profiles for tests: two or more hosts joined back to back, plane by plane, without switches."""

from typing import Any

DSCP = {
    "no_trim": 0,
    "trimmable": 10,
    "trimmable_retransmit": 12,
    "trimmed": 20,
    "trimmed_lasthop": 22,
    "control": 46,
    "roce": 26,
}


def mac(host: int, plane: int) -> str:
    return f"02:00:00:00:{host:02x}:{plane:02x}"


def port(host: int, hosts: int, plane: int, usid: str, rate_bps: int) -> dict[str, Any]:
    """The port of a host on a plane."""
    return {
        "port": plane + 1,
        "plane": plane,
        "interface": f"h{host}-p{plane}",
        "mac": mac(host, plane),
        "gateway_mac": mac(1 - host if hosts == 2 else 0xFF, plane),
        "address": f"fd00:{plane + 1:x}::{host + 1:x}",
        "usid_address": usid,
        "rate_bps": rate_bps,
        "delay_ns": 1000,
    }


def profile(
    host: int,
    hosts: int = 2,
    planes: int = 4,
    evs_per_plane: int = 8,
    rate_bps: int = 10_000_000_000,
    ev_first: int = 0,
    **changes: Any,
) -> dict[str, Any]:
    """Host `host` of `hosts`; the frame leaves plane port p and arrives at port p of the host its uSID names.

    The EVs of a plane have the plane in the high half, and count up from `ev_first` in the low one.
    """
    usid = [f"fcbb:bbbb:{0x3000 + index:x}::" for index in range(hosts)]
    data: dict[str, Any] = {
        "version": 1,
        "host": f"h{host}",
        "index": host,
        "address": f"fd00::{host + 1:x}",
        "usid_block": "fcbb:bbbb::/32",
        "mtu": 4338,
        "pmtu": 4096,
        "udp_port": 4791,
        "base_rtt_ns": 1_000_000,
        "jitter_ns": 20_000_000,
        "dscp": DSCP,
        "encapsulation": "srv6",
        "ports": [port(host, hosts, plane, usid[host], rate_bps) for plane in range(planes)],
        "self_probes": [],
        "destinations": {
            f"h{peer}": {
                "index": peer,
                "address": f"fd00::{peer + 1:x}",
                "paths": [
                    {
                        "ev": (plane << 16) | ev_first + number,
                        "port": plane + 1,
                        "plane": plane,
                        "via": f"p{plane}s{number}",
                        "da": usid[peer],
                    }
                    for plane in range(planes)
                    for number in range(evs_per_plane)
                ],
            }
            for peer in range(hosts)
            if peer != host
        },
    }
    data.update(changes)
    return data

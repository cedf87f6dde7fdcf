"""What programs are told of a NIC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common import uverbs
from endpoint.profile import NicProfile
from endpoint.transport import Transport


def describe(profile: NicProfile, transport: Transport, transport_name: str) -> Mapping[str, Any]:
    """The answer to `query_device`, and most of that to `open`: the device, and its ports as they are now."""
    up = {row["port"]: row.get("up", True) for row in transport.counters().get("ports", ())}
    return {
        "version": uverbs.VERSION,
        "host": profile.host,
        "address": str(profile.address),
        "transport": transport_name,
        "pmtu": profile.pmtu,
        "base_rtt_ns": profile.base_rtt_ns,
        "ports": [
            {"port": port.port, "plane": port.plane, "rate_bps": port.rate_bps, "up": up.get(port.port, True)}
            for port in profile.ports
        ],
    }

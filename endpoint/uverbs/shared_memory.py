"""Memory that a program shares with its host's agent, so that no byte of a message crosses a socket.

The agent makes it and hands the program a descriptor; it never maps what a program made. A mapped byte beyond the end
of its file kills the process that touches it (SIGBUS), so the file is sealed (fcntl(2), "File sealing"): no process can
change its size, forbid writing to it, or lift a seal. Holes that a program may still punch read as zeros.
"""

import fcntl
import mmap
import os
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


_F_ADD_SEALS = 1033
_F_SEAL_SEAL, _F_SEAL_SHRINK, _F_SEAL_GROW = 0x1, 0x2, 0x4


def make_shared(length: int) -> tuple[int, memoryview]:
    """A descriptor for the program, to be closed once it is sent, and the memory. Raises OSError when there is none."""
    descriptor = os.memfd_create("mrclab", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, length)
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _F_SEAL_SHRINK | _F_SEAL_GROW | _F_SEAL_SEAL)
        return descriptor, memoryview(mmap.mmap(descriptor, length))
    except (OSError, ValueError):
        os.close(descriptor)
        raise

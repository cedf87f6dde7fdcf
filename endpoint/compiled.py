"""The part of the endpoint that is compiled where `./lab compile` was called, and how this process has imported it.

The transports are written, read and changed in Python. An edit makes a build of older sources unfit, so the next
process runs the edited source, interpreted.
"""

import os

from common.compiled.finder import use
from common.compiled.unit import Unit

__all__ = ["FORM", "UNIT"]

UNIT = Unit(
    name="endpoint",
    root=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    packages=("endpoint", "common", "schedules"),
    folders=("endpoint/nic", "endpoint/mrc", "endpoint/roce", "endpoint/workloads", "endpoint/packet_sockets/native"),
    modules=(
        "endpoint/completion.py",
        "endpoint/host.py",
        "endpoint/packet_sockets/driver.py",
        "endpoint/packet_sockets/loop.py",
        "endpoint/packet_sampling.py",
        "endpoint/region.py",
        "endpoint/virtual_host.py",
    ),
    # Headers get their methods from their layouts, and a setting's type is checked by its annotation: compiled classes
    # allow neither, nor the methods that guards make. A link's memory is scarce in a test. Verbs of control take
    # attributes by name, of which compiled code takes one that is named as a positional parameter for that parameter.
    left=(
        "endpoint/nic/headers.py",
        "endpoint/workloads/link.py",
        "endpoint/nic/config.py",
        "endpoint/mrc/control.py",
        "endpoint/mrc/seams/guards.py",
        "endpoint/mrc/congestion/cc_profile.py",
        "endpoint/roce/config.py",
    ),
    # All that a data packet enters, of both transports.
    hot=(
        "endpoint/host.py",
        "endpoint/mrc/confirmation.py",
        "endpoint/mrc/congestion/nscc.py",
        "endpoint/mrc/flight.py",
        "endpoint/mrc/loss",
        "endpoint/mrc/operations.py",
        "endpoint/mrc/paths",
        "endpoint/mrc/peer.py",
        "endpoint/mrc/qp.py",
        "endpoint/mrc/endpoint.py",
        "endpoint/mrc/requester.py",
        "endpoint/mrc/responder.py",
        "endpoint/mrc/retry.py",
        "endpoint/mrc/reverse.py",
        "endpoint/nic/codec.py",
        "endpoint/nic/cq.py",
        "endpoint/nic/events.py",
        "endpoint/nic/frame.py",
        "endpoint/nic/memory.py",
        "endpoint/nic/message.py",
        "endpoint/nic/nic.py",
        "endpoint/nic/packet.py",
        "endpoint/nic/port.py",
        "endpoint/nic/rtt.py",
        "endpoint/nic/scheduler.py",
        "endpoint/nic/wire.py",
        "endpoint/nic/work.py",
        "endpoint/packet_sockets",
        "endpoint/roce/requester.py",
        "endpoint/roce/responder.py",
        "endpoint/virtual_host.py",
        "endpoint/workloads/collective.py",
        "endpoint/workloads/ring.py",
        "endpoint/workloads/stream.py",
        "endpoint/workloads/workload.py",
    ),
)
"""The modules that are compiled together, those that are left interpreted, and those that are optimized."""
FORM = use(UNIT)
"""Decided when this package is first imported."""

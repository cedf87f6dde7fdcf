"""What of the endpoint is compiled where `./lab compile` was called, and how this process has imported it.

The transports are written, read and changed in Python. An edit makes a build of older sources unfit, so the next
process runs the edited source, interpreted.
"""

from __future__ import annotations

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
        "endpoint/landed.py",
        "endpoint/packet_sockets/driver.py",
        "endpoint/packet_sockets/loop.py",
        "endpoint/packet_sampling.py",
        "endpoint/region.py",
        "endpoint/virtual_host.py",
    ),
    # A setting's type is checked by its annotation, of which compiled classes keep too little. A link's memory is
    # scarce in a test. Verbs of control take attributes by name, of which compiled code takes one that is named as
    # a positional parameter for that parameter.
    left=(
        "endpoint/workloads/link.py",
        "endpoint/nic/config.py",
        "endpoint/mrc/control.py",
        "endpoint/mrc/congestion/cc_profile.py",
        "endpoint/roce/config.py",
    ),
)
"""The modules that are compiled together, and those that are left interpreted."""
FORM = use(UNIT)
"""Decided when this package is first imported."""

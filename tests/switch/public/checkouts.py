"""Where other people's repositories are: nothing of them is part of this one."""

import os
from pathlib import Path

import pytest

VARIABLE = "MRCLAB_P4_CHECKOUTS"
"""A folder that holds checkouts by the names of their repositories: tutorials, sonic-pins, p4c and so on."""

DEVICE_CONFIG = """
import sys, types
import p4
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
file = descriptor_pb2.FileDescriptorProto(name="p4config.proto", package="p4.tmp", syntax="proto3")
message = file.message_type.add(name="P4DeviceConfig")
message.field.add(name="reassign", number=1, type=8, label=1)
message.field.add(name="device_data", number=3, type=12, label=1)
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
made = types.ModuleType("p4.tmp.p4config_pb2")
found = pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")
made.P4DeviceConfig = message_factory.MessageFactory(pool).GetPrototype(found)
package = types.ModuleType("p4.tmp")
package.p4config_pb2 = made
sys.modules |= {"p4.tmp": package, "p4.tmp.p4config_pb2": made}
"""
"""A sitecustomize.py with `p4.tmp`, which is of p4lang/PI and not on PyPI: p4runtime_lib sends its one message."""


def found(name: str) -> Path | None:
    """The checkout of a repository, if it is there."""
    folder = os.environ.get(VARIABLE)
    place = Path(folder, name) if folder else None
    return place if place is not None and place.is_dir() else None


def checkout(name: str) -> Path:
    """The checkout of a repository; the test is skipped without."""
    place = found(name)
    if place is None:
        pytest.skip(f"needs a checkout of {name}, in the folder that {VARIABLE} names")
    return place

"""ctypes signatures of the C runtime, and loading of programs."""

import ctypes
import os
from collections.abc import Sequence
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int, c_long, c_uint32, c_uint64, c_void_p
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from p4c.model import Program
from switch.fabric import HostFrame, TimedFrame
from switch.native.build import build_program, build_runtime
from switch.native.emit import emit

NEVER = (1 << 64) - 1
NO_ACTION = (1 << 32) - 1
TARGET_ACTION, TARGET_MEMBER, TARGET_GROUP = range(3)
STALLS = 16  # of lateness.h
PORTS = 512  # of device.h
TABLE_FULL, TABLE_DUPLICATE, TABLE_NO_MEMORY, TABLE_NO_SUCH, TABLE_WEIGHTS = -1, -2, -3, -4, -5

_WORDS = POINTER(c_uint64)
_NUMBERS = POINTER(c_uint32)

# name: (result, arguments); a device, pool or driver is a c_void_p.
_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "pool_create": (c_void_p, ()),
    "pool_destroy": (None, (c_void_p,)),
    "device_create": (c_void_p, (c_uint64, c_void_p)),
    "device_destroy": (None, (c_void_p,)),
    "device_load": (c_int, (c_void_p, c_void_p)),
    "device_set_running": (None, (c_void_p, c_bool)),
    "device_configure_port": (c_int, (c_void_p, c_uint32, _WORDS, c_uint64)),
    "device_port_counters": (c_int, (c_void_p, c_uint32, c_uint64, _WORDS)),
    "device_sample": (c_long, (c_void_p, _NUMBERS, c_uint32, c_uint64, c_uint64, _WORDS)),
    "device_set_replicas": (c_int, (c_void_p, c_bool, c_uint32, _NUMBERS, _NUMBERS, c_uint32, c_uint32, c_uint32)),
    "device_delete_replicas": (None, (c_void_p, c_bool, c_uint32)),
    "device_set_value_set": (c_int, (c_void_p, c_uint32, _WORDS, c_uint32, c_uint32)),
    "device_enable_digest": (None, (c_void_p, c_uint32, c_bool)),
    "device_receive": (None, (c_void_p, c_uint32, c_char_p, c_uint32, c_uint64)),
    "device_record": (None, (c_void_p, c_void_p, c_uint32)),
    "device_advance": (None, (c_void_p, c_uint64)),
    "device_next_event_ns": (c_uint64, (c_void_p,)),
    "access_insert": (c_long, (c_void_p, c_uint32, _WORDS, _WORDS, c_uint32, c_int, c_uint32, c_uint32, _WORDS)),
    "access_modify": (c_int, (c_void_p, c_uint32, c_uint32, c_uint32, c_uint32, _WORDS)),
    "access_delete": (c_int, (c_void_p, c_uint32, c_uint32)),
    "access_set_default": (c_int, (c_void_p, c_uint32, c_uint32, _WORDS)),
    "access_set_member": (c_int, (c_void_p, c_uint32, c_uint32, c_uint32, _WORDS)),
    "access_set_group": (c_int, (c_void_p, c_uint32, c_uint32, _NUMBERS, _NUMBERS, c_uint32)),
    "access_counter": (c_int, (c_void_p, c_bool, c_uint32, c_uint64, c_bool, _WORDS, _WORDS)),
    "access_packet_counts": (None, (c_void_p, c_uint32, c_uint64, c_uint64, _WORDS)),
    "access_meter": (c_int, (c_void_p, c_bool, c_uint32, c_uint64, _WORDS)),
    "access_register": (c_int, (c_void_p, c_uint32, c_uint64, c_bool, _WORDS)),
    "access_last_hit": (c_long, (c_void_p, c_uint32, c_uint32)),
    "access_digest": (c_uint32, (c_void_p, c_char_p, _NUMBERS)),
    "access_collect": (c_uint32, (c_void_p, c_uint64, c_char_p, c_uint32)),
    "fabric_create": (c_void_p, (c_uint32, c_uint32, c_uint32)),
    "fabric_destroy": (None, (c_void_p,)),
    "fabric_pool": (c_void_p, (c_void_p,)),
    "fabric_attach": (c_int, (c_void_p, c_uint32, c_void_p)),
    "fabric_connect": (c_int, (c_void_p, _NUMBERS, _NUMBERS)),
    "fabric_configure_nic_port": (c_int, (c_void_p, c_uint32, c_uint32, _WORDS)),
    "fabric_count_payload": (None, (c_void_p,)),
    "fabric_record": (None, (c_void_p, c_void_p)),
    "fabric_settle": (None, (c_void_p, c_uint32)),
    "fabric_send": (c_uint32, (c_void_p, c_char_p, c_uint64, POINTER(c_int))),
    "fabric_run": (c_uint64, (c_void_p, c_uint64, c_uint64)),
    "fabric_horizon_ns": (c_uint64, (c_void_p,)),
    "fabric_next_ns": (c_uint64, (c_void_p,)),
    "fabric_next_arrival_ns": (c_uint64, (c_void_p,)),
    "fabric_gather": (c_uint32, (c_void_p, c_uint64)),
    "fabric_gathered": (_NUMBERS, (c_void_p,)),
    "fabric_collect": (c_uint64, (c_void_p, c_uint32, c_char_p, c_uint64)),
    "fabric_hops": (c_uint64, (c_void_p,)),
    "fabric_leave_to": (c_int, (c_void_p, c_uint32, c_uint32)),
    "fabric_between_ns": (c_uint64, (c_void_p,)),
    "fabric_departing_ns": (c_uint64, (c_void_p,)),
    "fabric_depart": (c_uint64, (c_void_p, c_uint32, c_char_p, c_uint64)),
    "fabric_arrive": (c_int, (c_void_p, c_char_p, c_uint64)),
    "recorder_create": (c_void_p, (c_uint64, c_uint64)),
    "recorder_destroy": (None, (c_void_p,)),
    "recorder_take": (c_uint64, (c_void_p, c_char_p, c_uint64)),
    "recorder_missing": (c_uint64, (c_void_p,)),
    "driver_create": (c_void_p, (c_uint64,)),
    "driver_destroy": (None, (c_void_p,)),
    "driver_pool": (c_void_p, (c_void_p,)),
    "driver_enter": (None, (c_void_p,)),
    "driver_leave": (None, (c_void_p, c_void_p)),
    "driver_now_ns": (c_uint64, ()),
    "driver_lateness": (c_uint32, (c_void_p, _WORDS, _WORDS)),
    "driver_cpu_ns": (c_uint64, (c_void_p,)),
    "driver_add": (c_int, (c_void_p, c_void_p, c_uint64)),
    "driver_remove": (None, (c_void_p, c_void_p)),
    "driver_close_sockets": (None, (c_void_p,)),
    "driver_attach": (c_int, (c_void_p, c_void_p, c_uint32, c_char_p, c_char_p, POINTER(c_char_p))),
    "driver_count_drops": (None, (c_void_p, c_void_p, c_uint32)),
    "driver_take": (c_long, (c_void_p, _WORDS, _NUMBERS, c_char_p, c_uint32)),
    "driver_end_takes": (None, (c_void_p,)),
}

# What `build.SANITIZERS` watches for; the process must have been started with the sanitizer's library loaded.
SANITIZE = os.environ.get("MRCLAB_NATIVE_SANITIZE", "")


def u64_array(values: list[int]) -> ctypes.Array[c_uint64]:
    return (c_uint64 * max(len(values), 1))(*values)


def zeros(count: int) -> ctypes.Array[c_uint64]:
    return (c_uint64 * max(count, 1))()


def numbers(values: Sequence[int]) -> ctypes.Array[c_uint32]:
    return (c_uint32 * max(len(values), 1))(*values)


@cache
def runtime() -> ctypes.CDLL:
    """The C runtime, compiled when it is not in the cache. Raises EngineBuildError."""
    library = ctypes.CDLL(str(build_runtime(SANITIZE)))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


class FrameExchange(Protocol):
    """Frames between a fabric, by its address, and its hosts, without a buffer between (`exchange.c`)."""

    def collect(self, fabric: int, host: int, kind: type[HostFrame], /) -> list[HostFrame]:
        """The frames that were gathered for a host, each of this `kind`."""

    def send(self, fabric: int, frames: list[TimedFrame], /) -> tuple[int, int] | None:
        """Hand frames in; returns the place of the first that was not taken, with its error."""


@cache
def exchange() -> FrameExchange | None:
    """None where the runtime was built without Python's headers. Raises EngineBuildError."""
    library = runtime()
    if not hasattr(library, "PyInit_exchange"):
        return None
    loader = ExtensionFileLoader("exchange", library._name)
    spec = spec_from_file_location("exchange", library._name, loader=loader)
    assert spec is not None
    module: Any = module_from_spec(spec)
    loader.exec_module(module)
    frame_exchange: FrameExchange = module
    return frame_exchange


_programs: dict[str, tuple[ctypes.CDLL, int]] = {}
_builds: dict[str, Lock] = {}  # held while the program is emitted, compiled and loaded, which may take minutes
_builds_lock = Lock()


def load_program(program: Program) -> int:
    """The address of the program's `struct program`: emitted, compiled and loaded once a process.

    A program that is being built keeps no other waiting. Raises UnsupportedError, naming the construct, or
    EngineBuildError.
    """
    with _builds_lock:
        build = _builds.setdefault(program.digest, Lock())
    with build:
        known = _programs.get(program.digest)
        if known is None:
            library = ctypes.CDLL(str(compile_program(program)))
            known = library, ctypes.addressof(c_char.in_dll(library, "mrclab_program"))
            _programs[program.digest] = known
        return known[1]


def compile_program(program: Program) -> Path:
    """The program's shared object."""
    return build_program(emit(program), program.name, SANITIZE)

"""The NIC of this process, opened once: in virtual time a process has one context, and all its groups share it."""

from __future__ import annotations

import atexit
import os
import time
from pathlib import Path

import torch

from mrclab.context import Context
from mrclab.mesh.engine import MeshEngine, SteppedEngine, ThreadedEngine

__all__ = ["context"]

_context: Context | None = None
_engine: MeshEngine | None = None


def context() -> Context:
    """Raises `DeviceGoneError` when this process runs in no host of a lab."""
    global _context
    if _context is None:
        _context = Context(os.environ.get("MRCLAB_DEVICE"))
    return _context


def engine(rank: int) -> MeshEngine:
    """The engine of this process, whose number in the whole job is `rank`."""
    global _engine
    if _engine is None:
        opened = context()
        # Tensors that are made in inference mode can be written to in inference mode only; others can in any.
        _engine = (SteppedEngine if opened.stepped else ThreadedEngine)(opened, rank, torch.inference_mode)
        atexit.register(close)
    return _engine


def close() -> None:
    """Leave the job; a process that opens the NIC again begins a new one."""
    global _context, _engine
    closing, _engine, _context = _engine, None, None
    if closing is not None:
        atexit.unregister(close)
        closing.close()


def now_s() -> float:
    """The lab's time in seconds."""
    return context().now_ns() / 1e9 if _context is not None and _context.stepped else time.monotonic()


def look_s() -> float:
    """How long to let the lab's time pass between two looks at what other ranks have done."""
    ask = context().query_device
    device = ask() if _engine is None else _engine.call(ask)  # the engine's thread owns the context
    return device.base_rtt_ns / 1e9 / 5


def sleep(seconds: float) -> None:
    """Let the lab's time pass, and the collectives under way go on: another rank may wait for one."""
    if _engine is not None:
        _engine.sleep(seconds)
    elif _context is not None and _context.stepped:
        _context.sleep(seconds)
    else:
        time.sleep(seconds)


def sleep_until_started(seconds: float) -> None:
    """Until this process has run for so many seconds of lab time; in virtual time it has run for none so far."""
    running_s = 0.0
    if not context().stepped:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        running_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    sleep(max(0.0, seconds - running_s))

"""The backend `mrc` of torch.distributed: collectives of CPU tensors over the NIC of the host that a process runs in.

    import mrclab.torch
    torch.distributed.init_process_group("mrc")

From PyTorch 2.5 on, the import is not needed where `./lab launch` starts the program.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch.distributed as dist

from mrclab.torch import nic, observer
from mrclab.torch.collectives import Team
from mrclab.torch.group import MrcProcessGroup
from mrclab.torch.store import FolderStore

__all__ = ["Team", "nic"]

MEET = "MRCLAB_MEET"
"""Names the folder in which the ranks of a job meet, instead of at MASTER_ADDR; `./lab launch` sets it."""
START = "MRCLAB_START_S"
"""When the ranks meet, in seconds of lab time since this process began. On real links PyTorch takes many seconds to be
imported, and in virtual time none: with this a job begins at the same time in both."""

_meetings = itertools.count()
_stores: list[FolderStore] = []  # PyTorch keeps its own half of a store alive and lets Python's half go


def _make(store: Any, rank: int, size: int, timeout: Any) -> MrcProcessGroup:
    group = MrcProcessGroup(store, rank, size, timeout)
    observer.observe(int(os.environ.get("RANK", rank)))
    return group


def _meet(url: str, *_: Any, **__: Any) -> Iterator[tuple[FolderStore, int, int]]:
    nic.context()  # in virtual time even the store waits by the NIC's clock
    nic.sleep_until_started(float(os.environ.get(START, "0")))
    # PyTorch numbers groups from 0 again when a job begins again, so each time has keys that no earlier one has set.
    store = FolderStore(Path(os.environ[MEET]) / str(next(_meetings)))
    _stores.append(store)
    yield store, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def autoload() -> None:
    """Called by PyTorch 2.5 and newer when torch is imported: importing this module has registered the backend."""


def _register() -> None:
    if "MRC" in getattr(dist.Backend, "_plugins", {}):
        return
    try:
        dist.Backend.register_backend("mrc", _make, devices=["cpu"])
    except TypeError:  # before 2.0 it took no devices
        dist.Backend.register_backend("mrc", _make)
    if MEET in os.environ:
        handlers = dist.rendezvous.__globals__["_rendezvous_handlers"]
        handlers["env"] = _meet  # what init_process_group uses by default


_register()

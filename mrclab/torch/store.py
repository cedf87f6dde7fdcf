"""A store of files in a folder that all ranks see, for where a TCP store would not do: in virtual time.

Waiting in it lets the lab's time pass, which TCPStore and FileStore of PyTorch do not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

from common import files, locks
from mrclab.torch import nic

TIMEOUT_S = 300.0


class FolderStore(dist.Store):
    """`torch.distributed.Store`; `folder` must not have files of another job."""

    def __init__(self, folder: Path, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__()
        self._folder = folder
        self._timeout_s = timeout_s
        self._look_s = nic.look_s()
        folder.mkdir(parents=True, exist_ok=True)

    def set(self, key: str, value: str | bytes) -> None:
        files.write(self._place(key), value)

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self._place(key).read_bytes()

    def add(self, key: str, amount: int) -> int:
        with self._locked():
            place = self._place(key)
            value = (int(place.read_bytes()) if place.exists() else 0) + amount
            files.write(place, str(value))
        if not amount:  # PyTorch asks in a loop until all ranks have added theirs
            nic.sleep(self._look_s)
        return value

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        with self._locked():
            place = self._place(key)
            value = place.read_bytes() if place.exists() else b""
            if value == expected.encode():
                value = desired.encode()
                files.write(place, value)
            return value or expected.encode()

    def check(self, keys: Sequence[str]) -> bool:
        return all(self._place(key).exists() for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Until all keys are there; RuntimeError names those that are missing after the timeout."""
        limit_s = self._timeout_s if timeout is None else timeout.total_seconds()
        deadline_s = nic.now_s() + limit_s
        while missing := [key for key in keys if not self._place(key).exists()]:
            if nic.now_s() > deadline_s:
                raise RuntimeError(f"the store has no {', '.join(missing)} after {limit_s:g} s")
            nic.sleep(self._look_s)

    def delete_key(self, key: str) -> bool:
        try:
            self._place(key).unlink()
        except FileNotFoundError:
            return False
        return True

    def num_keys(self) -> int:
        return sum(not path.name.startswith(".") for path in self._folder.iterdir())

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout_s = timeout.total_seconds()

    def _place(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()

    def _locked(self) -> AbstractContextManager[None]:
        return locks.held(self._folder / ".lock", f"the lock of the store in {self._folder}")

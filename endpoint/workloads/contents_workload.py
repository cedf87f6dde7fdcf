"""Workloads whose messages are windows of a pool of contents, which counts as their memory."""

from __future__ import annotations

from endpoint.workloads.contents import Contents
from endpoint.workloads.workload import Workload


class ContentsWorkload(Workload):
    """A kind derived from it makes `_contents` before its set-up, which takes the memory of the pool if allowed."""

    _contents: Contents

    def memory_bytes(self) -> int:
        return self._contents.size

    def common_bytes(self) -> int:
        return self._contents.common_bytes

    def register(self) -> None:
        self._contents.open()

    def release(self) -> None:
        self._contents.close()

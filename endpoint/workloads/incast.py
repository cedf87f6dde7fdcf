"""Incast: every rank but the first sends to the first."""

from __future__ import annotations

from collections.abc import Sequence

from endpoint.workloads.stream import StreamWorkload


class Incast(StreamWorkload):
    def targets(self, rank: int) -> Sequence[str]:
        return [self.setup.ranks[0]] if rank else []

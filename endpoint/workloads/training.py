"""A synchronous training loop: every step computes for a while, then all-reduces; the slowest rank sets the pace."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from common.seeds import Purpose, derive
from endpoint.workloads.collective import CollectiveOptions
from endpoint.workloads.options import Options, WorkloadError, require
from endpoint.workloads.ring import AllReduce
from endpoint.workloads.workload import Setup


@dataclass(frozen=True, slots=True)
class TrainingOptions(CollectiveOptions):
    """`steps` takes the place of `rounds`. Computing is a timer, not burnt CPU: up to `compute_jitter` longer."""

    rounds: int = 0
    steps: int = 20
    compute_ns: int = 20_000_000
    compute_jitter: float = 0.0

    def check(self, ranks: int) -> None:
        CollectiveOptions.check(self, ranks)
        require("steps", self.steps, 0, 1 << 31)
        require("compute_ns", self.compute_ns, 0, 1 << 50)
        require("compute_jitter", self.compute_jitter, 0.0, 100.0)
        if self.rounds:
            raise WorkloadError("rounds is for collectives; a training loop counts steps")


class Training(AllReduce):
    OPTIONS: ClassVar[type[Options]] = TrainingOptions

    def __init__(self, setup: Setup, options: TrainingOptions) -> None:
        self._training = options
        self._random = random.Random(derive(options.seed, Purpose.COMPUTE, setup.rank))
        super().__init__(setup, options)

    def rounds(self) -> int:
        return self._training.steps

    def compute_ns(self) -> int:
        options = self._training
        return int(options.compute_ns * (1 + options.compute_jitter * self._random.random()))

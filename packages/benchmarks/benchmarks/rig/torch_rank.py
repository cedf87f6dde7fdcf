"""A rank of benchmarks/torch_all_reduce.py: all-reduces of each size by either algorithm; rank 0 prints JSON lines."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
import torch.distributed as dist

import mrclab.torch  # noqa: F401
from mrclab.torch import Team, nic


def measured(data: torch.Tensor, rounds: int) -> tuple[float, float]:
    """Lab time and processor time of this rank per all-reduce, in seconds."""
    dist.all_reduce(data)  # congestion windows settle, and memory is touched
    dist.barrier()
    began_ns, busy_s = nic.context().now_ns(), time.process_time()
    for _ in range(rounds):
        dist.all_reduce(data)
    return (nic.context().now_ns() - began_ns) / 1e9 / rounds, (time.process_time() - busy_s) / rounds


def main(sizes: list[int], rounds: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("mrc")
    chosen = Team.prefers_tree
    forced: dict[str, Any] = {"ring": lambda team, size_bytes: False, "tree": lambda team, size_bytes: True}
    for size in sizes:
        for name, force in forced.items():
            Team.prefers_tree = force  # type: ignore[method-assign]
            seconds, processor_s = measured(torch.ones(size // 4), rounds)
            Team.prefers_tree = chosen  # type: ignore[method-assign]
            if dist.get_rank() == 0:
                team = dist.group.WORLD._team
                picked = "tree" if team.prefers_tree(size) else "ring"
                row = {"size": size, "name": name, "s": seconds, "processor_s": processor_s, "picked": picked}
                print(json.dumps(row), flush=True)
    dist.destroy_process_group()


main([int(word) for word in sys.argv[2:]], int(sys.argv[1]))

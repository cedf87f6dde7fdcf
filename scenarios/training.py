"""The training loop that most scenarios run: its size follows from the rate of the hosts' links."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.scenario import Setting, Workload

COMM_S = 0.7  # the all-reduce of a step, at line rate
COMPUTE_S = 0.35  # half as long, so that communication is well over half of the step
GRAIN_BYTES = 8 * 4096


def all_reduce_bytes(setting: Setting) -> int:
    """The vector whose ring all-reduce takes COMM_S at line rate: each host sends 2(n − 1)/n of it."""
    ranks = setting.plan.host_count
    sent = setting.host_rate_bps / 8 * COMM_S * setting.pace
    size = sent * ranks / (2 * (ranks - 1))
    grain = GRAIN_BYTES * ranks
    return max(grain, round(size / grain) * grain)


def only_training(setting: Setting) -> Sequence[Workload]:
    """The workloads of a scenario that runs the training loop and nothing beside it."""
    return [training_loop(setting)]


def training_loop(setting: Setting) -> Workload:
    """Compute, then all-reduce over all hosts, until stopped."""
    options = {
        "size": all_reduce_bytes(setting),
        "steps": 0,
        "compute_ns": round(COMPUTE_S * 1e9 * setting.pace),
        "qps": setting.queue_pairs,
    }
    return Workload("training", options)

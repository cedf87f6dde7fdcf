"""The training loop that most scenarios run: its size follows from the rate of the hosts' links."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.scenario import Setting, Workload

COMM_S = 0.7  # the all-reduce of a step, at line rate, among at most SHORT_RING hosts
COMPUTE_S = 0.35  # half as long, so that communication is well over half of the step
SHORT_RING = 16  # hosts: a message takes 23 ms at line rate. If it took less, links would mostly wait for the next one
GRAIN_BYTES = 8 * 4096


def step_s(setting: Setting) -> float:
    """Lab seconds that a step takes at line rate."""
    return _communication_s(setting) + COMPUTE_S


def _communication_s(setting: Setting) -> float:
    """A ring of n hosts sends 2(n − 1) messages one after another. In a longer ring each keeps its length."""
    return COMM_S * max(1.0, (setting.plan.host_count - 1) / (SHORT_RING - 1))


def all_reduce_bytes(setting: Setting) -> int:
    """The vector of a step: each host sends 2(n − 1)/n of it."""
    ranks = setting.plan.host_count
    sent = setting.host_rate_bps / 8 * _communication_s(setting) * setting.pace
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

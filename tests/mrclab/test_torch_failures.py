"""PyTorch programs when something goes wrong, and what they do in a future's `then`: on real sockets and in virtual
time, by the same scripts."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from tests.helpers.pytorch.world import ROOT, require_torch, run_ranks

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("world", ["threads", "virtual time"])]
BEGIN = """
import threading, time, torch, torch.distributed as dist, mrclab.torch
from datetime import timedelta
from mrclab.torch import nic
dist.init_process_group("mrc", timeout=timedelta(seconds=60))
rank = dist.get_rank()
def told(call):
    try:
        call()
    except Exception as error:
        print("TOLD", f"{type(error).__name__}: {error}".splitlines()[0], flush=True)
    else:
        print("TOLD nothing", flush=True)
def goes_on(group=None):
    one = torch.full((3,), rank + 1.0)
    dist.all_reduce(one, group=group)
    assert one.tolist() == [3, 3, 3], one
"""
END = """
goes_on()
dist.destroy_process_group()
print("END", flush=True)
"""


def run(world: str, folder: Path, text: str) -> list[list[str]]:
    """What each of two ranks printed."""
    script = folder / "script.py"
    script.write_text(BEGIN + text + END)
    if world == "virtual time":
        found = run_ranks(folder, script, ranks=2, lab_s=300)
    else:
        python = require_torch()
        with rig() as made:
            settings = {"WORLD_SIZE": "2", "MRCLAB_MEET": str(folder / "meet"), "PYTHONPATH": str(ROOT)}
            processes = [
                subprocess.Popen(
                    [python, "-P", str(script)],
                    env={**os.environ, **settings, "RANK": str(rank), "MRCLAB_DEVICE": name},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                for rank, name in enumerate(made.names)
            ]
            try:
                logs = [process.communicate(timeout=240)[0] for process in processes]
            finally:
                for process in processes:
                    process.kill()
        found = [(process.returncode, log) for process, log in zip(processes, logs, strict=True)]
    assert [status for status, _ in found] == [0, 0], [log[-3000:] for _, log in found]
    return [log.splitlines() for _, log in found]


def test_a_continuation_may_wait_for_collectives(world: str, tmp_path: Path) -> None:
    """PyTorch's PowerSGD hook does."""
    text = """
def ones():
    return torch.ones(4)
def start(*_):
    return dist.all_reduce(ones(), async_op=True).get_future()
assert start().then(lambda done: start().wait()).wait()[0].tolist() == [2, 2, 2, 2]
deep = start().then(lambda done: start().then(lambda done: start().then(lambda done: start().wait()).wait()).wait())
assert deep.wait()[0].tolist() == [2, 2, 2, 2]
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
state = powerSGD_hook.PowerSGDState(process_group=None, matrix_approximation_rank=1, start_powerSGD_iter=2)
net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
for step in range(4):
    net(torch.ones(2, 16) * (rank + 1)).sum().backward()
    print("step", step, flush=True)
"""
    for log in run(world, tmp_path, text):
        assert [line for line in log if line.startswith(("step", "END"))] == [*(f"step {n}" for n in range(4)), "END"]


def test_a_slow_continuation_stops_nothing(world: str, tmp_path: Path) -> None:
    text = """
if not nic.context().stepped:  # in virtual time a program has one thread
    enough = threading.Event()
    if rank == 1:  # PyTorch runs a continuation of what has ended at once, in the program's own thread
        dist.recv(torch.empty(1), 0)
        enough.set()
    futures = [dist.all_reduce(torch.ones(4), async_op=True).get_future() for _ in range(3)]
    slow = [future.then(lambda done: enough.wait(200)) for future in futures]
    if rank == 0:
        dist.send(torch.ones(1), 1)
    for _ in range(5):
        goes_on()
    enough.set()
    assert all(one.wait() for one in slow)
failing = dist.all_reduce(torch.ones(4), async_op=True).get_future().then(lambda done: 1 // 0)
told(failing.wait)
"""
    for log in run(world, tmp_path, text):
        assert any("TOLD" in line and "ZeroDivisionError" in line for line in log)


def test_a_group_made_during_a_collective_lets_the_collective_go_on(world: str, tmp_path: Path) -> None:
    """Rank 1 makes its group only after the collective, for which it needs the NIC of rank 0, which waits for it."""
    text = """
one = torch.ones(2_000_000)  # more than the slots of a link hold
under_way = dist.all_reduce(one, async_op=True)
if rank == 1:
    under_way.wait()
group = dist.new_group()
under_way.wait()
goes_on(group)
assert one.sum().item() == 4_000_000
"""
    run(world, tmp_path, text)


def test_the_timeout_of_a_group_ends_each_wait_and_that_call_alone(world: str, tmp_path: Path) -> None:
    text = """
hasty = dist.new_group(timeout=timedelta(seconds=4))
goes_on(hasty)
if rank == 0:
    future = dist.all_reduce(torch.ones(4), group=hasty, async_op=True).get_future()
    told(lambda: future.then(lambda done: done.value()).wait())
    told(lambda: dist.all_reduce(torch.ones(4), group=hasty))
else:
    nic.sleep(12)
    told(lambda: dist.all_reduce(torch.ones(4), group=hasty))
    told(lambda: dist.all_reduce(torch.ones(4), group=hasty))
goes_on(hasty)
"""
    first, second = run(world, tmp_path, text)
    late = "all-reduce has not ended within its timeout"
    assert [late in line for line in first if "TOLD" in line] == [True, True]
    assert all("of its group waits for rank 1" in line for line in first if "TOLD" in line)
    assert [f"rank 0 says: {late}" in line for line in second if "TOLD" in line] == [True, True]


SLIPS = {
    # What both do, and what rank 0 and rank 1 are told: "" is nothing, None may be either, for who sends need not wait.
    "dist.all_reduce(torch.ones(1).expand(4))": ("", ""),
    "dist.all_to_all_single(torch.empty(4), torch.ones(4), [2, 1], [2, 2])": ("must add up to 4 (got [2, 1])",) * 2,
    "dist.all_to_all_single(torch.empty(3), torch.ones(3))": ("must divide by 2 ranks (got 3)",) * 2,
    "dist.all_to_all_single(torch.empty(4), torch.ones(4), [4], [4])": ("must be 2, one per rank (got [4])",) * 2,
    "dist.all_gather([torch.empty(5), torch.empty(5)], torch.ones(4))": ("must have 4 items of torch.float32",) * 2,
    "dist.all_gather([torch.empty(4)], torch.ones(4))": ("must be a list of 2 tensors, one per rank (got 1)",) * 2,
    "dist.scatter(torch.empty(4), [torch.ones(4)] if rank == 0 else None, 0)": (
        "must be a list of 2 tensors, one per rank (got 1)",
        "rank 0 says: backend mrc: inputs must be a list of 2 tensors",
    ),
    "dist.gather(torch.ones(4), [torch.ones(4)] if rank == 0 else None, 0)": (
        "must be a list of 2 tensors, one per rank (got 1)",
        None,
    ),
    "dist.all_reduce(torch.ones(4 + rank))": ("bytes arrived where one of",) * 2,
    "dist.broadcast(torch.ones(4 + rank), 0)": ("", "rank 0: a message of 16 bytes arrived where one of 20 bytes"),
}


def test_a_slip_fails_its_call_alone_with_the_rule(world: str, tmp_path: Path) -> None:
    calls = "".join(f"told(lambda: {call})\ngoes_on()\n" for call in SLIPS)
    logs = run(world, tmp_path, calls)
    for place, log in enumerate(logs):
        said = [line.removeprefix("TOLD ") for line in log if line.startswith("TOLD")]
        for (call, expected), line in zip(SLIPS.items(), said, strict=True):
            words = expected[place]
            assert words is None or (words in line if words else line == "nothing"), (call, place, line)


def test_tensors_of_inference_mode_and_expanded_ones_are_written(world: str, tmp_path: Path) -> None:
    text = """
with torch.inference_mode():
    one = torch.full((3,), rank + 1.0)
    dist.all_reduce(one)
    many = [torch.empty(70_000), torch.empty(70_000)]
    dist.all_gather(many, torch.full((70_000,), rank + 1.0))
    dist.barrier()
    wide = torch.ones(4, 2)[:, 0]
    dist.all_reduce(wide)
assert one.tolist() == [3, 3, 3] and [part.mean().item() for part in many] == [1, 2] and wide.tolist() == [2] * 4
weight = torch.ones(3, requires_grad=True)
(weight * 2).sum().backward()
dist.all_reduce(weight.grad)
assert weight.grad.tolist() == [4, 4, 4] and not weight.grad.is_inference()
spread = torch.full((2, 1), rank + 1.0).expand(2, 5)
dist.all_reduce(spread)
assert spread.tolist() == [[3] * 5] * 2
windows = torch.ones(6).as_strided((3, 4), (1, 1))
dist.all_reduce(windows)
assert windows.tolist() == [[2] * 4] * 3
"""
    run(world, tmp_path, text)

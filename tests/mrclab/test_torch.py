"""The backend `mrc` of PyTorch: its collectives, its failures, and a script beside PyTorch's own backend."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from page.feed import parsed
from tests.helpers.pytorch.world import EXAMPLES, ROOT, read_json, require_torch, run_gloo, run_ranks

RANKS = 3
CASES = ROOT / "tests" / "helpers" / "pytorch" / "cases.py"


def logs_of(folder: Path, script: Path | str, *words: str, ranks: int = 2, lab_s: float = 60.0) -> list[str]:
    """The output of each rank of a script, or of a text. AssertionError if one fails."""
    if isinstance(script, str):
        (folder / "script.py").write_text(script)
    file = folder / "script.py" if isinstance(script, str) else script
    found = run_ranks(folder, file, *words, ranks=ranks, lab_s=lab_s)
    assert [status for status, _ in found] == [0] * ranks, [log[-2000:] for _, log in found]
    return [log for _, log in found]


NAMES = (
    "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "send_recv",
)  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    dtype = draw(st.sampled_from(["float32", "float64", "bfloat16", "int64", "uint8", "bool", "complex64"]))
    real = dtype in ("float32", "float64", "bfloat16")
    ops = ["SUM"] if dtype in ("bool", "complex64") else ["SUM", "MIN", "MAX", "PRODUCT", *(["AVG"] if real else [])]
    return {
        "name": draw(st.sampled_from(NAMES)),
        "dtype": dtype,
        "op": draw(st.sampled_from(ops)),
        "shape": draw(st.sampled_from([[0], [1], [7], [5, 3], [], [2, 0, 4], [70_001]])),
        "strided": draw(st.booleans()),
        "real": real and draw(st.booleans()),
        "root": draw(st.integers(0, RANKS - 1)),
        "members": draw(st.sampled_from([[0, 1, 2], [0, 1, 2], [0, 2], [2, 1], [1]])),
        "seed": draw(st.integers(0, 1000)),
    }


@pytest.mark.slow
@settings(
    max_examples=2,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(drawn=st.lists(cases(), min_size=30, max_size=40))
def test_collectives_are_what_one_process_computes(drawn: list[dict[str, Any]], tmp_path_factory: Any) -> None:
    require_torch()
    drawn = [{**case, "members": sorted(case["members"])} for case in drawn]
    folder = tmp_path_factory.mktemp("torch")
    (folder / "cases.json").write_text(json.dumps(drawn))
    digests = [read_json(log) for log in logs_of(folder, CASES, str(folder / "cases.json"), ranks=RANKS, lab_s=600)]
    for number, case in enumerate(drawn):
        told = {json.dumps(digests[rank][number]) for rank in case["members"]}
        assert len(told) == 1, case  # every rank has the same bits, whatever the rounding


@pytest.mark.slow
def test_processes_in_virtual_time_repeat_a_run_to_the_byte(tmp_path: Path) -> None:
    told = []
    for name in ("first", "second"):
        found = logs_of(tmp_path / name, EXAMPLES / "ddp.py", "--steps", "3", ranks=3)
        journals = sorted((tmp_path / name).rglob("journal/*.jsonl"))
        told.append([found, *(journal.read_bytes() for journal in journals)])
    assert len(told[0]) > 3
    assert told[0] == told[1]


COMPARE = """
import sys, torch
ones, others = map(torch.load, sys.argv[1:3])
rtol, atol = map(float, sys.argv[3:])
assert list(ones) == list(others)
for name in ones: torch.testing.assert_close(ones[name], others[name], rtol=rtol, atol=atol)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "tolerance"), [(2, ("0", "0")), (4, ("1e-5", "1e-6"))])
def test_a_script_learns_the_same_as_under_gloo(ranks: int, tolerance: tuple[str, str], tmp_path: Path) -> None:
    """Of two numbers the order of the sum does not matter, so nothing may differ; with four ranks weights differ by
    what another order of additions does in five steps: parts in a hundred thousand at most."""
    python = require_torch()
    words = ["--steps", "5", "--hidden", "64", "--save"]
    paths = [str(tmp_path / "gloo.pt"), str(tmp_path / "mrc.pt")]
    run_gloo(EXAMPLES / "ddp.py", *words, paths[0], ranks=ranks)
    logs_of(tmp_path, EXAMPLES / "ddp.py", *words, paths[1], ranks=ranks)
    words = [python, "-P", "-c", COMPARE, *paths, *tolerance]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


SUMS = """
import sys, torch, torch.distributed as dist
backend, path = sys.argv[2], sys.argv[3]
if backend == "mrc":
    import mrclab.torch
dist.init_process_group(backend)
rank, ranks = dist.get_rank(), dist.get_world_size()
found = []
for items in (100, 60_001):  # a tree, a ring
    one = torch.randn(items, generator=torch.Generator().manual_seed(rank))
    dist.all_reduce(one)
    found.append(one)
if rank == 0:
    torch.save(found, path)
dist.barrier()
"""
ORDER = """
import sys, torch
from itertools import pairwise
ranks = 4
gloo, mrc = map(torch.load, sys.argv[1:])
for items, theirs, ours in zip((100, 60_001), gloo, mrc):
    parts = [torch.randn(items, generator=torch.Generator().manual_seed(rank)) for rank in range(ranks)]
    if items == 100:  # rank r to rank r without its lowest set bit, lowest bits first
        truth = (parts[0] + parts[1]) + (parts[2] + parts[3])
    else:  # piece r from rank r + 1 on, upwards
        truth = torch.empty(items)
        for rank, (first, last) in enumerate(pairwise(items * number // ranks for number in range(ranks + 1))):
            one = parts[(rank + 1) % ranks][first:last].clone()
            for step in range(2, ranks + 1):
                one = one + parts[(rank + step) % ranks][first:last]
            truth[first:last] = one
    assert torch.equal(ours, truth), items
    bound = 2 * (ranks - 1) * 2.0**-24 * sum(part.abs() for part in parts)  # of any two orders of additions
    assert ((ours - theirs).abs() <= bound).all(), items
"""


@pytest.mark.slow
def test_sums_of_four_ranks_are_added_in_the_documented_order_and_gloos_are_within_the_bound(tmp_path: Path) -> None:
    python = require_torch()
    (tmp_path / "sums.py").write_text(SUMS)
    run_gloo(tmp_path / "sums.py", str(tmp_path / "gloo.pt"), ranks=4)
    logs_of(tmp_path, tmp_path / "sums.py", "--backend", "mrc", str(tmp_path / "mrc.pt"), ranks=4)
    words = [python, "-P", "-c", ORDER, str(tmp_path / "gloo.pt"), str(tmp_path / "mrc.pt")]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_job_that_begins_again_in_its_processes_meets_nothing_of_its_first_group(tmp_path: Path) -> None:
    """PyTorch numbers groups from 0 again, and rank 1 asks for what rank 0 says before rank 0 is there."""
    script = (
        "import torch, torch.distributed as dist, mrclab.torch\n"
        "from mrclab.torch import nic\n"
        "found = []\n"
        "for number in range(3):\n"
        "    dist.init_process_group('mrc')\n"
        "    one = torch.full((3,), number + 1.0)\n"
        "    dist.all_reduce(one)\n"
        "    found.append(one.tolist())\n"
        "    rank = dist.get_rank()\n"
        "    dist.destroy_process_group()\n"
        "    nic.sleep(0 if rank else 1)\n"
        "print(found)\n"
    )
    found = logs_of(tmp_path, script, lab_s=10)
    assert [log.splitlines()[-1] for log in found] == ["[[2.0, 2.0, 2.0], [4.0, 4.0, 4.0], [6.0, 6.0, 6.0]]"] * 2


DEATHS = {
    "killed between collectives": "os.kill(os.getpid(), signal.SIGKILL)",
    "killed with a collective under way": "dist.all_reduce(torch.ones(10**5), async_op=True); os.kill(os.getpid(), 9)",
    "ended by an exception": "raise SystemExit('rank 1 gives up')",
    "sent another size": "dist.all_reduce(torch.ones(5)); dist.barrier()",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", DEATHS)
def test_a_rank_that_dies_ends_the_others_with_its_number_within_a_bound(how: str, tmp_path: Path) -> None:
    script = tmp_path / "dies.py"
    script.write_text(
        "import os, signal, torch, torch.distributed as dist, mrclab.torch\n"
        "dist.init_process_group('mrc')\n"
        "dist.barrier()\n"
        f"if dist.get_rank() == 1:\n    {DEATHS[how]}\n"
        "dist.all_reduce(torch.ones(4))\n"
        "dist.all_reduce(torch.ones(10**5))\n"
        "dist.barrier()\n"
        "print('never')\n"
    )
    found = run_ranks(tmp_path, script, ranks=RANKS, lab_s=60)
    for rank in (0, 2):
        status, log = found[rank]
        assert status == 1, (rank, status, log[-2000:])
        assert "never" not in log
        assert "JobFailedError" in log
    assert any("rank 1" in log for _, log in found)


@pytest.mark.slow
def test_who_follows_the_ranks_that_lines_of_a_time_out_name_finds_the_one_at_fault(tmp_path: Path) -> None:
    """The rule of docs/guide/hangs.md: one rank's time is over first, and it may be far from the one that is late."""
    script = (
        "import torch, torch.distributed as dist, mrclab.torch\n"
        "from datetime import timedelta\n"
        "from mrclab.torch import nic\n"
        "dist.init_process_group('mrc', timeout=timedelta(seconds=4))\n"
        "if dist.get_rank() == 3: nic.sleep(8)\n"
        "try: dist.all_reduce(torch.ones(4))\n"
        "except Exception as error: print(error)\n"
        "nic.sleep(20)\n"
        "dist.destroy_process_group()\n"
    )
    lines = [log.splitlines()[-1] for log in logs_of(tmp_path, script, ranks=4)]
    assert all("all-reduce has not ended within its timeout" in line for line in lines)
    own = r"this rank waits for rank (\d)$"  # not the one that another rank waits for
    found = [re.search(own if " says: " in line else r"waits for rank (\d)", line) for line in lines]
    assert [match and int(match[1]) for match in found] == [2, 0, 3, None]  # 3 to 2 to 0, and the sum back to 1


@pytest.mark.slow
def test_a_rank_that_dies_in_a_training_step_ends_the_others_by_an_exception(tmp_path: Path) -> None:
    """PyTorch's C++ waits for the sums there; it must see the failure as one, not as a result."""
    script = tmp_path / "dies.py"
    script.write_text(
        "import os, torch, torch.distributed as dist, mrclab.torch\n"
        "dist.init_process_group('mrc')\n"
        "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 10))\n"
        "for step in range(9):\n"
        "    if step == 3 and dist.get_rank() == 1: os._exit(5)\n"
        "    model(torch.ones(4, 10)).sum().backward()\n"
    )
    found = run_ranks(tmp_path, script, ranks=2)
    assert [status for status, _ in found] == [1, 5]
    assert "JobFailedError: rank 1" in found[0][1]


@pytest.mark.slow
def test_a_step_whose_loss_is_not_finite_is_a_line_that_browsers_read(tmp_path: Path) -> None:
    script = (
        "import os, sys, torch, torch.distributed as dist, mrclab.torch\n"
        "os.environ['MRCLAB_JOURNAL'] = f'{sys.argv[1]}/{os.environ[\"RANK\"]}.jsonl'\n"
        "dist.init_process_group('mrc')\n"
        "net = torch.nn.Linear(1, 1)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for factor in ('1', 'nan', 'inf'):\n"
        "    (net(torch.ones(1, 1)).sum() * float(factor)).backward()\n"
        "    optimizer.step()\n"
    )
    logs_of(tmp_path, script, str(tmp_path))
    lines = [parsed(line) for line in (tmp_path / "0.jsonl").read_text().splitlines()]
    assert ["loss" in line for line in lines if line["kind"] == "step"] == [True, False, False]


@pytest.mark.slow
def test_what_is_not_offered_is_refused_with_the_rule(tmp_path: Path) -> None:
    script = (
        "import torch, torch.distributed as dist, mrclab.torch\n"
        "dist.init_process_group('mrc')\n"
        "def told(call):\n"
        "    try: call()\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
        "told(lambda: dist.all_reduce(torch.ones(4), dist.ReduceOp.BAND))\n"
        "told(lambda: dist.all_reduce(torch.ones(4).to(torch.uint16)))\n"
        "told(lambda: dist.all_reduce(torch.ones(4).to_sparse()))\n"
        "told(lambda: dist.recv(torch.ones(4)))\n"
        "told(lambda: dist.all_reduce(torch.ones(4, device='meta')))\n"
        "dist.barrier()\n"
        "dist.destroy_process_group()\n"
    )
    for log in logs_of(tmp_path, script):
        assert "the operation must be one of SUM, AVG, PRODUCT, MIN, MAX for torch.float32 (got BAND)" in log
        assert "PyTorch has no SUM of torch.uint16 on CPUs" in log or "has no attribute 'uint16'" in log  # before 2.3
        assert "tensor must be dense" in log or "must be strided" in log or "sparse" in log
        assert "recv must name its source rank" in log
        assert "tensor must be on the CPU (got meta)" in log


@pytest.mark.slow
def test_what_pytorch_builds_on_collectives_works(tmp_path: Path) -> None:
    """The list of mrclab/torch/README.md."""
    script = (
        "import torch, torch.distributed as dist, mrclab.torch\n"
        "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n"
        "from torch.distributed.optim import ZeroRedundancyOptimizer\n"
        "dist.init_process_group('mrc')\n"
        "rank = dist.get_rank()\n"
        "def model(**words): return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8), **words)\n"
        "def train(net): net(torch.full((2, 8), rank + 1.0)).sum().backward(); return net\n"
        "def weight(net): return next(net.parameters())\n"
        "net = model(gradient_as_bucket_view=True, bucket_cap_mb=1)\n"
        "with net.no_sync(): train(net)\n"
        "assert weight(net).grad[0, 0] == 2 * (rank + 1)\n"
        "assert weight(train(net)).grad[0, 0] == 6  # the mean of 4 and 8\n"
        "with (net := model()).join():\n"
        "    for _ in range(2 + rank): train(net)\n"
        "net = model()\n"
        "net.register_comm_hook(None, default_hooks.fp16_compress_hook)\n"
        "assert weight(train(net)).grad[0, 0] == 3\n"
        "optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=0.1)\n"
        "optimizer.step()\n"
        "told = [None] * 2\n"
        "dist.all_gather_object(told, {'rank': rank, 'weight': weight(net).tolist()})\n"
        "assert [one['rank'] for one in told] == [0, 1] and told[0]['weight'] == told[1]['weight']\n"
        "half = torch.full((5,), rank + 1, dtype=torch.float16)\n"
        "dist.all_reduce(half)\n"
        "assert half.tolist() == [3] * 5\n"
        "dist.barrier()\n"
    )
    logs_of(tmp_path, script, lab_s=600)


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["shards", "ddp"])
def test_a_transformer_learns(parallel: str, tmp_path: Path) -> None:
    require_torch((2, 13) if parallel == "shards" else (1, 0))
    words = ["--steps", "6", "--parallel", parallel]
    log, _ = logs_of(tmp_path, ROOT / "docs" / "programs" / "transformer.py", *words, lab_s=600)
    losses = [float(line.split()[-1]) for line in log.splitlines() if line.startswith("step")]
    assert len(losses) == 6
    assert losses[-1] < losses[0]


@pytest.mark.slow
def test_a_pytorch_that_cannot_shard_is_told_so(tmp_path: Path) -> None:
    require_torch()
    try:
        require_torch((2, 7))
    except pytest.skip.Exception:
        found = run_ranks(tmp_path, ROOT / "docs" / "programs" / "transformer.py", ranks=2)
        assert all(status == 1 and "shards need a newer PyTorch, such as 2.13 (this is" in log for status, log in found)
    else:
        pytest.skip("this PyTorch can")


SHARDED = """
import os, sys, torch, torch.distributed as dist, mrclab.torch, torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
folder, begin, dies = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("mrc")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.set_num_threads(1)
torch.manual_seed(1)
model = fully_shard(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4)),
                    mesh=dist.init_device_mesh("cpu", (ranks,)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
def states():
    return dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
if begin:
    checkpoint.load(read := states(), checkpoint_id=f"{folder}/{begin}")
    set_state_dict(model, optimizer, model_state_dict=read["model"], optim_state_dict=read["optimizer"])
for step in range(begin, 6):
    if (step, rank) == (dies, 1):
        os.kill(os.getpid(), 9)
    batch = torch.randn(16, 8, generator=torch.Generator().manual_seed(step))
    model(batch[rank * 16 // ranks : (rank + 1) * 16 // ranks]).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    checkpoint.save(states(), checkpoint_id=f"{folder}/{step + 1}")
whole = torch.cat([weight.full_tensor().flatten() for weight in model.parameters()])
print(whole.tolist(), flush=True)
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_a_job_of_shards_goes_on_from_its_checkpoint_after_a_death_also_with_fewer_ranks(tmp_path: Path) -> None:
    require_torch((2, 7))
    (script := tmp_path / "sharded.py").write_text(SHARDED)

    def ended(name: str, *words: str, ranks: int = 8) -> list[tuple[int | None, str]]:
        (tmp_path / name).mkdir()
        return run_ranks(tmp_path / name, script, *words, ranks=ranks, lab_s=600)

    straight = ended("straight", str(tmp_path / "kept"), "0", "-1")
    assert [status for status, _ in straight] == [0] * 8, straight[0][1][-2000:]
    weights = read_json(straight[0][1])
    dead = ended("dead", str(tmp_path / "left"), "0", "4")
    assert [status for status, _ in dead] == [1, -9, *[1] * 6]
    assert all("rank 1" in log for rank, (_, log) in enumerate(dead) if rank != 1)
    assert [read_json(log) for _, log in ended("again", str(tmp_path / "left"), "4", "-1")] == [weights] * 8
    for _, log in ended("fewer", str(tmp_path / "left"), "4", "-1", ranks=4):
        assert read_json(log) == pytest.approx(weights, rel=1e-4, abs=1e-5)


@pytest.mark.slow
def test_pytorchs_own_tests_of_backends_fail_only_where_the_backend_refuses(tmp_path: Path) -> None:
    """The table of mrclab/torch/README.md."""
    have = "import expecttest, torch.testing._internal.distributed.distributed_test"
    begin = {**os.environ, "BACKEND": "gloo", "TEMP_DIR": str(tmp_path), "WORLD_SIZE": "4", "MASTER_ADDR": "::1"}
    if subprocess.run([require_torch((2, 7)), "-c", have], env=begin, capture_output=True, check=False).returncode:
        pytest.skip("this PyTorch has no expecttest, which its own tests import")
    logs = logs_of(tmp_path, ROOT / "tests" / "helpers" / "pytorch" / "suite.py", str(tmp_path), ranks=4, lab_s=60_000)
    lines = [line.split(maxsplit=3) for line in logs[0].splitlines() if line.startswith("TEST")]
    assert sum(how.startswith("passed") for _, _, how, *_ in lines) > 80
    refused = "monitored_barrier|any_source|sparse|get_backend|barrier_timeout|_cuda|torchvision|isend_irecv_op_err"
    assert [line for line in lines if line[2].startswith("failed") and not re.search(refused, " ".join(line))] == []

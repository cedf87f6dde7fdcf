"""The backend `mrc` of PyTorch: its collectives, its failures, and a script beside PyTorch's own backend."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.helpers.torch_world import EXAMPLES, ROOT, read_json, require_torch, run_gloo, run_ranks

RANKS = 3
CASES = ROOT / "tests" / "helpers" / "torch_cases.py"
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
    found = run_ranks(folder, CASES, str(folder / "cases.json"), ranks=RANKS, lab_s=600)
    if [status for status, _ in found] != [0] * RANKS:
        pytest.fail("\n".join(log[-1500:] for _, log in found))
    digests = [read_json(log) for _, log in found]
    for number, case in enumerate(drawn):
        told = {json.dumps(digests[rank][number]) for rank in case["members"]}
        assert len(told) == 1, case  # every rank has the same bits, whatever the rounding


def test_weights_of_two_ranks_are_those_of_gloo_to_the_bit(tmp_path: Path) -> None:
    """Of two numbers the order of the sum does not matter, so nothing may differ."""
    python = require_torch()
    words = ["--steps", "5", "--hidden", "64", "--save"]
    run_gloo(EXAMPLES / "ddp.py", *words, str(tmp_path / "gloo.pt"), ranks=2)
    found = run_ranks(tmp_path, EXAMPLES / "ddp.py", *words, str(tmp_path / "mrc.pt"), ranks=2)
    assert [status for status, _ in found] == [0, 0], [log[-2000:] for _, log in found]
    compare = (
        "import sys, torch\n"
        "ones, others = (torch.load(path) for path in sys.argv[1:])\n"
        "sys.exit(list(ones) != list(others) or not all(torch.equal(ones[name], others[name]) for name in ones))\n"
    )
    words = [python, "-P", "-c", compare, str(tmp_path / "gloo.pt"), str(tmp_path / "mrc.pt")]
    assert subprocess.run(words, check=False).returncode == 0


DEATHS = {
    "killed between collectives": "os.kill(os.getpid(), signal.SIGKILL)",
    "killed with a collective under way": "dist.all_reduce(torch.ones(10**5), async_op=True); os.kill(os.getpid(), 9)",
    "ended by an exception": "raise SystemExit('rank 1 gives up')",
    "sent another size": "dist.all_reduce(torch.ones(5)); dist.barrier()",
}


FAST = "killed with a collective under way"


@pytest.mark.parametrize("how", [pytest.param(how, marks=[] if how == FAST else [pytest.mark.slow]) for how in DEATHS])
def test_a_rank_that_dies_ends_the_others_with_its_number_within_a_bound(how: str, tmp_path: Path) -> None:
    require_torch()
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


def test_a_rank_that_dies_in_a_training_step_ends_the_others_by_an_exception(tmp_path: Path) -> None:
    """PyTorch's C++ waits for the sums there; it must see the failure as one, not as a result."""
    require_torch()
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


def test_what_is_not_offered_is_refused_with_the_rule(tmp_path: Path) -> None:
    require_torch()
    script = tmp_path / "refused.py"
    script.write_text(
        "import torch, torch.distributed as dist, mrclab.torch\n"
        "dist.init_process_group('mrc')\n"
        "def told(call):\n"
        "    try: call()\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
        "told(lambda: dist.all_reduce(torch.ones(4), dist.ReduceOp.BAND))\n"
        "told(lambda: dist.all_reduce(torch.ones(4).to_sparse()))\n"
        "told(lambda: dist.recv(torch.ones(4)))\n"
        "told(lambda: dist.all_reduce(torch.ones(4, device='meta')))\n"
        "dist.barrier()\n"
        "dist.destroy_process_group()\n"
    )
    found = run_ranks(tmp_path, script, ranks=2)
    assert [status for status, _ in found] == [0, 0], [log[-2000:] for _, log in found]
    for _, log in found:
        assert "the operation must be one of SUM, AVG, PRODUCT, MIN, MAX for torch.float32 (got BAND)" in log
        assert "tensor must be dense" in log or "must be strided" in log or "sparse" in log
        assert "recv must name its source rank" in log
        assert "tensor must be on the CPU (got meta)" in log


def test_a_transformer_learns_with_its_weights_sharded(tmp_path: Path) -> None:
    require_torch((2, 6))
    found = run_ranks(tmp_path, EXAMPLES / "transformer.py", "--steps", "6", ranks=2, lab_s=600)
    assert [status for status, _ in found] == [0, 0], [log[-2000:] for _, log in found]
    losses = [float(line.split()[-1]) for line in found[0][1].splitlines() if line.startswith("step")]
    assert len(losses) == 6
    assert losses[-1] < losses[0]

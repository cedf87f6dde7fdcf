"""PyTorch's own tests of backends, which its wheel brings along, in the processes of a job that is there already.

Words: a folder, and the names of tests to leave out. The tests take the way of `gloo`, the backend for CPUs, and their
groups are of `mrc`. Each test gets a new one. A line tells how each ended.
"""

import os
import sys
import unittest
from datetime import timedelta

folder, left_out = sys.argv[1], sys.argv[2:]
os.makedirs(f"{folder}/test_dir", exist_ok=True)
os.environ |= {"BACKEND": "gloo", "TEMP_DIR": folder, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

torch.manual_seed(0)  # their networks are made when they are imported, alike on all ranks
from torch.testing._internal.distributed import distributed_test as theirs  # noqa: E402

from mrclab.torch import nic  # noqa: E402

MEET, RANK = os.environ["MRCLAB_MEET"], int(os.environ["RANK"])


class Suite(theirs.TestDistBackend, theirs.DistributedTest._DistTestBase):
    """Ranks that no test starts or joins."""

    def _barrier(self, *args: object, **kwargs: object) -> None:
        dist.barrier()


SKIPS = {skip.exit_code: skip.message for skip in theirs.TEST_SKIPS.values()}
new_group = dist.new_group
dist.new_group = lambda *args, backend=None, **kwargs: new_group(*args, **kwargs)
theirs.Barrier.sync = classmethod(lambda cls, **kwargs: dist.barrier())  # theirs sleeps, and waits for a file


def ended(name: str) -> str:
    try:
        test = Suite(name)
        test.rank = RANK
        dist.init_process_group("mrc", timeout=timedelta(seconds=60))
        dist.barrier()
        getattr(test, name)()
        dist.barrier()
    except unittest.SkipTest as reason:
        return f"skipped: {reason}"
    except SystemExit as status:
        return f"skipped: {SKIPS.get(status.code, status)}"
    except Exception as error:
        return " ".join(f"failed: {type(error).__name__}: {error}".split())[:300]
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    return "passed"


for number, name in enumerate(sorted(n for n in dir(Suite) if n.startswith("test_"))):
    if name not in left_out:
        os.environ["MRCLAB_MEET"] = f"{MEET}/{number}"
        print("TEST", name, how := ended(name), flush=True)
        if how.startswith("failed"):  # for all ranks at another time: they meet again at the next full 1000 s
            nic.sleep(1000 - nic.context().now_ns() / 1e9 % 1000)

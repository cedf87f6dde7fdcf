"""All-reduces, five per second, each with ten seconds of time. A rank that the command names sleeps before step 20."""

import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import mrclab.torch  # noqa: F401 (the backend mrc)

dist.init_process_group("mrc", timeout=timedelta(seconds=10))
for step in range(100):
    if step == 20 and sys.argv[1:] == [str(dist.get_rank())]:
        time.sleep(1000)
    dist.all_reduce(torch.ones(1000))
    print("step", step, flush=True)
    time.sleep(0.2)

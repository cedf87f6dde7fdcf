"""What tests of libmrc need of a machine."""

import shutil
from pathlib import Path

import pytest

VERBS = any(Path(root, "infiniband/verbs.h").is_file() for root in ("/usr/include", "/usr/local/include"))
REQUIREMENTS = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine"),
    pytest.mark.skipif(not VERBS, reason="no infiniband/verbs.h: apt-get install libibverbs-dev"),
]
PERFTEST = pytest.mark.skipif(shutil.which("ib_write_bw") is None, reason="no ib_write_bw: apt-get install perftest")

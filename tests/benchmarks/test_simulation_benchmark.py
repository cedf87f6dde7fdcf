"""The benchmark of virtual time moves the same packets with and without payload."""

import re
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_permutation_moves_the_same_packets_with_and_without_payload() -> None:
    found = []
    for payload in ("counted", "real"):
        words = ["--hosts", "64", "--bytes", "70000", "--turns", "1", "--round-trips", "1", "--payload", payload]
        program = [sys.executable, "-m", "benchmarks.simulation"]
        done = subprocess.run([*program, *words], capture_output=True, text=True, check=True)
        line = next(line for line in done.stdout.splitlines() if line.startswith("our permutation"))
        found.append(line.split()[2:4])
        assert re.search(r"packet-hops a second, ours: best [\d,]+, median", done.stdout)
    assert found[0] == found[1]

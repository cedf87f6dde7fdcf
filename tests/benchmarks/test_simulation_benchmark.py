"""The benchmark of virtual time: a comparison is of at least five turns, and says when it is of fewer."""

import re
import subprocess
import sys

import pytest

from benchmarks.simulation import best_and_median


def test_five_turns_have_a_best_and_a_median() -> None:
    assert best_and_median([5.0, 1.0, 4.0, 2.0, 3000.0]) == "best 3,000, median 4"


def test_fewer_turns_say_so() -> None:
    assert best_and_median([5.0, 1.0]).endswith("2 of the 5 turns that a comparison takes")


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

"""The tables of the shipped algorithms in docs/results.md are those of the runs in docs/algorithms.csv.gz."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARK = [sys.executable, "benchmarks/algorithms.py", "--csv", "docs/algorithms.csv.gz", "--table"]


def tables_of(text: str) -> list[str]:
    """Markdown tables whose first column is of scenarios."""
    return re.findall(r"^\|scenario\|.*\n(?:\|.*\n)+", text + "\n", re.M)


@pytest.mark.slow
def test_the_tables_of_the_page_are_those_of_its_runs() -> None:
    made = subprocess.run(BENCHMARK, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    goodput, kept, goodput_400, kept_400, _, kept_untrimmed, _, kept_untrimmed_400 = tables_of(made)
    page = (ROOT / "docs/results.md").read_text().split("## The shipped algorithms")[1].split("\n## ")[0]
    assert tables_of(page) == [goodput, kept, goodput_400, kept_400, kept_untrimmed, kept_untrimmed_400]
    (runs,) = {found[1] for found in re.finditer(r": (\d+ to \d+) runs in each place", made)}
    assert re.search(rf"^\*\*{runs.split(' to ')[1]} seeds", page, re.M), runs

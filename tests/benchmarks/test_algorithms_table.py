"""The tables of the shipped algorithms in docs/results.md are those of the runs in docs/algorithms.csv.gz."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARK = [sys.executable, "benchmarks/algorithms.py", "--csv", "docs/algorithms.csv.gz", "--table"]
LEFT_OUT = {f"{rate} Gb/s, without trimming, goodput without faults" for rate in (100, 400)}


def tables_of(text: str) -> dict[str, str]:
    """Markdown tables whose first column is of scenarios, by the line above each."""
    return dict(re.findall(r"^(.+):\n\n(\|scenario\|.*\n(?:\|.*\n)+)", text + "\n", re.M))


@pytest.mark.slow
def test_the_tables_of_the_page_are_those_of_its_runs() -> None:
    made = subprocess.run(BENCHMARK, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tables = tables_of(made)
    assert len(tables) == 8
    page = (ROOT / "docs/results.md").read_text().split("## The shipped algorithms")[1].split("\n## ")[0]
    assert tables_of(page) == {title: table for title, table in tables.items() if title not in LEFT_OUT}
    assert page.count("|scenario|") == len(tables) - len(LEFT_OUT)
    (runs,) = {found[1] for found in re.finditer(r": (\d+ to \d+) runs in each place", made)}
    assert re.search(rf"^\*\*{runs.split(' to ')[1]} seeds", page, re.M), runs

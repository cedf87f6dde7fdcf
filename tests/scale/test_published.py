"""The published answers: every one is a case of the benchmark, and pictures are drawn of them."""

from pathlib import Path

from benchmarks.scale_answers import cases, main, read

ROWS = Path(__file__).parents[2] / "docs/results/scale-answers.csv"


def test_every_published_answer_is_made_by_the_benchmark_and_none_is_missing(tmp_path: Path) -> None:
    rows = read(ROWS)
    assert {(row.chart, row.case, row.job) for row in rows} == {(each.chart, each.case, each.job) for each in cases()}
    assert {row.command for row in rows} == {each.command for each in cases()}
    assert all(row.median_us <= row.p99_us <= row.slowest_us for row in rows)
    assert main([str(ROWS), "--chart", "faults", "--pictures", str(tmp_path)]) == 0
    (picture,) = tmp_path.iterdir()
    assert all(row.case in picture.read_text() for row in rows if row.chart == "faults")

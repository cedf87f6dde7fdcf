"""Names and options that `./lab reproduce` refuses before any run."""

from pathlib import Path

import pytest

from cli import main as cli
from paper import catalogue


@pytest.mark.parametrize("name", ["99", "9z", "7", "shape", "incast"])
def test_a_wrong_name_gets_all_choices(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["reproduce", "9a", name, "--runs", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    choices = ", ".join([*catalogue.MODULES, *catalogue.ON_DEMAND])
    assert f"FIGURE must be one of {choices} (got {name!r})" in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("1", "Figure 1 draws two topologies and measures nothing"),
        ("2", "Figure 2 draws how switches forward SRv6 packets, and measures nothing"),
        ("3", "Figure 3 draws how an SRv6 address is made from an EV, and measures nothing"),
        ("7", "`./lab reproduce 6` runs this event"),
        ("13", "Figure 13 is part of figure 12: `./lab reproduce 12` compares"),
    ],
)
def test_a_figure_of_the_paper_that_is_missing_gets_the_reason(
    name: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["reproduce", name, "--runs", str(tmp_path)]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_each_of_the_papers_22_figures_is_run_or_its_absence_has_a_reason() -> None:
    run = {name.rstrip("abcd") for name in catalogue.MODULES}
    numbers = {str(number) for number in range(1, 23)}
    assert numbers - run == set(catalogue.MISSING)

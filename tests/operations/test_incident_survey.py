"""Many incidents gone through by programs: their counts, and the look for secrets."""

from pathlib import Path

import pytest

from operations.incident.draw import draw
from operations.incident.live_incident import files
from tests.incidents.__main__ import main
from tests.incidents.survey import Surveyed, leaks, table

FINE = Surveyed(3, 12, ("late-host",), 1, (), "", "wrong", "right")


@pytest.mark.slow
def test_incidents_of_all_levels_are_consistent_and_a_naive_solver_finds_few(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = main(["--count", "15", "--seed", "38"])
    said = capsys.readouterr().out
    print(said)
    assert status == 0, said
    (upper,) = [line.split() for line in said.splitlines() if line.startswith("3 to 5")]
    incidents, naive = int(upper[3]), int(upper[8])
    assert (incidents, 3 * naive <= incidents) == (9, True)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('{"drop_loss": 0}', ()),
        ("p0l0: no-trimming", ("no-trimming",)),
        ("the onset", ("onset",)),
        ("seed 4611686018427387000", ("4611686018427387000",)),
        ("bytes 14611686018427387000", ()),
    ],
)
def test_secrets_are_found_wherever_they_are(said: str, found: tuple[str, ...]) -> None:
    assert leaks(draw(4611686018427387000, 3), ["nothing", said]) == found


def test_names_of_files_and_folders_are_looked_at_as_well(tmp_path: Path) -> None:
    (tmp_path / "dead-cable").mkdir()
    (tmp_path / "dead-cable" / "late-host.txt").write_bytes(b"\xff flapping-cable")
    assert leaks(draw(1, 3), files(tmp_path)) == ("dead-cable", "flapping-cable", "late-host")


def test_the_table_counts_by_level_and_lists_what_is_amiss() -> None:
    rows = [
        FINE,
        Surveyed(1, 5, ("dead-cable",), 0, (), "", "right", "wrong"),
        Surveyed(4, 6, (), 0, ("truth",), "", "right", "right"),
        Surveyed(5, 7, ("late-host",), 0, (), "KeyError: 3", "", ""),
    ]
    said = table(rows)
    assert said[1].split() == ["1", "1", "1", "0", "0", "0", "1", "right", "(100%)", "0", "right", "(0%)"]
    assert said[5].split()[:8] == ["3", "to", "5", "3", "2", "1", "1", "1"]
    assert said[6:] == [
        "level 1, seed 5 (dead-cable): 0 of 1 faults shown",
        "level 4, seed 6 (nothing hidden): leaks truth",
        "level 5, seed 7 (late-host): KeyError: 3",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--count", "0"], "--count must be between 1"), (["--jobs", "99"], "between 1 and 64"), (["--level", "6"], "6")],
)
def test_wrong_numbers_are_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err

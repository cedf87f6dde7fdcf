"""Many incidents gone through by programs: their counts, and the look for secrets."""

import pytest

from operations.incident.draw import draw
from operations.incident.live_incident import files
from tests.incidents.__main__ import main
from tests.incidents.survey import leaks


def test_incidents_of_all_levels_are_consistent_and_a_naive_solver_finds_few(capsys) -> None:
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


def test_names_of_files_and_folders_are_looked_at_as_well(tmp_path) -> None:
    (tmp_path / "dead-cable").mkdir()
    (tmp_path / "dead-cable" / "late-host.txt").write_bytes(b"\xff flapping-cable")
    assert leaks(draw(1, 3), files(tmp_path)) == ("dead-cable", "flapping-cable", "late-host")

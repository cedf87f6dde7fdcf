"""A full disk costs an incident neither its lab nor its answer, and nothing has to be killed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.main import main
from operations.incident.client import NoIncidentError, newest
from operations.incident.draw import described, draw
from tests.helpers.small_disk import SmallDisk, small_disk

pytestmark = pytest.mark.root
SEED, LEVEL = 6, 1
NO_ROOM = "no space left on device"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 3072) as made:
        yield made


def incident(disk: SmallDisk, *words: str) -> int:
    return main(["incident", *words, "--runs", str(disk.path / "runs")])


def begun(disk: SmallDisk) -> Path:
    """The folder of an incident under way."""
    assert incident(disk, "--level", str(LEVEL), "--seed", str(SEED)) == 0
    return newest(disk.path / "runs")


def over(disk: SmallDisk) -> bool:
    try:
        newest(disk.path / "runs")
    except NoIncidentError:
        return True
    return False


@pytest.mark.parametrize(("words", "verdict"), [(("answer", "none"), "wrong"), (("end",), "given up")])
def test_an_incident_that_could_not_write_ends_once_there_is_room(words, verdict: str, disk: SmallDisk, capsys) -> None:
    folder = begun(disk)
    disk.fill()
    for _ in range(2):
        assert incident(disk, *words) == 2
        said = capsys.readouterr()
        assert f"answer.json: {NO_ROOM}" in said.err
        assert "seed" not in said.out
        assert incident(disk, "inspect") == 0, "the lab must be there still"
        capsys.readouterr()
    disk.free()
    incident(disk, *words)
    said = capsys.readouterr()
    assert said.out.startswith(f"{verdict}: ")
    assert "not written" not in said.out
    document = json.loads((folder / "answer.json").read_text())
    assert document["truth"] == described(draw(SEED, LEVEL))
    assert document["evidence"]
    assert "What was wrong" in (folder / "incident.html").read_text()
    assert over(disk)


def test_commands_go_on_while_the_disk_is_full(disk: SmallDisk, capsys: pytest.CaptureFixture[str]) -> None:
    folder = begun(disk)
    disk.fill()
    for _ in range(3):
        assert incident(disk, "wait", "1") == 0
    disk.free()
    assert incident(disk, "wait", "1") == 0
    assert incident(disk, "answer", "none") == 1
    assert "defect" not in capsys.readouterr().err
    text = (folder / "journal" / "h0.jsonl").read_text()
    assert text.count('"kind":"lost"') == 1, "the journal must say that lines are missing"

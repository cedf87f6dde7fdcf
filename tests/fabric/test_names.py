"""The names of the source, wherever an imported fabric is run, judged, rehearsed or broken."""

import json
import re
from pathlib import Path

import pytest

from cli.main import main
from common.terminal.source_names import TAGS

ROOT = Path(__file__).resolve().parents[2]
OWN = re.compile(r"(?<![\w/])(?:p[01][ls][01]|h[0-3])(?!\w)")


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["topo", "import", str(ROOT / "docs/templates/rack"), "-o", "rack.toml"]) == 0
    return tmp_path / "rack.toml"


def test_a_run_its_verdict_and_its_report_have_the_names_of_the_source(
    rack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["smoke", "--plan", "rack.toml", "--world", "simulated", "--seed", "1", "--runs", "runs", "--plain"]
    main(["run", *words])
    said = capsys.readouterr()
    assert "link-down p0-leaf1-p0-spine1 undone" in said.err + said.out
    folder = rack.parent / "runs/latest"
    texts = {name: (folder / name).read_text() for name in ("summary.txt", "report.html", "verdict.json")}
    page = " ".join(part for part in TAGS.split(texts["report.html"]) if not part.startswith("<"))
    assert "p0-leaf1-p0-spine1" in texts["summary.txt"]
    assert "p0-leaf1-p0-spine1" in page
    reasons = " ".join(finding["reason"] for finding in json.loads(texts["verdict.json"])["findings"])
    for text in (said.err + said.out, texts["summary.txt"], page, reasons):
        assert OWN.findall(text) == []
    assert json.loads((folder / "options.json").read_text())["names"]["h0"] == "gpu01"


def test_an_incident_and_its_page_have_the_names_of_the_source(rack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["incident", "--plan", "rack.toml", "--seed", "4", "--level", "2", "--runs", "runs"]) == 0
    for tool in (
        ["inspect"],
        ["paths", "gpu01", "gpu04"],
        ["prober"],
        ["counters", "p0-leaf1"],
        ["capture", "p0-leaf1-p0-spine1"],
    ):
        assert main(["incident", *tool, "--runs", "runs"]) == 0
    main(["incident", "end", "--runs", "runs"])
    said = capsys.readouterr().out
    assert "p0-leaf1: rebooting-switch" in said
    assert OWN.findall(said) == []
    (page,) = (rack.parent / "runs").rglob("incident.html")
    shown = " ".join(part for part in TAGS.split(page.read_text()) if not part.startswith("<"))
    assert "p0-leaf1" in shown
    assert OWN.findall(shown) == []


def test_a_rehearsal_has_the_names_of_the_source(rack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change = (
        'name = "reboot"\nplan = "rack.toml"\nseconds = 4\n\n[[step]]\ndo = "reboot"\ntarget = "p1-spine2"\nat_s = 1\n'
    )
    Path("reboot.toml").write_text(change)
    main(["rehearse", "reboot.toml", "--seeds", "1", "--hunt", "1", "--runs", "runs", "--workers", "1"])
    said = capsys.readouterr().out
    assert re.search(r"besides the change: link-down p[01]-leaf[12]-p[01]-spine[12] @", said)
    assert OWN.findall(said) == []
    (page,) = (rack.parent / "runs").rglob("rehearsal.html")
    assert OWN.findall(" ".join(part for part in TAGS.split(page.read_text()) if not part.startswith("<"))) == []


def test_a_lab_its_faults_and_its_drawing_have_the_names_of_the_source(
    rack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topo", "draw", "rack.toml"]) == 0
    assert main(["up", "rack.toml", "--world", "simulated"]) == 0
    try:
        for words in (["fault", "link-down", "p0-leaf1-p0-spine1"], ["fault", "list"], ["status"], ["undo"]):
            assert main(words) == 0
        assert main(["fault", "link-down", "p0-leaf1-p0-spine9"]) == 2
    finally:
        main(["down"])
    assert main(["topo", "paths", "gpu01", "h9", "--plan", "rack.toml"]) == 2
    said, wrong = capsys.readouterr()
    assert "such as p0-leaf1-p0-spine2 (got 'p0-leaf1-p0-spine9')" in wrong
    assert "no h9: its hosts are gpu01 to gpu04" in wrong
    assert said.count("link-down p0-leaf1-p0-spine1") == 4
    assert "[l0: gpu01 gpu02]" in said
    assert OWN.findall(said) == []

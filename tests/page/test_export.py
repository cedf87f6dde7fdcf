"""The replay as one file: nothing is missing in it, nothing is loaded by it, and it opens from disk."""

import base64
import gzip
import json
import posixpath
import re
import shutil
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from common.journal import Journal
from judging.journal import merge
from judging.run import Run
from page import export
from page.browser_files import browser_files
from running.directory import RunDirectory


def carried(text: str) -> dict[str, list[str]]:
    found = re.search(r'<script type="application/json" id="carried">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    told = json.loads(found[1])
    assert isinstance(told, dict)
    return told


def test_every_line_of_the_journal_is_in_the_file_and_it_loads_nothing(run: Path, tmp_path: Path) -> None:
    size = export.write([run], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    lines = gzip.decompress(base64.b64decode(carried(text)["lines"][0])).splitlines()
    assert [json.loads(line) for line in lines] == merge(sorted((run / "journal").glob("*.jsonl")))[0]
    assert size == len(text.encode()) < 5_000_000
    export.write([run], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert not re.search(r'\b(?:src|href)="(?!data:)', text)
    assert "connect-src" not in text
    assert "default-src 'none'" in text


@pytest.mark.parametrize("value", ["NaN", "-Infinity", '"é"', "5"])
def test_a_replay_of_lines_that_are_read_already_is_that_of_the_folder(run: Path, tmp_path: Path, value: str) -> None:
    """But for what Python reads as JSON, and a browser does not: as from the folder, such a line is left out."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    with (copy / "journal" / "runner.jsonl").open("a") as journal:
        journal.write(f'{{"t_ns":1,"node":"runner","kind":"x","value":{value}}}\n')
    assert export.packed(copy, Run.open(copy).texts) == export.packed(copy)
    assert len(Run.open(copy).kind("x")) == 1


def test_words_of_a_journal_cannot_end_the_script_that_carries_them() -> None:
    told = {"title": "</script><script>alert(1)</script>", "lines": []}
    files = dict.fromkeys(("style.css", "main.js"), "") | {
        "index.html": '<script type="module" src="page/main.js"></script>'
    }
    text = export.document(told, files)
    assert "alert(1)" in text
    assert "<script>alert" not in text
    assert carried(text)["title"] == told["title"]


def test_each_run_has_its_replay_and_the_report_links_to_it_but_one_that_cannot_be_drawn(tmp_path, run: Path) -> None:
    (tmp_path / "options.json").write_text("{}")
    export.beside_report(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "options.json"]
    assert (run / "replay.html").exists()
    assert 'href="replay.html"' in (run / "report.html").read_text()


def test_the_file_opens_from_disk_and_shows_the_last_event(run: Path, shown, tmp_path: Path) -> None:
    recorded = Run.open(run)
    opened = shown([run, run])
    opened.page.keyboard.press("End")
    told = opened.value("lab.picture(1)")
    assert told["t_ns"] == recorded.end_ns
    assert told["steps"] == len(recorded.kind("step"))
    assert told["lines"] == len(recorded.lines)
    opened.value("lab.player.go(3e9)")
    assert opened.value("JSON.stringify(lab.picture(0)) === JSON.stringify(lab.picture(1))")


def test_a_replay_opens_where_the_first_fault_is_about_to_happen(run: Path, shown, tmp_path: Path) -> None:
    """Beside a run whose faults come later: the first fault of either counts."""
    later = tmp_path / "later"
    shutil.copytree(run, later)
    for journal in (later / "journal").iterdir():
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        moved = [{**line, "t_ns": line["t_ns"] + 500_000_000 * (line["kind"] == "fault")} for line in lines]
        journal.write_text("".join(json.dumps(line) + "\n" for line in moved))
    recorded = Run.open(run)
    first_ns = min(fault.start_ns for fault in recorded.faults) - recorded.start_ns
    opened = shown([later, run])
    assert 0 < first_ns - opened.value("lab.player.t") <= 0.02 * (recorded.end_ns - recorded.start_ns)
    assert opened.value("lab.picture().goodput_bps") > 1e6
    assert opened.value("lab.picture().faults") == {}


def test_the_loss_of_a_training_program_is_in_the_picture_and_drawn(run: Path, shown, tmp_path: Path) -> None:
    recorded = Run.open(run)
    pictures = []
    for told in (False, True):
        trained = tmp_path / f"run-{told}"
        shutil.copytree(run, trained)
        journal = Journal(RunDirectory(trained).journal("job-h0"), "h0", lambda: 0)
        for step, loss in enumerate((2.5, 1.5, 0.75)):
            t_ns = recorded.start_ns + (recorded.end_ns - recorded.start_ns) * (step + 1) // 4
            losses: dict[str, Any] = {"loss": loss} if told else {}
            journal.write("step", t_ns=t_ns, workload="job", rank=0, step=step, total_ns=10**8, **losses)
        journal.close()
        opened = shown([trained])
        opened.page.keyboard.press("End")
        opened.until("lab.chart.drawn.split(',')[2] === String(lab.lanes[0].record.version)")
        pictures.append(opened.value("document.querySelector('#charts canvas').toDataURL()"))
        assert opened.value("lab.picture().loss") == (0.75 if told else None)
    opened.until("document.querySelector('#panel').textContent.includes('0.75 after step 2 of job')")
    assert pictures[0] != pictures[1]


MODULES = {name: content.decode() for name, content in browser_files().items() if name.endswith(".js")}
LAYERS = ("words.js", "run", "drawing", "panels", "main.js")


def imports_of(name: str) -> set[str]:
    folder = posixpath.dirname(name)
    found = re.findall(r'\b(?:from|import)\s*\(?"([^"]+)"', MODULES[name])
    return {posixpath.normpath(posixpath.join(folder, one)) for one in found}


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    imports = {name: imports_of(name) for name in MODULES}
    TopologicalSorter(imports).prepare()  # raises where there is a circle
    with pytest.raises(CycleError):
        TopologicalSorter({**imports, "run/search.js": ["run/flights.js"]}).prepare()


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_import_only_what_lies_below_them(name: str) -> None:
    def layer(module: str) -> int:
        return LAYERS.index(module.split("/")[0])

    assert imports_of(name) <= MODULES.keys()
    assert all(layer(imported) <= layer(name) for imported in imports_of(name))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_are_short_and_write_no_html(name: str) -> None:
    assert len(MODULES[name].splitlines()) < 300
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://", MODULES[name])

"""Bundles of evidence: captures that are read back, digests, results that are judged again."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from conform import bundle, capture, result, rule
from conform.capture import TEXT, Event

ROW = {
    "id": "RSP-001", "rule": "A rule.", "source": "OCP MRC", "level": "must", "group": "basic",
    "tests": ["matrix:page"], "fails": "Nothing comes.",
}  # fmt: skip
EVENTS = [
    Event(5, "port1", bytes(range(61)), inward=True, note="a write"),
    Event(6 << 33, "port2", b"\x01\x02", inward=False),
    Event(7 << 33, TEXT, b"reset", inward=True),
]


def made(folder: Path) -> Path:
    rules = [rule.read(ROW, "responder")]
    one = bundle.Bundle("none", ["lab", "conform"], {"device": "x"})
    one.add(
        result.judge(rules[0], None, lambda _: "well"), {"RSP-001.pcapng": capture.packed(EVENTS, ["port1", "port2"])}
    )
    one.write(folder, rules)
    return folder


def test_a_capture_is_read_back_as_it_was() -> None:
    assert capture.unpacked(capture.packed(EVENTS, ["port1", "port2"])) == EVENTS
    with pytest.raises(capture.CaptureError):
        capture.unpacked(b"no capture of anything")


def test_a_bundle_holds_as_it_was_written_as_a_folder_and_as_a_zip(tmp_path: Path) -> None:
    folder = made(tmp_path / "one")
    assert bundle.verify(folder) == ([], [])
    told = json.loads((folder / "bundle.json").read_text())
    assert told["results"][0]["outcome"] == "pass"
    assert told["versions"]["python"] == sys.version.split()[0]
    assert "RSP-001  pass" in (folder / "results.txt").read_text()
    assert bundle.verify(Path(shutil.make_archive(str(tmp_path / "two"), "zip", folder))) == ([], [])


def test_a_changed_and_a_missing_file_are_named(tmp_path: Path) -> None:
    folder = made(tmp_path / "one")
    (folder / "results.txt").write_text("all is well\n")
    (folder / "RSP-001.pcapng").unlink()
    assert sorted(bundle.verify(folder)[0]) == ["RSP-001.pcapng: missing", "results.txt: not the file of the run"]


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text('{"format": 9}')
    with pytest.raises(bundle.BundleError, match="format 1"):
        bundle.verify(tmp_path)
    (tmp_path / "x.zip").write_bytes(b"PK")
    with pytest.raises(bundle.BundleError, match="must be a folder or a zip"):
        bundle.verify(tmp_path / "x.zip")


def test_an_outcome_follows_from_how_a_test_ends_and_from_the_level() -> None:
    def broken(_: object) -> str | None:
        raise result.Broken("late")

    must, open_rule = rule.read(ROW, "wire"), rule.read(ROW | {"level": "open"}, "wire")
    assert result.judge(must, None, broken).outcome == result.FAIL
    assert result.judge(open_rule, None, broken).outcome == result.CHOICE
    both = [result.judge(must, None, lambda _: None), result.judge(must, None, broken)]
    assert (result.joined(both).outcome, result.joined(both).text) == ("fail", "late")
    assert result.summary(both) == "2 rules: 1 pass, 1 fail, 0 not reachable, 0 device's choice"

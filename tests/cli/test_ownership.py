"""Under sudo a user's runs end up the user's."""

import os
import shutil
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from cli import main as cli
from cli.commands import capture
from cli.ownership import hand_over, hand_over_below, handing_over, named_places
from common import files, giving
from common.giving import Made
from common.scratch import Scratch
from course.grading import packing

ROOT = Path(__file__).resolve().parents[2]
SUDO = {"SUDO_UID": "12345", "SUDO_GID": "23456"}


@pytest.mark.root
@pytest.mark.parametrize("name", ["SUDO_UID", "SUDO_GID"])
@pytest.mark.parametrize("text", ["4294967296", "4294967295", "-1", "0x1f", "1_0", " 5", "٣", "x", "9" * 5000])
def test_an_id_that_sudo_never_sets_is_an_error_that_names_it(name: str, text: str, monkeypatch, refused) -> None:
    for one in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.setenv(one, text if one == name else "1000")
    said = refused("list")
    assert f"{name} must be a decimal id from 0 to 4294967294, as sudo sets it (got {text[:9]!r}"[:-1] in said
    assert f"unset {name}, or start the command with sudo" in said


@pytest.mark.root
def test_only_what_appears_changes_hands(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    colleague = runs / "colleague"
    colleague.mkdir(parents=True)
    (colleague / "thesis.txt").write_text("")
    os.chown(colleague / "thesis.txt", 1234, 1234)
    (runs / "rows.sqlite").write_text("")
    (runs / "page.html").write_text("")
    with handing_over(runs, tmp_path / "new" / "cache", environment={"SUDO_UID": "12345", "SUDO_GID": "23456"}):
        (runs / "rows.sqlite").write_text("more rows")
        (runs / "page.new").write_text("")
        (runs / "page.new").replace(runs / "page.html")
        (runs / "smoke" / "run").mkdir(parents=True)
        (colleague / "more.txt").write_text("")
        (tmp_path / "new" / "cache").mkdir(parents=True)
        (tmp_path / "new" / "cache" / "program.so").write_text("")
    theirs = {path for path in (tmp_path, *tmp_path.rglob("*")) if path.lstat().st_uid == 12345}
    assert theirs == {
        runs / "page.html", runs / "smoke", runs / "smoke/run",
        tmp_path / "new", tmp_path / "new/cache", tmp_path / "new/cache/program.so",
    }  # fmt: skip
    assert (colleague / "thesis.txt").stat().st_uid == 1234


@pytest.mark.root
@pytest.mark.parametrize("gone", ["run", "run/file", "run/folder"])
def test_an_entry_that_another_command_removes_meanwhile_is_passed_over(tmp_path, monkeypatch, gone: str) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    opened, entry = giving._entry, runs / gone

    def after_removal(name: Path | str, folder: int | None) -> AbstractContextManager[int]:
        if Path(name).name == entry.name:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        return opened(name, folder)

    with handing_over(runs, environment=SUDO):
        (runs / "run" / "folder").mkdir(parents=True)
        (runs / "run" / "folder" / "inner").touch()
        (runs / "run" / "file").touch()
        (runs / "stays").touch()
        monkeypatch.setattr(giving, "_entry", after_removal)
    assert not entry.exists()
    assert (runs / "stays").stat().st_uid == 12345


@pytest.mark.root
def test_scratch_folders_and_unnamed_files_of_other_commands_keep_their_owner(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    with ExitStack() as stack:
        with handing_over(runs, environment=SUDO):
            scratch = [stack.enter_context(Scratch("scratch-", folder)) for folder in (runs, runs / "sweeps")]
            for folder in scratch:
                (folder / "run").mkdir()
            (runs / ".latest-smoke").symlink_to("smoke")
            (runs / "scratch-scenario").mkdir()
        theirs = {path for path in runs.rglob("*") if path.lstat().st_uid == 12345}
        assert theirs == {runs / "sweeps", runs / "scratch-scenario"}


def owners(*places: Path) -> set[int]:
    """The owners of these files and folders, and of all in them."""
    return {path.lstat().st_uid for place in places for path in (place, *place.rglob("*"))}


@pytest.fixture
def under_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of this process are a user's who called sudo, in an empty folder."""
    for name, value in {**SUDO, "XDG_CACHE_HOME": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


@pytest.mark.root
@pytest.mark.parametrize(
    "words",
    [
        "graph tiny -o made.mmd", "topo draw tiny -o made.svg", "export json tiny -o made.json",
        "export frr tiny -o made", "export sonic tiny --switch p0l0 -o made.json",
        "export cm permutation --ranks 4 -o made.cm", "switch compile {root}/p4/leaf.p4 -o made/deep",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("under_sudo")
def test_a_file_that_a_command_line_names_is_the_users(words: str, tmp_path: Path) -> None:
    assert cli.main(words.format(root=ROOT).split()) == 0
    made = [path for path in tmp_path.iterdir() if path.name != "cache"]
    assert len(made) == 1
    assert owners(*made) == {12345}


@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("incident view", {"incident-view.html"}),
        ("incident view --export a.html", {"a.html"}),
        ("view latest --export a.html", {"a.html"}),
        ("compare --output a.html --picture a.svg", {"a.html", "a.svg"}),
        ("report --csv figures", {"figures"}),
        ("reproduce 16 --keep a.gz", {"a.gz"}),
        ("hunt", {"found"}),
        ("grade submissions --key k", {"graded"}),
        ("controller push --journal a.jsonl", {"a.jsonl"}),
        ("up --journals a", {"a"}),
        ("start 1", {"mylab"}),
        ("run smoke", set()),
    ],
)
def test_the_places_that_a_command_line_writes_are_known(words: str, places: set[str]) -> None:
    assert {str(place) for place in named_places(cli.parser(words.split()[0]).parse_args(words.split()))} == places


@pytest.mark.root
@pytest.mark.usefixtures("under_sudo")
def test_a_file_that_a_command_names_by_itself_and_a_capture_are_the_users(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(packing, "tracked", list)
    assert cli.main(["course", "pack", "5", "--for", "gradescope", "--key", "k"]) == 0
    assert owners(*tmp_path.glob("*.zip")) == {12345}
    # Without a lab and tcpdump: another function writes the file.
    monkeypatch.setattr(capture, "check", lambda *_, **__: None)
    monkeypatch.setattr(capture, "captured", lambda asked: Path(asked.write).write_bytes(b""))
    assert cli.main(["capture", "p0l0-p0s0", "--write", "made.pcap"]) == 0
    assert owners(tmp_path / "made.pcap") == {12345}


@pytest.mark.root
def test_a_file_that_was_there_changes_hands_only_where_it_was_replaced(tmp_path: Path) -> None:
    read, replaced, removed, linked = (tmp_path / name for name in ("read", "replaced", "removed", "linked"))
    for file in (read, replaced, removed):
        file.touch()
    with handing_over(read, replaced, removed, linked, tmp_path / "missing", environment=SUDO):
        files.write(replaced, "new")
        removed.unlink()
        linked.symlink_to(read)
    assert (read.stat().st_uid, replaced.stat().st_uid) == (0, 12345)


@pytest.mark.root
def test_what_others_own_in_a_folder_that_is_handed_over_stays_theirs(tmp_path: Path) -> None:
    """A stranger's file, a second name of a file elsewhere, and what a link points to."""
    run, precious = tmp_path / "run", tmp_path / "precious"
    (run / "sub").mkdir(parents=True)
    precious.touch()
    os.link(precious, run / "second-name")
    for name, user in (("thesis.txt", 65534), ("sub/b", 1234)):
        (run / name).touch()
        os.chown(run / name, user, user)
    (run / "answer.json").touch()
    (run / "link").symlink_to(precious)
    hand_over(run, tmp_path / "missing", environment=SUDO)
    given = {path.name: path.lstat().st_gid for path in (run, *run.rglob("*")) if path.lstat().st_uid == 12345}
    assert given == dict.fromkeys(("run", "sub", "answer.json", "link"), 23456)
    assert precious.stat().st_uid == 0


@pytest.mark.root
def test_a_parent_that_was_swapped_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    """Another user who may write in a folder above puts a link in its place before the command ends."""
    elsewhere, runs, place = tmp_path / "elsewhere", tmp_path / "user" / "runs", tmp_path / "user" / "cache" / "mrclab"
    for folder in (elsewhere / "smoke", elsewhere / "mrclab", runs / "smoke", place):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    made = Made.of(runs / "smoke")
    with handing_over(place, environment=SUDO):
        (place / "new").touch()
        for name in ("runs", "cache"):
            (tmp_path / "user" / name).rename(tmp_path / name)
            (tmp_path / "user" / name).symlink_to(elsewhere)
    hand_over(made, environment=SUDO)
    assert owners(elsewhere) == {0}
    assert owners(tmp_path / "cache" / "mrclab" / "new") == {12345}
    (tmp_path / "user" / "runs").unlink()
    (tmp_path / "runs").rename(runs)
    hand_over(made, environment=SUDO)
    assert owners(runs / "smoke") == {12345}


@pytest.mark.root
def test_files_are_handed_over_by_name_through_their_folder(tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    for folder in (run / "journal", elsewhere):
        folder.mkdir(parents=True)
    for file in (run / "answer.json", run / "journal" / "runner.jsonl", run / "other", elsewhere / "runner.jsonl"):
        file.touch()
    (run / "linked").symlink_to(elsewhere)
    with giving.opened_folder(run) as opened:
        run.rename(tmp_path / "moved")
        names = ("answer.json", "journal/runner.jsonl", "linked/runner.jsonl", "missing", "missing/deep")
        hand_over_below(opened, *names, environment=SUDO)
    moved = tmp_path / "moved"
    assert owners(moved / "answer.json", moved / "journal" / "runner.jsonl") == {12345}
    assert owners(moved / "other", elsewhere) == {0}

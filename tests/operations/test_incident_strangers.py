"""What a stranger puts where incidents are does not reach the user who asks, who may be root."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cli.main import main
from cli.ownership import hand_over
from common.client import ControlError
from common.linux.rights import NOBODY
from operations.incident.client import NoIncidentError, ask, namespace_of, newest, start
from operations.incident.page import WRITTEN
from running.directory import RunDirectory
from running.view.kept import SOCKET
from tests.helpers.stranger import as_a_stranger, control_of_a_stranger
from topo.emulation import namespace, state
from topo.emulation.labname import LabName
from topo.planfile import load_plan

pytestmark = pytest.mark.root


@pytest.fixture
def runs() -> Iterator[Path]:
    """`runs` in a folder like /tmp, where every user may make files. Its name is short, because sockets' paths are."""
    with tempfile.TemporaryDirectory(prefix="s-") as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder) / "runs"


@pytest.fixture
def theirs(runs: Path) -> Path:
    """A folder that looks like the newest incident, of another user."""
    folder = runs / "incident" / "20991231-235959-1"
    with as_a_stranger():
        folder.mkdir(parents=True)
        (folder / "options.json").write_text('{"world": "emulated"}')
    return folder


@pytest.fixture
def words(runs: Path) -> str:
    """What a stranger would like root to execute."""
    return f"touch {runs.parent / 'pwned'}"


def test_root_executes_nothing_that_a_stranger_answers(theirs: Path, runs, words: str, monkeypatch, capsys) -> None:
    def executed(*_: object) -> None:
        raise AssertionError("root became a command")

    monkeypatch.setattr(os, "execvp", executed)
    with control_of_a_stranger(theirs / SOCKET, {"result": {"namespace": "/proc/self/ns/net", "line": words}}) as asked:
        assert main(["incident", "exec", "--runs", str(runs), "p0l0", "--", "ip", "-s", "link"]) == 2
    assert asked == []
    assert f"no incident is under way in {runs} (passed over, because other users own them: {theirs})" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(("caller", "told"), [(NOBODY, True), (NOBODY - 1, False)])
def test_sudo_on_an_incident_of_the_caller_is_told_to_be_left_out(caller: int, told, runs, monkeypatch, capsys) -> None:
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.setenv(name, str(caller))
    directory = RunDirectory.create(runs, "incident", 1)
    directory.write_options({"world": "simulated"})
    directory.path.chmod(0o777)
    with control_of_a_stranger(directory.path / SOCKET, {}) as asked:
        assert main(["incident", "status", "--runs", str(runs)]) == 2
    assert asked == []
    assert ("needs no root, so run the command without sudo" in capsys.readouterr().err) is told


def test_the_newest_incident_is_one_of_ours(theirs: Path, runs: Path) -> None:
    (theirs / SOCKET).touch()
    with pytest.raises(NoIncidentError, match="other users own them"):
        newest(runs)
    mine = runs / "incident" / "20251129-000000-1"
    mine.mkdir()
    (mine / SOCKET).touch()
    (runs / "incident" / "20991231-235959-2").symlink_to(theirs)
    assert newest(runs) == mine


@pytest.fixture
def lab() -> Iterator[LabName]:
    """The record of an incident's lab that a server has written."""
    name = LabName("strangers")
    with state.locked(name.root):
        state.write_record(state.new_record(load_plan("tiny"), "token", name, "incident", sealed=True), name.root)
    yield name
    state.remove(name.root)


def test_only_the_namespace_of_the_node_that_was_typed_is_entered(lab: LabName) -> None:
    assert namespace_of("p0l0", "strangers.p0l0") == "strangers.p0l0"
    for node, answered in (
        ("p0l0", "/proc/self/ns/net"), ("p0l0", "strangers.h0"), ("h9", "strangers.h0"),
        ("p0l0", "../../proc/1/ns/net"), ("p0l0", ""), ("p0l0", "other.p0l0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"the network namespace of|has no h9"):
            namespace_of(node, answered)
    record = state.read_record(lab.root)
    assert record is not None
    record.run = "smoke"  # the lab of somebody's run is no incident's
    state.write_record(record, lab.root)
    with pytest.raises(ValueError, match=r"must name the network namespace of p0l0 in its lab"):
        namespace_of("p0l0", "strangers.p0l0")


def test_what_is_executed_are_the_words_that_were_typed(runs: Path, lab: LabName, monkeypatch) -> None:
    """The process of an incident is trusted with the name of a node's namespace and with nothing else."""
    became: list[object] = []

    class Entered:
        def __init__(self, where: str) -> None:
            became.append(where)

        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    answers = {"result": {"namespace": "strangers.p0l0", "line": "touch pwned"}, "lab_s": 0, "commands": 1}
    directory = RunDirectory.create(runs, "incident", 1)
    directory.write_options({"world": "emulated"})
    (directory.path / SOCKET).touch()
    monkeypatch.setattr("operations.incident.client.ask", lambda *_, **__: json.loads(json.dumps(answers)))
    monkeypatch.setattr(namespace, "entered", Entered)
    monkeypatch.setattr(os, "execvp", lambda *words: became.append(words))
    main(["incident", "exec", "--runs", str(runs), "p0l0", "--", "ip", "-s", "a b"])
    assert became == ["strangers.p0l0", ("ip", ["ip", "-s", "a b"])]


@pytest.mark.parametrize("name", ["", ".", "..", "/proc/self/ns/net", "../netns/h0", "a/b", "h0\0"])
def test_a_name_never_becomes_a_path(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the name of a network namespace must have no slash"):
        namespace.path_of(name)
    if "/" in name:
        for place in (RunDirectory(tmp_path).journal, RunDirectory(tmp_path).log):
            with pytest.raises(ValueError, match="must have no slash"):
                place(name)


@pytest.fixture
def begun(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An incident in virtual time that root keeps for a user who has called sudo."""
    monkeypatch.setenv("SUDO_UID", "4321")
    monkeypatch.setenv("SUDO_GID", "4321")
    folder = start(runs, 6, 1).path
    hand_over(folder)
    yield folder
    with suppress(NoIncidentError, ControlError):
        ask(folder, "end")


def test_the_end_gives_its_own_files_to_the_user_and_no_others(begun: Path, runs: Path) -> None:
    (begun / "sub").mkdir()
    for name, user in (("thesis.txt", NOBODY), ("sub/b", 1234)):
        (begun / name).touch(0o600)
        os.chown(begun / name, user, user)
    roots = begun / "roots-own"
    roots.touch()
    assert main(["incident", "--runs", str(runs), "end"]) == 3
    for name in WRITTEN:
        assert (begun / name).stat().st_uid == 4321, name
    owners = {name: (begun / name).stat().st_uid for name in ("thesis.txt", "sub/b", "sub", "roots-own")}
    assert owners == {"thesis.txt": NOBODY, "sub/b": 1234, "sub": 0, "roots-own": 0}


def test_an_export_makes_no_folder_behind_a_link_of_a_stranger(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases, elsewhere = runs.parent, runs.parent / "elsewhere"
    elsewhere.mkdir()
    with as_a_stranger():
        (cases / "telemetry").symlink_to(elsewhere)
    assert main(["incident", "export", str(cases), "--seeds", "1"]) == 2
    assert "telemetry is a symbolic link of user" in capsys.readouterr().err
    assert not any(elsewhere.iterdir())

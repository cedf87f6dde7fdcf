"""Processes of a run without `mpiexec`: PMI 1.1 as mpich speaks it, how processes end, and what they leave."""

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.interpreter import python
from running.parallel.one_machine import OneMachine, ProcessManager, remove_leftovers
from tests.helpers.mpi_run import needs_mpi


def asked(manager: ProcessManager, rank: int, line: str) -> dict[str, str]:
    ((to, answer),) = manager.answers(rank, f"cmd={line}\n".encode())
    assert to == rank
    assert answer.endswith(b"\n")
    return dict(word.partition("=")[::2] for word in answer.decode().split())


@needs_mpi
@pytest.mark.parametrize("place", ["current", "home"])
def test_no_process_obeys_settings_of_a_folder_that_may_be_another_users(place: str, tmp_path: Path) -> None:
    """UCX of root wrote the file that `ucx.conf` there names, and took libraries from where it says."""
    for name in ("current", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / place / "ucx.conf").write_text(f"UCX_LOG_FILE={tmp_path / 'written'}\nUCX_LOG_LEVEL=info\n")
    code = "import os; from running.parallel.communicator import world; size = world().Get_size(); "
    code += "print(size, os.getcwd(), os.environ['HOME'])"
    current, home = tmp_path / "current", tmp_path / "home"
    environment = {**os.environ, "HOME": str(home)}
    done = subprocess.run(python("-c", code), cwd=current, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"1 {current} {home}\n"
    assert not (tmp_path / "written").exists()


def test_a_process_learns_its_place_and_what_others_have_put_and_two_runs_share_no_name() -> None:
    manager = ProcessManager(2)
    assert asked(manager, 0, "init pmi_version=1 pmi_subversion=1") == {
        "cmd": "response_to_init", "pmi_version": "1", "pmi_subversion": "1", "rc": "0",
    }  # fmt: skip
    assert asked(manager, 1, "get_my_kvsname") == asked(manager, 0, "get_my_kvsname")
    assert asked(manager, 0, "get kvsname=k key=PMI_process_mapping")["value"] == "(vector,(0,1,2))"
    assert asked(manager, 0, "get kvsname=k key=address")["rc"] == "-1"
    assert asked(manager, 1, "put kvsname=k key=address value=here=1")["rc"] == "0"
    assert asked(manager, 0, "get kvsname=k key=address") == {"cmd": "get_result", "rc": "0", "value": "here=1"}
    assert asked(manager, 1, "finalize") == {"cmd": "finalize_ack"}
    assert manager.finished == {1}
    names = {asked(ProcessManager(1), 0, "get_my_kvsname")["kvsname"] for _ in range(20)}
    assert len(names) == 20
    assert max(map(len, names)) < 256


def test_a_barrier_opens_for_all_when_the_last_one_comes_and_closes_again() -> None:
    manager = ProcessManager(3)
    for _ in range(2):
        assert manager.answers(0, b"cmd=barrier_in\n") == []
        assert manager.answers(2, b"cmd=barr") == []
        assert manager.answers(1, b"cmd=barrier_in\n") == []
        assert manager.answers(2, b"ier_in\n") == [(rank, b"cmd=barrier_out\n") for rank in range(3)]


@pytest.fixture
def ended() -> Iterator[list[OneMachine]]:
    made: list[OneMachine] = []
    yield made
    for one in made:
        one.end()


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("print('x', flush=True)\nfinish()", ""),
        ("finish()\nraise SystemExit(rank * 3)", "process 2 of 2, exit status 3"),
        ("if rank: os.kill(os.getpid(), 9)\nsocket.recv(9)", "process 2 of 2, killed by SIGKILL"),
        ("if rank: raise SystemExit(0)\nsocket.recv(9)", "process 2 of 2, exit status 0"),
    ],
    ids=["all well", "fails at its end", "killed", "leaves early"],
)
def test_a_process_that_is_lost_ends_the_others_and_is_named(program, failure, ended: list[OneMachine]) -> None:
    """The others wait for an answer that never comes."""
    source = (
        "import os\nfrom socket import socket\nrank = int(os.environ['PMI_RANK'])\n"
        "socket = socket(fileno=int(os.environ['PMI_FD']))\n"
        "def finish():\n    socket.sendall(b'cmd=finalize\\n')\n    assert socket.recv(99) == b'cmd=finalize_ack\\n'\n"
    )
    run = OneMachine([sys.executable, "-c", source + program], 2)
    ended.append(run)
    lines = list(run)
    assert run.failure() == failure, lines
    assert lines == (["x", "x", ""] if "print" in program else [""])


# --- shared memory ---------------------------------------------------------------------------------------------------


def test_only_own_segments_that_no_living_process_uses_are_removed(tmp_path: Path) -> None:
    names = ("mpich_shm_left", "mpich_shm_open", "mpich_shm_mapped", "mpich_shm_elsewhere", "mpich_shm_link", "other")
    for name in names:
        (tmp_path / name).write_bytes(bytes(4096))
    link = tmp_path / "mpich_shm_link"
    link.unlink()
    link.symlink_to(tmp_path / "other")
    code = (
        "import mmap,sys\nwith open(sys.argv[1], 'r+b') as f: m = mmap.mmap(f.fileno(), 0)\nprint(flush=True)\ninput()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "mpich_shm_elsewhere")]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with other, (tmp_path / "mpich_shm_open").open("rb"):
        assert other.stdout is not None
        assert other.stdout.readline()
        with (tmp_path / "mpich_shm_mapped").open("r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
        assert remove_leftovers(tmp_path) == ["mpich_shm_left"]
        assert {path.name for path in tmp_path.iterdir()} == set(names) - {"mpich_shm_left"}
        mapped.close()
        other.communicate(b"\n")
    assert remove_leftovers(tmp_path) == ["mpich_shm_elsewhere", "mpich_shm_mapped", "mpich_shm_open"]


@pytest.mark.root
def test_root_leaves_what_belongs_to_others(tmp_path: Path) -> None:
    segment = tmp_path / "mpich_shm_theirs"
    segment.write_bytes(b"")
    os.chown(segment, 65534, 65534)
    assert remove_leftovers(tmp_path) == []
    assert segment.exists()


def test_a_process_that_hides_its_memory_is_stepped_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the first process of a container may."""
    (tmp_path / "mpich_shm_left").write_bytes(b"")
    hidden = tmp_path / "proc" / "123"
    (hidden / "fd").mkdir(parents=True)
    (hidden / "maps").write_text("")
    read = Path.read_text

    def refuse(path: Path, **options: str) -> str:
        if path == hidden / "maps":
            raise PermissionError(path)
        return read(path, **options)

    monkeypatch.setattr(Path, "read_text", refuse)
    assert remove_leftovers(tmp_path, tmp_path / "proc") == ["mpich_shm_left"]

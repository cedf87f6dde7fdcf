"""One run on several processes: the parts are one run, and processes that are killed or interrupted end it."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.rig.namespaces import ip, namespaces
from running.parallel import one_machine
from running.parallel.world import Partition, SharedTime, host_groups
from tests.helpers.fuzzing import seeds
from tests.helpers.mpi_run import needs_mpi, words
from tests.helpers.ranks_in_memory import contents, differing, drawn_spec, even_spec, run_parts
from tests.helpers.waiting import heeding_interrupts, ran
from topo.graph import links
from topo.node import Host
from topo.planfile import parse_document

ROOT = Path(__file__).parents[3]

Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files of the runs."""
    folder = tmp_path_factory.mktemp("tmp")
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Starts runs, and ends those that a test has left."""
    left: list[subprocess.Popen[str]] = []

    def start(*more: str, scenario: str = "smoke") -> subprocess.Popen[str]:
        command = words(tmp_path, *more, scenario=scenario)
        environment = {**os.environ, "MRCLAB_COMPILED": "off"}  # no run waits for a build
        left.append(
            subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                preexec_fn=heeding_interrupts,
            )
        )  # fmt: skip
        return left[-1]

    yield start
    for one in left:
        one.kill()
        one.communicate()


def processes_of(folder: Path) -> list[int]:
    """The processes whose command line names a folder: `mpiexec` and all that it has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if str(folder).encode() in command and b"running.parallel" in command:
            found.append(int(path.parent.name))
    return found


def ranks_of(folder: Path) -> list[int]:
    """The processes of a run that simulate, and not those that start them."""
    return [pid for pid in processes_of(folder) if Path(f"/proc/{pid}/exe").resolve().name.startswith("python")]


def rank_of(folder: Path, rank: int) -> int:
    """The process of a rank."""
    mark = f"PMI_RANK={rank}".encode()
    (found,) = [pid for pid in ranks_of(folder) if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")]
    return found


def until(happened: Callable[[], object], seconds: float = 60) -> None:
    end_s = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def going(folder: Path) -> bool:
    """Whether a run is in its phases."""
    return any(b'"kind":"phase"' in file.read_bytes() for file in folder.glob("*/*/journal/runner.jsonl"))


def errors(folder: Path) -> list[str]:
    """The messages of the fatal errors in the journal of the newest run."""
    lines = (folder / "latest" / "journal" / "runner.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [line["message"] for line in found if line["kind"] == "error" and line["fatal"]]


def verdict_of(folder: Path) -> str:
    return str(json.loads((folder / "latest" / "verdict.json").read_text())["verdict"])


@needs_mpi
def test_two_processes_write_what_one_writes(tmp_path: Path) -> None:
    for count in ("1", "2"):
        done = ran(words(tmp_path / count, "--processes", count), timeout=120, cwd=ROOT)
        assert done.returncode == 0, done.stdout + done.stderr
    one, two = (tmp_path / count / "latest" for count in ("1", "2"))
    assert contents(one) == contents(two)
    assert (one / "verdict.json").read_bytes() == (two / "verdict.json").read_bytes()
    assert (one / "options.json").read_bytes() == (two / "options.json").read_bytes()


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_process_ends_the_run_with_its_reason(number: signal.Signals, tmp_path, temporary, started) -> None:
    run = started("--processes", "2", "--time", "50")
    until(lambda: going(tmp_path))
    os.kill(rank_of(tmp_path, 1), number)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 3, output
    said = f"a process of the run has ended (process 2 of 2, killed by {number.name})"
    assert said in output
    (message,) = errors(tmp_path)
    assert message.startswith(f"PartLostError: {said}")
    assert verdict_of(tmp_path) == "unknown"
    assert "process 2 of 2" in (tmp_path / "latest" / "summary.txt").read_text()
    until(lambda: not processes_of(tmp_path))
    assert not list(temporary.iterdir())


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_killed_before_the_run_begins_ends_it_with_its_reason(rank, tmp_path, temporary, started) -> None:
    run = started("--processes", "2", "--time", "50")
    until(lambda: len(ranks_of(tmp_path)) == 2)
    os.kill(rank_of(tmp_path, rank), signal.SIGKILL)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 3, output
    assert f"process {rank + 1} of 2, killed by SIGKILL" in output
    assert "options.json" not in output
    assert verdict_of(tmp_path) == "unknown"
    assert not list(temporary.iterdir())


@needs_mpi
def test_ctrl_c_ends_all_processes_and_the_run_is_judged(tmp_path: Path, started: Started) -> None:
    run = started("--processes", "2", "--time", "50")
    until(lambda: going(tmp_path))
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode == 130
    assert errors(tmp_path) == ["KeyboardInterrupt: "]
    assert (tmp_path / "latest" / "report.html").exists()
    until(lambda: not processes_of(tmp_path))


@needs_mpi
def test_no_process_outlives_a_killed_command(tmp_path: Path, started: Started) -> None:
    run = started("--processes", "2", "--time", "50")
    until(lambda: going(tmp_path))
    run.kill()
    until(lambda: not processes_of(tmp_path))


def listening() -> dict[str, str]:
    """The local addresses that TCP sockets of this machine listen on, by the sockets' inodes."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[9]: row[1] for row in rows if row[3] == "0A"}


def sockets_of(pid: int) -> set[str]:
    """The inodes of a process's sockets."""
    targets = [os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()]
    return {target[8:-1] for target in targets if target.startswith("socket:[")}


@needs_mpi
@pytest.mark.slow
def test_no_process_of_a_run_on_one_machine_listens_on_tcp(tmp_path: Path, started: Started) -> None:
    """`mpiexec` listened on all addresses, and any machine that could reach the port could end the run."""
    run = started("--processes", "2", "--time", "50")
    until(lambda: going(tmp_path))
    found = {pid: sockets_of(pid) for pid in (run.pid, *processes_of(tmp_path))}
    assert len(ranks_of(tmp_path)) == 2
    assert all(found.values()), "the processes have no sockets that could be seen"
    ports = listening()
    open_ports = [f"{pid} on {ports[one]}" for pid, sockets in found.items() for one in sockets & ports.keys()]
    assert open_ports == []


@needs_mpi
@pytest.mark.slow
def test_shared_memory_and_folders_of_a_killed_run_are_removed_by_the_next_one(tmp_path, temporary, started) -> None:
    before = set(one_machine.FOLDER.glob("mpich_shm_*"))
    run = started("--processes", "2", "--time", "50")
    until(lambda: going(tmp_path))
    run.kill()
    until(lambda: not processes_of(tmp_path))
    (left,) = set(one_machine.FOLDER.glob("mpich_shm_*")) - before
    assert len(list(temporary.glob("mrclab-part-*"))) == 2
    done = ran(words(tmp_path / "next", "--processes", "2"), timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not left.exists()
    assert not list(temporary.iterdir())


@needs_mpi
def test_what_one_process_raises_ends_the_run_with_its_words(tmp_path, monkeypatch, started: Started) -> None:
    """A module of a user's own that the second process alone cannot bear."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if os.environ.get('PMI_RANK') == '1':\n"
        "    from running.parallel.world import SharedTime\n"
        "    turn = SharedTime._turn\n"
        "    def raising(self, turn_end_ns, end_ns):\n"
        "        broken = RuntimeError('the second part is broken')\n"
        "        return broken if self.now_ns > 10**9 else turn(self, turn_end_ns, end_ns)\n"
        "    SharedTime._turn = raising\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    run = started("--processes", "2", "--time", "50")
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 2
    assert "the second part is broken" in output
    assert errors(tmp_path) == ["RuntimeError: the second part is broken"]
    until(lambda: not processes_of(tmp_path))


BRIDGE = "br0"
LAUNCH = """\
#!/bin/sh
# As mpiexec calls ssh: [OPTION...] ADDRESS COMMAND...
while [ "${1#-}" != "$1" ]; do shift; done
address=$1; shift
case $address in
%s
esac
"""


def network(names: list[str]) -> list[str]:
    """A bridge in the first namespace, and the others plugged in; their addresses, which the first can reach, too."""
    ip("-n", names[0], "link", "add", BRIDGE, "type", "bridge")
    ip("-n", names[0], "addr", "add", "10.99.0.1/24", "dev", BRIDGE)
    ip("-n", names[0], "link", "set", BRIDGE, "up")
    addresses = []
    for number, name in enumerate(names[1:], 2):
        port = f"port{number}"
        ip("link", "add", port, "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("-n", names[0], "link", "set", port, "master", BRIDGE, "up")
        addresses.append(f"10.99.0.{number}")
        ip("-n", name, "addr", "add", f"{addresses[-1]}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            ip("-n", name, "link", "set", link, "up")
    return addresses


def received_bytes(name: str) -> int:
    """What has come over the link of a namespace."""
    command = ["ip", "netns", "exec", name, "cat", "/sys/class/net/eth0/statistics/rx_bytes"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@needs_mpi
@pytest.mark.root
def test_ranks_on_two_machines_write_what_one_process_writes(tmp_path: Path) -> None:
    alone = [*words(tmp_path / "one"), "--processes", "1"]
    subprocess.run(alone, cwd=ROOT, capture_output=True, check=True, timeout=120)
    with namespaces(3) as names:
        addresses = network(names)
        (tmp_path / "hosts").write_text("\n".join(addresses) + "\n")
        cases = zip(addresses, names[1:], strict=True)
        launch = tmp_path / "launch"
        launch.write_text(LAUNCH % "\n".join(f'{at}) exec ip netns exec {name} sh -c "$*";;' for at, name in cases))
        launch.chmod(0o755)
        environment = {
            **os.environ, "HYDRA_HOST_FILE": str(tmp_path / "hosts"), "HYDRA_LAUNCHER_EXEC": str(launch),
            "HYDRA_LAUNCHER": "ssh", "HYDRA_IFACE": BRIDGE, "UCX_TLS": "tcp,self",
        }  # fmt: skip  # UCX would find that both are on one machine, and share memory
        command = ["ip", "netns", "exec", names[0], *words(tmp_path / "two"), "--processes", "2"]
        done = ran(command, timeout=120, cwd=ROOT, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert min(received_bytes(name) for name in names[1:]) > 1_000_000
    one, two = (tmp_path / count / "latest" for count in ("one", "two"))
    assert contents(one) == contents(two)
    assert (one / "verdict.json").read_bytes() == (two / "verdict.json").read_bytes()


def test_frames_of_one_nanosecond_are_ordered_by_no_arrival(tmp_path: Path) -> None:
    assert differing(even_spec(), tmp_path) == []


def test_a_run_whose_hosts_take_their_time_is_the_same_in_parts(tmp_path: Path) -> None:
    """Messages between a program and its NIC are in no frame, so no part hears of another's."""
    assert differing(even_spec(post_ns=40_000_000, completion_ns=70_000_000), tmp_path) == []


def test_a_random_run_in_parts_is_the_run_in_one(tmp_path: Path) -> None:
    spec = drawn_spec(3)
    assert spec.faults()
    assert differing(spec, tmp_path) == []
    assert (tmp_path / "latest" / "packets.jsonl").stat().st_size > 1000


def test_what_one_part_raises_all_of_them_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = SharedTime._turn
    told: list[int] = []

    def broken(self: SharedTime, turn_end_ns: int, end_ns: int) -> Exception | None:
        if self.now_ns < 10**8:
            return turn(self, turn_end_ns, end_ns)
        told.append(self._ranks.rank)
        return OSError("a part is broken") if self._ranks.rank == 1 else turn(self, turn_end_ns, end_ns)

    monkeypatch.setattr(SharedTime, "_turn", broken)
    with pytest.raises(OSError, match="a part is broken"):
        run_parts(even_spec(), 3, tmp_path)
    assert sorted(told) == [0, 1, 2]
    (journal,) = tmp_path.glob("parts3/*/journal/runner.jsonl")
    assert "OSError: a part is broken" in journal.read_text()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 9])
def test_every_part_has_hosts_and_hosts_stay_with_their_leaves(count: int) -> None:
    plan = parse_document({"name": "wide", "fabric": {"planes": 2, "leaves": 9, "spines": 3, "hosts_per_leaf": 2}})
    rank = Partition.of(plan, count).rank
    assert set(rank) == {*plan.hosts(), *plan.switches()}
    hosts = Counter(rank[host] for host in plan.hosts())
    assert sorted(hosts) == list(range(count))
    assert max(hosts.values()) - min(hosts.values()) <= 2
    for link in links(plan):
        if isinstance(link.a.node, Host):
            assert rank[link.a.node] == rank[link.b.node]


def test_more_parts_than_groups_of_hosts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"--processes 5: .* has 4 such groups: take 1 to 4"):
        Partition.of(even_spec().plan, 5)


def test_the_commits_random_runs_in_parts_are_the_runs_in_one(tmp_path: Path) -> None:
    """In up to 16 parts: every fourth is on sixteen leaves."""

    def differs(seed: int) -> bool:
        spec = drawn_spec(seed, 16 if seed % 4 == 0 else None)
        groups = len(host_groups(spec.plan))
        return bool(differing(spec, tmp_path / str(seed), sorted({min(n, groups) for n in (2, 4, 8, 16)} - {1})))

    assert [seed for seed in seeds() if differs(seed)] == []

"""Sweeps on a Dask cluster: a real scheduler and real workers, as processes on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.commands.run import chosen
from cli.main import main
from studies.sweeping import report
from studies.sweeping.address import ClusterAddress, ClusterError
from studies.sweeping.cluster import Cluster
from studies.sweeping.ssh_cluster import ssh_cluster
from studies.sweeping.statement import statements
from studies.sweeping.store import RowStore
from studies.sweeping.sweep import Sweep
from studies.sweeping.task import VersionError
from tests.helpers.descendants import descendants
from tests.helpers.quick_sweep import choose_and_die_once, quick_subjects, write_quick
from tests.helpers.waiting import eventually

distributed: Any = pytest.importorskip("distributed", reason="needs the extra 'cluster'")
pytestmark = pytest.mark.slow  # starting Python with Dask takes seconds, three times a test
LIMIT_S = 60
LOOPBACK = ["--host", "127.0.0.1"]


def started(stack: ExitStack, *words: str) -> subprocess.Popen[str]:
    """A process of Dask's command line, which ends with the test."""
    command = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:], *LOOPBACK]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    stack.callback(process.communicate, timeout=LIMIT_S)
    stack.callback(process.terminate)
    return process


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, ExitStack]]:
    """The address of a scheduler, and a stack for its workers."""
    with ExitStack() as stack:
        process = started(stack, "dask_scheduler", "--port", "0", "--no-dashboard", "--no-show")
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"Scheduler at:\s+(tcp://\S+)", line):
                yield found[1], stack
                return
        pytest.fail("the scheduler ended")


def worker(address: str, stack: ExitStack, folder: Path) -> subprocess.Popen[str]:
    words = [address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
    return started(stack, "dask_worker", *words)


def test_tables_from_a_cluster_are_those_from_this_process_and_one_killed_worker_costs_a_retry(
    scheduler: tuple[str, ExitStack], tmp_path: Path
) -> None:
    address, stack = scheduler
    path = write_quick(tmp_path)
    workers = [worker(address, stack, tmp_path / "dask") for _ in range(2)]
    tables = []
    with RowStore(tmp_path / "cluster") as store, Cluster(ClusterAddress.parse(address), chosen, at_least=2) as cluster:
        sweep = Sweep(quick_subjects(path), range(1, 9), store)

        def kill_one() -> None:
            if sweep.made == 2:
                workers[0].send_signal(signal.SIGKILL)
                workers[0].wait(LIMIT_S)

        sweep.run(cluster, kill_one)
        assert cluster.died == 1
        tables.append(report.csv_text(statements(sweep)))
    words = ["sweep", str(path), "--seeds", "8", "--transport", "mrc,roce", "--runs", str(tmp_path / "runs")]
    main([*words, "--plain"])
    tables.append(next((tmp_path / "runs").glob("sweeps/*/rows.csv")).read_text())
    assert tables[0] == tables[1]


def test_a_run_that_kills_its_worker_is_made_by_another(scheduler: tuple[str, ExitStack], tmp_path: Path) -> None:
    address, stack = scheduler
    path = write_quick(tmp_path)
    for _ in range(2):
        worker(address, stack, tmp_path / "dask")
    with (
        RowStore(tmp_path) as store,
        Cluster(ClusterAddress.parse(address), choose_and_die_once, at_least=2) as cluster,
    ):
        sweep = Sweep(quick_subjects(path, ["mrc"]), range(1, 7), store)
        sweep.run(cluster)
        assert [row.verdict for row in sweep.rows(0)] == ["true"] * 6
        assert cluster.died == 1


def test_a_worker_of_another_version_refuses(scheduler: tuple[str, ExitStack], tmp_path: Path) -> None:
    address, stack = scheduler
    worker(address, stack, tmp_path / "dask")
    subject = quick_subjects(write_quick(tmp_path), ["mrc"])[0]
    hashes = {**subject.options["hashes"], "transport": "that of another version"}
    other = replace(subject, options={**subject.options, "hashes": hashes})
    with RowStore(tmp_path) as store, Cluster(ClusterAddress.parse(address), chosen) as cluster:
        with pytest.raises(VersionError, match="transport differ; workers need the same version"):
            Sweep([other], range(1, 3), store).run(cluster)
        assert len(store) == 0


def test_the_command_line_takes_the_address_of_a_scheduler(
    scheduler: tuple[str, ExitStack], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address, stack = scheduler
    worker(address, stack, tmp_path / "dask")
    words = ["sweep", str(write_quick(tmp_path)), "--seeds", "3", "--runs", str(tmp_path / "runs"), "--format", "json"]
    assert main([*words, "--cluster", address]) == 0
    assert json.loads(capsys.readouterr().out)["variants"][0]["verdicts"]["true"]["count"] == 3


def test_hosts_are_reached_by_ssh_and_nothing_of_the_sweep_is_left_on_them(tmp_path: Path) -> None:
    """The first host gets the scheduler, each a worker; the user's own SSH configuration says how to reach them."""
    before = set(Path("/tmp").glob("mrclab-cluster-*"))
    home = tmp_path / ".ssh"
    home.mkdir(mode=0o700)
    server = [sys.executable, "-m", "tests.helpers.ssh_server", str(home)]
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        words = ["sweep", str(write_quick(tmp_path)), "--seeds", "3", "--runs", str(tmp_path / "runs")]
        command = [sys.executable, "-m", "cli", *words, "--format", "json", "--cluster", "node,node"]
        environment = {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=10 * LIMIT_S
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["variants"][0]["verdicts"]["true"]["count"] == 3
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        eventually(lambda: not children.read_text().split(), "the end of all that ssh has started")
        assert not [path for path in Path("/tmp").glob("mrclab-cluster-*") if path not in before]
        assert process.stdin is not None
        process.stdin.close()


def listening(pids: set[int]) -> dict[int, set[str]]:
    """By process, the addresses and ports on which it listens."""
    lines = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[int, set[str]] = {}
    for line in lines:
        for pid in map(int, re.findall(r"pid=(\d+)", line)):
            if pid in pids:
                found.setdefault(pid, set()).add(line.split()[3])
    return found


def test_a_cluster_by_ssh_listens_on_one_address_and_refuses_whoever_has_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / ".ssh"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    server = [sys.executable, "-m", "tests.helpers.ssh_server", str(home)]
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        with ssh_cluster(["node"]) as cluster:
            started_by_ssh = descendants(process.pid)
            places = set().union(*listening(started_by_ssh).values())
            assert places
            assert all(place.startswith("127.0.0.1:") for place in places), places
            commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in started_by_ssh]
            assert not any(b"PRIVATE KEY" in command for command in commands)
            (folder,) = Path("/tmp").glob("mrclab-cluster-*")
            assert folder.stat().st_mode & 0o777 == 0o700
            assert cluster.scheduler_address.startswith("tls://127.0.0.1:")
            plain = cluster.scheduler_address.replace("tls://", "tcp://")
            stranger = distributed.Security.temporary()
            open_ = distributed.Security(require_encryption=False)
            for address, security in ((plain, open_), (cluster.scheduler_address, stranger)):
                with pytest.raises((OSError, TimeoutError)):
                    distributed.Client(address, security=security, timeout=3)
            with distributed.Client(cluster, timeout=LIMIT_S) as client:
                assert client.submit(int, "7").result(timeout=LIMIT_S) == 7
        eventually(lambda: not folder.exists(), "the end of the key")
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nonsense://x", "must be a scheduler such as tls://host:8786, or hosts such as a,b,c (got 'nonsense://x')"),
        (",", "must be a scheduler"),
        ("a,,b", "must be a scheduler"),
        ("tcp://", "must be a scheduler"),
        ("tcp://10.0.0.5:8786", "or add --insecure"),
        ("tcp://[2001:db8::1]:8786", "or add --insecure"),
    ],
)
def test_an_address_that_is_none_or_not_protected_is_refused(
    address: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = 0
    try:
        status = main(["sweep", "smoke", "--runs", str(tmp_path), "--cluster", address])
    except SystemExit as error:  # argparse
        status = int(error.code or 0)
    assert status == 2
    assert words in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:1", "tls://far:1", "a,b"]
)
def test_loopback_tls_and_hosts_need_no_flag(address: str) -> None:
    ClusterAddress.parse(address).protect(insecure=False)
    ClusterAddress.parse("tcp://far:8786").protect(insecure=True)


def test_no_cluster_at_an_address_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("studies.sweeping.cluster.WAIT_S", 0.5)
    words = ["sweep", str(write_quick(tmp_path)), "--seeds", "3", "--runs", str(tmp_path / "runs")]
    assert main([*words, "--cluster", "tcp://127.0.0.1:9"]) == 2
    assert "mrclab: --cluster tcp://127.0.0.1:9: " in capsys.readouterr().err
    with pytest.raises(ClusterError, match=r"--cluster tcp://127\.0\.0\.1:9: "):
        Cluster(ClusterAddress("tcp://127.0.0.1:9"), chosen).__enter__()

"""Sweeps on a Dask cluster: a real scheduler and real workers, as processes on loopback."""

import json
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

from cli.main import main
from studies.farm.cluster import Cluster, ClusterAddress, ClusterError
from studies.sweeping import report
from studies.sweeping.perform import perform
from studies.sweeping.statement import statements
from studies.sweeping.sweep import RowStore, Sweep
from studies.sweeping.task import VersionError
from tests.helpers.quick_sweep import perform_and_die_once, quick_subjects, write_quick

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


def test_tables_of_a_cluster_are_those_of_this_process_and_a_killed_worker_costs_a_retry(scheduler, tmp_path) -> None:
    address, stack = scheduler
    path = write_quick(tmp_path)
    workers = [worker(address, stack, tmp_path / "dask") for _ in range(2)]
    tables = []
    with (
        RowStore(tmp_path / "cluster") as store,
        Cluster(ClusterAddress.parse(address), perform, at_least=2) as cluster,
    ):
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
        Cluster(ClusterAddress.parse(address), perform_and_die_once, at_least=2) as cluster,
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
    with RowStore(tmp_path) as store, Cluster(ClusterAddress.parse(address), perform) as cluster:
        with pytest.raises(VersionError, match="transport differ; workers need the same version"):
            Sweep([other], range(1, 3), store).run(cluster)
        assert len(store) == 0


def test_the_command_line_takes_the_address_of_a_scheduler(scheduler: tuple[str, ExitStack], tmp_path, capsys) -> None:
    address, stack = scheduler
    worker(address, stack, tmp_path / "dask")
    words = ["sweep", str(write_quick(tmp_path)), "--seeds", "3", "--runs", str(tmp_path / "runs"), "--format", "json"]
    assert main([*words, "--cluster", address]) == 0
    assert json.loads(capsys.readouterr().out)["variants"][0]["verdicts"]["true"]["count"] == 3


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("a,b", "must be the address of a Dask scheduler, such as tls://host:8786 (got 'a,b')"),
        ("nonsense://x", "must be the address of a Dask scheduler"),
        ("tcp://", "must be the address of a Dask scheduler"),
        ("tcp://10.0.0.5:8786", "or add --insecure"),
        ("tcp://[2001:db8::1]:8786", "or add --insecure"),
    ],
)
def test_an_address_that_is_none_or_not_protected_is_refused(address: str, words: str, tmp_path, capsys) -> None:
    status = 0
    try:
        status = main(["sweep", "smoke", "--runs", str(tmp_path), "--cluster", address])
    except SystemExit as error:  # argparse
        status = int(error.code or 0)
    assert status == 2
    assert words in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:1", "tls://far:1"])
def test_loopback_and_tls_need_no_flag(address: str) -> None:
    ClusterAddress.parse(address).protect(insecure=False)
    ClusterAddress.parse("tcp://far:8786").protect(insecure=True)


def test_no_cluster_at_an_address_is_one_clear_line(monkeypatch, tmp_path, refused) -> None:
    monkeypatch.setattr("studies.farm.cluster.WAIT_S", 0.5)
    words = ["sweep", str(write_quick(tmp_path)), "--seeds", "3", "--runs", str(tmp_path / "runs")]
    assert "mrclab: --cluster tcp://127.0.0.1:9: " in refused(*words, "--cluster", "tcp://127.0.0.1:9")
    with pytest.raises(ClusterError, match=r"--cluster tcp://127\.0\.0\.1:9: "):
        Cluster(ClusterAddress("tcp://127.0.0.1:9"), perform).__enter__()

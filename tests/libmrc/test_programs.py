"""Programs that were not written for these tests, over two strict NICs in memory: the docs' own, perftest's, OCP's."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from running import sdk
from switch.native.build import compiler
from tests.helpers.waiting import eventually
from tests.libmrc.compiled import PERFTEST, REQUIREMENTS

pytestmark = REQUIREMENTS
ROOT = Path(__file__).parents[2]


def compiled(folder: Path, *sources: Path, include: Path = sdk.INCLUDE) -> str:
    program = folder / "program"
    words = ["-std=gnu11", "-O2", f"-I{include}", "-o", str(program), *map(str, sources)]
    subprocess.run([*compiler(), *words, f"-L{sdk.library()}", "-lmrc", "-lm"], check=True)
    return str(program)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def until_heard(port: int) -> None:
    """Returns when a program listens there."""
    tables = [Path("/proc/net") / name for name in ("tcp", "tcp6")]
    eventually(lambda: any(f":{port:04X} " in table.read_text() for table in tables), "it listens")


def ends(server: list[str], client: list[str], devices: list[str]) -> list[tuple[int, str]]:
    """Status and output of both; `{0}` and `{1}` in their words are the devices, `{2}` a free port."""
    environment = {**os.environ, **sdk.environment(sdk.library()), sdk.STRICT: "1"}
    port = free_port()
    commands = [[word.format(*devices, port) for word in words] for words in (server, client)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
    started = [subprocess.Popen(commands[0], **pipes)]  # type: ignore[call-overload]
    try:
        if "{2}" in server:
            until_heard(port)
        started.append(subprocess.Popen(commands[1], **pipes))  # type: ignore[call-overload]
        return [(one.wait(120), one.communicate()[0]) for one in reversed(started)][::-1]
    finally:
        for one in started:
            one.kill()


def test_the_program_of_the_docs_writes_from_memory_to_memory(tmp_path: Path) -> None:
    source = ROOT / "docs" / "programs" / "first_write.c"
    assert len(source.read_text().splitlines()) <= 80
    program = compiled(tmp_path, source)
    with rig() as made:
        devices = [f"mrc_{name}" for name in made.names]
        (server, received), (client, sent) = ends(
            [program, "0", str(tmp_path), "{0}"], [program, "1", str(tmp_path), "{1}"], devices
        )
    assert (server, client) == (0, 0), received + sent
    assert received == "success: written from memory to memory\n"
    assert sent == "success: the peer has it\n"


@PERFTEST
@pytest.mark.parametrize(
    "words",
    [
        ["-n", "100"],
        ["-q", "3", "-b", "-n", "100", "-s", "5000"],
        pytest.param(["-a", "-n", "10"], marks=pytest.mark.slow),
        ["-D", "1", "-s", "4096"],
    ],
)
def test_ib_write_bw_runs_as_debian_ships_it(words: list[str], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    common = [*words, "-p", "{2}"]
    with rig() as made:
        devices = [f"mrc_{name}" for name in made.names]
        server, client = ends(
            ["ib_write_bw", "-d", "{0}", *common],
            ["ib_write_bw", "-d", "{1}", *common, "--out_json", "--out_json_file", str(report), "127.0.0.1"],
            devices,
        )
    assert (server[0], client[0]) == (0, 0), server[1] + client[1]
    assert "BW average" in client[1]
    assert report.is_file()
    assert sum(line["kind"] == "program" and line["state"] == "close" for line in made.lines) >= 2


@PERFTEST
def test_ib_write_bw_ends_when_its_peer_is_killed() -> None:
    with rig(timeout_rtts=2) as made:
        devices = [f"mrc_{name}" for name in made.names]
        environment = {**os.environ, **sdk.environment(sdk.library())}
        port = free_port()
        words = ["ib_write_bw", "-n", "1000000", "-p", str(port), "-d"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
        server = subprocess.Popen([*words, devices[0]], **pipes)  # type: ignore[call-overload]
        until_heard(port)
        client = subprocess.Popen([*words, devices[1], "127.0.0.1"], **pipes)  # type: ignore[call-overload]
        try:
            eventually(lambda: made.sent > 1000, "it writes")
            server.kill()
            said = client.communicate(timeout=60)[0]
        finally:
            for one in (server, client):
                one.kill()
                one.communicate()
    assert client.returncode == 1
    assert "Failed status 12" in said  # IBV_WC_RETRY_EXC_ERR


@PERFTEST
@pytest.mark.parametrize(("program", "opcode"), [("ib_send_bw", 2), ("ib_read_bw", 4)])
def test_what_is_no_write_is_refused_with_the_reason(program: str, opcode: int) -> None:
    with rig() as made:
        devices = [f"mrc_{name}" for name in made.names]
        environment = {**os.environ, **sdk.environment(sdk.library()), sdk.STRICT: "1"}
        port = free_port()
        words = [program, "-p", str(port), "-d"]
        server = subprocess.Popen([*words, devices[0]], env=environment, stdout=subprocess.DEVNULL)
        try:
            until_heard(port)
            client = [*words, devices[1], "-n", "10", "127.0.0.1"]
            done = subprocess.run(client, env=environment, capture_output=True, text=True, check=False, timeout=60)
        finally:
            server.kill()
            server.wait()
    assert done.returncode != 0
    assert f"opcode {opcode} of a work request: MRC carries RDMA writes" in done.stderr


def test_ocps_test_runs_as_it_is(tmp_path: Path) -> None:
    if "MRCLAB_OCP" not in os.environ:
        pytest.skip("MRCLAB_OCP names no checkout of OCP-Multipath-Reliable-Connection")
    ocp = Path(os.environ["MRCLAB_OCP"])
    program = compiled(tmp_path, ocp / "test" / "mrc_test.c", include=ocp)
    environment = {**os.environ, **sdk.environment(sdk.library()), sdk.STRICT: "1"}
    with rig() as made:
        words = [program, "-d", f"mrc_{made.names[0]}"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello MRC!\n", "")


def test_ocps_example_runs_as_it_is(tmp_path: Path) -> None:
    if "MRCLAB_OCP" not in os.environ:
        pytest.skip("MRCLAB_OCP names no checkout of OCP-Multipath-Reliable-Connection")
    ocp = Path(os.environ["MRCLAB_OCP"])
    folder = ocp / "examples" / "benchmark"
    program = compiled(tmp_path, folder / "mrc_example.c", folder / "utils.c", include=ocp)
    common = ["-p", "{2}", "-n", "30", "-w", "3", "-s", "1048576", "--step-factor", "4"]
    with rig() as made:
        made.lose_every = 50
        devices = [f"mrc_{name}" for name in made.names]
        server, client = ends([program, "-d", "{0}", *common], [program, "-d", "{1}", *common, "127.0.0.1"], devices)
        assert made.lost > 0
    assert (server[0], client[0]) == (0, 0), server[1] + client[1]
    assert "mismatch" not in server[1]
    assert [int(row.split()[0]) for row in client[1].splitlines() if row.startswith(" 1")] == [
        1, 16, 1024, 16384, 1048576,
    ]  # fmt: skip

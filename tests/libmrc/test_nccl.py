"""The MRC plugin of NCCL (`MRCLAB_NCCL_PLUGIN=DIR`), loaded as NCCL loads it, and driven over host memory."""

import os
import shlex
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rig.uverbs_rig import rig
from running import sdk
from running.directory import RunDirectory
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from switch.native.build import compiler
from tests.helpers.waiting import ran
from tests.libmrc.compiled import REQUIREMENTS
from topo.emulation import state
from topo.planfile import load_plan

SECOND = 1_000_000_000
MLX5 = Path("/usr/include/infiniband/mlx5dv.h")
pytestmark = [
    *REQUIREMENTS,
    pytest.mark.slow,
    pytest.mark.skipif("MRCLAB_NCCL_PLUGIN" not in os.environ, reason="MRCLAB_NCCL_PLUGIN names no checkout"),
    pytest.mark.skipif(not MLX5.exists(), reason=f"{MLX5} is missing: apt-get install libibverbs-dev"),
]
NCCL_H = """
#ifndef NCCL_H_
#define NCCL_H_
#include <stddef.h>
#include <stdint.h>
#define NCCL_MAJOR 2
#define NCCL_MINOR 27
#define NCCL_VERSION_CODE 22703
typedef enum { ncclSuccess, ncclUnhandledCudaError, ncclSystemError, ncclInternalError, ncclInvalidArgument,
               ncclInvalidUsage, ncclRemoteError, ncclInProgress, ncclNumResults } ncclResult_t;
typedef enum { ncclInt8 } ncclDataType_t;
typedef enum { ncclSum } ncclRedOp_t;
#endif
"""
"""What the plugin takes from NCCL's header, which comes with GPUs' software only."""


def compiling(folder: Path) -> list[str]:
    (folder / "nccl.h").write_text(NCCL_H)
    plugin = Path(os.environ["MRCLAB_NCCL_PLUGIN"])
    # The vendor's header names a structure otherwise than OCP's, and offers more of mlx5 than Debian's.
    renamed = ["-Dmrc_attr=mrc_device_attr", "-DMLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT=1"]
    without = ["-DHAVE_DECL_MLX5DV_REG_DMABUF_MR=0", "-DHAVE_DECL_MLX5DV_GET_DATA_DIRECT_SYSFS_PATH=0"]
    includes = [f"-I{plugin / 'include'}", f"-I{folder}", f"-I{sdk.INCLUDE}"]
    return [*compiler(), "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", *renamed, *without, *includes]


Built = tuple[str, str]
"""The program that drives the plugin, and the plugin."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Linked with nothing left out."""
    folder = tmp_path_factory.mktemp("nccl")
    command, library = compiling(folder), sdk.library()
    sources = sorted((Path(os.environ["MRCLAB_NCCL_PLUGIN"]) / "src").glob("*.c"))
    plugin, program = folder / "libnccl-net-mrc.so", folder / "nccl"
    link = ["-shared", "-fPIC", "-Wl,--no-undefined", f"-L{library}", "-lnv_mrc", "-lmlx5", "-lpthread"]
    subprocess.run([*command, "-o", str(plugin), *map(str, sources), *link], check=True)
    source = str(Path(__file__).with_name("nccl.c"))
    link = [f"-L{library}", "-Wl,--no-as-needed", "-lmrc", "-ldl"]
    subprocess.run([*command, "-o", str(program), source, *link], check=True)
    return str(program), str(plugin)


def words(
    built: Built, rank: int | str, folder: Path | str, device: str, messages: int, parts: int = 8, death: str = "-"
) -> list[str]:
    program, plugin = built
    return [program, str(rank), str(folder), plugin, f"mrc_{device}", str(messages), str(parts), death]


SPLIT = {"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_IB_SPLIT_DATA_ON_QPS": "1"}
INLINE = {"NCCL_IB_USE_INLINE": "1"}  # the plugin asks for the bytes of one receive, and posts those of a group


@pytest.mark.parametrize(
    ("parts", "settings"), [(8, {}), (8, SPLIT), (8, {"NCCL_IB_QPS_PER_CONNECTION": "3"}), (1, {**INLINE, **SPLIT})]
)
def test_each_byte_of_messages_of_all_sizes_is_right(built: Built, tmp_path: Path, parts: int, settings: Any) -> None:
    more = {**os.environ, **sdk.environment(sdk.library()), "NCCL_SOCKET_IFNAME": "lo", **settings}
    with rig() as made:
        made.lose_every = 500
        processes = [
            subprocess.Popen(
                words(built, rank, tmp_path, name, 60, parts),
                env=more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            for rank, name in enumerate(made.names)
        ]  # fmt: skip
        try:
            logs = [process.communicate(timeout=240)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
    assert [process.returncode for process in processes] == [0, 0], logs
    assert ["60 messages, every byte right\nclosed" in log for log in logs] == [True, True], logs
    assert made.lost > 1


def run(built: Built, scenario: str, messages: int, folder: Path, *more: str) -> None:
    """A run with the plugin on h0 and h7 that meets faults and is true. On real links the two are named, and so reach
    each other by TCP before they begin."""
    program = shlex.join([*words(built, "{rank}", "{folder}", "{host}", messages), "h0", "h7"])
    options = ["--short", "--plain", "--ranks", "h0,h7", "--runs", str(folder), *more, "--program", program]
    done = ran([sys.executable, "-m", "cli", "run", scenario, *options], 590)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert f"received {messages} messages, every byte right" in done.stdout
    assert f"sent {messages} messages, every byte right" in done.stdout


@pytest.mark.parametrize(("scenario", "messages"), [("link-flap", 450), ("switch-reboot", 600)])
def test_faults_change_no_byte(
    built: Built, scenario: str, messages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**SPLIT, "NCCL_SOCKET_IFNAME": "lo"}.items():
        monkeypatch.setenv(name, value)
    run(built, scenario, messages, tmp_path, "--world", "simulated")


@pytest.mark.root
def test_flapping_links_change_no_byte_on_real_ones(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if state.read_record(state.ROOT) is not None:
        pytest.skip("a lab is running on this machine")
    for name, value in {**SPLIT, "NCCL_SOCKET_IFNAME": "to-"}.items():
        monkeypatch.setenv(name, value)
    run(built, "link-flap", 450, tmp_path)


@pytest.mark.parametrize(
    ("death", "settings", "ends"),
    [
        ("1:20", {}, "nothing moves: error 7"),  # no NIC tells a receiver that its peer is dead
        ("0:20", {}, "nothing moves: error 7"),  # by default MRC retries without end
        ("0:20", {"retry_exponential": 1}, "status=IBV_WC_RETRY_EXC_ERR(12)"),
    ],
)
def test_a_rank_whose_peer_is_killed_can_leave(
    built: Built, death: str, settings: Any, ends: str, tmp_path: Path
) -> None:
    """And its NIC, and the dead one's, serve the next pair."""
    given = {**sdk.environment(sdk.library()), "NCCL_SOCKET_IFNAME": "lo", "NCCL_MRC_TIMEOUT": "17"}
    environment = ["env", *(f"{name}={value}" for name, value in given.items())]
    directory = RunDirectory.create(tmp_path, "nccl", 1)
    choice = replace(transport("mrc"), settings=settings)
    victim, statuses = int(death[0]), []
    with closing(SimulatedWorld(load_plan("tiny"), choice, 1, directory, lambda text: None)) as made:
        for number, dies in enumerate((death, "-")):
            made.wait_until(made.now_ns() + SECOND)
            (folder := tmp_path / str(number)).mkdir()
            commands = [words(built, rank, folder, f"h{rank}", 30, 8, dies) for rank in range(2)]
            processes = [
                made.spawn(f"h{rank}", [*environment, *command], f"h{rank}-{number}")
                for rank, command in enumerate(commands)
            ]
            made.wait_until(made.now_ns() + 700 * SECOND)
            statuses.append([process.poll() for process in processes])
    said = (directory.path / "logs" / f"h{1 - victim}-0.log").read_text()
    assert statuses == [[4, -9] if victim else [-9, 4], [0, 0]], said
    assert ends in said
    assert said.endswith("closed\n")

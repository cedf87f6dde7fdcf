"""The MRC plugin of NCCL (`MRCLAB_NCCL_PLUGIN=DIR`): each symbol that it links is there, and it finds the NICs.

It is loaded as NCCL loads it. The plugin would move host memory without any GPU; no test drives that yet.
"""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from running import sdk
from switch.native.build import compiler
from tests.libmrc.compiled import REQUIREMENTS

MLX5 = Path("/usr/include/infiniband/mlx5dv.h")
pytestmark = [
    *REQUIREMENTS,
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


def words_for(folder: Path) -> list[str]:
    (folder / "nccl.h").write_text(NCCL_H)
    plugin = Path(os.environ["MRCLAB_NCCL_PLUGIN"])
    # The vendor's header names a structure otherwise than OCP's, and offers more of mlx5 than Debian's.
    renamed = ["-Dmrc_attr=mrc_device_attr", "-DMLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT=1"]
    without = ["-DHAVE_DECL_MLX5DV_REG_DMABUF_MR=0", "-DHAVE_DECL_MLX5DV_GET_DATA_DIRECT_SYSFS_PATH=0"]
    includes = [f"-I{plugin / 'include'}", f"-I{folder}", f"-I{sdk.INCLUDE}"]
    return [*compiler(), "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", *renamed, *without, *includes]


def test_the_plugin_links_with_nothing_left_out_and_finds_the_nics(tmp_path: Path) -> None:
    words, library = words_for(tmp_path), sdk.library()
    sources = sorted((Path(os.environ["MRCLAB_NCCL_PLUGIN"]) / "src").glob("*.c"))
    made, program = tmp_path / "libnccl-net-mrc.so", tmp_path / "discover"
    link = ["-shared", "-fPIC", "-Wl,--no-undefined", f"-L{library}", "-lnv_mrc", "-lmlx5", "-lpthread"]
    subprocess.run([*words, "-o", str(made), *map(str, sources), *link], check=True)
    source = Path(__file__).with_name("discover.c")
    subprocess.run([*words, "-o", str(program), str(source), "-ldl"], check=True)
    with rig() as nics:
        environment = {**os.environ, **sdk.environment(library)}
        done = subprocess.run([str(program), str(made)], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.split()) == sorted(f"mrc_{name}" for name in nics.names)

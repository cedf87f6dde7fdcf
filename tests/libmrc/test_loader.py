"""Programs that load libibverbs at run time, as NCCL does, and those that ask for a connection manager."""

import os
import subprocess
import sys

import pytest

from benchmarks.rig.uverbs_rig import rig
from running import sdk
from switch.native.build import compiler
from tests.libmrc.requirements import PERFTEST, REQUIREMENTS

pytestmark = REQUIREMENTS

LOADS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
find = ctypes.CDLL(None).dlvsym
find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
found = find(library._handle, b"ibv_get_device_list", b"IBVERBS_1.1")
count = ctypes.c_int()
ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(found)(ctypes.addressof(count))
print(count.value)
"""


def environment() -> dict[str, str]:
    return {**os.environ, **sdk.environment(sdk.library())}


@pytest.mark.parametrize("name", ["libibverbs.so.1", "libibverbs.so", "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"])
def test_a_libibverbs_that_is_loaded_later_has_the_labs_devices(name: str) -> None:
    with rig() as made:
        words = [sys.executable, "-P", "-c", LOADS, name]
        done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False, timeout=60)
        assert len(made.names) == 2
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_other_libraries_are_found_where_their_loader_looks(tmp_path) -> None:
    """By the RUNPATH of the library that calls dlopen, which is none of libmrc's."""
    (tmp_path / "inner").mkdir()
    sources = {
        "inner/inner.c": "int answer(void) { return 42; }",
        "outer.c": '#include <dlfcn.h>\nvoid *load(void) { return dlopen("libinner.so", RTLD_NOW); }',
        "main.c": "void *load(void);\nint main(void) { return !load(); }",
    }
    for path, text in sources.items():
        (tmp_path / path).write_text(text)
    cc = [*compiler(), "-fPIC"]
    inner, outer, main = tmp_path / "inner" / "libinner.so", tmp_path / "libouter.so", tmp_path / "main"
    subprocess.run([*cc, "-shared", "-o", inner, tmp_path / "inner" / "inner.c"], check=True)
    rpath = "-Wl,--enable-new-dtags,-rpath,$ORIGIN/inner"
    subprocess.run([*cc, "-shared", "-o", outer, tmp_path / "outer.c", rpath], check=True)
    subprocess.run(
        [*cc, "-o", main, tmp_path / "main.c", f"-L{tmp_path}", "-louter", f"-Wl,-rpath,{tmp_path}"], check=True
    )
    assert subprocess.run([main], env=environment(), check=False).returncode == 0


@PERFTEST
def test_a_connection_manager_is_refused_with_the_reason() -> None:
    with rig() as made:
        words = ["ib_write_bw", "-R", "-d", f"mrc_{made.names[0]}", "127.0.0.1"]
        done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "the lab's NICs have no connection manager; exchange addresses by TCP" in done.stderr

"""The library beside Debian's libibverbs: the same public symbols, versions, texts and numbers.

A symbol that was missing would be found in the real library, which would then get a context that it did not make.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from running import sdk
from switch.native.build import compiler
from tests.libmrc.compiled import PERFTEST, REQUIREMENTS

pytestmark = REQUIREMENTS
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "verbs.md"


def real() -> str:
    words = [*compiler(), "-print-file-name=libibverbs.so"]
    found = Path(subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip())
    if not found.exists():
        pytest.skip("no libibverbs.so: apt-get install libibverbs-dev")
    return str(found.resolve())


def symbols(library: str) -> set[str]:
    """With their default versions."""
    done = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


def listed(answer: str = "") -> list[str]:
    """The symbols of the page's table, or those with that answer."""
    rows = PAGE.read_text().split("| symbols | here |\n")[1].splitlines()
    return [name for row in rows if answer in row for name in re.findall(r"`(\w+)`", row)]


def test_every_public_symbol_of_libibverbs_is_exported_under_its_version() -> None:
    theirs = {name for name in symbols(real()) if "@@IBVERBS_1." in name}
    assert len(theirs) > 60
    assert sorted(theirs - symbols(str(sdk.library() / sdk.LIBRARY))) == []
    assert sorted(listed()) == sorted(name.split("@")[0] for name in theirs)


COMPARE = """
import ctypes, errno, sys
ours, real = (ctypes.CDLL(path, use_errno=True) for path in sys.argv[1:3])
for name in sys.argv[3:]:
    ctypes.set_errno(0)
    assert errno.EOPNOTSUPP in (getattr(ours, name)(*[None] * 8), ctypes.get_errno()), name
texts = {"ibv_wc_status_str": 30, "ibv_node_type_str": 12, "ibv_port_state_str": 12, "ibv_event_type_str": 30}
for name, most in texts.items():
    for library in (ours, real):
        getattr(library, name).restype = ctypes.c_char_p
    for number in range(-1, most):
        assert getattr(ours, name)(number) == getattr(real, name)(number), (name, number)
for name in ("ibv_rate_to_mult", "ibv_rate_to_mbps", "mult_to_ibv_rate", "mbps_to_ibv_rate"):
    known = [real.ibv_rate_to_mult(rate) for rate in range(30)] + [real.ibv_rate_to_mbps(rate) for rate in range(30)]
    for number in {*range(60), *known} - {-1}:
        assert getattr(ours, name)(number) == getattr(real, name)(number), (name, number)
for folder, name in (b"/proc/sys/kernel", b"ostype"), (b"/proc/sys/kernel", b"nothing"), (b"/sys", b""):
    for size in (1, 3, 64):
        found = [ctypes.create_string_buffer(b"x" * 64, 65) for _ in "12"]
        lengths = [one.ibv_read_sysfs_file(folder, name, text, size) for one, text in zip((ours, real), found)]
        assert lengths[0] == lengths[1] and found[0].raw == found[1].raw, (folder, name, size)
"""


def test_texts_and_rates_are_those_of_libibverbs_and_refusals_have_their_errno() -> None:
    libraries = [str(sdk.library() / sdk.LIBRARY), real()]
    words = [sys.executable, "-P", "-c", COMPARE, *libraries, *(refused := listed("EOPNOTSUPP"))]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(refused) > 20


@pytest.mark.skipif(shutil.which("ibv_devinfo") is None, reason="no ibv_devinfo: apt-get install ibverbs-utils")
def test_devinfo_tells_all() -> None:
    with rig() as made:
        environment = {**os.environ, **sdk.environment(sdk.library())}
        words = ["ibv_devinfo", "-v", "-d", f"mrc_{made.names[0]}"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "RoCE v2" in done.stdout


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

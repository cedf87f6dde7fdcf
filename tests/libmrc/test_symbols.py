"""The library beside Debian's libibverbs: the same public symbols, versions, texts and numbers.

A symbol that was missing would be found in the real library, which would then get a context that it did not make.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.rig.uverbs_rig import rig
from running import sdk
from switch.native.build import compiler
from tests.libmrc.requirements import REQUIREMENTS

pytestmark = REQUIREMENTS


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


def test_every_public_symbol_of_libibverbs_is_exported_under_its_version() -> None:
    theirs = {name for name in symbols(real()) if "@@IBVERBS_1." in name}
    assert len(theirs) > 60
    assert sorted(theirs - symbols(str(sdk.library() / sdk.LIBRARY))) == []


COMPARE = """
import ctypes, sys
ours, real = (ctypes.CDLL(path) for path in sys.argv[1:])
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


def test_texts_and_rates_are_those_of_libibverbs() -> None:
    words = [sys.executable, "-P", "-c", COMPARE, str(sdk.library() / sdk.LIBRARY), real()]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("ibv_devinfo") is None, reason="no ibv_devinfo: apt-get install ibverbs-utils")
def test_devinfo_tells_all() -> None:
    with rig() as made:
        environment = {**os.environ, **sdk.environment(sdk.library())}
        words = ["ibv_devinfo", "-v", "-d", f"mrc_{made.names[0]}"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "RoCE v2" in done.stdout

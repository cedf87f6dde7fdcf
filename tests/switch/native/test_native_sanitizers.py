"""The tests of the native engine again, with the C code built with AddressSanitizer and UndefinedBehaviorSanitizer.

They give random, changed and truncated frames to every program, in memory and over real interfaces. A finding ends the
process with a report.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from switch.native.build import compiler

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TESTS = (
    "test_native_differential.py",
    "test_native_engine.py",
    "test_native_expressions.py",
    "test_native_fabric.py",
    "test_native_limits.py",
    "test_native_dataplane.py",
)


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    named = "libclang_rt.asan.so" if "clang" in compiler()[0] else "libasan.so"
    library = subprocess.check_output([*compiler(), f"-print-file-name={named}"], text=True).strip()
    if not Path(library).is_file():
        pytest.skip(f"the C compiler has no {named}")
    return {
        **os.environ,
        "MRCLAB_NATIVE_SANITIZE": "1",
        "LD_PRELOAD": library,
        # Python itself leaves memory behind at exit.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def run(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Half a minute; emulated processors took more than five."""
    return subprocess.run(
        [sys.executable, *words], env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800
    )


def test_the_sanitizers_find_nothing(environment: dict[str, str]) -> None:
    files = [str(HERE / name) for name in TESTS]
    done = run(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "runtime error" not in done.stderr
    assert "AddressSanitizer" not in done.stderr


def test_the_sanitizers_would_find_something(environment: dict[str, str]) -> None:
    """A read behind the end of a buffer, through the same loading: the test above can fail."""
    code = (
        "from switch.native import binding\n"
        "c = binding.runtime()\n"
        "device = c.device_create(0, c.pool_create())\n"
        "c.device_destroy(device); c.device_next_event_ns(device)\n"
    )
    done = run(environment, "-c", code)
    assert done.returncode != 0
    assert "heap-use-after-free" in done.stderr

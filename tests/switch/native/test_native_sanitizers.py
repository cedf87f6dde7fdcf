"""The tests of the native engine again, with the C code built with AddressSanitizer and UndefinedBehaviorSanitizer.

They give random, changed and truncated frames to every program, in memory and over real interfaces. A finding ends the
process with a report.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from switch.native.build import compiler
from tests.helpers.waiting import ran

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
HOSTILE = HERE / "test_native_hostile_programs.py"
TESTS = sorted(path for path in HERE.glob("test_*.py") if path != Path(__file__))


def preloaded(short: str) -> str:
    """The library of a sanitizer, which must be there before Python is; skips where the compiler has none."""
    named = f"libclang_rt.{short}.so" if "clang" in compiler()[0] else f"lib{short}.so"
    library = subprocess.check_output([*compiler(), f"-print-file-name={named}"], text=True).strip()
    if not Path(library).is_file():
        pytest.skip(f"the C compiler has no {named}")
    return library


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {
        **os.environ,
        "MRCLAB_NATIVE_SANITIZE": "address",
        "LD_PRELOAD": preloaded("asan"),
        # Python itself leaves memory behind at exit.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def run(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Half a minute; emulated processors took more than five."""
    return ran([sys.executable, *words], 1800, env=environment, cwd=ROOT)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [map(str, TESTS), ("-m", "slow", str(HOSTILE))], ids=["the tests", "hundreds of damaged programs"]
)
def test_the_sanitizers_find_nothing(words, environment: dict[str, str]) -> None:
    done = run(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert " passed" in done.stdout
    assert "runtime error" not in done.stderr
    assert "AddressSanitizer" not in done.stderr


@pytest.mark.slow
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


@pytest.fixture(scope="module")
def threads() -> dict[str, str]:
    return {
        **os.environ,
        "MRCLAB_NATIVE_SANITIZE": "thread",
        "LD_PRELOAD": preloaded("tsan"),
        "TSAN_OPTIONS": "exitcode=66:halt_on_error=0",
    }


def with_threads(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """ThreadSanitizer of older compilers cannot start where the kernel spreads addresses widely: they are fixed."""
    command = ["setarch", "--addr-no-randomize", sys.executable, *words]
    return ran(command, 1800, env=environment, cwd=ROOT)


@pytest.mark.slow
@pytest.mark.root
def test_the_drivers_threads_do_not_race(threads: dict[str, str]) -> None:
    tests = str(HERE / "test_native_dataplane.py")
    done = with_threads(threads, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests)
    told = done.stdout + done.stderr
    assert "WARNING: ThreadSanitizer" not in told, told[-6000:]
    assert done.returncode == 0, told[-6000:]
    assert " passed" in done.stdout


@pytest.mark.slow
def test_a_race_of_threads_would_be_found(threads: dict[str, str]) -> None:
    """Two threads advance one device, which is for one thread: the test above can fail."""
    code = (
        "import threading\n"
        "from switch.native import binding\n"
        "c = binding.runtime()\n"
        "device = c.device_create(0, c.pool_create())\n"
        "def advance():\n"
        "    for now_ns in range(100_000): c.device_advance(device, now_ns)\n"
        "both = [threading.Thread(target=advance) for _ in range(2)]\n"
        "for each in both: each.start()\n"
        "for each in both: each.join()\n"
    )
    done = with_threads(threads, "-c", code)
    assert "WARNING: ThreadSanitizer: data race" in done.stderr
    assert done.returncode == 66

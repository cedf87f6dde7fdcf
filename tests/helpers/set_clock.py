"""A wall clock that a test may set for the processes that it starts, and no other clock.

A small library is loaded before libc. libfaketime does not do: its `clock_nanosleep` fails at random (EINVAL) for waits
until a time of the monotonic clock, which is how Python sleeps.
"""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

needs_a_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc: builds a clock that can be set")

LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long long *ahead_s;
static int (*of_libc)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("MRCLAB_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *ahead_s, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        ahead_s = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!of_libc)
        of_libc = dlsym(RTLD_NEXT, "clock_gettime");
    int result = of_libc(clock, now);
    if (result == 0 && ahead_s && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *ahead_s;
    return result;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now)
        *now = exact.tv_sec;
    return exact.tv_sec;
}
"""


class SetClock:
    """The clock of all processes that have `environment`."""

    def __init__(self, folder: Path) -> None:
        self._file, self._library = folder / "clock", folder / "clock.so"
        self._file.write_bytes(struct.pack("q", 0))
        words = [
            "cc", "-shared", "-fPIC", "-O2", "-Wno-nonnull-compare", "-x", "c", "-", "-o", str(self._library),
            "-ldl",
        ]  # fmt: skip
        subprocess.run(words, input=LIBRARY, text=True, check=True)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "MRCLAB_TEST_CLOCK": str(self._file)}

    def step(self, seconds: int) -> None:
        """From now on the clock is so far ahead of the true time; below zero, behind it."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", seconds))

"""A disk of Debian's packages with the lab in it, booted without Vagrant. Minutes for each release."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vm import debian
from tests.vm.accelerator import accelerator
from tests.vm.machine import SLOWER

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.root, pytest.mark.by_hand(debian.BY_HAND)]


@pytest.fixture(scope="module", params=list(debian.KERNELS))
def release(request: pytest.FixtureRequest) -> str:
    reason = debian.why_not(debian.DISKS)
    if reason:
        pytest.skip(reason)
    return str(request.param)


@pytest.fixture(scope="module")
def disk(release: str) -> Iterator[Path]:
    folder = debian.CACHE / f"disk-{release}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        made = folder / "mrclab.qcow2"
        debian.made("disk.sh", release, made, lab=True)
        yield made
    finally:
        shutil.rmtree(folder)


def booted(disk: Path, *words: str, limit_s: float) -> tuple[int, str]:
    """The status of boot.sh and all that the machine's console showed."""
    chosen = accelerator(disk)
    done = subprocess.run(
        [str(debian.ROOT / "vagrant" / "boot.sh"), str(disk), *words],
        env={**os.environ, "MRCLAB_ACCEL": {"kvm": "kvm", "qemu": "tcg"}[chosen], "MRCLAB_CPUS": "2"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        check=False, timeout=limit_s * SLOWER[chosen],
    )  # fmt: skip
    return done.returncode, done.stdout


def test_a_disk_runs_smoke_and_forgets_it(disk: Path, release: str) -> None:
    before = disk.stat().st_mtime_ns
    status, console = booted(disk, "run", "smoke", "--plain", limit_s=300)
    assert f"Linux version {debian.KERNELS[release]}" in console
    # Emulated processors may leave too little time for a verdict; never for a wrong one.
    verdicts = {0: "true", 3: "unknown"} if accelerator(disk) == "qemu" else {0: "true"}
    assert status in verdicts, console[-4000:]
    assert f"Everything works once: {verdicts[status]}" in console
    assert disk.stat().st_mtime_ns == before


def test_boot_exits_as_the_command_in_the_machine_did(disk: Path) -> None:
    status, console = booted(disk, "run", "no-such-scenario", limit_s=60)
    assert status == 2, console[-4000:]
    assert "no-such-scenario" in console
    assert "mrclab: exit status 2" in console

"""What the machine's scripts and its Vagrantfile refuse, and how they say it: before anything is made."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.vm.debian import DISKS, ROOT, why_not


def refused(*words: str, **settings: str) -> str:
    done = subprocess.run(
        [str(ROOT / "vagrant" / words[0]), *words[1:]], env={**os.environ, **settings},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("--relase", "trixie", "x.qcow2"),
            "unknown option --relase: valid are --release, --user, --key, --size, --lab",
        ),
        (("--release", "sid", "x.qcow2"), "release sid is not known: bookworm (Debian 12) or trixie (Debian 13)"),
        (("--key", "/nowhere", "x.qcow2"), "--key /nowhere cannot be read"),
        ((), "one file to write is needed"),
    ],
)
def test_disk_names_what_is_wrong_and_what_is_valid(words: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    assert complaint in refused("disk.sh", *words)


def test_disk_help_names_every_option() -> None:
    done = subprocess.run([str(ROOT / "vagrant/disk.sh"), "--help"], capture_output=True, text=True, check=True)
    for option in ("--release", "--user", "--key", "--size", "--lab"):
        assert option in done.stdout


def test_boot_says_how_a_disk_is_made() -> None:
    assert "/nowhere.qcow2 cannot be read: disk.sh --lab makes one" in refused("boot.sh", "/nowhere.qcow2")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: disk.sh and the tests of disks refuse others first")
def test_tests_of_disks_are_skipped_for_all_that_disk_misses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("dirname", "cat", "id", "sed", "realpath"):
        (tmp_path / program).symlink_to(shutil.which(program) or program)
    monkeypatch.setenv("PATH", str(tmp_path))
    _, _, packages = refused("disk.sh", str(tmp_path / "disk.qcow2")).partition("missing: apt-get install")
    assert {"debootstrap", "e2fsprogs", "extlinux", "fdisk", "mount", "qemu-utils"} <= set(packages.split())
    assert set((why_not(DISKS) or "").split()) >= set(packages.split())


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="needs qemu-system-x86")
def test_boot_names_its_accelerators(tmp_path: Path) -> None:
    disk = tmp_path / "disk.qcow2"
    disk.touch()
    assert "MRCLAB_ACCEL=hvf is not known: kvm or tcg" in refused("boot.sh", str(disk), MRCLAB_ACCEL="hvf")


@pytest.mark.skipif(shutil.which("vagrant") is None, reason="needs vagrant")
@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("MRCLAB_CPUS", "many", "MRCLAB_CPUS: 'many' is no number of at least 1"),
        ("MRCLAB_MEMORY", "512", "MRCLAB_MEMORY: '512' is no number of at least 1024"),
        ("MRCLAB_SYNC", "nfs", "MRCLAB_SYNC: 'nfs' is not known: valid are shared, rsync"),
        ("MRCLAB_CA", "/nowhere", "MRCLAB_CA: there is no file /nowhere"),
    ],
)
def test_the_vagrantfile_names_a_setting_that_cannot_be(name: str, value: str, complaint: str, tmp_path: Path) -> None:
    environment = {**os.environ, "VAGRANT_HOME": str(tmp_path), name: value}
    done = subprocess.run(
        ["vagrant", "validate"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode != 0
    assert complaint in done.stderr

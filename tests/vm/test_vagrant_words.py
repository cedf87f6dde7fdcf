"""What the machine's scripts and its Vagrantfile refuse, and how they say it: before anything is made."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.waiting import ran
from tests.vm.debian import DISKS, ROOT, why_not


def refused(*words: str, **settings: str) -> str:
    done = ran([str(ROOT / "vagrant" / words[0]), *words[1:]], env={**os.environ, **settings})
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("disk.sh", "--relase", "trixie", "x.qcow2"),
            "unknown option --relase: valid are --release, --user, --key, --size, --lab",
        ),
        (
            ("disk.sh", "--release", "sid", "x.qcow2"),
            "release sid is not known: bookworm (Debian 12) or trixie (Debian 13)",
        ),
        (("disk.sh", "--key", "/nowhere", "x.qcow2"), "--key /nowhere cannot be read"),
        (("disk.sh",), "one file to write is needed"),
        (("boot.sh", "/nowhere.qcow2"), "/nowhere.qcow2 cannot be read: disk.sh --lab makes one"),
    ],
)
def test_a_script_names_what_is_wrong_and_what_is_valid(words: tuple[str, ...], complaint: str) -> None:
    assert complaint in refused(*words)


def test_disk_help_names_every_option() -> None:
    done = subprocess.run([str(ROOT / "vagrant/disk.sh"), "--help"], capture_output=True, text=True, check=True)
    for option in ("--release", "--user", "--key", "--size", "--lab"):
        assert option in done.stdout


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
    done = ran(["vagrant", "validate"], timeout=120, cwd=ROOT, env=environment)
    assert done.returncode != 0
    assert complaint in done.stderr


QEMU = """#!/bin/sh
printf '%s\\n' "$@" >arguments
for word in "$@"; do case $word in name=opt/mrclab/run,file=*) cp "${word#*,file=}" handed-over ;; esac; done
"""
RUNUSER = '#!/bin/sh\nshift 2\nexec bash "$@"\n'  # runuser -l USER -c LINE
LAB = "#!/bin/sh\nprintf '%s\\n' \"$@\" >../words\n"


@pytest.fixture
def booting(tmp_path: Path) -> dict[str, str]:
    """A machine whose QEMU notes its options and what it is handed, and the inner machine's checkout and `runuser`."""
    for name, text in (("qemu-system-x86_64", QEMU), ("runuser", RUNUSER), ("systemctl", "#!/bin/sh\n")):
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    (tmp_path / "mrclab").mkdir()
    (tmp_path / "mrclab" / "lab").write_text(LAB)
    (tmp_path / "mrclab" / "lab").chmod(0o755)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    return {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(temporary)}


def called(words: list[str], folder: Path, environment: dict[str, str]) -> int:
    return ran(words, cwd=folder, env=environment).returncode


def in_the_machine(handed: Path) -> str:
    """The program of `disk.sh` that runs what QEMU handed over, with that file."""
    found = re.search(r"<<RUN\n(.*?)\nRUN\n", (ROOT / "vagrant/disk.sh").read_text(), re.DOTALL)
    assert found is not None
    text = found[1]
    place = "/sys/firmware/qemu_fw_cfg/by_name/opt/mrclab/run/raw"
    assert place in text
    return text.replace("\\$", "$").replace("$user", "lab").replace(place, str(handed))


def test_words_reach_the_lab_in_the_machine_as_they_were_given(booting: dict[str, str], tmp_path: Path) -> None:
    words = ["run", "smoke", "--fault", "loss p0l1-p0s1 20 @1 for 2", "h0,h2", "", "it's $HOME; *", 'a "b" \\ c']
    (tmp_path / "disk.qcow2").touch()
    status = called([str(ROOT / "vagrant/boot.sh"), "disk.qcow2", *words], tmp_path, booting)
    assert status == 2  # the fake QEMU ends without a status
    program = tmp_path / "handed-over-program"
    program.write_text(in_the_machine(tmp_path / "handed-over"))
    assert called(["bash", str(program)], tmp_path, booting) == 0
    assert (tmp_path / "words").read_text().splitlines() == words
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_comma_in_the_name_of_a_disk_separates_no_options(booting: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "one,two.qcow2").touch()
    assert called([str(ROOT / "vagrant/boot.sh"), "one,two.qcow2"], tmp_path, booting) == 0
    assert "file=one,,two.qcow2,if=virtio,format=qcow2" in (tmp_path / "arguments").read_text().splitlines()


def test_what_is_made_in_a_checkout_is_copied_into_no_machine() -> None:
    """Environments hold paths of this machine. A student's folder is copied."""
    made = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()} - {"mylab", "__pycache__"}
    left_out = re.findall(r"rsync__exclude: %w\[(.*?)\]", (ROOT / "Vagrantfile").read_text(), re.DOTALL)[0].split()
    assert made - set(left_out) == set()
    assert made - set((ROOT / ".dockerignore").read_text().split()) == set()

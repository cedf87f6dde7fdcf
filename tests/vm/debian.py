"""What the tests here make of Debian's packages, and what they need for it."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = {"bookworm": "6.1.", "trixie": "6.12."}
BY_HAND = "boots virtual machines, minutes for each: ./lab test -m vm"
CACHE = Path(os.environ.get("MRCLAB_VM_CACHE", "/var/tmp/mrclab-vm"))
OWN_CERTIFICATES = Path("/usr/local/share/ca-certificates")


def packages_of_disk_script() -> dict[str, str]:
    """Programs and files that `vagrant/disk.sh` checks for, and the Debian packages that have them."""
    script = (ROOT / "vagrant" / "disk.sh").read_text()
    pairs = re.findall(r"^for pair in (.+); do$", script, re.MULTILINE)[0].split()
    boot_record, package = re.findall(r"^boot_record=(\S+)\n.*missing (\S+)\"$", script, re.MULTILINE)[0]
    return {**dict(pair.split(":") for pair in pairs), boot_record: package}


DISKS = {"qemu-system-x86_64": "qemu-system-x86", **packages_of_disk_script()}


def why_not(programs: Mapping[str, str]) -> str | None:
    """Why this machine makes no disks, or lacks one of these programs or files; None when all is there."""
    if os.geteuid() != 0:
        return "needs root: makes disks, networks and virtual machines"
    missing = sorted({package for name, package in programs.items() if not (shutil.which(name) or Path(name).exists())})
    return f"needs Debian packages: {' '.join(missing)}" if missing else None


def made(script: str, release: str, file: Path, *, lab: bool) -> None:
    """A disk or box by that script of `vagrant/`. Packages are downloaded once; minutes."""
    packages = CACHE / f"{release}-packages"
    packages.mkdir(parents=True, exist_ok=True)
    command = [str(ROOT / "vagrant" / script), "--release", release, *(["--lab"] if lab else []), str(file)]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MRCLAB_CACHE": str(packages), **certificates(Path(folder))}
        subprocess.run(command, env=environment, check=True, timeout=3600)


def built_box(release: str, *, lab: bool = False) -> Path:
    """From the cache, as long as what makes the box is the same; with `lab`, this checkout is installed in it."""
    parts = ["vagrant/disk.sh", "vagrant/box.sh", *(("vagrant/provision.sh", "lab", "pyproject.toml") if lab else ())]
    digest = hashlib.sha256(b"".join((ROOT / part).read_bytes() for part in parts)).hexdigest()[:12]
    box = CACHE / f"{release}{'-lab' if lab else ''}-{digest}.box"
    if not box.exists():
        made("box.sh", release, box, lab=lab)
    return box


def certificates(folder: Path) -> dict[str, str]:
    """Those that the machine's owner added, because a mirror or proxy of theirs signs with them."""
    own = sorted(OWN_CERTIFICATES.glob("**/*.crt"))
    if not own:
        return {}
    file = folder / "own.crt"
    file.write_text("".join(certificate.read_text() for certificate in own))
    return {"MRCLAB_CA": str(file)}

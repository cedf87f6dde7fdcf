"""`vagrant up` on boxes of Debian's own packages: a stock kernel, a lab, verdicts, and nothing left behind.

Minutes with KVM, from a bare box. Where KVM does not run Debian's kernel the machine is emulated, and its box has the
lab's packages in it already, which an emulated machine would take most of an hour to unpack.
Boxes are kept between runs in MRCLAB_VM_CACHE (/var/tmp/mrclab-vm).
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

import pytest

from tests.vm import debian, libvirt
from tests.vm.accelerator import accelerator
from tests.vm.machine import Machine

NEEDED = {
    **debian.DISKS,
    "vagrant": "vagrant", "virsh": "libvirt-clients", "libvirtd": "libvirt-daemon-system", "dnsmasq": "dnsmasq-base",
    "tinyproxy": "tinyproxy", "rsync": "rsync",
}  # fmt: skip


def why_not() -> str | None:
    reason = debian.why_not(NEEDED)
    if reason is None and not Path("/dev/kvm").exists():
        reason = "needs /dev/kvm"
    if reason:
        return reason
    plugins = subprocess.run(["vagrant", "plugin", "list"], capture_output=True, text=True, check=False).stdout
    return None if "vagrant-libvirt" in plugins else "needs Debian packages: vagrant-libvirt"


@pytest.fixture(scope="module", autouse=True)
def _able() -> None:
    reason = why_not()
    if reason:
        pytest.skip(reason)


pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.root, pytest.mark.by_hand(debian.BY_HAND)]


def disk_of(box: Path, folder: Path) -> Path:
    subprocess.run(["tar", "-xf", str(box), "-C", str(folder), "box.img"], check=True, timeout=600)
    return folder / "box.img"


@pytest.fixture(params=list(debian.KERNELS))
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def machine(release: str) -> Iterator[Machine]:
    """A Vagrant machine that is not up yet, in a libvirt that afterwards holds what it held before."""
    folder = debian.CACHE / f"{libvirt.NAME}-{release}"
    shutil.rmtree(folder, ignore_errors=True)
    with ExitStack() as undo:
        folder.mkdir(parents=True)
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        box = debian.built_box(release)
        undo.enter_context(libvirt.daemon(folder))
        libvirt.remove_leftovers()
        before = libvirt.inventory()
        chosen = accelerator(disk_of(box, folder))
        (folder / "box.img").unlink()
        if chosen == "qemu":
            box = debian.built_box(release, lab=True)
        with ExitStack() as here:
            proxy = here.enter_context(libvirt.network(folder))
            here.enter_context(libvirt.pool(folder))
            made = Machine(
                folder / f"{libvirt.NAME}-{release}", folder / "home", f"{libvirt.NAME}-{release}", chosen,
                {"MRCLAB_PROXY": proxy, **debian.certificates(folder)},
            )  # fmt: skip
            made.prepare(libvirt.NAME)
            made.vagrant("box", "add", "--name", made.box, str(box), limit_s=300)
            here.callback(made.vagrant, "destroy", "--force", limit_s=120)
            yield made
        assert libvirt.inventory() == before


class Ran(TypedDict):
    verdict: str
    failed: dict[str, str]  # findings that do not hold: their reasons
    out: str


def run(machine: Machine, words: str, limit_s: float) -> Ran:
    out = machine.ssh(f"cd mrclab && ./lab run {words} --plain", limit_s=limit_s, statuses=(0, 1, 3))
    verdict = json.loads(machine.ssh("cat mrclab/runs/latest/verdict.json"))
    failed = {f["check"]: f["reason"] for f in verdict["findings"] if f["holds"] is not True}
    return {"verdict": verdict["verdict"], "failed": failed, "out": out[-3000:]}


def test_vagrant_up_ends_in_a_lab_and_destroy_leaves_nothing(machine: Machine, release: str, capsys) -> None:
    assert "labs of this machine have embedded switches" in machine.vagrant("up", limit_s=900)
    assert machine.ssh("uname -r").startswith(debian.KERNELS[release])

    # Emulated processors may leave too little time for a verdict; never for a wrong one.
    expected = ("true", "unknown") if machine.accelerator == "qemu" else ("true",)
    smoke = run(machine, "smoke", limit_s=300)
    assert smoke["verdict"] in expected, smoke
    flap = run(machine, "link-flap --short", limit_s=300)
    assert flap["verdict"] in expected, flap

    report = machine.ssh("cat mrclab/runs/latest/report.html")
    assert report.lstrip().lower().startswith("<!doctype html>")
    assert report.rstrip().endswith("</html>")

    machine.ssh("touch /tmp/before")
    again = machine.vagrant("provision", limit_s=120)
    assert "wrote" not in again
    assert "installing" not in again
    changed = "sudo find /etc /usr /opt /home /var/lib/dpkg -newer /tmp/before -type f"
    assert machine.ssh(changed).split() == []

    machine.vagrant("halt", limit_s=120)
    machine.vagrant("destroy", "--force", limit_s=120)
    left = libvirt.inventory()
    assert not [name for name in left["domains"] if name.startswith(libvirt.NAME)]
    assert all("box_image" in volume for volume in left[f"volumes of {libvirt.NAME}"])  # the box, until it is removed
    machine.vagrant("box", "remove", "--force", machine.box, limit_s=60)
    assert machine.box not in machine.vagrant("box", "list", limit_s=60)

    with capsys.disabled():
        day = time.strftime("%Y-%m-%d")
        print(f"\n{release}, {machine.accelerator}, {day}: smoke {smoke['verdict']}, link-flap {flap['verdict']}")
        for reason in (*smoke["failed"].values(), *flap["failed"].values()):
            print(f"  {reason}")
        for name, seconds in machine.took_s.items():
            print(f"  {seconds:7.0f} s  {name}")

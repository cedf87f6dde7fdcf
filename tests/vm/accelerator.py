"""Whether KVM on this machine runs Debian's kernel, found by booting it.

`/dev/kvm` may be there and not help: some clouds' nested virtualization runs kernels that were made for it and only
emulates the others, far slower than QEMU's own emulation does.
"""

import functools
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal

Accelerator = Literal["kvm", "qemu"]  # libvirt's names for domains that use KVM, and that QEMU emulates

SETTING = "MRCLAB_VM_ACCELERATOR"
_LIMIT_S = 30
_GREETING = "Linux version"


@functools.cache
def accelerator(disk: Path) -> Accelerator:
    """KVM when the kernel of this disk begins to speak under it, else emulation; the setting spares the trial."""
    asked = os.environ.get(SETTING)
    if asked is not None:
        assert asked in ("kvm", "qemu"), f"{SETTING}={asked}: valid are kvm, qemu"
        return "kvm" if asked == "kvm" else "qemu"
    with tempfile.TemporaryDirectory() as folder:
        console = Path(folder) / "console"
        qemu = subprocess.Popen(
            [
                *("qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "1024", "-display", "none", "-snapshot"),
                *("-nic", "none", "-serial", f"file:{console}", "-drive", f"file={disk},if=virtio,format=qcow2"),
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + _LIMIT_S
            while qemu.poll() is None and time.monotonic() < deadline:
                if console.exists() and _GREETING in console.read_text(errors="replace"):
                    return "kvm"
                time.sleep(0.2)
        finally:
            qemu.kill()
            qemu.wait()
    return "qemu"

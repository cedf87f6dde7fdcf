"""A copy of this checkout in which `vagrant` is called, and what each call took."""

import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.vm.accelerator import Accelerator
from tests.vm.debian import ROOT

# Emulated processors are some ten times slower than those that emulate them.
SLOWER = {"kvm": 1, "qemu": 12}
_SETTINGS = """Vagrant.configure("2") do |config|
  config.vm.boot_timeout = {boot_timeout_s}
  config.vm.provider "libvirt" do |machine|
    machine.uri = "qemu:///system"
    machine.driver = "{accelerator}"
    machine.cpu_mode = "{cpu_mode}"
    {cpu_model}
    machine.management_network_name = "{name}"
    machine.management_network_address = "192.168.231.0/24"
    machine.management_network_mode = "none"
    machine.storage_pool_name = "{name}"
    machine.graphics_type = "none"
    machine.video_type = "none"
  end
end
"""


@dataclass
class Machine:
    folder: Path  # of the copy; its name begins that of the domain
    home: Path  # VAGRANT_HOME, with the boxes and what a user's own Vagrantfile says
    box: str
    accelerator: Accelerator
    environment: dict[str, str]
    took_s: dict[str, float] = field(default_factory=dict)

    def prepare(self, name: str) -> None:
        """The copy has what git knows, as it is in the work tree now."""
        self.home.mkdir(parents=True)
        model = (
            "" if self.accelerator == "kvm" else 'machine.cpu_model = "Nehalem"'
        )  # the least that numpy's wheels need
        mode = "host-passthrough" if self.accelerator == "kvm" else "custom"
        (self.home / "Vagrantfile").write_text(
            _SETTINGS.format(
                accelerator=self.accelerator, name=name, cpu_mode=mode, cpu_model=model,
                boot_timeout_s=300 * SLOWER[self.accelerator],
            )
        )  # fmt: skip
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for file in filter(None, listed.split("\0")):
            if (ROOT / file).is_file():
                (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, self.folder / file)

    def vagrant(self, *words: str, limit_s: float, name: str = "", statuses: tuple[int, ...] = (0,)) -> str:
        """Standard output, carriage returns left out. Fails with the end of both when the status is another."""
        began = time.monotonic()
        done = subprocess.run(
            ["vagrant", *words],
            cwd=self.folder,
            env={**os.environ, **self.environment, "VAGRANT_HOME": str(self.home), "VAGRANT_NO_COLOR": "1",
                 "VAGRANT_DEFAULT_PROVIDER": "libvirt", "MRCLAB_BOX": self.box, "MRCLAB_CPUS": "2",
                 "MRCLAB_MEMORY": "3072"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
            timeout=limit_s * SLOWER[self.accelerator],
        )  # fmt: skip
        self.took_s[name or " ".join(words)] = time.monotonic() - began
        # Progress is drawn over itself; the last state of each line is enough.
        out = "\n".join(line.rpartition("\r")[2] for line in done.stdout.replace("\r\n", "\n").split("\n"))
        assert done.returncode in statuses, (
            f"vagrant {' '.join(words)}: {done.returncode}\n{out[-4000:]}\n{done.stderr[-4000:]}"
        )
        return out

    def ssh(self, command: str, *, limit_s: float = 60, statuses: tuple[int, ...] = (0,)) -> str:
        return self.vagrant("ssh", "--no-tty", "-c", command, limit_s=limit_s, name=command, statuses=statuses)

"""`python -m switch serve` with one device, whose interfaces are in a namespace of the test's."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.helpers.p4.live import DEVICE, LiveSwitch
from tests.helpers.switch_process import serving


class Embedded(LiveSwitch):
    def _start(self, ports: Sequence[int]) -> str:
        directory = Path(self._close.enter_context(tempfile.TemporaryDirectory(prefix="embedded-")))
        netns = f"/proc/{self.namespace.holder.pid}/ns/net"
        wired = [{"port": port, "interface": f"s{port}", "netns": netns} for port in ports]
        words = self._close.enter_context(serving(directory, [{"device_id": DEVICE, "name": "device", "ports": wired}]))
        return words["grpc"]

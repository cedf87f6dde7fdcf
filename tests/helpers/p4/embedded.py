"""`python -m switch serve` with one device, whose interfaces are in a namespace of the test's."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.client import ControlClient
from tests.helpers.p4.live import DEVICE, LiveSwitch
from tests.helpers.p4.programs import ROOT

START_S = 20


class Embedded(LiveSwitch):
    def _start(self, ports: Sequence[int]) -> str:
        directory = Path(self._close.enter_context(tempfile.TemporaryDirectory(prefix="embedded-")))
        netns = f"/proc/{self.namespace.holder.pid}/ns/net"
        config = {
            "grpc": "127.0.0.1:0",
            "control": "127.0.0.1:0",
            "sample_interval_ns": 0,
            "devices": [
                {
                    "device_id": DEVICE,
                    "name": "device",
                    "ports": [{"port": port, "interface": f"s{port}", "netns": netns} for port in ports],
                }
            ],
        }
        (directory / "config.json").write_text(json.dumps(config))
        ready, log = directory / "ready.json", self._close.enter_context((directory / "log").open("w+"))
        command = [sys.executable, "-m", "switch", "serve", "--config", str(directory / "config.json")]
        command += ["--ready-file", str(ready), "--exit-with-parent"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        self._close.callback(process.wait)
        self._close.callback(process.terminate)
        until = time.monotonic() + START_S
        while not ready.exists():
            log.seek(0)
            assert process.poll() is None, log.read()
            assert time.monotonic() < until, "the switch did not become ready"
            time.sleep(0.02)
        addresses = json.loads(ready.read_text())
        self._control = self._close.enter_context(ControlClient(addresses["control"]))
        return str(addresses["grpc"])

    def control(self, op: str, **arguments: Any) -> Any:
        """One request on the control socket, for this device; its result."""
        return self._control.call(op, device=DEVICE, **arguments)

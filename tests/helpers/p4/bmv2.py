"""`simple_switch_grpc` in a namespace of its own."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.helpers.p4.live import DEVICE, LiveSwitch


class Bmv2(LiveSwitch):
    """Eight priority queues; P4Runtime on a Unix socket, since its loopback is the namespace's."""

    def _start(self, ports: Sequence[int]) -> str:
        directory = Path(self._close.enter_context(tempfile.TemporaryDirectory(prefix="bmv2-")))
        address = f"unix:{directory}/grpc"
        interfaces = [word for port in ports for word in ("-i", f"{port}@s{port}")]
        command = self.namespace.command(
            *("simple_switch_grpc", "--no-p4", "--device-id", str(DEVICE), *interfaces),
            *("--notifications-addr", f"ipc://{directory}/notifications", "--log-file", f"{directory}/log"),
            *("-L", "warn", "--thrift-port", "9090", "--", "--grpc-server-addr", address),
            *("--priority-queues", "8", "--drop-port", "511"),
        )
        log = self._close.enter_context((directory / "stdout").open("w"))
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        self._close.callback(process.wait)
        self._close.callback(process.kill)
        return address

    def cli(self, *commands: str) -> str:
        """Thrift, for what P4Runtime has no word for: queue rates and depths, registers."""
        return self.namespace.run("simple_switch_CLI", "--thrift-port", "9090", text="\n".join(commands) + "\n")

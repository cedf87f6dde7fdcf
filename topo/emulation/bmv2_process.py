"""A `simple_switch_grpc` process: its command line, the wait for both its servers, and why Thrift's may never answer.

P4Runtime's server starts first, then Thrift's, which listens before its services are there. A BMv2 may have been built
without a Thrift server: the configure of targets/simple_switch_grpc has a --with-thrift of its own, off by default.
Such a build takes --thrift-port and serves nothing there (behavioral-model #1366); newer ones print a warning.
"""

import socket
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from common import unix_socket
from common.scratch import Scratch
from topo.emulation import process
from topo.emulation.state import LabError
from topo.plan import PRIORITIES

PROGRAM = "simple_switch_grpc"
CPU_PORT = 510
START_TIMEOUT_S = 30.0
THRIFT_TIMEOUT_S = 10.0  # after P4Runtime answers; a server that exists takes milliseconds
THRIFT_REMEDY = (
    "install p4lang-bmv2 (Ubuntu, p4lang's packages), or build behavioral-model with --with-pi --with-thrift, given to"
    " targets/simple_switch_grpc's configure too"
)
NO_THRIFT = f"{PROGRAM} was built without Thrift, by which alone its queues can be set"
_WARNING = "compiled without Thrift"
_POLL_S = 0.02
SERVICE = "simple_switch"
_VERSION_1 = 0x80010000
_CALL, _REPLY = 1, 2
_STOP, _I32, _I64 = 0, 8, 10
_SEQUENCE = 1  # of every call: a connection waits for the answer to one before the next
_TIMEOUT_S = 10.0


class ThriftError(RuntimeError):
    """The other side answered with an exception, a failure, or not as Thrift."""


# P4Runtime has no verb for queues. BMv2's own command line has verbs for them, but takes a core for a second to start,
# for each switch, and needs Thrift's Python package. Encoding: strict TBinaryProtocol over an unframed socket, service
# multiplexed by name (thrift-binary-protocol.md of Apache Thrift; simple_switch.thrift of behavioral-model).
def connected(port: int) -> socket.socket:
    """A connection to a `simple_switch`'s Thrift port, used as a context. OSError when it cannot be reached."""
    return socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S)


def set_queue(connection: socket.socket, port: int, priority: int, depth_packets: int, rate_pps: int) -> None:
    """Set depth and rate of the queue of a port. ThriftError when BMv2 refuses."""
    where = (_I32, port), (_I32, priority)
    call(connection, "set_egress_priority_queue_depth", *where, (_I32, depth_packets))
    call(connection, "set_egress_priority_queue_rate", *where, (_I64, rate_pps))


def call(connection: socket.socket, method: str, *arguments: tuple[int, int]) -> None:
    """One call, with (type, value) of i32 and i64 as arguments, and its answer."""
    encoded = f"{SERVICE}:{method}".encode()
    message = struct.pack("!II", _VERSION_1 | _CALL, len(encoded)) + encoded + struct.pack("!i", _SEQUENCE)
    for number, (kind, value) in enumerate(arguments, 1):
        message += struct.pack("!bh", kind, number) + struct.pack("!i" if kind == _I32 else "!q", value)
    connection.sendall(message + bytes([_STOP]))
    with connection.makefile("rb") as answer:
        version, length = struct.unpack("!II", _read(answer, 8))
        if version & 0xFFFF0000 != _VERSION_1 or length > 1000:
            raise ThriftError(f"{method}: the answer is not Thrift's strict binary protocol")
        _read(answer, length + 4)  # its name, which says "exception" if need be, and the sequence number
        field_type = _read(answer, 1)[0]
        if version & 0xFF != _REPLY or field_type != _I32:
            raise ThriftError(f"{method}: refused with an exception")
        _, status = struct.unpack("!hi", _read(answer, 6))
        if status != 0:
            raise ThriftError(f"{method}({', '.join(str(value) for _, value in arguments)}): BMv2 answered {status}")
        _read(answer, 1)  # the end of the result


def _read(answer: BinaryIO, count: int) -> bytes:
    data = answer.read(count)
    if len(data) < count:
        raise ThriftError("BMv2 closed the connection")
    return data


def command(folder: Path, name: str, device_id: int, thrift_port: int, interfaces: Sequence[str]) -> list[str]:
    """`interfaces` are `port@interface`; P4Runtime listens at `grpc_path(folder, name)`, Thrift on every address."""
    return [
        *(PROGRAM, "--no-p4", "--device-id", str(device_id)),
        *(word for interface in interfaces for word in ("-i", interface)),
        *("--thrift-port", str(thrift_port)),
        *("--notifications-addr", f"ipc://{folder}/{name}-notifications.ipc"),
        *("--log-level", "warn", "--log-console", "--"),
        *("--grpc-server-addr", f"unix:{grpc_path(folder, name)}", "--cpu-port", str(CPU_PORT)),
        *("--priority-queues", str(PRIORITIES)),
    ]


def grpc_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.sock"


def wait_until_serving(
    popen: subprocess.Popen[bytes], what: str, grpc: Path, log: Path, use_thrift: Callable[[], None]
) -> None:
    """Returns when P4Runtime takes connections and `use_thrift` has raised neither OSError nor ThriftError.

    LabError when they never do; its message calls the process `what`, and says so when Thrift is missing.
    """

    def use_grpc() -> None:
        unix_socket.connected(grpc).close()

    for attempt, timeout_s in ((use_grpc, START_TIMEOUT_S), (use_thrift, THRIFT_TIMEOUT_S)):
        deadline = time.monotonic() + timeout_s
        while (error := _failure(attempt)) is not None:
            ended = popen.poll() is not None
            late = time.monotonic() > deadline
            refused = late and attempt is use_thrift and isinstance(error, ConnectionRefusedError)
            if refused or _WARNING in process.log_tail(log) or (ended and not _takes_thrift_port()):
                raise LabError(f"{what}: {NO_THRIFT}\n{THRIFT_REMEDY}")
            if ended or late:
                how = f"ended with status {popen.returncode}" if ended else f"does not answer ({error})"
                raise LabError(f"{what} {how}; {log} ends with:\n{process.log_tail(log)}")
            time.sleep(_POLL_S)


def trial() -> str | None:
    """Starts a switch without ports or program, without root; returns why it cannot serve a lab, None when it can.

    The switch dies with the process that tries it, however that ends.
    """
    with Scratch("mrclab-bmv2-") as folder:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        log = folder / "log"
        with log.open("wb") as output:
            popen = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command(folder, "trial", 0, port, [])],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            wait_until_serving(popen, PROGRAM, grpc_path(folder, "trial"), log, lambda: connected(port).close())
        except LabError as error:
            return str(error)
        finally:
            popen.kill()
            popen.wait()
    return None


def _failure(attempt: Callable[[], None]) -> OSError | ThriftError | None:
    try:
        attempt()
    except (OSError, ThriftError) as error:
        return error
    return None


def _takes_thrift_port() -> bool:
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=False, timeout=START_TIMEOUT_S)
    return "--thrift-port" in done.stdout + done.stderr

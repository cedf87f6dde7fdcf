"""A `python -m switch serve` that a test has started, and a `simple_switch_grpc` in its place."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

WAIT_S = 20


@contextmanager
def serving(
    directory: Path, devices: Sequence[Mapping[str, Any]], address: str = "127.0.0.1:0"
) -> Iterator[dict[str, str]]:
    """The words of the ready line of one with these devices, on ports that the system chose if none is given."""
    config = directory / "config.json"
    config.write_text(json.dumps({"grpc": address, "control": "127.0.0.1:0", "devices": devices}))
    command = [sys.executable, "-m", "switch", "serve", "--config", str(config), "--exit-with-parent"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield ready_words(process)
    finally:
        stop(process)


@contextmanager
def simple_switch(directory: Path, device_id: int = 1) -> Iterator[str]:
    """The address of a BMv2 with P4Runtime and no ports."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        address, thrift_port = f"127.0.0.1:{one.getsockname()[1]}", two.getsockname()[1]
    command = ["simple_switch_grpc", "--no-p4", "--device-id", str(device_id), "--thrift-port", str(thrift_port)]
    command += ["--notifications-addr", f"ipc://{directory}/notifications-{device_id}.ipc", "--log-level", "off"]
    command += ["--", "--grpc-server-addr", address, "--cpu-port", "510", "--priority-queues", "8"]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            with grpc.insecure_channel(address) as channel:
                grpc.channel_ready_future(channel).result(WAIT_S)
            yield address
        finally:
            process.kill()


def ready_words(process: subprocess.Popen[str]) -> dict[str, str]:
    """The words of its ready line, such as `grpc` and `control`; a process that ends without one fails the test."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("ready "), process.stderr.read() if process.stderr else line
    pairs = (word.partition("=") for word in line.split()[1:])
    return {name: value for name, _, value in pairs}


def stop(process: subprocess.Popen[str]) -> None:
    """End it by SIGTERM; the test fails when it does not end well, and nothing is left then either."""
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(WAIT_S) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

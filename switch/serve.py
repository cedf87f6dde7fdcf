"""`python -m switch serve`: devices, P4Runtime and the control socket in one process.

Clean shutdown on signals, on the control socket's `shutdown`, and with `--exit-with-parent` when the parent process
ends however it ends (a pidfd, so a kill -9 counts and a parent's finished thread does not). When everything
listens, one line `ready grpc=ADDRESS control=ADDRESS pid=N` goes to standard output, and with `--ready-file` the
same as JSON to a file that appears whole: starters wait for either.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import plain_file, unix_socket
from common.files import write_json
from common.interrupts import ending
from common.journal import Journal
from common.terminal.standard_streams import write_error
from switch.config import ServeConfig, SwitchConfigError, load_config
from switch.device import DataPlane, Device, DeviceEvent, Devices

EXAMPLES = """\
examples:
  python -m switch serve --config lab.json
  python -m switch serve --config lab.json --ready-file ready.json --exit-with-parent
  python -m switch serve --config lab.json --grpc 127.0.0.1:0 --control 127.0.0.1:0

The configuration file is described in docs/contracts.md, "Switch configuration and control".
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "serve",
        help="run switches with P4Runtime and a control socket",
        description="Run the switches of a configuration file in this process.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="JSON configuration")
    parser.add_argument("--grpc", metavar="ADDRESS", help="override the configuration's P4Runtime address")
    parser.add_argument("--control", metavar="ADDRESS", help="override the configuration's control address")
    parser.add_argument("--ready-file", type=Path, metavar="FILE", help="write {pid, grpc, control} here when ready")
    parser.add_argument(
        "--allow-admin",
        action="store_true",
        help="let clients of the control socket add and remove devices and shut down (on TCP that is every local user)",
    )
    parser.add_argument("--exit-with-parent", action="store_true", help="shut down when the parent process ends")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # gRPC's fork handlers would stop the world around every compiler run; the compiler is spawned, not forked.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        config = load_config(options.config)
        if options.grpc:
            config = replace(config, grpc=options.grpc)
        if options.control:
            config = replace(config, control=options.control)
        asyncio.run(serve(config, options.ready_file, options.exit_with_parent, options.allow_admin))
    except (SwitchConfigError, OSError) as error:
        write_error(f"switch serve: {plain_file.text_fault(error)}")
        return 1
    return 0


async def serve(
    config: ServeConfig, ready_file: Path | None = None, exit_with_parent: bool = False, admin: bool = False
) -> None:
    """Run until a signal, a `shutdown` or the parent's end. Raises ConfigError, OSError when it cannot start."""
    # Late, so that `--help` and configuration errors do not wait for gRPC and the native engine.
    from p4c.model import load_program
    from switch.control import SwitchControl
    from switch.p4rt.server import P4RuntimeServer

    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def shut_down() -> None:
        """From any thread."""
        loop.call_soon_threadsafe(stopping.set)

    for number in (signal.SIGINT, *ending()):
        loop.add_signal_handler(number, stopping.set)
    if exit_with_parent:
        _watch_parent(loop, stopping)

    async with contextlib.AsyncExitStack() as stack:
        journal = Journal(config.journal, "switches")
        stack.callback(journal.close)
        journal.write_process("switch")
        data_plane = _data_plane(config.turn_ns)
        devices = Devices(data_plane)
        stack.callback(devices.close)
        devices.observe(lambda device, event: _journal_state(journal, device, event))
        for device in config.devices:
            devices.add(device)
        server = P4RuntimeServer(devices, load_program)
        grpc_port = await server.start(config.grpc)
        stack.push_async_callback(server.stop)
        control = SwitchControl(devices, config.control, journal=journal, on_shutdown=shut_down, admin=admin)
        stack.callback(control.close)
        if journal.enabled and config.sample_interval_ns:
            sample = _sampler(devices, data_plane, journal)
            stack.callback(sample)
            stack.callback(asyncio.ensure_future(_repeat(sample, config.sample_interval_ns)).cancel)
        _announce(
            {"grpc": _with_port(config.grpc, grpc_port), "control": control.address, "pid": os.getpid()}, ready_file
        )
        await stopping.wait()
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)


def _data_plane(turn_ns: int) -> DataPlane:
    from switch.native.build import EngineBuildError
    from switch.native.dataplane import NativeDataPlane

    try:
        return NativeDataPlane(turn_ns=turn_ns)
    except EngineBuildError as error:
        raise SwitchConfigError(f"the native data plane cannot be built: {error}") from None


def _with_port(address: str, port: int) -> str:
    return address if unix_socket.path_of(address) else f"{address.rpartition(':')[0]}:{port}"


def _announce(ready: dict[str, object], ready_file: Path | None) -> None:
    if ready_file is not None:
        write_json(ready_file, ready)
    print("ready " + " ".join(f"{key}={value}" for key, value in ready.items()), flush=True)


def _watch_parent(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    parent = os.getppid()
    try:
        descriptor = os.pidfd_open(parent)
    except ProcessLookupError:
        stopping.set()
        return
    if os.getppid() != parent:  # it ended before the descriptor was ours
        stopping.set()
    loop.add_reader(descriptor, stopping.set)


# --- journal ----------------------------------------------------------------------------------------------------------


def _journal_state(journal: Journal, device: Device, event: DeviceEvent) -> None:
    if event is not DeviceEvent.ADDED:
        journal.write("switch", node=device.name, state=event.value)


async def _repeat(sample: Callable[[], None], interval_ns: int) -> None:
    while True:
        await asyncio.sleep(interval_ns / 1e9)
        sample()


def _sampler(devices: Devices, data_plane: DataPlane, journal: Journal) -> Callable[[], None]:
    """A function that writes this process's CPU time, how late frames left, and the counters of every device that has
    changed since its last line."""
    start_ns = time.monotonic_ns()
    written: dict[str, object] = {}

    def sample() -> None:
        for device in devices:
            try:
                ports = device.sample()
            except SwitchConfigError:  # removed since the list was made
                continue
            if written.get(device.name) != ports:
                written[device.name] = ports
                journal.write("sample", node=device.name, device=device.name, ports=ports)
        late = data_plane.lateness()
        for due_ns, done_ns in late.spans:
            journal.write("stall", t_ns=done_ns, late_ns=done_ns - due_ns)
        wall_ns = time.monotonic_ns() - start_ns
        journal.write("cpu", process_ns=time.process_time_ns(), wall_ns=wall_ns, late_ns=late.sum_ns)

    return sample

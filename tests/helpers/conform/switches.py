"""Switches of the lab's own and the kernel's, started as foreign processes behind pairs of interfaces.

All is in a network namespace without a name, which ends with this process: `p0l0-eth1` and so on are the switch's
ports, `w1` and so on the tester's.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from common.interpreter import python
from common.linux.netns import entered
from conform.switch.bench import NODE, fabric
from conform.switch.command import fill
from conform.switch.device import DeviceError, DeviceFile, SwitchDevice
from conform.switch.printing import printed
from controller import Address, compiled_pipelines, read_counters
from topo.emulation import bmv2, bmv2_process, serve_config
from topo.emulation.namespace import offloads_off, run_ip, set_sysctls
from topo.graph import device_id, ports

RATE_BPS = 1_000_000
PATIENCE_S = 60.0
"""Of a switch that shares the machine with its tester, and stops when the machine does."""
START_S = 300.0
KINDS = ("native", "reference", "served", "seg6local", "bmv2")
"""Our engine in C and in Python, each in a process that stores its tables; `./lab`'s switch process, which a controller
fills by P4Runtime; Linux; BMv2, filled as ours."""


class Rig:
    """A namespace with the pairs of interfaces in it; `tester` are the tester's ends."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        plan = fabric(RATE_BPS)
        self.refs = list(ports(plan, plan.switch_node(NODE)))
        self.tester = [f"w{ref.port}" for ref in self.refs]
        words = ["unshare", "--net", "setpriv", "--pdeathsig", "KILL", "sh", "-c", "echo ready; exec sleep infinity"]
        holder = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE))
        stack.callback(holder.kill)
        assert holder.stdout is not None
        if holder.stdout.readline() != b"ready\n":
            raise DeviceError("a network namespace cannot be made: run as root")
        self.path = Path(f"/proc/{holder.pid}/ns/net")
        mtu = plan.links.mtu_bytes
        with entered(self.path):
            set_sysctls({"ipv6/conf/default/disable_ipv6": "1"})
            lines = [
                f"link add {ref.interface} address {ref.mac} mtu {mtu} type veth peer name w{ref.port} mtu {mtu}"
                for ref in self.refs
            ]
            lines += [f"link set {name} up" for ref in self.refs for name in (ref.interface, f"w{ref.port}")]
            run_ip(lines)
            offloads_off([name for ref in self.refs for name in (ref.interface, f"w{ref.port}")])

    def command(self, *words: str) -> list[str]:
        """A command that runs in the namespace and ends with this process."""
        return ["setpriv", "--pdeathsig", "KILL", "nsenter", f"--net={self.path}", *words]


@contextlib.contextmanager
def own(kind: str, programs: Path | None = None) -> Iterator[tuple[Rig, SwitchDevice]]:
    """A switch of one of KINDS; `programs` is a folder with P4 programs in place of the lab's. DeviceError."""
    with contextlib.ExitStack() as stack:
        rig = Rig(stack)
        if kind == "seg6local":
            yield rig, _kernel(rig)
        elif kind == "served":
            yield rig, _served(rig, stack)
        elif kind == "bmv2":
            yield rig, _bmv2(rig, stack)
        else:
            words = ["--engine", kind, "--rate", str(RATE_BPS), *(["--programs", str(programs)] if programs else [])]
            yield (
                rig,
                _stored(
                    kind,
                    stack,
                    rig.command(*python("-m", "tests.helpers.conform.switch_process"), *words, *_ports(rig)),
                ),
            )


class OwnSwitch(SwitchDevice):
    """A switch whose process answers words."""

    def __init__(self, about: DeviceFile, asked: Callable[[str], str]) -> None:
        super().__init__(about, lambda: asked("restart"), lambda: int(asked("unknown")))
        self.asked = asked


def _ports(rig: Rig) -> list[str]:
    return [ref.interface for ref in rig.refs]


def _about(kind: str, **fields: object) -> DeviceFile:
    return replace(DeviceFile(f"own {kind}", patience_s=PATIENCE_S, rate_bps=RATE_BPS), **fields)  # type: ignore[arg-type]


def _stored(kind: str, stack: contextlib.ExitStack, command: Sequence[str]) -> SwitchDevice:
    process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    stack.callback(process.kill)
    assert process.stdin is not None
    assert process.stdout is not None
    _line(process.stdout)

    def asked(word: str) -> str:
        pipe: IO[str] | None = process.stdin
        assert pipe is not None
        assert process.stdout is not None
        pipe.write(f"{word}\n")
        pipe.flush()
        return _line(process.stdout)

    return OwnSwitch(_about(kind), asked)


def _line(file: IO[str]) -> str:
    if not (line := file.readline()):
        raise DeviceError("the switch process has ended")
    return line.strip()


def _kernel(rig: Rig) -> SwitchDevice:
    def start() -> None:
        with entered(rig.path):
            set_sysctls({f"ipv6/conf/{name}/addr_gen_mode": "1" for name in _ports(rig)})  # no multicast reports
            set_sysctls({f"ipv6/conf/{name}/disable_ipv6": "0" for name in ("lo", *_ports(rig))})
            run_ip(["link set lo up", "route flush table main"])
        subprocess.run(rig.command("sh", "-e"), input=printed("linux", _ports(rig)), text=True, check=True)

    def unknown() -> int:
        with entered(rig.path):
            rows = dict(line.split() for line in Path("/proc/thread-self/net/snmp6").read_text().splitlines())
        return int(rows["Ip6InNoRoutes"])

    start()
    return SwitchDevice(_about("seg6local", rate_bps=0, marks=False, trims=False), start, unknown)


def _served(rig: Rig, stack: contextlib.ExitStack) -> SwitchDevice:
    plan = fabric(RATE_BPS)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conform-")))
    node = plan.switch_node(NODE)
    config = serve_config(plan, [node], folder)
    for port in config["devices"][0]["ports"]:
        port |= {"netns": str(rig.path), "delay_ns": 0}
    (folder / "switch.json").write_text(json.dumps(config))
    address = Address(f"unix:{folder / 'grpc'}", device_id(plan, node))
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        ready = folder / "ready"
        words = ["--config", str(folder / "switch.json"), "--ready-file", str(ready), "--exit-with-parent"]
        process = subprocess.Popen(python("-m", "switch", "serve", *words), stdout=subprocess.DEVNULL)
        running.append(process)
        until = time.monotonic() + START_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise DeviceError("the switch process does not start")
            time.sleep(0.01)
        fill(SwitchDevice(_about("served", p4runtime=address.target, device_id=address.device_id)))

    return _filled("served", address, start, running, stack)


def _bmv2(rig: Rig, stack: contextlib.ExitStack) -> SwitchDevice:
    """Its queues are set by Thrift, at the rate of the others."""
    plan = fabric(RATE_BPS)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conform-")))
    number = device_id(plan, plan.switch_node(NODE))
    thrift_port = bmv2.THRIFT_PORT_BASE + number
    interfaces = [f"{ref.port}@{ref.interface}" for ref in rig.refs]
    address = Address(f"unix:{bmv2_process.grpc_path(folder, NODE)}", number)
    running: list[subprocess.Popen[bytes]] = []
    with entered(rig.path):
        run_ip(["link set lo up"])

    def set_queues() -> None:
        with entered(rig.path), bmv2_process.connected(thrift_port) as thrift:
            for ref in rig.refs:
                for settings in bmv2.queue_settings(plan, RATE_BPS):
                    bmv2_process.set_queue(thrift, ref.port, *settings)

    def start() -> None:
        bmv2_process.grpc_path(folder, NODE).unlink(missing_ok=True)
        words = rig.command(*bmv2_process.command(folder, NODE, number, thrift_port, interfaces))
        with (folder / "log").open("wb") as log:
            running.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        bmv2_process.wait_until_serving(
            running[-1], "BMv2", bmv2_process.grpc_path(folder, NODE), folder / "log", set_queues
        )
        fill(SwitchDevice(_about("bmv2", p4runtime=address.target, device_id=address.device_id)))

    return _filled("bmv2", address, start, running, stack)


def _filled(
    kind: str,
    address: Address,
    start: Callable[[], None],
    running: list[subprocess.Popen[bytes]],
    stack: contextlib.ExitStack,
) -> SwitchDevice:
    """A switch that a controller has filled, and fills again when it restarts. `start` puts its process among those
    running."""

    def stop() -> None:
        for process in running:
            process.terminate()
            process.wait()
        running.clear()

    def again() -> None:
        stop()
        start()

    def unknown() -> int:
        cells = read_counters(fabric(RATE_BPS), {NODE: address}, compiled_pipelines())[NODE]
        return sum(one.drops.get("unknown_usid", 0) for classes in cells.values() for one in classes.values())

    stack.callback(stop)
    start()
    return SwitchDevice(_about(kind), again, unknown)

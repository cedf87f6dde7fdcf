"""A lab of our own for tests: this thread sees private /run/netns and /run/mrclab, whatever runs on the machine."""

import importlib.util
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import tomli_w

from common import files
from tests.helpers import private_machine
from topo.planfile import plan_document

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "p4"


@pytest.fixture(scope="module")
def private_run():
    """Skips without root. Network namespaces made meanwhile are invisible to, and safe from, any other lab."""
    if os.geteuid() != 0:
        pytest.skip("needs root: network namespaces")
    if not shutil.which("ip") or not shutil.which("nsenter"):
        pytest.skip("needs iproute2 and util-linux (ip, nsenter)")
    with ExitStack() as stack:
        try:
            stack.enter_context(private_machine.private_run())
        except OSError as error:
            pytest.skip(f"needs mount namespaces: {error}")
        yield


@pytest.fixture(scope="session")
def pipelines(tmp_path_factory):
    """The folder of both P4 programs, compiled by our compiler or by p4c, whichever is here."""
    out = tmp_path_factory.mktemp("p4")
    for name in ("leaf", "spine"):
        source, info = str(PROGRAMS / f"{name}.p4"), str(out / f"{name}.p4info.txtpb")
        ours = [sys.executable, "-m", "switch", "compile", source, "-o", str(out)]
        p4c = ["p4c", "--target", "bmv2", "--arch", "v1model", "--p4runtime-files", info, "-o", str(out), source]
        commands = [ours] + ([p4c] if shutil.which("p4c") else [])
        if not any(subprocess.run(argv, capture_output=True, check=False).returncode == 0 for argv in commands):
            pytest.skip("needs a P4 compiler: ours or p4c")
    return out


@pytest.fixture(scope="session")
def control(pipelines, tmp_path_factory):
    """`control("push" or "verify", lab, switches)`: the controller's command, which ends with 1 when anything differs.

    A process of its own: BMv2's P4Runtime sockets are in this thread's private /run, which the threads that gRPC has
    once started in this process do not see.
    """

    def run(verb, lab, switches):
        directory = tmp_path_factory.mktemp("controller")
        plan, addresses = directory / "plan.toml", directory / "addresses.json"
        plan.write_text(tomli_w.dumps(plan_document(lab.plan)), encoding="utf-8")
        places = {switch.name: lab.p4runtime(switch) for switch in switches}
        files.write_json(addresses, {name: {"grpc": grpc, "device_id": n} for name, (grpc, n) in places.items()})
        words = ["--plan", plan, "--addresses", addresses, "--pipelines", pipelines, *places]
        argv = [sys.executable, "-m", "cli", "controller", verb, *words]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return run


@pytest.fixture(scope="session")
def provision(control):
    """What the command line passes to `Lab.up`: the controller, with its tables read back and compared."""
    return partial(control, "push")


@pytest.fixture(scope="session")
def require_kind():
    """Skips, with the reason, when this machine lacks a kind of switch."""

    def require(kind):
        if kind == "bmv2" and not shutil.which("simple_switch_grpc"):
            pytest.skip("needs simple_switch_grpc on PATH")
        if kind == "embedded" and importlib.util.find_spec("switch.serve") is None:
            pytest.skip("needs python -m switch serve")

    return require

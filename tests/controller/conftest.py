"""Switch processes for the controller: `python -m switch serve` with every switch of a plan, ports in memory."""

import json
import os

import pytest

from controller import Address, compiled_pipelines
from tests.helpers.switch_process import serving as switches
from topo.graph import device_id, ports
from topo.planfile import load_plan


class Serving:
    """The addresses of one switch process for a plan; `addresses` as the controller wants them."""

    def __init__(self, plan, words):
        self.grpc, self.control = words["grpc"], words["control"]
        self.addresses = {s.name: Address(self.grpc, device_id(plan, s)) for s in plan.switches()}

    def addresses_file(self, directory):
        path = directory / "addresses.json"
        path.write_text(
            json.dumps({n: {"grpc": a.target, "device_id": a.device_id} for n, a in self.addresses.items()})
        )
        return path


@pytest.fixture(scope="session")
def pipelines():
    return compiled_pipelines()


@pytest.fixture(scope="session")
def tiny():
    return load_plan("tiny")


@pytest.fixture(scope="module")
def serving(tiny, tmp_path_factory):
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    devices = [
        {
            "device_id": device_id(tiny, switch),
            "name": switch.name,
            "ports": [{"port": ref.port} for ref in ports(tiny, switch)],
        }
        for switch in tiny.switches()
    ]
    with switches(tmp_path_factory.mktemp("serving"), devices) as words:
        yield Serving(tiny, words)

"""Switch processes for the controller: `python -m switch serve` with every switch of a plan, ports in memory."""

import json
import os
import subprocess
import sys

import pytest

from controller import Address
from tests.helpers.switch_process import ready_words, stop
from topo.graph import device_id, ports
from topo.planfile import load_plan

WAIT_S = 20


class Serving:
    """One switch process for a plan; `addresses` as the controller wants them."""

    def __init__(self, plan, directory):
        self.plan = plan
        config = {
            "grpc": "127.0.0.1:0",
            "control": "127.0.0.1:0",
            "devices": [
                {
                    "device_id": device_id(plan, switch),
                    "name": switch.name,
                    "ports": [{"port": ref.port} for ref in ports(plan, switch)],
                }
                for switch in plan.switches()
            ],
        }
        path = directory / f"{plan.name}.json"
        path.write_text(json.dumps(config))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "switch", "serve", "--config", str(path), "--exit-with-parent"],
            stdout=subprocess.PIPE,
            text=True,
        )
        words = ready_words(self.process)
        self.grpc, self.control = words["grpc"], words["control"]
        self.addresses = {s.name: Address(self.grpc, device_id(plan, s)) for s in plan.switches()}

    def addresses_file(self, directory):
        path = directory / "addresses.json"
        path.write_text(
            json.dumps({n: {"grpc": a.target, "device_id": a.device_id} for n, a in self.addresses.items()})
        )
        return path

    def close(self):
        stop(self.process)


@pytest.fixture(scope="module")
def tiny():
    return load_plan("tiny")


@pytest.fixture(scope="module")
def serving(tiny, tmp_path_factory):
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    serving = Serving(tiny, tmp_path_factory.mktemp("serving"))
    yield serving
    serving.close()

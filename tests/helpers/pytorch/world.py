"""Processes with PyTorch in the hosts of the simulated world: no root, no links, and the same in every run."""

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from running.directory import RunDirectory
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from scenarios.ddp import NoTorchError, torch_python
from topo.planfile import load_plan

ROOT = Path(__file__).resolve().parents[3]
SECOND = 1_000_000_000
EXAMPLES = ROOT / "mrclab" / "torch" / "examples"


def require_torch(newer_than: tuple[int, int] = (1, 0)) -> str:
    """The Python with PyTorch; skips by name without it."""
    try:
        python = torch_python()
    except NoTorchError as error:
        pytest.skip(str(error))
    words = [python, "-P", "-c", "import torch; print(torch.__version__)"]
    version = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    if tuple(map(int, version.split(".")[:2])) < newer_than:
        pytest.skip(f"needs PyTorch {newer_than[0]}.{newer_than[1]} or newer (here is {version.strip()})")
    return python


def run_ranks(
    folder: Path, script: Path, *words: str, ranks: int = 4, lab_s: float = 60.0
) -> list[tuple[int | None, str]]:
    """Each rank's exit status (None: still running after `lab_s` of lab time) and what it printed."""
    python = require_torch()
    directory = RunDirectory.create(folder, "torch", 1)
    world = SimulatedWorld(
        load_plan("tiny" if ranks <= 4 else "lab"), transport("mrc"), 1, directory, lambda text: None, answer_s=400
    )
    try:
        world.wait_until(SECOND)
        settings = [f"WORLD_SIZE={ranks}", f"MRCLAB_MEET={folder / 'meet'}", f"PYTHONPATH={ROOT}", "PYTHONSAFEPATH=1"]
        processes = [
            world.spawn(f"h{rank}", ["env", f"RANK={rank}", *settings, python, str(script), *words], f"h{rank}-torch")
            for rank in range(ranks)
        ]
        end_ns = SECOND + round(lab_s * 1e9)
        while world.now_ns() < end_ns and any(process.poll() is None for process in processes):
            world.wait_until(min(end_ns, world.now_ns() + SECOND))
        statuses = [process.poll() for process in processes]
    finally:
        world.close()
    logs = [(directory.path / "logs" / f"h{rank}-torch.log").read_text() for rank in range(ranks)]
    return list(zip(statuses, logs, strict=True))


def run_gloo(script: Path, *words: str, ranks: int) -> None:
    """The same script under PyTorch's own backend, on this machine's loopback. AssertionError if a rank fails."""
    python = require_torch()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [
        subprocess.Popen(
            [python, "-P", str(script), "--backend", "gloo", *words], env={**os.environ, **settings, "RANK": str(rank)}
        )
        for rank in range(ranks)
    ]
    assert [process.wait(300) for process in processes] == [0] * ranks


def read_json(text: str) -> Any:
    """The last line that a rank printed, as JSON."""
    return json.loads(text.splitlines()[-1])

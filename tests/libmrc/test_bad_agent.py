"""An agent that lies must not corrupt the program: its messages are changed on their way to the library.

The program is the one of `behaviour.c`, with sanitizers. It may be told nonsense, and may fail or wait for ever; it
must not read or write what is not its own, nor compute what C does not define.
"""

import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rig.uverbs_rig import rig
from common import uverbs
from endpoint.uverbs.session import ProgramMessage, Session
from tests.libmrc.compiled import REQUIREMENTS, SANITIZERS, compiled

pytestmark = REQUIREMENTS
SOURCE = Path(__file__).with_name("behaviour.c")
CASES = (
    "writes", "immediates", "unsignaled", "channels", "outside", "built", "refusals", "attributes", "profiles",
    "controls",
)  # fmt: skip
WAIT_S = 2.0
"""Real time after which a program that a lie keeps waiting is ended."""
CAUGHT = 99
"""The exit status of a program in which a sanitizer has found something."""
NUMBERS = (
    0, 1, -1, 31, 32, 64, 255, 256, 1 << 16, (1 << 24) - 1, 1 << 24, (1 << 31) - 1, 1 << 32, (1 << 64) - 1, 1 << 70,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, "", "x" * 300, "\\" * 40, "00" * 200, [], {}, [[]], 1.5, 1e300, -1e-300, [{}] * 40, [1] * 2000,
)  # fmt: skip


def bent(value: Any, chance: random.Random) -> Any:
    """A JSON value with one place in it changed."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        if chance.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: bent(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        if chance.random() < 0.2:
            return value * chance.randrange(2, 40)
        return [*value[:at], bent(value[at], chance), *value[at + 1 :]]
    return chance.choice(NUMBERS if chance.random() < 0.6 else VALUES)


def flipped(data: bytes, chance: random.Random) -> bytes:
    """Some bits changed, the end cut off, or bytes added."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    length = chance.choice([len(changed), len(changed), chance.randrange(1, len(changed) + 1)])
    return bytes(changed[:length]) + chance.choice([b"", b"", b"\0" * 9, b'"}]' * 30])


def miscounted(data: bytes, chance: random.Random) -> bytes:
    """Completions of which one has another queue, length, status or kind, or comes twice."""
    rows = list(uverbs.unpack_completions(data))
    at = chance.randrange(len(rows))
    field = chance.choice(["qpn", "cq", "byte_len", "status", "opcode", ""])
    odd = chance.choice([0, 1, 2, 3, 4, 6, 7, 100, 255]) if field in ("status", "opcode") else chance.randrange(1 << 32)
    rows[at] = rows[at]._replace(**{field: odd}) if field else rows[at]
    return uverbs.pack_completions(rows if field else [*rows, rows[at]])


def lied(message: ProgramMessage, chance: random.Random, said: list[bytes]) -> ProgramMessage:
    """A message in place of a true one."""
    data, descriptor = message
    kind = chance.random()
    if kind < 0.5 and data[0] == uverbs.JSON:
        data = json.dumps(bent(json.loads(data), chance)).encode()[: uverbs.MESSAGE_BYTES_MAX]
    elif kind < 0.5 and len(data) > uverbs.HEAD.size:
        data = miscounted(data, chance)
    elif kind < 0.8:
        data = flipped(data, chance)
    elif kind < 0.9 and said:
        data = chance.choice(said)
    elif descriptor is not None:
        other = chance.choice([lambda: os.memfd_create("short"), lambda: os.open("/dev/null", os.O_RDWR), None])
        os.close(descriptor)
        descriptor = other() if other else None
    else:
        descriptor = os.open("/dev/null", os.O_RDONLY)  # nobody has asked for it
    return ProgramMessage(data, descriptor)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled(SOURCE, tmp_path_factory.mktemp("lied-to"), *SANITIZERS)


@pytest.fixture
def told(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], tuple[int, subprocess.CompletedProcess[str]]]:
    """Runs a case whose agent tells the truth for a while, and then lies now and then: lies told, and how it ended."""
    true_outgoing = Session.outgoing
    chance = random.Random(0)
    said: list[bytes] = []
    lies, honest = 0, 0
    only: int | None = None

    def outgoing(self: Session) -> ProgramMessage | None:
        nonlocal lies, honest
        message = true_outgoing(self)
        if message is None:
            return None
        honest -= 1
        said.append(message.data)
        if honest > 0 or (only is not None and message.data[0] != only) or chance.random() < 0.7:
            return message
        lies += 1
        return lied(message, chance, said)

    monkeypatch.setattr(Session, "outgoing", outgoing)

    def run(seed: int) -> tuple[int, subprocess.CompletedProcess[str]]:
        nonlocal lies, honest, only
        chance.seed(seed)
        said.clear()
        only = chance.choice(
            [None, uverbs.COMPLETIONS]
        )  # most messages are answers, and a lie there soon ends a program
        lies, honest = 0, 0 if only else chance.choice([0, 5, 20, 30, 40, 60])
        environment = {
            **os.environ,
            "MRC_LOG_LEVEL": "ERROR",
            "ASAN_OPTIONS": f"exitcode={CAUGHT}:detect_leaks=0",
            "UBSAN_OPTIONS": f"exitcode={CAUGHT}:print_stacktrace=1",
        }
        with rig() as made:
            command = [program, CASES[seed % len(CASES)], *(f"mrc_{name}" for name in made.names)]
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
            try:
                _, errors = process.communicate(timeout=WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                _, errors = process.communicate()
                return lies, subprocess.CompletedProcess(command, 0, stderr=errors)
        return lies, subprocess.CompletedProcess(command, process.returncode, stderr=errors)

    return run


def lie_to(told: Callable[[int], tuple[int, subprocess.CompletedProcess[str]]], seeds: range) -> None:
    lies = 0
    for seed in seeds:
        count, done = told(seed)
        lies += count
        assert done.returncode in (0, 1), f"seed {seed}: {done.returncode}\n{done.stderr[-4000:]}"
    assert lies >= len(seeds) // 3


@pytest.mark.slow
def test_a_program_that_is_lied_to_hundreds_of_times_keeps_to_its_own_memory(told: Any) -> None:
    lie_to(told, range(1000, 1500))

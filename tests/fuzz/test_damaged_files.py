"""Files of others, damaged: whatever reads them ends in words. `test_campaign.py` goes on with other seeds."""

import contextlib
import io
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.main import main
from p4c.frontend import CompileError
from p4c.frontend.compilation import Compilation
from p4c.model import load
from p4c.model.errors import UnsupportedError
from schedules import reading
from schedules.errors import ScheduleError
from tests.helpers.frontend.random_programs import mutated
from topo.errors import PlanError
from topo.planfile import load_plan

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "schedules" / "examples").iterdir()) + sorted((ROOT / "topo" / "plans").glob("*.toml"))
PROGRAMS = ROOT / "tests" / "switch" / "frontend" / "programs"
LONGEST_S = 10.0
NUMBERS = (b"-1", b"0", b"1e9", b"99999999999999999999", b"nan", b"\xff\xfe", b"\0", b'"', b"[" * 3000, b"\n\n")


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Up to four parts of a file deleted, doubled, or exchanged for numbers, nonsense, or another part of it."""
    for _ in range(rng.randint(1, 4)):
        start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        end = min(end, start + rng.choice((1, 4, 30)))
        other = rng.randrange(len(data) + 1)
        put = rng.choice((b"", data[start:end] * 2, rng.choice(NUMBERS), data[other : other + 20], rng.randbytes(3)))
        data = data[:start] + put + data[end:]
    return data


def of_schedule(path: Path) -> None:
    with contextlib.suppress(ScheduleError):
        reading.read(path)


def of_plan(path: Path) -> None:
    with contextlib.suppress(PlanError):
        load_plan(path)


READERS: dict[str, Callable[[Path], None]] = {
    ".goal": of_schedule, ".cm": of_schedule, ".topo": of_plan, ".toml": of_plan,
}  # fmt: skip


@pytest.mark.parametrize("seed", [1])
def test_a_damaged_file_is_read_or_refused_in_words(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        example = rng.choice(EXAMPLES)
        path = tmp_path / f"damaged{example.suffix}"
        path.write_bytes(damaged(rng, example.read_bytes()))
        began_s = time.monotonic()
        READERS[example.suffix](path)
        assert time.monotonic() - began_s < LONGEST_S, path.read_bytes()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run in virtual time."""
    runs = tmp_path_factory.mktemp("runs")
    with contextlib.redirect_stdout(io.StringIO()):
        main(["run", "smoke", "--world", "simulated", "--time", "0.1", "--plain", "--runs", str(runs)])
    return (runs / "latest").resolve()


@pytest.mark.parametrize("seed", [1])
def test_a_command_on_a_damaged_run_ends_in_words(seed: int, run: Path, tmp_path: Path) -> None:
    rng = random.Random(seed)
    copy = tmp_path / "run"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy)
    file = rng.choice(sorted(path for path in copy.rglob("*") if path.suffix in (".json", ".jsonl", ".toml", ".txt")))
    file.write_bytes(damaged(rng, file.read_bytes()))
    out = str(tmp_path / "out")
    said = io.StringIO()
    words = rng.choice((["report", str(copy)], ["view", str(copy), "--export", out], ["export", "perfetto", str(copy)]))
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main(words)
    assert status in (0, 1, 2, 3), said.getvalue()
    assert "Traceback" not in said.getvalue(), file
    assert "a defect" not in said.getvalue(), said.getvalue()


@pytest.mark.parametrize("seed", [1])
def test_a_damaged_program_is_compiled_or_refused(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    source = rng.choice(sorted(path for path in PROGRAMS.glob("*.p4") if path.stem != "common"))
    (tmp_path / "common.p4").write_text((PROGRAMS / "common.p4").read_text().replace("../..", str(PROGRAMS.parents[1])))
    (tmp_path / "mutated.p4").write_text(mutated(rng, source.read_text()))
    with contextlib.suppress(CompileError, UnsupportedError):
        load(Compilation(tmp_path / "mutated.p4").run().json)
